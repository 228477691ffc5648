/* Product with the Tile-CSC storage. A thread owns the row blocks it takes and adds their tiles in order: the bits depend
 * neither on the threads nor on the height of the blocks. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/cpu.h"
#include "base/convert.h"

enum { COLUMNS = HT_COLUMN_BLOCK, MOST_ROWS = 16384 };

/* One tile at one level; LOAD reads entry e, FACTOR is what the column's entries are multiplied by. */
#define TILE_LOOP(LOAD, FACTOR)                                                                                                            \
  for (int c = 0; c < COLUMNS; c++) {                                                                                                      \
    if (start[c] == start[c + 1]) continue;                                                                                                \
    double factor = FACTOR;                                                                                                                \
    for (int64_t e = first + start[c]; e < first + start[c + 1]; e++) sum[a->row_index[e]] += LOAD * factor;                               \
  }

static void add_tile(const ht_tilecsc_view *a, int64_t tile, ht_level level, const double *x, double *sum) {
  int64_t first = a->tile_entry[tile];
  const uint32_t *start = a->column_start + tile * (COLUMNS + 1);
  const double *scale = a->scale + (int64_t)a->tile_column[tile] * COLUMNS;
  x += (int64_t)a->tile_column[tile] * COLUMNS;
  switch (level) {
  case HT_LEVEL_16: TILE_LOOP(ht_load_bf16(a->value_bf16[e]), x[c] * scale[c]) break;
  case HT_LEVEL_32: TILE_LOOP(ht_load_f32(a->value_f32[e]), x[c] * scale[c]) break;
  default: TILE_LOOP(a->value_f64[e], x[c]) break;
  }
}

/* What the levels below FP64 take from the sums of the columns first..first+rows-1, to the diagonal. */
static void add_lack(const ht_tilecsc_view *a, const uint8_t *level, int64_t first, int64_t rows, const double *x, double *y) {
  for (int64_t i = first; i < first + rows; i++)
    if (level[i / COLUMNS] < HT_LEVEL_64) y[i] += (double)a->lack[level[i / COLUMNS]][i] * (x[i] * a->scale[i]);
}

void ht_cpu_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (a->tile_entry[a->tiles] > 20000)
  for (int64_t b = 0; b < a->row_blocks; b++) {
    double sum[MOST_ROWS + 1]; /* padding adds zeros to the slot after the last row */
    int64_t first = b * a->rows_per_block, rows = a->n - first < a->rows_per_block ? a->n - first : a->rows_per_block;
    for (int64_t i = 0; i < rows; i++) sum[i] = 0;
    sum[a->rows_per_block] = 0;
    for (int64_t t = a->tile_row_start[b]; t < a->tile_row_start[b + 1]; t++)
      add_tile(a, t, level ? (ht_level)level[a->tile_column[t]] : HT_LEVEL_64, x, sum);
    for (int64_t i = 0; i < rows; i++) y[first + i] = sum[i];
    if (level && a->lack[HT_LEVEL_16]) add_lack(a, level, first, rows, x, y);
  }
}
