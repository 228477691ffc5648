/* Orders found before, by pattern. SPDX-License-Identifier: BSD-3-Clause */
#include "data/order_cache.h"
#include <string.h>
#include "data/order.h"
#include "data/patches.h"

enum { KEPT = 8, LANES = 4, CHUNK = 1 << 18 /* bytes that one thread reads */, PARALLEL_FROM = 1 << 20 };
static const int64_t MOST_BYTES = 256 << 20; /* of all kept orders */

typedef struct order_key {
  int64_t nodes, entries, rows; /* rows: of a patch; 0: reverse Cuthill-McKee */
  uint64_t fingerprint[2];
} order_key;

struct ht_order_cache {
  order_key key[KEPT];
  int32_t *order[KEPT]; /* NULL: a free place */
  int64_t used[KEPT];   /* when, by the count of uses */
  int64_t uses;
};

/* ---- the fingerprint ---- */

static inline uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15u;
  return state ^ state >> 32;
}

/* Of the chunk that begins at byte `at`, a different one at each place. */
static void add_chunk(const char *bytes, int64_t at, int64_t end, uint64_t *sum) {
  uint64_t lane[LANES] = {1, 2, 3, 4}, words[LANES];
  for (int64_t k = at; k < end; k += (int64_t)sizeof words) {
    size_t left = (size_t)(end - k);
    if (left < sizeof words) memset(words, 0, sizeof words);
    memcpy(words, bytes + k, left < sizeof words ? left : sizeof words);
    for (int l = 0; l < LANES; l++) lane[l] = mix(lane[l], words[l]);
  }
  for (int half = 0; half < 2; half++) {
    uint64_t state = mix(0xc2b2ae3d27d4eb4fu + (uint64_t)half, (uint64_t)at);
    for (int l = 0; l < LANES; l++) state = mix(state, lane[l]);
    sum[half] += state;
  }
}

/* Sums of chunks: the same for any number of threads. */
static void add_bytes(const ht_context *ctx, const void *bytes, int64_t size, uint64_t *fingerprint) {
  uint64_t first = 0, second = 0;
#pragma omp parallel for schedule(static) num_threads(ctx->threads) reduction(+ : first, second) if (size > PARALLEL_FROM)
  for (int64_t at = 0; at < size; at += CHUNK) {
    uint64_t sum[2] = {0, 0};
    add_chunk(bytes, at, size - at < CHUNK ? size : at + CHUNK, sum);
    first += sum[0];
    second += sum[1];
  }
  fingerprint[0] = mix(fingerprint[0], first);
  fingerprint[1] = mix(fingerprint[1], second);
}

static order_key key_of(const ht_context *ctx, const ht_node_graph *g, int64_t rows) {
  order_key key = {.nodes = g->nodes, .entries = g->start[g->nodes], .rows = rows};
  add_bytes(ctx, g->start, (g->nodes + 1) * (int64_t)sizeof *g->start, key.fingerprint);
  add_bytes(ctx, g->columns, key.entries * (int64_t)sizeof *g->columns, key.fingerprint);
  return key;
}

static int same_key(const order_key *a, const order_key *b) {
  return a->nodes == b->nodes && a->entries == b->entries && a->rows == b->rows && a->fingerprint[0] == b->fingerprint[0] &&
         a->fingerprint[1] == b->fingerprint[1];
}

/* ---- the cache ---- */

void ht_order_forget(ht_context *ctx) {
  for (int k = 0; ctx->orders && k < KEPT; k++) ht_release(ctx, ctx->orders->order[k]);
  ht_release(ctx, ctx->orders);
  ctx->orders = NULL;
}

static void copy_order(const ht_context *ctx, int64_t nodes, const int32_t *from, int32_t *to) {
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (nodes > PARALLEL_FROM)
  for (int64_t i = 0; i < nodes; i++) to[i] = from[i];
}

static int find(const ht_context *ctx, const order_key *key, int32_t *order) {
  struct ht_order_cache *cache = ctx->orders;
  for (int k = 0; cache && k < KEPT; k++) {
    if (!cache->order[k] || !same_key(&cache->key[k], key)) continue;
    copy_order(ctx, key->nodes, cache->order[k], order);
    cache->used[k] = ++cache->uses;
    return 1;
  }
  return 0;
}

/* A free place, and memory for so many nodes within the bound: the orders not used for longest give way. */
static int make_room(ht_context *ctx, int64_t nodes) {
  struct ht_order_cache *cache = ctx->orders;
  for (;;) {
    int64_t bytes = nodes * (int64_t)sizeof(int32_t);
    int oldest = -1, unused = -1;
    for (int k = 0; k < KEPT; k++) {
      if (!cache->order[k]) {
        unused = k;
        continue;
      }
      bytes += cache->key[k].nodes * (int64_t)sizeof(int32_t);
      if (oldest < 0 || cache->used[k] < cache->used[oldest]) oldest = k;
    }
    if (oldest < 0 || (unused >= 0 && bytes <= MOST_BYTES)) return unused;
    ht_release(ctx, cache->order[oldest]);
    cache->order[oldest] = NULL;
  }
}

/* Where there is no memory for it the order is not kept: nothing depends on that. */
static void keep(ht_context *ctx, const order_key *key, const int32_t *order) {
  int32_t *kept;
  if (key->nodes * (int64_t)sizeof *order > MOST_BYTES) return;
  if (!ctx->orders && ht_allocate_zeroed(ctx, 1, sizeof *ctx->orders, &ctx->orders) != HT_OK) {
    ht_context_clear_error(ctx);
    return;
  }
  ctx->orders_release = ht_order_forget;
  int place = make_room(ctx, key->nodes);
  if (ht_allocate(ctx, key->nodes, sizeof *kept, &kept) != HT_OK) {
    ht_context_clear_error(ctx);
    return;
  }
  copy_order(ctx, key->nodes, order, kept);
  ctx->orders->key[place] = *key;
  ctx->orders->order[place] = kept;
  ctx->orders->used[place] = ++ctx->orders->uses;
}

/* ---- the orders ---- */

ht_status ht_order_rcm_kept(ht_context *ctx, const ht_node_graph *graph, int32_t *order) {
  order_key key = key_of(ctx, graph, 0);
  if (find(ctx, &key, order)) return HT_OK;
  HT_TRY(ctx, ht_order_rcm(ctx, graph, order));
  keep(ctx, &key, order);
  return HT_OK;
}

ht_status ht_order_patches_kept(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order) {
  const ht_node_graph graph = {.block = 1, .nodes = a->n, .start = a->row_start, .columns = a->columns};
  order_key key = key_of(ctx, &graph, rows);
  if (find(ctx, &key, order)) return HT_OK;
  HT_TRY(ctx, ht_order_patches(ctx, a, rows, order));
  keep(ctx, &key, order);
  return HT_OK;
}
