/* halftone convert. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "args.h"
#include "matrix_out.h"
#include "output.h"

int convert_command(ht_context *ctx, const cli_args *args) {
  ht_matrix *matrix = NULL;
  const char *path = args_value(args, "-o");
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  if (args->word_count < 1 || !path)
    return cli_bad("convert needs a file to read and one to write; the form is: halftone convert %s", args->command->synopsis);
  if (matrix_out_check(ctx, path)) return CLI_BAD;
  if (output_check_apart(1, &(cli_file){"-o", path}, 1, &(cli_file){"the matrix", args->words[0]})) return CLI_BAD;
  ht_status status = ht_matrix_read(ctx, args->words[0], &matrix);
  int result = status == HT_OK ? matrix_out_write(ctx, args, matrix, path) : cli_failed(ctx, status);
  ht_matrix_destroy(matrix);
  return result;
}
