/* The order of a tile's entries for a warp that takes its columns side by side: see ht_tilecsc_view. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef HT_DATA_TILECSC_INTERLEAVE_H
#define HT_DATA_TILECSC_INTERLEAVE_H
#include "backend/backend.h"

/* Workspace of one thread, zeroed by the caller before its first use: of the tile's entries, and of its rows. */
typedef struct ht_interleave_work {
  uint32_t *entry;
  int32_t *holder, *degree; /* degree: twice as many */
  int64_t *held, *seen;
  int64_t step, search; /* counted on from tile to tile, so that nothing has to be cleared */
} ht_interleave_work;

/* start: of the 65 columns' entries in CSC, in which row[e] is the row of entry e; `rows` is the row of padding. Entry e goes to place[e],
 * and row_index has the rows, with their marks, in the order of the places.. */
void ht_tilecsc_interleave(const uint32_t *start, const uint16_t *row, int rows, ht_interleave_work *work, uint32_t *place,
                           uint16_t *row_index);

#endif
