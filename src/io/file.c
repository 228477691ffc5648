/* Matrices from and to files. SPDX-License-Identifier: BSD-3-Clause */
#include "io/file.h"
#include <string.h>
#include "io/mtx.h"
#include "io/mtx_write.h"
#include "io/npz.h"

ht_status ht_file_format_of(ht_context *ctx, const char *path, ht_file_format *format) {
  static const struct {
    const char *ending;
    ht_file_format format;
  } endings[] = {{".mtx", HT_FILE_MTX}, {".mtx.gz", HT_FILE_MTX_GZ}, {".npz", HT_FILE_NPZ}, {".npy", HT_FILE_NPY}};
  *format = HT_FILE_MTX;
  /* Pipes and devices have no ending. */
  if (!strcmp(path, "-") || !strncmp(path, "/dev/", 5)) return HT_OK;
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t ending = strlen(endings[i].ending);
    if (length < ending || strcmp(path + length - ending, endings[i].ending) != 0) continue;
    *format = endings[i].format;
    return HT_OK;
  }
  HT_FAIL(ctx, HT_UNSUPPORTED, "%s: the format is told from the ending, which must be .mtx, .mtx.gz, .npz (matrices) or .npy (vectors)",
          path);
}

ht_status ht_file_finish(ht_output *out, ht_status status) {
  if (status == HT_OK) return ht_output_commit(out);
  ht_output_abandon(out);
  return ht_trace(out->ctx, status, __func__, __FILE__, __LINE__);
}

ht_status ht_matrix_read_input(ht_input *input, ht_matrix **matrix) {
  *matrix = NULL;
  int zip = input->head_size >= 4 && !memcmp(input->head, "PK", 2);
  return zip ? ht_npz_read_matrix(input, matrix) : ht_mtx_read_matrix(input, matrix);
}

ht_status ht_matrix_read(ht_context *ctx, const char *path, ht_matrix **matrix) {
  HT_NEED(NULL, ctx);
  HT_CHECK(ctx, path && matrix, HT_BAD_ARGUMENT, "path and matrix must not be NULL");
  *matrix = NULL;
  ht_input input;
  HT_TRY(ctx, ht_input_open(ctx, path, &input));
  ht_status status = ht_matrix_read_input(&input, matrix);
  ht_input_close(&input);
  HT_TRY(ctx, status);
  return HT_OK;
}

ht_status ht_matrix_write(const ht_matrix *a, const char *path) {
  HT_NEED(NULL, a);
  ht_context *ctx = a->ctx;
  HT_CHECK(ctx, path, HT_BAD_ARGUMENT, "path must not be NULL");
  ht_file_format format;
  HT_TRY(ctx, ht_file_format_of(ctx, path, &format));
  HT_CHECK(ctx, format != HT_FILE_NPY, HT_UNSUPPORTED, "%s: matrices are written as .mtx, .mtx.gz or .npz", path);
  ht_output out;
  HT_TRY(ctx, ht_output_open(ctx, path, &out));
  ht_status status = format == HT_FILE_NPZ ? ht_npz_write_matrix(a, &out) : ht_mtx_write_matrix(a, format == HT_FILE_MTX_GZ, &out);
  return ht_file_finish(&out, status);
}
