/* Values of one tile: encodings, and what is lost at the lower levels. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_VALUES_H
#define HT_DATA_SPLIT_VALUES_H
#include "data/split_internal.h"

/* A group of a tile: node of lane 0, and its index (or eight) in the view's index[]. */
typedef struct ht_group {
  int32_t node, gather;
  int64_t index;
} ht_group;

static inline int64_t ht_group_column(const ht_split_view *view, const ht_tile *t, const ht_group *g, int lane) {
  return t->window + (g->gather ? view->index[g->index + lane] : view->index[g->index] + lane);
}

/* Bits that the parts of the values written so far have set: what shows at which level they are exact. */
typedef struct ht_bits_seen {
  int32_t mid, tail;
} ht_bits_seen;

typedef struct ht_split_codec {
  /* Write `count` groups' values, the first of which is group `first` of the tile, in the tile's encoding: indices must stand.
   * Returns 0 when the encoding does not hold them. Exceptions are added to the tile's; `most` is how many it may have. */
  int (*encode_groups)(ht_split_owner *s, ht_tile *t, int64_t first, const ht_group *group, int64_t count, const double *values,
                       int64_t most, ht_bits_seen *seen);
  /* Add what levels 16 and 32 lose to the columns' sums of squares, error2[level][column - low], and set the tile's delta16;
   * group has all of the tile's. scale: s_i in solver order, or NULL when all are the same. */
  void (*measure)(ht_split_owner *s, const ht_tile *t, const ht_group *group, const double *scale, double *const *error2, int64_t low);
} ht_split_codec;

/* The quickest that this processor runs; all write the same bits. */
const ht_split_codec *ht_split_codec_best(void);
extern const ht_split_codec ht_split_codec_avx2;

#endif
