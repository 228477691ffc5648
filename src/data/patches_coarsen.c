/* A coarser graph: nodes and their neighbours become one. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches_internal.h"
#include <omp.h>
#include <string.h>

enum { HUB = 256, IS_FREE = INT32_MIN, IS_HUB, AHEAD = 16, PARALLEL_FROM = 20000 };

/* Degree above which a node is a hub: everything is near a hub, so distances through it tell nothing, and its place no one's place. */
static int64_t most_neighbours(const ht_node_graph *g) { return HUB + 8 * g->start[g->nodes] / g->nodes; }

int64_t ht_patches_aggregate(const ht_node_graph *g, int32_t *owner) {
  int64_t count = 0, most = most_neighbours(g);
  for (int64_t i = 0; i < g->nodes; i++) owner[i] = g->start[i + 1] - g->start[i] > most ? IS_HUB : IS_FREE;
  for (int64_t i = 0; i < g->nodes; i++) {
    int64_t k = g->start[i], end = g->start[i + 1];
    if (owner[i] != IS_FREE) continue;
    while (k < end && owner[g->columns[k]] < 0) k++;
    if (k < end) continue;
    owner[i] = (int32_t)count;
    for (k = g->start[i]; k < end; k++)
      if (owner[g->columns[k]] == IS_FREE) owner[g->columns[k]] = (int32_t)count;
    count++;
  }
  for (int hubs = 0; hubs < 2; hubs++)
    for (int64_t i = 0; i < g->nodes; i++) {
      int64_t k = g->start[i], end = g->start[i + 1];
      if (owner[i] != (hubs ? IS_HUB : IS_FREE)) continue;
      while (k < end && owner[g->columns[k]] < 0) k++;
      int32_t joined = k < end ? owner[g->columns[k]] : (int32_t)count++;
      owner[i] = hubs && k < end ? HT_HUB_OF(joined) : joined;
    }
  return count;
}

typedef struct coarsening {
  const ht_node_graph *fine;
  const int32_t *owner;  /* aggregate of each node */
  int64_t count;         /* aggregates */
  int32_t *member;       /* nodes by aggregate */
  int64_t *first, *room; /* of each aggregate: its first member, and its first entry if none were equal */
  int64_t *start;        /* room[c] + entries found, then the coarse graph's own */
  int32_t *columns;
} coarsening;

static void list_members(coarsening *c) {
  const ht_node_graph *g = c->fine;
  for (int64_t i = 0; i < g->nodes; i++) {
    if (c->owner[i] < 0) continue;
    c->first[c->owner[i] + 1]++;
    c->room[c->owner[i] + 1] += g->start[i + 1] - g->start[i];
  }
  for (int64_t k = 0; k < c->count; k++) {
    c->first[k + 1] += c->first[k];
    c->room[k + 1] += c->room[k];
  }
  memcpy(c->start, c->first, (size_t)c->count * sizeof *c->start);
  for (int64_t i = 0; i < g->nodes; i++)
    if (c->owner[i] >= 0) c->member[c->start[c->owner[i]]++] = (int32_t)i;
}

/* The aggregates that aggregate k's rows touch, each once, at its room. mark: which aggregate last touched one.
 * The aggregates do not stand in the order of memory, so rows ahead are prefetched. */
static void join_rows(const coarsening *c, int64_t k, int32_t *mark) {
  const ht_node_graph *g = c->fine;
  int64_t entries = c->room[k], nodes = c->first[c->count];
  mark[k] = (int32_t)k;
  for (int64_t m = c->first[k]; m < c->first[k + 1]; m++) {
    if (m + 2 * AHEAD < nodes) {
      __builtin_prefetch(g->start + c->member[m + 2 * AHEAD]);
      __builtin_prefetch(g->columns + g->start[c->member[m + AHEAD]]);
    }
    int64_t end = g->start[c->member[m] + 1];
    for (int64_t e = g->start[c->member[m]]; e < end; e++) {
      int32_t other = c->owner[g->columns[e]];
      if (other < 0 || mark[other] == k) continue;
      mark[other] = (int32_t)k;
      c->columns[entries++] = other;
    }
  }
  c->start[k] = entries;
}

static ht_status join_all_rows(ht_context *ctx, coarsening *c) {
  int threads = c->fine->nodes > PARALLEL_FROM ? ctx->threads : 1;
  int32_t *marks;
  HT_TRY(ctx, ht_allocate(ctx, c->count * threads, sizeof *marks, &marks));
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int32_t *mark = marks + c->count * omp_get_thread_num();
    memset(mark, 255, (size_t)c->count * sizeof *mark);
#pragma omp for schedule(dynamic, 256)
    for (int64_t k = 0; k < c->count; k++) join_rows(c, k, mark);
  }
  ht_release(ctx, marks);
  int64_t entries = 0;
  for (int64_t k = 0; k < c->count; k++) {
    int64_t begin = c->room[k], length = c->start[k] - begin;
    memmove(c->columns + entries, c->columns + begin, (size_t)length * sizeof *c->columns);
    c->start[k] = entries;
    entries += length;
  }
  c->start[c->count] = entries;
  return HT_OK;
}

ht_status ht_patches_coarsen(ht_context *ctx, const ht_node_graph *g, const int32_t *owner, int64_t count, ht_node_graph *coarse) {
  coarsening c = {.fine = g, .owner = owner, .count = count};
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, count + 1, sizeof *c.start, &c.start), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, count + 1, sizeof *c.first, &c.first), done);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, count + 1, sizeof *c.room, &c.room), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->nodes, sizeof *c.member, &c.member), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, g->start[g->nodes], sizeof *c.columns, &c.columns), done);
  list_members(&c);
  HT_TRY_GOTO(ctx, status, join_all_rows(ctx, &c), done);
  *coarse =
      (ht_node_graph){.block = 1, .nodes = count, .start = c.start, .columns = c.columns, .own_start = c.start, .own_columns = c.columns};
done:
  if (status != HT_OK) {
    ht_release(ctx, c.start);
    ht_release(ctx, c.columns);
  }
  ht_release(ctx, c.first);
  ht_release(ctx, c.room);
  ht_release(ctx, c.member);
  return status;
}
