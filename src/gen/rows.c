/* From a function that gives rows to CSR, in parallel and without other storage. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "gen/gen.h"

ht_status ht_gen_rows_of(ht_context *ctx, int64_t a, int64_t b, int64_t c, int64_t *rows) {
  double product = (double)a * (double)b * (double)c;
  HT_CHECK(ctx, product <= INT32_MAX, HT_BAD_OPTION,
           "a matrix has at most %d rows here, and this size gives %.4g (%lld x %lld x %lld): ask for a smaller one", INT32_MAX, product,
           (long long)a, (long long)b, (long long)c);
  *rows = a * b * c;
  return HT_OK;
}

ht_status ht_gen_build(ht_context *ctx, int64_t n, ht_gen_row_fn row, const void *self, const char *source, ht_matrix **matrix) {
  int64_t *start = NULL;
  int32_t *columns = NULL;
  double *values = NULL;
  ht_status status;
  int threads = ctx->threads;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n + 1, sizeof *start, &start), fail);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; i++) start[i + 1] = row(self, i, NULL, NULL);
  start[0] = 0;
  for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, start[n], sizeof *columns, &columns), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, start[n], sizeof *values, &values), fail);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; i++) row(self, i, columns + start[i], values + start[i]);
  HT_TRY(ctx, ht_matrix_adopt(ctx, n, start, columns, values, source, matrix));
  return HT_OK;
fail:
  ht_release(ctx, start);
  ht_release(ctx, columns);
  ht_release(ctx, values);
  return status;
}

void ht_gen_add(ht_gen_sum *row, int64_t column, double value) {
  int low = 0, high = row->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (row->columns[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < row->count && row->columns[low] == column) {
    row->values[low] += value;
    return;
  }
  size_t behind = (size_t)(row->count - low);
  memmove(row->columns + low + 1, row->columns + low, behind * sizeof *row->columns);
  memmove(row->values + low + 1, row->values + low, behind * sizeof *row->values);
  row->columns[low] = (int32_t)column;
  row->values[low] = value;
  row->count++;
}

int64_t ht_gen_give(const ht_gen_sum *row, int32_t *columns, double *values) {
  if (columns) {
    memcpy(columns, row->columns, (size_t)row->count * sizeof *columns);
    memcpy(values, row->values, (size_t)row->count * sizeof *values);
  }
  return row->count;
}
