/* Eigenvalues of symmetric tridiagonal matrices. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_TRIDIAGONAL_H
#define HT_SOLVER_TRIDIAGONAL_H
#include <stdint.h>

/* The smallest and the largest eigenvalue of the matrix with `count` diagonal and count-1 off-diagonal entries: to `tolerance`
 * relative to each, and no closer than a few units of rounding of the norm, which is what a tolerance of 0 gives. NaN when
 * count is 0 or an entry is not finite. */
void ht_tridiagonal_extremes(int64_t count, const double *diagonal, const double *off_diagonal, double tolerance, double *smallest,
                             double *largest);

#endif
