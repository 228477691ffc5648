/* Orders of the nodes: reverse Cuthill-McKee (George and Liu 1981), and the choice between it and the natural order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/order.h"

enum {
  HUB = 256,  /* neighbours that make a node a hub */
  AHEAD = 16, /* nodes whose rows are prefetched: they stand anywhere */
};

typedef struct search {
  const ht_node_graph *graph;
  int32_t *queue;   /* nodes in the order they were reached */
  uint8_t *reached; /* in this search, or numbered */
} search;

static int32_t degree(const ht_node_graph *g, int32_t node) { return (int32_t)(g->start[node + 1] - g->start[node]); }

static inline __attribute__((always_inline)) void prefetch(const ht_node_graph *g, const int32_t *queue, int64_t k, int64_t end) {
  if (k + 2 * AHEAD >= end) return;
  __builtin_prefetch(g->start + queue[k + 2 * AHEAD]);
  __builtin_prefetch(g->columns + g->start[queue[k + AHEAD]]);
}

/* A node at the far end of root's component: of least degree in the last level of a breadth-first search. Searching again from
 * there would find little more, and costs as much as the numbering itself. */
static int32_t far_node(search *s, int32_t root, int32_t *queue) {
  const ht_node_graph *g = s->graph;
  int64_t begin = 0, end = 1, last = 0;
  queue[0] = root;
  s->reached[root] = 1;
  for (int64_t nodes = 1; begin < end; begin = end, end = nodes) {
    last = begin;
    for (int64_t k = begin; k < end; k++) {
      prefetch(g, queue, k, nodes);
      for (int64_t e = g->start[queue[k]]; e < g->start[queue[k] + 1]; e++) {
        int32_t next = g->columns[e];
        if (s->reached[next]) continue;
        s->reached[next] = 1;
        queue[nodes++] = next;
      }
    }
  }
  int32_t found = queue[last];
  for (int64_t i = last + 1; i < end; i++)
    if (degree(g, queue[i]) < degree(g, found)) found = queue[i];
  for (int64_t k = 0; k < end; k++) s->reached[queue[k]] = 0;
  return found;
}

/* Stable, by degree. The neighbours of a hub stay as they are: there is no narrow order around it. */
static void sort_by_degree(const ht_node_graph *g, int32_t *node, int64_t count) {
  for (int64_t k = 1; k < count && count <= HUB; k++) {
    int32_t v = node[k], d = degree(g, v);
    int64_t to = k;
    for (; to > 0 && degree(g, node[to - 1]) > d; to--) node[to] = node[to - 1];
    node[to] = v;
  }
}

/* Number the component of `root`, in queue[first..]; returns the end. */
static int64_t number_component(search *s, int32_t root, int64_t first) {
  int64_t end = first;
  s->queue[end++] = root;
  s->reached[root] = 1;
  for (int64_t k = first; k < end; k++) {
    int64_t begin = end;
    prefetch(s->graph, s->queue, k, end);
    for (int64_t e = s->graph->start[s->queue[k]]; e < s->graph->start[s->queue[k] + 1]; e++) {
      int32_t next = s->graph->columns[e];
      if (s->reached[next]) continue;
      s->reached[next] = 1;
      s->queue[end++] = next;
    }
    sort_by_degree(s->graph, s->queue + begin, end - begin);
  }
  return end;
}

ht_status ht_order_rcm(ht_context *ctx, const ht_node_graph *graph, int32_t *order) {
  search s = {.graph = graph, .queue = order};
  HT_TRY(ctx, ht_allocate_zeroed(ctx, graph->nodes, sizeof *s.reached, &s.reached));
  int64_t end = 0;
  for (int64_t node = 0; node < graph->nodes; node++)
    while (!s.reached[node]) end = number_component(&s, far_node(&s, (int32_t)node, order + end), end);
  for (int64_t i = 0; i < end / 2; i++) {
    int32_t keep = order[i];
    order[i] = order[end - 1 - i];
    order[end - 1 - i] = keep;
  }
  ht_release(ctx, s.reached);
  return HT_OK;
}

/* Time of a product in bytes: what is stored and the lines of x that a tile gathers, of which most come from a cache. */
static double weight(const ht_split_cost *c) { return c->bytes + 32 * c->x_lines; }

/* Below this many lines of x a row the natural order is as good as it gets: neighbours share most of their lines. */
static const double few_lines = 1.5, worth_reordering = 0.85;

ht_status ht_order_auto(ht_context *ctx, const ht_node_graph *graph, int32_t **order) {
  ht_split_cost natural, rcm;
  int32_t *found;
  *order = NULL;
  HT_TRY(ctx, ht_split_estimate(ctx, graph, NULL, &natural));
  if (natural.x_lines <= few_lines) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, graph->nodes, sizeof *found, &found));
  ht_status status = ht_order_rcm(ctx, graph, found);
  if (status == HT_OK) status = ht_split_estimate(ctx, graph, found, &rcm);
  if (status == HT_OK && weight(&rcm) < worth_reordering * weight(&natural)) {
    *order = found;
    return HT_OK;
  }
  ht_release(ctx, found);
  return status == HT_OK ? HT_OK : ht_trace(ctx, status, __func__, __FILE__, __LINE__);
}
