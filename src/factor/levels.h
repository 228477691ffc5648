/* Level sets of a lower triangle: the rows of a set depend on earlier sets only, so triangular solves and incomplete
 * factorisations may take them side by side. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_FACTOR_LEVELS_H
#define HT_FACTOR_LEVELS_H
#include "base/context.h"

/* Rows are renumbered set by set, in their old order within a set: each set is a range of rows, and the new numbering is
 * again one in which every row depends on smaller ones. Taken backwards the same sets serve the transposed solve.
 * A stage is one set wide enough to share among threads, or a run of narrow ones that one thread takes. */
typedef struct ht_levels {
  int64_t n, levels, stages;
  int32_t *order;       /* order[new] = old */
  int32_t *position;    /* position[old] = new */
  int64_t *stage_begin; /* stages + 1 rows */
  uint8_t *wide;        /* stages */
  int useful_threads;   /* more would wait for each other longer than they work */
  int cores;            /* that the process may use */
} ht_levels;

/* Of the entries left of the diagonal of a CSR pattern; the rest is ignored. */
ht_status ht_levels_create(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, ht_levels *levels);
void ht_levels_destroy(ht_context *ctx, ht_levels *levels);

/* Call fn for all rows, set by set, each set cut into pieces of as many entries (row_start, in the new numbering) that
 * threads take side by side. Backwards the sets come in opposite order, and fn must take its rows from last-1 down. */
typedef void (*ht_levels_fn)(void *user, int piece, int64_t first, int64_t last);
void ht_levels_forward(const ht_levels *levels, const int64_t *row_start, int threads, ht_levels_fn fn, void *user);
void ht_levels_backward(const ht_levels *levels, const int64_t *row_start, int threads, ht_levels_fn fn, void *user);

#endif
