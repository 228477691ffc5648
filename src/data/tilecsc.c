/* Building the Tile-CSC storage. Tiles of a row block are numbered by ascending column block, so that a product adds the
 * terms of each row in column order whatever R is. SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc.h"
#include <math.h>
#include <string.h>
#include "base/convert.h"

enum { COLUMNS = HT_COLUMN_BLOCK, STARTS = HT_COLUMN_BLOCK + 1 };

/* A set of column blocks that is filled, walked in order and emptied again for each row block. */
typedef struct {
  uint64_t *word;
  int64_t low, high; /* words in use */
} block_set;

static inline void insert(block_set *set, int64_t block) {
  int64_t w = block / 64;
  set->word[w] |= 1ull << (block % 64);
  if (w < set->low) set->low = w;
  if (w >= set->high) set->high = w + 1;
}

static void insert_rows(block_set *set, const ht_matrix *a, int64_t first, int64_t last) {
  set->low = INT64_MAX;
  set->high = 0;
  for (int64_t k = a->row_start[first]; k < a->row_start[last]; k++) insert(set, a->columns[k] / COLUMNS);
}

/* The members in ascending order into `blocks` (or NULL), and the set is empty again. Returns their number. */
static int64_t take(block_set *set, int32_t *blocks) {
  int64_t count = 0;
  for (int64_t w = set->low; w < set->high; w++) {
    for (uint64_t bits = set->word[w]; bits; bits &= bits - 1) {
      if (blocks) blocks[count] = (int32_t)(64 * w + __builtin_ctzll(bits));
      count++;
    }
    set->word[w] = 0;
  }
  return count;
}

static int64_t block_end(int64_t n, int64_t row_block, int64_t rows) { return (row_block + 1) * rows < n ? (row_block + 1) * rows : n; }

/* Variance of the numbers of tiles over the row blocks, relative to their mean squared. */
static double unevenness(const ht_matrix *a, int64_t rows, block_set *set) {
  int64_t row_blocks = (a->n + rows - 1) / rows;
  double sum = 0, squares = 0;
  for (int64_t b = 0; b < row_blocks; b++) {
    insert_rows(set, a, b * rows, block_end(a->n, b, rows));
    double tiles = (double)take(set, NULL);
    sum += tiles;
    squares += tiles * tiles;
  }
  return sum > 0 ? squares * (double)row_blocks / (sum * sum) - 1 : 0;
}

/* Equally even heights: the greater has fewer tiles. */
static int32_t choose_rows(const ht_matrix *a, const ht_tilecsc_rows *rows_wanted, block_set *set) {
  int32_t best = HT_TILECSC_LEAST_ROWS;
  double least = INFINITY;
  for (int32_t rows = HT_TILECSC_LEAST_ROWS; rows <= rows_wanted->most; rows *= 2) {
    if ((a->n + rows - 1) / rows < rows_wanted->least_blocks) break;
    double found = unevenness(a, rows, set);
    if (found > least) continue;
    least = found;
    best = rows;
  }
  return best;
}

/* ---- pattern ---- */

/* tile_row_start and tile_column. */
static ht_status find_tiles(ht_tilecsc *t, const ht_matrix *a, block_set *set) {
  int64_t rows = t->view.rows_per_block, row_blocks = t->view.row_blocks;
  HT_TRY(t->ctx, ht_allocate(t->ctx, row_blocks + 1, sizeof *t->tile_row_start, &t->tile_row_start));
  t->tile_row_start[0] = 0;
  for (int64_t b = 0; b < row_blocks; b++) {
    insert_rows(set, a, b * rows, block_end(a->n, b, rows));
    t->tile_row_start[b + 1] = t->tile_row_start[b] + take(set, NULL);
  }
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->tile_row_start[row_blocks], sizeof *t->tile_column, &t->tile_column));
  for (int64_t b = 0; b < row_blocks; b++) {
    insert_rows(set, a, b * rows, block_end(a->n, b, rows));
    take(set, t->tile_column + t->tile_row_start[b]);
  }
  return HT_OK;
}

/* slot[column block] = tile, for the tiles of row block b. */
static void map_tiles(const ht_tilecsc *t, int64_t b, int64_t *slot) {
  for (int64_t tile = t->tile_row_start[b]; tile < t->tile_row_start[b + 1]; tile++) slot[t->tile_column[tile]] = tile;
}

/* Lengths of the columns, padded to even, become column_start and tile_entry. */
static void count_columns(ht_tilecsc *t, const ht_matrix *a, int64_t *slot) {
  int64_t rows = t->view.rows_per_block;
  for (int64_t b = 0; b < t->view.row_blocks; b++) {
    map_tiles(t, b, slot);
    for (int64_t k = a->row_start[b * rows]; k < a->row_start[block_end(a->n, b, rows)]; k++)
      t->column_start[slot[a->columns[k] / COLUMNS] * STARTS + a->columns[k] % COLUMNS + 1]++;
  }
  t->tile_entry[0] = 0;
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    uint32_t *start = t->column_start + tile * STARTS;
    for (int c = 0; c < COLUMNS; c++) start[c + 1] = start[c] + (start[c + 1] + 1) / 2 * 2;
    t->tile_entry[tile + 1] = t->tile_entry[tile] + start[COLUMNS];
  }
}

/* ---- values ---- */

/* Rows and FP64 values of the tiles; `next` counts what each column holds so far and is zero on entry and return. */
static void place_entries(ht_tilecsc *t, const ht_matrix *a, int64_t *slot, uint32_t *next) {
  int64_t rows = t->view.rows_per_block;
  for (int64_t e = 0; e < t->entries; e++) {
    t->row_index[e] = (uint16_t)rows;
    t->value_f64[e] = 0;
  }
  for (int64_t b = 0; b < t->view.row_blocks; b++) {
    int64_t first_tile = t->tile_row_start[b], tiles = t->tile_row_start[b + 1] - first_tile;
    map_tiles(t, b, slot);
    for (int64_t i = b * rows; i < block_end(a->n, b, rows); i++)
      for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
        int64_t tile = slot[a->columns[k] / COLUMNS];
        int c = a->columns[k] % COLUMNS;
        int64_t at = t->tile_entry[tile] + t->column_start[tile * STARTS + c] + next[(tile - first_tile) * COLUMNS + c]++;
        t->row_index[at] = (uint16_t)(i - b * rows);
        t->value_f64[at] = a->values[k];
      }
    memset(next, 0, (size_t)(tiles * COLUMNS) * sizeof *next);
  }
}

/* A power of two a column: that of its largest entry, over all row blocks. */
static void find_scales(ht_tilecsc *t) {
  double *scale = t->scale;
  memset(scale, 0, (size_t)(t->blocks * COLUMNS) * sizeof *scale);
  for (int64_t tile = 0; tile < t->view.tiles; tile++)
    for (int c = 0; c < COLUMNS; c++) {
      const uint32_t *start = t->column_start + tile * STARTS + c;
      double *largest = &scale[(int64_t)t->tile_column[tile] * COLUMNS + c];
      for (uint32_t e = start[0]; e < start[1]; e++) *largest = fmax(*largest, fabs(t->value_f64[t->tile_entry[tile] + e]));
    }
  for (int64_t j = 0; j < t->blocks * COLUMNS; j++) scale[j] = scalbn(1, scale[j] > 0 ? ilogb(scale[j]) : 0);
}

/* Narrow streams of entries begin..end-1, which share a column. error gets, for each level, the 2-norm of what rounding changed, divided by
 * the scale: no square of it can overflow. */
static void round_column(ht_tilecsc *t, int64_t begin, int64_t end, int exponent, double error[HT_LEVEL_64]) {
  double square_32 = 0, square_16 = 0;
  for (int64_t e = begin; e < end; e++) {
    double v = scalbn(t->value_f64[e], -exponent);
    t->value_f32[e] = ht_store_f32(v);
    t->value_bf16[e] = ht_store_bf16(v);
    double d32 = v - ht_load_f32(t->value_f32[e]), d16 = v - ht_load_bf16(t->value_bf16[e]);
    square_32 += d32 * d32;
    square_16 += d16 * d16;
  }
  error[HT_LEVEL_32] = sqrt(square_32);
  error[HT_LEVEL_16] = sqrt(square_16);
}

/* To float, upwards: it is used as a bound. */
static float round_up(double v) {
  float f = (float)v;
  return (double)f < v ? nextafterf(f, INFINITY) : f;
}

/* column: 64 numbers a column block for each level, zero on entry: the 2-norms over all row blocks. */
static void round_tiles(ht_tilecsc *t, double *column) {
  int64_t width = t->blocks * COLUMNS;
  for (int64_t tile = 0; tile < t->view.tiles; tile++)
    for (int c = 0; c < COLUMNS; c++) {
      const uint32_t *start = t->column_start + tile * STARTS + c;
      double error[HT_LEVEL_64];
      int exponent = ilogb(t->scale[(int64_t)t->tile_column[tile] * COLUMNS + c]);
      round_column(t, t->tile_entry[tile] + start[0], t->tile_entry[tile] + start[1], exponent, error);
      for (int level = 0; level < HT_LEVEL_64; level++) {
        double *sum = &column[level * width + (int64_t)t->tile_column[tile] * COLUMNS + c];
        *sum = hypot(*sum, scalbn(error[level], exponent));
      }
    }
  for (int level = 0; level < HT_LEVEL_64; level++)
    for (int64_t b = 0; b < t->blocks; b++) {
      double largest = 0;
      for (int c = 0; c < COLUMNS; c++) largest = fmax(largest, column[level * width + b * COLUMNS + c]);
      t->column_error[level][b] = round_up(largest);
    }
}

ht_status ht_tilecsc_update(ht_tilecsc *t, const ht_matrix *matrix) {
  ht_status status;
  int64_t *slot = NULL, most = 0;
  uint32_t *next = NULL;
  double *column = NULL;
  for (int64_t b = 0; b < t->view.row_blocks; b++)
    if (t->tile_row_start[b + 1] - t->tile_row_start[b] > most) most = t->tile_row_start[b + 1] - t->tile_row_start[b];
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->blocks, sizeof *slot, &slot), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, most * COLUMNS, sizeof *next, &next), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, HT_LEVEL_64 * t->blocks * COLUMNS, sizeof *column, &column), done);
  place_entries(t, matrix, slot, next);
  find_scales(t);
  round_tiles(t, column);
done:
  ht_release(t->ctx, column);
  ht_release(t->ctx, next);
  ht_release(t->ctx, slot);
  return status;
}

/* ---- objects ---- */

static ht_status build_pattern(ht_tilecsc *t, const ht_matrix *a, const ht_tilecsc_rows *rows) {
  block_set set = {NULL, 0, 0};
  int64_t *slot = NULL;
  ht_status status;
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->blocks / 64 + 1, sizeof *set.word, &set.word), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->blocks, sizeof *slot, &slot), done);
  t->view.rows_per_block = rows->asked ? rows->asked : choose_rows(a, rows, &set);
  t->view.row_blocks = (a->n + t->view.rows_per_block - 1) / t->view.rows_per_block;
  HT_TRY_GOTO(t->ctx, status, find_tiles(t, a, &set), done);
  t->view.tiles = t->tile_row_start[t->view.row_blocks];
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->view.tiles + 1, sizeof *t->tile_entry, &t->tile_entry), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->view.tiles * STARTS, sizeof *t->column_start, &t->column_start), done);
  count_columns(t, a, slot);
  t->entries = t->tile_entry[t->view.tiles];
done:
  ht_release(t->ctx, slot);
  ht_release(t->ctx, set.word);
  return status;
}

static ht_status allocate_values(ht_tilecsc *t) {
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->row_index, &t->row_index));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->value_f64, &t->value_f64));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->value_f32, &t->value_f32));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->value_bf16, &t->value_bf16));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof *t->scale, &t->scale));
  for (int level = 0; level < HT_LEVEL_64; level++) HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks, sizeof(float), &t->column_error[level]));
  return HT_OK;
}

ht_status ht_tilecsc_create(ht_context *ctx, const ht_matrix *matrix, const ht_tilecsc_rows *rows, ht_tilecsc **tilecsc) {
  ht_status status;
  ht_tilecsc *t;
  *tilecsc = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *t, &t));
  *t = (ht_tilecsc){.ctx = ctx, .nnz = matrix->nnz, .blocks = (matrix->n + COLUMNS - 1) / COLUMNS};
  HT_TRY_GOTO(ctx, status, build_pattern(t, matrix, rows), fail);
  HT_TRY_GOTO(ctx, status, allocate_values(t), fail);
  HT_TRY_GOTO(ctx, status, ht_tilecsc_update(t, matrix), fail);
  t->view = (ht_tilecsc_view){.n = matrix->n,
                              .row_blocks = t->view.row_blocks,
                              .tiles = t->view.tiles,
                              .rows_per_block = t->view.rows_per_block,
                              .tile_row_start = t->tile_row_start,
                              .tile_column = t->tile_column,
                              .tile_entry = t->tile_entry,
                              .column_start = t->column_start,
                              .row_index = t->row_index,
                              .scale = t->scale,
                              .value_f64 = t->value_f64,
                              .value_f32 = t->value_f32,
                              .value_bf16 = t->value_bf16};
  t->bytes =
      t->entries * (2 + 8 + 4 + 2) + t->view.tiles * (STARTS * 4 + 4 + 8) + t->blocks * COLUMNS * 8 + 8 + (t->view.row_blocks + 1) * 8;
  *tilecsc = t;
  return HT_OK;
fail:
  ht_tilecsc_destroy(t);
  return status;
}

void ht_tilecsc_destroy(ht_tilecsc *t) {
  if (!t) return;
  void *owned[] = {t->tile_row_start, t->tile_entry, t->tile_column, t->column_start,    t->row_index,      t->scale,
                   t->value_f64,      t->value_f32,  t->value_bf16,  t->column_error[0], t->column_error[1]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ht_release(t->ctx, owned[i]);
  ht_release(t->ctx, t);
}
