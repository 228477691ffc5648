/* Values of one tile: encodings, and what is lost at the lower levels. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_VALUES_H
#define HT_DATA_SPLIT_VALUES_H
#include "data/split_internal.h"

/* A group of a tile: node of lane 0, and its index (or eight) in the view's index[]. */
typedef struct ht_group {
  int32_t node, gather;
  int64_t index;
} ht_group;

/* The scaled values of one tile in the order of the storage, before they are encoded. */
typedef struct ht_tile_values {
  double *value;
  ht_group *group;
  int64_t nonzeros;
} ht_tile_values;

static inline int64_t ht_group_column(const ht_split_view *view, const ht_tile *t, const ht_group *g, int lane) {
  return t->window + (g->gather ? view->index[g->index + lane] : view->index[g->index] + lane);
}

/* Choose the encoding, write the streams, and set t->encoding, t->exact and the exceptions. */
void ht_encode_tile(ht_split_owner *s, ht_tile *t, const ht_tile_values *v);

/* Add what levels 16 and 32 lose to the columns' sums of squares, error2[level][column - low], and set the tile's delta16.
 * scale: s_i in solver order, or NULL when all are the same. */
void ht_measure_tile(ht_split_owner *s, const ht_tile *t, const ht_tile_values *v, const double *scale, double *const *error2, int64_t low);

#endif
