/* A file read whole. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_INPUT_H
#define HALFTONE_CLI_INPUT_H
#include <stdint.h>

/* In memory, to be freed; NULL after the sentence. "-" is standard input. what: what the file is to the user. */
void *input_read(const char *what, const char *path, int64_t *size);

#endif
