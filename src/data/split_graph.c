/* The graph of a matrix by nodes of two or three unknowns. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "base/sum.h"
#include "data/split_internal.h"

enum { SAMPLES = 64, AHEAD = 8 /* rows that are prefetched */ };
static const double most_fill = 1.05; /* entries of whole nodes over true nonzeros */

/* Distinct columns / block of the node's rows, ascending, into out when not NULL. A merge of the rows. */
static inline int64_t merge_rows(const ht_csr_view *a, int64_t node, int32_t *out, const int block) {
  int64_t at[3], end[3], count = 0;
  for (int i = 0; i < block; i++) {
    at[i] = a->row_start[node * block + i];
    end[i] = a->row_start[node * block + i + 1];
  }
  for (;;) {
    int32_t least = INT32_MAX;
    for (int i = 0; i < block; i++)
      if (at[i] < end[i] && a->columns[at[i]] / block < least) least = a->columns[at[i]] / block;
    if (least == INT32_MAX) return count;
    for (int i = 0; i < block; i++)
      while (at[i] < end[i] && a->columns[at[i]] < (int64_t)(least + 1) * block) at[i]++;
    if (out) out[count] = least;
    count++;
  }
}

/* The same where the node's rows are alike and made of whole nodes, as most are: -1 where they are not. */
static inline int64_t whole_nodes(const ht_csr_view *a, int64_t node, int32_t *out, const int block) {
  int64_t begin = a->row_start[node * block], length = a->row_start[node * block + 1] - begin;
  const int32_t *columns = a->columns + begin;
  int32_t different = 0;
  for (int i = 1; i < block; i++)
    if (a->row_start[node * block + i + 1] - a->row_start[node * block + i] != length ||
        memcmp(columns, columns + i * length, (size_t)length * sizeof *columns))
      return -1;
  if (length % block != 0) return -1;
  for (int64_t k = 0; k < length; k += block) {
    for (int j = 1; j < block; j++) different |= columns[k + j] - columns[k] - j;
    different |= columns[k] % block;
    if (out) out[k / block] = columns[k] / block;
  }
  return different ? -1 : length / block;
}

static int64_t node_columns(const ht_csr_view *a, int block, int64_t node, int32_t *out) {
  int64_t count = block == 3 ? whole_nodes(a, node, out, 3) : whole_nodes(a, node, out, 2);
  if (count >= 0) return count;
  return block == 3 ? merge_rows(a, node, out, 3) : merge_rows(a, node, out, 2);
}

/* A look at some nodes: most matrices show at once that they have no node blocks. */
static int looks_blocked(const ht_csr_view *a, int block) {
  int64_t nodes = a->n / block, step = nodes / SAMPLES + 1, entries = 0, filled = 0;
  if (a->n % block != 0) return 0;
  for (int64_t node = 0; node < nodes; node += step) {
    entries += a->row_start[(node + 1) * block] - a->row_start[node * block];
    filled += node_columns(a, block, node, NULL) * block * block;
  }
  return (double)filled <= most_fill * (double)entries;
}

/* Whether so many whole nodes hold little else than nonzeros. */
static int is_nearly_full(const ht_csr_view *a, int block, int64_t entries) {
  return (double)(entries * block * block) <= most_fill * (double)a->nnz;
}

/* Number of entries of each node into start[1..]; returns whether the whole nodes are nearly full. */
static int count_columns(ht_context *ctx, const ht_csr_view *a, int block, int64_t nodes, int64_t *start) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > 20000)
  for (int64_t node = 0; node < nodes; node++) start[node + 1] = node_columns(a, block, node, NULL);
  ht_sum_counts(start, nodes, threads);
  return is_nearly_full(a, block, start[nodes]);
}

static ht_status build(ht_context *ctx, const ht_csr_view *a, int block, ht_node_graph *graph) {
  int64_t nodes = a->n / block, *start;
  int32_t *columns;
  int threads = ctx->threads;
  HT_TRY(ctx, ht_allocate(ctx, nodes + 1, sizeof *start, &start));
  if (!count_columns(ctx, a, block, nodes, start)) {
    ht_release(ctx, start);
    return HT_OK;
  }
  ht_status status = ht_allocate(ctx, start[nodes], sizeof *columns, &columns);
  if (status != HT_OK) {
    ht_release(ctx, start);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > 20000)
  for (int64_t node = 0; node < nodes; node++) node_columns(a, block, node, columns + start[node]);
  *graph = (ht_node_graph){block, nodes, start, columns, start, columns, 0};
  return HT_OK;
}

ht_status ht_node_graph_create(ht_context *ctx, const ht_csr_view *a, ht_node_graph *graph) {
  *graph = (ht_node_graph){1, a->n, a->row_start, a->columns, NULL, NULL, 0};
  for (int block = 3; block > 1 && graph->block == 1; block--)
    if (a->nnz > 0 && looks_blocked(a, block)) HT_TRY(ctx, build(ctx, a, block, graph));
  return HT_OK;
}

int ht_node_unknowns(ht_context *ctx, const ht_csr_view *a) {
  int threads = ctx->threads;
  for (int block = 3; block > 1; block--) {
    if (a->nnz == 0 || !looks_blocked(a, block)) continue;
    int64_t entries = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : entries) if (a->nnz > 20000)
    for (int64_t node = 0; node < a->n / block; node++) entries += node_columns(a, block, node, NULL);
    if (is_nearly_full(a, block, entries)) return block;
  }
  return 1;
}

void ht_node_graph_release(ht_context *ctx, ht_node_graph *graph) {
  ht_release(ctx, graph->own_start);
  ht_release(ctx, graph->own_columns);
}

ht_status ht_split_permute(ht_context *ctx, const ht_node_graph *g, const int32_t *order, const int32_t *inverse, ht_node_graph *permuted) {
  int64_t *start;
  int32_t *columns;
  int threads = ctx->threads;
  *permuted = (ht_node_graph){g->block, g->nodes, g->start, g->columns, NULL, NULL, 0};
  if (!order) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, g->nodes + 1, sizeof *start, &start));
  ht_status status = ht_allocate(ctx, g->start[g->nodes], sizeof *columns, &columns);
  if (status != HT_OK) {
    ht_release(ctx, start);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
#pragma omp parallel for schedule(static) num_threads(threads) if (g->nodes > 20000)
  for (int64_t i = 0; i < g->nodes; i++) start[i + 1] = g->start[order[i] + 1] - g->start[order[i]];
  ht_sum_counts(start, g->nodes, threads);
#pragma omp parallel for schedule(static) num_threads(threads) if (start[g->nodes] > 20000)
  for (int64_t i = 0; i < g->nodes; i++) {
    const int32_t *from = g->columns + g->start[order[i]];
    if (i + 2 * AHEAD < g->nodes) {
      __builtin_prefetch(g->start + order[i + 2 * AHEAD]);
      __builtin_prefetch(g->columns + g->start[order[i + AHEAD]]);
      __builtin_prefetch(g->columns + g->start[order[i + AHEAD] + 1] - 1);
    }
    for (int64_t k = 0; k < start[i + 1] - start[i]; k++) columns[start[i] + k] = inverse[from[k]];
  }
  *permuted = (ht_node_graph){g->block, g->nodes, start, columns, start, columns, 1};
  return HT_OK;
}
