/* Inside of the split storage's construction. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_INTERNAL_H
#define HT_DATA_SPLIT_INTERNAL_H
#include "data/split_place.h"

enum { HT_EXCEPTION_SHARE = 64 }; /* a tile of so many nonzeros may have one exception */

enum { HT_ELSEWHERE = 255 }; /* in the bytes of ht_split_owner.group: an entry of another window */

/* The columns (in nodes) a tile covers, beside its ht_tile. */
typedef struct ht_tile_range {
  int32_t low, high;
} ht_tile_range;

/* Everything the view points to, and what an update needs. */
typedef struct ht_split_owner {
  ht_split base;
  void *arrays; /* the memory of all that is as large as the values: one block has one end in small pages */
  ht_tile *tile;
  ht_tile_range *range;
  ht_slice *slice;
  uint16_t *index;
  uint8_t *exponent;
  int16_t *head, *mid;
  int32_t *tail;
  ht_exception *exception;
  int32_t *touched;
  int16_t *delta[HT_LEVEL_64];
  uint8_t *delta_exponent[HT_LEVEL_64];
  float *column_error[HT_LEVEL_64];
  int16_t *scale_exponent;
  int32_t *inverse; /* of node_order */
  int64_t capacity; /* of a placement */
  /* From the count to the values of a new split: the group of each entry of a tile's rows, of the slices that have them; or NULL. */
  uint8_t *group, *has_groups;
  int64_t *group_place; /* of each tile's first entry; -1: the tile has none */
  int32_t *listed;      /* and what each tile touches, with room to spare */
} ht_split_owner;

static inline int64_t ht_split_padded(int64_t n, int block) {
  int64_t unit = block == 3 ? 3 * HT_COLUMN_BLOCK : HT_COLUMN_BLOCK; /* whole column blocks and whole slices */
  return (n + unit - 1) / unit * unit;
}

/* Of the first entry of a node of the tile. */
static inline int64_t ht_split_group_place(const ht_split_owner *s, const ht_node_graph *solver_graph, const ht_tile *t, int64_t node) {
  return s->group_place[t - s->tile] + solver_graph->start[node] - solver_graph->start[t->row / solver_graph->block];
}

static inline ht_place_frame ht_split_frame(const ht_split_owner *s, const ht_node_graph *solver_graph, int64_t tile) {
  int whole = !s->tile[tile].accumulate && (tile + 1 == s->base.view.tiles || !s->tile[tile + 1].accumulate);
  int64_t padded_nodes = s->base.view.padded / s->base.view.block;
  return (ht_place_frame){solver_graph, NULL, NULL, padded_nodes, s->range[tile].low, s->range[tile].high, whole};
}

/* The graph in solver order: rows permuted, columns renumbered and left in the caller's sequence, so that entry k of a row is
 * still entry k. Done once, since every look-up of a renumbered column may miss the caches. Shares the arrays when natural. */
ht_status ht_split_permute(ht_context *ctx, const ht_node_graph *graph, const int32_t *order, const int32_t *inverse,
                           ht_node_graph *solver_graph);

/* One past the last unknown that a tile may read: a run goes up to HT_LANES - 1 nodes beyond its last entry. */
static inline int64_t ht_split_reach(const ht_split_view *view, const ht_tile_range *range) {
  int64_t end = ((int64_t)range->high + HT_LANES - 1) * view->block;
  return end < view->padded ? end : view->padded;
}

/* Column blocks that a tile may touch, at most. */
static inline int64_t ht_split_most_touched(const ht_split_owner *s, int64_t tile) {
  return (ht_split_reach(&s->base.view, &s->range[tile]) - s->tile[tile].window * s->base.view.block) / HT_COLUMN_BLOCK + 2;
}

/* split_layout.c: rows a tile when the caller does not say; tiles with their rows, windows and ranges; slices and counts of
 * each tile, placing every slice once. Graphs are in solver order. */
int64_t ht_split_tile_rows(const ht_csr_view *a, int block, int64_t asked);
ht_status ht_split_cut(ht_context *ctx, ht_split_owner *s, const ht_node_graph *graph, int64_t tile_rows);
ht_status ht_split_count(ht_context *ctx, ht_split_owner *s, const ht_node_graph *graph);

/* split_encode.c */
ht_status ht_split_encode(ht_split_owner *s, const ht_csr_view *a, const ht_node_graph *graph, const ht_node_graph *solver_graph);

#endif
