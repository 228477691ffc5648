/* Placing host arrays. SPDX-License-Identifier: BSD-3-Clause */
#include "op/placed.h"

ht_status ht_place(ht_context *ctx, const ht_backend *backend, int64_t bytes, const void *host, ht_placed *placed) {
  placed->memory = host;
  if (backend->reaches(ctx, host)) return HT_OK;
  if (!placed->own) HT_TRY(ctx, backend->memory_create(ctx, bytes, &placed->own));
  placed->memory = placed->own;
  HT_TRY(ctx, backend->upload(ctx, bytes, host, placed->own));
  return HT_OK;
}

void ht_placed_release(ht_context *ctx, const ht_backend *backend, ht_placed *placed) {
  backend->memory_release(ctx, placed->own);
  *placed = (ht_placed){NULL, NULL};
}

ht_status ht_csr_place(ht_context *ctx, const ht_backend *backend, const ht_csr_view *host, ht_placed_csr *placed) {
  HT_TRY(ctx, ht_place(ctx, backend, (host->n + 1) * (int64_t)sizeof(int64_t), host->row_start, &placed->row_start));
  HT_TRY(ctx, ht_place(ctx, backend, host->nnz * (int64_t)sizeof(int32_t), host->columns, &placed->columns));
  HT_TRY(ctx, ht_place(ctx, backend, host->nnz * (int64_t)sizeof(double), host->values, &placed->values));
  placed->view = (ht_csr_view){host->n, host->nnz, placed->row_start.memory, placed->columns.memory, placed->values.memory};
  return HT_OK;
}

void ht_placed_csr_release(ht_context *ctx, const ht_backend *backend, ht_placed_csr *placed) {
  ht_placed_release(ctx, backend, &placed->row_start);
  ht_placed_release(ctx, backend, &placed->columns);
  ht_placed_release(ctx, backend, &placed->values);
}
