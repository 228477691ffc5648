/* An order of the unknowns for tiles: where a numbering is scattered a tile holds an entry or two, and a product waits for tiles.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc_order.h"
#include <omp.h>
#include <string.h>
#include "data/order_cache.h"

enum { COLUMNS = HT_COLUMN_BLOCK, PARALLEL_FROM = 20000 /* entries */ };

/* A tile costs about as much as so many entries, and those with more are no reason to look for another order. */
static const double TILE_WEIGHT = 64, FEW_ENTRIES = 80, WORTH_REORDERING = 0.85;

/* Unless it is NULL: position[old] = new. */
static int64_t position_of(const int32_t *position, int64_t i) { return position ? position[i] : i; }

/* The tiles of row block b. seen: the last row block, by 1 more, that had a tile in each column block. */
static int64_t count_row_block(const ht_matrix *a, int64_t b, int64_t rows, const int32_t *order, const int32_t *position, int32_t *seen) {
  int64_t tiles = 0, end = (b + 1) * rows < a->n ? (b + 1) * rows : a->n;
  for (int64_t i = b * rows; i < end; i++) {
    int64_t row = order ? order[i] : i;
    for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
      int32_t *last = &seen[position_of(position, a->columns[k]) / COLUMNS];
      tiles += *last != (int32_t)(b + 1);
      *last = (int32_t)(b + 1);
    }
  }
  return tiles;
}

static ht_status invert(ht_context *ctx, int64_t n, const int32_t *order, int32_t **position) {
  *position = NULL;
  if (!order) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, n, sizeof **position, position));
  for (int64_t i = 0; i < n; i++) (*position)[order[i]] = (int32_t)i;
  return HT_OK;
}

/* Tiles of `rows` rows in an order, or as the unknowns are numbered where it is NULL. */
static ht_status count_tiles(ht_context *ctx, const ht_matrix *a, int64_t rows, const int32_t *order, int64_t *tiles) {
  ht_status status;
  int64_t blocks = (a->n + COLUMNS - 1) / COLUMNS, row_blocks = (a->n + rows - 1) / rows, sum = 0;
  int32_t *position = NULL, *seen = NULL;
  HT_TRY_GOTO(ctx, status, invert(ctx, a->n, order, &position), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, ctx->threads * blocks, sizeof *seen, &seen), done);
#pragma omp parallel for schedule(dynamic, 16) num_threads(ctx->threads) reduction(+ : sum) if (a->nnz > PARALLEL_FROM)
  for (int64_t b = 0; b < row_blocks; b++) sum += count_row_block(a, b, rows, order, position, seen + omp_get_thread_num() * blocks);
  *tiles = sum;
done:
  ht_release(ctx, seen);
  ht_release(ctx, position);
  return status;
}

static double weight(const ht_matrix *a, int64_t tiles) { return (double)a->nnz + TILE_WEIGHT * (double)tiles; }

ht_status ht_tilecsc_order_auto(ht_context *ctx, const ht_matrix *a, int64_t rows, int32_t **order) {
  ht_status status;
  int64_t natural, ordered;
  int32_t *found = NULL;
  const ht_csr_view view = ht_matrix_view(a);
  *order = NULL;
  HT_TRY(ctx, count_tiles(ctx, a, rows, NULL, &natural));
  if ((double)a->nnz >= FEW_ENTRIES * (double)natural) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, a->n, sizeof *found, &found));
  HT_TRY_GOTO(ctx, status, ht_order_patches_kept(ctx, &view, COLUMNS, NULL, found), done);
  HT_TRY_GOTO(ctx, status, count_tiles(ctx, a, rows, found, &ordered), done);
  if (weight(a, ordered) < WORTH_REORDERING * weight(a, natural)) {
    *order = found;
    found = NULL;
  }
done:
  ht_release(ctx, found);
  return status;
}

/* ---- the matrix in an order ---- */

static void move_rows(const ht_matrix *a, const int32_t *order, const int32_t *position, const int64_t *start, int32_t *columns,
                      double *values) {
  int threads = a->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->nnz > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++) {
    int64_t from = a->row_start[order[i]], count = start[i + 1] - start[i];
    for (int64_t k = 0; k < count; k++) columns[start[i] + k] = position[a->columns[from + k]];
    memcpy(values + start[i], a->values + from, (size_t)count * sizeof *values);
  }
}

ht_status ht_tilecsc_reorder(ht_context *ctx, const ht_matrix *a, const int32_t *order, ht_matrix **reordered) {
  ht_status status;
  int64_t *start = NULL;
  int32_t *position = NULL, *columns = NULL;
  double *values = NULL;
  *reordered = NULL;
  HT_TRY_GOTO(ctx, status, invert(ctx, a->n, order, &position), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n + 1, sizeof *start, &start), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->nnz, sizeof *columns, &columns), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->nnz, sizeof *values, &values), fail);
  start[0] = 0;
  for (int64_t i = 0; i < a->n; i++) start[i + 1] = start[i] + a->row_start[order[i] + 1] - a->row_start[order[i]];
  move_rows(a, order, position, start, columns, values);
  ht_release(ctx, position);
  HT_TRY(ctx, ht_matrix_wrap(ctx, a->n, start, columns, values, 0, a->source, reordered));
  return HT_OK;
fail:
  ht_release(ctx, position);
  ht_release(ctx, start);
  ht_release(ctx, columns);
  ht_release(ctx, values);
  return status;
}
