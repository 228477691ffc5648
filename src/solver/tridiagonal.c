/* Bisection on Sturm counts (Golub and Van Loan, section 8.4.1). SPDX-License-Identifier: BSD-3-Clause */
#include "solver/tridiagonal.h"
#include <float.h>
#include <math.h>

/* How many eigenvalues are below x. A pivot of 0 is moved by less than rounding moves the matrix. */
static int count_below(int count, const double *diagonal, const double *off_diagonal, double x) {
  int below = 0;
  double pivot = 1;
  for (int k = 0; k < count; k++) {
    pivot = diagonal[k] - x - (k > 0 ? off_diagonal[k - 1] * off_diagonal[k - 1] / pivot : 0);
    if (pivot == 0) pivot = -DBL_MIN;
    below += pivot < 0;
  }
  return below;
}

/* The least x with at least `wanted` eigenvalues below it, between low and high, until no number lies between. */
static double bisect(int count, const double *diagonal, const double *off_diagonal, int wanted, double low, double high) {
  for (;;) {
    double middle = low / 2 + high / 2;
    if (!(middle > low && middle < high)) return high;
    if (count_below(count, diagonal, off_diagonal, middle) >= wanted)
      high = middle;
    else
      low = middle;
  }
}

void ht_tridiagonal_extremes(int count, const double *diagonal, const double *off_diagonal, double *smallest, double *largest) {
  double low = INFINITY, high = -INFINITY;
  *smallest = *largest = NAN;
  if (count < 1) return;
  for (int k = 0; k < count; k++) { /* Gershgorin */
    double radius = (k > 0 ? fabs(off_diagonal[k - 1]) : 0) + (k + 1 < count ? fabs(off_diagonal[k]) : 0);
    low = fmin(low, diagonal[k] - radius);
    high = fmax(high, diagonal[k] + radius);
  }
  double margin = 4 * DBL_EPSILON * fmax(fabs(low), fabs(high));
  *smallest = bisect(count, diagonal, off_diagonal, 1, low - margin, high + margin);
  *largest = bisect(count, diagonal, off_diagonal, count, low - margin, high + margin);
}
