/* CSR products: the plain reference. Row sums run in column order. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/cpu.h"

static inline double row_product(const ht_csr_view *a, int64_t i, const double *x) {
  double sum = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += a->values[k] * x[a->columns[k]];
  return sum;
}

void ht_cpu_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > 20000)
  for (int64_t i = 0; i < a->n; i++) y[i] = row_product(a, i, x);
}

void ht_cpu_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > 20000)
  for (int64_t i = 0; i < a->n; i++) r[i] = b[i] - row_product(a, i, x);
}
