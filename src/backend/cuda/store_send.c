/* The CSR travels by blocks of rows, so that the device never holds much of it: packed by all threads into one pinned buffer while the one
 * before it is copied, and the rows before that are worked on. The rows go as they lie in the CSR; the device sorts their columns.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/store_send.h"
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
  ENTRY_BYTES = 12,
  AHEAD = 8, /* rows whose entries are prefetched: they lie anywhere */
  LINE = 64,
  PART_ROWS = 128,   /* that a thread packs at a time */
  WINDOWS_LEAST = 8, /* full ones: kernels work while the next one comes */
  PARALLEL_FROM = 20000
};
static const int64_t WINDOW_LEAST = 1 << 20, WINDOW_MOST = 16 << 20, WHOLE_MOST = 24 << 20, KEPT_MOST = 32 << 20,
                     ALONE_MOST = 60 << 20; /* bytes */

static int64_t bytes_of(const ht_store *store, int64_t begin, int64_t end) {
  return ENTRY_BYTES * (store->rows->start[end] - store->rows->start[begin]) + 8 * (end - begin + 1);
}

/* The slices from `first` on that fit into so many bytes, one at least. */
static void choose_slices(const ht_store *store, int64_t first, int64_t room, ht_packet *p) {
  const ht_slice_info *slice = store->rows->slice;
  int64_t s = first + 1, most = store->view.slices, begin = slice[first].row;
  while (s < most) {
    int64_t middle = s + (most - s + 1) / 2;
    if (bytes_of(store, begin, slice[middle].row) <= room)
      s = middle;
    else
      most = middle - 1;
  }
  int64_t end = slice[s].row;
  p->first_slice = p->view.first_slice = first;
  p->slices = p->view.slices = s - first;
  p->row = begin;
  p->rows = end - begin;
  p->nnz = store->rows->start[end] - store->rows->start[begin];
}

/* ---- windows ---- */

static ht_status allocate_windows(ht_traffic *t) {
  ht_store *store = t->store;
  int64_t rows = 0, nnz = 0, all = store->rows->start[store->view.padded];
  ht_packet p = {.slices = 0};
  for (int64_t first = 0; first < store->view.slices; first += p.slices) {
    choose_slices(store, first, t->room, &p);
    if (p.rows > rows) rows = p.rows;
    if (p.nnz > nnz) nnz = p.nnz;
  }
  int two = p.slices < store->view.slices && t->source != HT_FROM_DEVICE,
      keeps = t->source == HT_FROM_HOST_TWICE && two && all * 4 <= KEPT_MOST;
  t->windows = two ? 2 : 1;
  ht_rows_view *w = t->window;
  const ht_cuda_part parts[] = {{(rows + 1) * 8, &w[0].start},       {nnz * 8, &w[0].values},       {nnz * 4, &w[0].columns},
                                {two * (rows + 1) * 8, &w[1].start}, {two * nnz * 8, &w[1].values}, {two * nnz * 4, &w[1].columns},
                                {keeps * all * 4, &t->kept}};
  HT_TRY(store->ctx, ht_cuda_allocate_parts(store->cuda, sizeof parts / sizeof *parts, parts));
  return HT_OK;
}

/* Bytes of a window. From the host: several full ones, so that kernels work while the next one comes. On the device nothing comes: as few
 * as there may be, so that the kernels fill it. */
static int64_t room_for(ht_source source, int64_t all) {
  if (source == HT_FROM_HOST_TWICE && all <= WHOLE_MOST) return INT64_MAX;
  if (source == HT_FROM_DEVICE) return all / ((all + ALONE_MOST - 1) / ALONE_MOST) + WINDOW_LEAST; /* even ones, and what slices leave */
  if (all / WINDOWS_LEAST < WINDOW_LEAST) return WINDOW_LEAST;
  return all / WINDOWS_LEAST < WINDOW_MOST ? all / WINDOWS_LEAST : WINDOW_MOST;
}

ht_status ht_traffic_begin(ht_store *store, const ht_csr_view *a, ht_source source, ht_traffic *t) {
  *t = (ht_traffic){.store = store, .a = a, .source = source, .room = room_for(source, bytes_of(store, 0, store->view.padded))};
  t->whole = t->room == INT64_MAX;
  HT_TRY(store->ctx, ht_cuda_copies(store->cuda));
  HT_TRY(store->ctx, allocate_windows(t));
  for (int w = 0; w < HT_WINDOWS; w++) HT_TRY(store->ctx, ht_cuda_mark(store->cuda, store->cuda->stream, &t->done[w]));
  return HT_OK;
}

void ht_traffic_end(ht_traffic *t) {
  ht_cuda *cuda = t->store->cuda;
  int entered = ht_cuda_enter(cuda);
  if (cuda->copies) cuda->driver->cuStreamSynchronize(cuda->copies); /* where an error came between, copies are on their way */
  for (int w = 0; w < HT_WINDOWS; w++) {
    if (t->arrived[w]) cuda->driver->cuEventDestroy(t->arrived[w]);
    if (t->done[w]) cuda->driver->cuEventDestroy(t->done[w]);
  }
  ht_cuda_leave(cuda, entered);
  ht_cuda_release(cuda, (void *)(uintptr_t)t->window[0].start); /* and what lies behind it */
}

/* ---- rows in solver order ---- */

static int by_key(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* A row that is too long for the device to sort, by its columns' place in solver order. 0: no memory for its keys (place, number). */
static int pack_sorted(const ht_store *store, const ht_csr_view *a, int32_t row, int32_t *columns, double *values) {
  const int32_t *from = a->columns + a->row_start[row];
  const double *from_values = a->values + a->row_start[row];
  int64_t count = a->row_start[row + 1] - a->row_start[row];
  uint64_t *keys;
  if (ht_allocate(store->ctx, count, sizeof *keys, &keys) != HT_OK) return 0;
  for (int64_t k = 0; k < count; k++) keys[k] = (uint64_t)(uint32_t)store->rows->position[from[k]] << 32 | (uint64_t)k;
  qsort(keys, (size_t)count, sizeof *keys, by_key);
  for (int64_t k = 0; k < count; k++) {
    if (columns) columns[k] = from[keys[k] & UINT32_MAX];
    if (values) values[k] = from_values[keys[k] & UINT32_MAX];
  }
  ht_release(store->ctx, keys);
  return 1;
}

static inline void prefetch_bytes(const void *from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += LINE) __builtin_prefetch((const char *)from + at);
}

static inline void prefetch_row(const ht_traffic *t, int64_t i, int64_t end, int columns, int values) {
  const int32_t *order = t->store->rows->order;
  const ht_csr_view *a = t->a;
  if (i + 2 * AHEAD < end && order[i + 2 * AHEAD] >= 0) __builtin_prefetch(a->row_start + order[i + 2 * AHEAD]);
  if (i + AHEAD >= end || order[i + AHEAD] < 0) return;
  int64_t begin = a->row_start[order[i + AHEAD]], count = a->row_start[order[i + AHEAD] + 1] - begin;
  if (count > HT_SORTED_MOST) return;
  if (columns) prefetch_bytes(a->columns + begin, count * 4);
  if (values) prefetch_bytes(a->values + begin, count * 8);
}

enum { PACKED, NO_ROOM, OTHER_PATTERN };

/* The rows from i on that lie one after the other in the CSR too, up to `end` and none of them long; *bad: one is not as long as it was. */
static int64_t run_of(const ht_traffic *t, int64_t i, int64_t end, int *bad) {
  const ht_arrangement *rows = t->store->rows;
  const int64_t *row_start = t->a->row_start;
  int64_t k = i;
  do {
    int64_t length = rows->start[k + 1] - rows->start[k];
    if (row_start[rows->order[k] + 1] - row_start[rows->order[k]] != length) *bad = 1;
    if (length > HT_SORTED_MOST) break;
    k++;
  } while (k < end && rows->order[k] == rows->order[k - 1] + 1);
  return k;
}

enum { SHORT_BYTES = 256, WORD = 16, SPARE = 4 /* entries that a word may reach beyond a run */ };

/* Past the caches: the copy engine reads what lies in them dirty at two thirds of the bus's speed. */
static void copy_past_caches(char *to, const char *from, size_t bytes) {
#ifdef __SSE2__
  size_t head = -(uintptr_t)to % LINE;
  if (head > bytes) head = bytes;
  memcpy(to, from, head);
  for (; bytes - head >= LINE; head += LINE)
    for (int k = 0; k < LINE; k += WORD)
      _mm_stream_si128((__m128i *)(void *)(to + head + k), _mm_loadu_si128((const __m128i *)(const void *)(from + head + k)));
  to += head, from += head, bytes -= head;
#endif
  memcpy(to, from, bytes);
}

/* Ahead of a copy that reads what was written past the caches. */
static void settle(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

/* Most runs are a row: a call for each takes longer than the copy. spare: what lies behind the run may be read and written. */
static inline void copy_run(void *to, const void *from, int64_t bytes, int spare) {
  if (bytes > SHORT_BYTES) {
    copy_past_caches(to, from, (size_t)bytes);
    return;
  }
  if (!spare) {
    memcpy(to, from, (size_t)bytes);
    return;
  }
  for (int64_t at = 0; at < bytes; at += WORD) memcpy((char *)to + at, (const char *)from + at, WORD);
}

/* Where rows are packed to: `values` and `columns` may be NULL. */
typedef struct pinned_rows {
  int64_t *start;
  double *values;
  int32_t *columns;
  int64_t row, end; /* the first, and behind the last */
} pinned_rows;

/* Rows from `begin` to `end`. */
static int pack_part(const ht_traffic *t, const pinned_rows *to, int64_t begin, int64_t end) {
  const ht_arrangement *rows = t->store->rows;
  int64_t first = rows->start[to->row], room = rows->start[end] - first;
  int32_t *columns = to->columns;
  double *values = to->values;
  const ht_csr_view *a = t->a;
  int bad = 0;
  memcpy(to->start + begin - to->row, rows->start + begin, (size_t)(end - begin + (end == to->end)) * sizeof *to->start);
  for (int64_t i = begin, next; i < end; i = next) {
    int32_t row = rows->order[i];
    int64_t at = rows->start[i] - first;
    next = i + 1;
    if (row < 0) continue;
    if (!rows->sorted) prefetch_row(t, i, end, columns != NULL, values != NULL);
    int64_t last = run_of(t, i, end, &bad);
    if (bad) return OTHER_PATTERN;
    if (last == i) {
      if (!pack_sorted(t->store, a, row, columns ? columns + at : NULL, values ? values + at : NULL)) return NO_ROOM;
      continue;
    }
    next = last;
    int64_t from = a->row_start[row], count = rows->start[last] - rows->start[i];
    int spare = at + count + SPARE <= room && from + count + SPARE <= a->nnz;
    if (columns) copy_run(columns + at, a->columns + from, count * 4, spare);
    if (values) copy_run(values + at, a->values + from, count * 8, spare);
  }
  settle();
  return PACKED;
}

static ht_status pack(const ht_traffic *t, const pinned_rows *to) {
  const ht_store *store = t->store;
  int64_t begin = to->row, end = to->end, count = store->rows->start[end] - store->rows->start[begin];
  int threads = store->ctx->threads, worst = PACKED;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : worst) if (count > PARALLEL_FROM)
  for (int64_t part = begin; part < end; part += PART_ROWS) {
    int result = pack_part(t, to, part, part + PART_ROWS < end ? part + PART_ROWS : end);
    if (result > worst) worst = result;
  }
  HT_CHECK(store->ctx, worst != NO_ROOM, HT_NO_MEMORY, "there is no memory to sort a long row");
  HT_CHECK(store->ctx, worst == PACKED, HT_INTERNAL, "the rows are not as long as those of the pattern that the store was made for");
  return HT_OK;
}

/* ---- on their way ---- */

/* The rows from `begin` on that fit into a staging buffer, one at least. */
static int64_t rows_of_a_buffer(const ht_store *store, int64_t begin, int64_t end) {
  int64_t low = begin + 1, high = end;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (bytes_of(store, begin, middle) <= HT_STAGING_BYTES)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* Columns go where they are kept, if they are, and are not sent again then. */
static ht_status send_piece(ht_traffic *t, const ht_packet *p, int64_t begin, int64_t end) {
  ht_store *store = t->store;
  const int64_t *start = store->rows->start;
  int64_t count = start[end] - start[begin], at = start[begin] - start[p->row];
  int with_columns = !t->kept || !t->with_values;
  int32_t *to_columns = t->kept ? t->kept + start[begin] : (int32_t *)(uintptr_t)p->view.columns + at;
  char *staged;
  HT_TRY(store->ctx, ht_cuda_stage(store->cuda, bytes_of(store, begin, end), &staged));
  ht_lap(store->ctx, HT_PHASE_waiting);
  int64_t rows = end - begin + 1;
  pinned_rows to = {.start = (int64_t *)(uintptr_t)staged, .row = begin, .end = end};
  if (t->with_values) to.values = (double *)(to.start + rows);
  if (with_columns) to.columns = (int32_t *)(to.start + rows + (to.values ? count : 0));
  HT_TRY(store->ctx, pack(t, &to));
  ht_lap(store->ctx, HT_PHASE_packing);
  CUstream stream = store->cuda->copies;
  HT_TRY(store->ctx, ht_cuda_copy_on(store->cuda, stream, rows * 8, to.start, (int64_t *)(uintptr_t)p->view.start + begin - p->row));
  if (to.columns) HT_TRY(store->ctx, ht_cuda_copy_on(store->cuda, stream, count * 4, to.columns, to_columns));
  if (to.values) HT_TRY(store->ctx, ht_cuda_copy_on(store->cuda, stream, count * 8, to.values, (double *)(uintptr_t)p->view.values + at));
  return ht_cuda_staged(store->cuda, stream);
}

/* Columns by their place in solver order: neighbours in a group then read neighbours in x. In the natural order they are as they are. */
static ht_status sort(const ht_traffic *t, ht_packet *p) {
  ht_store *store = t->store;
  const int32_t *from = t->kept ? t->kept + store->rows->start[p->row] : p->view.columns;
  ht_rows_view rows = p->view;
  if (!t->with_values) rows.values = NULL;
  if (store->rows->identity) {
    p->view.columns = from;
    return HT_OK;
  }
  return ht_cuda_launch(store->cuda, HT_KERNEL_store_sort, ht_cuda_over(p->rows * 8), HT_ARGS(&store->view, &rows, &p->rows, &from));
}

static ht_status take(ht_traffic *t, ht_packet *p) {
  ht_store *store = t->store;
  ht_taken_view from = {t->a->n, t->a->nnz, t->a->row_start, t->a->columns, t->a->values};
  HT_TRY(store->ctx, ht_cuda_send(store->cuda, (p->rows + 1) * 8, store->rows->start + p->row, (void *)(uintptr_t)p->view.start));
  HT_TRY(store->ctx, ht_cuda_launch(store->cuda, HT_KERNEL_take_rows, ht_cuda_over(p->rows * 8),
                                    HT_ARGS(&store->view, &from, &p->row, &p->rows, &p->view, &store->counts)));
  return sort(t, p);
}

static ht_status send(ht_traffic *t, ht_packet *p) {
  ht_store *store = t->store;
  ht_cuda *cuda = store->cuda;
  int64_t last = p->row + p->rows;
  HT_TRY(store->ctx, ht_cuda_wait(cuda, t->done[t->turn], cuda->copies));
  for (int64_t begin = p->row, end; begin < last; begin = end) {
    end = rows_of_a_buffer(store, begin, last);
    HT_TRY(store->ctx, send_piece(t, p, begin, end));
  }
  HT_TRY(store->ctx, ht_cuda_mark(cuda, cuda->copies, &t->arrived[t->turn]));
  HT_TRY(store->ctx, ht_cuda_wait(cuda, t->arrived[t->turn], cuda->stream));
  HT_TRY(store->ctx, sort(t, p));
  ht_lap(store->ctx, HT_PHASE_copying);
  return HT_OK;
}

void ht_traffic_pass(ht_traffic *t, int with_values) {
  t->sent = t->whole && t->passes++ > 0;
  t->with_values = with_values || t->whole;
  t->next = 0;
}

ht_status ht_traffic_next(ht_traffic *t, ht_packet *p) {
  ht_store *store = t->store;
  if (t->next > 0) HT_TRY(store->ctx, ht_cuda_mark(store->cuda, store->cuda->stream, &t->done[t->turn]));
  *p = (ht_packet){.slices = 0};
  if (t->next >= store->view.slices) return HT_OK;
  if (t->windows == 2) t->turn ^= 1;
  p->view = t->window[t->turn];
  choose_slices(store, t->next, t->room, p);
  t->next += p->slices;
  return t->sent ? HT_OK : t->source == HT_FROM_DEVICE ? take(t, p) : send(t, p);
}
