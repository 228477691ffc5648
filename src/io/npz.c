/* SciPy's sparse matrix files. SPDX-License-Identifier: BSD-3-Clause */
#include "io/npz.h"
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "io/npy.h"
#include "io/zip.h"

enum { NAME = 512, FORMAT = 8, MANY_ROWS = 1 << 24 };

/* An array of the archive while it is open. */
typedef struct member {
  char name[NAME];
  unsigned char *owned;
  ht_npy array;
} member;

static ht_status open_member(const ht_zip *z, const char *name, member *m) {
  const unsigned char *bytes;
  size_t size;
  snprintf(m->name, sizeof m->name, "%s: %s", z->name, name);
  HT_TRY(z->ctx, ht_zip_member(z, name, &bytes, &size, &m->owned));
  ht_status status = ht_npy_parse(z->ctx, m->name, bytes, size, &m->array);
  if (status == HT_OK) return HT_OK;
  ht_release(z->ctx, m->owned);
  m->owned = NULL;
  return status;
}

static void close_member(const ht_zip *z, member *m) { ht_release(z->ctx, m->owned); }

static ht_status check_count(const ht_zip *z, const member *m, int64_t expected) {
  HT_CHECK(z->ctx, m->array.dimensions == 1, HT_BAD_FORMAT, "%s: an array of one dimension is expected, and it has %d", m->name,
           m->array.dimensions);
  HT_CHECK(z->ctx, ht_npy_count(&m->array) == expected, HT_BAD_FORMAT, "%s: %lld entries are expected, and the array holds %lld", m->name,
           (long long)expected, (long long)ht_npy_count(&m->array));
  return HT_OK;
}

/* "csr" and its like: bytes in new files, UCS-4 in old ones. */
static ht_status read_format(const ht_zip *z, char format[FORMAT]) {
  member m;
  HT_TRY(z->ctx, open_member(z, "format.npy", &m));
  const ht_npy *a = &m.array;
  int text = (a->kind == 'S' || a->kind == 'U') && a->size < FORMAT && ht_npy_count(a) == 1, step = a->kind == 'U' ? 4 : 1;
  memset(format, 0, FORMAT);
  for (int i = 0; text && i < a->size; i++) {
    unsigned char c = a->data[i * step];
    format[i] = c < 32 || c > 126 ? 0 : (char)c;
  }
  close_member(z, &m);
  HT_CHECK(z->ctx, text, HT_BAD_FORMAT, "%s: format.npy does not hold a format such as 'csr'", z->name);
  HT_CHECK(z->ctx, !strcmp(format, "csr") || !strcmp(format, "csc") || !strcmp(format, "coo"), HT_UNSUPPORTED,
           "%s: the format is '%s'; save the matrix as csr, csc or coo (A.tocsr())", z->name, format);
  return HT_OK;
}

static ht_status read_shape(const ht_zip *z, int64_t *n) {
  member m;
  int64_t shape[2] = {0};
  HT_TRY(z->ctx, open_member(z, "shape.npy", &m));
  ht_status status = check_count(z, &m, 2);
  if (status == HT_OK) status = ht_npy_integers(z->ctx, &m.array, shape);
  close_member(z, &m);
  HT_TRY(z->ctx, status);
  HT_CHECK(z->ctx, shape[0] == shape[1], HT_BAD_MATRIX, "%s: the matrix must be square, and is %lld x %lld", z->name, (long long)shape[0],
           (long long)shape[1]);
  HT_CHECK(z->ctx, shape[0] >= 0, HT_BAD_MATRIX, "%s: the matrix's shape is negative: (%lld, %lld)", z->name, (long long)shape[0],
           (long long)shape[1]);
  HT_CHECK(z->ctx, shape[0] > 0, HT_BAD_MATRIX, "%s: the matrix is empty (0 x 0)", z->name);
  HT_CHECK(z->ctx, shape[0] <= INT32_MAX, HT_UNSUPPORTED, "%s: %lld rows are too many: the limit is 2147483647 (32-bit indices)", z->name,
           (long long)shape[0]);
  *n = shape[0];
  return HT_OK;
}

static ht_status read_values(const ht_zip *z, int64_t *count, double **values) {
  member m;
  HT_TRY(z->ctx, open_member(z, "data.npy", &m));
  *count = ht_npy_count(&m.array);
  ht_status status = check_count(z, &m, *count);
  if (status == HT_OK) status = ht_allocate(z->ctx, *count, sizeof **values, values);
  if (status == HT_OK) status = ht_npy_doubles(z->ctx, &m.array, *values);
  close_member(z, &m);
  return status;
}

static ht_status read_indices(const ht_zip *z, const char *name, int64_t count, int64_t limit, int32_t **indices) {
  member m;
  HT_TRY(z->ctx, open_member(z, name, &m));
  ht_status status = check_count(z, &m, count);
  if (status == HT_OK) status = ht_allocate(z->ctx, count, sizeof **indices, indices);
  if (status == HT_OK) status = ht_npy_indices(z->ctx, &m.array, limit, *indices);
  close_member(z, &m);
  return status;
}

static ht_status read_starts(const ht_zip *z, int64_t n, int64_t count, int64_t **starts) {
  member m;
  HT_TRY(z->ctx, open_member(z, "indptr.npy", &m));
  ht_status status = check_count(z, &m, n + 1);
  if (status == HT_OK) status = ht_allocate(z->ctx, n + 1, sizeof **starts, starts);
  if (status == HT_OK) status = ht_npy_integers(z->ctx, &m.array, *starts);
  close_member(z, &m);
  HT_TRY(z->ctx, status);
  const int64_t *s = *starts;
  int good = s[0] == 0 && s[n] == count;
  for (int64_t i = 0; good && i < n; i++) good = s[i] <= s[i + 1];
  HT_CHECK(z->ctx, good, HT_BAD_FORMAT, "%s: indptr.npy must rise from 0 to the number of entries", z->name);
  return HT_OK;
}

typedef struct arrays {
  int64_t *starts;
  int32_t *rows, *columns;
  double *values;
} arrays;

static void release(ht_context *ctx, arrays *a) {
  ht_release(ctx, a->starts);
  ht_release(ctx, a->rows);
  ht_release(ctx, a->columns);
  ht_release(ctx, a->values);
  *a = (arrays){0};
}

static ht_status read_arrays(const ht_zip *z, const char *format, int64_t n, int64_t *count, arrays *a) {
  HT_TRY(z->ctx, read_values(z, count, &a->values));
  if (!strcmp(format, "coo")) {
    /* Memory is asked for by the number of rows, so the entries must bear it out. */
    HT_CHECK(z->ctx, n <= MANY_ROWS || *count >= n / 8, HT_BAD_MATRIX,
             "%s: %lld rows and only %s: most rows are empty, so the matrix is singular", z->name, (long long)n,
             ht_number_of(*count, "entry").text);
    HT_TRY(z->ctx, read_indices(z, "row.npy", *count, n, &a->rows));
    return read_indices(z, "col.npy", *count, n, &a->columns);
  }
  HT_TRY(z->ctx, read_starts(z, n, *count, &a->starts));
  HT_TRY(z->ctx, read_indices(z, "indices.npy", *count, n, &a->columns));
  if (!strcmp(format, "csr")) return HT_OK;
  /* CSC: what was read are the rows of each column. */
  int32_t *columns;
  HT_TRY(z->ctx, ht_allocate(z->ctx, *count, sizeof *columns, &columns));
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = a->starts[j]; k < a->starts[j + 1]; k++) columns[k] = (int32_t)j;
  a->rows = a->columns;
  a->columns = columns;
  ht_release(z->ctx, a->starts);
  a->starts = NULL;
  return HT_OK;
}

static ht_status read_archive(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, int64_t *n, int64_t *count,
                              arrays *a) {
  ht_zip z;
  char format[FORMAT];
  HT_TRY(ctx, ht_zip_open(ctx, name, bytes, size, &z));
  HT_TRY(ctx, read_format(&z, format));
  HT_TRY(ctx, read_shape(&z, n));
  return read_arrays(&z, format, *n, count, a);
}

ht_status ht_npz_read_matrix(ht_input *input, ht_matrix **matrix) {
  ht_context *ctx = input->ctx;
  unsigned char *bytes;
  size_t size;
  int64_t n = 0, count = 0;
  arrays a = {0};
  *matrix = NULL;
  HT_TRY(ctx, ht_input_all(input, &bytes, &size));
  ht_status status = read_archive(ctx, input->name, bytes, size, &n, &count, &a);
  ht_release(ctx, bytes);
  if (status != HT_OK) {
    release(ctx, &a);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  if (a.starts)
    HT_TRY(ctx, ht_matrix_adopt_rows(ctx, n, a.starts, a.columns, a.values, input->name, matrix));
  else
    HT_TRY(ctx, ht_matrix_from_entries(ctx, n, count, a.rows, a.columns, a.values, 0, input->name, matrix));
  return HT_OK;
}

/* ---- writing ---- */

static ht_status write_array(ht_zip_writer *w, const char *name, const char *type, int64_t count, const void *data, size_t size) {
  char header[HT_NPY_HEADER], shape[32] = "()";
  if (count >= 0) snprintf(shape, sizeof shape, "(%lld,)", (long long)count);
  ht_npy_header(header, type, 0, shape);
  return ht_zip_write(w, name, (ht_zip_part[2]){{header, sizeof header}, {data, size}});
}

/* SciPy wants indptr and indices of one type: int32 when the entries allow it, which costs a copy of indptr. */
static ht_status write_indices(ht_zip_writer *w, const ht_matrix *a) {
  ht_context *ctx = a->ctx;
  int wide = a->nnz > INT32_MAX;
  int64_t longer = wide ? a->nnz : a->n + 1;
  void *copy;
  HT_TRY(ctx, ht_allocate(ctx, longer, wide ? sizeof(int64_t) : sizeof(int32_t), &copy));
  ht_status status;
  if (wide) {
    for (int64_t k = 0; k < a->nnz; k++) ((int64_t *)copy)[k] = a->columns[k];
    status = write_array(w, "indices.npy", "<i8", a->nnz, copy, (size_t)a->nnz * 8);
    if (status == HT_OK) status = write_array(w, "indptr.npy", "<i8", a->n + 1, a->row_start, (size_t)(a->n + 1) * 8);
  } else {
    for (int64_t i = 0; i <= a->n; i++) ((int32_t *)copy)[i] = (int32_t)a->row_start[i];
    status = write_array(w, "indices.npy", "<i4", a->nnz, a->columns, (size_t)a->nnz * 4);
    if (status == HT_OK) status = write_array(w, "indptr.npy", "<i4", a->n + 1, copy, (size_t)(a->n + 1) * 4);
  }
  ht_release(ctx, copy);
  return status;
}

ht_status ht_npz_write_matrix(const ht_matrix *a, ht_output *out) {
  ht_zip_writer w = {.output = out};
  int64_t shape[2] = {a->n, a->n};
  HT_TRY(a->ctx, write_indices(&w, a));
  HT_TRY(a->ctx, write_array(&w, "format.npy", "|S3", -1, "csr", 3));
  HT_TRY(a->ctx, write_array(&w, "shape.npy", "<i8", 2, shape, sizeof shape));
  HT_TRY(a->ctx, write_array(&w, "data.npy", "<f8", a->nnz, a->values, (size_t)a->nnz * 8));
  return ht_zip_finish(&w);
}
