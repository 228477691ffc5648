/* Orders found before, by pattern. SPDX-License-Identifier: BSD-3-Clause */
#include "data/order_cache.h"
#include "base/kept.h"
#include "data/order.h"
#include "data/patches.h"

enum { PARALLEL_FROM = 1 << 20 };

/* rows: of a patch; not positive: reverse Cuthill-McKee, minus the root. */
static ht_kept_key key_of(ht_context *ctx, const ht_node_graph *g, int64_t rows, const ht_fingerprint *known) {
  return (ht_kept_key){known ? *known : ht_fingerprint_of(ctx, g->nodes, g->start, g->columns), HT_KEPT_ORDER, {rows}};
}

static void copy_order(const ht_context *ctx, int64_t nodes, const int32_t *from, int32_t *to) {
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (nodes > PARALLEL_FROM)
  for (int64_t i = 0; i < nodes; i++) to[i] = from[i];
}

static int find(ht_context *ctx, const ht_kept_key *key, int32_t *order) {
  const int32_t *kept = ht_kept_find(ctx, key);
  if (kept) copy_order(ctx, key->pattern.rows, kept, order);
  return kept != NULL;
}

/* Where there is no memory for it the order is not kept: nothing depends on that. */
static void keep(ht_context *ctx, const ht_kept_key *key, const int32_t *order) {
  int32_t *kept;
  if (ht_allocate(ctx, key->pattern.rows, sizeof *kept, &kept) != HT_OK) {
    ht_context_clear_error(ctx);
    return;
  }
  copy_order(ctx, key->pattern.rows, order, kept);
  ht_kept_add(ctx, key, key->pattern.rows * (int64_t)sizeof *kept, kept, ht_release);
}

ht_status ht_order_rcm_kept(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, const ht_fingerprint *known, int32_t *order) {
  ht_kept_key key = key_of(ctx, graph, -(int64_t)root, known);
  if (find(ctx, &key, order)) return HT_OK;
  HT_TRY(ctx, ht_order_rcm(ctx, graph, root, order));
  keep(ctx, &key, order);
  return HT_OK;
}

ht_status ht_order_patches_kept(ht_context *ctx, const ht_csr_view *a, int64_t rows, const ht_fingerprint *known, int32_t *order) {
  const ht_node_graph graph = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  ht_kept_key key = key_of(ctx, &graph, rows, known);
  if (find(ctx, &key, order)) return HT_OK;
  HT_TRY(ctx, ht_order_patches(ctx, a, rows, order));
  keep(ctx, &key, order);
  return HT_OK;
}
