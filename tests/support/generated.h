/* Test problems from one line of text. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_GENERATED_H
#define HT_TEST_GENERATED_H
#include <stdio.h>
#include <string.h>
#include "halftone/generate.h"

/* "stencil2d size=7 points=9" */
static inline ht_status generate_line(ht_context *ctx, const char *line, ht_matrix **matrix) {
  char text[256];
  const char *names[20], *values[20];
  int count = 0;
  snprintf(text, sizeof text, "%s", line);
  for (char *word = strchr(text, ' '); word && count < 20; count++) {
    *word++ = 0;
    names[count] = word;
    char *equals = strchr(word, '=');
    if (!equals) return HT_INTERNAL;
    *equals = 0;
    values[count] = equals + 1;
    word = strchr(equals + 1, ' ');
  }
  return ht_generate(ctx, text, count, names, values, matrix);
}

#endif
