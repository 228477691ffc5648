/* Matrix Market to matrices and blocks of vectors. SPDX-License-Identifier: BSD-3-Clause */
#include "io/mtx.h"
#include <math.h>
#include <string.h>
#include "base/number.h"

enum { MANY_ROWS = 1 << 24, PARALLEL_ENTRIES = 20000 };

/* Row i, column j of an array file's values, which stand column by column; of a symmetric one the lower triangle stands. */
static inline double array_value(const ht_mtx_header *h, const double *values, int64_t i, int64_t j) {
  int64_t n = h->rows;
  if (!h->symmetric) return values[j * n + i];
  int64_t row = i > j ? i : j, column = i > j ? j : i;
  return values[column * n - column * (column - 1) / 2 + row - column];
}

/* Zeros of an array are no entries: an array has no pattern. Releases `values`. */
static ht_status from_array(ht_context *ctx, const ht_mtx_header *h, double *values, const char *source, ht_matrix **matrix) {
  int64_t n = h->rows, total = 0, *row_start = NULL;
  int32_t *columns = NULL;
  double *nonzeros = NULL;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n + 1, sizeof *row_start, &row_start), fail);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (h->entries > PARALLEL_ENTRIES)
  for (int64_t i = 0; i < n; i++) {
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) count += array_value(h, values, i, j) != 0;
    row_start[i + 1] = count;
  }
  row_start[0] = 0;
  for (int64_t i = 0; i < n; i++) row_start[i + 1] = total += row_start[i + 1];
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, total, sizeof *columns, &columns), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, total, sizeof *nonzeros, &nonzeros), fail);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (h->entries > PARALLEL_ENTRIES)
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0, k = row_start[i]; j < n; j++) {
      double v = array_value(h, values, i, j);
      if (v == 0) continue;
      columns[k] = (int32_t)j;
      nonzeros[k++] = v;
    }
  ht_release(ctx, values);
  return ht_matrix_adopt(ctx, n, row_start, columns, nonzeros, source, matrix);
fail:
  ht_release(ctx, row_start);
  ht_release(ctx, columns);
  ht_release(ctx, values);
  return status;
}

static ht_status check_matrix(ht_context *ctx, const char *name, const ht_mtx_header *h) {
  long long line = h->size_line, rows = h->rows, columns = h->columns;
  HT_CHECK(ctx, h->rows == h->columns, HT_BAD_MATRIX, "%s:%lld: the matrix must be square, and is %lld x %lld", name, line, rows, columns);
  HT_CHECK(ctx, h->rows > 0, HT_BAD_MATRIX, "%s:%lld: the matrix is empty (0 x 0)", name, line);
  /* Rows cost memory whether or not entries stand for them; so many empty ones make it singular. */
  HT_CHECK(ctx, h->rows <= MANY_ROWS || h->entries >= h->rows / 8, HT_BAD_MATRIX,
           "%s:%lld: %lld rows and only %s declared: most rows are empty, so the matrix is singular", name, line, rows,
           ht_number_of(h->entries, "entry").text);
  return HT_OK;
}

ht_status ht_mtx_read_matrix(ht_input *input, ht_matrix **matrix) {
  ht_context *ctx = input->ctx;
  ht_text text;
  ht_mtx_header header;
  ht_mtx_entries entries = {0};
  *matrix = NULL;
  HT_TRY(ctx, ht_text_open(input, &text));
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_mtx_read_header(&text, 0, &header), done);
  HT_TRY_GOTO(ctx, status, check_matrix(ctx, input->name, &header), done);
  HT_TRY_GOTO(ctx, status, ht_mtx_read_entries(&text, &header, &entries), done);
done:
  ht_text_close(&text);
  if (status != HT_OK) return status;
  if (!header.coordinate)
    HT_TRY(ctx, from_array(ctx, &header, entries.values, input->name, matrix));
  else
    HT_TRY(ctx, ht_matrix_from_entries(ctx, header.rows, header.entries, entries.rows, entries.columns, entries.values, header.symmetric,
                                       input->name, matrix));
  return HT_OK;
}

/* ---- vectors ---- */

static ht_status scatter(ht_context *ctx, const char *name, const ht_mtx_header *h, const ht_mtx_entries *e, int64_t n, double *block) {
  int row_vector = h->rows == 1 && n > 1;
  memset(block, 0, (size_t)h->rows * (size_t)h->columns * sizeof *block);
  int64_t summed = 0;
  for (int64_t k = 0; k < h->entries; k++) {
    int64_t at = row_vector ? e->columns[k] : e->columns[k] * h->rows + e->rows[k];
    summed += block[at] != 0;
    block[at] += e->values[k];
    HT_CHECK(ctx, isfinite(block[at]), HT_BAD_VECTOR, "%s: the sum of the duplicates at row %d, column %d, counted from 1, overflows", name,
             e->rows[k] + 1, e->columns[k] + 1);
  }
  ht_warn_of_duplicates(ctx, name, summed);
  return HT_OK;
}

/* A vector may lie along a row; a block of several must stand in columns. */
static ht_status check_block(ht_context *ctx, const char *name, const ht_mtx_header *h, int64_t n) {
  HT_CHECK(ctx, !h->symmetric || h->rows == 1, HT_BAD_VECTOR, "%s:1: a vector's file must say general, not symmetric", name);
  HT_CHECK(ctx, h->rows == n || (h->rows == 1 && h->columns == n), HT_BAD_VECTOR,
           "%s:%lld: a vector of length %lld is expected, and the file holds %lld x %lld", name, (long long)h->size_line, (long long)n,
           (long long)h->rows, (long long)h->columns);
  HT_CHECK(ctx, h->columns > 0, HT_BAD_VECTOR, "%s:%lld: the block of vectors is empty", name, (long long)h->size_line);
  /* Memory is asked for by the size, so the entries must bear it out. */
  HT_CHECK(ctx, h->rows == 1 || h->columns == 1 || h->columns <= h->entries, HT_BAD_VECTOR,
           "%s:%lld: %lld vectors and only %s declared: most vectors are empty", name, (long long)h->size_line, (long long)h->columns,
           ht_number_of(h->entries, "entry").text);
  return HT_OK;
}

static ht_status read_block(ht_text *text, int64_t n, ht_mtx_header *header, ht_mtx_entries *entries, double **values) {
  ht_context *ctx = text->input->ctx;
  HT_TRY(ctx, ht_mtx_read_header(text, 1, header));
  HT_TRY(ctx, check_block(ctx, text->input->name, header, n));
  HT_TRY(ctx, ht_mtx_read_entries(text, header, entries));
  if (!header->coordinate) {
    *values = entries->values;
    entries->values = NULL;
    return HT_OK;
  }
  HT_TRY(ctx, ht_allocate(ctx, header->rows * header->columns, sizeof **values, values));
  return scatter(ctx, text->input->name, header, entries, n, *values);
}

ht_status ht_mtx_read_block(ht_input *input, int64_t n, int *columns, double **values) {
  ht_context *ctx = input->ctx;
  ht_text text;
  ht_mtx_header header;
  ht_mtx_entries entries = {0};
  *values = NULL;
  HT_TRY(ctx, ht_text_open(input, &text));
  ht_status status = read_block(&text, n, &header, &entries, values);
  ht_mtx_release_entries(ctx, &entries);
  ht_text_close(&text);
  if (status != HT_OK) {
    ht_release(ctx, *values);
    *values = NULL;
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *columns = header.rows == n ? (int)header.columns : 1;
  return HT_OK;
}
