/* From a function that gives rows to CSR, in parallel and without other storage. SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>
#include "gen/gen.h"

ht_status ht_gen_rows_of(ht_context *ctx, int64_t a, int64_t b, int64_t c, int64_t *rows) {
  double product = (double)a * (double)b * (double)c;
  HT_CHECK(ctx, product <= INT32_MAX, HT_BAD_OPTION,
           "a matrix has at most %d rows here, and this size gives %.4g (%lld x %lld x %lld): ask for a smaller one", INT32_MAX, product,
           (long long)a, (long long)b, (long long)c);
  *rows = a * b * c;
  return HT_OK;
}

/* What the arrays will take, by some rows of the matrix, against what the machine has: counting alone takes minutes at such sizes. */
static ht_status check_memory(ht_context *ctx, int64_t n, ht_gen_row_fn row, const void *self) {
  enum { SAMPLES = 64 };
  double entries = 0, bytes, memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (n < SAMPLES) return HT_OK;
  for (int64_t k = 0; k < SAMPLES; k++) entries += (double)row(self, n / SAMPLES * k, NULL, NULL);
  bytes = (double)n * (sizeof(int64_t) + entries / SAMPLES * (sizeof(int32_t) + sizeof(double)));
  HT_CHECK(ctx, !(memory > 0) || bytes <= memory, HT_NO_MEMORY,
           "a matrix of %lld rows takes about %.0f GiB, and this machine has %.0f GiB of memory: ask for a smaller one", (long long)n,
           bytes / 0x1p30, memory / 0x1p30);
  return HT_OK;
}

ht_status ht_gen_build_permuted(ht_context *ctx, int64_t n, const int32_t *order, ht_gen_row_fn row, const void *self, const char *source,
                                ht_matrix **matrix) {
  int64_t *start = NULL;
  int32_t *columns = NULL;
  double *values = NULL;
  ht_status status;
  int threads = ctx->threads;
  HT_TRY(ctx, check_memory(ctx, n, row, self));
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n + 1, sizeof *start, &start), fail);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t t = 0; t < n; t++) start[(order ? order[t] : t) + 1] = row(self, t, NULL, NULL);
  start[0] = 0;
  for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
  if (ht_stop_requested(ctx)) HT_FAIL_GOTO(ctx, status, fail, HT_INTERRUPTED, "generating %s was interrupted", source);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, start[n], sizeof *columns, &columns), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, start[n], sizeof *values, &values), fail);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t t = 0; t < n; t++) {
    int64_t first = start[order ? order[t] : t];
    row(self, t, columns + first, values + first);
  }
  HT_TRY(ctx, ht_matrix_adopt(ctx, n, start, columns, values, source, matrix));
  return HT_OK;
fail:
  ht_release(ctx, start);
  ht_release(ctx, columns);
  ht_release(ctx, values);
  return status;
}

ht_status ht_gen_build(ht_context *ctx, int64_t n, ht_gen_row_fn row, const void *self, const char *source, ht_matrix **matrix) {
  return ht_gen_build_permuted(ctx, n, NULL, row, self, source, matrix);
}

void ht_gen_add(ht_gen_sum *row, int64_t column, double value) {
  uint32_t slot = (uint32_t)column * 0x9e3779b9u >> 23; /* 9 bits: HT_GEN_SLOTS */
  for (; row->slots[slot]; slot = (slot + 1) % HT_GEN_SLOTS) {
    int place = row->slots[slot] - 1;
    if (row->columns[place] != column) continue;
    row->values[place] += value;
    return;
  }
  row->columns[row->count] = (int32_t)column;
  row->values[row->count++] = value;
  row->slots[slot] = (int16_t)row->count;
}

/* Insertion sort: rows are short, and most come nearly sorted. */
int64_t ht_gen_give(const ht_gen_sum *row, int32_t *columns, double *values) {
  for (int k = 0; k < row->count && columns; k++) {
    int place = k;
    for (; place > 0 && columns[place - 1] > row->columns[k]; place--) {
      columns[place] = columns[place - 1];
      values[place] = values[place - 1];
    }
    columns[place] = row->columns[k];
    values[place] = row->values[k];
  }
  return row->count;
}
