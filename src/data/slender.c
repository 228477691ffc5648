/* Levels of a mesh's graph. SPDX-License-Identifier: BSD-3-Clause */
#include "data/slender.h"
#include <math.h>

typedef struct search {
  const ht_csr_view *a;
  int unknowns;
  uint8_t *reached; /* a node */
  int32_t *queue;
} search;

enum { AHEAD = 8 }; /* nodes whose rows are fetched: they stand anywhere */

static void fetch(const search *s, int64_t k, int64_t end) {
  if (k + 2 * AHEAD >= end) return;
  __builtin_prefetch(s->a->row_start + (int64_t)s->queue[k + 2 * AHEAD] * s->unknowns);
  __builtin_prefetch(s->a->columns + s->a->row_start[(int64_t)s->queue[k + AHEAD] * s->unknowns]);
}

/* The nodes that `root` reaches, into the queue from its start; returns how many, and the levels behind the root's. Entries of a node stand
 * together, and one of them is looked at. unknowns: a constant, since divisions are most of the work. */
static inline __attribute__((always_inline)) int64_t reach_by(const search *s, const int unknowns, int32_t root, int64_t *levels) {
  int64_t end = 1, level_end = 1;
  s->queue[0] = root;
  s->reached[root] = 1;
  *levels = 0;
  for (int64_t k = 0; k < end; k++) {
    if (k == level_end) {
      level_end = end;
      ++*levels;
    }
    fetch(s, k, end);
    int64_t row = (int64_t)s->queue[k] * unknowns;
    for (int64_t e = s->a->row_start[row]; e < s->a->row_start[row + 1]; e += unknowns) {
      int32_t node = s->a->columns[e] / unknowns;
      if (s->reached[node]) continue;
      s->reached[node] = 1;
      s->queue[end++] = node;
    }
  }
  return end;
}

static int64_t reach(const search *s, int32_t root, int64_t *levels) {
  return s->unknowns == 3 ? reach_by(s, 3, root, levels) : reach_by(s, 2, root, levels);
}

/* Of the largest component: its nodes, and its levels from the node that is reached last. */
static void find_largest(const search *s, int64_t nodes, int64_t *most, int64_t *levels) {
  int32_t end_node = 0;
  *most = 0;
  for (int64_t root = 0; root < nodes; root++) {
    if (s->reached[root]) continue;
    int64_t count = reach(s, (int32_t)root, levels);
    if (count <= *most) continue;
    *most = count;
    end_node = s->queue[count - 1];
  }
  for (int64_t k = 0; k < nodes; k++) s->reached[k] = 0;
  if (nodes > 0) reach(s, end_node, levels);
}

double ht_slenderness(ht_context *ctx, const ht_csr_view *a, int unknowns) {
  search s = {.a = a, .unknowns = unknowns};
  int64_t nodes, most = 0, levels = 0;
  if (unknowns < 2 || unknowns > 3) return 0;
  nodes = (a->n + unknowns - 1) / unknowns;
  if (ht_allocate_zeroed(ctx, nodes, sizeof *s.reached, &s.reached) == HT_OK && ht_allocate(ctx, nodes, sizeof *s.queue, &s.queue) == HT_OK)
    find_largest(&s, nodes, &most, &levels);
  else
    ht_context_clear_error(ctx);
  ht_release(ctx, s.reached);
  ht_release(ctx, s.queue);
  return most > 0 ? (double)levels / (unknowns == 3 ? cbrt((double)most) : sqrt((double)most)) : 0;
}
