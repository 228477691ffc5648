/* The EvoCG paper's storage as an operator: the baseline of the tile formats. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "data/order_cache.h"
#include "data/slender.h"
#include "data/split.h"
#include "data/tilecsc.h"
#include "data/tilecsc_order.h"
#include "op/operator.h"
#include "op/placed.h"

enum { PATTERN = 7, VALUES = 7, ARRAYS = PATTERN + VALUES };

typedef struct {
  ht_operator base;
  ht_tilecsc *storage;
  ht_tilecsc_view view; /* of the arrays where the backend reads them */
  ht_placed placed[ARRAYS];
  int32_t *order;        /* of the unknowns in the storage; NULL: natural */
  uint8_t *level, *sent; /* the levels in the backend's memory and what they are; NULL where it reads the host's */
} tilecsc_operator;

/* The arrays from `first` on: the pattern's, then the values'. What the storage does not need is not placed. */
static ht_status place(tilecsc_operator *op, int first) {
  const ht_tilecsc_view *v = &op->storage->view;
  int64_t entries = op->storage->entries, tiles = v->tiles, columns = op->storage->blocks * HT_COLUMN_BLOCK;
  int interleaved = v->head != NULL;
  const struct {
    const void *host;
    int64_t bytes;
  } array[ARRAYS] = {{v->tile_row_start, (v->row_blocks + 1) * 8},
                     {interleaved ? NULL : v->tile_column, tiles * 4},
                     {interleaved ? NULL : v->tile_entry, (tiles + 1) * 8},
                     {interleaved ? NULL : v->column_start, tiles * (HT_COLUMN_BLOCK + 1) * 4},
                     {v->head, tiles * (int64_t)sizeof *v->head},
                     {v->row_index, entries * 2},
                     {op->order, v->n * 4},
                     {interleaved ? NULL : v->scale, columns * 8},
                     {interleaved ? v->exponent : NULL, columns * 2},
                     {v->lack[HT_LEVEL_16], columns * 4},
                     {v->lack[HT_LEVEL_32], columns * 4},
                     {v->value_f64, entries * 8},
                     {v->value_f32, entries * 4},
                     {v->value_bf16, entries * 2}};
  ht_placed *p = op->placed;
  for (int k = first; k < ARRAYS; k++)
    if (array[k].host) HT_TRY(op->base.ctx, ht_place(op->base.ctx, op->base.backend, array[k].bytes, array[k].host, &p[k]));
  op->view = *v;
  op->view.tile_row_start = p[0].memory;
  op->view.tile_column = p[1].memory;
  op->view.tile_entry = p[2].memory;
  op->view.column_start = p[3].memory;
  op->view.head = p[4].memory;
  op->view.row_index = p[5].memory;
  op->view.order = p[6].memory;
  op->view.scale = p[7].memory;
  op->view.exponent = p[8].memory;
  op->view.lack[HT_LEVEL_16] = p[9].memory;
  op->view.lack[HT_LEVEL_32] = p[10].memory;
  op->view.value_f64 = p[11].memory;
  op->view.value_f32 = p[12].memory;
  op->view.value_bf16 = p[13].memory;
  return HT_OK;
}

/* What one product reads: a tile's streams at its level, the row indices, and the metadata. */
static void count_bytes(const ht_tilecsc_view *a, const uint8_t *block_level, double *bytes_level) {
  for (int64_t t = 0; t < a->tiles; t++) {
    ht_level level = block_level ? (ht_level)block_level[a->tile_column[t]] : HT_LEVEL_64;
    bytes_level[level] += ht_tilecsc_tile_bytes(a, a->tile_entry[t + 1] - a->tile_entry[t], level);
  }
}

/* Levels change seldom: they travel when they do. */
static ht_status place_levels(tilecsc_operator *op, const uint8_t *block_level, const uint8_t **placed) {
  *placed = block_level && op->level ? op->level : block_level;
  if (*placed == block_level || !memcmp(op->sent, block_level, (size_t)op->base.blocks)) return HT_OK;
  memcpy(op->sent, block_level, (size_t)op->base.blocks);
  HT_TRY(op->base.ctx, op->base.backend->upload(op->base.ctx, op->base.blocks, op->sent, op->level));
  return HT_OK;
}

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  tilecsc_operator *op = (tilecsc_operator *)self;
  const uint8_t *level;
  HT_TRY(self->ctx, place_levels(op, block_level, &level));
  self->backend->tilecsc_multiply(self->ctx, &op->view, level, x, y);
  if (bytes_level) count_bytes(&op->storage->view, block_level, bytes_level);
  return HT_OK;
}

/* The matrix as it is stored: the caller's, or one that was made and is to be destroyed. */
static ht_status in_order(const tilecsc_operator *op, const ht_matrix *matrix, ht_matrix **made, const ht_matrix **stored) {
  *made = NULL;
  if (op->order) HT_TRY(op->base.ctx, ht_tilecsc_reorder(op->base.ctx, matrix, op->order, made));
  *stored = *made ? *made : matrix;
  return HT_OK;
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  tilecsc_operator *op = (tilecsc_operator *)self;
  ht_matrix *made;
  const ht_matrix *stored;
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  HT_TRY(self->ctx, in_order(op, matrix, &made, &stored));
  ht_status status = ht_tilecsc_update(op->storage, stored);
  ht_matrix_destroy(made);
  if (status != HT_OK) return ht_trace(self->ctx, status, __func__, __FILE__, __LINE__);
  HT_TRY(self->ctx, place(op, PATTERN));
  return HT_OK;
}

static void destroy(ht_operator *self) {
  tilecsc_operator *op = (tilecsc_operator *)self;
  for (int k = 0; k < ARRAYS; k++) ht_placed_release(self->ctx, self->backend, &op->placed[k]);
  self->backend->memory_release(self->ctx, op->level);
  ht_release(self->ctx, op->sent);
  ht_release(self->ctx, op->order);
  ht_tilecsc_destroy(op->storage);
  ht_release(self->ctx, self);
}

/* A device holds many row blocks at once, and each of a block's warps has sums of its own in shared memory. */
static ht_tilecsc_shape wanted_shape(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options) {
  static const int64_t DEVICE_BLOCKS = 528; /* four on each of an H100's or H200's multiprocessors */
  ht_tilecsc_shape shape = {.rows = (int)options->tile_rows,
                            .most_rows = HT_TILECSC_MOST_ROWS,
                            .least_blocks = 2 * (int64_t)ctx->threads,
                            .interleaved = backend->tilecsc_interleaved,
                            .column_sums = (int)options->column_sums};
  if (ht_backend_is_host(ctx, backend)) return shape;
  shape.most_rows = HT_TILECSC_INTERLEAVED_ROWS;
  shape.device_blocks = DEVICE_BLOCKS;
  return shape;
}

/* Where entries are interleaved, so that a device's tiles are not too many. */
static ht_status find_order(tilecsc_operator *op, const ht_tilecsc_shape *shape, int ordering, const ht_matrix *matrix) {
  ht_context *ctx = op->base.ctx;
  const ht_node_graph graph = {.block = 1, .nodes = matrix->n, .start = matrix->row_start, .columns = matrix->columns};
  double start = ht_seconds();
  if (!shape->interleaved || ordering == HT_ORDERING_NATURAL) return HT_OK;
  if (ordering == HT_ORDERING_AUTO) {
    HT_TRY(ctx, ht_tilecsc_order_auto(ctx, matrix, ht_tilecsc_interleaved_rows(matrix->n, shape), &op->order));
  } else {
    HT_TRY(ctx, ht_allocate(ctx, matrix->n, sizeof *op->order, &op->order));
    HT_TRY(ctx, ht_order_rcm_kept(ctx, &graph, HT_ROOT_FAR, NULL, op->order));
  }
  op->base.time_ordering_s = ht_seconds() - start;
  op->base.ordering = !op->order ? "natural" : ordering == HT_ORDERING_AUTO ? "patches" : "rcm";
  return HT_OK;
}

static ht_status create_storage(tilecsc_operator *op, const ht_tilecsc_shape *shape, int ordering, const ht_matrix *matrix) {
  ht_matrix *made;
  const ht_matrix *stored;
  HT_TRY(op->base.ctx, find_order(op, shape, ordering, matrix));
  HT_TRY(op->base.ctx, in_order(op, matrix, &made, &stored));
  ht_status status = ht_tilecsc_create(op->base.ctx, stored, shape, &op->storage);
  ht_matrix_destroy(made);
  return status;
}

ht_status ht_operator_create_tilecsc(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options,
                                     const ht_matrix *matrix, ht_operator **op) {
  ht_status status;
  tilecsc_operator *self;
  const ht_csr_view a = ht_matrix_view(matrix);
  *op = NULL;
  const int most = backend->tilecsc_interleaved ? HT_TILECSC_INTERLEAVED_ROWS : HT_TILECSC_MOST_ROWS;
  HT_CHECK(ctx, !options->tile_rows || (options->tile_rows >= HT_TILECSC_LEAST_ROWS && options->tile_rows <= most), HT_BAD_OPTION,
           "tile-rows is 0 (chosen) or %d to %d with format tilecsc on the %s backend, and is %lld", HT_TILECSC_LEAST_ROWS, most,
           backend->name, (long long)options->tile_rows);
  const ht_tilecsc_shape shape = wanted_shape(ctx, backend, options);
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_operator){.ctx = ctx,
                             .backend = backend,
                             .format = "tilecsc",
                             .n = matrix->n,
                             .nnz = matrix->nnz,
                             .apply = apply,
                             .update = update,
                             .destroy = destroy};
  HT_TRY_GOTO(ctx, status, create_storage(self, &shape, (int)options->ordering, matrix), fail);
  HT_TRY_GOTO(ctx, status, place(self, 0), fail);
  self->base.bytes = self->storage->bytes;
  self->base.blocks = self->storage->blocks;
  self->base.unknowns_per_node = ht_node_unknowns(ctx, &a);
  self->base.slenderness = ht_slenderness(ctx, &a, self->base.unknowns_per_node);
  self->base.tiles = &self->view;
  if (!ht_backend_is_host(ctx, backend)) {
    HT_TRY_GOTO(ctx, status, backend->memory_create(ctx, self->base.blocks, &self->level), fail);
    HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, self->base.blocks, 1, &self->sent), fail); /* as the memory that was created */
  }
  for (int level = 0; level < HT_LEVEL_64; level++) self->base.column_error[level] = self->storage->column_error[level];
  *op = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
