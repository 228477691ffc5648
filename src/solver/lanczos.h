/* Extreme eigenvalues of a symmetric matrix by the Lanczos process. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_LANCZOS_H
#define HT_SOLVER_LANCZOS_H
#include "backend/backend.h"

enum { HT_LANCZOS_MOST = 200 };

typedef struct ht_lanczos {
  int steps;                /* that were made: fewer than asked for when the space is exhausted */
  double smallest, largest; /* Ritz values: within the spectrum, but for rounding; NaN when there is no step */
} ht_lanczos;

/* At most `steps` (up to HT_LANCZOS_MOST) steps with W A W, W = diag(weight) or I (NULL). Values of any magnitude: A is
 * multiplied by a power of two while it is used. HT_INTERRUPTED when a stop was requested. */
ht_status ht_lanczos_extremes(ht_context *ctx, const ht_csr_view *a, const double *weight, int steps, ht_lanczos *result);

#endif
