/* Construction and destruction of the split storage. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split.h"
#include <string.h>
#include "data/split_internal.h"

/* Sorting the rows by length pays from here: padding of eight-row slices over nonzeros, and stored bytes. */
static const double worth_trying = 1.03, worth_sorting = 0.97;

/* ---- order of the nodes ---- */

static int64_t length_of(const ht_node_graph *g, int64_t old) { return g->start[old + 1] - g->start[old]; }

/* Entries that slices of eight rows hold when every row is padded to the longest, over the entries there are. */
static double padding(const ht_node_graph *g, const int32_t *order, int threads) {
  int64_t padded = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : padded) if (g->nodes > 20000)
  for (int64_t i = 0; i < g->nodes; i += HT_LANES) {
    int64_t longest = 0;
    for (int64_t k = i; k < i + HT_LANES && k < g->nodes; k++) {
      int64_t length = length_of(g, ht_old_node(order, k));
      if (length > longest) longest = length;
    }
    padded += longest * HT_LANES;
  }
  return g->start[g->nodes] > 0 ? (double)padded / (double)g->start[g->nodes] : 1;
}

/* Stable counting sort by length, longest first, inside blocks of tile_nodes. */
static void sort_by_length(const ht_node_graph *g, const int32_t *order, int64_t tile_nodes, int threads, int32_t *sorted) {
  enum { LONGEST = 1023 };
#pragma omp parallel for schedule(static) num_threads(threads) if (g->nodes > 20000)
  for (int64_t first = 0; first < g->nodes; first += tile_nodes) {
    int64_t end = first + tile_nodes < g->nodes ? first + tile_nodes : g->nodes, place[LONGEST + 2] = {0};
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t i = first; i < end; i++) {
        int64_t old = ht_old_node(order, i), length = length_of(g, old), key = length < LONGEST ? LONGEST - length : 0;
        if (pass == 0)
          place[key + 1]++;
        else
          sorted[first + place[key]++] = (int32_t)old;
      }
      for (int64_t key = 0; pass == 0 && key <= LONGEST; key++) place[key + 1] += place[key];
    }
  }
}

/* The order asked for, with the rows of each tile sorted by length where that lowers the stored bytes. */
static ht_status choose_order(ht_context *ctx, const ht_node_graph *g, const int32_t *order, int64_t tile_nodes, int32_t **chosen) {
  ht_split_cost as_is, sorted_cost;
  int32_t *sorted;
  *chosen = NULL;
  HT_TRY(ctx, ht_allocate(ctx, g->nodes, sizeof *sorted, &sorted));
  ht_status status = HT_OK;
  int sort = 0;
  if (padding(g, order, ctx->threads) > worth_trying) {
    sort_by_length(g, order, tile_nodes, ctx->threads, sorted);
    HT_TRY_GOTO(ctx, status, ht_split_estimate(ctx, g, order, &as_is), fail);
    HT_TRY_GOTO(ctx, status, ht_split_estimate(ctx, g, sorted, &sorted_cost), fail);
    sort = sorted_cost.bytes < worth_sorting * as_is.bytes;
  }
  if (!sort && order) memcpy(sorted, order, (size_t)g->nodes * sizeof *sorted);
  if (!sort && !order) goto fail; /* natural: nothing to keep */
  *chosen = sorted;
  return HT_OK;
fail:
  ht_release(ctx, sorted);
  return status;
}

static ht_status set_order(ht_context *ctx, ht_split_owner *s, const ht_node_graph *g, const int32_t *order, int64_t tile_nodes) {
  int block = g->block, threads = ctx->threads;
  HT_TRY(ctx, choose_order(ctx, g, order, tile_nodes, &s->base.node_order));
  if (!s->base.node_order) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, g->nodes, sizeof *s->inverse, &s->inverse));
#pragma omp parallel for schedule(static) num_threads(threads) if (g->nodes > 20000)
  for (int64_t i = 0; i < g->nodes; i++) s->inverse[s->base.node_order[i]] = (int32_t)i;
  if (block == 1) {
    s->base.order = s->base.node_order;
    return HT_OK;
  }
  HT_TRY(ctx, ht_allocate(ctx, g->nodes * block, sizeof *s->base.order, &s->base.order));
#pragma omp parallel for schedule(static) num_threads(threads) if (g->nodes > 20000)
  for (int64_t i = 0; i < g->nodes * block; i++) s->base.order[i] = (int32_t)(s->base.node_order[i / block] * block + i % block);
  return HT_OK;
}

/* ---- arrays ---- */

/* Turn the tiles' counts into offsets; the tile past the last holds the totals. */
static void sum_tiles(ht_split_owner *s) {
  ht_split_view *view = &s->base.view;
  ht_tile next = {0};
  for (int64_t t = 0; t <= view->tiles; t++) {
    ht_tile *tile = &s->tile[t];
    int64_t index = tile->index;
    tile->group = next.group;
    tile->index = next.index;
    tile->touch = next.touch;
    tile->delta = next.delta;
    tile->exception = next.exception;
    next.group += tile->groups;
    next.index += index;
    next.touch += tile->touches;
    next.delta += tile->rows * view->block;
    next.exception += tile->nonzeros / HT_EXCEPTION_SHARE; /* the most it may have */
  }
  view->groups = next.group;
}

static void touch(void *memory, int64_t from, int64_t to) {
  enum { PAGE = 4096 };
  char *p = memory;
  for (int64_t k = (from + PAGE - 1) / PAGE * PAGE; k < to; k += PAGE) p[k] = 0;
}

/* First touch by the thread that the product gives the tile to: that places the pages on its memory node. One thread alone touches a page
 * when it writes it, while what the kernel has cleared is still in its cache. */
static void touch_pages(ht_split_owner *s, int threads) {
  if (threads == 1) return;
  int64_t tiles = s->base.view.tiles, size = (int64_t)s->base.view.block * s->base.view.block * HT_LANES;
#pragma omp parallel for schedule(static) num_threads(threads) if (tiles > 64)
  for (int64_t k = 0; k < tiles; k++) {
    const ht_tile *t = &s->tile[k];
    touch(s->head, t->group * size * 2, t[1].group * size * 2);
    touch(s->mid, t->group * size * 2, t[1].group * size * 2);
    touch(s->tail, t->group * size * 4, t[1].group * size * 4);
    touch(s->index, t->index * 2, t[1].index * 2);
    touch(s->exponent, t->group, t[1].group);
    for (int level = 0; level < HT_LEVEL_64; level++) touch(s->delta[level], t->delta * 2, t[1].delta * 2);
  }
}

/* The next array in a block of memory, or its place when there is no block yet. */
static void *take_array(char *memory, int64_t *used, int64_t bytes) {
  enum { ALIGNMENT = 64 };
  void *array = memory ? memory + *used : NULL;
  *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return array;
}

/* Returns the bytes of all. */
static int64_t lay_arrays(ht_split_owner *s, char *memory) {
  const ht_split_view *view = &s->base.view;
  const ht_tile *end = &s->tile[view->tiles];
  int64_t values = view->groups * view->block * view->block * HT_LANES, used = 0;
  s->tail = take_array(memory, &used, values * (int64_t)sizeof *s->tail);
  s->head = take_array(memory, &used, values * (int64_t)sizeof *s->head);
  s->mid = take_array(memory, &used, values * (int64_t)sizeof *s->mid);
  s->index = take_array(memory, &used, end->index * (int64_t)sizeof *s->index);
  s->exponent = take_array(memory, &used, view->groups * (int64_t)sizeof *s->exponent);
  s->exception = take_array(memory, &used, end->exception * (int64_t)sizeof *s->exception);
  for (int level = 0; level < HT_LEVEL_64; level++) {
    s->delta[level] = take_array(memory, &used, end->delta * (int64_t)sizeof *s->delta[level]);
    s->delta_exponent[level] = take_array(memory, &used, view->slices);
  }
  s->touched = take_array(memory, &used, end->touch * (int64_t)sizeof *s->touched);
  s->scale_exponent = take_array(memory, &used, view->padded * (int64_t)sizeof *s->scale_exponent);
  for (int level = 0; level < HT_LEVEL_64; level++)
    s->column_error[level] = take_array(memory, &used, view->blocks * (int64_t)sizeof *s->column_error[level]);
  return used;
}

static ht_status allocate_arrays(ht_context *ctx, ht_split_owner *s) {
  ht_split_view *view = &s->base.view;
  HT_TRY(ctx, ht_allocate(ctx, lay_arrays(s, NULL), 1, &s->arrays));
  lay_arrays(s, s->arrays);
  touch_pages(s, ctx->threads);
  view->index = s->index;
  view->exponent = s->exponent;
  view->head = s->head;
  view->mid = s->mid;
  view->tail = s->tail;
  view->exception = s->exception;
  view->touched = s->touched;
  for (int level = 0; level < HT_LEVEL_64; level++) view->column_error[level] = s->column_error[level];
  return HT_OK;
}

/* Where the groups of each tile's entries are kept until the values come: of as many windows a row, on the average, as take four bytes a
 * nonzero. Returns the number of all. */
static int64_t place_groups(ht_split_owner *s, const ht_node_graph *g) {
  enum { MOST_WINDOWS = 4 };
  int64_t sum = 0, most = MOST_WINDOWS * g->start[g->nodes];
  for (int64_t t = 0; t < s->base.view.tiles; t++) {
    int64_t first = s->tile[t].row / g->block, end = first + s->tile[t].slices * HT_LANES;
    int64_t entries = first < g->nodes ? g->start[end < g->nodes ? end : g->nodes] - g->start[first] : 0;
    int fits = entries <= most - sum;
    s->group_place[t] = fits ? sum : -1;
    sum += fits ? entries : 0;
  }
  return sum;
}

/* Tiles and slices, with their counts. */
static ht_status lay_out(ht_context *ctx, ht_split_owner *s, const ht_node_graph *g, int64_t tile_rows) {
  ht_split_view *view = &s->base.view;
  HT_TRY(ctx, ht_split_cut(ctx, s, g, tile_rows));
  int64_t touches = 0, remembered = 0;
  for (int64_t t = 0; t < view->tiles; t++) {
    s->tile[t].slice = view->slices;
    s->tile[t].touch = touches;
    view->slices += s->tile[t].slices;
    touches += ht_split_most_touched(s, t);
  }
  s->tile[view->tiles].slice = view->slices;
  s->capacity = ht_place_capacity(ctx, g);
  HT_TRY(ctx, ht_allocate(ctx, view->tiles, sizeof *s->group_place, &s->group_place));
  remembered = place_groups(s, g);
  HT_TRY(ctx, ht_allocate(ctx, view->slices, sizeof *s->slice, &s->slice));
  HT_TRY(ctx, ht_allocate(ctx, view->slices, 1, &s->has_groups));
  HT_TRY(ctx, ht_allocate(ctx, remembered, 1, &s->group));
  HT_TRY(ctx, ht_allocate(ctx, touches, sizeof *s->listed, &s->listed));
  HT_TRY(ctx, ht_split_count(ctx, s, g));
  view->slice = s->slice;
  sum_tiles(s);
  HT_TRY(ctx, allocate_arrays(ctx, s));
  const int32_t *listed = s->listed;
  for (int64_t t = 0; t < view->tiles; listed += ht_split_most_touched(s, t++))
    memcpy(s->touched + s->tile[t].touch, listed, (size_t)s->tile[t].touches * sizeof *listed);
  return HT_OK;
}

static void forget_count(ht_split_owner *s) {
  ht_release(s->base.ctx, s->group);
  ht_release(s->base.ctx, s->has_groups);
  ht_release(s->base.ctx, s->group_place);
  ht_release(s->base.ctx, s->listed);
  s->group = s->has_groups = NULL;
  s->group_place = NULL;
  s->listed = NULL;
}

static void count_bytes(ht_split_owner *s) {
  ht_split_view *view = &s->base.view;
  const ht_tile *end = &view->tile[view->tiles];
  int64_t exceptions = 0, deltas = 0;
  for (int64_t t = 0; t < view->tiles; t++) exceptions += view->tile[t].exceptions;
  for (int level = 0; level < HT_LEVEL_64; level++) {
    int64_t inexact = 0;
    for (int64_t t = 0; t < view->tiles; t++) inexact += view->tile[t].encoding != HT_RAW && view->tile[t].exact > level;
    view->delta[level] = inexact ? s->delta[level] : NULL;
    view->delta_exponent[level] = s->delta_exponent[level];
    deltas += inexact ? end->delta * 2 + view->slices : 0;
  }
  s->base.bytes = view->groups * (view->block * view->block * HT_LANES * 8 + 1) + end->index * 2 +
                  view->slices * (int64_t)sizeof(ht_slice) + view->tiles * (int64_t)sizeof(ht_tile) + end->touch * 4 +
                  exceptions * (int64_t)sizeof(ht_exception) + deltas + view->blocks * 4 * HT_LEVEL_64 +
                  (view->scale_exponent ? view->padded * 2 : 0);
}

static ht_status build(ht_context *ctx, ht_split_owner *s, const ht_csr_view *a, const ht_node_graph *g, const ht_split_options *options) {
  int64_t tile_rows = ht_split_tile_rows(a, g->block, options->tile_rows);
  s->base.view = (ht_split_view){.n = a->n, .padded = ht_split_padded(a->n, g->block), .block = g->block};
  s->base.view.blocks = s->base.view.padded / HT_COLUMN_BLOCK;
  HT_TRY(ctx, set_order(ctx, s, g, options->order, tile_rows / g->block));
  ht_node_graph solver_graph;
  HT_TRY(ctx, ht_split_permute(ctx, g, s->base.node_order, s->inverse, &solver_graph));
  ht_status status = lay_out(ctx, s, &solver_graph, tile_rows);
  if (status == HT_OK) status = ht_split_encode(s, a, g, &solver_graph);
  ht_node_graph_release(ctx, &solver_graph);
  forget_count(s);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  count_bytes(s);
  return HT_OK;
}

ht_status ht_split_create(ht_context *ctx, const ht_csr_view *a, const ht_node_graph *graph, const ht_split_options *options,
                          ht_split **split) {
  ht_split_owner *s;
  *split = NULL;
  HT_CHECK(ctx, a->n < INT32_MAX - 3 * HT_COLUMN_BLOCK, HT_UNSUPPORTED,
           "the split storage holds up to 2147483454 unknowns, and there are %lld", (long long)a->n);
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *s, &s));
  s->base.ctx = ctx;
  s->base.exactness_flags = options->exactness_flags;
  ht_status status = build(ctx, s, a, graph, options);
  if (status != HT_OK) {
    ht_split_destroy(&s->base);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *split = &s->base;
  return HT_OK;
}

ht_status ht_split_set_values(ht_split *split, const ht_csr_view *a, const ht_node_graph *graph) {
  ht_split_owner *s = (ht_split_owner *)split;
  ht_node_graph solver_graph;
  HT_TRY(split->ctx, ht_split_permute(split->ctx, graph, split->node_order, s->inverse, &solver_graph));
  ht_status status = ht_split_encode(s, a, graph, &solver_graph);
  ht_node_graph_release(split->ctx, &solver_graph);
  if (status != HT_OK) return ht_trace(split->ctx, status, __func__, __FILE__, __LINE__);
  count_bytes(s);
  return HT_OK;
}

void ht_split_destroy(ht_split *split) {
  if (!split) return;
  ht_context *ctx = split->ctx;
  ht_split_owner *s = (ht_split_owner *)split;
  void *const owned[] = {s->tile, s->range, s->slice, s->arrays, s->inverse, split->node_order};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) ht_release(ctx, owned[k]);
  if (split->order != split->node_order) ht_release(ctx, split->order);
  ht_release(ctx, s);
}

/* ---- what others ask of a view ---- */

int64_t ht_split_tile_bytes(const ht_split_view *view, const ht_tile *t, ht_level level) {
  static const int64_t value_bytes[HT_LEVELS] = {2, 4, 8};
  level = ht_tile_level(t, level);
  int64_t bytes = t->groups * (view->block * view->block * HT_LANES * value_bytes[level] + 1) + (t[1].index - t->index) * 2 +
                  t->slices * (int64_t)sizeof(ht_slice);
  if (level == HT_LEVEL_64) return bytes + t->exceptions * (int64_t)sizeof(ht_exception);
  return bytes + (view->delta[level] ? (t[1].delta - t->delta) * 2 + t->slices : 0);
}

void ht_split_tile_levels(const ht_split_view *view, const uint8_t *block_level, uint8_t *tile_level) {
  for (int64_t t = 0; t < view->tiles; t++) {
    const ht_tile *tile = &view->tile[t];
    int level = block_level ? HT_LEVEL_16 : HT_LEVEL_64;
    for (int64_t k = tile->touch; block_level && k < tile->touch + tile->touches && level < HT_LEVEL_64; k++)
      if (block_level[view->touched[k]] > level) level = block_level[view->touched[k]];
    tile_level[t] = (uint8_t)ht_tile_level(tile, (ht_level)level);
  }
}
