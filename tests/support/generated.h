/* Test problems from one line of text. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_GENERATED_H
#define HT_TEST_GENERATED_H
#include <stdio.h>
#include <string.h>
#include "halftone/generate.h"

/* "stencil2d size=7 points=9". A word without '=' is a parameter without a value, and is refused as one. */
static inline ht_status generate_line(ht_context *ctx, const char *line, ht_matrix **matrix) {
  enum { MOST = 20 };
  char text[256], *rest;
  const char *names[MOST], *values[MOST];
  int count = 0;
  snprintf(text, sizeof text, "%s", line);
  const char *kind = strtok_r(text, " ", &rest);
  for (char *word; count < MOST && (word = strtok_r(NULL, " ", &rest)); count++) {
    char *equals = strchr(word, '=');
    if (equals) *equals = 0;
    names[count] = word;
    values[count] = equals ? equals + 1 : "";
  }
  return ht_generate(ctx, kind ? kind : "", count, names, values, matrix);
}

#endif
