/* Compact patches of rows: coordinates, then bisection. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <stdlib.h>
#include <string.h>

enum {
  BINS = 256,
  PARALLEL_FROM = 8192,
  TOGETHER_FROM = 32768 /* points that all threads divide together */,
  MOST_PIECES = 64,
  LONG_MEANS = 2, /* that a long row is longer than, */
  LONG_LEAST = 16 /* and entries */
};
static const float least_extent = 1e-30F; /* less is no distance, and its inverse might overflow */

typedef struct patcher {
  int64_t rows;
  ht_point *points, *scratch;
  int threads;
  int64_t (*bins)[BINS + 1];              /* of each thread */
  int64_t piece[MOST_PIECES + 1], pieces; /* where the threads part; piece[k] to piece[k + 1] */
} patcher;

/* Smallest and largest coordinates. */
typedef struct extent {
  float least[HT_AXES], most[HT_AXES];
} extent;

static extent extent_of(const ht_point *points, int64_t count) {
  extent e;
  for (int k = 0; k < HT_AXES; k++) e.least[k] = e.most[k] = points[0].at[k];
  for (int64_t i = 1; i < count; i++)
    for (int k = 0; k < HT_AXES; k++) {
      float c = points[i].at[k];
      e.least[k] = c < e.least[k] ? c : e.least[k];
      e.most[k] = c > e.most[k] ? c : e.most[k];
    }
  return e;
}

static void widen(extent *e, const extent *by) {
  for (int k = 0; k < HT_AXES; k++) {
    e->least[k] = by->least[k] < e->least[k] ? by->least[k] : e->least[k];
    e->most[k] = by->most[k] > e->most[k] ? by->most[k] : e->most[k];
  }
}

static int longest_axis(const extent *e, float *low, float *length) {
  int best = 0;
  for (int k = 1; k < HT_AXES; k++)
    if (e->most[k] - e->least[k] > e->most[best] - e->least[best]) best = k;
  *low = e->least[best];
  *length = e->most[best] - e->least[best];
  return best;
}

static inline int bin_of(const ht_point *point, int axis, float low, float scale) { return (int)((point->at[axis] - low) * scale); }

/* Puts the `left` points of the smallest coordinates along the longest axis first. The points around the cut, too many for one side and too
 * few for the other, are divided again along their own longest axis. */
static void divide(ht_point *points, ht_point *scratch, int64_t count, int64_t left) {
  while (left > 0 && left < count) {
    float low, length;
    extent all = extent_of(points, count);
    int axis = longest_axis(&all, &low, &length);
    if (length < least_extent) return;
    float scale = (float)(BINS - 1) / length;
    int64_t bin[BINS + 1] = {0}, below = 0;
    for (int64_t i = 0; i < count; i++) bin[bin_of(points + i, axis, low, scale)]++;
    int cut = 0;
    while (below + bin[cut] <= left) below += bin[cut++];
    int64_t to[3] = {0, below, below + bin[cut]};
    for (int64_t i = 0; i < count; i++) {
      int b = bin_of(points + i, axis, low, scale);
      scratch[to[(b > cut) + (b >= cut)]++] = points[i];
    }
    memcpy(points, scratch, (size_t)count * sizeof *points);
    points += below;
    count = bin[cut];
    left -= below;
  }
}

/* ---- the first cuts: all threads at the same points ---- */

static int64_t part(const patcher *p, int64_t count, int thread) { return count * thread / p->threads; }

static extent find_extent(const patcher *p, const ht_point *points, int64_t count) {
  extent all = extent_of(points, 1);
#pragma omp parallel for schedule(static) num_threads(p->threads)
  for (int t = 0; t < p->threads; t++) {
    int64_t begin = part(p, count, t);
    extent own = extent_of(points + begin, part(p, count, t + 1) - begin);
#pragma omp critical(ht_patches_extent)
    widen(&all, &own);
  }
  return all;
}

/* Points on either side of the cut and in its bin, in their old order: each thread's after those of the ones before. Returns the bin's
 * number of points; *below: those before it. */
static int64_t partition(const patcher *p, int64_t begin, int64_t count, int64_t left, int axis, float low, float scale, int64_t *below) {
  ht_point *points = p->points + begin, *scratch = p->scratch + begin;
  int64_t sum[BINS + 1] = {0}, before[3] = {0};
#pragma omp parallel for schedule(static) num_threads(p->threads)
  for (int t = 0; t < p->threads; t++) {
    memset(p->bins[t], 0, sizeof p->bins[t]);
    for (int64_t i = part(p, count, t); i < part(p, count, t + 1); i++) p->bins[t][bin_of(points + i, axis, low, scale)]++;
  }
  for (int t = 0; t < p->threads; t++)
    for (int b = 0; b < BINS; b++) sum[b] += p->bins[t][b];
  int cut = 0;
  for (*below = 0; *below + sum[cut] <= left;) *below += sum[cut++];
  before[1] = *below;
  before[2] = *below + sum[cut];
  for (int t = 0; t < p->threads; t++) { /* the first three bins become the places of the thread's three kinds */
    int64_t kind[3] = {0};
    for (int b = 0; b < BINS; b++) kind[(b > cut) + (b >= cut)] += p->bins[t][b];
    for (int k = 0; k < 3; k++) {
      p->bins[t][k] = before[k];
      before[k] += kind[k];
    }
  }
#pragma omp parallel for schedule(static) num_threads(p->threads)
  for (int t = 0; t < p->threads; t++)
    for (int64_t i = part(p, count, t); i < part(p, count, t + 1); i++) {
      int b = bin_of(points + i, axis, low, scale);
      scratch[p->bins[t][(b > cut) + (b >= cut)]++] = points[i];
    }
#pragma omp parallel for schedule(static) num_threads(p->threads)
  for (int t = 0; t < p->threads; t++) {
    int64_t from = part(p, count, t);
    memcpy(points + from, scratch + from, (size_t)(part(p, count, t + 1) - from) * sizeof *points);
  }
  return sum[cut];
}

/* The same as divide, point for point. */
static void divide_together(const patcher *p, int64_t begin, int64_t count, int64_t left) {
  while (left > 0 && left < count) {
    if (count < TOGETHER_FROM) {
      divide(p->points + begin, p->scratch + begin, count, left);
      return;
    }
    float low, length;
    int64_t below;
    extent all = find_extent(p, p->points + begin, count);
    int axis = longest_axis(&all, &low, &length);
    if (length < least_extent) return;
    count = partition(p, begin, count, left, axis, low, (float)(BINS - 1) / length, &below);
    begin += below;
    left -= below;
  }
}

static int64_t left_half(const patcher *p, int64_t count) {
  int64_t patches = (count + p->rows - 1) / p->rows;
  return patches / 2 * p->rows;
}

/* Halves until there is a piece for every thread. */
static void cut_pieces(patcher *p, int64_t begin, int64_t end, int pieces) {
  int64_t left = left_half(p, end - begin);
  if (pieces <= 1 || left == 0 || end - begin < TOGETHER_FROM) {
    p->piece[p->pieces++] = begin;
    return;
  }
  divide_together(p, begin, end - begin, left);
  cut_pieces(p, begin, begin + left, pieces / 2);
  cut_pieces(p, begin + left, end, pieces / 2);
}

/* ---- the cuts inside a piece ---- */

/* Recursion as deep as log2 of the patches; the halves do not depend on each other. */
static void bisect(const patcher *p, int64_t begin, int64_t end) {
  int64_t left = left_half(p, end - begin);
  if (left == 0) return;
  divide(p->points + begin, p->scratch + begin, end - begin, left);
#pragma omp task if (end - begin > PARALLEL_FROM)
  bisect(p, begin, begin + left);
  bisect(p, begin + left, end);
}

static ht_status bisect_all(ht_context *ctx, patcher *p, int64_t n) {
  int pieces = 1;
  p->threads = n > PARALLEL_FROM ? ctx->threads : 1;
  while (pieces < p->threads && pieces < MOST_PIECES) pieces *= 2;
  HT_TRY(ctx, ht_allocate(ctx, p->threads, sizeof *p->bins, &p->bins));
  cut_pieces(p, 0, n, pieces);
  p->piece[p->pieces] = n;
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
#pragma omp single
  for (int64_t k = 0; k < p->pieces; k++)
#pragma omp task if (p->pieces > 1)
    bisect(p, p->piece[k], p->piece[k + 1]);
  ht_release(ctx, p->bins);
  return HT_OK;
}

/* ---- the order ---- */

/* Rows in their old order inside each patch: counted by every thread among rows of its own. patch: one a row. */
static ht_status sort_patches(ht_context *ctx, const patcher *p, int64_t n, int32_t *patch, int32_t *order) {
  int64_t patches = (n + p->rows - 1) / p->rows, *next, sum = 0;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, patches * p->threads, sizeof *next, &next));
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)
  for (int64_t i = 0; i < n; i++) patch[p->points[i].row] = (int32_t)(i / p->rows);
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)
  for (int t = 0; t < p->threads; t++)
    for (int64_t i = part(p, n, t); i < part(p, n, t + 1); i++) next[t * patches + patch[i]]++;
  for (int64_t k = 0; k < patches; k++)
    for (int t = 0; t < p->threads; t++) {
      int64_t count = next[t * patches + k];
      next[t * patches + k] = sum;
      sum += count;
    }
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)
  for (int t = 0; t < p->threads; t++)
    for (int64_t i = part(p, n, t); i < part(p, n, t + 1); i++) order[next[t * patches + patch[i]]++] = (int32_t)i;
  ht_release(ctx, next);
  return HT_OK;
}

/* ---- rows that are much longer than the others ---- */

typedef struct long_row {
  int64_t length, place;
} long_row;

static int64_t length_of(const ht_csr_view *a, int32_t row) { return a->row_start[row + 1] - a->row_start[row]; }

static int longest_first(const void *a, const void *b) {
  const long_row *x = a, *y = b;
  return x->length != y->length ? (x->length < y->length) - (x->length > y->length) : (x->place > y->place) - (x->place < y->place);
}

static int by_row(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static int is_long(const ht_csr_view *a, int32_t row) {
  int64_t length = length_of(a, row);
  return length > LONG_LEAST && length > LONG_MEANS * a->nnz / a->n;
}

static int64_t count_long_rows(const ht_csr_view *a, int threads) {
  int64_t count = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : count) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++) count += is_long(a, (int32_t)i);
  return count;
}

static void find_long_rows(const ht_csr_view *a, const int32_t *order, long_row *found) {
  for (int64_t i = 0; i < a->n; i++)
    if (is_long(a, order[i])) *found++ = (long_row){length_of(a, order[i]), i};
}

static int64_t lightest(const int64_t *weight, int64_t patches) {
  int64_t at = 0;
  for (int64_t k = 1; k < patches; k++)
    if (weight[k] < weight[at]) at = k;
  return at;
}

/* A patch's next row that is not long, at next[k]; or -1. */
static int64_t next_short(const ht_csr_view *a, int64_t rows, const int32_t *order, int64_t patch, int64_t *next) {
  int64_t end = (patch + 1) * rows < a->n ? (patch + 1) * rows : a->n, at = patch * rows + next[patch];
  while (at < end && is_long(a, order[at])) at++;
  next[patch] = at + 1 - patch * rows;
  return at < end ? at : -1;
}

/* Nonzeros of each patch; those that are missing in the last one count as the mean. Whether one has far more than the mean. */
static int weigh(const ht_csr_view *a, int64_t rows, int64_t patches, const int32_t *order, int64_t *weight) {
  int64_t mean = a->nnz / a->n, most = 0;
  for (int64_t i = 0; i < patches * rows; i++) weight[i / rows] += i < a->n ? length_of(a, order[i]) : mean;
  for (int64_t k = 0; k < patches; k++) most = weight[k] > most ? weight[k] : most;
  return 2 * most > 3 * rows * mean;
}

/* One after the other, the longest first: a row stays where that makes its patch little heavier than the lightest, which else takes it in
 * exchange for a row that is not long. */
static void deal(const ht_csr_view *a, int64_t rows, const long_row *found, int64_t count, int64_t *weight, int64_t *next, int32_t *order) {
  int64_t patches = (a->n + rows - 1) / rows, mean = a->nnz / a->n, little = rows * mean / 32;
  for (int64_t k = 0; k < count; k++) weight[found[k].place / rows] += mean - found[k].length;
  for (int64_t k = 0; k < count; k++) {
    int64_t from = found[k].place, home = from / rows, to = lightest(weight, patches), place = from;
    if (weight[home] <= weight[to] + little) to = home;
    if (to != home) place = next_short(a, rows, order, to, next);
    weight[to] += found[k].length - mean;
    if (place < 0) continue;
    int32_t row = order[from];
    order[from] = order[place];
    order[place] = row;
  }
}

static void sort_rows(int64_t n, int64_t rows, int32_t *order) {
  for (int64_t begin = 0; begin < n; begin += rows)
    qsort(order + begin, (size_t)(n - begin < rows ? n - begin : rows), sizeof *order, by_row);
}

/* A patch has the neighbours of its rows in its halo: one that has many long rows keeps the others waiting. Where patches are alike all the
 * same, long rows stay among their neighbours. */
static ht_status spread_long_rows(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order) {
  int64_t patches = (a->n + rows - 1) / rows, count = count_long_rows(a, ctx->threads), *weight = NULL;
  long_row *found = NULL;
  ht_status status;
  if (!count) return HT_OK;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, count, sizeof *found, &found), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, 2 * patches, sizeof *weight, &weight), done);
  if (!weigh(a, rows, patches, order, weight)) goto done;
  find_long_rows(a, order, found);
  qsort(found, (size_t)count, sizeof *found, longest_first);
  deal(a, rows, found, count, weight, weight + patches, order);
  sort_rows(a->n, rows, order);
done:
  ht_release(ctx, found);
  ht_release(ctx, weight);
  return status;
}

ht_status ht_order_patches(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order) {
  patcher p = {.rows = rows};
  ht_status status = HT_OK;
  if (a->n <= rows) {
    for (int64_t i = 0; i < a->n; i++) order[i] = (int32_t)i;
    return HT_OK;
  }
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(ht_point), &p.points), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(ht_point), &p.scratch), done);
  if (!ht_patches_find_grid(ctx, a, p.points)) HT_TRY_GOTO(ctx, status, ht_patches_embed(ctx, a, (a->n + rows - 1) / rows, p.points), done);
  HT_TRY_GOTO(ctx, status, bisect_all(ctx, &p, a->n), done);
  HT_TRY_GOTO(ctx, status, sort_patches(ctx, &p, a->n, (int32_t *)p.scratch, order), done);
  HT_TRY_GOTO(ctx, status, spread_long_rows(ctx, a, rows, order), done);
done:
  ht_release(ctx, p.points);
  ht_release(ctx, p.scratch);
  return status;
}
