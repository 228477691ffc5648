/* What the CG coefficients tell of the spectrum. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_SPECTRUM_H
#define HT_SOLVER_SPECTRUM_H
#include <stdint.h>

/* Extreme eigenvalues, to six digits, of the Lanczos matrix that `count` CG steps made (Saad 2003, section 6.7.3): diagonal
 * 1/alpha_k + beta_(k-1)/alpha_(k-1), off-diagonal sqrt(beta_k)/alpha_k. work: 2 count entries. NaN when there is no step. */
void ht_ritz_extremes(int64_t count, const double *alphas, const double *betas, double *work, double *smallest, double *largest);

#endif
