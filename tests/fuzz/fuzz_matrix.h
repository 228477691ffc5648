/* What every matrix that a reader returns must be. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_FUZZ_MATRIX_H
#define HT_FUZZ_MATRIX_H
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "io/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(int condition) {
  if (!condition) abort();
}

static inline void require_canonical(const ht_matrix *a) {
  require(a->n > 0 && a->row_start[0] == 0 && a->row_start[a->n] == a->nnz);
  for (int64_t i = 0; i < a->n; i++) {
    require(a->row_start[i] <= a->row_start[i + 1]);
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      require(a->columns[k] >= 0 && a->columns[k] < a->n && isfinite(a->values[k]));
      require(k == a->row_start[i] || a->columns[k - 1] < a->columns[k]);
    }
  }
}

static inline int fuzz_matrix(const uint8_t *data, size_t size) {
  ht_context *ctx;
  ht_input input;
  ht_matrix *a = NULL;
  require(ht_context_create(&ctx) == HT_OK && ht_context_set_threads(ctx, 1) == HT_OK);
  ht_status status = ht_input_open_memory(ctx, "input", data, size, &input);
  if (status == HT_OK) {
    status = ht_matrix_read_input(&input, &a);
    ht_input_close(&input);
  }
  require((status == HT_OK) == (a != NULL));
  require(status == HT_OK || (*ht_context_error(ctx) && !strchr(ht_context_error(ctx), '\n')));
  if (a) require_canonical(a);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return 0;
}

#endif
