/* Values into the store. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/cuda/store_send.h"
#include "base/kept.h"

enum { SLICES_A_BLOCK = 8 };

static ht_launch warp_a_slice(const ht_packet *p) {
  return (ht_launch){.grid = (unsigned)((p->slices + SLICES_A_BLOCK - 1) / SLICES_A_BLOCK), .block = 32 * SLICES_A_BLOCK};
}

/* The scales, from the diagonal in store->x. */
static ht_status scale(ht_store *store) {
  ht_store_view *v = &store->view;
  int16_t *scale = (int16_t *)(uintptr_t)(v->patches ? v->scale : v->exponent);
  store->exponents_known = 0;
  return ht_cuda_launch(store->cuda, HT_KERNEL_store_scale, ht_cuda_over(v->padded),
                        HT_ARGS(v, &store->x, &scale, &store->diagonal, &store->counts));
}

/* ---- passes over the matrix ---- */

/* Where lists of offsets are found again by their hash; that two with the same hash are one list is verified with the values. */
typedef struct offset_lists {
  struct place {
    uint64_t hash; /* 0: free */
    uint32_t index;
  } * place;
  uint64_t mask;
} offset_lists;

static ht_status make_lists(ht_store *store, offset_lists *lists) {
  int64_t places = 64;
  while (places < 2 * store->view.slices) places *= 2;
  lists->mask = (uint64_t)places - 1;
  HT_TRY(store->ctx, ht_allocate_zeroed(store->ctx, places, sizeof *lists->place, &lists->place));
  return HT_OK;
}

/* The slice's offsets; its first slice owns a list, and writes it. */
static void find_list(ht_store_view *v, const offset_lists *lists, uint64_t hash, ht_slice_info *slice) {
  uint64_t at = hash & lists->mask;
  while (lists->place[at].hash && lists->place[at].hash != hash) at = (at + 1) & lists->mask;
  struct place *place = &lists->place[at];
  slice->by_offset = 1;
  slice->owner = !place->hash;
  if (slice->owner) {
    *place = (struct place){hash, (uint32_t)(v->offsets / 4)};
    v->offsets += ((int64_t)slice->units * (2 << slice->lanes_log2) + 3) / 4 * 4;
  }
  slice->index = place->index;
}

/* The units of every slice, and their places. */
static ht_status place_units(ht_store *store, const ht_slice_count *counts) {
  ht_store_view *v = &store->view;
  offset_lists lists;
  v->units = v->index_units = v->offsets = v->ragged_entries = 0;
  HT_TRY(store->ctx, make_lists(store, &lists));
  for (int64_t s = 0; s < v->slices; s++) {
    ht_slice_info *slice = &store->rows->slice[s];
    if (counts[s].units > UINT16_MAX || v->units > UINT32_MAX - UINT16_MAX) {
      ht_release(store->ctx, lists.place);
      HT_FAIL(store->ctx, HT_UNSUPPORTED,
              "row %lld, counted from 1, is too long for the cuda backend's split storage; use --format csr or --backend cpu",
              (long long)store->rows->order[slice->row] + 1);
    }
    slice->unit = (uint32_t)v->units;
    slice->units = (uint16_t)counts[s].units;
    v->units += counts[s].units;
    if (counts[s].hash) {
      find_list(v, &lists, counts[s].hash, slice);
    } else {
      slice->index = (uint32_t)v->index_units;
      v->index_units += counts[s].units;
    }
    if (v->ragged) slice->index = (uint32_t)v->ragged_entries;
    v->ragged_entries += counts[s].ragged_entries;
  }
  store->rows->slice[v->slices].unit = (uint32_t)v->units;
  store->rows->slice[v->slices].index = (uint32_t)v->ragged_entries;
  ht_release(store->ctx, lists.place);
  return HT_OK;
}

static ht_status count_groups(ht_store *store, ht_traffic *traffic) {
  ht_store_view *v = &store->view;
  ht_slice_count *counts = NULL, *on_device = NULL;
  ht_status status;
  HT_TRY_GOTO(store->ctx, status, ht_allocate(store->ctx, v->slices, sizeof *counts, &counts), done);
  HT_TRY_GOTO(store->ctx, status, ht_cuda_allocate(store->cuda, v->slices * (int64_t)sizeof *counts, &on_device), done);
  ht_traffic_pass(traffic, 0);
  for (ht_packet p = {.slices = 1};;) {
    HT_TRY_GOTO(store->ctx, status, ht_traffic_next(traffic, &p), done);
    if (!p.slices) break;
    p.view.values = NULL;
    HT_TRY_GOTO(store->ctx, status, ht_cuda_launch(store->cuda, HT_KERNEL_store_count, warp_a_slice(&p), HT_ARGS(v, &p.view, &on_device)),
                done);
  }
  HT_TRY_GOTO(store->ctx, status, ht_cuda_copy(store->cuda, v->slices * (int64_t)sizeof *counts, on_device, counts), done);
  ht_lap(store->ctx, HT_PHASE_counting);
  HT_TRY_GOTO(store->ctx, status, place_units(store, counts), done);
  ht_lap(store->ctx, HT_PHASE_placing);
done:
  ht_release(store->ctx, counts);
  ht_cuda_release(store->cuda, on_device);
  return status;
}

static ht_status allocate_groups(ht_store *store) {
  ht_store_view *v = &store->view;
  int64_t entries = ht_cuda_store_entries(v), ragged = v->slices * v->ragged;
  const ht_cuda_part parts[] = {{(v->units + ragged + HT_WARP) * (int64_t)sizeof *v->info, &v->info}, /* a warp reads 32 at once */
                                {v->index_units * HT_WARP * 4 + v->ragged_entries * 2, &v->index},
                                {v->patches ? 0 : (v->index_units + HT_WARP) * 4, &v->base},
                                {entries * 2, &v->head},
                                {entries * 2, &v->mid},
                                {entries * 4, &v->tail},
                                {v->offsets * 4, &v->offset},
                                {ragged * (int64_t)sizeof *v->has, &v->has}};
  HT_TRY(store->ctx, ht_cuda_allocate_parts(store->cuda, sizeof parts / sizeof *parts, parts));
  return HT_OK;
}

static ht_status fill(ht_store *store, ht_traffic *traffic) {
  ht_store_view *v = &store->view;
  ht_slice_info *slices = (ht_slice_info *)(uintptr_t)v->slice;
  unsigned long long *wrong = store->counts + HT_COUNT_WRONG;
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_16));
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_32));
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, (v->slices + 1) * (int64_t)sizeof *slices, store->rows->slice, slices));
  ht_traffic_pass(traffic, 1);
  for (ht_packet p = {.slices = 1};;) {
    HT_TRY(store->ctx, ht_traffic_next(traffic, &p));
    if (!p.slices) return HT_OK;
    ht_launch launch = warp_a_slice(&p);
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_fill, launch,
                                      HT_ARGS(v, &p.view, &store->diagonal, &store->exactness_flags, &slices, &store->counts)));
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_verify, launch, HT_ARGS(v, &p.view, &store->diagonal, &wrong)));
  }
}

/* ---- what came out ---- */

static float as_float(unsigned long long bits) {
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

ht_status ht_cuda_store_tell(ht_store *store, int64_t nnz, const unsigned long long *counts) {
  ht_store_view *v = &store->view;
  ht_store_info *info = &store->info;
  HT_CHECK(store->ctx, !counts[HT_COUNT_BAD], HT_UNSUPPORTED,
           "the diagonal entry of row %lld, counted from 1, is beyond what the cuda backend can scale; use --format csr or --backend cpu",
           (long long)store->rows->order[v->padded - (int64_t)counts[HT_COUNT_BAD]] + 1);
  if (counts[HT_COUNT_WRONG] && store->met) ht_kept_forget(store->ctx); /* two patterns may have been taken for the same */
  HT_CHECK(store->ctx, !counts[HT_COUNT_WRONG], HT_UNSUPPORTED,
           "%llu entries leave the range of FP64 when rows and columns are scaled to a unit diagonal; use --format csr or --backend cpu",
           counts[HT_COUNT_WRONG]);
  store->exponent_most = (int)counts[HT_COUNT_EXPONENT] - HT_EXPONENT_RANGE;
  info->error_16 = as_float(counts[HT_COUNT_ERROR_16]);
  info->error_32 = as_float(counts[HT_COUNT_ERROR_32]);
  info->n = v->n;
  info->padded = v->padded;
  info->blocks = v->blocks;
  info->share_exact_16 = (double)counts[HT_COUNT_EXACT_16] / (double)nnz;
  info->share_constant = (double)counts[HT_COUNT_CONSTANT] / (double)v->n;
  info->share_gathered = v->patches ? 1 : v->units ? (double)v->index_units / (double)v->units : 0;
  info->share_exact_32 = (double)counts[HT_COUNT_EXACT_32] / (double)nnz;
  double rest = (double)(ht_cuda_store_bytes_beside(v) + v->slices * (int64_t)sizeof *v->slice), rows = (double)v->padded;
  const double diagonal[HT_LEVELS] = {v->patches ? 6 : 4, 6, 8};
  for (int level = 0; level < HT_LEVELS; level++) {
    double read = (double)counts[HT_COUNT_READ + level],
           all = (double)(ht_cuda_store_entries(v) << level); /* in entries of 16 bits, which nothing is below */
    info->bytes_level[level] = read * 2 + rest + rows * diagonal[level];
    info->bytes_whole[level] = (level == HT_LEVEL_16 ? read : all) * 2 + rest + rows * diagonal[level];
  }
  info->engine = store->plan.engine == HT_STORE_ENGINE_PERSISTENT ? "persistent" : "streaming";
  return HT_OK;
}

/* ---- the whole ---- */

static ht_status pass(ht_store *store, ht_traffic *traffic, int counting) {
  if (counting) {
    HT_TRY(store->ctx, count_groups(store, traffic));
    ht_lap(store->ctx, HT_PHASE_placing);
  }
  if (!store->view.info) HT_TRY(store->ctx, allocate_groups(store));
  ht_lap(store->ctx, HT_PHASE_allocating);
  HT_TRY(store->ctx, fill(store, traffic));
  ht_lap(store->ctx, HT_PHASE_copying);
  return ht_cuda_synchronize(store->cuda);
}

static ht_status travel(ht_store *store, const ht_csr_view *a, ht_source source) {
  ht_traffic traffic;
  HT_TRY(store->ctx, scale(store));
  ht_lap(store->ctx, HT_PHASE_scales);
  ht_status status = ht_traffic_begin(store, a, source, &traffic);
  ht_lap(store->ctx, HT_PHASE_allocating);
  if (status == HT_OK) status = pass(store, &traffic, source == HT_FROM_HOST_TWICE);
  ht_lap(store->ctx, HT_PHASE_filling);
  ht_traffic_end(&traffic);
  ht_lap(store->ctx, HT_PHASE_allocating);
  return status;
}

static ht_status build(ht_store *store, const ht_csr_view *a, const double *diagonal, ht_source source) {
  unsigned long long counts[HT_COUNTS];
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, HT_COUNTS * 8, 0, store->counts));
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, store->view.n * 8, diagonal, store->x));
  HT_TRY(store->ctx, travel(store, a, source));
  HT_TRY(store->ctx, ht_cuda_copy(store->cuda, sizeof counts, store->counts, counts));
  return ht_cuda_store_tell(store, a->nnz, counts);
}

ht_status ht_cuda_store_build(ht_store *store, const ht_csr_view *a, const double *diagonal) {
  return build(store, a, diagonal, store->met ? HT_FROM_HOST : HT_FROM_HOST_TWICE);
}

ht_status ht_cuda_store_rebuild(ht_store *store, const ht_csr_view *a, const double *diagonal) {
  return build(store, a, diagonal, HT_FROM_HOST);
}

ht_status ht_cuda_store_refill(ht_store *store, const ht_csr_view *a) { return travel(store, a, HT_FROM_DEVICE); }
