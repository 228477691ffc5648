/* Files the command writes itself: whole or not at all. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_OUTPUT_H
#define HALFTONE_CLI_OUTPUT_H
#include <stdio.h>
#include "cli.h"

/* Could a file be written at `path` ("-" is standard output)? Asked before the work begins, so that no long solve ends
 * with nowhere to put its answer. 0, or CLI_BAD after the sentence. NULL is fine. */
int output_check(const char *path);

/* What the library's writers know. */
#define VECTOR_ENDINGS ".mtx|.mtx.gz|.npy"
#define MATRIX_ENDINGS ".mtx|.mtx.gz|.npz"
/* Does the path end with one of "a|b|c"? 0, or CLI_BAD after the sentence. "-" and NULL are fine. */
int output_check_ending(const char *path, const char *endings);

typedef struct cli_output {
  FILE *file;
  const char *path;
  char *temporary; /* renamed to path at the end; NULL where the path is written directly */
} cli_output;
int output_open(cli_output *output, const char *path);
/* Flush, and put the file in its place; on any error so far nothing is left behind and CLI_BAD is returned. */
int output_close(cli_output *output);

/* Flush standard output: 0, or CLI_BAD after the sentence when not everything could be written. */
int output_flush_standard(void);
/* See to it that descriptors 0 to 2 are taken, so that a file opened later is never mistaken for one of them. */
void output_reserve_standard(void);

#endif
