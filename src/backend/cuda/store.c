/* The split storage on the device: made from the CSR, multiplied with, given back. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/store.h"
#include "base/kept.h"

enum { PARALLEL_FROM = 20000 }; /* rows */

static int64_t longest_row(const ht_context *ctx, const ht_csr_view *a) {
  int64_t longest = 0;
#pragma omp parallel for schedule(static) num_threads(ctx->threads) reduction(max : longest) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++)
    if (a->row_start[i + 1] - a->row_start[i] > longest) longest = a->row_start[i + 1] - a->row_start[i];
  return longest;
}

/* A patch a multiprocessor, as far as its rows are few enough for the persistent engine: eight for each of its threads, and up to there it
 * is the faster one (docs/decisions/0004-cuda-backend.md, "Which engine"). Else the streaming engine. */
void ht_cuda_store_plan(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_store_engine asked, ht_store_plan *plan) {
  static const int64_t ROWS_MOST = 4096, ROW_MOST = 4096;
  const ht_cuda *cuda = ht_cuda_of(ctx);
  int64_t patches = cuda->sms < HT_PATCHES_MOST ? cuda->sms : HT_PATCHES_MOST;
  int64_t column_blocks = ht_cuda_padded(a->n, block) / HT_COLUMN_BLOCK, rows = (column_blocks + patches - 1) / patches * HT_COLUMN_BLOCK;
  int fits = rows <= ROWS_MOST && longest_row(ctx, a) <= ROW_MOST && a->nnz < INT32_MAX;
  int persistent = fits && (asked == HT_STORE_ENGINE_PERSISTENT || asked == HT_STORE_ENGINE_AUTO);
  *plan = persistent ? (ht_store_plan){HT_STORE_ENGINE_PERSISTENT, rows} : (ht_store_plan){HT_STORE_ENGINE_STREAMING, 0};
}

/* Numbers of rows in the width that they have on the device: 16 bits where those reach; -1 becomes the largest. */
static ht_status send_rows(ht_store *store, int64_t count, const int32_t *from, const int32_t *to, const uint16_t *to_16) {
  uint16_t *narrow;
  if (!to_16) return ht_cuda_send(store->cuda, count * 4, from, (void *)(uintptr_t)to);
  HT_TRY(store->ctx, ht_allocate(store->ctx, count, sizeof *narrow, &narrow));
  for (int64_t i = 0; i < count; i++) narrow[i] = (uint16_t)from[i];
  ht_status status = ht_cuda_send(store->cuda, count * 2, narrow, (void *)(uintptr_t)to_16);
  ht_release(store->ctx, narrow);
  return status;
}

/* All that does not depend on the number of groups, in one allocation, which v->slice releases. */
static ht_status place_rows(ht_store *store) {
  ht_store_view *v = &store->view;
  const ht_arrangement *rows = store->rows;
  int64_t patches = v->patches ? v->patches + 1 : 0, halo = v->patches ? rows->halo_start[v->patches] : 0;
  int narrow = v->padded < HT_NO_ROW_16, narrow_halo = narrow && rows->patch_slices_most <= HT_NARROW_SLICES_MOST;
  const ht_cuda_part parts[] = {{(v->slices + 1) * (int64_t)sizeof *rows->slice, &v->slice},
                                {patches * 4, &v->patch_slice},
                                {patches * 4, &v->halo_start},
                                {v->patches ? v->padded * 2 : 0, &v->scale},
                                {narrow ? 0 : v->padded * 4, &v->order},
                                {narrow ? v->padded * 2 : 0, &v->order_16},
                                {narrow_halo ? 0 : halo * 4, &v->halo},
                                {narrow_halo ? halo * 2 : 0, &v->halo_16},
                                {v->patches ? 0 : v->padded * 2, &v->exponent},
                                {v->padded * 4, &v->diagonal},
                                {v->padded * 4, &v->diagonal_tail},
                                {v->padded * 2, &v->diagonal_mid},
                                {v->patches ? 0 : v->padded * 4, &v->diagonal_16},
                                {v->patches ? v->padded * 2 : 0, &v->rest_16},
                                {v->blocks * 4, &v->error_16},
                                {v->blocks * 4, &v->error_32},
                                /* work: not storage */
                                {v->padded * 8, &store->diagonal},
                                {v->padded * 8, &store->x},
                                {v->padded * 8, &store->y},
                                {v->blocks, &store->block_level},
                                {HT_COUNTS * 8, &store->counts}};
  const void *const from[] = {rows->slice, rows->patch_slice, rows->halo_start, rows->boundary};
  enum { PARTS = sizeof parts / sizeof *parts, SENT = sizeof from / sizeof *from, WORK = 5 };
  HT_TRY(store->ctx, ht_cuda_allocate_parts(store->cuda, PARTS, parts));
  ht_lap(store->ctx, HT_PHASE_allocating);
  for (int k = 0; k < PARTS - WORK; k++) store->bytes += parts[k].bytes;
  for (int k = 0; k < SENT; k++) /* the slices once more when their units are known */
    HT_TRY(store->ctx, ht_cuda_send(store->cuda, parts[k].bytes, from[k], *(void **)parts[k].to));
  HT_TRY(store->ctx, send_rows(store, v->padded, rows->order, v->order, v->order_16));
  HT_TRY(store->ctx, send_rows(store, halo, rows->halo, v->halo, v->halo_16));
  return HT_OK;
}

/* ---- patterns met before ---- */

static ht_kept_key key_of(const ht_store_options *o) {
  return (ht_kept_key){*o->pattern, HT_KEPT_ARRANGEMENT, {o->plan.engine, o->plan.patch_rows, o->block, o->node, o->ordering}};
}

static ht_arrangement *find_rows(ht_context *ctx, const ht_store_options *options) {
  ht_kept_key key;
  if (!options->pattern) return NULL;
  key = key_of(options);
  return ht_kept_find(ctx, &key);
}

const char *ht_cuda_store_met(ht_context *ctx, const ht_store_options *options) {
  const ht_arrangement *rows = find_rows(ctx, options);
  return rows ? rows->ordering : NULL;
}

static void take_rows(ht_store *store, ht_arrangement *rows) {
  rows->users++;
  store->rows = rows;
  store->view = rows->view;
  store->plan = rows->plan;
  store->met = 1;
}

static ht_status arrange(ht_store *store, const ht_csr_view *a, const ht_store_options *options) {
  ht_arrangement *rows = find_rows(store->ctx, options);
  if (rows) {
    take_rows(store, rows);
    return HT_OK;
  }
  HT_TRY(store->ctx, ht_allocate_zeroed(store->ctx, 1, sizeof *store->rows, &store->rows));
  store->rows->users = 1;
  store->rows->ordering = options->ordering_name;
  HT_TRY(store->ctx, ht_cuda_store_arrange(store, a, options->order));
  return HT_OK;
}

/* Counts are kept; pointers are this store's own. */
static void keep_rows(ht_store *store, const ht_store_options *options) {
  const ht_store_view *v = &store->view;
  ht_arrangement *rows = store->rows;
  if (store->met || !options->pattern) return;
  rows->plan = store->plan;
  rows->view = (ht_store_view){.n = v->n,
                               .padded = v->padded,
                               .slices = v->slices,
                               .units = v->units,
                               .index_units = v->index_units,
                               .offsets = v->offsets,
                               .ragged = v->ragged,
                               .ragged_entries = v->ragged_entries,
                               .blocks = v->blocks,
                               .node = v->node,
                               .patches = v->patches,
                               .patch_rows = v->patch_rows};
  rows->users++;
  int64_t halo = v->patches ? rows->halo_start[v->patches] : 0;
  int64_t bytes = v->padded * (4 + 8 + 2) + v->n * 4 + v->slices * (int64_t)sizeof *rows->slice + halo * 4;
  ht_kept_key key = key_of(options);
  ht_kept_add(store->ctx, &key, bytes, rows, ht_cuda_arrangement_release);
}

/* ---- life ---- */

static ht_status create(ht_store *store, const ht_csr_view *a, const ht_store_options *options) {
  HT_TRY(store->ctx, arrange(store, a, options));
  ht_lap(store->ctx, HT_PHASE_arranging);
  HT_TRY(store->ctx, place_rows(store));
  HT_TRY(store->ctx, ht_cuda_store_build(store, a, options->diagonal));
  keep_rows(store, options);
  const ht_store_view *v = &store->view;
  store->bytes += ht_cuda_store_entries(v) * 8 + ht_cuda_store_bytes_beside(v) + v->offsets * 4;
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
  store->view.node = options->node;
  store->exactness_flags = options->exactness_flags;
  ht_status status = create(store, a, options);
  if (status != HT_OK) {
    ht_cuda_store_release(store);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = store;
  return HT_OK;
}

ht_status ht_cuda_store_set_values(ht_store *store, const ht_csr_view *a, const double *diagonal) {
  HT_TRY(store->ctx, ht_cuda_store_rebuild(store, a, diagonal));
  return HT_OK;
}

ht_status ht_cuda_store_fetch_exponents(ht_store *store) {
  int64_t padded = store->view.padded, patches = store->view.patches;
  if (store->exponents_known) return HT_OK;
  if (!store->exponent) HT_TRY(store->ctx, ht_allocate(store->ctx, padded, sizeof *store->exponent, &store->exponent));
  HT_TRY(store->ctx, ht_cuda_copy(store->cuda, padded * 2, patches ? store->view.scale : store->view.exponent, store->exponent));
  for (int64_t i = 0; patches && i < padded; i++) store->exponent[i] = (int16_t)(store->exponent[i] >> 1);
  store->exponents_known = 1;
  return HT_OK;
}

void ht_cuda_store_info(const ht_store *store, ht_store_info *info) { *info = store->info; }

static ht_launch warp_a_slice(const ht_store *store) {
  int64_t blocks = store->view.slices / 8 + 1;
  return (ht_launch){.grid = (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20), .block = 256};
}

void ht_cuda_store_multiply(ht_store *store, const uint8_t *block_level, const double *x, double *y) {
  ht_cuda *cuda = store->cuda;
  ht_store_view *v = &store->view;
  int sign = 1;
  const uint8_t *level = block_level ? store->block_level : NULL;
  if (block_level) ht_cuda_copy(cuda, v->blocks, block_level, store->block_level);
  ht_cuda_launch(cuda, HT_KERNEL_store_gather, ht_cuda_over(v->padded), HT_ARGS(v, &sign, &x, &store->x));
  ht_cuda_launch(cuda, HT_KERNEL_store_multiply, warp_a_slice(store), HT_ARGS(v, &level, &store->x, &store->y));
  ht_cuda_launch(cuda, HT_KERNEL_store_scatter, ht_cuda_over(v->padded), HT_ARGS(v, &sign, &store->y, &y));
}

void ht_cuda_store_residual(ht_store *store, const double *x, const double *b, double *r) {
  ht_store_view *v = &store->view;
  int sign = 1;
  ht_cuda_launch(store->cuda, HT_KERNEL_store_gather, ht_cuda_over(v->padded), HT_ARGS(v, &sign, &x, &store->x));
  ht_cuda_launch(store->cuda, HT_KERNEL_store_residual, warp_a_slice(store), HT_ARGS(v, &store->x, &b, &r));
}

void ht_cuda_store_release(ht_store *store) {
  if (!store) return;
  const ht_store_view *v = &store->view;
  ht_cuda_arrangement_release(store->ctx, store->rows);
  ht_release(store->ctx, store->exponent);
  ht_cuda_release(store->cuda, (void *)(uintptr_t)v->slice); /* and what lies behind it */
  ht_cuda_release(store->cuda, v->info);
  ht_release(store->ctx, store);
}
