/* Values of one tile: encodings, and what is lost at the lower levels. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_VALUES_H
#define HT_DATA_SPLIT_VALUES_H
#include <math.h>
#include "base/convert.h"
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

/* v * 2^-shift; exact unless the result is below the normal range. `reach`: no |shift| is larger. */
static inline double ht_scale_down(double v, int shift, int reach, int *lossy) {
  uint64_t bits = ht_bits64(v);
  unsigned e = (unsigned)(bits >> 52 & 2047);
  if (e - 1u - (unsigned)reach < 2046u - 2u * (unsigned)reach) return ht_from_bits64(bits - ((uint64_t)(int64_t)shift << 52));
  if (v == 0) return 0;
  double scaled = ldexp(v, -shift);
  if (ldexp(scaled, shift) != v) *lossy = 1;
  return scaled;
}

/* What a slice's values are divided by: 1 / s_i of its rows, 1 / s_j from the window's first column on, their exponents, and the slice's
 * indices, which stand as the view has them. */
typedef struct ht_scaling {
  const double *own, *other;
  const int16_t *own_exponent, *exponent;
  const uint16_t *index;
  int64_t runs;
  int reach; /* as above */
} ht_scaling;

typedef struct ht_split_codec {
  /* Divide the values of a slice without node blocks; returns whether one does not give the original back. */
  int (*scale)(const ht_scaling *by, int64_t groups, double *values);
  /* Write `count` groups' values, the first of which is group `first` of the tile, in the tile's encoding: indices must stand.
   * Returns 0 when the encoding does not hold them. Exceptions are added to the tile's; `most` is how many it may have. */
  int (*encode_groups)(ht_split_owner *s, ht_tile *t, int64_t first, const ht_group *group, int64_t count, const double *values,
                       int64_t most, ht_bits_seen *seen);
  /* Add what levels 16 and 32 lose to the columns' sums of squares, a pair for each column from `low` on, and set the tile's delta16 and
   * delta32; group has all of the tile's. inverse: 1 / s_i in solver order, or NULL when all are the same. */
  void (*measure)(ht_split_owner *s, const ht_tile *t, const ht_group *group, const double *inverse, double *error2, int64_t low);
} ht_split_codec;

/* The quickest that this processor runs; all write the same bits. */
const ht_split_codec *ht_split_codec_best(void);
extern const ht_split_codec ht_split_codec_avx2;

#endif
