/* Writing a matrix: what gen and convert share. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_MATRIX_OUT_H
#define HALFTONE_CLI_MATRIX_OUT_H
#include "args.h"

int matrix_out_check(ht_context *ctx, const char *path); /* before the work: 0, or CLI_BAD after the sentence */
/* Write, and say in one line what was written. Returns the exit status. */
int matrix_out_write(ht_context *ctx, const cli_args *args, const ht_matrix *matrix, const char *path);

#endif
