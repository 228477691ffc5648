/* b - A x in twice FP64's precision: products split without error by fma, sums by TwoSum, and their errors added up beside them (Ogita,
 * Rump and Oishi 2005, algorithm Dot2). The library is compiled without value-changing optimisation, which would cancel the errors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solver/residual.h"
#include <math.h>

static inline double two_sum(double a, double b, double *error) {
  double sum = a + b, part = sum - a;
  *error = (a - (sum - part)) + (b - part);
  return sum;
}

static double row_residual(const ht_csr_view *a, int64_t i, const double *x, double b) {
  double sum = b, errors = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
    double value = -a->values[k], entry = x[a->columns[k]], product = value * entry, lost;
    errors += fma(value, entry, -product);
    sum = two_sum(sum, product, &lost);
    errors += lost;
  }
  return sum + errors;
}

void ht_residual_doubled(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > 20000)
  for (int64_t i = 0; i < a->n; i++) r[i] = row_residual(a, i, x, b[i]);
}
