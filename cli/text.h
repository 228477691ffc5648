/* Numbers as people read them, and lines with a label. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_TEXT_H
#define HALFTONE_CLI_TEXT_H
#include <stdint.h>
#include <stdio.h>

/* Each writes into `text` and returns it. */
typedef struct cli_text {
  char text[64];
} cli_text;
cli_text text_count(int64_t count);                        /* 1,234,567; "?" when negative: not known */
cli_text text_number_of(int64_t count, const char *thing); /* 1 iteration, 2 iterations */
cli_text text_every(int64_t count, const char *thing);     /* every iteration, every 2 iterations */
cli_text text_bytes(double bytes);                         /* 12.3 MB */
cli_text text_seconds(double seconds);                     /* 1.23 ms */
cli_text text_residual(double residual);                   /* 9.87e-11 */
cli_text text_share(double share);                         /* 12.3 % */

/* `label` in a column of its own; a NULL label continues the one above. */
void line(FILE *file, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
