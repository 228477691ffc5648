/* Extreme Ritz values of a CG run. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/spectrum.h"
#include <math.h>
#include "solver/tridiagonal.h"

void ht_ritz_extremes(int64_t count, const double *alphas, const double *betas, double *work, double *smallest, double *largest) {
  static const double SIX_DIGITS = 1e-6; /* an estimate needs no more */
  double *diagonal = work, *off_diagonal = work + count;
  for (int64_t k = 0; k < count; k++) {
    diagonal[k] = 1 / alphas[k] + (k > 0 ? betas[k - 1] / alphas[k - 1] : 0);
    if (k + 1 < count) off_diagonal[k] = sqrt(fmax(betas[k], 0)) / alphas[k];
  }
  ht_tridiagonal_extremes(count, diagonal, off_diagonal, SIX_DIGITS, smallest, largest);
  /* Positive definite by its making, but for rounding. */
  if (*smallest < 1e-30 * *largest) *smallest = 1e-30 * *largest;
}
