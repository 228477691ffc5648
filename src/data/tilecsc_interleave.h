/* The order of a tile's entries for a warp that takes 32 of them at a time: see ht_tilecsc_view. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_TILECSC_INTERLEAVE_H
#define HT_DATA_TILECSC_INTERLEAVE_H
#include "backend/backend.h"

/* Workspace of one thread, zeroed by the caller before its first use. */
typedef struct ht_interleave_work {
  uint32_t *entry;   /* of the tile: those that are left */
  uint8_t *column;   /* of the tile's entries */
  int32_t *diagonal; /* rows + 64: where a diagonal's entries begin */
  int32_t *degree;   /* of a row: its entries that are left */
  int64_t *held;     /* of a row: the group that has it */
  uint32_t *first;   /* of a row: an entry before which none is left, in the order of work->entry; */
  uint32_t *next;    /* of an entry: the next one of its row; and */
  uint32_t *place;   /* its place in work->entry */
  int64_t group;     /* counted on from tile to tile, so that nothing has to be cleared */
} ht_interleave_work;

/* start: of the 65 columns' entries in CSC, in which row[e] is the row of entry e, of `rows` rows. Entry e goes to place[e], and index has
 * the tile's indices in the order of the places. Returns `meets` and `twins` of its head, the rest of which is zero. */
ht_tile_head ht_tilecsc_interleave(const uint32_t *start, const uint16_t *row, int rows, ht_interleave_work *work, uint32_t *place,
                                   uint16_t *index);

#endif
