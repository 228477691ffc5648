/* Values into the store: the CSR travels by blocks of rows, so that the device never holds much of it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/store.h"

enum { SLICES_A_BLOCK = 8, COUNTS = 8, LONG_ROW = 256 };
static const int64_t WHOLE = 1 << 23;    /* nonzeros that travel in one block */
static const double LEAST_SAVING = 0.85; /* what exact groups must bring a product's values down to, to be told apart */
static const double BLOCK_SHARE = 0.04;  /* of the matrix that a block holds, if it is larger */

/* Rows of some slices, packed in solver order: on the host, and their place on the device. */
typedef struct packet {
  int64_t first_slice, slices, rows, nnz, rows_most, nnz_most;
  int64_t *start;
  int32_t *columns;
  double *values;
  ht_rows_view view;
} packet;

static int64_t row_length(const ht_csr_view *a, int32_t row) { return row < 0 ? 0 : a->row_start[row + 1] - a->row_start[row]; }

/* The slices from `first` on that fit a block of `limit` nonzeros, one at least. */
static void choose_slices(const ht_store *store, const ht_csr_view *a, int64_t first, int64_t limit, packet *p) {
  p->first_slice = first;
  p->slices = p->rows = p->nnz = 0;
  for (int64_t s = first; s < store->view.slices; s++) {
    int64_t begin = store->slice[s].row, end = store->slice[s + 1].row, nnz = 0;
    for (int64_t i = begin; i < end; i++) nnz += row_length(a, store->order[i]);
    if (p->slices && p->nnz + nnz > limit) return;
    p->slices++;
    p->rows += end - begin;
    p->nnz += nnz;
  }
}

static ht_status allocate_packet(ht_store *store, const ht_csr_view *a, int64_t limit, packet *p) {
  *p = (packet){.rows_most = 0};
  for (int64_t first = 0; first < store->view.slices; first += p->slices) {
    choose_slices(store, a, first, limit, p);
    if (p->rows > p->rows_most) p->rows_most = p->rows;
    if (p->nnz > p->nnz_most) p->nnz_most = p->nnz;
  }
  HT_TRY(store->ctx, ht_allocate(store->ctx, p->rows_most + 1, sizeof *p->start, &p->start));
  HT_TRY(store->ctx, ht_allocate(store->ctx, p->nnz_most, sizeof *p->columns, &p->columns));
  HT_TRY(store->ctx, ht_allocate(store->ctx, p->nnz_most, sizeof *p->values, &p->values));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, (p->rows_most + 1) * 8, &p->view.start));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, p->nnz_most * 4, &p->view.columns));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, p->nnz_most * 8, &p->view.values));
  return HT_OK;
}

static void release_packet(ht_store *store, packet *p) {
  ht_release(store->ctx, p->start);
  ht_release(store->ctx, p->columns);
  ht_release(store->ctx, p->values);
  ht_cuda_release(store->cuda, (void *)(uintptr_t)p->view.start);
  ht_cuda_release(store->cuda, (void *)(uintptr_t)p->view.columns);
  ht_cuda_release(store->cuda, (void *)(uintptr_t)p->view.values);
}

/* ---- rows in solver order ---- */

typedef struct entry {
  int32_t position, column;
  double value;
} entry;

static int by_position(const void *a, const void *b) {
  int32_t x = ((const entry *)a)->position, y = ((const entry *)b)->position;
  return (x > y) - (x < y);
}

/* A row's entries by their columns' place in solver order: neighbours in a group then read neighbours in x. Rows come nearly sorted. */
static void sort_row(const ht_store *store, int32_t *columns, double *values, int64_t count) {
  const int32_t *position = store->position;
  for (int64_t k = 1; k < count; k++) {
    int32_t column = columns[k];
    double value = values[k];
    int64_t to = k;
    for (; to > 0 && position[columns[to - 1]] > position[column]; to--) {
      columns[to] = columns[to - 1];
      values[to] = values[to - 1];
    }
    columns[to] = column;
    values[to] = value;
  }
}

static int sort_long_row(const ht_store *store, int32_t *columns, double *values, int64_t count) {
  entry *entries;
  if (ht_allocate(store->ctx, count, sizeof *entries, &entries) != HT_OK) return 0;
  for (int64_t k = 0; k < count; k++) entries[k] = (entry){store->position[columns[k]], columns[k], values[k]};
  qsort(entries, (size_t)count, sizeof *entries, by_position);
  for (int64_t k = 0; k < count; k++) {
    columns[k] = entries[k].column;
    values[k] = entries[k].value;
  }
  ht_release(store->ctx, entries);
  return 1;
}

/* The rows of the chosen slices into the packet, and to the device. */
static ht_status send(ht_store *store, const ht_csr_view *a, int with_values, packet *p) {
  const int32_t *order = store->order + store->slice[p->first_slice].row;
  int threads = store->ctx->threads;
  p->start[0] = 0;
  for (int64_t i = 0; i < p->rows; i++) p->start[i + 1] = p->start[i] + row_length(a, order[i]);
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : failed) if (p->nnz > 20000)
  for (int64_t i = 0; i < p->rows; i++) {
    if (order[i] < 0) continue;
    int64_t from = a->row_start[order[i]], count = row_length(a, order[i]);
    int32_t *columns = p->columns + p->start[i];
    double *values = p->values + p->start[i];
    memcpy(columns, a->columns + from, (size_t)count * sizeof *columns);
    memcpy(values, a->values + from, (size_t)count * sizeof *values);
    if (store->sorted) continue;
    if (count > LONG_ROW)
      failed |= !sort_long_row(store, columns, values, count);
    else
      sort_row(store, columns, values, count);
  }
  if (failed) return store->ctx->status;
  p->view.first_slice = p->first_slice;
  p->view.slices = p->slices;
  HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, (p->rows + 1) * 8, p->start, (void *)(uintptr_t)p->view.start));
  HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, p->nnz * 4, p->columns, (void *)(uintptr_t)p->view.columns));
  if (with_values) HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, p->nnz * 8, p->values, (void *)(uintptr_t)p->view.values));
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
  int threads = store->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > 20000)
  for (int64_t i = 0; i < v->padded; i++) {
    double d = store->order[i] < 0 ? 0 : ht_csr_diagonal(a, store->order[i]);
    int e = exponent_of(d);
    store->exponent[i] = (int16_t)e;
    store->scaled_diagonal[i] = ldexp(d, -2 * e);
  }
  store->exponent_most = -1000;
  for (int64_t i = 0; i < v->padded; i++)
    if (store->order[i] >= 0 && store->exponent[i] > store->exponent_most) store->exponent_most = store->exponent[i];
  for (int64_t i = 0; i < v->padded; i++) /* kernels square scales in FP64 */
    HT_CHECK(store->ctx, abs(store->exponent[i]) <= 510, HT_UNSUPPORTED,
             "the diagonal entry of row %lld, counted from 1, is beyond what the cuda backend can scale; use --format csr or --backend cpu",
             (long long)store->order[i] + 1);
  HT_TRY(store->ctx, ht_cuda_copy_async(store->cuda, v->padded * 2, store->exponent, (void *)(uintptr_t)v->exponent));
  return ht_cuda_copy(store->cuda, v->padded * 8, store->scaled_diagonal, store->diagonal);
}

/* ---- passes over the matrix ---- */

static ht_status count_groups(ht_store *store, const ht_csr_view *a, packet *p, int64_t limit, int whole) {
  ht_store_view *v = &store->view;
  uint32_t *counts = NULL, *on_device = NULL;
  ht_status status;
  HT_TRY_GOTO(store->ctx, status, ht_allocate(store->ctx, v->slices, sizeof *counts, &counts), done);
  HT_TRY_GOTO(store->ctx, status, ht_cuda_allocate(store->cuda, v->slices * (int64_t)sizeof *counts, &on_device), done);
  for (int64_t first = 0; first < v->slices; first += p->slices) {
    choose_slices(store, a, first, limit, p);
    HT_TRY_GOTO(store->ctx, status, send(store, a, whole, p), done);
    ht_rows_view rows = p->view;
    if (!whole) rows.values = NULL;
    HT_TRY_GOTO(store->ctx, status, ht_cuda_launch(store->cuda, HT_KERNEL_store_count, warp_a_slice(p), HT_ARGS(v, &rows, &on_device)),
                done);
    HT_TRY_GOTO(store->ctx, status, ht_cuda_synchronize(store->cuda), done); /* the packet is filled again */
  }
  HT_TRY_GOTO(store->ctx, status, ht_cuda_copy(store->cuda, v->slices * (int64_t)sizeof *counts, on_device, counts), done);
  v->units = 0;
  for (int64_t s = 0; s < v->slices; s++) {
    if (counts[s] > UINT16_MAX)
      HT_FAIL_GOTO(store->ctx, status, done, HT_UNSUPPORTED,
                   "row %lld, counted from 1, is too long for the cuda backend's split storage; use --format csr or --backend cpu",
                   (long long)store->order[store->slice[s].row] + 1);
    store->slice[s].unit = v->units;
    store->slice[s].units = (uint16_t)counts[s];
    v->units += counts[s];
  }
  store->slice[v->slices].unit = v->units;
done:
  ht_release(store->ctx, counts);
  ht_cuda_release(store->cuda, on_device);
  return status;
}

static ht_status allocate_groups(ht_store *store) {
  ht_store_view *v = &store->view;
  int64_t lanes = v->units * HT_WARP;
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, v->units * (int64_t)sizeof *v->info, &v->info));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, lanes * 4, &v->index));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, lanes * 4, &v->head));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, lanes * 4, &v->mid));
  HT_TRY(store->ctx, ht_cuda_allocate(store->cuda, lanes * 8, &v->tail));
  return HT_OK;
}

static ht_status fill(ht_store *store, const ht_csr_view *a, packet *p, int64_t limit, int sent) {
  ht_store_view *v = &store->view;
  ht_slice_info *slices = (ht_slice_info *)(uintptr_t)v->slice;
  unsigned long long *wrong = store->counts + COUNTS - 1;
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, COUNTS * 8, 0, store->counts));
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_16));
  HT_TRY(store->ctx, ht_cuda_fill(store->cuda, v->blocks * 4, 0, v->error_32));
  HT_TRY(store->ctx, ht_cuda_copy(store->cuda, (v->slices + 1) * (int64_t)sizeof *slices, store->slice, slices));
  for (int64_t first = 0; first < v->slices; first += p->slices) {
    choose_slices(store, a, first, limit, p);
    if (!sent) HT_TRY(store->ctx, send(store, a, 1, p));
    ht_launch launch = warp_a_slice(p);
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_fill, launch,
                                      HT_ARGS(v, &p->view, &store->diagonal, &store->exactness_flags, &slices, &store->counts)));
    HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_store_verify, launch, HT_ARGS(v, &p->view, &store->diagonal, &wrong)));
    HT_TRY(store->ctx, ht_cuda_synchronize(store->cuda));
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

/* Groups that are read narrower cost a look at each before its loads: that pays where many are, and where bytes come from far away. */
static int pays_to_tell_apart(const ht_store *store, double units_read) {
  double whole = 4 * (double)store->view.units, bytes = (double)store->view.units * (HT_WARP * 20 + 8);
  return units_read < LEAST_SAVING * whole && bytes > (double)store->cuda->l2_bytes;
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
  info->share_exact_32 = (double)counts[1] / (double)a->nnz;
  store->exact_groups = pays_to_tell_apart(store, (double)counts[2 + HT_LEVEL_64]);
  double rest = (double)v->units * (HT_WARP * 4 + 8) + (double)v->slices * 16, rows = (double)v->padded;
  const double diagonal[HT_LEVELS] = {4, 4, 8};
  for (int level = 0; level < HT_LEVELS; level++)
    info->bytes_level[level] = (double)counts[2 + level] * HT_WARP * 4 + rest + rows * diagonal[level];
  info->engine = store->plan.engine == HT_STORE_ENGINE_PERSISTENT ? "persistent" : "streaming";
  return HT_OK;
}

ht_status ht_cuda_store_build(ht_store *store, const ht_csr_view *a, int first) {
  packet p;
  int whole = a->nnz <= WHOLE;
  int64_t limit = whole ? a->nnz : (int64_t)(BLOCK_SHARE * (double)a->nnz) > WHOLE ? (int64_t)(BLOCK_SHARE * (double)a->nnz) : WHOLE;
  HT_TRY(store->ctx, scale(store, a));
  ht_status status = allocate_packet(store, a, limit, &p);
  if (status == HT_OK && first) status = count_groups(store, a, &p, limit, whole);
  if (status == HT_OK && first) status = allocate_groups(store);
  if (status == HT_OK) status = fill(store, a, &p, limit, first && whole);
  release_packet(store, &p);
  HT_TRY(store->ctx, status);
  return tell(store, a);
}
