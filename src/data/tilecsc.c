/* Building the Tile-CSC storage. Tiles of a row block are numbered by ascending column block, so that a product adds the
 * terms of each row in column order whatever R is. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "data/tilecsc_internal.h"

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

/* Variance of the numbers of tiles over the row blocks, relative to their mean squared. */
static double unevenness(const ht_matrix *a, int64_t rows, block_set *set) {
  int64_t row_blocks = (a->n + rows - 1) / rows;
  double sum = 0, squares = 0;
  for (int64_t b = 0; b < row_blocks; b++) {
    insert_rows(set, a, b * rows, ht_tilecsc_block_end(a->n, b, rows));
    double tiles = (double)take(set, NULL);
    sum += tiles;
    squares += tiles * tiles;
  }
  return sum > 0 ? squares * (double)row_blocks / (sum * sum) - 1 : 0;
}

/* What a device holds at once: a row block more would be waited for by all. Fewer row blocks would leave it idle. */
int32_t ht_tilecsc_interleaved_rows(int64_t n, const ht_tilecsc_shape *shape) {
  enum { STEP = 16 };
  if (shape->rows) return shape->rows;
  int64_t blocks = shape->device_blocks, rows = ((n + blocks - 1) / blocks + STEP - 1) / STEP * STEP;
  return (int32_t)(rows < HT_TILECSC_LEAST_ROWS ? HT_TILECSC_LEAST_ROWS : rows < shape->most_rows ? rows : shape->most_rows);
}

/* Equally even heights: the greater has fewer tiles. */
static int32_t choose_rows(const ht_matrix *a, const ht_tilecsc_shape *shape, block_set *set) {
  int32_t best = HT_TILECSC_LEAST_ROWS;
  double least = INFINITY;
  for (int32_t rows = HT_TILECSC_LEAST_ROWS; rows <= shape->most_rows; rows *= 2) {
    if ((a->n + rows - 1) / rows < shape->least_blocks) break;
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
    insert_rows(set, a, b * rows, ht_tilecsc_block_end(a->n, b, rows));
    t->tile_row_start[b + 1] = t->tile_row_start[b] + take(set, NULL);
  }
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->tile_row_start[row_blocks], sizeof *t->tile_column, &t->tile_column));
  for (int64_t b = 0; b < row_blocks; b++) {
    insert_rows(set, a, b * rows, ht_tilecsc_block_end(a->n, b, rows));
    take(set, t->tile_column + t->tile_row_start[b]);
  }
  return HT_OK;
}

static uint32_t even(uint32_t count) { return (count + 1) / 2 * 2; }

/* Lengths of the columns become column_start and tile_entry: padded to even, or the tile as a whole where it is interleaved. */
static void count_columns(ht_tilecsc *t, const ht_matrix *a, int interleaved, int64_t *slot) {
  int64_t rows = t->view.rows_per_block;
  for (int64_t b = 0; b < t->view.row_blocks; b++) {
    ht_tilecsc_map_tiles(t, b, slot);
    for (int64_t k = a->row_start[b * rows]; k < a->row_start[ht_tilecsc_block_end(a->n, b, rows)]; k++)
      t->column_start[slot[a->columns[k] / COLUMNS] * STARTS + a->columns[k] % COLUMNS + 1]++;
  }
  t->tile_entry[0] = 0;
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    uint32_t *start = t->column_start + tile * STARTS;
    for (int c = 0; c < COLUMNS; c++) start[c + 1] = start[c] + (interleaved ? start[c + 1] : even(start[c + 1]));
    t->tile_entry[tile + 1] = t->tile_entry[tile] + even(start[COLUMNS]);
  }
}

/* ---- objects ---- */

static ht_status place_rows(ht_tilecsc *t, const ht_matrix *matrix, int interleaved) {
  if (interleaved) return ht_tilecsc_interleave_all(t, matrix);
  for (int64_t e = 0; e < t->entries; e++) t->row_index[e] = (uint16_t)t->view.rows_per_block;
  return ht_tilecsc_place(t, matrix, t->row_index, NULL);
}

static ht_status build_pattern(ht_tilecsc *t, const ht_matrix *a, const ht_tilecsc_shape *shape) {
  block_set set = {NULL, 0, 0};
  int64_t *slot = NULL;
  ht_status status;
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->blocks / 64 + 1, sizeof *set.word, &set.word), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->blocks, sizeof *slot, &slot), done);
  t->view.rows_per_block = shape->interleaved ? ht_tilecsc_interleaved_rows(a->n, shape)
                           : shape->rows      ? shape->rows
                                              : choose_rows(a, shape, &set);
  t->view.row_blocks = (a->n + t->view.rows_per_block - 1) / t->view.rows_per_block;
  HT_TRY_GOTO(t->ctx, status, find_tiles(t, a, &set), done);
  t->view.tiles = t->tile_row_start[t->view.row_blocks];
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->view.tiles + 1, sizeof *t->tile_entry, &t->tile_entry), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->view.tiles * STARTS, sizeof *t->column_start, &t->column_start), done);
  count_columns(t, a, shape->interleaved, slot);
  t->entries = t->tile_entry[t->view.tiles];
done:
  ht_release(t->ctx, slot);
  ht_release(t->ctx, set.word);
  return status;
}

/* Padding keeps the zeros that it begins with. */
static ht_status allocate_values(ht_tilecsc *t, int column_sums) {
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->row_index, &t->row_index));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_f64, &t->value_f64));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_f32, &t->value_f32));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_bf16, &t->value_bf16));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof *t->scale, &t->scale));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof *t->exponent, &t->exponent));
  for (int level = 0; level < HT_LEVEL_64 && column_sums; level++)
    HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof(float), &t->lack[level]));
  for (int level = 0; level < HT_LEVEL_64; level++) HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks, sizeof(float), &t->column_error[level]));
  return HT_OK;
}

static void describe(ht_tilecsc *t, int64_t n) {
  t->view = (ht_tilecsc_view){.n = n,
                              .row_blocks = t->view.row_blocks,
                              .tiles = t->view.tiles,
                              .rows_per_block = t->view.rows_per_block,
                              .tile_row_start = t->tile_row_start,
                              .tile_column = t->tile_column,
                              .tile_entry = t->tile_entry,
                              .column_start = t->column_start,
                              .head = t->head,
                              .row_index = t->row_index,
                              .scale = t->scale,
                              .exponent = t->exponent,
                              .lack = {t->lack[HT_LEVEL_16], t->lack[HT_LEVEL_32]},
                              .value_f64 = t->value_f64,
                              .value_f32 = t->value_f32,
                              .value_bf16 = t->value_bf16};
  int64_t tile = t->head ? (int64_t)sizeof *t->head : STARTS * 4 + 4 + 8, scale = (t->head ? 2 : 8) + (t->lack[HT_LEVEL_16] ? 8 : 0);
  t->bytes = t->entries * (2 + 8 + 4 + 2) + t->view.tiles * tile + t->blocks * COLUMNS * scale + 8 + (t->view.row_blocks + 1) * 8;
}

ht_status ht_tilecsc_create(ht_context *ctx, const ht_matrix *matrix, const ht_tilecsc_shape *shape, ht_tilecsc **tilecsc) {
  ht_status status;
  ht_tilecsc *t;
  *tilecsc = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *t, &t));
  *t = (ht_tilecsc){.ctx = ctx, .nnz = matrix->nnz, .blocks = (matrix->n + COLUMNS - 1) / COLUMNS};
  HT_TRY_GOTO(ctx, status, build_pattern(t, matrix, shape), fail);
  HT_TRY_GOTO(ctx, status, allocate_values(t, shape->column_sums), fail);
  HT_TRY_GOTO(ctx, status, place_rows(t, matrix, shape->interleaved), fail);
  HT_TRY_GOTO(ctx, status, ht_tilecsc_update(t, matrix), fail);
  describe(t, matrix->n);
  *tilecsc = t;
  return HT_OK;
fail:
  ht_tilecsc_destroy(t);
  return status;
}

void ht_tilecsc_destroy(ht_tilecsc *t) {
  if (!t) return;
  void *owned[] = {t->tile_row_start,  t->tile_entry,      t->tile_column, t->column_start, t->head,      t->place,
                   t->row_index,       t->scale,           t->exponent,    t->value_f64,    t->value_f32, t->value_bf16,
                   t->column_error[0], t->column_error[1], t->lack[0],     t->lack[1]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ht_release(t->ctx, owned[i]);
  ht_release(t->ctx, t);
}
