/* Placement: which entries of a slice become run groups, and which are packed into gather groups.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_PLACE_H
#define HT_DATA_SPLIT_PLACE_H
#include "data/split.h"

/* Index 0..65535 of the window; runs may start HT_LANES - 1 before a column. */
enum { HT_WINDOW = 65536 - HT_LANES };

/* A diagonal of the slice. */
typedef struct ht_place_offset {
  int32_t base;         /* column of lane 0, from the slice's first node */
  int32_t run;          /* its group, or -1 */
  uint8_t lanes, count; /* bit l: lane l has an entry on it; how many have */
} ht_place_offset;

/* Of the hash table: the number of an offset, where the stamp is the slice's. */
typedef struct ht_place_slot {
  uint32_t stamp;
  int32_t offset;
} ht_place_slot;

/* A placement: lane l's entries are begin[l] and on, entry k of its node at begin[l] + k. Columns count from the first node. */
typedef struct ht_placement {
  int64_t begin[HT_LANES + 1];
  int64_t entries; /* placed */
  int32_t runs, gathers;
  int32_t *column;     /* of an entry, in solver order */
  int32_t *group;      /* where the entry goes, -1 for one of another window */
  int32_t *run_column; /* of lane 0, for each run */
} ht_placement;

enum { HT_PLACE_KEPT = 16 };

/* Scratch of one thread. */
typedef struct ht_place {
  const ht_placement *now;          /* of the slice last given to ht_place_slice */
  int64_t node;                     /* its first node */
  ht_placement own;                 /* found anew */
  ht_placement kept[HT_PLACE_KEPT]; /* found before: a mesh has few patterns that come again and again */
  uint32_t key[HT_PLACE_KEPT];      /* of the pattern that last came to the place of each */
  int32_t *memory;                  /* of the placements */
  ht_place_offset *offset;
  int32_t *candidate; /* offsets that may become runs */
  ht_place_slot *slot;
  int64_t slots; /* a power of two */
  uint32_t stamp;
  uint8_t *filter;       /* lanes that have an entry on one of the offsets that share a place */
  uint8_t lanes_of[256]; /* bits set in a byte */
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
/* Keep the groups of a placement, a byte an entry, to find it again; 0: it was not kept, since it has too many, or, of node blocks, is as
 * soon placed again as recalled. */
int ht_place_remember(const ht_place *place, int block, uint8_t *group);
void ht_place_recall(ht_place *place, const ht_place_frame *frame, int64_t node, const ht_slice *slice, const uint8_t *group);
/* Largest number of entries that eight consecutive nodes have in any order. */
int64_t ht_place_capacity(const ht_context *ctx, const ht_node_graph *graph);

/* Mark the column blocks that the slice reads, a byte each; seen[nowhere] may be set, too. Then list the marks between two unknowns into
 * out, which has room for all of these blocks, and clear them. */
void ht_place_mark(const ht_place *place, int block, uint8_t *seen, int64_t nowhere);
int64_t ht_place_list_marks(uint8_t *seen, int64_t low, int64_t high, int32_t *out);

static inline int64_t ht_old_node(const int32_t *order, int64_t node) { return order ? order[node] : node; }

#endif
