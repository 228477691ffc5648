/* Vectors: words, Matrix Market, .npy. SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/random.h"
#include "io/file.h"
#include "io/mtx.h"
#include "io/mtx_write.h"
#include "io/npy.h"

/* ---- words ---- */

/* 1 and the seed for "random:SEED"; 0 for something else. */
static ht_status parse_random(ht_context *ctx, const char *word, int *is_random, uint64_t *seed) {
  *is_random = !strncmp(word, "random:", 7);
  *seed = 0;
  if (!*is_random) return HT_OK;
  const char *p = word + 7;
  int length = 0;
  for (; isdigit((unsigned char)*p) && length < 18; p++, length++) *seed = 10 * *seed + (uint64_t)(*p - '0');
  HT_CHECK(ctx, *p == 0 && length > 0, HT_BAD_VECTOR, "'%s': the seed must be a whole number of at most 18 digits, as in random:1", word);
  return HT_OK;
}

/* Words that come to mind for random:SEED, and are no file's name. */
static int is_nearly_random(const char *source) { return !strncmp(source, "rand", 4) && access(source, F_OK) != 0; }

/* *found tells whether `source` is a word; if so `values` is filled. */
static ht_status read_word(ht_context *ctx, const char *source, const ht_matrix *matrix, int64_t n, int *found, double *values) {
  int product = !strncmp(source, "A*", 2), is_random;
  const char *word = product ? source + 2 : source;
  uint64_t seed;
  HT_TRY(ctx, parse_random(ctx, word, &is_random, &seed));
  *found = is_random || !strcmp(word, "ones");
  HT_CHECK(ctx, *found || !is_nearly_random(source), HT_BAD_FILE,
           "there is no file '%s'; a random vector is random:SEED with a whole number, as in random:1", source);
  HT_CHECK(ctx, *found || !product, HT_BAD_VECTOR, "'%s': A* is followed by ones or random:SEED", source);
  if (!*found || !values) return HT_OK;
  HT_CHECK(ctx, !product || matrix, HT_BAD_VECTOR, "'%s' needs a matrix, and none is given", source);
  HT_CHECK(ctx, !product || ht_matrix_rows(matrix) == n, HT_BAD_VECTOR, "'%s' has length %lld, and %lld is expected", source,
           (long long)ht_matrix_rows(matrix), (long long)n);
  double *x = values;
  if (product) HT_TRY(ctx, ht_allocate(ctx, n, sizeof *x, &x));
  for (int64_t i = 0; i < n; i++) x[i] = is_random ? ht_random_uniform(seed, (uint64_t)i) : 1;
  if (!product) return HT_OK;
  ht_status status = ht_matrix_multiply(matrix, x, values);
  ht_release(ctx, x);
  HT_TRY(ctx, status);
  for (int64_t i = 0; i < n; i++)
    HT_CHECK(ctx, isfinite(values[i]), HT_BAD_VECTOR, "'%s': entry %lld, counted from 1, overflows; scale the matrix", source,
             (long long)i + 1);
  return HT_OK;
}

/* ---- files ---- */

static ht_status read_npy_bytes(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, int64_t n, int *columns,
                                double **values) {
  ht_npy a;
  HT_TRY(ctx, ht_npy_parse(ctx, name, bytes, size, &a));
  int row = a.dimensions == 2 && a.shape[0] == 1 && n > 1;
  int64_t rows = row ? a.shape[1] : a.shape[0], count = row ? 1 : a.shape[1];
  HT_CHECK(ctx, a.dimensions > 0 && rows == n && count > 0 && count <= INT32_MAX, HT_BAD_VECTOR,
           "%s: a vector of length %lld is expected, and the array is %lld x %lld", name, (long long)n, (long long)a.shape[0],
           (long long)a.shape[1]);
  HT_TRY(ctx, ht_allocate(ctx, n * count, sizeof **values, values));
  *columns = (int)count;
  if (a.fortran || count == 1) return ht_npy_doubles(ctx, &a, *values);
  double *by_row;
  HT_TRY(ctx, ht_allocate(ctx, n * count, sizeof *by_row, &by_row));
  ht_status status = ht_npy_doubles(ctx, &a, by_row);
  for (int64_t i = 0; status == HT_OK && i < n; i++)
    for (int64_t j = 0; j < count; j++) (*values)[j * n + i] = by_row[i * count + j];
  ht_release(ctx, by_row);
  return status;
}

static ht_status read_npy(ht_input *input, int64_t n, int *columns, double **values) {
  unsigned char *bytes;
  size_t size;
  HT_TRY(input->ctx, ht_input_all(input, &bytes, &size));
  ht_status status = read_npy_bytes(input->ctx, input->name, bytes, size, n, columns, values);
  ht_release(input->ctx, bytes);
  return status;
}

ht_status ht_vector_read_input(ht_input *input, int64_t n, int *columns, double **values) {
  *values = NULL;
  *columns = 0;
  int npy = input->head_size >= 6 && !memcmp(input->head, "\x93NUMPY", 6);
  ht_status status = npy ? read_npy(input, n, columns, values) : ht_mtx_read_block(input, n, columns, values);
  if (status == HT_OK) return HT_OK;
  ht_release(input->ctx, *values);
  *values = NULL;
  /* What is a bad matrix for the parsers they share is a bad vector here. */
  if (status == HT_BAD_MATRIX) status = input->ctx->status = HT_BAD_VECTOR;
  return ht_trace(input->ctx, status, __func__, __FILE__, __LINE__);
}

ht_status ht_vector_read_block(ht_context *ctx, const char *source, const ht_matrix *matrix, int64_t n, int *columns, double **values) {
  HT_NEED(NULL, ctx);
  HT_CHECK(ctx, source && columns && values, HT_BAD_ARGUMENT, "source, columns and values must not be NULL");
  *values = NULL;
  *columns = 0;
  HT_CHECK(ctx, n > 0, HT_BAD_ARGUMENT, "the length of a vector must be positive, and is %lld", (long long)n);
  int word;
  HT_TRY(ctx, read_word(ctx, source, matrix, n, &word, NULL));
  if (!word) {
    ht_input input;
    HT_TRY(ctx, ht_input_open(ctx, source, &input));
    ht_status status = ht_vector_read_input(&input, n, columns, values);
    ht_input_close(&input);
    return status;
  }
  double *x;
  HT_TRY(ctx, ht_allocate(ctx, n, sizeof *x, &x));
  ht_status status = read_word(ctx, source, matrix, n, &word, x);
  if (status != HT_OK) {
    ht_release(ctx, x);
    return status;
  }
  *values = x;
  *columns = 1;
  return HT_OK;
}

void ht_vector_free(ht_context *ctx, double *values) {
  if (ctx) ht_release(ctx, values);
}

ht_status ht_vector_read(ht_context *ctx, const char *source, const ht_matrix *matrix, int64_t n, double *values) {
  HT_NEED(NULL, ctx);
  double *block = NULL;
  int columns = 0;
  HT_CHECK(ctx, values, HT_BAD_ARGUMENT, "values must not be NULL");
  HT_TRY(ctx, ht_vector_read_block(ctx, source, matrix, n, &columns, &block));
  if (block && columns == 1) memcpy(values, block, (size_t)n * sizeof *values);
  ht_release(ctx, block);
  HT_CHECK(ctx, columns == 1, HT_BAD_VECTOR, "%s: one vector is expected, and the file holds %d", source, columns);
  return HT_OK;
}

/* ---- writing ---- */

static ht_status write_npy(int64_t n, int columns, const double *values, ht_output *out) {
  char header[HT_NPY_HEADER], shape[64];
  if (columns == 1)
    snprintf(shape, sizeof shape, "(%lld,)", (long long)n);
  else
    snprintf(shape, sizeof shape, "(%lld, %d)", (long long)n, columns);
  ht_npy_header(header, "<f8", columns > 1, shape);
  HT_TRY(out->ctx, ht_output_write(out, header, sizeof header));
  return ht_output_write(out, values, (size_t)n * (size_t)columns * sizeof *values);
}

ht_status ht_vector_write(ht_context *ctx, const char *path, int64_t n, int columns, const double *values) {
  HT_NEED(NULL, ctx);
  HT_CHECK(ctx, path && values && n > 0 && columns > 0, HT_BAD_ARGUMENT, "path and values must not be NULL, n and columns positive");
  ht_file_format format;
  HT_TRY(ctx, ht_file_format_of(ctx, path, &format));
  HT_CHECK(ctx, format != HT_FILE_NPZ, HT_UNSUPPORTED, "%s: vectors are written as .mtx, .mtx.gz or .npy", path);
  if (format != HT_FILE_NPY) /* a text of nan would not be read back */
    for (int64_t k = 0; k < n * columns; k++)
      HT_CHECK(ctx, isfinite(values[k]), HT_BAD_VECTOR, "%s: entry %lld, counted from 1, is %g; only finite values are written", path,
               (long long)k + 1, values[k]);
  ht_output out;
  HT_TRY(ctx, ht_output_open(ctx, path, &out));
  ht_status status =
      format == HT_FILE_NPY ? write_npy(n, columns, values, &out) : ht_mtx_write_block(n, columns, values, format == HT_FILE_MTX_GZ, &out);
  return ht_file_finish(&out, status);
}
