/* Orders of the nodes: reverse Cuthill-McKee (George and Liu 1981), and the choice between it and the natural order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/order.h"
#include <omp.h>
#include <stdatomic.h>
#include "data/order_cache.h"

enum {
  HUB = 256,            /* neighbours that make a node a hub */
  AHEAD = 16,           /* nodes whose rows are prefetched: they stand anywhere */
  TOGETHER_FROM = 2048, /* nodes of a level that all threads work on */
  FEWEST_THREADS = 4    /* fewer gain nothing: a level is then looked at three times instead of once */
};

typedef struct search {
  const ht_node_graph *graph;
  int32_t *queue;   /* nodes in the order they were reached */
  uint8_t *reached; /* in this search, or numbered */
  int threads;
  /* For levels that all threads work on. A node's owner is the place in the queue of the first node that has it as a neighbour, and a
   * later one never takes it over: that makes a level the same whoever looks at its nodes in whatever sequence. */
  _Atomic int32_t *owner;
  int64_t *count; /* nodes that each thread adds to the queue */
} search;

enum { FREE = INT32_MAX };

static int32_t degree(const ht_node_graph *g, int32_t node) { return (int32_t)(g->start[node + 1] - g->start[node]); }

static inline __attribute__((always_inline)) void prefetch(const ht_node_graph *g, const int32_t *queue, int64_t k, int64_t end) {
  if (k + 2 * AHEAD >= end) return;
  __builtin_prefetch(g->start + queue[k + 2 * AHEAD]);
  __builtin_prefetch(g->columns + g->start[queue[k + AHEAD]]);
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

static inline int32_t owner_of(const search *s, int32_t node) { return atomic_load_explicit(&s->owner[node], memory_order_relaxed); }
static inline void own(const search *s, int32_t node, int32_t place) {
  atomic_store_explicit(&s->owner[node], place, memory_order_relaxed);
}

/* The free neighbours of the nodes from `begin` on, appended at `end`; returns the new end. */
static int64_t append_neighbours(const search *s, int64_t begin, int64_t end, int sorted) {
  const ht_node_graph *g = s->graph;
  int64_t nodes = end;
  for (int64_t k = begin; k < end; k++) {
    int64_t first = nodes;
    prefetch(g, s->queue, k, nodes);
    for (int64_t e = g->start[s->queue[k]]; e < g->start[s->queue[k] + 1]; e++) {
      int32_t next = g->columns[e];
      if (s->reached[next]) continue;
      s->reached[next] = 1;
      s->queue[nodes++] = next;
    }
    if (sorted) sort_by_degree(g, s->queue + first, nodes - first);
  }
  return nodes;
}

/* Take what is free, or was taken for a later place. */
static void claim(const search *s, int64_t begin, int64_t end) {
  const ht_node_graph *g = s->graph;
  for (int64_t k = begin; k < end; k++) {
    prefetch(g, s->queue, k, end);
    for (int64_t e = g->start[s->queue[k]]; e < g->start[s->queue[k] + 1]; e++) {
      if (s->reached[g->columns[e]]) continue;
      int32_t taken = owner_of(s, g->columns[e]);
      while (taken > k && !atomic_compare_exchange_weak_explicit(&s->owner[g->columns[e]], &taken, (int32_t)k, memory_order_relaxed,
                                                                 memory_order_relaxed))
        continue;
    }
  }
}

/* Owned by place k and counted, so that a neighbour that is named twice counts once. */
static inline int32_t counted(int64_t k) { return (int32_t)(-2 - k); }

static int64_t count_owned(const search *s, int64_t begin, int64_t end) {
  const ht_node_graph *g = s->graph;
  int64_t count = 0;
  for (int64_t k = begin; k < end; k++)
    for (int64_t e = g->start[s->queue[k]]; e < g->start[s->queue[k] + 1]; e++) {
      if (owner_of(s, g->columns[e]) != k) continue;
      own(s, g->columns[e], counted(k));
      count++;
    }
  return count;
}

static void append_owned(const search *s, int64_t begin, int64_t end, int64_t to, int sorted) {
  const ht_node_graph *g = s->graph;
  for (int64_t k = begin; k < end; k++) {
    int64_t first = to;
    for (int64_t e = g->start[s->queue[k]]; e < g->start[s->queue[k] + 1]; e++) {
      if (owner_of(s, g->columns[e]) != counted(k)) continue;
      own(s, g->columns[e], FREE);
      s->reached[g->columns[e]] = 1;
      s->queue[to++] = g->columns[e];
    }
    if (sorted) sort_by_degree(g, s->queue + first, to - first);
  }
}

/* What append_neighbours does, by all threads: each takes its part of the level, and looks at it three times. */
static int64_t append_together(const search *s, int64_t begin, int64_t end, int sorted) {
#pragma omp parallel num_threads(s->threads)
  {
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads(), to = end;
    int64_t first = begin + (end - begin) * thread / threads, last = begin + (end - begin) * (thread + 1) / threads;
    claim(s, first, last);
#pragma omp barrier
    s->count[thread] = count_owned(s, first, last);
#pragma omp barrier
    for (int64_t t = 0; t < thread; t++) to += s->count[t];
    append_owned(s, first, last, to, sorted);
    if (thread == threads - 1) s->count[s->threads] = to + s->count[thread];
  }
  return s->count[s->threads];
}

/* The nodes that root reaches, into the queue from `first` on, level by level. Returns their end; *last: where the last level begins. */
static int64_t search_component(const search *s, int32_t root, int64_t first, int sorted, int64_t *last) {
  int64_t begin = first, end = first + 1;
  s->queue[first] = root;
  s->reached[root] = 1;
  while (begin < end) {
    int64_t next =
        s->owner && end - begin >= TOGETHER_FROM ? append_together(s, begin, end, sorted) : append_neighbours(s, begin, end, sorted);
    *last = begin;
    begin = end;
    end = next;
  }
  return end;
}

/* A node at the far end of root's component: of least degree in the last level of a breadth-first search. Searching again from
 * there would find little more, and costs as much as the numbering itself. */
static int32_t far_node(const search *s, int32_t root, int64_t first) {
  int64_t last, end = search_component(s, root, first, 0, &last);
  int32_t found = s->queue[last];
  for (int64_t i = last + 1; i < end; i++)
    if (degree(s->graph, s->queue[i]) < degree(s->graph, found)) found = s->queue[i];
#pragma omp parallel for schedule(static) num_threads(s->threads) if (end - first > 20000)
  for (int64_t k = first; k < end; k++) s->reached[s->queue[k]] = 0;
  return found;
}

static void reverse(int32_t *order, int64_t count, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count > 20000)
  for (int64_t i = 0; i < count / 2; i++) {
    int32_t keep = order[i];
    order[i] = order[count - 1 - i];
    order[count - 1 - i] = keep;
  }
}

ht_status ht_order_rcm(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, int32_t *order) {
  search s = {.graph = graph, .queue = order, .threads = ctx->threads};
  int64_t end = 0, last;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, graph->nodes, sizeof *s.reached, &s.reached), done);
  if (s.threads >= FEWEST_THREADS && graph->nodes >= TOGETHER_FROM) {
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, graph->nodes, sizeof *s.owner, &s.owner), done);
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, s.threads + 1, sizeof *s.count, &s.count), done);
#pragma omp parallel for schedule(static) num_threads(s.threads) if (graph->nodes > 20000)
    for (int64_t i = 0; i < graph->nodes; i++) own(&s, (int32_t)i, FREE);
  }
  for (int64_t node = 0; node < graph->nodes; node++)
    while (!s.reached[node])
      end = search_component(&s, root == HT_ROOT_FAR ? far_node(&s, (int32_t)node, end) : (int32_t)node, end, 1, &last);
  reverse(order, end, s.threads);
done:
  ht_release(ctx, s.reached);
  ht_release(ctx, (void *)s.owner);
  ht_release(ctx, s.count);
  return status;
}

/* Time of a product in bytes: what is stored and the lines of x that a tile gathers, of which most come from a cache. */
static double weight(const ht_split_cost *c) { return c->bytes + 32 * c->x_lines; }

/* Below this many lines of x a row the natural order is as good as it gets: neighbours share most of their lines. */
static const double few_lines = 1.5, worth_reordering = 0.85;

ht_status ht_order_auto(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, const ht_fingerprint *known, int32_t **order) {
  ht_split_cost natural, rcm;
  int32_t *found;
  *order = NULL;
  HT_TRY(ctx, ht_split_estimate(ctx, graph, NULL, &natural));
  if (natural.x_lines <= few_lines) return HT_OK;
  HT_TRY(ctx, ht_allocate(ctx, graph->nodes, sizeof *found, &found));
  ht_status status = ht_order_rcm_kept(ctx, graph, root, known, found);
  if (status == HT_OK) status = ht_split_estimate(ctx, graph, found, &rcm);
  if (status == HT_OK && weight(&rcm) < worth_reordering * weight(&natural)) {
    *order = found;
    return HT_OK;
  }
  ht_release(ctx, found);
  return status == HT_OK ? HT_OK : ht_trace(ctx, status, __func__, __FILE__, __LINE__);
}
