/* The operator on the split storage: orders and scales the vectors around the product. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "data/order.h"
#include "data/order_cache.h"
#include "data/slender.h"
#include "data/split.h"
#include "op/operator.h"

typedef struct {
  ht_operator base;
  ht_split *split;
  double *x, *y; /* in solver order, scaled */
  uint8_t *tile_level;
  float *error[HT_LEVEL_64];
} split_operator;

static inline double scale_of(const ht_split_view *view, int64_t i) { return ldexp(1.0, ht_split_exponent(view, i)); }

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  split_operator *op = (split_operator *)self;
  const ht_split_view *view = &op->split->view;
  const int32_t *order = op->split->order;
  int threads = self->ctx->threads;
  ht_split_tile_levels(view, block_level, op->tile_level);
#pragma omp parallel for schedule(static) num_threads(threads) if (self->n > 20000)
  for (int64_t i = 0; i < self->n; i++) op->x[i] = x[order ? order[i] : i] * scale_of(view, i);
  self->backend->split_multiply(self->ctx, view, op->tile_level, op->x, op->y);
#pragma omp parallel for schedule(static) num_threads(threads) if (self->n > 20000)
  for (int64_t i = 0; i < self->n; i++) y[order ? order[i] : i] = op->y[i] * scale_of(view, i);
  for (int64_t t = 0; bytes_level && t < view->tiles; t++)
    bytes_level[op->tile_level[t]] += (double)ht_split_tile_bytes(view, &view->tile[t], (ht_level)op->tile_level[t]);
  return HT_OK;
}

/* Column errors in the caller's scale. A column of A is s_j times one of A^ with its rows scaled by s_i, so that the largest
 * s of the block and of all rows bound it; with one exponent for all they are exact. */
static void scale_errors(split_operator *op) {
  const ht_split_view *view = &op->split->view;
  double largest = 0;
  for (int64_t i = 0; i < view->n; i++) largest = fmax(largest, scale_of(view, i));
  for (int64_t b = 0; b < view->blocks; b++) {
    double block_largest = 0;
    for (int64_t i = b * HT_COLUMN_BLOCK; i < (b + 1) * HT_COLUMN_BLOCK && i < view->n; i++)
      block_largest = fmax(block_largest, scale_of(view, i));
    for (int level = 0; level < HT_LEVEL_64; level++) op->error[level][b] = (float)(view->column_error[level][b] * block_largest * largest);
  }
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  split_operator *op = (split_operator *)self;
  ht_csr_view a = ht_matrix_view(matrix);
  ht_node_graph graph;
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  HT_TRY(self->ctx, ht_node_graph_create(self->ctx, &a, &graph));
  ht_status status = ht_split_set_values(op->split, &a, &graph);
  ht_node_graph_release(self->ctx, &graph);
  if (status != HT_OK) return ht_trace(self->ctx, status, __func__, __FILE__, __LINE__);
  self->bytes = op->split->bytes;
  scale_errors(op);
  return HT_OK;
}

static void destroy(ht_operator *self) {
  split_operator *op = (split_operator *)self;
  ht_split_destroy(op->split);
  ht_release(self->ctx, op->x);
  ht_release(self->ctx, op->y);
  ht_release(self->ctx, op->tile_level);
  for (int level = 0; level < HT_LEVEL_64; level++) ht_release(self->ctx, op->error[level]);
  ht_release(self->ctx, op);
}

/* *order is NULL for natural. */
static ht_status order_nodes(ht_context *ctx, int ordering, const ht_node_graph *graph, int32_t **order) {
  *order = NULL;
  if (ordering == HT_ORDERING_NATURAL) return HT_OK;
  if (ordering == HT_ORDERING_AUTO) return ht_order_auto(ctx, graph, HT_ROOT_FAR, NULL, order);
  HT_TRY(ctx, ht_allocate(ctx, graph->nodes, sizeof **order, order));
  return ht_order_rcm_kept(ctx, graph, HT_ROOT_FAR, NULL, *order);
}

static ht_status build(ht_context *ctx, split_operator *op, const ht_operator_options *options, const ht_csr_view *a,
                       const ht_node_graph *graph) {
  int32_t *order;
  double start = ht_seconds();
  ht_status status = order_nodes(ctx, options->ordering, graph, &order);
  op->base.time_ordering_s = ht_seconds() - start;
  op->base.ordering = order ? "rcm" : "natural";
  ht_split_options split = {.tile_rows = options->tile_rows, .exactness_flags = options->exactness_flags, .order = order};
  if (status == HT_OK) status = ht_split_create(ctx, a, graph, &split, &op->split);
  ht_release(ctx, order);
  return status;
}

/* The padding of x and y stays zero from here on. */
static ht_status allocate_work(ht_context *ctx, split_operator *op) {
  const ht_split_view *view = &op->split->view;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, view->padded, sizeof *op->x, &op->x));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, view->padded, sizeof *op->y, &op->y));
  HT_TRY(ctx, ht_allocate(ctx, view->tiles, sizeof *op->tile_level, &op->tile_level));
  for (int level = 0; level < HT_LEVEL_64; level++) HT_TRY(ctx, ht_allocate(ctx, view->blocks, sizeof(float), &op->error[level]));
  return HT_OK;
}

ht_status ht_operator_create_split(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options, const ht_matrix *matrix,
                                   ht_operator **out) {
  static const char *const isa[] = {"auto", "avx512", "avx2", "portable"};
  split_operator *op;
  ht_node_graph graph = {0};
  const ht_csr_view a = ht_matrix_view(matrix);
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, backend->set_isa(ctx, isa[options->isa]));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *op, &op));
  op->base.ctx = ctx;
  HT_TRY_GOTO(ctx, status, ht_node_graph_create(ctx, &a, &graph), done);
  HT_TRY_GOTO(ctx, status, build(ctx, op, options, &a, &graph), done);
  HT_TRY_GOTO(ctx, status, allocate_work(ctx, op), done);
  scale_errors(op);
  op->base = (ht_operator){.ctx = ctx,
                           .backend = backend,
                           .format = "split",
                           .n = a.n,
                           .nnz = a.nnz,
                           .bytes = op->split->bytes,
                           .apply = apply,
                           .update = update,
                           .destroy = destroy,
                           .blocks = op->split->view.blocks,
                           .column_error = {op->error[0], op->error[1]},
                           .order = op->split->order,
                           .ordering = op->base.ordering,
                           .time_ordering_s = op->base.time_ordering_s,
                           .unknowns_per_node = graph.block,
                           .slenderness = ht_slenderness(ctx, &a, graph.block),
                           .split = &op->split->view};
  *out = &op->base;
done:
  ht_node_graph_release(ctx, &graph);
  if (status != HT_OK) destroy(&op->base);
  return status;
}
