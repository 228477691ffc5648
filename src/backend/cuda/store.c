/* The split storage on the device: made from the CSR, multiplied with, given back. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/store.h"

/* A patch a multiprocessor, as far as its rows are few enough for the persistent engine; else the streaming one. */
void ht_cuda_store_plan(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_store_engine asked, ht_store_plan *plan) {
  static const int64_t ROWS_MOST = 4096, ROW_MOST = 4096, PATCHES_MOST = 160; /* that the engine's sums have room for */
  const ht_cuda *cuda = ht_cuda_of(ctx);
  int64_t patches = cuda->sms < PATCHES_MOST ? cuda->sms : PATCHES_MOST, longest = 0;
  int64_t column_blocks = ht_cuda_padded(a->n, block) / HT_COLUMN_BLOCK, rows = (column_blocks + patches - 1) / patches * HT_COLUMN_BLOCK;
  for (int64_t i = 0; i < a->n; i++)
    if (a->row_start[i + 1] - a->row_start[i] > longest) longest = a->row_start[i + 1] - a->row_start[i];
  int fits = rows <= ROWS_MOST && longest <= ROW_MOST && a->nnz < INT32_MAX;
  int persistent = fits && (asked == HT_STORE_ENGINE_PERSISTENT || asked == HT_STORE_ENGINE_AUTO);
  *plan = persistent ? (ht_store_plan){HT_STORE_ENGINE_PERSISTENT, rows} : (ht_store_plan){HT_STORE_ENGINE_STREAMING, 0};
}

static ht_status place(ht_store *store, int64_t bytes, const void *from, void *to) {
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, bytes, to));
  if (from) HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, bytes, from, *(void **)to));
  store->bytes += bytes;
  return HT_OK;
}

/* All that does not depend on the number of groups. */
static ht_status place_rows(ht_store *store) {
  ht_store_view *v = &store->view;
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->padded, sizeof *store->exponent, &store->exponent));
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->padded, sizeof *store->scaled_diagonal, &store->scaled_diagonal));
  HT_TRY(store->ctx, place(store, (v->slices + 1) * (int64_t)sizeof *store->slice, store->slice, &v->slice));
  HT_TRY(store->ctx, place(store, v->padded * 4, store->order, &v->order));
  HT_TRY(store->ctx, place(store, v->n * 4, store->position, &v->position));
  HT_TRY(store->ctx, place(store, v->padded * 2, NULL, &v->exponent));
  HT_TRY(store->ctx, place(store, v->padded * 4, NULL, &v->diagonal));
  HT_TRY(store->ctx, place(store, v->padded * 4, NULL, &v->diagonal_16));
  HT_TRY(store->ctx, place(store, v->padded * 4, NULL, &v->diagonal_tail));
  HT_TRY(store->ctx, place(store, v->blocks * 4, NULL, &v->error_16));
  HT_TRY(store->ctx, place(store, v->blocks * 4, NULL, &v->error_32));
  if (v->patches) {
    HT_TRY(store->ctx, place(store, (v->patches + 1) * 4, store->patch_slice, &v->patch_slice));
    HT_TRY(store->ctx, place(store, (v->patches + 1) * 4, store->halo_start, &v->halo_start));
    HT_TRY(store->ctx, place(store, store->halo_start[v->patches] * (int64_t)4, store->halo, &v->halo));
    HT_TRY(store->ctx, place(store, v->padded, store->boundary, &v->boundary));
  }
  /* work: not storage */
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, v->padded * 8, &store->diagonal));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, v->padded * 8, &store->x));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, v->padded * 8, &store->y));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, v->blocks, &store->block_level));
  return ht_cuda_allocate(store->cuda, 64, &store->counts);
}

static ht_status create(ht_store *store, const ht_csr_view *a, const int32_t *order) {
  HT_TRY(store->ctx, ht_cuda_store_arrange(store, a, order));
  HT_TRY(store->ctx, place_rows(store));
  HT_TRY(store->ctx, ht_cuda_store_build(store, a, 1));
  store->bytes += store->view.units * (HT_WARP * (4 + 4 + 4 + 8) + (int64_t)sizeof *store->view.info);
  store->info.bytes = store->bytes;
  return HT_OK;
}

ht_status ht_cuda_store_create(ht_context *ctx, const ht_csr_view *a, const ht_store_options *options, ht_store **out) {
  ht_store *store;
  *out = NULL;
  HT_CHECK(ctx, ht_cuda_padded(a->n, options->block) <= INT32_MAX - 65536, HT_UNSUPPORTED,
           "the cuda backend takes up to %d rows, and there are %lld with the padding of blocks of %lld", INT32_MAX - 65536,
           (long long)ht_cuda_padded(a->n, options->block), (long long)options->block);
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *store, &store));
  store->ctx = ctx;
  store->cuda = ht_cuda_of(ctx);
  store->plan = options->plan;
  store->block = options->block;
  store->exactness_flags = options->exactness_flags;
  ht_status status = create(store, a, options->order);
  if (status != HT_OK) {
    ht_cuda_store_release(store);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = store;
  return HT_OK;
}

ht_status ht_cuda_store_set_values(ht_store *store, const ht_csr_view *a) {
  HT_TRY(store->ctx, ht_cuda_store_build(store, a, 0));
  return HT_OK;
}

void ht_cuda_store_info(const ht_store *store, ht_store_info *info) { *info = store->info; }

void ht_cuda_store_multiply(ht_store *store, const uint8_t *block_level, const double *x, double *y) {
  ht_cuda *cuda = store->cuda;
  ht_store_view *v = &store->view;
  int sign = 1;
  const uint8_t *level = block_level ? store->block_level : NULL;
  ht_launch warps = {.grid = (unsigned)(v->slices / 8 + 1 < 1 << 20 ? v->slices / 8 + 1 : 1 << 20), .block = 256};
  if (block_level) ht_cuda_copy(cuda, v->blocks, block_level, store->block_level);
  ht_cuda_launch(cuda, HT_KERNEL_store_gather, ht_cuda_over(v->padded), HT_ARGS(v, &sign, &x, &store->x));
  ht_cuda_launch(cuda, HT_KERNEL_store_multiply, warps, HT_ARGS(v, &level, &store->x, &store->y));
  ht_cuda_launch(cuda, HT_KERNEL_store_scatter, ht_cuda_over(v->padded), HT_ARGS(v, &sign, &store->y, &y));
}

void ht_cuda_store_release(ht_store *store) {
  if (!store) return;
  const ht_store_view *v = &store->view;
  void *host[] = {store->order,       store->position,   store->exponent, store->scaled_diagonal, store->slice,
                  store->patch_slice, store->halo_start, store->halo,     store->boundary};
  const void *device[] = {v->slice,           v->info,          v->index,    v->head,     v->mid,          v->tail,  v->diagonal,
                          v->diagonal_16,     v->diagonal_tail, v->exponent, v->error_16, v->error_32,     v->order, v->position,
                          v->patch_slice,     v->halo_start,    v->halo,     v->boundary, store->diagonal, store->x, store->y,
                          store->block_level, store->counts};
  for (size_t k = 0; k < sizeof host / sizeof *host; k++) ht_release(store->ctx, host[k]);
  for (size_t k = 0; k < sizeof device / sizeof *device; k++) ht_cuda_release(store->cuda, (void *)(uintptr_t)device[k]);
  ht_release(store->ctx, store);
}
