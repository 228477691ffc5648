/* New values from a CSR on the device: they never see the host. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/cuda/store_send.h"

static double as_double(unsigned long long bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Rows that are too long for the device to sort are sorted by the host on their way. */
static ht_status check_lengths(const ht_store *store) {
  const int64_t *start = store->rows->start;
  int threads = store->ctx->threads;
  int64_t longest = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : longest) if (store->view.padded > 20000)
  for (int64_t i = 0; i < store->view.padded; i++)
    if (start[i + 1] - start[i] > longest) longest = start[i + 1] - start[i];
  HT_CHECK(store->ctx, longest <= HT_SORTED_MOST || store->rows->identity, HT_UNSUPPORTED,
           "a row has %lld entries, and a CSR on the device may have %d in a row; use ht_matrix_set_values", (long long)longest,
           (int)HT_SORTED_MOST);
  return HT_OK;
}

static ht_status look(ht_store *store, const ht_csr_view *a) {
  ht_taken_view taken = {a->n, a->nnz, a->row_start, a->columns, a->values};
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, HT_COUNTS * 8, 0, store->counts));
  return ht_cuda_launch(store->cuda, HT_KERNEL_take_look, ht_cuda_over(a->n), HT_ARGS(&taken, &store->x, &store->counts));
}

static void read_facts(const ht_store *store, const unsigned long long *counts, ht_csr_facts *facts) {
  *facts = (ht_csr_facts){.other = (int64_t)counts[HT_COUNT_OTHER],
                          .wrong = (int64_t)counts[HT_COUNT_WRONG],
                          .not_finite = (int64_t)counts[HT_COUNT_NOT_FINITE],
                          .unsymmetric = (int64_t)counts[HT_COUNT_UNSYMMETRIC],
                          .not_positive = (int64_t)counts[HT_COUNT_NOT_POSITIVE],
                          .zero_sums = (int64_t)counts[HT_COUNT_ZERO_SUMS] == store->view.n,
                          .norm_inf = as_double(counts[HT_COUNT_NORM_INF]),
                          .diagonal_most = as_double(counts[HT_COUNT_MOST]),
                          .diagonal_least = as_double(~counts[HT_COUNT_LEAST])};
  if (counts[HT_COUNT_LOWER] != counts[HT_COUNT_MATCHED]) facts->unsymmetric++;
}

ht_status ht_cuda_store_take(ht_store *store, const ht_csr_view *a, ht_csr_facts *facts) {
  unsigned long long counts[HT_COUNTS];
  HT_TRY(store->ctx, check_lengths(store));
  HT_TRY(store->ctx, look(store, a));
  HT_TRY(store->ctx, ht_cuda_store_refill(store, a));
  HT_TRY(store->ctx, ht_cuda_copy(store->cuda, sizeof counts, store->counts, counts));
  read_facts(store, counts, facts);
  if (facts->other || facts->wrong || facts->not_finite || facts->unsymmetric || facts->not_positive) return HT_OK;
  return ht_cuda_store_tell(store, a->nnz, counts);
}
