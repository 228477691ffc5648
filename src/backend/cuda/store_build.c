/* Values into the store: the CSR travels by blocks of rows, so that the device never holds much of it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/store.h"

enum { SLICES_A_BLOCK = 8, COUNTS = 8, LONG_ROW = 256, ENTRY_BYTES = 12, PARALLEL_FROM = 20000 };
static const int64_t BLOCK_BYTES = 64 << 20; /* of rows that travel in one block: what the device holds beside the store */

/* Rows of some slices in solver order, and their place on the device. */
typedef struct packet {
  int64_t first_slice, slices, row, rows, nnz; /* row: the first */
  ht_rows_view view;
} packet;

/* The slices from `first` on that fit into a block, one at least. */
static void choose_slices(const ht_store *store, int64_t first, packet *p) {
  const ht_slice_info *slice = store->slice;
  int64_t s = first, begin = slice[first].row, end = begin;
  for (; s < store->view.slices; s++) {
    int64_t next = slice[s + 1].row, bytes = ENTRY_BYTES * (store->start[next] - store->start[begin]) + 8 * (next - begin + 1);
    if (s > first && bytes > BLOCK_BYTES) break;
    end = next;
  }
  p->first_slice = p->view.first_slice = first;
  p->slices = p->view.slices = s - first;
  p->row = begin;
  p->rows = end - begin;
  p->nnz = store->start[end] - store->start[begin];
}

/* *whole: all rows fit into one block. */
static ht_status allocate_packet(ht_store *store, packet *p, int *whole) {
  int64_t rows = 0, nnz = 0;
  *p = (packet){.rows = 0};
  for (int64_t first = 0; first < store->view.slices; first += p->slices) {
    choose_slices(store, first, p);
    if (p->rows > rows) rows = p->rows;
    if (p->nnz > nnz) nnz = p->nnz;
  }
  *whole = p->slices == store->view.slices;
  const ht_cuda_part parts[] = {
      {(rows + 1) * 8, &p->view.start}, {nnz * 4, &p->view.columns}, {nnz * 8, &p->view.values}, {store->view.n * 4, &p->view.position}};
  HT_TRY(store->ctx, ht_cuda_allocate_parts(store->cuda, 4, parts));
  return HT_OK;
}

static void release_packet(ht_store *store, packet *p) { ht_cuda_release(store->cuda, (void *)(uintptr_t)p->view.start); }

/* ---- rows in solver order ---- */

/* A row's entries by their columns' place in solver order: neighbours in a group then read neighbours in x. Keys are (place, number), and
 * come nearly sorted. */
static void sort_row(const uint64_t *sorted, const int32_t *from_columns, const double *from_values, int64_t count, int32_t *columns,
                     double *values) {
  for (int64_t k = 0; k < count; k++) columns[k] = from_columns[sorted[k] & UINT32_MAX];
  for (int64_t k = 0; values && k < count; k++) values[k] = from_values[sorted[k] & UINT32_MAX];
}

static int by_key(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void sort_keys(uint64_t *keys, int64_t count) {
  for (int64_t k = 1; k < count; k++) {
    uint64_t key = keys[k];
    int64_t to = k;
    for (; to > 0 && keys[to - 1] > key; to--) keys[to] = keys[to - 1];
    keys[to] = key;
  }
}

/* One row, packed; `values` NULL: without them. 0: no memory for a long one's keys. */
static int pack_row(const ht_store *store, const ht_csr_view *a, int32_t row, int32_t *columns, double *values) {
  const int32_t *position = store->position, *from = a->columns + a->row_start[row];
  const double *from_values = a->values + a->row_start[row];
  int64_t count = a->row_start[row + 1] - a->row_start[row];
  uint64_t few[LONG_ROW], *keys = few;
  if (count > LONG_ROW && ht_allocate(store->ctx, count, sizeof *keys, &keys) != HT_OK) return 0;
  for (int64_t k = 0; k < count; k++) keys[k] = (uint64_t)(uint32_t)position[from[k]] << 32 | (uint64_t)k;
  if (count > LONG_ROW)
    qsort(keys, (size_t)count, sizeof *keys, by_key);
  else
    sort_keys(keys, count);
  sort_row(keys, from, from_values, count, columns, values);
  if (keys != few) ht_release(store->ctx, keys);
  return 1;
}

/* Rows from `begin` to `end` into the buffer: values, then columns. */
static ht_status pack_rows(ht_store *store, const ht_csr_view *a, int64_t begin, int64_t end, int32_t *columns, double *values) {
  int64_t first = store->start[begin], count = store->start[end] - first;
  int threads = store->ctx->threads, failed = 0;
  if (store->sorted) { /* as they lie */
    ht_cuda_copy_on_host(store->cuda, count * 4, a->columns + first, columns);
    if (values) ht_cuda_copy_on_host(store->cuda, count * 8, a->values + first, values);
    return HT_OK;
  }
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : failed) if (count > PARALLEL_FROM)
  for (int64_t i = begin; i < end; i++) {
    int64_t at = store->start[i] - first;
    if (store->order[i] >= 0) failed |= !pack_row(store, a, store->order[i], columns + at, values ? values + at : NULL);
  }
  return failed ? HT_NO_MEMORY : HT_OK;
}

/* The rows from `begin` on that fit into a staging buffer, one at least. */
static int64_t rows_of_a_buffer(const ht_store *store, int64_t begin, int64_t end) {
  int64_t low = begin + 1, high = end, limit = store->start[begin] + HT_STAGING_BYTES / ENTRY_BYTES;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (store->start[middle] <= limit)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* The rows of the chosen slices to the device; a buffer is packed while the one before it travels. */
static ht_status send(ht_store *store, const ht_csr_view *a, int with_values, packet *p) {
  int32_t *to_columns = (int32_t *)(uintptr_t)p->view.columns;
  double *to_values = (double *)(uintptr_t)p->view.values;
  int64_t last = p->row + p->rows;
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, (p->rows + 1) * 8, store->start + p->row, (void *)(uintptr_t)p->view.start));
  for (int64_t begin = p->row, end; begin < last; begin = end) {
    char *staged;
    end = rows_of_a_buffer(store, begin, last);
    int64_t count = store->start[end] - store->start[begin], at = store->start[begin] - store->start[p->row];
    HT_TRY(store->ctx, ht_cuda_stage(store->cuda, count * ENTRY_BYTES, &staged));
    double *values = with_values ? (double *)staged : NULL;
    int32_t *columns = (int32_t *)(staged + (with_values ? 8 * count : 0));
    HT_TRY(store->ctx, pack_rows(store, a, begin, end, columns, values));
    HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, count * 4, columns, to_columns + at));
    if (with_values) HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, count * 8, values, to_values + at));
    HT_TRY(store->ctx, ht_cuda_staged(store->cuda));
  }
  return HT_OK;
}

static ht_launch warp_a_slice(const packet *p) {
  return (ht_launch){.grid = (unsigned)((p->slices + SLICES_A_BLOCK - 1) / SLICES_A_BLOCK), .block = 32 * SLICES_A_BLOCK};
}

/* ---- what is known before the values ---- */

/* a^_ii in [1/2, 2). A diagonal that is not positive keeps its scale. */
static int exponent_of(double diagonal) {
  int e = 0;
  if (!(diagonal > 0) || isinf(diagonal)) return 0;
  frexp(diagonal, &e);
  return e >= 0 ? e / 2 : -((1 - e) / 2);
}

static ht_status scale(ht_store *store, const ht_csr_view *a) {
  const ht_store_view *v = &store->view;
  int threads = store->ctx->threads, most = -1000;
  int64_t bad = v->padded;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : most) reduction(min : bad) if (v->padded > PARALLEL_FROM)
  for (int64_t i = 0; i < v->padded; i++) {
    double d = store->order[i] < 0 ? 0 : ht_csr_diagonal(a, store->order[i]);
    int e = exponent_of(d);
    store->exponent[i] = (int16_t)e;
    store->scaled_diagonal[i] = ldexp(d, -2 * e);
    if (store->order[i] >= 0 && e > most) most = e;
    if (abs(e) > 510 && i < bad) bad = i;
  }
  store->exponent_most = most;
  HT_CHECK(store->ctx, bad == v->padded, HT_UNSUPPORTED, /* kernels square scales in FP64 */
           "the diagonal entry of row %lld, counted from 1, is beyond what the cuda backend can scale; use --format csr or --backend cpu",
           (long long)store->order[bad] + 1);
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, v->padded * 2, store->exponent, (void *)(uintptr_t)v->exponent));
  return ht_cuda_send(store->cuda, v->padded * 8, store->scaled_diagonal, store->diagonal);
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
  v->units = v->index_units = v->offsets = 0;
  HT_TRY(store->ctx, make_lists(store, &lists));
  for (int64_t s = 0; s < v->slices; s++) {
    ht_slice_info *slice = &store->slice[s];
    if (counts[s].units > UINT16_MAX || v->units > UINT32_MAX - UINT16_MAX) {
      ht_release(store->ctx, lists.place);
      HT_FAIL(store->ctx, HT_UNSUPPORTED,
              "row %lld, counted from 1, is too long for the cuda backend's split storage; use --format csr or --backend cpu",
              (long long)store->order[slice->row] + 1);
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
  }
  store->slice[v->slices].unit = (uint32_t)v->units;
  ht_release(store->ctx, lists.place);
  return HT_OK;
}

static ht_status count_groups(ht_store *store, const ht_csr_view *a, packet *p, int whole) {
  ht_store_view *v = &store->view;
  ht_slice_count *counts = NULL, *on_device = NULL;
  ht_status status;
  HT_TRY_GOTO(store->ctx, status, ht_allocate(store->ctx, v->slices, sizeof *counts, &counts), done);
  HT_TRY_GOTO(store->ctx, status, ht_cuda_allocate(store->cuda, v->slices * (int64_t)sizeof *counts, &on_device), done);
  for (int64_t first = 0; first < v->slices; first += p->slices) {
    choose_slices(store, first, p);
    HT_TRY_GOTO(store->ctx, status, send(store, a, whole, p), done);
    ht_rows_view rows = p->view;
    if (!whole) rows.values = NULL;
    HT_TRY_GOTO(store->ctx, status, ht_cuda_launch(store->cuda, HT_KERNEL_store_count, warp_a_slice(p), HT_ARGS(v, &rows, &on_device)),
                done);
  }
  HT_TRY_GOTO(store->ctx, status, ht_cuda_copy(store->cuda, v->slices * (int64_t)sizeof *counts, on_device, counts), done);
  HT_TRY_GOTO(store->ctx, status, place_units(store, counts), done);
done:
  ht_release(store->ctx, counts);
  ht_cuda_release(store->cuda, on_device);
  return status;
}

static ht_status allocate_groups(ht_store *store) {
  ht_store_view *v = &store->view;
  int64_t lanes = v->units * HT_WARP;
  const ht_cuda_part parts[] = {{(v->units + HT_WARP) * (int64_t)sizeof *v->info, &v->info}, /* a warp reads 32 at once, from any on */
                                {v->index_units * HT_WARP * 4, &v->index},
                                {v->patches ? 0 : (v->index_units + HT_WARP) * 4, &v->base},
                                {lanes * 4, &v->head},
                                {lanes * 4, &v->mid},
                                {lanes * 8, &v->tail},
                                {v->offsets * 4, &v->offset}};
  HT_TRY(store->ctx, ht_cuda_allocate_parts(store->cuda, 7, parts));
  return HT_OK;
}

static ht_status fill(ht_store *store, const ht_csr_view *a, packet *p, int sent) {
  ht_store_view *v = &store->view;
  ht_slice_info *slices = (ht_slice_info *)(uintptr_t)v->slice;
  unsigned long long *wrong = store->counts + COUNTS - 1;
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, COUNTS * 8, 0, store->counts));
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_16));
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_32));
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, (v->slices + 1) * (int64_t)sizeof *slices, store->slice, slices));
  for (int64_t first = 0; first < v->slices; first += p->slices) {
    choose_slices(store, first, p);
    if (!sent) HT_TRY(store->ctx, send(store, a, 1, p));
    ht_launch launch = warp_a_slice(p);
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_fill, launch,
                                      HT_ARGS(v, &p->view, &store->diagonal, &store->exactness_flags, &slices, &store->counts)));
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_verify, launch, HT_ARGS(v, &p->view, &store->diagonal, &wrong)));
  }
  return HT_OK;
}

/* ---- what came out ---- */

static ht_status largest_error(ht_store *store, const float *error, float *largest) {
  int64_t blocks = store->view.blocks;
  float *errors;
  HT_TRY(store->ctx, ht_allocate(store->ctx, blocks, sizeof *errors, &errors));
  ht_status status = ht_cuda_copy(store->cuda, blocks * 4, error, errors);
  *largest = 0;
  for (int64_t b = 0; status == HT_OK && b < blocks; b++)
    if (!(errors[b] <= *largest)) *largest = errors[b];
  ht_release(store->ctx, errors);
  return status;
}

static ht_status tell(ht_store *store, const ht_csr_view *a) {
  ht_store_view *v = &store->view;
  ht_store_info *info = &store->info;
  unsigned long long counts[COUNTS];
  HT_TRY(store->ctx, ht_cuda_copy(store->cuda, sizeof counts, store->counts, counts));
  HT_CHECK(store->ctx, !counts[COUNTS - 1], HT_UNSUPPORTED,
           "%llu entries leave the range of FP64 when rows and columns are scaled to a unit diagonal; use --format csr or --backend cpu",
           counts[COUNTS - 1]);
  HT_TRY(store->ctx, largest_error(store, v->error_16, &info->error_16));
  HT_TRY(store->ctx, largest_error(store, v->error_32, &info->error_32));
  info->n = v->n;
  info->padded = v->padded;
  info->blocks = v->blocks;
  info->share_exact_16 = (double)counts[0] / (double)a->nnz;
  info->share_constant = (double)counts[5] / (double)v->n;
  info->share_gathered = v->units ? (double)v->index_units / (double)v->units : 0;
  info->share_exact_32 = (double)counts[1] / (double)a->nnz;
  double rest = (double)v->index_units * (HT_WARP * 4 + (v->patches ? 0 : 4)) + (double)v->units * 2 + (double)v->slices * 16,
         rows = (double)v->padded;
  const double diagonal[HT_LEVELS] = {4, 4, 8};
  for (int level = 0; level < HT_LEVELS; level++) {
    double read = (double)counts[2 + level], all = (double)(v->units << level); /* in units of the 16-bit level, which nothing is below */
    info->bytes_level[level] = read * HT_WARP * 4 + rest + rows * diagonal[level];
    info->bytes_whole[level] = (level == HT_LEVEL_16 ? read : all) * HT_WARP * 4 + rest + rows * diagonal[level];
  }
  info->engine = store->plan.engine == HT_STORE_ENGINE_PERSISTENT ? "persistent" : "streaming";
  return HT_OK;
}

ht_status ht_cuda_store_build(ht_store *store, const ht_csr_view *a, int first) {
  packet p;
  int whole;
  HT_TRY(store->ctx, scale(store, a));
  HT_TRY(store->ctx, allocate_packet(store, &p, &whole));
  ht_status status = ht_cuda_send(store->cuda, store->view.n * 4, store->position, (void *)(uintptr_t)p.view.position);
  if (status == HT_OK && first) {
    status = count_groups(store, a, &p, whole);
    if (status == HT_OK) status = allocate_groups(store);
  }
  if (status == HT_OK) status = fill(store, a, &p, first && whole);
  release_packet(store, &p);
  HT_TRY(store->ctx, status);
  return tell(store, a);
}
