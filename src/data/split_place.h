/* Placement: which entries of a slice become run groups, and which are packed into gather groups.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_PLACE_H
#define HT_DATA_SPLIT_PLACE_H
#include "data/split.h"

/* Index 0..65535 of the window; runs may start HT_LANES - 1 before a column. */
enum { HT_WINDOW = 65536 - HT_LANES };

/* A diagonal of the slice. */
typedef struct ht_place_offset {
  int32_t base;  /* column of lane 0, may be negative */
  int32_t run;   /* its group, or -1 */
  uint8_t lanes; /* bit l: lane l has an entry on it */
} ht_place_offset;

/* Of the hash table: the number of an offset, where the stamp is the slice's. */
typedef struct ht_place_slot {
  uint32_t stamp;
  int32_t offset;
} ht_place_slot;

/* Scratch of one thread, and the placement of the slice last given to ht_place_slice. */
typedef struct ht_place {
  int64_t capacity, slot_capacity; /* entries a slice may have; slots, a power of two */
  int64_t begin[HT_LANES + 1];     /* lane l's entries in the arrays below; entry k of the node is begin[l] + k */
  int32_t *column, *previous;      /* in solver order; of the slice before */
  int32_t *group;                  /* where the entry goes, -1 for one of another window */
  ht_place_offset *offset;
  int32_t *candidate; /* offsets that may become runs */
  ht_place_slot *slot;
  uint32_t stamp;
  int runs, gathers;
  int32_t *run_base; /* column of lane 0 of each run */
  int64_t entries;   /* placed */
  int64_t node;      /* the slice, and whether the next one may be placed alike: -1 when not */
} ht_place;

ht_status ht_place_create(ht_context *ctx, int64_t capacity, ht_place *place);
void ht_place_release(ht_context *ctx, ht_place *place);

/* Nodes in solver order, and the columns [low, high) that count. */
typedef struct ht_place_frame {
  const ht_node_graph *graph;
  const int32_t *order, *inverse; /* of the nodes, or NULL */
  int64_t padded_nodes;
  int32_t low, high;
  int whole; /* every entry is within */
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
