/* Values of one slice, scaled and in the order of the storage, and its indices. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_FILL_H
#define HT_DATA_SPLIT_FILL_H
#include "data/split_internal.h"
#include "data/split_values.h"

/* What all threads read. */
typedef struct ht_filling {
  ht_split_owner *s;
  const ht_csr_view *a;
  const ht_node_graph *graph, *solver_graph;
  const ht_split_codec *codec;
  const int16_t *exponent; /* of s_i, in solver order */
  const double *inverse;   /* 1 / s_i in solver order */
  int reach;               /* twice the largest |exponent|, at most 1022 */
} ht_filling;

/* Scratch of one thread: a slice's values by group and lane, not yet encoded; without node blocks the columns, too, from the window's
 * first, and of a run that of lane 0. */
typedef struct ht_filled {
  ht_place place;
  double *value;
  uint16_t *column, *run_column;
} ht_filled;

/* groups: the most that a slice has. */
ht_status ht_fill_create(ht_context *ctx, const ht_split_owner *s, int64_t groups, ht_filled *filled);
void ht_fill_release(ht_context *ctx, ht_filled *filled);

/* Slice `slice` of tile t, whose indices begin at `index`; returns its true nonzeros. *lossy is set when a scaled value does not give the
 * original back. */
int64_t ht_fill_slice(const ht_filling *w, const ht_tile *t, const ht_place_frame *frame, int64_t slice, int64_t index, ht_filled *filled,
                      int *lossy);

#endif
