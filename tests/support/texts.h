/* Matrix files made in memory, and a context with what it logged. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_TEXTS_H
#define HT_TEST_TEXTS_H
#include <stdio.h>
#include <string.h>
#include "io/file.h"

#define SYMMETRIC "%%MatrixMarket matrix coordinate real symmetric\n"
#define GENERAL "%%MatrixMarket matrix coordinate real general\n"

typedef struct {
  int warnings;
  char last[1024];
} warning_log;

static inline void count_warning(void *user, ht_log_level level, const char *message) {
  warning_log *log = user;
  if (level != HT_LOG_WARNING) return;
  log->warnings++;
  snprintf(log->last, sizeof log->last, "%s", message);
}

static inline ht_status read_bytes(ht_context *ctx, const void *bytes, size_t size, ht_matrix **a) {
  ht_input input;
  *a = NULL;
  ht_status status = ht_input_open_memory(ctx, "text", bytes, size, &input);
  if (status != HT_OK) return status;
  status = ht_matrix_read_input(&input, a);
  ht_input_close(&input);
  return status;
}

static inline ht_status read_text(ht_context *ctx, const char *text, ht_matrix **a) { return read_bytes(ctx, text, strlen(text), a); }

static inline ht_status read_vector_bytes(ht_context *ctx, const void *bytes, size_t size, int64_t n, int *columns, double **values) {
  ht_input input;
  *values = NULL;
  ht_status status = ht_input_open_memory(ctx, "text", bytes, size, &input);
  if (status != HT_OK) return status;
  status = ht_vector_read_input(&input, n, columns, values);
  ht_input_close(&input);
  return status;
}

/* The whole of a file, from malloc; a 0 stands behind it. */
static inline char *slurp(const char *path, size_t *size) {
  *size = 0;
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *bytes = malloc(1 << 22);
  *size = fread(bytes, 1, (1 << 22) - 1, f);
  bytes[*size] = 0;
  fclose(f);
  return bytes;
}

#endif
