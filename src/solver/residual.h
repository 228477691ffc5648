/* b - A x in twice FP64's precision. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_RESIDUAL_H
#define HT_SOLVER_RESIDUAL_H
#include "backend/backend.h"

/* r = b - A x, each row summed as if in 106 bits and rounded once, in host memory. r must be neither x nor b. */
void ht_residual_doubled(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r);

#endif
