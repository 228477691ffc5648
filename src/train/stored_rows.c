/* A matrix as an environment reads it. SPDX-License-Identifier: BSD-3-Clause */
#include "train/stored_rows.h"
#include <math.h>
#include <string.h>
#include "base/convert.h"

static ht_status allocate_rows(ht_context *ctx, int64_t n, int64_t entries, ht_stored_rows *r) {
  HT_TRY(ctx, ht_allocate_zeroed(ctx, n + 1, sizeof *r->row_start, &r->row_start));
  HT_TRY(ctx, ht_allocate(ctx, entries, sizeof *r->columns, &r->columns));
  return ht_allocate(ctx, entries * HT_LEVELS, sizeof *r->values, &r->values);
}

/* ---- Tile-CSC ---- */

/* The exponent of a column's scale: columns are rows, since the matrix is symmetric to the bit. */
static int column_exponent(const ht_csr_view *a, int64_t column) {
  enum { LEAST = -1022 };
  double largest = 0;
  for (int64_t k = a->row_start[column]; k < a->row_start[column + 1]; k++) largest = fmax(largest, fabs(a->values[k]));
  int exponent = largest > 0 ? ilogb(largest) : 0;
  return exponent < LEAST ? LEAST : exponent;
}

static void round_value(double v, int exponent, double *value) {
  double scaled = scalbn(v, -exponent);
  value[HT_LEVEL_16] = scalbn(ht_load_bf16(ht_store_bf16(scaled)), exponent);
  value[HT_LEVEL_32] = scalbn((double)ht_load_f32(ht_store_f32(scaled)), exponent);
  value[HT_LEVEL_64] = v;
}

/* What a level lacks of the row's sum, which is its column's, to the diagonal: as the storage keeps it, a float by the column's scale. */
static void keep_sum(const ht_csr_view *a, int64_t row, int exponent, double *values) {
  double lack[HT_LEVEL_64] = {0};
  for (int level = 0; level < HT_LEVEL_64; level++)
    for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++)
      lack[level] += scalbn(a->values[k] - values[k * HT_LEVELS + level], -exponent);
  for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++)
    for (int level = 0; level < HT_LEVEL_64 && a->columns[k] == row; level++)
      values[k * HT_LEVELS + level] += scalbn((double)(float)lack[level], exponent);
}

static ht_status round_as_tilecsc(const ht_environment *e, ht_stored_rows *r) {
  const ht_csr_view a = ht_matrix_view(e->symmetric);
  int *exponent, sums = e->options->reward != HT_REWARD_PAPER;
  HT_TRY(e->ctx, allocate_rows(e->ctx, a.n, a.nnz, r));
  HT_TRY(e->ctx, ht_allocate(e->ctx, a.n, sizeof *exponent, &exponent));
  memcpy(r->row_start, a.row_start, (size_t)(a.n + 1) * sizeof *r->row_start);
  memcpy(r->columns, a.columns, (size_t)a.nnz * sizeof *r->columns);
#pragma omp parallel for schedule(static) num_threads(e->ctx->threads)
  for (int64_t i = 0; i < a.n; i++) exponent[i] = column_exponent(&a, i);
#pragma omp parallel for schedule(static) num_threads(e->ctx->threads)
  for (int64_t i = 0; i < a.n; i++) {
    for (int64_t k = a.row_start[i]; k < a.row_start[i + 1]; k++)
      round_value(a.values[k], exponent[a.columns[k]], r->values + k * HT_LEVELS);
    if (sums) keep_sum(&a, i, exponent[i], r->values);
  }
  ht_release(e->ctx, exponent);
  return HT_OK;
}

/* ---- the split storage ---- */

/* Rows that are being filled: row i's entries are from row_start[i] on, `filled` of them. */
typedef struct filling {
  const ht_split_view *view;
  ht_stored_rows *rows;
  int32_t *filled;
} filling;

/* Of value number k of a group with this unit (HT_FIXED), at a level that the tile has. */
static double decoded(const ht_split_view *v, const ht_tile *t, double unit, int64_t k, ht_level level) {
  int64_t head = v->head[k], mid = level >= HT_LEVEL_32 ? v->mid[k] : 0, tail = level == HT_LEVEL_64 ? v->tail[k] : 0;
  if (t->encoding == HT_FIXED) return (double)((head * 65536 + mid) * 4294967296 + tail) * unit;
  if (t->encoding == HT_RAW)
    return ht_from_bits64((uint64_t)(uint16_t)head << 48 | (uint64_t)(uint16_t)mid << 32 | (uint64_t)(uint32_t)tail);
  float f = ht_from_bits32(((uint32_t)(uint16_t)head << 16) + (uint32_t)(int32_t)mid);
  return ht_from_bits64(ht_bits64((double)f) + (uint64_t)tail);
}

/* The entry of a tile, or a new one that is zero. */
static double *entry_of(filling *f, int64_t tile, int64_t row, int64_t column, int is_new) {
  ht_stored_rows *r = f->rows;
  int64_t first = r->row_start[row], end = first + f->filled[row];
  for (int64_t k = first; k < end && !is_new; k++)
    if (r->columns[k] == column && r->part[k] == tile) return r->values + k * HT_LEVELS;
  f->filled[row]++;
  r->columns[end] = (int32_t)column;
  r->part[end] = (int32_t)tile;
  memset(r->values + end * HT_LEVELS, 0, HT_LEVELS * sizeof *r->values);
  return r->values + end * HT_LEVELS;
}

/* One value of a group; what fills lanes without an entry is zero. */
static void fill_value(filling *f, int64_t tile, double unit, int64_t k, int64_t row, int64_t column) {
  const ht_tile *t = &f->view->tile[tile];
  double value[HT_LEVELS];
  int any = 0;
  for (int level = 0; level < HT_LEVELS; level++) {
    value[level] = decoded(f->view, t, unit, k, ht_tile_level(t, (ht_level)level));
    any |= value[level] != 0;
  }
  if (any) memcpy(entry_of(f, tile, row, column, 1), value, sizeof value);
}

static void fill_slices(filling *f, int64_t tile) {
  const ht_split_view *v = f->view;
  const ht_tile *t = &v->tile[tile];
  int64_t group = t->group, index = t->index, b = v->block, size = b * b * HT_LANES;
  for (int64_t s = t->slice; s < t->slice + t->slices; s++) {
    int64_t node = t->row / b + (s - t->slice) * HT_LANES;
    for (int64_t g = 0; g < v->slice[s].runs + v->slice[s].gathers; g++, group++) {
      int gather = g >= v->slice[s].runs;
      double unit = t->encoding == HT_FIXED ? ldexp(1, -63 - v->exponent[group]) : 1;
      for (int64_t k = 0; k < size; k++) {
        int64_t lane = k % HT_LANES, column = t->window + (gather ? v->index[index + lane] : v->index[index] + lane);
        fill_value(f, tile, unit, group * size + k, (node + lane) * b + k / HT_LANES / b, column * b + k / HT_LANES % b);
      }
      index += gather ? HT_LANES : 1;
    }
  }
}

/* What FP64 has besides, and what the levels below keep of the sums. */
static void fill_corrections(filling *f, int64_t tile) {
  const ht_split_view *v = f->view;
  const ht_tile *t = &v->tile[tile];
  int64_t b = v->block, size = b * b * HT_LANES;
  for (int64_t k = t->exception; k < t->exception + t->exceptions; k++)
    entry_of(f, tile, t->row + v->exception[k].row, v->exception[k].column, 0)[HT_LEVEL_64] += v->exception[k].value;
  for (int asked = 0; asked < HT_LEVEL_64; asked++) {
    ht_level level = ht_tile_level(t, (ht_level)asked);
    for (int64_t k = 0; level < HT_LEVEL_64 && v->delta[level] && k < t->rows * b; k++) {
      double added = ldexp(v->delta[level][t->delta + k], -15 - v->delta_exponent[level][t->slice + k / size]);
      int64_t first = t->row + (k / size * HT_LANES + k % HT_LANES) * b; /* of the node */
      if (added != 0) entry_of(f, tile, first + k % size / HT_LANES / b, first + k / HT_LANES % b, 0)[asked] += added;
    }
  }
}

/* Room for all that a row may have, corrections on entries of their own included. */
static void count_room(const ht_split_view *v, int64_t *row_start) {
  for (int64_t tile = 0; tile < v->tiles; tile++) {
    const ht_tile *t = &v->tile[tile];
    for (int64_t i = 0; i < t->rows; i++) {
      const ht_slice *slice = &v->slice[t->slice + i / (HT_LANES * v->block)];
      row_start[t->row + i + 1] += (slice->runs + slice->gathers + 1) * v->block;
    }
    for (int64_t k = t->exception; k < t->exception + t->exceptions; k++) row_start[t->row + v->exception[k].row + 1]++;
  }
  for (int64_t i = 0; i < v->padded; i++) row_start[i + 1] += row_start[i];
}

/* Without the room that is left, in the caller's scale. */
static void pack(filling *f) {
  ht_stored_rows *r = f->rows;
  int64_t to = 0;
  for (int64_t i = 0; i < f->view->n; i++) {
    int64_t from = r->row_start[i];
    r->row_start[i] = to;
    for (int64_t k = from; k < from + f->filled[i]; k++, to++) {
      int scale = ht_split_exponent(f->view, i) + ht_split_exponent(f->view, r->columns[k]);
      r->columns[to] = r->columns[k];
      r->part[to] = r->part[k];
      for (int level = 0; level < HT_LEVELS; level++) r->values[to * HT_LEVELS + level] = ldexp(r->values[k * HT_LEVELS + level], scale);
    }
  }
  r->row_start[f->view->n] = to;
}

static ht_status list_touched(ht_context *ctx, const ht_split_view *v, ht_stored_rows *r) {
  int64_t touches = v->tile[v->tiles].touch;
  r->parts = v->tiles;
  HT_TRY(ctx, ht_allocate(ctx, v->tiles + 1, sizeof *r->touch_start, &r->touch_start));
  HT_TRY(ctx, ht_allocate(ctx, touches, sizeof *r->touched, &r->touched));
  for (int64_t t = 0; t <= v->tiles; t++) r->touch_start[t] = v->tile[t].touch;
  memcpy(r->touched, v->touched, (size_t)touches * sizeof *r->touched);
  return HT_OK;
}

static ht_status decode_split(const ht_environment *e, ht_stored_rows *r) {
  filling f = {.view = e->op->split, .rows = r};
  const ht_split_view *v = f.view;
  HT_TRY(e->ctx, ht_allocate_zeroed(e->ctx, v->padded + 1, sizeof *r->row_start, &r->row_start));
  count_room(v, r->row_start);
  HT_TRY(e->ctx, ht_allocate(e->ctx, r->row_start[v->padded], sizeof *r->columns, &r->columns));
  HT_TRY(e->ctx, ht_allocate(e->ctx, r->row_start[v->padded], sizeof *r->part, &r->part));
  HT_TRY(e->ctx, ht_allocate(e->ctx, r->row_start[v->padded] * HT_LEVELS, sizeof *r->values, &r->values));
  HT_TRY(e->ctx, list_touched(e->ctx, v, r));
  HT_TRY(e->ctx, ht_allocate_zeroed(e->ctx, v->padded, sizeof *f.filled, &f.filled));
  for (int64_t tile = 0; tile < v->tiles; tile++) {
    fill_slices(&f, tile);
    fill_corrections(&f, tile);
  }
  pack(&f);
  ht_release(e->ctx, f.filled);
  return HT_OK;
}

/* ---- either ---- */

ht_status ht_stored_rows_create(const ht_environment *e, ht_stored_rows *r) {
  *r = (ht_stored_rows){.parts = 0};
  ht_status status = e->op && e->op->split ? decode_split(e, r) : round_as_tilecsc(e, r);
  if (status == HT_OK) return HT_OK;
  ht_stored_rows_release(e->ctx, r);
  return ht_trace(e->ctx, status, __func__, __FILE__, __LINE__);
}

void ht_stored_rows_release(ht_context *ctx, ht_stored_rows *r) {
  void *memory[] = {r->row_start, r->columns, r->values, r->part, r->touched, r->touch_start};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(ctx, memory[k]);
  *r = (ht_stored_rows){.parts = 0};
}
