/* Host arrays where a backend can read them: as they are when it reaches them, else copied into its memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_OP_PLACED_H
#define HT_OP_PLACED_H
#include "backend/backend.h"

typedef struct ht_placed {
  const void *memory; /* what the backend reads */
  void *own;          /* the copy, or NULL */
} ht_placed;

/* Place `bytes` bytes, or renew them in a copy of as many that is there already. */
ht_status ht_place(ht_context *ctx, const ht_backend *backend, int64_t bytes, const void *host, ht_placed *placed);
void ht_placed_release(ht_context *ctx, const ht_backend *backend, ht_placed *placed);

typedef struct ht_placed_csr {
  ht_csr_view view;
  ht_placed row_start, columns, values;
} ht_placed_csr;

/* Place or renew. `placed` starts zeroed; it is released by the caller on error too. */
ht_status ht_csr_place(ht_context *ctx, const ht_backend *backend, const ht_csr_view *host, ht_placed_csr *placed);
void ht_placed_csr_release(ht_context *ctx, const ht_backend *backend, ht_placed_csr *placed);

#endif
