/* Rows of a CSR made canonical. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "data/matrix.h"

enum { SHORT_ROW = 48, DESCENTS_SHARE = 8, ROWS_AT_ONCE = 1024, PARALLEL_NONZEROS = 20000 };

/* Strictly ascending: nothing to do, as in most files. */
static int is_canonical(const int32_t *columns, int64_t length) {
  for (int64_t k = 1; k < length; k++)
    if (columns[k - 1] >= columns[k]) return 0;
  return 1;
}

static void insertion_sort(int32_t *columns, double *values, int64_t length) {
  for (int64_t k = 1; k < length; k++) {
    int32_t c = columns[k];
    double v = values[k];
    int64_t t = k;
    for (; t > 0 && columns[t - 1] > c; t--) {
      columns[t] = columns[t - 1];
      values[t] = values[t - 1];
    }
    columns[t] = c;
    values[t] = v;
  }
}

/* Each entry's place is the number of those below it: no branches, which nothing would foretell in rows in random order. */
static void rank_sort(int32_t *columns, double *values, int64_t length) {
  enum { AT_ONCE = 8 };
  int32_t c[SHORT_ROW + AT_ONCE], ranks = 0;
  double v[SHORT_ROW];
  int64_t padded = (length + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
  memcpy(c, columns, (size_t)length * sizeof *c);
  memcpy(v, values, (size_t)length * sizeof *v);
  for (int64_t k = length; k < padded; k++) c[k] = INT32_MAX;
  for (int64_t k = 0; k < length; k++) {
    int32_t rank = 0;
    for (int64_t j = 0; j < padded; j += AT_ONCE)
      for (int64_t i = j; i < j + AT_ONCE; i++) rank += c[i] < c[k];
    columns[rank] = c[k];
    values[rank] = v[k];
    ranks += rank;
  }
  if (ranks == length * (length - 1) / 2) return;
  memcpy(columns, c, (size_t)length * sizeof *c); /* some are equal, and share a rank */
  memcpy(values, v, (size_t)length * sizeof *v);
  insertion_sort(columns, values, length);
}

/* Nearly sorted rows are best sorted by insertion. */
static void sort_short_row(int32_t *columns, double *values, int64_t length) {
  int64_t descents = 0;
  for (int64_t k = 1; k < length; k++) descents += columns[k - 1] > columns[k];
  if (DESCENTS_SHARE * descents > length)
    rank_sort(columns, values, length);
  else
    insertion_sort(columns, values, length);
}

static void sift_down(uint64_t *keys, int64_t from, int64_t length) {
  uint64_t key = keys[from];
  for (int64_t child; (child = 2 * from + 1) < length; from = child) {
    if (child + 1 < length && keys[child] < keys[child + 1]) child++;
    if (keys[child] <= key) break;
    keys[from] = keys[child];
    keys[child] = key;
  }
}

static void heap_sort(uint64_t *keys, int64_t length) {
  for (int64_t k = length / 2; k-- > 0;) sift_down(keys, k, length);
  for (int64_t end = length - 1; end > 0; end--) {
    uint64_t largest = keys[0];
    keys[0] = keys[end];
    keys[end] = largest;
    sift_down(keys, 0, end);
  }
}

/* Keys are (column, position): all distinct, so that any sort is a stable one. */
static void sort_long_row(int32_t *columns, double *values, int64_t length, uint64_t *keys, double *copy) {
  for (int64_t k = 0; k < length; k++) {
    keys[k] = (uint64_t)(uint32_t)columns[k] << 32 | (uint64_t)k;
    copy[k] = values[k];
  }
  heap_sort(keys, length);
  for (int64_t k = 0; k < length; k++) {
    columns[k] = (int32_t)(keys[k] >> 32);
    values[k] = copy[keys[k] & UINT32_MAX];
  }
}

static int64_t count_duplicates(const int32_t *columns, int64_t length, int64_t last) {
  int64_t count = 0;
  for (int64_t k = 1; k < length && columns[k] <= last; k++) count += columns[k - 1] == columns[k];
  return count;
}

static ht_status merge_duplicates(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values) {
  int64_t to = 0, from = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t end = row_start[i + 1], first = to;
    for (; from < end; from++) {
      if (to == first || columns[to - 1] != columns[from]) {
        columns[to] = columns[from];
        values[to++] = values[from];
      } else {
        values[to - 1] += values[from];
        HT_CHECK(ctx, isfinite(values[to - 1]), HT_BAD_MATRIX,
                 "the sum of the duplicates at row %lld, column %lld, counted from 1, overflows", (long long)i + 1,
                 (long long)columns[from] + 1);
      }
    }
    row_start[i + 1] = to;
  }
  return HT_OK;
}

ht_status ht_rows_make_canonical(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, int lower_only,
                                 int64_t *duplicates) {
  int threads = row_start[n] > PARALLEL_NONZEROS ? ctx->threads : 1;
  int64_t longest = 0, summed = 0, counted = 0;
  *duplicates = 0;
#pragma omp parallel for schedule(dynamic, ROWS_AT_ONCE) num_threads(threads) reduction(max : longest)
  for (int64_t i = 0; i < n; i++) {
    int64_t length = row_start[i + 1] - row_start[i];
    if (length > longest && !is_canonical(columns + row_start[i], length)) longest = length;
  }
  if (longest == 0) return HT_OK;
  HT_CHECK(ctx, longest <= UINT32_MAX, HT_UNSUPPORTED, "a row has %lld entries; 4294967295 is the limit", (long long)longest);

  /* Scratch for the longest row a thread, but together no more than the matrix itself takes. */
  uint64_t *keys = NULL;
  double *copies = NULL;
  int64_t scratch = longest > SHORT_ROW ? longest : 0;
  if (scratch && threads > row_start[n] / longest) threads = (int)(row_start[n] / longest);
  HT_TRY(ctx, ht_allocate(ctx, scratch * threads, sizeof *keys, &keys));
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, scratch * threads, sizeof *copies, &copies), done);
#pragma omp parallel for schedule(dynamic, ROWS_AT_ONCE) num_threads(threads) reduction(+ : summed, counted)
  for (int64_t i = 0; i < n; i++) {
    int64_t length = row_start[i + 1] - row_start[i], mine = scratch * omp_get_thread_num();
    int32_t *c = columns + row_start[i];
    double *v = values + row_start[i];
    if (is_canonical(c, length)) continue;
    if (length <= SHORT_ROW)
      sort_short_row(c, v, length);
    else
      sort_long_row(c, v, length, keys + mine, copies + mine);
    summed += count_duplicates(c, length, INT32_MAX);
    counted += count_duplicates(c, length, lower_only ? i : INT32_MAX);
  }
  *duplicates = counted;
  if (summed) HT_TRY_GOTO(ctx, status, merge_duplicates(ctx, n, row_start, columns, values), done);
done:
  ht_release(ctx, copies);
  ht_release(ctx, keys);
  return status;
}
