/* Writing a matrix and saying so. SPDX-License-Identifier: BSD-3-Clause */
#include "matrix_out.h"
#include <string.h>
#include "output.h"
#include "text.h"

int matrix_out_check(ht_context *ctx, const char *path) {
  return output_check(ctx, path) || output_check_ending(path, MATRIX_ENDINGS) ? CLI_BAD : 0;
}

int matrix_out_write(ht_context *ctx, const cli_args *args, const ht_matrix *matrix, const char *path) {
  ht_status status = ht_matrix_write(matrix, path);
  if (status != HT_OK) return cli_failed(ctx, status);
  if (args_value(args, "--quiet") || !strcmp(path, "-")) return 0;
  printf("%s: %s, %s, %s\n", path, text_number_of(ht_matrix_rows(matrix), "row").text,
         text_number_of(ht_matrix_nonzeros(matrix), "nonzero").text,
         ht_matrix_symmetry(matrix) == HT_SYMMETRIC ? "symmetric" : "not symmetric to the last bit");
  return 0;
}
