/* Extreme Ritz values by bisection on Sturm counts. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/spectrum.h"
#include <float.h>
#include <math.h>

typedef struct {
  int64_t count;
  const double *alphas, *betas;
} tridiagonal;

static double diagonal(const tridiagonal *t, int64_t k) { return 1 / t->alphas[k] + (k > 0 ? t->betas[k - 1] / t->alphas[k - 1] : 0); }

static double off_diagonal(const tridiagonal *t, int64_t k) { /* between k and k+1 */
  return sqrt(fmax(t->betas[k], 0)) / t->alphas[k];
}

/* How many eigenvalues are below x. */
static int64_t count_below(const tridiagonal *t, double x) {
  int64_t below = 0;
  double pivot = 1;
  for (int64_t k = 0; k < t->count; k++) {
    double o = k > 0 ? off_diagonal(t, k - 1) : 0;
    pivot = diagonal(t, k) - x - (k > 0 ? o * o / pivot : 0);
    if (pivot == 0) pivot = -DBL_MIN;
    below += pivot < 0;
  }
  return below;
}

/* The smallest x with at least `wanted` eigenvalues below it, to six digits: an estimate needs no more. The spectrum of a
 * positive definite matrix spans decades, so the bisection is geometric. */
static double bisect(const tridiagonal *t, int64_t wanted, double low, double high) {
  while (high / low > 1 + 1e-6) {
    double middle = sqrt(low) * sqrt(high);
    if (count_below(t, middle) >= wanted)
      high = middle;
    else
      low = middle;
  }
  return high;
}

void ht_ritz_extremes(int64_t count, const double *alphas, const double *betas, double *smallest, double *largest) {
  tridiagonal t = {count, alphas, betas};
  double bound = 0;
  *smallest = *largest = NAN;
  for (int64_t k = 0; k < count; k++) {
    double row = fabs(diagonal(&t, k)) + (k > 0 ? off_diagonal(&t, k - 1) : 0) + (k + 1 < count ? off_diagonal(&t, k) : 0);
    bound = fmax(bound, row);
  }
  if (!(bound > 0) || !isfinite(bound)) return;
  double low = bound * 1e-30, high = bound * 1.001;
  *smallest = bisect(&t, 1, low, high);
  *largest = bisect(&t, count, low, high);
}
