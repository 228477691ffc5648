/* Interleaved Tile-CSC, for a warp that takes 64 entries of a tile at a time, two a lane. The entries stand in any order, so that an index
 * tells the column too. Of 64 consecutive entries those at even places are read together, and those at odd places; they are of different
 * rows where that can be, and else all of them carry HT_TILECSC_MEETS and those of a row are neighbours. In a tile's first steps of 64 both
 * entries of a lane are of one row, whose sum is then read and written once. No column is padded; a tile's entries are made even in number
 * by a zero. Host code (C11) and device code (C++) compile this. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_TILES_H
#define HT_BACKEND_TILES_H
#include <stdint.h>

enum { HT_TILECSC_LANES = 32, HT_TILECSC_INTERLEAVED_ROWS = 512 /* most */, HT_TILECSC_MEETS = 0x200, HT_TILECSC_COLUMN_SHIFT = 10 };

/* Of an entry: its row in the row block and its column in the tile. */
static inline uint16_t ht_tilecsc_index(int row, int column, int meets) {
  return (uint16_t)(row | (meets ? HT_TILECSC_MEETS : 0) | column << HT_TILECSC_COLUMN_SHIFT);
}

/* What a product must know of a tile before its entries. */
typedef struct ht_tile_head {
  uint32_t pair, pairs; /* two entries each: the first, and how many */
  int32_t column;       /* block */
  uint8_t level;        /* FP64; an engine that decides keeps its own copy, with what is decided */
  uint8_t meets;        /* 0: no entries do; else 2 to this is at least the number of any that meet in a row */
  uint16_t twins;       /* steps of 64 entries, from the first on, whose lanes have two of a row each */
} ht_tile_head;

#endif
