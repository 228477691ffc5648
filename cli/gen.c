/* halftone gen. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include "args.h"
#include "help.h"
#include "matrix_out.h"

static ht_status generate(ht_context *ctx, const cli_args *args, ht_matrix **matrix) {
  size_t count = (size_t)args->pair_count;
  const char **texts = calloc(2 * count + 1, sizeof *texts); /* names, then values */
  if (!texts) return HT_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    texts[i] = args->pairs[i].name;
    texts[count + i] = args->pairs[i].value;
  }
  ht_status status = ht_generate(ctx, args->words[0], args->pair_count, texts, texts + count, matrix);
  free(texts);
  return status;
}

int gen_command(ht_context *ctx, const cli_args *args) {
  ht_matrix *matrix = NULL;
  const char *path = args_value(args, "-o");
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  if (args_value(args, "--list")) {
    if (args->word_count || args->pair_count || path)
      return cli_bad("--list lists the kinds and makes no matrix; leave the rest out, or --list");
    help_generators(stdout);
    return 0;
  }
  if (args->word_count < 1) return cli_bad("gen needs a kind of test matrix; `halftone gen --list` lists them");
  if (!path) return cli_bad("gen needs a file to write; add -o A.mtx");
  if (matrix_out_check(ctx, path)) return CLI_BAD;
  ht_status status = generate(ctx, args, &matrix);
  int result = status == HT_OK ? matrix_out_write(ctx, args, matrix, path) : cli_failed(ctx, status);
  ht_matrix_destroy(matrix);
  return result;
}
