/* Bisection on Sturm counts (Golub and Van Loan, section 8.4.1). SPDX-License-Identifier: BSD-3-Clause */
#include "solver/tridiagonal.h"
#include <float.h>
#include <math.h>

typedef struct {
  int64_t count;
  const double *diagonal, *off_diagonal;
} tridiagonal;

/* Whether at least `wanted` eigenvalues are below x: known as soon as the leading rows have them, or those that are left are too few. A
 * pivot of 0 is moved by less than rounding moves the matrix. */
static int has_below(const tridiagonal *t, int64_t wanted, double x) {
  int64_t spare = t->count - wanted;
  double pivot = 1;
  for (int64_t k = 0; wanted > 0 && spare >= 0; k++) {
    pivot = t->diagonal[k] - x - (k > 0 ? t->off_diagonal[k - 1] * t->off_diagonal[k - 1] / pivot : 0);
    if (pivot == 0) pivot = -DBL_MIN;
    int negative = pivot < 0;
    wanted -= negative;
    spare -= !negative;
  }
  return wanted <= 0;
}

/* The least x with at least `wanted` eigenvalues below it, between low and high: to the tolerance, or until no number lies
 * between. */
static double bisect(const tridiagonal *t, int64_t wanted, double tolerance, double low, double high) {
  while (high - low > tolerance * fmin(fabs(low), fabs(high))) {
    double middle = low / 2 + high / 2;
    if (!(middle > low && middle < high)) break;
    if (has_below(t, wanted, middle))
      high = middle;
    else
      low = middle;
  }
  return high;
}

void ht_tridiagonal_extremes(int64_t count, const double *diagonal, const double *off_diagonal, double tolerance, double *smallest,
                             double *largest) {
  const tridiagonal t = {count, diagonal, off_diagonal};
  double low = INFINITY, high = -INFINITY;
  *smallest = *largest = NAN;
  for (int64_t k = 0; k < count; k++) { /* Gershgorin */
    double radius = (k > 0 ? fabs(off_diagonal[k - 1]) : 0) + (k + 1 < count ? fabs(off_diagonal[k]) : 0);
    if (!isfinite(diagonal[k]) || !isfinite(radius)) return; /* fmin and fmax pass over a NaN */
    low = fmin(low, diagonal[k] - radius);
    high = fmax(high, diagonal[k] + radius);
  }
  double margin = 4 * DBL_EPSILON * fmax(fabs(low), fabs(high));
  low -= margin;
  high += margin;
  if (count < 1 || !isfinite(low) || !isfinite(high)) return;
  *smallest = bisect(&t, 1, tolerance, low, high);
  *largest = bisect(&t, count, tolerance, low, high);
}
