/* Values of the Tile-CSC storage: placed, scaled and rounded. SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/convert.h"
#include "data/tilecsc_internal.h"

/* Where entry e of a tile in CSC order is stored. */
static int64_t place_of(const ht_tilecsc *t, int64_t tile, uint32_t e) {
  int64_t first = t->tile_entry[tile];
  return first + (t->place ? t->place[first + e] : e);
}

/* Rows, in CSC order, or FP64 values of the tiles of row block b: the other is NULL. `next` counts what each column holds so far and is
 * zero on entry and return. */
static void place_entries(const ht_tilecsc *t, const ht_matrix *a, int64_t b, int64_t *slot, uint32_t *next, uint16_t *row_index,
                          double *value) {
  int64_t rows = t->view.rows_per_block, first_tile = t->tile_row_start[b], tiles = t->tile_row_start[b + 1] - first_tile;
  ht_tilecsc_map_tiles(t, b, slot);
  for (int64_t i = b * rows; i < ht_tilecsc_block_end(a->n, b, rows); i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int64_t tile = slot[a->columns[k] / COLUMNS];
      int c = a->columns[k] % COLUMNS;
      uint32_t e = t->column_start[tile * STARTS + c] + next[(tile - first_tile) * COLUMNS + c]++;
      if (row_index) row_index[t->tile_entry[tile] + e] = (uint16_t)(i - b * rows);
      if (value) value[place_of(t, tile, e)] = a->values[k];
    }
  memset(next, 0, (size_t)(tiles * COLUMNS) * sizeof *next);
}

static int64_t most_tiles(const ht_tilecsc *t) {
  int64_t most = 0;
  for (int64_t b = 0; b < t->view.row_blocks; b++)
    if (t->tile_row_start[b + 1] - t->tile_row_start[b] > most) most = t->tile_row_start[b + 1] - t->tile_row_start[b];
  return most;
}

/* With a workspace a thread. */
ht_status ht_tilecsc_place(const ht_tilecsc *t, const ht_matrix *matrix, uint16_t *row_index, double *value) {
  ht_status status;
  int64_t *slot = NULL, columns = most_tiles(t) * COLUMNS;
  uint32_t *next = NULL;
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->ctx->threads * t->blocks, sizeof *slot, &slot), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->ctx->threads * columns, sizeof *next, &next), done);
#pragma omp parallel for schedule(dynamic, 4) num_threads(t->ctx->threads) if (t->entries > PARALLEL_FROM)
  for (int64_t b = 0; b < t->view.row_blocks; b++) {
    int thread = omp_get_thread_num();
    place_entries(t, matrix, b, slot + thread * t->blocks, next + thread * columns, row_index, value);
  }
done:
  ht_release(t->ctx, next);
  ht_release(t->ctx, slot);
  return status;
}

/* The tiles of each column block, in ascending order: those of block b from first[b] on. */
typedef struct tile_lists {
  int64_t *first, *tile;
} tile_lists;

static ht_status list_tiles(const ht_tilecsc *t, tile_lists *list) {
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->blocks + 2, sizeof *list->first, &list->first));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->view.tiles, sizeof *list->tile, &list->tile));
  for (int64_t k = 0; k < t->view.tiles; k++) list->first[t->tile_column[k] + 2]++;
  for (int64_t b = 2; b <= t->blocks; b++) list->first[b + 1] += list->first[b];
  for (int64_t k = 0; k < t->view.tiles; k++) list->tile[list->first[t->tile_column[k] + 1]++] = k;
  return HT_OK;
}

/* A power of two a column: that of its largest entry, over all row blocks. */
static void find_scales(ht_tilecsc *t, const tile_lists *list, int64_t block) {
  for (int c = 0; c < COLUMNS; c++) {
    double largest = 0;
    for (int64_t k = list->first[block]; k < list->first[block + 1]; k++) {
      const uint32_t *start = t->column_start + list->tile[k] * STARTS + c;
      for (uint32_t e = start[0]; e < start[1]; e++) largest = fmax(largest, fabs(t->value_f64[place_of(t, list->tile[k], e)]));
    }
    int exponent = largest > 0 ? ilogb(largest) : 0;
    if (exponent < DBL_MIN_EXP - 1) exponent = DBL_MIN_EXP - 1; /* a scale has all its bits */
    t->exponent[block * COLUMNS + c] = (int16_t)exponent;
    t->scale[block * COLUMNS + c] = scalbn(1, exponent);
  }
}

/* Narrow streams of a tile's entries begin..end-1 in CSC order, which share a column. error gets, for each level, the 2-norm of what
 * rounding changed, divided by the scale: no square of it can overflow. What it takes from the sum, divided by it too, is added to lack. */
static void round_column(ht_tilecsc *t, int64_t tile, uint32_t begin, uint32_t end, int exponent, double error[HT_LEVEL_64],
                         double lack[HT_LEVEL_64]) {
  double square_32 = 0, square_16 = 0;
  for (uint32_t k = begin; k < end; k++) {
    int64_t e = place_of(t, tile, k);
    double v = scalbn(t->value_f64[e], -exponent);
    t->value_f32[e] = ht_store_f32(v);
    t->value_bf16[e] = ht_store_bf16(v);
    double d32 = v - ht_load_f32(t->value_f32[e]), d16 = v - ht_load_bf16(t->value_bf16[e]);
    square_32 += d32 * d32;
    square_16 += d16 * d16;
    lack[HT_LEVEL_32] += d32;
    lack[HT_LEVEL_16] += d16;
  }
  error[HT_LEVEL_32] = sqrt(square_32);
  error[HT_LEVEL_16] = sqrt(square_16);
}

/* To float, upwards: it is used as a bound. */
static float round_up(double v) {
  float f = (float)v;
  return (double)f < v ? nextafterf(f, INFINITY) : f;
}

/* What a level lacks of a column's sum is kept where it is wanted, and is part of the error then. */
static void keep_lack(ht_tilecsc *t, int level, int64_t column, double lack, double *norm) {
  if (!t->lack[level]) return;
  t->lack[level][column] = (float)lack;
  *norm += scalbn(fabs(lack), t->exponent[column]);
}

/* The tiles of a column block; of its columns' errors, 2-norms over all row blocks, the largest is kept. */
static void round_block(ht_tilecsc *t, const tile_lists *list, int64_t block) {
  double largest[HT_LEVEL_64] = {0};
  for (int c = 0; c < COLUMNS; c++) {
    double norm[HT_LEVEL_64] = {0}, error[HT_LEVEL_64], lack[HT_LEVEL_64] = {0};
    int exponent = t->exponent[block * COLUMNS + c];
    for (int64_t k = list->first[block]; k < list->first[block + 1]; k++) {
      const uint32_t *start = t->column_start + list->tile[k] * STARTS + c;
      round_column(t, list->tile[k], start[0], start[1], exponent, error, lack);
      for (int level = 0; level < HT_LEVEL_64; level++) norm[level] = hypot(norm[level], scalbn(error[level], exponent));
    }
    for (int level = 0; level < HT_LEVEL_64; level++) {
      keep_lack(t, level, block * COLUMNS + c, lack[level], &norm[level]);
      largest[level] = fmax(largest[level], norm[level]);
    }
  }
  for (int level = 0; level < HT_LEVEL_64; level++) t->column_error[level][block] = round_up(largest[level]);
}

/* Scales, narrow streams and errors. */
static void round_values(ht_tilecsc *t, const tile_lists *list) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(t->ctx->threads) if (t->entries > PARALLEL_FROM)
  for (int64_t b = 0; b < t->blocks; b++) {
    find_scales(t, list, b);
    round_block(t, list, b);
  }
}

/* Nothing changes where there is no memory. */
ht_status ht_tilecsc_update(ht_tilecsc *t, const ht_matrix *matrix) {
  ht_status status;
  tile_lists list = {NULL, NULL};
  HT_TRY_GOTO(t->ctx, status, list_tiles(t, &list), done);
  HT_TRY_GOTO(t->ctx, status, ht_tilecsc_place(t, matrix, NULL, t->value_f64), done);
  round_values(t, &list);
done:
  ht_release(t->ctx, list.tile);
  ht_release(t->ctx, list.first);
  return status;
}
