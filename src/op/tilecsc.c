/* The EvoCG paper's storage as an operator: the baseline of the tile formats. SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc.h"
#include "op/operator.h"

typedef struct {
  ht_operator base;
  ht_tilecsc *storage;
} tilecsc_operator;

/* What one product reads: a tile's streams at its level, the row indices, and the metadata. */
static void count_bytes(const ht_tilecsc_view *a, const uint8_t *block_level, double *bytes_level) {
  static const int value_bytes[HT_LEVELS] = {2, 4, 8};
  for (int64_t t = 0; t < a->tiles; t++) {
    int level = block_level ? block_level[a->tile_column[t]] : HT_LEVEL_64;
    int64_t entries = a->tile_entry[t + 1] - a->tile_entry[t];
    int scales = level == HT_LEVEL_64 ? 0 : HT_COLUMN_BLOCK * 8;
    bytes_level[level] += (double)(entries * (value_bytes[level] + 2) + (HT_COLUMN_BLOCK + 1) * 4 + scales + 12);
  }
}

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  const ht_tilecsc_view *view = &((tilecsc_operator *)self)->storage->view;
  self->backend->tilecsc_multiply(self->ctx, view, block_level, x, y);
  if (bytes_level) count_bytes(view, block_level, bytes_level);
  return HT_OK;
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  HT_TRY(self->ctx, ht_tilecsc_update(((tilecsc_operator *)self)->storage, matrix));
  return HT_OK;
}

static void destroy(ht_operator *self) {
  ht_tilecsc_destroy(((tilecsc_operator *)self)->storage);
  ht_release(self->ctx, self);
}

ht_status ht_operator_create_tilecsc(ht_context *ctx, const ht_operator_options *options, const ht_matrix *matrix, ht_operator **op) {
  ht_status status;
  tilecsc_operator *self;
  *op = NULL;
  HT_CHECK(ctx, !options->tile_rows || (options->tile_rows >= HT_TILECSC_LEAST_ROWS && options->tile_rows <= HT_TILECSC_MOST_ROWS),
           HT_BAD_OPTION, "tile-rows is 0 (chosen) or %d to %d with format tilecsc, and is %lld", HT_TILECSC_LEAST_ROWS,
           HT_TILECSC_MOST_ROWS, (long long)options->tile_rows);
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_operator){
      .ctx = ctx, .format = "tilecsc", .n = matrix->n, .nnz = matrix->nnz, .apply = apply, .update = update, .destroy = destroy};
  HT_TRY_GOTO(ctx, status, ht_backend_find(ctx, "cpu", &self->base.backend), fail);
  HT_TRY_GOTO(ctx, status, ht_tilecsc_create(ctx, matrix, (int)options->tile_rows, &self->storage), fail);
  self->base.bytes = self->storage->bytes;
  self->base.blocks = self->storage->blocks;
  for (int level = 0; level < HT_LEVEL_64; level++) self->base.column_error[level] = self->storage->column_error[level];
  *op = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
