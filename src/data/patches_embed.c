/* Coordinates of a graph's nodes, by levels. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <stdlib.h>
#include <math.h>
#include <string.h>

enum { PIVOTS = 12, LEVELS = 8, HUB = 256 };
#ifndef PT
#define PT(name, d) (getenv(name) ? atoi(getenv(name)) : (d))
#endif

/* ---- coarsening ---- */

/* Gives each node the number of an aggregate: a node and its neighbours, where all of them are free; who is left over joins a neighbour's. */
static int64_t aggregate(const ht_node_graph *g, int32_t *owner) {
  int64_t count = 0;
  memset(owner, 255, (size_t)g->nodes * sizeof *owner);
  for (int64_t i = 0; i < g->nodes; i++) {
    int64_t begin = g->start[i], end = g->start[i + 1], k = begin;
    if (owner[i] >= 0 || end - begin > HUB) continue;
    while (k < end && owner[g->columns[k]] < 0) k++;
    if (k < end) continue;
    owner[i] = (int32_t)count;
    for (k = begin; k < end; k++) owner[g->columns[k]] = (int32_t)count;
    count++;
  }
  for (int64_t i = 0; i < g->nodes; i++) {
    int64_t k = g->start[i];
    if (owner[i] >= 0) continue;
    if (g->start[i + 1] - g->start[i] <= HUB)
      while (k < g->start[i + 1] && owner[g->columns[k]] < 0) k++;
    owner[i] = k < g->start[i + 1] && owner[g->columns[k]] >= 0 ? owner[g->columns[k]] : (int32_t)count++;
  }
  return count;
}

static ht_status coarsen(ht_context *ctx, const ht_node_graph *g, const int32_t *owner, int64_t count, ht_node_graph *coarse) {
  int64_t *start = NULL, *first = NULL, entries = 0;
  int32_t *member = NULL, *mark = NULL, *columns = NULL;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, count + 1, sizeof *start, &start), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, count + 2, sizeof *first, &first), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *member, &member), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, count, sizeof *mark, &mark), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->start[g->nodes], sizeof *columns, &columns), done);
  for (int64_t i = 0; i < g->nodes; i++) first[owner[i] + 2]++;
  for (int64_t c = 0; c < count; c++) first[c + 2] += first[c + 1];
  for (int64_t i = 0; i < g->nodes; i++) member[first[owner[i] + 1]++] = (int32_t)i;
  memset(mark, 255, (size_t)count * sizeof *mark);
  for (int64_t c = 0; c < count; c++) {
    start[c] = entries;
    mark[c] = (int32_t)c;
    for (int64_t m = first[c]; m < first[c + 1]; m++)
      for (int64_t k = g->start[member[m]]; k < g->start[member[m] + 1]; k++) {
        int32_t d = owner[g->columns[k]];
        columns[entries] = d;
        entries += mark[d] != c;
        mark[d] = (int32_t)c;
      }
  }
  start[count] = entries;
  *coarse = (ht_node_graph){.block = 1, .nodes = count, .start = start, .columns = columns, .own_start = start, .own_columns = columns};
  start = NULL;
  columns = NULL;
done:
  ht_release(ctx, start);
  ht_release(ctx, first);
  ht_release(ctx, member);
  ht_release(ctx, mark);
  ht_release(ctx, columns);
  return status;
}

/* ---- the coarsest graph: classical scaling of distances to pivots (Brandes and Pich 2007) ---- */

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

/* Directions of the largest variances, by the power method. */
static void principal(double gram[PIVOTS][PIVOTS], double axis[HT_AXES][PIVOTS]) {
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
    double scale = size > 0 ? 1 / sqrt(sqrt(size)) : 0;
    for (int k = 0; k < PIVOTS; k++) v[k] *= scale;
  }
}

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

static void smooth(const ht_node_graph *g, const ht_point *from, ht_point *to) {
  for (int64_t i = 0; i < g->nodes; i++) {
    int64_t begin = g->start[i], end = g->start[i + 1];
    float sum[HT_AXES] = {from[i].at[0], from[i].at[1], from[i].at[2]};
    if (end - begin > HUB) end = begin;
    for (int64_t k = begin; k < end; k++) {
      const ht_point *p = from + g->columns[k];
      for (int a = 0; a < HT_AXES; a++) sum[a] += p->at[a];
    }
    float inverse = 1.0F / (float)(end - begin + 1);
    for (int a = 0; a < HT_AXES; a++) to[i].at[a] = sum[a] * inverse;
  }
}

static ht_status embed(ht_context *ctx, const ht_node_graph *g, int64_t enough, ht_point *points, int depth) {
  ht_point *other = NULL;
  int32_t *owner = NULL;
  ht_node_graph coarse = {0};
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *other, &other), done);
  int64_t count = g->nodes;
  if (g->nodes > enough) {
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *owner, &owner), done);
    count = aggregate(g, owner);
  }
  if (count < g->nodes * 3 / 4) {
    HT_TRY_GOTO(ctx, status, coarsen(ctx, g, owner, count, &coarse), done);
    HT_TRY_GOTO(ctx, status, embed(ctx, &coarse, enough, other, depth + 1), done);
    for (int64_t i = 0; i < g->nodes; i++) memcpy(points[i].at, other[owner[i]].at, sizeof points[i].at);
  } else
    HT_TRY_GOTO(ctx, status, scale_distances(ctx, g, points), done);
  int sweeps = depth ? PT("CS", 2) : PT("FS", 2);
  for (int s = 0; s < sweeps; s++) {
    smooth(g, points, other);
    memcpy(points, other, (size_t)g->nodes * sizeof *points);
  }
done:
  ht_release(ctx, other);
  ht_release(ctx, owner);
  ht_node_graph_release(ctx, &coarse);
  return status;
}

ht_status ht_embed_graph(ht_context *ctx, const ht_csr_view *a, int64_t patches, ht_point *points) {
  const ht_node_graph g = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  HT_TRY(ctx, embed(ctx, &g, PT("EN", 64) * patches, points, 0));
  for (int64_t i = 0; i < a->n; i++) points[i].row = (int32_t)i;
  return HT_OK;
}
