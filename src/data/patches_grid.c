/* Coordinates of a grid in natural order, read off the offsets of its stencil. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <stdlib.h>

enum {
  WIDEST = 1024,     /* entries of a row that can be a stencil */
  MOST_UNKNOWNS = 8, /* of one point */
  SAMPLES = 2048,    /* rows on which the grid is verified */
  PARALLEL_FROM = 8192,
  CHUNK = 4096, /* points that are placed at a time */
};

typedef struct grid {
  int64_t side[HT_AXES];  /* points along x, along y */
  int64_t unknowns;       /* rows of one point */
  int64_t reach[HT_AXES]; /* how far the stencil goes */
} grid;

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t total_offset(const ht_csr_view *a, int64_t row) {
  int64_t sum = 0;
  for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) sum += llabs(a->columns[k] - row);
  return sum;
}

/* The row of most entries among a few, the inside of the grid surely being there; of these the one with the nearest, so that no
 * neighbour is beyond a periodic boundary. */
static int64_t typical_row(const ht_csr_view *a) {
  int64_t best = a->n / 2, most = 0, least = INT64_MAX;
  for (int64_t k = 0; k < 64; k++) {
    int64_t i = a->n / 2 + (k % 2 ? k : -k) * (a->n / 160), entries = a->row_start[i + 1] - a->row_start[i];
    if (entries < most || entries > WIDEST || (entries == most && total_offset(a, i) >= least)) continue;
    best = i;
    most = entries;
    least = total_offset(a, i);
  }
  return best;
}

/* Whether `unknowns` consecutive rows are always one point: rows begin and end with whole points. */
static int has_unknowns(const ht_csr_view *a, int64_t unknowns) {
  int64_t step = a->n / SAMPLES + 1;
  if (a->n % unknowns) return 0;
  for (int64_t i = 0; i < a->n; i += step) {
    int64_t begin = a->row_start[i], end = a->row_start[i + 1];
    if (begin < end && (a->columns[begin] % unknowns || (a->columns[end - 1] + 1) % unknowns)) return 0;
  }
  return 1;
}

/* Offsets come in bundles: those up to the reach along an axis, then those around multiples of the side. Dividing by the side leaves the
 * offsets along the other axes. */
static void find_sides(const ht_csr_view *a, int64_t row, grid *g) {
  int64_t offset[WIDEST], count = 0;
  for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++)
    offset[count++] = llabs(a->columns[k] / g->unknowns - row / g->unknowns);
  for (int axis = 0; axis < HT_AXES; axis++) {
    qsort(offset, (size_t)count, sizeof *offset, ascending);
    int64_t k = 0, reach = 0;
    for (; k < count && offset[k] <= reach + 1; k++) reach = offset[k];
    g->reach[axis] = reach;
    g->side[axis] = INT32_MAX;
    if (k == count || axis == HT_AXES - 1) {
      for (int next = axis + 1; next < HT_AXES; next++) g->side[next] = INT32_MAX;
      return;
    }
    int64_t first = offset[k], last = first;
    for (; k < count && offset[k] <= first + 2 * reach; k++) last = offset[k];
    g->side[axis] = (first + last) / 2;
    for (k = 0; k < count; k++) offset[k] = (offset[k] + g->side[axis] / 2) / g->side[axis];
  }
}

static void locate(const grid *g, int64_t row, int64_t *at) {
  row /= g->unknowns;
  for (int axis = 0; axis < HT_AXES; axis++) {
    at[axis] = row % g->side[axis];
    row /= g->side[axis];
  }
}

/* Whether the rows of a sample touch only what lies within the stencil's reach, be it across a periodic boundary. */
static int verify(const ht_csr_view *a, const grid *g) {
  int64_t step = a->n / SAMPLES + 1, p[HT_AXES], q[HT_AXES], points[HT_AXES], left = a->n / g->unknowns;
  for (int axis = 0; axis < HT_AXES; axis++) {
    points[axis] = left < g->side[axis] ? left : g->side[axis];
    left = (left + g->side[axis] - 1) / g->side[axis];
  }
  for (int64_t i = 0; i < a->n; i += step) {
    locate(g, i, p);
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      locate(g, a->columns[k], q);
      for (int axis = 0; axis < HT_AXES; axis++) {
        int64_t distance = llabs(p[axis] - q[axis]);
        if (distance > g->reach[axis] && points[axis] - distance > g->reach[axis]) return 0;
      }
    }
  }
  return 1;
}

/* Whether the stencil is a star: what it reaches along one axis it does not reach along another. */
static int is_star(const ht_csr_view *a, int64_t row, const grid *g) {
  int64_t p[HT_AXES], q[HT_AXES];
  locate(g, row, p);
  for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
    float sum = 0;
    locate(g, a->columns[k], q);
    for (int axis = 0; axis < HT_AXES; axis++)
      if (g->reach[axis]) sum += (float)llabs(p[axis] - q[axis]) / (float)g->reach[axis];
    if (sum > 1.01F) return 0;
  }
  return 1;
}

/* A star steps over one plane oblique to the axes at a time, and such planes hold the fewest points: a diamond's halo is 0.71 of a
 * square's, and in space 0.63 of a cube's. */
static void turn(ht_point *point, int axes) {
  float x = point->at[0], y = point->at[1], z = point->at[2];
  if (axes == 2) {
    point->at[0] = x + y;
    point->at[1] = x - y;
  } else {
    point->at[0] = x + y + z;
    point->at[1] = x + y - z;
    point->at[2] = x - y + z;
  }
}

/* Coordinates of the rows from `begin` on, the first of a point. */
static void place_rows(const grid *g, int star, int64_t begin, int64_t end, ht_point *points) {
  int64_t at[HT_AXES];
  int axes = g->reach[2] ? 3 : 2;
  float unit[HT_AXES];
  for (int axis = 0; axis < HT_AXES; axis++) unit[axis] = 2.0F / (float)(g->reach[axis] + 1);
  locate(g, begin, at);
  for (int64_t i = begin; i < end; i++) {
    points[i].row = (int32_t)i;
    for (int axis = 0; axis < HT_AXES; axis++) points[i].at[axis] = (float)at[axis] * unit[axis];
    if (star) turn(points + i, axes);
    if ((i + 1) % g->unknowns) continue;
    for (int axis = 0; axis < HT_AXES && ++at[axis] == g->side[axis]; axis++) at[axis] = 0;
  }
}

int ht_patches_find_grid(const ht_context *ctx, const ht_csr_view *a, ht_point *points) {
  grid g = {.unknowns = 1};
  int64_t row = typical_row(a);
  if (a->row_start[row + 1] - a->row_start[row] > WIDEST) return 0;
  for (g.unknowns = MOST_UNKNOWNS; g.unknowns > 1 && !has_unknowns(a, g.unknowns);) g.unknowns--;
  find_sides(a, row, &g);
  if (!verify(a, &g)) return 0;
  int star = is_star(a, row, &g);
  int64_t chunk = CHUNK * g.unknowns;
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (a->n > PARALLEL_FROM)
  for (int64_t begin = 0; begin < a->n; begin += chunk) place_rows(&g, star, begin, begin + chunk < a->n ? begin + chunk : a->n, points);
  return 1;
}
