/* Files by their format. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_FILE_H
#define HT_IO_FILE_H
#include "data/matrix.h"
#include "io/input.h"
#include "io/output.h"

typedef enum ht_file_format { HT_FILE_MTX, HT_FILE_MTX_GZ, HT_FILE_NPZ, HT_FILE_NPY } ht_file_format;

/* By the path's ending; "-" is .mtx. HT_UNSUPPORTED for other endings. */
ht_status ht_file_format_of(ht_context *ctx, const char *path, ht_file_format *format);
/* Commit when `status` is HT_OK, else abandon; returns the first error. */
ht_status ht_file_finish(ht_output *output, ht_status status);

/* From an open input: what ht_matrix_read and ht_vector_read_block do with a file. */
ht_status ht_matrix_read_input(ht_input *input, ht_matrix **matrix);
ht_status ht_vector_read_input(ht_input *input, int64_t n, int *columns, double **values);

#endif
