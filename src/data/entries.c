/* Coordinate entries to canonical CSR, by a stable counting sort. SPDX-License-Identifier: BSD-3-Clause
 *
 * Each thread owns a range of rows and walks over all entries in their order, so that the order within a row is that of the
 * input whatever the number of threads. Blocks of entries know the rows and columns they touch: files are mostly sorted, and
 * a thread then skips most blocks. */
#include <string.h>
#include "data/matrix.h"

enum { BLOCK = 1 << 14, PARALLEL_ENTRIES = 20000, AHEAD = 24 };

typedef struct block {
  int32_t row_min, row_max, column_min, column_max;
} block;

typedef struct sorter {
  ht_context *ctx;
  int threads, mirror;
  int64_t n, count;
  int32_t *rows, *columns; /* the entries */
  double *values;
  block *blocks;
  int64_t block_count, upper, lower;
  int canonical; /* the entries stand in order, none twice */
  /* the result */
  int64_t *row_start;
  int32_t *csr_columns;
  double *csr_values;
} sorter;

static void release_entries(sorter *s) {
  ht_release(s->ctx, s->rows);
  ht_release(s->ctx, s->columns);
  ht_release(s->ctx, s->values);
  ht_release(s->ctx, s->blocks);
  s->rows = s->columns = NULL;
  s->values = NULL;
  s->blocks = NULL;
}

static void release_csr(sorter *s) {
  ht_release(s->ctx, s->row_start);
  ht_release(s->ctx, s->csr_columns);
  ht_release(s->ctx, s->csr_values);
  s->row_start = NULL;
  s->csr_columns = NULL;
  s->csr_values = NULL;
}

static int64_t block_end(const sorter *s, int64_t b) { return (b + 1) * BLOCK < s->count ? (b + 1) * BLOCK : s->count; }

static ht_status survey(sorter *s) {
  s->block_count = (s->count + BLOCK - 1) / BLOCK;
  HT_TRY(s->ctx, ht_allocate(s->ctx, s->block_count, sizeof(block), &s->blocks));
  int64_t upper = 0, lower = 0, disorder = 0;
#pragma omp parallel for schedule(static) num_threads(s->threads) reduction(+ : upper, lower, disorder)
  for (int64_t b = 0; b < s->block_count; b++) {
    block range = {INT32_MAX, 0, INT32_MAX, 0};
    for (int64_t k = b * BLOCK; k < block_end(s, b); k++) {
      int32_t r = s->rows[k], c = s->columns[k];
      if (r < range.row_min) range.row_min = r;
      if (r > range.row_max) range.row_max = r;
      if (c < range.column_min) range.column_min = c;
      if (c > range.column_max) range.column_max = c;
      upper += c > r;
      lower += c < r;
      if (k > 0) disorder += s->rows[k - 1] > r || (s->rows[k - 1] == r && s->columns[k - 1] >= c);
    }
    s->blocks[b] = range;
  }
  s->canonical = disorder == 0;
  s->upper = upper;
  s->lower = lower;
  return HT_OK;
}

static int touches(const sorter *s, int64_t b, int64_t first, int64_t end) {
  const block *range = &s->blocks[b];
  return (range->row_min < end && range->row_max >= first) || (s->mirror && range->column_min < end && range->column_max >= first);
}

/* Entries of rows [first, end): numbers of row i into row_start[i+1]. */
static void count_rows(const sorter *s, int64_t first, int64_t end) {
  int64_t *count = s->row_start + 1;
  uint64_t rows = (uint64_t)(end - first);
  memset(count + first, 0, (size_t)rows * sizeof *count);
  for (int64_t b = 0; b < s->block_count; b++) {
    if (!touches(s, b, first, end)) continue;
    for (int64_t k = b * BLOCK; k < block_end(s, b); k++) {
      int64_t r = s->rows[k], c = s->columns[k];
      if ((uint64_t)(r - first) < rows) count[r]++;
      if (s->mirror && c != r && (uint64_t)(c - first) < rows) count[c]++;
    }
  }
}

/* Entries in random order miss the cache at every step: fetch where they go some entries before they do. */
static inline void prefetch(const sorter *s, const int64_t *next, int64_t k) {
  __builtin_prefetch(&next[s->rows[k + 2 * AHEAD]], 1);
  int64_t t = next[s->rows[k + AHEAD]];
  __builtin_prefetch(&s->csr_columns[t], 1);
  __builtin_prefetch(&s->csr_values[t], 1);
}

/* row_start[i+1] is where row i's next entry goes; when all are placed it is where row i+1 starts. */
static void place_rows(const sorter *s, int64_t first, int64_t end) {
  int64_t *next = s->row_start + 1;
  uint64_t rows = (uint64_t)(end - first);
  for (int64_t b = 0; b < s->block_count; b++) {
    if (!touches(s, b, first, end)) continue;
    int64_t last = block_end(s, b);
    for (int64_t k = b * BLOCK; k < last; k++) {
      int32_t r = s->rows[k], c = s->columns[k];
      double v = s->values[k];
      if (k + 2 * AHEAD < last) prefetch(s, next, k);
      if ((uint64_t)(r - first) < rows) {
        int64_t t = next[r]++;
        s->csr_columns[t] = c;
        s->csr_values[t] = v;
      }
      if (s->mirror && c != r && (uint64_t)(c - first) < rows) {
        int64_t t = next[c]++;
        s->csr_columns[t] = r;
        s->csr_values[t] = v;
      }
    }
  }
}

/* First row at or behind which `share` of `shares` of the entries start; starts[i] is where row i starts. */
static int64_t row_of_share(const int64_t *starts, int64_t n, int64_t total, int64_t share, int64_t shares) {
  if (share == shares) return n;
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if ((double)starts[middle] * (double)shares < (double)total * (double)share)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The number of entries of row i into row_start[i+1]. */
static ht_status count_entries(sorter *s) {
  HT_TRY(s->ctx, ht_allocate(s->ctx, s->n + 1, sizeof *s->row_start, &s->row_start));
  s->row_start[0] = 0;
  int64_t n = s->n, shares = s->threads;
#pragma omp parallel for schedule(static, 1) num_threads(s->threads)
  for (int64_t t = 0; t < shares; t++) count_rows(s, n * t / shares, n * (t + 1) / shares);
  return HT_OK;
}

static ht_status sort_entries(sorter *s) {
  HT_TRY(s->ctx, count_entries(s));
  int64_t n = s->n, total = 0, shares = s->threads, *starts = s->row_start + 1;
  for (int64_t i = 0; i < n; i++) {
    int64_t length = starts[i];
    starts[i] = total;
    total += length;
  }
  HT_TRY(s->ctx, ht_allocate(s->ctx, total, sizeof *s->csr_columns, &s->csr_columns));
  HT_TRY(s->ctx, ht_allocate(s->ctx, total, sizeof *s->csr_values, &s->csr_values));
  int64_t *cuts;
  HT_TRY(s->ctx, ht_allocate(s->ctx, shares + 1, sizeof *cuts, &cuts));
  for (int64_t t = 0; t <= shares; t++) cuts[t] = row_of_share(starts, n, total, t, shares);
#pragma omp parallel for schedule(static, 1) num_threads(s->threads)
  for (int64_t t = 0; t < shares; t++) place_rows(s, cuts[t], cuts[t + 1]);
  ht_release(s->ctx, cuts);
  return HT_OK;
}

/* Entries that stand in order are the CSR already, but for the row starts. */
static ht_status keep_entries(sorter *s) {
  HT_TRY(s->ctx, count_entries(s));
  for (int64_t i = 0; i < s->n; i++) s->row_start[i + 1] += s->row_start[i];
  s->csr_columns = s->columns;
  s->csr_values = s->values;
  s->columns = NULL;
  s->values = NULL;
  release_entries(s);
  return HT_OK;
}

/* A symmetric file with entries in both triangles: either each stands for its pair (no pair is there twice), or all pairs
 * are there twice and the file is general in truth. Expects the unmirrored canonical CSR in s. */
static ht_status judge_both_triangles(sorter *s, const char *source, int *as_given) {
  ht_csr_view view = {s->n, s->row_start[s->n], s->row_start, s->csr_columns, s->csr_values};
  int64_t single = 0, twice = 0, different = 0, row = 0, column = 0;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = view.row_start[i]; k < view.row_start[i + 1]; k++) {
      int64_t j = view.columns[k];
      if (j == i) continue;
      int64_t partner = ht_matrix_find(&view, j, (int32_t)i);
      int differs = partner >= 0 && view.values[k] != view.values[partner];
      if ((differs && !different) || (partner >= 0 && !twice)) {
        row = i;
        column = j;
      }
      single += partner < 0;
      twice += partner >= 0;
      different += differs;
    }
  HT_CHECK(s->ctx, different == 0, HT_BAD_MATRIX,
           "%s: the file says symmetric, but (%lld,%lld) and (%lld,%lld), counted from 1, are both given with different values; if it is "
           "not symmetric say "
           "general",
           source, (long long)row + 1, (long long)column + 1, (long long)column + 1, (long long)row + 1);
  HT_CHECK(s->ctx, !single || !twice, HT_BAD_MATRIX,
           "%s: the file says symmetric, but (%lld,%lld), counted from 1, is given in both triangles and other entries in one only; it "
           "cannot be told which "
           "is meant",
           source, (long long)row + 1, (long long)column + 1);
  *as_given = twice > 0;
  if (*as_given)
    ht_log(s->ctx, HT_LOG_WARNING, "%s: the file says symmetric but holds both triangles, with equal values; each entry is taken once",
           source);
  return HT_OK;
}

static ht_status build(sorter *s, const char *source, int64_t *duplicates) {
  HT_TRY(s->ctx, survey(s));
  int mirror = s->mirror && (s->lower || s->upper);
  /* An empty list has no arrays to keep. */
  if (!mirror && s->canonical && s->count) return keep_entries(s);
  if (mirror && s->lower && s->upper) {
    s->mirror = 0;
    HT_TRY(s->ctx, sort_entries(s));
    HT_TRY(s->ctx, ht_rows_make_canonical(s->ctx, s->n, s->row_start, s->csr_columns, s->csr_values, 0, duplicates));
    int as_given;
    HT_TRY(s->ctx, judge_both_triangles(s, source, &as_given));
    if (as_given) return HT_OK;
    release_csr(s);
    s->mirror = 1;
  }
  HT_TRY(s->ctx, sort_entries(s));
  release_entries(s);
  HT_TRY(s->ctx, ht_rows_make_canonical(s->ctx, s->n, s->row_start, s->csr_columns, s->csr_values, mirror, duplicates));
  return HT_OK;
}

ht_status ht_matrix_from_entries(ht_context *ctx, int64_t n, int64_t entries, int32_t *rows, int32_t *columns, double *values, int mirror,
                                 const char *source, ht_matrix **matrix) {
  sorter s = {.ctx = ctx, .n = n, .count = entries, .rows = rows, .columns = columns, .values = values, .mirror = mirror};
  s.threads = entries > PARALLEL_ENTRIES ? ctx->threads : 1;
  int64_t duplicates = 0;
  *matrix = NULL;
  ht_status status = build(&s, source, &duplicates);
  release_entries(&s);
  if (status != HT_OK) {
    release_csr(&s);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  ht_warn_of_duplicates(ctx, source, duplicates);
  HT_TRY(ctx, ht_matrix_wrap(ctx, n, s.row_start, s.csr_columns, s.csr_values, duplicates, source, matrix));
  /* A mirrored matrix is symmetric by construction: both triangles got the same values in the same order. */
  if (!s.mirror) ht_matrix_measure_symmetry(*matrix);
  return HT_OK;
}
