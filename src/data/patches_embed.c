/* Coordinates of a graph's nodes, by levels. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <math.h>
#include <string.h>

enum { PIVOTS = 24, NODES_PER_PATCH = 48, PARALLEL_FROM = 20000 };
static const double least_share = 1e-10; /* of the first axis: an axis of less is rounding */

/* ---- the coarsest graph: classical scaling of distances to pivots (Brandes and Pich 2007) ---- */

/* Breadth-first distances from `root`; the components after its own are joined on, farther out. queue: a place a node. */
static void find_distances(const ht_node_graph *g, int32_t root, int32_t *distance, int32_t *queue) {
  int64_t head = 0, tail = 0, next = 0;
  memset(distance, 255, (size_t)g->nodes * sizeof *distance);
  for (int32_t start = root, base = 0; tail < g->nodes; start = (int32_t)next) {
    distance[start] = base;
    queue[tail++] = start;
    while (head < tail) {
      int32_t v = queue[head++];
      for (int64_t k = g->start[v]; k < g->start[v + 1]; k++) {
        int32_t w = g->columns[k];
        if (distance[w] >= 0) continue;
        distance[w] = distance[v] + 1;
        queue[tail++] = w;
      }
    }
    base = distance[queue[tail - 1]] + 1;
    while (next < g->nodes && distance[next] >= 0) next++;
  }
}

/* Directions of the largest variances, by the power method, scaled so that coordinates along them are distances. */
static void principal(double gram[PIVOTS][PIVOTS], double axis[HT_AXES][PIVOTS]) {
  double largest = 0;
  for (int a = 0; a < HT_AXES; a++) {
    double *v = axis[a], w[PIVOTS], size = 0;
    for (int k = 0; k < PIVOTS; k++) v[k] = 1.0 / (1 + k + a);
    for (int sweep = 0; sweep < 100; sweep++) {
      for (int j = 0; j < PIVOTS; j++) {
        w[j] = 0;
        for (int k = 0; k < PIVOTS; k++) w[j] += gram[j][k] * v[k];
      }
      size = 0;
      for (int j = 0; j < PIVOTS; j++) size += w[j] * w[j];
      size = sqrt(size);
      for (int j = 0; j < PIVOTS; j++) v[j] = size > 0 ? w[j] / size : 0;
    }
    for (int j = 0; j < PIVOTS; j++)
      for (int k = 0; k < PIVOTS; k++) gram[j][k] -= size * v[j] * v[k];
    if (a == 0) largest = size;
    double scale = size > least_share * largest ? 1 / sqrt(sqrt(size)) : 0;
    for (int k = 0; k < PIVOTS; k++) v[k] *= scale;
  }
}

/* Pivots: each as far from the ones before as can be. */
static ht_status scale_distances(ht_context *ctx, const ht_node_graph *g, ht_point *points) {
  int64_t n = g->nodes;
  int32_t *distance = NULL, *queue = NULL, *nearest = NULL;
  double(*centred)[PIVOTS] = NULL;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *distance, &distance), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *queue, &queue), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *nearest, &nearest), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *centred, &centred), done);
  find_distances(g, 0, distance, queue);
  int32_t pivot = queue[n - 1];
  for (int64_t i = 0; i < n; i++) nearest[i] = INT32_MAX;
  double all = 0, column[PIVOTS] = {0};
  for (int k = 0; k < PIVOTS; k++) {
    find_distances(g, pivot, distance, queue);
    nearest[pivot] = 0;
    for (int64_t i = 0; i < n; i++) {
      if (distance[i] < nearest[i]) nearest[i] = distance[i];
      if (nearest[i] > nearest[pivot]) pivot = (int32_t)i;
      centred[i][k] = -0.5 * distance[i] * distance[i];
      column[k] += centred[i][k];
    }
    column[k] /= (double)n;
    all += column[k] / PIVOTS;
  }
  double gram[PIVOTS][PIVOTS] = {{0}}, axis[HT_AXES][PIVOTS];
  for (int64_t i = 0; i < n; i++) {
    double mean = 0;
    for (int k = 0; k < PIVOTS; k++) mean += centred[i][k] / PIVOTS;
    for (int k = 0; k < PIVOTS; k++) centred[i][k] += all - mean - column[k];
    for (int j = 0; j < PIVOTS; j++)
      for (int k = 0; k < PIVOTS; k++) gram[j][k] += centred[i][j] * centred[i][k];
  }
  principal(gram, axis);
  for (int64_t i = 0; i < n; i++)
    for (int a = 0; a < HT_AXES; a++) {
      double sum = 0;
      for (int k = 0; k < PIVOTS; k++) sum += centred[i][k] * axis[a][k];
      points[i].at[a] = (float)sum;
    }
done:
  ht_release(ctx, distance);
  ht_release(ctx, queue);
  ht_release(ctx, nearest);
  ht_release(ctx, centred);
  return status;
}

/* ---- back to the finer graphs ---- */

/* A node goes to the mean of itself and its neighbours. owner: `from` are the points of the aggregates, or NULL. */
static inline __attribute__((always_inline)) void move_to_mean(const ht_node_graph *g, int64_t i, const int32_t *owner,
                                                               const ht_point *from, ht_point *to) {
  int32_t self = owner ? owner[i] : (int32_t)i, count = 1;
  const ht_point *p = from + (self < 0 ? HT_HUB_OF(self) : self);
  float sum[HT_AXES];
  memcpy(sum, p->at, sizeof sum);
  for (int64_t k = g->start[i]; self >= 0 && k < g->start[i + 1]; k++) {
    int32_t other = owner ? owner[g->columns[k]] : g->columns[k];
    if (other < 0) continue;
    for (int a = 0; a < HT_AXES; a++) sum[a] += from[other].at[a];
    count++;
  }
  for (int a = 0; a < HT_AXES; a++) to->at[a] = sum[a] / (float)count;
}

static void smooth(const ht_node_graph *g, const int32_t *owner, const ht_point *from, ht_point *to, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (g->nodes > PARALLEL_FROM)
  for (int64_t i = 0; i < g->nodes; i++) {
    if (owner)
      move_to_mean(g, i, owner, from, to + i);
    else
      move_to_mean(g, i, NULL, from, to + i);
  }
}

/* Coordinates from the coarser graph, which has far fewer nodes, as long as there are more than `enough`. */
static ht_status embed(ht_context *ctx, const ht_node_graph *g, int64_t enough, ht_point *points) {
  ht_point *other = NULL;
  int32_t *owner = NULL;
  ht_node_graph coarse = {0};
  int64_t count = g->nodes;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *other, &other), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *owner, &owner), done);
  if (g->nodes > enough) count = ht_patches_aggregate(g, owner);
  if (count < g->nodes / 4 * 3) {
    HT_TRY_GOTO(ctx, status, ht_patches_coarsen(ctx, g, owner, count, &coarse), done);
    HT_TRY_GOTO(ctx, status, embed(ctx, &coarse, enough, points), done);
    smooth(g, owner, points, other, ctx->threads);
  } else {
    HT_TRY_GOTO(ctx, status, scale_distances(ctx, g, points), done);
    smooth(g, NULL, points, other, ctx->threads);
  }
  smooth(g, NULL, other, points, ctx->threads);
done:
  ht_release(ctx, other);
  ht_release(ctx, owner);
  ht_node_graph_release(ctx, &coarse);
  return status;
}

ht_status ht_patches_embed(ht_context *ctx, const ht_csr_view *a, int64_t patches, ht_point *points) {
  const ht_node_graph g = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  HT_TRY(ctx, embed(ctx, &g, NODES_PER_PATCH * patches, points));
  for (int64_t i = 0; i < a->n; i++) points[i].row = (int32_t)i;
  return HT_OK;
}
