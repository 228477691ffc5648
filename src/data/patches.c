/* Compact patches of rows: coordinates, then bisection. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <string.h>

enum { BINS = 256, PARALLEL_FROM = 8192 };
static const float least_extent = 1e-30F; /* less is no distance, and its inverse might overflow */

typedef struct patcher {
  int64_t rows;
  ht_point *points, *scratch;
} patcher;

static int longest_axis(const ht_point *points, int64_t count, float *low, float *extent) {
  float least[HT_AXES], most[HT_AXES];
  for (int k = 0; k < HT_AXES; k++) least[k] = most[k] = points[0].at[k];
  for (int64_t i = 1; i < count; i++)
    for (int k = 0; k < HT_AXES; k++) {
      float c = points[i].at[k];
      least[k] = c < least[k] ? c : least[k];
      most[k] = c > most[k] ? c : most[k];
    }
  int best = 0;
  for (int k = 1; k < HT_AXES; k++)
    if (most[k] - least[k] > most[best] - least[best]) best = k;
  *low = least[best];
  *extent = most[best] - least[best];
  return best;
}

static inline int bin_of(const ht_point *point, int axis, float low, float scale) { return (int)((point->at[axis] - low) * scale); }

/* Puts the `left` points of the smallest coordinates along the longest axis first. The points around the cut, too many for one side and too
 * few for the other, are divided again along their own longest axis. */
static void divide(ht_point *points, ht_point *scratch, int64_t count, int64_t left) {
  while (left > 0 && left < count) {
    float low, extent;
    int axis = longest_axis(points, count, &low, &extent);
    if (extent < least_extent) return;
    float scale = (float)(BINS - 1) / extent;
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

/* Recursion as deep as log2 of the patches; the halves do not depend on each other. */
static void bisect(const patcher *p, int64_t begin, int64_t end) {
  int64_t patches = (end - begin + p->rows - 1) / p->rows;
  if (patches <= 1) return;
  int64_t left = patches / 2 * p->rows;
  divide(p->points + begin, p->scratch + begin, end - begin, left);
#pragma omp task if (end - begin > PARALLEL_FROM)
  bisect(p, begin, begin + left);
  bisect(p, begin + left, end);
}

/* Rows in their old order inside each patch. next: one a patch. */
static void sort_patches(const patcher *p, int64_t n, int32_t *patch, int64_t *next, int32_t *order) {
  for (int64_t i = 0, k = 0; i < n; i += p->rows, k++) {
    next[k] = i;
    for (int64_t j = i; j < n && j < i + p->rows; j++) patch[p->points[j].row] = (int32_t)k;
  }
  for (int64_t i = 0; i < n; i++) order[next[patch[i]]++] = (int32_t)i;
}

ht_status ht_order_patches(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order) {
  patcher p = {.rows = rows};
  int64_t patches = (a->n + rows - 1) / rows, *next = NULL;
  ht_status status = HT_OK;
  for (int64_t i = 0; i < a->n; i++) order[i] = (int32_t)i;
  if (patches <= 1) return HT_OK;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(ht_point), &p.points), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(ht_point), &p.scratch), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, patches, sizeof *next, &next), done);
  if (!ht_patches_find_grid(a, p.points)) HT_TRY_GOTO(ctx, status, ht_patches_embed(ctx, a, patches, p.points), done);
#pragma omp parallel num_threads(ctx->threads) if (ctx->threads > 1 && a->n > PARALLEL_FROM)
#pragma omp single
  bisect(&p, 0, a->n);
  sort_patches(&p, a->n, (int32_t *)p.scratch, next, order);
done:
  ht_release(ctx, p.points);
  ht_release(ctx, p.scratch);
  ht_release(ctx, next);
  return status;
}
