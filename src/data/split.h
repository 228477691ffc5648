/* The split storage: builds an ht_split_view from CSR. backend/backend.h says what the view holds.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_H
#define HT_DATA_SPLIT_H
#include "backend/backend.h"

/* The graph of the matrix by nodes of `block` consecutive unknowns; with block = 1 the CSR's own arrays. */
typedef struct ht_node_graph {
  int block;
  int64_t nodes;
  const int64_t *start;
  const int32_t *columns;
  int64_t *own_start; /* NULL when the arrays are the CSR's */
  int32_t *own_columns;
  int permuted; /* columns do not ascend */
} ht_node_graph;

/* Unknowns a node: 3 or 2 when nearly every node couples to whole nodes only, else 1. */
int ht_node_unknowns(ht_context *ctx, const ht_csr_view *a);
ht_status ht_node_graph_create(ht_context *ctx, const ht_csr_view *a, ht_node_graph *graph);
/* The graph of blocks of `block` consecutive unknowns each, whatever they couple to; the last one may be smaller. A block is not its own
 * neighbour; columns ascend. */
ht_status ht_block_graph_create(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_node_graph *graph);
void ht_node_graph_release(ht_context *ctx, ht_node_graph *graph);

typedef struct ht_split_options {
  int64_t tile_rows;    /* 0 chooses */
  int exactness_flags;  /* 0: every tile is taken to need all bits */
  const int32_t *order; /* of the nodes, order[new] = old, copied; NULL for the natural one */
} ht_split_options;

typedef struct ht_split {
  ht_context *ctx;
  ht_split_view view;
  int64_t bytes; /* stored: values, indices and everything else a product or a policy reads */
  /* Solver order to the caller's, by node and by unknown; NULL when natural. Rows may be sorted by length inside the tiles
   * on top of the order that was asked for. */
  int32_t *node_order, *order;
  int exactness_flags;
} ht_split;

/* Pattern analysis and values. */
ht_status ht_split_create(ht_context *ctx, const ht_csr_view *a, const ht_node_graph *graph, const ht_split_options *options,
                          ht_split **split);
/* New values on the same pattern: only the values, their scaling and what is measured of them change. */
ht_status ht_split_set_values(ht_split *split, const ht_csr_view *a, const ht_node_graph *graph);
void ht_split_destroy(ht_split *split); /* NULL is allowed */

/* What a product would read in a given order of the nodes, estimated on some of the tiles. */
typedef struct ht_split_cost {
  double bytes;   /* stored, a row */
  double x_lines; /* cache lines of x that a tile touches, a row */
} ht_split_cost;
ht_status ht_split_estimate(ht_context *ctx, const ht_node_graph *graph, const int32_t *order, ht_split_cost *cost);

/* What reading a tile at a level moves: values, indices, exponents, slices, corrections and exceptions. */
int64_t ht_split_tile_bytes(const ht_split_view *view, const ht_tile *tile, ht_level level);
/* Level of each tile: the highest its column blocks ask for (NULL: all bits), lowered to what is exact. */
void ht_split_tile_levels(const ht_split_view *view, const uint8_t *block_level, uint8_t *tile_level);

#endif
