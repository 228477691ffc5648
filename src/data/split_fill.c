/* Values of one slice, scaled and in the order of the storage, and its indices. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_fill.h"
#include <string.h>

ht_status ht_fill_create(ht_context *ctx, const ht_split_owner *s, int64_t groups, ht_filled *filled) {
  int64_t size = (int64_t)s->base.view.block * s->base.view.block * HT_LANES;
  if (groups <= HT_ELSEWHERE) groups = HT_ELSEWHERE + 1; /* what goes elsewhere has a place, too */
  HT_TRY(ctx, ht_place_create(ctx, s->capacity, &filled->place));
  HT_TRY(ctx, ht_allocate(ctx, groups * size, sizeof *filled->value, &filled->value));
  HT_TRY(ctx, ht_allocate(ctx, groups * HT_LANES, sizeof *filled->column, &filled->column));
  HT_TRY(ctx, ht_allocate(ctx, groups, sizeof *filled->run_column, &filled->run_column));
  return HT_OK;
}

void ht_fill_release(ht_context *ctx, ht_filled *filled) {
  ht_place_release(ctx, &filled->place);
  ht_release(ctx, filled->value);
  ht_release(ctx, filled->column);
  ht_release(ctx, filled->run_column);
}

/* The rows that lane l of the next slice will read stand anywhere when the order is not natural. Always inline: gcc takes a
 * function that only prefetches for one without effect, and drops its calls. */
static inline __attribute__((always_inline)) void prefetch_next(const ht_filling *w, int64_t node, int64_t block) {
  const int32_t *order = w->s->base.node_order;
  if (!order || node + 2 * HT_LANES >= w->graph->nodes) return;
  int64_t far = order[node + 2 * HT_LANES], near = order[node + HT_LANES];
  __builtin_prefetch(w->a->row_start + far * block);
  int64_t end = w->a->row_start[near * block + 1];
  for (int64_t k = w->a->row_start[near * block]; k < end; k += 8) __builtin_prefetch(w->a->values + k);
  __builtin_prefetch(w->a->values + end - 1);
  if (block > 1) __builtin_prefetch(w->a->columns + w->a->row_start[near * block]);
}

/* ---- one unknown a node ---- */

/* One row into lane l: its groups a byte each, or, where they are more, `wide`. Returns the number of values taken. Without branches:
 * every entry is taken for one of a run, too, and what belongs elsewhere has a group of its own. */
static inline __attribute__((always_inline)) int64_t take_row(const double *values, int64_t count, const uint8_t *group,
                                                              const int32_t *wide, const int32_t *column, int32_t window, int l,
                                                              const ht_filled *filled) {
  double *value = filled->value + l;
  uint16_t *to = filled->column + l, *run_column = filled->run_column;
  int64_t taken = 0;
  for (int64_t k = 0; k < count; k++) {
    if (!group && wide[k] < 0) continue;
    int64_t g = group ? group[k] : wide[k];
    int32_t c = column[k] - window;
    value[g * HT_LANES] = values[k];
    to[g * HT_LANES] = (uint16_t)c;
    run_column[g] = (uint16_t)(c - l);
    taken += g != HT_ELSEWHERE || !group;
  }
  return taken;
}

/* Entries that stand one after the other, the slice's first node's first. */
typedef struct row_entries {
  const uint8_t *group; /* NULL: `wide` has them */
  const int32_t *wide, *column;
  int32_t window; /* what stands for index 0 in `column` */
} row_entries;

/* A lane without an entry reads what another lane reads: the first entry of a gather group. */
static void fill_holes(const ht_slice *slice, int64_t entries, const row_entries *e, const ht_filled *filled) {
  int64_t groups = slice->runs + slice->gathers, first = 0;
  memset(filled->value, 0, (size_t)(groups * HT_LANES) * sizeof *filled->value);
  if (slice->gathers == 0) return;
  if (e->group)
    while (first < entries && (e->group[first] < slice->runs || e->group[first] == HT_ELSEWHERE)) first++;
  else
    while (first < entries && e->wide[first] < slice->runs) first++;
  uint16_t column = (uint16_t)(first < entries ? e->column[first] - e->window : 0);
  for (int64_t k = slice->runs * HT_LANES; k < groups * HT_LANES; k++) filled->column[k] = column;
}

static int64_t take_rows(const ht_filling *w, int64_t node, const row_entries *e, const ht_filled *filled) {
  const int64_t *start = w->solver_graph->start;
  int64_t taken = 0, passed = 0;
  for (int l = 0; l < HT_LANES && node + l < w->graph->nodes; l++) {
    const double *values = w->a->values + w->a->row_start[ht_old_node(w->s->base.node_order, node + l)];
    int64_t count = start[node + l + 1] - start[node + l];
    prefetch_next(w, node + l, 1);
    if (e->group)
      taken += take_row(values, count, e->group + passed, NULL, e->column + passed, e->window, l, filled);
    else
      taken += take_row(values, count, NULL, e->wide + passed, e->column + passed, e->window, l, filled);
    passed += count;
  }
  return taken;
}

static int64_t fill_rows(const ht_filling *w, const ht_tile *t, const ht_place_frame *frame, const ht_slice *slice, int64_t node,
                         const uint8_t *group, uint16_t *index, ht_filled *filled, int *lossy) {
  const ht_node_graph *g = w->solver_graph;
  int64_t end = node + HT_LANES < g->nodes ? node + HT_LANES : g->nodes, groups = slice->runs + slice->gathers;
  int64_t entries = node < end ? g->start[end] - g->start[node] : 0;
  row_entries e = {group, NULL, g->columns, (int32_t)t->window};
  if (group) {
    e.column += g->start[node];
  } else {
    ht_place_slice(&filled->place, frame, node);
    e = (row_entries){NULL, filled->place.now->group, filled->place.now->column, (int32_t)(t->window - node)};
  }
  if (!frame->whole || entries < groups * HT_LANES) fill_holes(slice, entries, &e, filled);
  int64_t taken = take_rows(w, node, &e, filled);
  memcpy(index, filled->run_column, (size_t)slice->runs * sizeof *index);
  memcpy(index + slice->runs, filled->column + (int64_t)slice->runs * HT_LANES, (size_t)slice->gathers * HT_LANES * sizeof *index);
  const ht_scaling by = {w->inverse + node, w->inverse + t->window, w->exponent + node, w->exponent + t->window, index, slice->runs,
                         w->reach};
  *lossy |= w->codec->scale(&by, groups, filled->value);
  return taken;
}

/* ---- nodes of several unknowns ---- */

/* Where the values of one lane of a slice go, and what they are divided by. */
typedef struct lane_target {
  const int32_t *group, *column; /* of the node's entries */
  const int16_t *exponent;       /* of the columns, as `column` counts them */
  double *to;                    /* the lane's place in group 0 */
  int reach;
} lane_target;

/* One row of a node: its entries are some of those of the node's columns. */
static inline int64_t take_node_row(const double *values, const int32_t *columns, int64_t count, const int32_t *node_columns,
                                    int own_exponent, const lane_target *lane, int *lossy, const int block) {
  int64_t p = 0, taken = 0;
  for (int64_t k = 0; k < count; k++) {
    while (node_columns[p] * block + block <= columns[k]) p++;
    int64_t j = columns[k] - node_columns[p] * block;
    if (lane->group[p] < 0) continue;
    lane->to[((int64_t)lane->group[p] * block * block + j) * HT_LANES] =
        ht_scale_down(values[k], own_exponent + lane->exponent[(int64_t)lane->column[p] * block + j], lane->reach, lossy);
    taken++;
  }
  return taken;
}

/* Values of one slice into their places; returns their number. Entry k of a node stands for the caller's column
 * graph->columns[k] and the solver's solver_graph->columns[k]. */
static inline int64_t take_nodes(const ht_filling *w, const ht_filled *filled, int *lossy, const int block) {
  const ht_csr_view *a = w->a;
  const ht_place *place = &filled->place;
  const int16_t *exponent = w->exponent + place->node * block;
  const ht_placement *p = place->now;
  int64_t taken = 0;
  for (int l = 0; l < HT_LANES && place->node + l < w->graph->nodes; l++) {
    int64_t old = ht_old_node(w->s->base.node_order, place->node + l);
    prefetch_next(w, place->node + l, block);
    for (int64_t i = 0; i < block; i++) {
      int64_t begin = a->row_start[old * block + i], count = a->row_start[old * block + i + 1] - begin;
      lane_target lane = {p->group + p->begin[l], p->column + p->begin[l], exponent, filled->value + i * block * HT_LANES + l, w->reach};
      taken += take_node_row(a->values + begin, a->columns + begin, count, w->graph->columns + w->graph->start[old],
                             exponent[l * block + i], &lane, lossy, block);
    }
  }
  return taken;
}

/* A lane without an entry reads what another lane reads. */
static void write_index(const ht_place *place, int64_t window, uint16_t *index) {
  const ht_placement *p = place->now;
  int64_t base = place->node - window;
  for (int k = 0; k < p->runs; k++) *index++ = (uint16_t)(base + p->run_column[k]);
  int filled = 0;
  for (int l = 0; l < HT_LANES && p->gathers > 0; l++)
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      if (p->group[e] < p->runs) continue;
      uint16_t column = (uint16_t)(base + p->column[e]);
      if (!filled)
        for (; filled < p->gathers * HT_LANES; filled++) index[filled] = column;
      index[(p->group[e] - p->runs) * HT_LANES + l] = column;
    }
}

static int64_t fill_nodes(const ht_filling *w, const ht_tile *t, const ht_place_frame *frame, const ht_slice *slice, int64_t node,
                          const uint8_t *group, uint16_t *index, ht_filled *filled, int *lossy) {
  int64_t block = w->graph->block, groups = slice->runs + slice->gathers;
  if (group)
    ht_place_recall(&filled->place, frame, node, slice, group);
  else
    ht_place_slice(&filled->place, frame, node);
  write_index(&filled->place, t->window, index);
  memset(filled->value, 0, (size_t)(groups * block * block * HT_LANES) * sizeof *filled->value);
  return block == 2 ? take_nodes(w, filled, lossy, 2) : take_nodes(w, filled, lossy, 3);
}

int64_t ht_fill_slice(const ht_filling *w, const ht_tile *t, const ht_place_frame *frame, int64_t slice, int64_t index, ht_filled *filled,
                      int *lossy) {
  const ht_split_owner *s = w->s;
  int64_t node = t->row / w->graph->block + slice * HT_LANES, at = t->slice + slice;
  const uint8_t *group = s->has_groups && s->has_groups[at] ? s->group + ht_split_group_place(s, w->solver_graph, t, node) : NULL;
  return (w->graph->block == 1 ? fill_rows : fill_nodes)(w, t, frame, &s->slice[at], node, group, s->index + index, filled, lossy);
}
