/* Files the command writes itself: whole or not at all. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_OUTPUT_H
#define HALFTONE_CLI_OUTPUT_H
#include <stdio.h>
#include "cli.h"

/* What the library's writers know. */
#define VECTOR_ENDINGS ".mtx|.mtx.gz|.npy"
#define MATRIX_ENDINGS ".mtx|.mtx.gz|.npz"

/* Could a file be written at `path` ("-" is standard output)? Asked before the work begins, so that no long solve ends
 * with nowhere to put its answer. 0, or CLI_BAD after the sentence. NULL is fine. */
int output_check(ht_context *ctx, const char *path);
/* Does the path end with one of "a|b|c"? 0, or CLI_BAD after the sentence. "-" and NULL are fine. */
int output_check_ending(const char *path, const char *endings);

/* A file of a command: how its sentences name it, and its path, or NULL. */
typedef struct cli_file {
  const char *what, *path;
} cli_file;
/* No two outputs, and no output and input, may be one file: nothing is lost silently. 0, or CLI_BAD after the sentence. */
int output_check_apart(int outputs, const cli_file *output, int inputs, const cli_file *input);

/* A text that is gathered in memory and written at the end. */
typedef struct cli_output {
  FILE *file; /* print to this */
  const char *path;
  char *text;
  size_t size;
} cli_output;
int output_open(cli_output *output, const char *path);
/* Put the file in its place, whole: 0, or CLI_BAD after the sentence. */
int output_close(ht_context *ctx, cli_output *output);

/* Flush standard output: 0, or CLI_BAD after the sentence when not everything could be written. */
int output_flush_standard(void);
/* See to it that descriptors 0 to 2 are taken, so that a file opened later is never mistaken for one of them. */
void output_reserve_standard(void);

#endif
