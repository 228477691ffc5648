/* The graph of a matrix by blocks of consecutive unknowns. SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include "base/sum.h"
#include "data/split.h"

enum { PARALLEL_FROM = 20000 };

/* The blocks that a row touches and those in `from`, each once and ascending, to `to`. Returns their number. */
static int64_t add_row(const ht_csr_view *a, int64_t block, int64_t row, const int32_t *from, int64_t count, int32_t *to) {
  int64_t e = a->row_start[row], end = a->row_start[row + 1], k = 0, length = 0;
  while (e < end) {
    int64_t touched = a->columns[e] / block, next = (touched + 1) * block;
    while (e < end && a->columns[e] < next) e++;
    while (k < count && from[k] < touched) to[length++] = from[k++];
    k += k < count && from[k] == touched;
    to[length++] = (int32_t)touched;
  }
  while (k < count) to[length++] = from[k++];
  return length;
}

/* The neighbours of a node into `out` where it is not NULL; `list` and `other` are work. */
static int64_t give_neighbours(const ht_csr_view *a, int64_t block, int64_t node, int32_t *list, int32_t *other, int32_t *out) {
  int64_t first = node * block, end = first + block < a->n ? first + block : a->n, count = 0, given = 0;
  for (int64_t row = first; row < end; row++) {
    count = add_row(a, block, row, list, count, other);
    int32_t *longer = other;
    other = list;
    list = longer;
  }
  for (int64_t k = 0; k < count; k++) {
    if (list[k] == node) continue;
    if (out) out[given] = list[k];
    given++;
  }
  return given;
}

/* Entries of the rows of a node, the most of all. */
static int64_t most_entries(const ht_csr_view *a, int64_t block, int64_t nodes, int threads) {
  int64_t most = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : most)
  for (int64_t k = 0; k < nodes; k++) {
    int64_t end = (k + 1) * block < a->n ? (k + 1) * block : a->n, entries = a->row_start[end] - a->row_start[k * block];
    if (entries > most) most = entries;
  }
  return most;
}

/* start[k + 1] becomes the number of node k's neighbours, or, with `columns`, they are written from start[k] on. */
static void pass(const ht_csr_view *a, int64_t block, ht_node_graph *graph, int32_t *columns, int32_t *work, int64_t room, int threads) {
#pragma omp parallel num_threads(threads)
  {
    int32_t *list = work + 2 * room * omp_get_thread_num();
#pragma omp for schedule(dynamic, 256)
    for (int64_t k = 0; k < graph->nodes; k++) {
      int32_t *out = columns ? columns + graph->own_start[k] : NULL;
      int64_t count = give_neighbours(a, block, k, list, list + room, out);
      if (!out) graph->own_start[k + 1] = count;
    }
  }
}

ht_status ht_block_graph_create(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_node_graph *graph) {
  int threads = a->nnz > PARALLEL_FROM ? ctx->threads : 1;
  int64_t nodes = (a->n + block - 1) / block, most = most_entries(a, block, nodes, threads), room = most < nodes ? most : nodes;
  int32_t *work = NULL;
  ht_status status;
  *graph = (ht_node_graph){.block = 1, .nodes = nodes};
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, 2 * room * threads, sizeof *work, &work), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, nodes + 1, sizeof *graph->own_start, &graph->own_start), done);
  pass(a, block, graph, NULL, work, room, threads);
  ht_sum_counts(graph->own_start, nodes, threads);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, graph->own_start[nodes], sizeof(int32_t), &graph->own_columns), done);
  pass(a, block, graph, graph->own_columns, work, room, threads);
  graph->start = graph->own_start;
  graph->columns = graph->own_columns;
done:
  if (status != HT_OK) {
    ht_node_graph_release(ctx, graph);
    *graph = (ht_node_graph){.block = 1};
  }
  ht_release(ctx, work);
  return status;
}
