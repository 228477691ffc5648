/* Where the tiles lie: row blocks, column windows, slices and counts. SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <string.h>
#include "data/split_internal.h"

enum { TILE_NONZEROS = 40000, LEAST_ROWS = 512, MOST_ROWS = 4096, LEAST_TILES = 32, APART = 64 /* bytes: a cache line */ };

int64_t ht_split_tile_rows(const ht_csr_view *a, int block, int64_t asked) {
  int64_t unit = ht_split_padded(1, block), rows = asked;
  if (rows == 0) {
    rows = a->nnz > 0 ? TILE_NONZEROS * a->n / a->nnz : MOST_ROWS;
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
    if (rows > a->n / LEAST_TILES) rows = a->n / LEAST_TILES; /* small matrices: some tiles for every thread */
  }
  return rows < unit ? unit : rows / unit * unit;
}

/* Columns that the nodes [node, node + count) read. Rows in the caller's order are ascending: their ends are enough. */
static ht_tile_range span(const ht_node_graph *g, int64_t node, int64_t count) {
  ht_tile_range r = {INT32_MAX, 0};
  for (int64_t i = node; i < node + count && i < g->nodes; i++) {
    int64_t begin = g->start[i], end = g->start[i + 1], step = !g->permuted && end - begin > 1 ? end - 1 - begin : 1;
    for (int64_t k = begin; k < end; k += step) {
      if (g->columns[k] < r.low) r.low = g->columns[k];
      if (g->columns[k] >= r.high) r.high = g->columns[k] + 1;
    }
  }
  if (r.low > r.high) r.low = 0;
  return r;
}

static ht_tile_range join(ht_tile_range a, ht_tile_range b) {
  if (a.high == 0) return b;
  if (b.high == 0) return a;
  return (ht_tile_range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

typedef struct cutter {
  ht_split_owner *s;
  const ht_node_graph *graph;
  int64_t unit_nodes;  /* smallest tile */
  ht_tile_range *unit; /* span of each smallest tile */
  uint8_t *reached;    /* a byte for HT_COLUMN_BLOCK nodes */
  int64_t capacity;    /* tiles that there is room for */
  ht_status status;
} cutter;

static int fits(ht_tile_range r) { return (int64_t)r.high - r.low <= HT_WINDOW; }

/* One more than `tiles`: behind the last stand the totals. */
static ht_status make_room(cutter *c, int64_t tiles) {
  ht_split_owner *s = c->s;
  ht_context *ctx = s->base.ctx;
  ht_tile *tile;
  ht_tile_range *range;
  if (tiles < c->capacity) return HT_OK;
  int64_t capacity = 2 * tiles + 64, kept = s->base.view.tiles;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, capacity, sizeof *tile, &tile));
  if (kept) memcpy(tile, s->tile, (size_t)kept * sizeof *tile);
  ht_release(ctx, s->tile);
  s->tile = tile;
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *range, &range));
  if (kept) memcpy(range, s->range, (size_t)kept * sizeof *range);
  ht_release(ctx, s->range);
  s->range = range;
  c->capacity = capacity;
  return HT_OK;
}

static void add_tile(cutter *c, int64_t unit, int64_t units, ht_tile_range range, int accumulate) {
  ht_split_owner *s = c->s;
  int64_t rows = units * c->unit_nodes * c->graph->block, row = unit * c->unit_nodes * c->graph->block, *tiles = &s->base.view.tiles;
  if (c->status == HT_OK) c->status = make_room(c, *tiles + 1);
  if (c->status != HT_OK) return;
  s->range[*tiles] = range;
  s->tile[(*tiles)++] = (ht_tile){.row = row,
                                  .rows = rows,
                                  .window = range.low < HT_LANES ? 0 : range.low - (HT_LANES - 1),
                                  .slices = rows / (HT_LANES * c->graph->block),
                                  .accumulate = (uint8_t)accumulate};
}

/* Row blocks too wide for one window: mark what they read, and cover it from the left with windows. */
static void add_windows(cutter *c, int64_t unit, int64_t units, ht_tile_range range) {
  int64_t first = range.low / HT_COLUMN_BLOCK, last = (range.high - 1) / HT_COLUMN_BLOCK;
  memset(c->reached + first, 0, (size_t)(last - first + 1));
  for (int64_t i = unit * c->unit_nodes; i < (unit + units) * c->unit_nodes && i < c->graph->nodes; i++)
    for (int64_t k = c->graph->start[i]; k < c->graph->start[i + 1]; k++) c->reached[c->graph->columns[k] / HT_COLUMN_BLOCK] = 1;
  int accumulate = 0;
  for (int64_t b = first; b <= last; b++) {
    if (!c->reached[b]) continue;
    int64_t end = b + HT_WINDOW / HT_COLUMN_BLOCK, high = end * HT_COLUMN_BLOCK < range.high ? end * HT_COLUMN_BLOCK : range.high;
    add_tile(c, unit, units, (ht_tile_range){(int32_t)(b * HT_COLUMN_BLOCK), (int32_t)high}, accumulate);
    accumulate = 1;
    b = end - 1;
  }
}

/* Halve a row block while that brings it into one window; where even the smallest tile is too wide, keep the rows together. */
static void cut(cutter *c, int64_t unit, int64_t units) {
  ht_tile_range all = c->unit[unit];
  for (int64_t u = unit + 1; u < unit + units; u++) all = join(all, c->unit[u]);
  if (fits(all)) {
    add_tile(c, unit, units, all, 0);
  } else if (units > 1 && fits(c->unit[unit]) && fits(c->unit[unit + units - 1])) {
    cut(c, unit, units / 2);
    cut(c, unit + units / 2, units - units / 2);
  } else {
    add_windows(c, unit, units, all);
  }
}

ht_status ht_split_cut(ht_context *ctx, ht_split_owner *s, const ht_node_graph *graph, int64_t tile_rows) {
  cutter c = {.s = s, .graph = graph, .unit_nodes = ht_split_padded(1, graph->block) / graph->block};
  int64_t unit_rows = c.unit_nodes * graph->block, units = s->base.view.padded / unit_rows, tile_units = tile_rows / unit_rows;
  int threads = ctx->threads;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, units, sizeof *c.unit, &c.unit), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, graph->nodes / HT_COLUMN_BLOCK + 1, sizeof *c.reached, &c.reached), done);
#pragma omp parallel for schedule(static) num_threads(threads) if (units > 64)
  for (int64_t u = 0; u < units; u++) c.unit[u] = span(graph, u * c.unit_nodes, c.unit_nodes);
  c.status = make_room(&c, units / tile_units + 1);
  for (int64_t u = 0; u < units; u += tile_units) cut(&c, u, units - u < tile_units ? units - u : tile_units);
  HT_TRY_GOTO(ctx, status, c.status, done);
  s->base.view.tile = s->tile;
done:
  ht_release(ctx, c.unit);
  ht_release(ctx, c.reached);
  return status;
}

/* Slices, counts and touched column blocks of one tile; `seen` has a byte a column block, left cleared. */
static void count_tile(const ht_split_owner *s, const ht_node_graph *graph, int64_t tile, ht_place *place, uint8_t *seen) {
  ht_tile *t = &s->tile[tile];
  ht_place_frame frame = ht_split_frame(s, graph, tile);
  for (int64_t k = 0; k < t->slices; k++) {
    int64_t node = t->row / graph->block + k * HT_LANES;
    ht_place_slice(place, &frame, node);
    s->has_groups[t->slice + k] = (uint8_t)(node < graph->nodes && s->group_place[tile] >= 0 &&
                                            ht_place_remember(place, graph->block, s->group + ht_split_group_place(s, graph, t, node)));
    ht_place_mark(place, graph->block, seen, s->base.view.blocks);
    s->slice[t->slice + k] = (ht_slice){(uint16_t)place->now->runs, (uint16_t)place->now->gathers};
    t->groups += place->now->runs + place->now->gathers;
    t->nonzeros += place->now->entries * graph->block * graph->block; /* of whole nodes, until the values are seen */
    t->index += place->now->runs + HT_LANES * place->now->gathers;    /* a length until the tiles are summed */
  }
  t->touches = ht_place_list_marks(seen, t->window * graph->block, ht_split_reach(&s->base.view, &s->range[tile]), s->listed + t->touch);
}

ht_status ht_split_count(ht_context *ctx, ht_split_owner *s, const ht_node_graph *graph) {
  int threads = ctx->threads;
  int64_t blocks = (s->base.view.blocks + APART) / APART * APART; /* one more at least */
  ht_place *place;
  uint8_t *seen = NULL;
  ht_status status;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, threads, sizeof *place, &place));
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, threads * blocks, sizeof *seen, &seen), done);
  for (int k = 0; k < threads; k++) HT_TRY_GOTO(ctx, status, ht_place_create(ctx, s->capacity, &place[k]), done);
  int64_t tiles = s->base.view.tiles;
#pragma omp parallel for schedule(static) num_threads(threads) if (tiles > 1)
  for (int64_t t = 0; t < tiles; t++) count_tile(s, graph, t, &place[omp_get_thread_num()], seen + omp_get_thread_num() * blocks);
done:
  for (int k = 0; k < threads; k++) ht_place_release(ctx, &place[k]);
  ht_release(ctx, place);
  ht_release(ctx, seen);
  return status;
}
