/* The graph of a matrix by blocks of consecutive unknowns. SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "data/patches_internal.h"

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

ht_status ht_block_graph_create(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_node_graph *graph) {
  const ht_node_graph rows = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  int32_t *owner;
  HT_TRY(ctx, ht_allocate(ctx, a->n, sizeof *owner, &owner));
  for (int64_t i = 0; i < a->n; i++) owner[i] = (int32_t)(i / block);
  ht_status status = ht_patches_coarsen(ctx, &rows, owner, (a->n + block - 1) / block, graph);
  ht_release(ctx, owner);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  for (int64_t k = 0; k < graph->nodes; k++)
    qsort(graph->own_columns + graph->start[k], (size_t)(graph->start[k + 1] - graph->start[k]), sizeof(int32_t), by_number);
  return HT_OK;
}
