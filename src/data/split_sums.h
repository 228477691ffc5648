/* Sums a column that chunks of tiles add to, in the order of the chunks whoever is done first: the same bits for any number of threads,
 * and no thread waits for its turn. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SPLIT_SUMS_H
#define HT_DATA_SPLIT_SUMS_H
#include <stdatomic.h>
#include "data/split_internal.h"

/* The columns of one chunk, from `low` on. */
typedef struct ht_sums_range {
  int64_t low, count;
} ht_sums_range;

typedef struct ht_sums {
  double *total; /* a pair a column: HT_LEVEL_16, HT_LEVEL_32 */
  int64_t columns, slots, width;
  double *part;           /* slots x width x levels: chunks not yet added; zero between them */
  ht_sums_range *range;   /* of each slot */
  _Atomic int64_t *ready; /* the chunk whose sums stand in the slot; -1: none's */
  _Atomic int64_t begun;  /* chunks handed out */
  _Atomic int64_t added;  /* chunks added */
  atomic_flag adding;
} ht_sums;

/* All zero. width: columns of the widest chunk. */
ht_status ht_sums_create(ht_context *ctx, int64_t columns, int64_t width, ht_sums *sums);
void ht_sums_release(ht_context *ctx, ht_sums *sums);
void ht_sums_reset(const ht_context *ctx, ht_sums *sums);

/* The next chunk's number, and where its sums go, a pair a column, its first column first. */
int64_t ht_sums_begin(ht_sums *sums, double **part);
/* Its sums stand: they are added as soon as those before are. When all threads are done all are added. */
void ht_sums_end(ht_sums *sums, int64_t chunk, ht_sums_range range);

#endif
