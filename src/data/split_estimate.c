/* What the split storage would cost in a given order, from a sample of its tiles. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "data/split_internal.h"

enum { SAMPLE_TILES = 8, SAMPLE_NODES = 1024, LINE = 8 /* doubles a cache line */ };

/* Bytes and distinct lines of x of the slices from `node` on. `lines` is a bit map, left cleared. */
static void add_tile(const ht_place_frame *frame, int64_t node, int64_t nodes, ht_place *place, uint64_t *lines, int64_t words,
                     ht_split_cost *cost) {
  const int block = frame->graph->block;
  int64_t bytes_values = 8 * (int64_t)block * block * HT_LANES + 1;
  for (int64_t i = node; i < node + nodes; i += HT_LANES) {
    ht_place_slice(place, frame, i);
    const ht_placement *p = place->now;
    cost->bytes += (double)(p->runs * (bytes_values + 2) + p->gathers * (bytes_values + 2 * HT_LANES));
    for (int64_t e = 0; e < p->begin[HT_LANES]; e++) {
      int64_t line = (i + p->column[e]) * block / LINE;
      lines[line / 64] |= 1ull << (line % 64);
    }
  }
  for (int64_t k = 0; k < words; k++) {
    cost->x_lines += __builtin_popcountll(lines[k]);
    lines[k] = 0;
  }
}

static void add_sample(const ht_node_graph *g, const int32_t *order, const int32_t *inverse, ht_place *place, uint64_t *lines,
                       int64_t words, ht_split_cost *cost) {
  ht_place_frame frame = {g, order, inverse, ht_split_padded(g->nodes * g->block, g->block) / g->block, 0, INT32_MAX, 1};
  int64_t parts = (g->nodes + SAMPLE_NODES - 1) / SAMPLE_NODES, samples = parts < SAMPLE_TILES ? parts : SAMPLE_TILES, rows = 0;
  *cost = (ht_split_cost){0, 0};
  for (int64_t k = 0; k < samples; k++) {
    int64_t node = parts * k / samples * SAMPLE_NODES, nodes = g->nodes - node < SAMPLE_NODES ? g->nodes - node : SAMPLE_NODES;
    add_tile(&frame, node, nodes, place, lines, words, cost);
    rows += nodes * g->block;
  }
  if (rows > 0) *cost = (ht_split_cost){cost->bytes / (double)rows, cost->x_lines / (double)rows};
}

ht_status ht_split_estimate(ht_context *ctx, const ht_node_graph *g, const int32_t *order, ht_split_cost *cost) {
  int64_t words = g->nodes * g->block / LINE / 64 + 1;
  ht_place place = {0};
  uint64_t *lines = NULL;
  int32_t *inverse = NULL;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_place_create(ctx, ht_place_capacity(ctx, g), &place), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, words, sizeof *lines, &lines), done);
  if (order) {
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *inverse, &inverse), done);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (g->nodes > 20000)
    for (int64_t i = 0; i < g->nodes; i++) inverse[order[i]] = (int32_t)i;
  }
  add_sample(g, order, inverse, &place, lines, words, cost);
done:
  ht_place_release(ctx, &place);
  ht_release(ctx, lines);
  ht_release(ctx, inverse);
  return status;
}
