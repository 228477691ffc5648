/* Building the Tile-CSC storage. Tiles of a row block are numbered by ascending column block, so that a product adds the
 * terms of each row in column order whatever R is. SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc.h"
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/convert.h"
#include "data/tilecsc_interleave.h"

enum { COLUMNS = HT_COLUMN_BLOCK, STARTS = HT_COLUMN_BLOCK + 1, PARALLEL_FROM = 20000 /* entries */ };

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

/* Equally even heights: the greater has fewer tiles. That alone counts where entries are interleaved: what a tile costs a device beside its
 * entries is much, and no thread of it waits for an uneven row block. */
static int32_t choose_rows(const ht_matrix *a, const ht_tilecsc_shape *shape, block_set *set) {
  int32_t best = HT_TILECSC_LEAST_ROWS;
  double least = INFINITY;
  for (int32_t rows = HT_TILECSC_LEAST_ROWS; rows <= shape->most_rows; rows *= 2) {
    if ((a->n + rows - 1) / rows < shape->least_blocks) break;
    double found = shape->interleaved ? 0 : unevenness(a, rows, set);
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

static uint32_t even(uint32_t count) { return (count + 1) / 2 * 2; }

/* Lengths of the columns become column_start and tile_entry: padded to even, or the tile as a whole where it is interleaved. */
static void count_columns(ht_tilecsc *t, const ht_matrix *a, int interleaved, int64_t *slot) {
  int64_t rows = t->view.rows_per_block;
  for (int64_t b = 0; b < t->view.row_blocks; b++) {
    map_tiles(t, b, slot);
    for (int64_t k = a->row_start[b * rows]; k < a->row_start[block_end(a->n, b, rows)]; k++)
      t->column_start[slot[a->columns[k] / COLUMNS] * STARTS + a->columns[k] % COLUMNS + 1]++;
  }
  t->tile_entry[0] = 0;
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    uint32_t *start = t->column_start + tile * STARTS;
    for (int c = 0; c < COLUMNS; c++) start[c + 1] = start[c] + (interleaved ? start[c + 1] : even(start[c + 1]));
    t->tile_entry[tile + 1] = t->tile_entry[tile] + even(start[COLUMNS]);
  }
}

/* ---- values ---- */

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
  map_tiles(t, b, slot);
  for (int64_t i = b * rows; i < block_end(a->n, b, rows); i++)
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

/* Of all row blocks, with a workspace a thread. */
static ht_status place_all(const ht_tilecsc *t, const ht_matrix *matrix, uint16_t *row_index, double *value) {
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
 * rounding changed, divided by the scale: no square of it can overflow. */
static void round_column(ht_tilecsc *t, int64_t tile, uint32_t begin, uint32_t end, int exponent, double error[HT_LEVEL_64]) {
  double square_32 = 0, square_16 = 0;
  for (uint32_t k = begin; k < end; k++) {
    int64_t e = place_of(t, tile, k);
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

/* The tiles of a column block; of its columns' errors, 2-norms over all row blocks, the largest is kept. */
static void round_block(ht_tilecsc *t, const tile_lists *list, int64_t block) {
  double largest[HT_LEVEL_64] = {0};
  for (int c = 0; c < COLUMNS; c++) {
    double norm[HT_LEVEL_64] = {0}, error[HT_LEVEL_64];
    int exponent = t->exponent[block * COLUMNS + c];
    for (int64_t k = list->first[block]; k < list->first[block + 1]; k++) {
      const uint32_t *start = t->column_start + list->tile[k] * STARTS + c;
      round_column(t, list->tile[k], start[0], start[1], exponent, error);
      for (int level = 0; level < HT_LEVEL_64; level++) norm[level] = hypot(norm[level], scalbn(error[level], exponent));
    }
    for (int level = 0; level < HT_LEVEL_64; level++) largest[level] = fmax(largest[level], norm[level]);
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
  HT_TRY_GOTO(t->ctx, status, place_all(t, matrix, NULL, t->value_f64), done);
  round_values(t, &list);
done:
  ht_release(t->ctx, list.tile);
  ht_release(t->ctx, list.first);
  return status;
}

/* ---- the order of entries ---- */

/* Of all tiles, whose rows come in CSC order. Threads take tiles of their own. */
static void interleave_tiles(ht_tilecsc *t, const uint16_t *row, ht_interleave_work *work) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(t->ctx->threads) if (t->entries > PARALLEL_FROM)
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    const uint32_t *start = t->column_start + tile * STARTS;
    int64_t first = t->tile_entry[tile];
    ht_tilecsc_interleave(start, row + first, t->view.rows_per_block, &work[omp_get_thread_num()], t->place + first, t->row_index + first);
    for (int c = 0; c < COLUMNS; c++)
      t->column_count[tile * COLUMNS + 2 * (c % HT_TILECSC_LANES) + c / HT_TILECSC_LANES] = (uint16_t)(start[c + 1] - start[c]);
  }
}

static void release_work(ht_tilecsc *t, ht_interleave_work *work) {
  for (int k = 0; work && k < t->ctx->threads; k++) {
    void *owned[] = {work[k].entry, work[k].holder, work[k].degree, work[k].held, work[k].seen};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ht_release(t->ctx, owned[i]);
  }
  ht_release(t->ctx, work);
}

static ht_status make_work(ht_tilecsc *t, ht_interleave_work **out) {
  int64_t rows = t->view.rows_per_block, most = 0;
  ht_interleave_work *work;
  for (int64_t tile = 0; tile < t->view.tiles; tile++)
    if (t->tile_entry[tile + 1] - t->tile_entry[tile] > most) most = t->tile_entry[tile + 1] - t->tile_entry[tile];
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->ctx->threads, sizeof *work, &work));
  *out = work;
  for (int k = 0; k < t->ctx->threads; k++) {
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->entry, &work[k].entry));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->holder, &work[k].holder));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, 2 * rows, sizeof *work->degree, &work[k].degree));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->held, &work[k].held));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->seen, &work[k].seen));
  }
  return HT_OK;
}

static ht_status interleave(ht_tilecsc *t, const ht_matrix *matrix) {
  ht_status status;
  uint16_t *row = NULL;
  ht_interleave_work *work = NULL;
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->entries, sizeof *row, &row), done);
  HT_TRY_GOTO(t->ctx, status, place_all(t, matrix, row, NULL), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->entries, sizeof *t->place, &t->place), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->view.tiles * COLUMNS, sizeof *t->column_count, &t->column_count), done);
  HT_TRY_GOTO(t->ctx, status, make_work(t, &work), done);
  interleave_tiles(t, row, work);
done:
  release_work(t, work);
  ht_release(t->ctx, row);
  return status;
}

static ht_status place_rows(ht_tilecsc *t, const ht_matrix *matrix, int interleaved) {
  if (interleaved) return interleave(t, matrix);
  for (int64_t e = 0; e < t->entries; e++) t->row_index[e] = (uint16_t)t->view.rows_per_block;
  return place_all(t, matrix, t->row_index, NULL);
}

/* ---- objects ---- */

static ht_status build_pattern(ht_tilecsc *t, const ht_matrix *a, const ht_tilecsc_shape *shape) {
  block_set set = {NULL, 0, 0};
  int64_t *slot = NULL;
  ht_status status;
  HT_TRY_GOTO(t->ctx, status, ht_allocate_zeroed(t->ctx, t->blocks / 64 + 1, sizeof *set.word, &set.word), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->blocks, sizeof *slot, &slot), done);
  t->view.rows_per_block = shape->rows ? shape->rows : choose_rows(a, shape, &set);
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
static ht_status allocate_values(ht_tilecsc *t) {
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->entries, sizeof *t->row_index, &t->row_index));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_f64, &t->value_f64));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_f32, &t->value_f32));
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->entries, sizeof *t->value_bf16, &t->value_bf16));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof *t->scale, &t->scale));
  HT_TRY(t->ctx, ht_allocate(t->ctx, t->blocks * COLUMNS, sizeof *t->exponent, &t->exponent));
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
                              .column_count = t->column_count,
                              .row_index = t->row_index,
                              .scale = t->scale,
                              .exponent = t->exponent,
                              .value_f64 = t->value_f64,
                              .value_f32 = t->value_f32,
                              .value_bf16 = t->value_bf16};
  int64_t columns = t->column_count ? COLUMNS * 2 : STARTS * 4, scale = t->column_count ? 2 : 8;
  t->bytes =
      t->entries * (2 + 8 + 4 + 2) + t->view.tiles * (columns + 4 + 8) + t->blocks * COLUMNS * scale + 8 + (t->view.row_blocks + 1) * 8;
}

ht_status ht_tilecsc_create(ht_context *ctx, const ht_matrix *matrix, const ht_tilecsc_shape *shape, ht_tilecsc **tilecsc) {
  ht_status status;
  ht_tilecsc *t;
  *tilecsc = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *t, &t));
  *t = (ht_tilecsc){.ctx = ctx, .nnz = matrix->nnz, .blocks = (matrix->n + COLUMNS - 1) / COLUMNS};
  HT_TRY_GOTO(ctx, status, build_pattern(t, matrix, shape), fail);
  HT_TRY_GOTO(ctx, status, allocate_values(t), fail);
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
  void *owned[] = {t->tile_row_start, t->tile_entry, t->tile_column,     t->column_start,   t->column_count,
                   t->place,          t->row_index,  t->scale,           t->exponent,       t->value_f64,
                   t->value_f32,      t->value_bf16, t->column_error[0], t->column_error[1]};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ht_release(t->ctx, owned[i]);
  ht_release(t->ctx, t);
}
