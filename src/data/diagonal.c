/* The diagonal of a matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "data/diagonal.h"
#include <math.h>

enum { PARALLEL_FROM = 20000 };

static double entry(const ht_matrix *a, const ht_csr_view *view, int64_t i) {
  return a->diagonal ? a->diagonal[i] : ht_csr_diagonal(view, i);
}

void ht_matrix_diagonal(const ht_matrix *a, double *diagonal) {
  const ht_csr_view view = ht_matrix_view(a);
#pragma omp parallel for schedule(static) num_threads(a->ctx->threads) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++) diagonal[i] = entry(a, &view, i);
}

ht_status ht_matrix_check_diagonal(ht_context *ctx, const ht_matrix *a) {
  const ht_csr_view view = ht_matrix_view(a);
  int64_t first = a->n; /* wrong one */
#pragma omp parallel for schedule(static) num_threads(ctx->threads) reduction(min : first) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++) {
    double d = entry(a, &view, i);
    if (!(d > 0 && isfinite(1 / d)) && i < first) first = i;
  }
  for (int64_t i = first; i < a->n; i++) {
    double d = entry(a, &view, i);
    HT_CHECK(ctx, d > 0, HT_BAD_MATRIX,
             "a positive definite matrix has a positive diagonal, and entry (%lld,%lld), counted from 1, is %g; check the matrix",
             (long long)i + 1, (long long)i + 1, d);
    HT_CHECK(ctx, isfinite(1 / d), HT_BAD_MATRIX,
             "diagonal entry (%lld,%lld), counted from 1, is %g, and its reciprocal overflows; multiply the system by a power of two",
             (long long)i + 1, (long long)i + 1, d);
  }
  return HT_OK;
}
