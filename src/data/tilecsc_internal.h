/* What the files of the Tile-CSC storage share. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_TILECSC_INTERNAL_H
#define HT_DATA_TILECSC_INTERNAL_H
#include "data/tilecsc.h"

enum { COLUMNS = HT_COLUMN_BLOCK, STARTS = HT_COLUMN_BLOCK + 1, PARALLEL_FROM = 20000 /* entries */ };

/* The row behind the last of a row block. */
static inline int64_t ht_tilecsc_block_end(int64_t n, int64_t row_block, int64_t rows) {
  return (row_block + 1) * rows < n ? (row_block + 1) * rows : n;
}

/* slot[column block] = tile, for the tiles of row block b. */
static inline void ht_tilecsc_map_tiles(const ht_tilecsc *t, int64_t b, int64_t *slot) {
  for (int64_t tile = t->tile_row_start[b]; tile < t->tile_row_start[b + 1]; tile++) slot[t->tile_column[tile]] = tile;
}

/* tilecsc_values.c: rows, in CSC order, or FP64 values where they are stored, of all entries: the other is NULL. Nothing is written where
 * there is no memory. */
ht_status ht_tilecsc_place(const ht_tilecsc *tilecsc, const ht_matrix *matrix, uint16_t *row_index, double *value);
/* tilecsc_interleave.c: place, head and row_index of all tiles. */
ht_status ht_tilecsc_interleave_all(ht_tilecsc *tilecsc, const ht_matrix *matrix);

#endif
