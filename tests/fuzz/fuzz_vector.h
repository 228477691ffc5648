/* What every block of vectors that a reader returns must be. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_FUZZ_VECTOR_H
#define HT_FUZZ_VECTOR_H
#include "fuzz_matrix.h"

static inline void fuzz_vector(const uint8_t *data, size_t size, int64_t n) {
  ht_context *ctx;
  ht_input input;
  double *values = NULL;
  int columns = 0;
  require(ht_context_create(&ctx) == HT_OK && ht_context_set_threads(ctx, 1) == HT_OK);
  ht_status status = ht_input_open_memory(ctx, "input", data, size, &input);
  if (status == HT_OK) {
    status = ht_vector_read_input(&input, n, &columns, &values);
    ht_input_close(&input);
  }
  require((status == HT_OK) == (values != NULL));
  require(status == HT_OK ? columns > 0 : *ht_context_error(ctx) != 0);
  for (int64_t k = 0; values && k < n * columns; k++) require(isfinite(values[k]));
  ht_vector_free(ctx, values);
  ht_context_destroy(ctx);
}

#endif
