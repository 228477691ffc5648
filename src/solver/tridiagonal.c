/* Bisection on Sturm counts (Golub and Van Loan, section 8.4.1). SPDX-License-Identifier: BSD-3-Clause */
#include "solver/tridiagonal.h"
#include <float.h>
#include <math.h>

/* A count waits for one division after the other: the counts of all points that the next STEPS steps of the bisection may ask for take
 * little longer than one. They form a heap: after point k follows 2k, on its left, or 2k + 1. */
enum { STEPS = 3, POINTS = 1 << STEPS };

typedef struct {
  int64_t count;
  const double *diagonal, *off_diagonal;
} tridiagonal;

/* How many eigenvalues are below each x. A pivot of 0 is moved by less than rounding moves the matrix. */
static void count_below(const tridiagonal *t, const double x[POINTS], double below[POINTS]) {
  double pivot[POINTS], negative[POINTS];
  for (int j = 0; j < POINTS; j++) pivot[j] = 1, negative[j] = 0;
  for (int64_t k = 0; k < t->count; k++) {
    double diagonal = t->diagonal[k], coupling = k > 0 ? t->off_diagonal[k - 1] * t->off_diagonal[k - 1] : 0;
    for (int j = 0; j < POINTS; j++) {
      double next = diagonal - x[j] - coupling / pivot[j];
      pivot[j] = next == 0 ? -DBL_MIN : next;
      negative[j] += pivot[j] < 0 ? 1 : 0;
    }
  }
  for (int j = 0; j < POINTS; j++) below[j] = negative[j];
}

/* Point 0 is none: it takes the place of the first. */
static void list_points(double low, double high, double x[POINTS]) {
  double left[POINTS] = {0, low}, right[POINTS] = {0, high};
  for (int k = 1; k < POINTS; k++) {
    x[k] = left[k] / 2 + right[k] / 2;
    if (2 * k >= POINTS) continue;
    left[2 * k] = left[k];
    right[2 * k] = left[2 * k + 1] = x[k];
    right[2 * k + 1] = right[k];
  }
  x[0] = x[1];
}

/* The least x with at least `wanted` eigenvalues below it, between low and high: to the tolerance, or until no number lies
 * between. */
static double bisect(const tridiagonal *t, int64_t wanted, double tolerance, double low, double high) {
  double x[POINTS], below[POINTS];
  for (int k = POINTS; high - low > tolerance * fmin(fabs(low), fabs(high));) {
    if (k >= POINTS) {
      list_points(low, high, x);
      count_below(t, x, below);
      k = 1;
    }
    if (!(x[k] > low && x[k] < high)) break;
    int enough = below[k] >= (double)wanted;
    *(enough ? &high : &low) = x[k];
    k = enough ? 2 * k : 2 * k + 1;
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
