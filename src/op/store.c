/* The operator on a backend's own split storage. SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include "base/kept.h"
#include "data/diagonal.h"
#include "data/order.h"
#include "data/order_cache.h"
#include "data/slender.h"
#include "op/operator.h"

enum { PARALLEL_FROM = 20000 }; /* rows */

typedef struct {
  ht_operator base;
  ht_store_info info;
  float *error[HT_LEVEL_64];
  double *own_diagonal; /* where the maker has none */
} store_operator;

/* A block's bytes are an even share of the whole. */
static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  const store_operator *op = (const store_operator *)self;
  self->backend->store_multiply(self->store, block_level, x, y);
  if (bytes_level && !block_level) bytes_level[HT_LEVEL_64] += op->info.bytes_level[HT_LEVEL_64];
  for (int64_t b = 0; bytes_level && block_level && b < self->blocks; b++)
    bytes_level[block_level[b]] += op->info.bytes_level[block_level[b]] / (double)self->blocks;
  HT_TRY(self->ctx, self->backend->failed(self->ctx));
  return HT_OK;
}

/* The largest column error of the whole, in the caller's scale, stands for each block: the store's order of the unknowns is its own, so
 * that no block's own scale is known here. */
static void spread_errors(store_operator *op, double largest) {
  /* scales are powers of two: within a factor sqrt 2 */
  double error = fmin(2 * largest * op->info.error_16, FLT_MAX), error_32 = fmin(2 * largest * op->info.error_32, FLT_MAX);
  for (int64_t b = 0; b < op->base.blocks; b++) {
    op->error[HT_LEVEL_16][b] = (float)error;
    op->error[HT_LEVEL_32][b] = (float)error_32;
  }
}

/* largest: diagonal entry, the largest scale squared. */
static void describe(store_operator *op, double largest) {
  op->base.backend->store_info(op->base.store, &op->info);
  op->base.bytes = op->info.bytes;
  spread_errors(op, largest);
  ht_lap(op->base.ctx, HT_PHASE_errors);
}

static double largest_of(const store_operator *op, const double *diagonal) {
  double largest = 0;
  int64_t n = op->base.n;
#pragma omp parallel for schedule(static) num_threads(op->base.ctx->threads) reduction(max : largest) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, diagonal[i]);
  return largest;
}

/* The maker's diagonal, which stands for the matrix as it is now, or one of our own. */
static ht_status find_diagonal(store_operator *op, const ht_matrix *matrix, const double **diagonal) {
  *diagonal = op->base.diagonal;
  if (*diagonal) return HT_OK;
  if (!op->own_diagonal) HT_TRY(op->base.ctx, ht_allocate(op->base.ctx, matrix->n, sizeof(double), &op->own_diagonal));
  ht_matrix_diagonal(matrix, op->own_diagonal);
  *diagonal = op->own_diagonal;
  return HT_OK;
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  store_operator *op = (store_operator *)self;
  const ht_csr_view a = ht_matrix_view(matrix);
  const double *diagonal;
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  HT_TRY(self->ctx, find_diagonal(op, matrix, &diagonal));
  HT_TRY(self->ctx, self->backend->store_set_values(self->store, &a, diagonal));
  describe(op, largest_of(op, diagonal));
  return HT_OK;
}

ht_status ht_operator_take(ht_operator *self, const ht_csr_view *a, ht_csr_facts *facts) {
  HT_CHECK(self->ctx, self->store && self->backend->store_take, HT_UNSUPPORTED,
           "the %s backend's format %s takes no CSR from a device; use ht_matrix_set_values", self->backend->name, self->format);
  HT_TRY(self->ctx, self->backend->store_take(self->store, a, facts));
  describe((store_operator *)self, facts->diagonal_most);
  return HT_OK;
}

static void destroy(ht_operator *self) {
  store_operator *op = (store_operator *)self;
  if (self->store) self->backend->store_release(self->store);
  for (int level = 0; level < HT_LEVEL_64; level++) ht_release(self->ctx, op->error[level]);
  ht_release(self->ctx, op->own_diagonal);
  ht_release(self->ctx, op);
}

/* Patches where the engine wants them, of patch_nodes nodes each, else the order that was asked for; *order NULL: natural. known: the
 * graph's fingerprint, or NULL. */
static ht_status order_nodes(store_operator *op, int ordering, const ht_node_graph *graph, const ht_fingerprint *known, int64_t patch_nodes,
                             int32_t **order) {
  ht_context *ctx = op->base.ctx;
  op->base.ordering = "natural";
  if (!patch_nodes && ordering == HT_ORDERING_NATURAL) return HT_OK;
  if (!patch_nodes && ordering == HT_ORDERING_AUTO) {
    HT_TRY(ctx, ht_order_auto(ctx, graph, HT_ROOT_FIRST, known, order));
    if (*order) op->base.ordering = "rcm";
    return HT_OK;
  }
  op->base.ordering = patch_nodes ? "patches" : "rcm";
  HT_TRY(ctx, ht_allocate(ctx, graph->nodes, sizeof **order, order));
  if (!patch_nodes) return ht_order_rcm_kept(ctx, graph, HT_ROOT_FIRST, known, *order);
  const ht_csr_view pattern = {.n = graph->nodes, .nnz = graph->start[graph->nodes], .row_start = graph->start, .columns = graph->columns};
  return ht_order_patches_kept(ctx, &pattern, patch_nodes, known, *order);
}

/* What is ordered are the blocks of unknowns that stay together. Nothing is where the backend knows the pattern. */
static ht_status order_blocks(store_operator *op, int ordering, const ht_csr_view *a, const ht_store_options *store, int32_t **order) {
  ht_context *ctx = op->base.ctx;
  ht_node_graph graph = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  *order = NULL;
  if (op->base.backend->store_met) op->base.ordering = op->base.backend->store_met(ctx, store);
  if (op->base.ordering) return HT_OK;
  if (store->block > 1) HT_TRY(ctx, ht_block_graph_create(ctx, a, store->block, &graph));
  int64_t patch_blocks = store->plan.patch_rows / HT_COLUMN_BLOCK * (HT_COLUMN_BLOCK / store->block);
  ht_status status = order_nodes(op, ordering, &graph, store->block > 1 ? NULL : store->pattern, patch_blocks, order);
  ht_node_graph_release(ctx, &graph);
  return status;
}

static ht_status create_store(store_operator *op, const ht_operator_options *options, int engine, const ht_csr_view *a,
                              const ht_fingerprint *pattern, const double *diagonal) {
  ht_context *ctx = op->base.ctx;
  const ht_backend *backend = op->base.backend;
  ht_store_options store = {.exactness_flags = options->exactness_flags,
                            .block = op->base.engine_block ? op->base.engine_block : 1,
                            .node = op->base.unknowns_per_node > 1 ? op->base.unknowns_per_node : 1,
                            .diagonal = diagonal,
                            .pattern = pattern,
                            .ordering = options->ordering};
  int32_t *order;
  double start = ht_seconds();
  backend->store_plan(ctx, a, store.block, (ht_store_engine)engine, &store.plan);
  ht_lap(ctx, HT_PHASE_shape);
  ht_status status = order_blocks(op, options->ordering, a, &store, &order);
  op->base.time_ordering_s = ht_seconds() - start;
  ht_lap(ctx, HT_PHASE_ordering);
  store.order = order;
  store.ordering_name = op->base.ordering;
  if (status == HT_OK) status = backend->store_create(ctx, a, &store, &op->base.store);
  ht_release(ctx, order);
  return status;
}

typedef struct node_shape {
  int unknowns;
  double slenderness;
} node_shape;

/* Looked for once a pattern. */
static node_shape find_nodes(ht_context *ctx, const ht_csr_view *a, const ht_fingerprint *pattern) {
  const ht_kept_key key = {.pattern = *pattern, .kind = HT_KEPT_NODES};
  node_shape *found = ht_kept_find(ctx, &key);
  if (found) return *found;
  node_shape nodes = {.unknowns = ht_node_unknowns(ctx, a)};
  nodes.slenderness = ht_slenderness(ctx, a, nodes.unknowns);
  if (ht_allocate(ctx, 1, sizeof *found, &found) != HT_OK) {
    ht_context_clear_error(ctx); /* it is looked for again */
    return nodes;
  }
  *found = nodes;
  ht_kept_add(ctx, &key, sizeof *found, found, ht_release);
  return nodes;
}

static ht_status build(store_operator *op, const ht_operator_options *options, int engine, const ht_matrix *matrix) {
  ht_context *ctx = op->base.ctx;
  const ht_csr_view a = ht_matrix_view(matrix);
  const double *diagonal;
  HT_TRY(ctx, find_diagonal(op, matrix, &diagonal));
  const ht_fingerprint pattern = ht_fingerprint_of(ctx, a.n, a.row_start, a.columns);
  const node_shape nodes = find_nodes(ctx, &a, &pattern);
  op->base.unknowns_per_node = nodes.unknowns;
  op->base.slenderness = nodes.slenderness;
  ht_lap(ctx, HT_PHASE_shape);
  HT_TRY(ctx, create_store(op, options, engine, &a, &pattern, diagonal));
  op->base.backend->store_info(op->base.store, &op->info);
  op->base.blocks = op->info.blocks;
  for (int level = 0; level < HT_LEVEL_64; level++) {
    HT_TRY(ctx, ht_allocate(ctx, op->base.blocks, sizeof(float), &op->error[level]));
    op->base.column_error[level] = op->error[level];
  }
  describe(op, largest_of(op, diagonal));
  return HT_OK;
}

ht_status ht_operator_create_store(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options, int engine,
                                   int64_t engine_block, const ht_matrix *matrix, const double *diagonal, ht_operator **out) {
  store_operator *op;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *op, &op));
  op->base = (ht_operator){.ctx = ctx,
                           .backend = backend,
                           .format = "split",
                           .n = matrix->n,
                           .nnz = matrix->nnz,
                           .engine_block = engine_block,
                           .diagonal = diagonal,
                           .apply = apply,
                           .update = update,
                           .destroy = destroy};
  HT_TRY_GOTO(ctx, status, build(op, options, engine, matrix), fail);
  *out = &op->base;
  return HT_OK;
fail:
  destroy(&op->base);
  return status;
}
