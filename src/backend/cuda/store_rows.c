/* How the rows are put in order, slices and patches: on the host, from the pattern. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "backend/cuda/store.h"
#include "base/sum.h"

enum {
  THREADS_MOST = 512, /* of a block of the persistent engine with several lanes a row */
  WINDOW = 1024,      /* rows that are sorted together where there are no patches */
  FEW_PAIRS = 6,      /* of a lane at most, if there are threads for more lanes */
  MANY_PAIRS = 8,     /* the same if those were more than half of THREADS_MOST */
  LANE_UNITS = 32,    /* a lane's of a slice at most */
  SORTED_LENGTHS = 4096,
  WORTH_LEAST = 64,     /* bytes that a slice more has to save, */
  WORTH_MOST = 1024,    /* or more where else there would be too many */
  PARALLEL_FROM = 20000 /* rows */
};
static const double WASTE = 1.1; /* padding that is worth sorting for */

static int64_t length_of(const ht_csr_view *a, int32_t row) { return row < 0 ? 0 : a->row_start[row + 1] - a->row_start[row]; }

/* ---- order ---- */

/* Groups that rows of this order need, a row after the other in slices of 32. */
static int64_t padded_length(const ht_csr_view *a, const int32_t *order, int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i += HT_WARP) {
    int64_t longest = 0;
    for (int64_t k = i; k < i + HT_WARP && k < count; k++)
      if (length_of(a, order[k]) > longest) longest = length_of(a, order[k]);
    sum += longest * HT_WARP;
  }
  return sum;
}

/* Stable, long rows first; rows longer than SORTED_LENGTHS count as equal. start: SORTED_LENGTHS + 2 entries. */
static void sort_by_length(const ht_csr_view *a, int32_t *order, int32_t *scratch, int32_t *start, int64_t count) {
  memset(start, 0, (SORTED_LENGTHS + 2) * sizeof *start);
  for (int64_t i = 0; i < count; i++) {
    int64_t length = length_of(a, order[i]);
    start[SORTED_LENGTHS - (length > SORTED_LENGTHS ? SORTED_LENGTHS : length) + 1]++;
  }
  for (int k = 0; k <= SORTED_LENGTHS; k++) start[k + 1] += start[k];
  for (int64_t i = 0; i < count; i++) {
    int64_t length = length_of(a, order[i]);
    scratch[start[SORTED_LENGTHS - (length > SORTED_LENGTHS ? SORTED_LENGTHS : length)]++] = order[i];
  }
  memcpy(order, scratch, (size_t)count * sizeof *order);
}

/* Rows of like length into the same slice, where the padding would else be large. */
static ht_status sort_windows(ht_store *store, const ht_csr_view *a) {
  int64_t window = store->plan.patch_rows ? store->plan.patch_rows : WINDOW, padded = store->view.padded,
          room = window + SORTED_LENGTHS + 2;
  int threads = padded > PARALLEL_FROM ? store->ctx->threads : 1;
  int32_t *memory;
  HT_TRY(store->ctx, ht_allocate(store->ctx, room * threads, sizeof *memory, &memory));
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t begin = 0; begin < padded; begin += window) {
    int32_t *scratch = memory + room * omp_get_thread_num();
    int64_t count = padded - begin < window ? padded - begin : window, entries = 0;
    for (int64_t i = begin; i < begin + count; i++) entries += length_of(a, store->rows->order[i]);
    if ((double)padded_length(a, store->rows->order + begin, count) > WASTE * (double)entries)
      sort_by_length(a, store->rows->order + begin, scratch, scratch + window, count);
  }
  ht_release(store->ctx, memory);
  return HT_OK;
}

/* start[i]: nonzeros of the rows before row i. */
static ht_status make_start(ht_store *store, const ht_csr_view *a) {
  int64_t padded = store->view.padded, *start;
  int threads = store->ctx->threads;
  HT_TRY(store->ctx, ht_allocate(store->ctx, padded + 1, sizeof *store->rows->start, &store->rows->start));
  start = store->rows->start;
#pragma omp parallel for schedule(static) num_threads(threads) if (padded > PARALLEL_FROM)
  for (int64_t i = 0; i < padded; i++) start[i + 1] = length_of(a, store->rows->order[i]);
  ht_sum_counts(start, padded, threads);
  return HT_OK;
}

/* As many whole blocks of unknowns into each column block as fit: a block's rows then lie in one patch, and near enough for one warp. */
static void place_blocks(ht_store *store, const int32_t *order) {
  int64_t n = store->view.n, block = store->block, blocks = (n + block - 1) / block, fit = HT_COLUMN_BLOCK / block;
  int threads = store->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t c = 0; c < store->view.blocks; c++) {
    int32_t *rows = store->rows->order + c * HT_COLUMN_BLOCK;
    for (int64_t i = 0; i < HT_COLUMN_BLOCK; i++) rows[i] = -1;
    for (int64_t k = c * fit; k < (c + 1) * fit && k < blocks; k++, rows += block) {
      int64_t from = (order ? order[k] : k) * block;
      for (int64_t i = 0; i < block && from + i < n; i++) rows[i] = (int32_t)(from + i);
    }
  }
}

static ht_status make_order(ht_store *store, const ht_csr_view *a, const int32_t *order) {
  ht_store_view *v = &store->view;
  int threads = store->ctx->threads, sorted = 1;
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->padded, sizeof *store->rows->order, &store->rows->order));
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->n, sizeof *store->rows->position, &store->rows->position));
  place_blocks(store, order);
  if (store->block == 1) HT_TRY(store->ctx, sort_windows(store, a));
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t i = 0; i < v->padded; i++)
    if (store->rows->order[i] >= 0) store->rows->position[store->rows->order[i]] = (int32_t)i;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(& : sorted) if (v->n > PARALLEL_FROM)
  for (int64_t i = 1; i < v->n; i++) sorted &= store->rows->position[i - 1] < store->rows->position[i];
  store->rows->sorted = sorted;
  store->rows->identity = sorted && store->rows->position[v->n - 1] == v->n - 1;
  return make_start(store, a);
}

/* ---- slices ---- */

/* Lanes a row: as few as leave each no more pairs of entries than are multiplied while latencies pass, and none without a thread. Fewer
 * warps meet sooner, the more so the more they are, and short rows leave fewer places empty. */
static int least_lanes_log2(const ht_store *store, const ht_csr_view *a) {
  int lanes_log2 = 0;
  double pairs = (double)a->nnz / (double)a->n / 2;
  if (!store->plan.patch_rows) return 0;
  for (; lanes_log2 < HT_LANES_LOG2_MOST; lanes_log2++) {
    int64_t threads = store->plan.patch_rows << (lanes_log2 + 1);
    if (threads > THREADS_MOST || pairs <= (threads > THREADS_MOST / 2 ? MANY_PAIRS : FEW_PAIRS) << lanes_log2) break;
  }
  return lanes_log2;
}

/* How slices are cut: lanes a row at least, units a lane at most, and bytes that another slice has to save. */
typedef struct cut {
  int least_log2, units;
  int64_t worth;
} cut;

static int64_t row_length(const ht_store *store, int64_t i) { return store->rows->start[i + 1] - store->rows->start[i]; }

static int64_t longest_of(const ht_store *store, int64_t i, int lanes_log2) {
  int64_t longest = 0;
  for (int64_t k = i; k < i + (HT_WARP >> lanes_log2); k++)
    if (row_length(store, k) > longest) longest = row_length(store, k);
  return longest;
}

/* What a slice takes that ends with a ragged unit. Rows have diagonals. */
static int64_t slice_bytes(const ht_store *store, int64_t i, int lanes_log2) {
  enum { ENTRY = 8 + 2, DESCRIBED = sizeof(ht_group_info), SLICE = sizeof(ht_slice_info) + sizeof(ht_lanes) + DESCRIBED };
  int64_t steps = (longest_of(store, i, lanes_log2) - 1 + (1 << lanes_log2) - 1) >> lanes_log2, units = steps > 2 ? (steps - 1) / 2 : 0;
  int64_t whole = (2 * units) << lanes_log2, ragged = 0; /* entries of a row in whole units */
  for (int64_t k = i; k < i + (HT_WARP >> lanes_log2); k++)
    if (row_length(store, k) - 1 > whole) ragged += row_length(store, k) - 1 - whole;
  return units * (2 * HT_WARP * ENTRY + DESCRIBED) + ragged * ENTRY + SLICE;
}

/* Whether these rows take two slices or more, with more lanes a row each. */
static int is_cut(const ht_store *store, int64_t i, int lanes_log2, cut c) {
  if (lanes_log2 == HT_LANES_LOG2_MOST) return 0;
  if (lanes_log2 < c.least_log2 || longest_of(store, i, lanes_log2) > (int64_t)(2 * c.units) << lanes_log2) return 1;
  if (!c.worth) return 0;
  int64_t half = HT_WARP >> (lanes_log2 + 1);
  return slice_bytes(store, i, lanes_log2) >=
         slice_bytes(store, i, lanes_log2 + 1) + slice_bytes(store, i + half, lanes_log2 + 1) + c.worth;
}

/* The slices of the rows that one with so many lanes each has; `slice` NULL: only their number. */
static int64_t cut_rows(const ht_store *store, int64_t i, int lanes_log2, cut c, ht_slice_info *slice) {
  if (is_cut(store, i, lanes_log2, c)) {
    int64_t count = cut_rows(store, i, lanes_log2 + 1, c, slice);
    return count + cut_rows(store, i + (HT_WARP >> (lanes_log2 + 1)), lanes_log2 + 1, c, slice ? slice + count : NULL);
  }
  if (slice) *slice = (ht_slice_info){.row = (int32_t)i, .lanes_log2 = (uint8_t)lanes_log2};
  return 1;
}

/* Those of 32 rows, which none of theirs leaves. */
static int64_t cut_warp(const ht_store *store, int64_t begin, cut c, ht_slice_info *slice) { return cut_rows(store, begin, 0, c, slice); }

/* Slices of the patch that has most. */
static int64_t most_slices(const ht_store *store, cut c) {
  const ht_store_view *v = &store->view;
  int threads = store->ctx->threads;
  int64_t most = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : most) if (v->padded > PARALLEL_FROM)
  for (int64_t p = 0; p < v->patches; p++) {
    int64_t slices = 0;
    for (int64_t i = p * v->patch_rows; i < (p + 1) * v->patch_rows; i += HT_WARP) slices += cut_warp(store, i, c, NULL);
    if (slices > most) most = slices;
  }
  return most;
}

/* The least warps a block, among those that there are kernels for, that have a slice each, or a row a thread more. */
static int64_t room_of(int64_t slices) {
  if (slices > HT_WIDE_WARPS && slices <= HT_NARROW_WARPS) return HT_NARROW_WARPS;
  int64_t room = HT_WIDE_WARPS;
  while (room < slices) room *= 2;
  return room;
}

/* Whether slices end with ragged units where a patch has so many at most: not where each has a warp and those are many, which have the
 * fewest registers. */
static int may_be_ragged(int64_t slices) {
  return slices <= HT_WIDE_WARPS || (slices > HT_NARROW_WARPS && slices <= HT_RAGGED_SLICES_MOST);
}

/* Slices that save bytes, as far as no patch gets more warps or rows a thread than there are. */
static int64_t worth_of_a_slice(const ht_store *store, cut c) {
  int64_t slices = most_slices(store, c), most = slices > HT_NARROW_WARPS ? room_of(slices) : slices;
  if (!may_be_ragged(slices)) return 0;
  for (c.worth = WORTH_LEAST; c.worth <= WORTH_MOST; c.worth *= 2)
    if (most_slices(store, c) <= most) return c.worth;
  return 0;
}

/* A patch is multiplied when its longest slice is: rows much longer than the mean get more lanes, as far as no thread gets more rows. */
static cut choose_cut(const ht_store *store, const ht_csr_view *a) {
  static const double LONG = 1.5;
  cut c = {least_lanes_log2(store, a), LANE_UNITS, 0};
  if (!store->plan.patch_rows) return c;
  int64_t room = room_of(most_slices(store, c));
  int low = (int)ceil(LONG * (double)a->nnz / (double)a->n / (2 << c.least_log2));
  while (low < c.units) { /* fewer units a lane, more slices */
    int middle = (low + c.units) / 2;
    if (most_slices(store, (cut){c.least_log2, middle, 0}) <= room)
      c.units = middle;
    else
      low = middle + 1;
  }
  c.worth = worth_of_a_slice(store, c);
  return c;
}

static ht_status make_slices(ht_store *store, const ht_csr_view *a) {
  ht_store_view *v = &store->view;
  cut c = choose_cut(store, a);
  int threads = store->ctx->threads;
  int64_t warps = v->padded / HT_WARP, *first;
  HT_TRY(store->ctx, ht_allocate(store->ctx, warps + 1, sizeof *first, &first));
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t w = 0; w < warps; w++) first[w + 1] = cut_warp(store, w * HT_WARP, c, NULL);
  first[0] = 0;
  for (int64_t w = 0; w < warps; w++) first[w + 1] += first[w];
  v->slices = first[warps];
  ht_status status = ht_allocate(store->ctx, v->slices + 1, sizeof *store->rows->slice, &store->rows->slice);
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t w = 0; w < warps; w++)
    if (status == HT_OK) cut_warp(store, w * HT_WARP, c, store->rows->slice + first[w]);
  if (status == HT_OK) store->rows->slice[v->slices] = (ht_slice_info){.row = (int32_t)v->padded};
  ht_release(store->ctx, first);
  HT_TRY(store->ctx, status);
  return HT_OK;
}

/* ---- patches ---- */

enum { WORD = 64 };

/* Rows of other patches that the patch's rows touch, a bit each. */
static int64_t mark_halo(const ht_store *store, const ht_csr_view *a, int64_t patch, uint64_t *mark) {
  const ht_store_view *v = &store->view;
  int64_t begin = patch * v->patch_rows, end = begin + v->patch_rows, count = 0;
  memset(mark, 0, (size_t)(v->padded / WORD) * sizeof *mark);
  for (int64_t i = begin; i < end; i++) {
    int32_t row = store->rows->order[i];
    for (int64_t k = row < 0 ? 0 : a->row_start[row]; row >= 0 && k < a->row_start[row + 1]; k++) {
      int32_t c = store->rows->position[a->columns[k]];
      if (c < begin || c >= end) mark[c / WORD] |= (uint64_t)1 << c % WORD;
    }
  }
  for (int64_t w = 0; w < v->padded / WORD; w++) count += __builtin_popcountll(mark[w]);
  return count;
}

/* Their numbers, ascending. */
static void list_halo(const ht_store *store, const uint64_t *mark, int32_t *halo) {
  for (int64_t w = 0; w < store->view.padded / WORD; w++)
    for (uint64_t bits = mark[w]; bits; bits &= bits - 1) *halo++ = (int32_t)(w * WORD + __builtin_ctzll(bits));
}

/* Of a word of rows: whether any patch has them in its halo. */
static void mark_boundary(const uint64_t *marks, int64_t words, int64_t patches, int16_t *boundary) {
  uint64_t any = 0;
  for (int64_t p = 0; p < patches; p++) any |= marks[p * words];
  for (int k = 0; k < WORD; k++) boundary[k] = any >> k & 1;
}

static ht_status make_halos(ht_store *store, const ht_csr_view *a) {
  ht_store_view *v = &store->view;
  int64_t words = v->padded / WORD, total = 0;
  int threads = store->ctx->threads;
  uint64_t *marks;
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->patches + 1, sizeof *store->rows->halo_start, &store->rows->halo_start));
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->padded, sizeof *store->rows->boundary, &store->rows->boundary));
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->patches * words, sizeof *marks, &marks));
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t p = 0; p < v->patches; p++) store->rows->halo_start[p + 1] = (int32_t)mark_halo(store, a, p, marks + p * words);
  store->rows->halo_start[0] = 0;
  for (int64_t p = 0; p < v->patches; p++) {
    int64_t count = store->rows->halo_start[p + 1];
    if (count > store->rows->halo_most) store->rows->halo_most = count;
    store->rows->halo_start[p + 1] = (int32_t)(total += count); /* a patch's nonzeros at most, and all of them are fewer than 2^31 */
  }
  ht_status status = ht_allocate(store->ctx, total, sizeof *store->rows->halo, &store->rows->halo);
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t p = 0; p < v->patches; p++)
    if (status == HT_OK) list_halo(store, marks + p * words, store->rows->halo + store->rows->halo_start[p]);
#pragma omp parallel for schedule(static) num_threads(threads) if (v->padded > PARALLEL_FROM)
  for (int64_t w = 0; w < words; w++) mark_boundary(marks + w, words, v->patches, store->rows->boundary + w * WORD);
  ht_release(store->ctx, marks);
  HT_TRY(store->ctx, status);
  return HT_OK;
}

/* Where the persistent engine has room for each slice's ragged unit, beside its vectors and two that block-Jacobi takes. */
static int ragged_fit(const ht_store *store) {
  int64_t slices = store->rows->patch_slices_most, columns = 3 * store->plan.patch_rows + store->rows->halo_most;
  return may_be_ragged(slices) &&
         columns * 8 + slices * ht_cuda_unit_shared(HT_LEVEL_64) + HT_STATIC_SHARED + 64 <= store->cuda->shared_block_bytes;
}

static ht_status make_patches(ht_store *store, const ht_csr_view *a) {
  ht_store_view *v = &store->view;
  HT_TRY(store->ctx, ht_allocate(store->ctx, v->patches + 1, sizeof *store->rows->patch_slice, &store->rows->patch_slice));
  int64_t s = 0;
  for (int64_t p = 0; p < v->patches; p++) {
    store->rows->patch_slice[p] = (int32_t)s;
    while (s < v->slices && store->rows->slice[s].row < (p + 1) * v->patch_rows) s++;
    if (s - store->rows->patch_slice[p] > store->rows->patch_slices_most) store->rows->patch_slices_most = s - store->rows->patch_slice[p];
  }
  store->rows->patch_slice[v->patches] = (int32_t)s;
  HT_TRY(store->ctx, make_halos(store, a));
  v->ragged = ragged_fit(store);
  return HT_OK;
}

static void forget(ht_context *ctx, ht_arrangement *rows) {
  void *memory[] = {rows->order, rows->position, rows->start, rows->slice, rows->patch_slice, rows->halo_start, rows->halo, rows->boundary};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(ctx, memory[k]);
  *rows = (ht_arrangement){.users = rows->users, .ordering = rows->ordering};
}

void ht_cuda_arrangement_release(ht_context *ctx, void *arrangement) {
  ht_arrangement *rows = arrangement;
  if (!rows || --rows->users) return;
  forget(ctx, rows);
  ht_release(ctx, rows);
}

static ht_status arrange_as_planned(ht_store *store, const ht_csr_view *a, const int32_t *order) {
  ht_store_view *v = &store->view;
  int64_t rows = store->plan.patch_rows, unit = rows ? rows : HT_COLUMN_BLOCK;
  v->n = a->n;
  v->padded = (ht_cuda_padded(a->n, store->block) + unit - 1) / unit * unit;
  v->blocks = v->padded / HT_COLUMN_BLOCK;
  v->patch_rows = rows;
  v->patches = rows ? v->padded / rows : 0;
  v->ragged = 0;
  HT_TRY(store->ctx, make_order(store, a, order));
  HT_TRY(store->ctx, make_slices(store, a));
  if (v->patches) HT_TRY(store->ctx, make_patches(store, a));
  return HT_OK;
}

/* Half of the shared memory may go to the vectors of a patch. */
static int patches_fit(const ht_store *store) {
  int64_t columns = store->plan.patch_rows + store->rows->halo_most;
  return store->rows->patch_slices_most <= HT_PATCH_SLICES_MOST && columns <= 65535 && columns * 16 <= store->cuda->shared_block_bytes;
}

/* A pattern whose patches do not fit goes to the streaming engine: any order will do there. */
ht_status ht_cuda_store_arrange(ht_store *store, const ht_csr_view *a, const int32_t *order) {
  HT_TRY(store->ctx, arrange_as_planned(store, a, order));
  if (!store->plan.patch_rows || patches_fit(store)) return HT_OK;
  forget(store->ctx, store->rows);
  store->plan = (ht_store_plan){.engine = HT_STORE_ENGINE_STREAMING};
  return arrange_as_planned(store, a, order);
}
