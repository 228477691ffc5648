/* ht_matrix: canonical CSR. SPDX-License-Identifier: BSD-3-Clause */
#include "data/matrix.h"
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/words.h"

#define CALLER "the caller's arrays"
enum { PARALLEL_NONZEROS = 20000 };

static uint64_t next_version(void) {
  static atomic_ullong counter;
  return atomic_fetch_add(&counter, 1) + 1;
}

void ht_warn_of_duplicates(ht_context *ctx, const char *source, int64_t duplicates) {
  if (duplicates == 0) return;
  ht_log(ctx, HT_LOG_WARNING, "%s: %s %s summed", source, ht_number_of(duplicates, "duplicate entry").text,
         duplicates == 1 ? "was" : "were");
}

ht_status ht_matrix_wrap(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, int64_t duplicates,
                         const char *source, ht_matrix **matrix) {
  ht_matrix *a;
  *matrix = NULL;
  ht_status status = ht_allocate_zeroed(ctx, 1, sizeof *a, &a);
  if (status != HT_OK) {
    ht_release(ctx, row_start);
    ht_release(ctx, columns);
    ht_release(ctx, values);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *a = (ht_matrix){
      .ctx = ctx, .n = n, .nnz = row_start[n], .row_start = row_start, .columns = columns, .values = values, .version = next_version()};
  a->asymmetric_row = a->asymmetric_column = -1;
  a->duplicates = duplicates;
  ht_print_words(a->source, sizeof a->source, "%s", source);
  *matrix = a;
  return HT_OK;
}

ht_status ht_matrix_adopt(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                          ht_matrix **matrix) {
  HT_TRY(ctx, ht_matrix_wrap(ctx, n, row_start, columns, values, 0, source, matrix));
  ht_matrix_measure_symmetry(*matrix);
  return HT_OK;
}

ht_status ht_matrix_adopt_rows(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                               ht_matrix **matrix) {
  int64_t duplicates;
  *matrix = NULL;
  ht_status status = ht_rows_make_canonical(ctx, n, row_start, columns, values, 0, &duplicates);
  if (status != HT_OK) {
    ht_release(ctx, row_start);
    ht_release(ctx, columns);
    ht_release(ctx, values);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  ht_warn_of_duplicates(ctx, source, duplicates);
  HT_TRY(ctx, ht_matrix_wrap(ctx, n, row_start, columns, values, duplicates, source, matrix));
  ht_matrix_measure_symmetry(*matrix);
  return HT_OK;
}

/* ---- from the caller's arrays ---- */

/* The first row, in order, in which something is wrong; n when none. `canonical`: columns must ascend. */
static int64_t first_bad_row(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, const double *values,
                             int canonical) {
  int64_t bad = n;
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (row_start[n] > PARALLEL_NONZEROS) reduction(min : bad)
  for (int64_t i = 0; i < n; i++) {
    if (i > bad) continue;
    for (int64_t k = row_start[i]; k < row_start[i + 1]; k++) {
      int in_range = columns[k] >= 0 && columns[k] < n, in_order = !canonical || k == row_start[i] || columns[k - 1] < columns[k];
      if (!in_range || !in_order || !isfinite(values[k])) {
        bad = i;
        break;
      }
    }
  }
  return bad;
}

static ht_status explain_row(ht_context *ctx, int64_t n, int64_t i, const int64_t *row_start, const int32_t *columns,
                             const double *values) {
  for (int64_t k = row_start[i]; k < row_start[i + 1]; k++) {
    HT_CHECK(ctx, columns[k] >= 0 && columns[k] < n, HT_BAD_MATRIX, "row %lld, counted from 0: column %d is not within 0 to %lld",
             (long long)i, columns[k], (long long)n - 1);
    HT_CHECK(ctx, isfinite(values[k]), HT_BAD_MATRIX, "row %lld, column %d, counted from 0: the value %g is not finite", (long long)i,
             columns[k], values[k]);
  }
  HT_FAIL(ctx, HT_BAD_MATRIX, "row %lld, counted from 0: borrowed columns must ascend without repetition; use HT_COPY for other arrays",
          (long long)i);
}

/* Everything that must hold before the arrays are used. */
static ht_status check_csr(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, const double *values,
                           int canonical) {
  HT_CHECK(ctx, n > 0, HT_BAD_MATRIX, "a matrix needs at least one row, and n is %lld", (long long)n);
  HT_CHECK(ctx, n <= INT32_MAX, HT_UNSUPPORTED, "n is %lld; the limit is 2147483647 rows (32-bit indices)", (long long)n);
  HT_CHECK(ctx, row_start && columns && values, HT_BAD_ARGUMENT, "row_start, columns and values must not be NULL");
  HT_CHECK(ctx, row_start[0] == 0, HT_BAD_ARGUMENT, "row_start[0] must be 0, and is %lld", (long long)row_start[0]);
  for (int64_t i = 0; i < n; i++)
    HT_CHECK(ctx, row_start[i] <= row_start[i + 1], HT_BAD_ARGUMENT, "row_start must not fall, and row_start[%lld] is %lld after %lld",
             (long long)i + 1, (long long)row_start[i + 1], (long long)row_start[i]);
  int64_t bad = first_bad_row(ctx, n, row_start, columns, values, canonical);
  return bad < n ? explain_row(ctx, n, bad, row_start, columns, values) : HT_OK;
}

static ht_status copy_csr(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, const double *values,
                          ht_matrix **matrix) {
  int64_t *r = NULL, nnz = row_start[n];
  int32_t *c = NULL;
  double *v = NULL;
  ht_status status = ht_allocate(ctx, n + 1, sizeof *r, &r);
  if (status == HT_OK) status = ht_allocate(ctx, nnz, sizeof *c, &c);
  if (status == HT_OK) status = ht_allocate(ctx, nnz, sizeof *v, &v);
  if (status != HT_OK) {
    ht_release(ctx, r);
    ht_release(ctx, c);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  memcpy(r, row_start, (size_t)(n + 1) * sizeof *r);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (nnz > PARALLEL_NONZEROS)
  for (int64_t k = 0; k < nnz; k++) {
    c[k] = columns[k];
    v[k] = values[k];
  }
  return ht_matrix_adopt_rows(ctx, n, r, c, v, CALLER, matrix);
}

/* Borrowed arrays are never written: the matrix holds them without const for the sake of the owned ones. */
static ht_status borrow_csr(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, const double *values,
                            ht_matrix **matrix) {
  ht_matrix *a;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *a, &a));
  *a = (ht_matrix){
      .ctx = ctx, .n = n, .nnz = row_start[n], .borrowed_pattern = 1, .borrowed_values = 1, .version = next_version(), .source = CALLER};
  memcpy(&a->row_start, &row_start, sizeof row_start);
  memcpy(&a->columns, &columns, sizeof columns);
  memcpy(&a->values, &values, sizeof values);
  ht_matrix_measure_symmetry(a);
  *matrix = a;
  return HT_OK;
}

ht_status ht_matrix_create_csr(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, const double *values,
                               ht_copy_mode mode, ht_matrix **matrix) {
  HT_NEED(NULL, ctx);
  HT_CHECK(ctx, matrix, HT_BAD_ARGUMENT, "the pointer for the matrix is NULL");
  *matrix = NULL;
  HT_TRY(ctx, check_csr(ctx, n, row_start, columns, values, mode == HT_BORROW));
  return mode == HT_BORROW ? borrow_csr(ctx, n, row_start, columns, values, matrix) : copy_csr(ctx, n, row_start, columns, values, matrix);
}

/* A borrowed matrix gets values of its own: the caller's are not ours to write. */
ht_status ht_matrix_set_values(ht_matrix *a, const double *values) {
  HT_NEED(NULL, a);
  ht_context *ctx = a->ctx;
  HT_CHECK(ctx, values, HT_BAD_ARGUMENT, "the new values are NULL");
  int64_t bad = first_bad_row(ctx, a->n, a->row_start, a->columns, values, 0);
  if (bad < a->n) return explain_row(ctx, a->n, bad, a->row_start, a->columns, values);
  double *own = a->values;
  if (a->borrowed_values) HT_TRY(ctx, ht_allocate(ctx, a->nnz, sizeof *own, &own));
  memmove(own, values, (size_t)a->nnz * sizeof *own);
  a->values = own;
  a->borrowed_values = 0;
  a->version = next_version();
  ht_matrix_measure_symmetry(a);
  return HT_OK;
}

void ht_matrix_destroy(ht_matrix *a) {
  if (!a) return;
  if (!a->borrowed_pattern) {
    ht_release(a->ctx, a->row_start);
    ht_release(a->ctx, a->columns);
  }
  if (!a->borrowed_values) ht_release(a->ctx, a->values);
  ht_release(a->ctx, a->diagonal);
  ht_release(a->ctx, a);
}

int64_t ht_matrix_rows(const ht_matrix *a) { return a ? a->n : 0; }
int64_t ht_matrix_nonzeros(const ht_matrix *a) { return a ? a->nnz : 0; }
ht_symmetry ht_matrix_symmetry(const ht_matrix *a) { return a ? a->symmetry : HT_UNSYMMETRIC; }

void ht_matrix_csr(const ht_matrix *a, const int64_t **row_start, const int32_t **columns, const double **values) {
  if (row_start) *row_start = a ? a->row_start : NULL;
  if (columns) *columns = a ? a->columns : NULL;
  if (values) *values = a ? a->values : NULL;
}

int ht_matrix_row_adds_to_zero(const ht_matrix *a, int64_t row) {
  double sum = 0, size = 0;
  for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
    sum += a->values[k];
    size += fabs(a->values[k]);
  }
  return isfinite(size) && fabs(sum) <= (double)(a->row_start[row + 1] - a->row_start[row]) * DBL_EPSILON * size;
}

int ht_matrix_rows_add_to_zero(const ht_matrix *a) {
  if (!a) return 0;
  int64_t i = 0;
  while (i < a->n && ht_matrix_row_adds_to_zero(a, i)) i++;
  return a->n > 0 && i == a->n;
}

ht_status ht_matrix_multiply(const ht_matrix *a, const double *x, double *y) {
  HT_NEED(NULL, a);
  HT_NEED(a->ctx, x);
  HT_NEED(a->ctx, y);
  const ht_backend *cpu;
  HT_TRY(a->ctx, ht_backend_find(a->ctx, "cpu", &cpu));
  ht_csr_view view = ht_matrix_view(a);
  cpu->csr_multiply(a->ctx, &view, x, y);
  return HT_OK;
}
