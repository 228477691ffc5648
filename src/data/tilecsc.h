/* The EvoCG paper's storage: R x 64 tiles, CSC inside, three value streams. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_TILECSC_H
#define HT_DATA_TILECSC_H
#include "data/matrix.h"

enum { HT_TILECSC_LEAST_ROWS = 32, HT_TILECSC_MOST_ROWS = 16384 };

typedef struct ht_tilecsc {
  ht_context *ctx;
  ht_tilecsc_view view;                /* borrows the arrays below */
  int64_t nnz, entries, blocks, bytes; /* entries: padding included; blocks: column blocks */
  float *column_error[HT_LEVEL_64];    /* a column block: largest 2-norm of a column's storage error, rounded up */
  int64_t *tile_row_start, *tile_entry;
  int32_t *tile_column;
  uint32_t *column_start;
  uint32_t *place;    /* interleaved: of each entry in CSC order, inside the tile; else NULL */
  ht_tile_head *head; /* interleaved; else NULL */
  uint16_t *row_index;
  int16_t *exponent;
  double *scale, *value_f64;
  float *value_f32, *lack[HT_LEVEL_64];
  uint16_t *value_bf16;
} ht_tilecsc;

/* R: as asked for, or 0 to choose it: among 32, 64, ... up to most_rows with at least least_blocks row blocks, the one whose row blocks
 * have the most even numbers of tiles; where entries are interleaved, the least that needs no more than device_blocks row blocks, up to
 * most_rows. */
typedef struct ht_tilecsc_shape {
  int rows, most_rows;
  int64_t least_blocks, device_blocks;
  int interleaved;
  int column_sums; /* whether the levels below FP64 keep them: lack */
} ht_tilecsc_shape;

/* R where entries are interleaved. */
int32_t ht_tilecsc_interleaved_rows(int64_t n, const ht_tilecsc_shape *shape);
/* On the CPU products do not depend on R, to the bit. Errors: HT_NO_MEMORY. */
ht_status ht_tilecsc_create(ht_context *ctx, const ht_matrix *matrix, const ht_tilecsc_shape *shape, ht_tilecsc **tilecsc);
/* New values on the same pattern. */
ht_status ht_tilecsc_update(ht_tilecsc *tilecsc, const ht_matrix *matrix);
void ht_tilecsc_destroy(ht_tilecsc *tilecsc); /* NULL is allowed */

#endif
