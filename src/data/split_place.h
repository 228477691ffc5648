/* Placement: which entries of a slice become run groups, and which are packed into gather groups.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_PLACE_H
#define HT_DATA_SPLIT_PLACE_H
#include "data/split.h"

/* Index 0..65535 of the window; runs may start HT_LANES - 1 before a column. */
enum { HT_WINDOW = 65536 - HT_LANES };

typedef struct ht_place_slot {
  int32_t offset; /* column of lane 0, may be negative */
  uint32_t stamp; /* slice that wrote it */
  int32_t run;    /* its group, or -1 */
  uint8_t lanes;  /* bit l: lane l has an entry at this offset */
  uint8_t count;
} ht_place_slot;

/* Scratch of one thread, and the placement of the slice last given to ht_place_slice. */
typedef struct ht_place {
  int64_t capacity, slot_capacity; /* entries a slice may have; slots, a power of two */
  int64_t begin[HT_LANES + 1];     /* lane l's entries in the arrays below; entry k of the node is begin[l] + k */
  int32_t *column;                 /* in solver order */
  int32_t *group;                  /* where the entry goes, -1 for one of another window */
  uint32_t *slot_of;
  ht_place_slot *slot;
  uint32_t *found; /* slots in use, in order of appearance */
  uint32_t stamp;
  int runs, gathers;
  int32_t *run_base; /* column of lane 0 of each run */
  int64_t entries;   /* placed */
} ht_place;

ht_status ht_place_create(ht_context *ctx, int64_t capacity, ht_place *place);
void ht_place_release(ht_context *ctx, ht_place *place);

/* Nodes in solver order, and the columns [low, high) that count. */
typedef struct ht_place_frame {
  const ht_node_graph *graph;
  const int32_t *order, *inverse; /* of the nodes, or NULL */
  int64_t padded_nodes;
  int32_t low, high;
} ht_place_frame;

void ht_place_slice(ht_place *place, const ht_place_frame *frame, int64_t node);
/* Largest number of entries that eight consecutive nodes have in any order. */
int64_t ht_place_capacity(const ht_node_graph *graph);

/* Mark the column blocks that the slice reads in a bit map; then list the marks between two unknowns into out (NULL: only
 * count them), and clear them. */
void ht_place_mark(const ht_place *place, int block, uint64_t *seen);
int64_t ht_place_list_marks(uint64_t *seen, int64_t low, int64_t high, int32_t *out);

static inline int64_t ht_old_node(const int32_t *order, int64_t node) { return order ? order[node] : node; }

#endif
