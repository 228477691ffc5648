/* Eigenvalues of symmetric tridiagonal matrices. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_TRIDIAGONAL_H
#define HT_SOLVER_TRIDIAGONAL_H

/* The smallest and the largest eigenvalue of the matrix with `count` diagonal and count-1 off-diagonal entries, to a few
 * units of rounding of its norm. NaN when count is 0. */
void ht_tridiagonal_extremes(int count, const double *diagonal, const double *off_diagonal, double *smallest, double *largest);

#endif
