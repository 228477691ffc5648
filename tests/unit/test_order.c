/* Orders of the nodes: always a permutation, narrow on meshes, and taken only where it pays. SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "data/order.h"
#include "halftone/context.h"

typedef struct mesh {
  ht_node_graph graph;
  int64_t *start;
  int32_t *columns;
} mesh;

static uint64_t seed = 5;
static int64_t below(int64_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

static int by_column(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* `parts` separate grids of m x m points, nine neighbours each, numbered by `number`. */
static mesh grids(int64_t parts, int64_t m, const int32_t *number) {
  int64_t n = parts * m * m, nnz = 0;
  mesh g = {.start = calloc((size_t)n + 1, 8), .columns = malloc((size_t)n * 9 * 4)};
  int32_t *point = malloc((size_t)n * 4);
  for (int64_t p = 0; p < n; p++) point[number ? number[p] : p] = (int32_t)p;
  for (int64_t i = 0; i < n; i++) {
    int64_t p = point[i], part = p / (m * m), first = nnz;
    for (int64_t d = 0; d < 9; d++) {
      int64_t x = p % m + d % 3 - 1, y = p / m % m + d / 3 - 1, q = (part * m + y) * m + x;
      if (x >= 0 && y >= 0 && x < m && y < m) g.columns[nnz++] = number ? number[q] : (int32_t)q;
    }
    qsort(g.columns + first, (size_t)(nnz - first), 4, by_column);
    g.start[i + 1] = nnz;
  }
  free(point);
  g.graph = (ht_node_graph){.block = 1, .nodes = n, .start = g.start, .columns = g.columns};
  return g;
}

static void release(mesh *g) {
  free(g->start);
  free(g->columns);
}

static int32_t *shuffled(int64_t n) {
  int32_t *number = malloc((size_t)n * 4);
  for (int64_t i = 0; i < n; i++) number[i] = (int32_t)i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = below(i + 1);
    int32_t keep = number[i];
    number[i] = number[j];
    number[j] = keep;
  }
  return number;
}

static ht_context *context(void) {
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  return ctx;
}

static void check_permutation(const int32_t *order, int64_t n) {
  uint8_t *seen = calloc((size_t)n + 1, 1);
  for (int64_t i = 0; i < n; i++) {
    assert_true(order[i] >= 0 && order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = 1;
  }
  free(seen);
}

static int64_t bandwidth(const ht_node_graph *g, const int32_t *order) {
  int64_t widest = 0, *inverse = malloc((size_t)g->nodes * 8);
  for (int64_t i = 0; i < g->nodes; i++) inverse[order ? order[i] : i] = i;
  for (int64_t i = 0; i < g->nodes; i++)
    for (int64_t k = g->start[i]; k < g->start[i + 1]; k++) {
      int64_t distance = llabs(inverse[i] - inverse[g->columns[k]]);
      if (distance > widest) widest = distance;
    }
  free(inverse);
  return widest;
}

static void test_shuffled_grid(void **state) {
  (void)state;
  ht_context *ctx = context();
  const int64_t m = 60, n = m * m;
  int32_t *number = shuffled(n), *order = malloc((size_t)n * 4), *again = malloc((size_t)n * 4);
  mesh g = grids(1, m, number);
  assert_int_equal(ht_order_rcm(ctx, &g.graph, order), HT_OK);
  check_permutation(order, n);
  assert_true(bandwidth(&g.graph, NULL) > n / 2);
  /* Levels from a corner are squares' edges of at most 2 m points; a row couples to its own level and the ones beside it. */
  assert_true(bandwidth(&g.graph, order) <= 4 * m);
  assert_int_equal(ht_order_rcm(ctx, &g.graph, again), HT_OK);
  assert_memory_equal(order, again, (size_t)n * 4);
  release(&g);
  free(number), free(order), free(again);
  ht_context_destroy(ctx);
}

static void test_components(void **state) {
  (void)state;
  ht_context *ctx = context();
  const int64_t parts = 7, m = 9, n = parts * m * m;
  int32_t *number = shuffled(n), *order = malloc((size_t)n * 4);
  mesh g = grids(parts, m, number);
  assert_int_equal(ht_order_rcm(ctx, &g.graph, order), HT_OK);
  check_permutation(order, n);
  assert_true(bandwidth(&g.graph, order) <= 4 * m);
  release(&g);
  free(number), free(order);
  ht_context_destroy(ctx);
}

/* Single nodes, empty rows, hubs, and patterns that are not symmetric: still a permutation. */
static void test_odd_graphs(void **state) {
  (void)state;
  ht_context *ctx = context();
  enum { N = 2000 };
  int64_t *start = calloc(N + 1, 8);
  int32_t *columns = malloc(N * 4 * 4), *order = malloc(N * 4);
  for (int kind = 0; kind < 4; kind++) {
    int64_t nnz = 0;
    for (int64_t i = 0; i < N; i++) {
      if (kind == 1) columns[nnz++] = 0;                                                  /* a hub that does not know its neighbours */
      if (kind == 2) columns[nnz++] = (int32_t)((i + 1) % N);                             /* a one-way ring */
      for (int64_t j = 0; kind == 3 && i == 0 && j < N; j++) columns[nnz++] = (int32_t)j; /* a hub */
      start[i + 1] = nnz;
    }
    ht_node_graph graph = {.block = 1, .nodes = N, .start = start, .columns = columns};
    assert_int_equal(ht_order_rcm(ctx, &graph, order), HT_OK);
    check_permutation(order, N);
  }
  int64_t none = 0;
  ht_node_graph empty = {.block = 1, .nodes = 0, .start = &none, .columns = columns};
  assert_int_equal(ht_order_rcm(ctx, &empty, order), HT_OK);
  free(start), free(columns), free(order);
  ht_context_destroy(ctx);
}

/* A grid in natural order stays; the same grid numbered at random is reordered. */
static void test_auto(void **state) {
  (void)state;
  ht_context *ctx = context();
  const int64_t m = 150, n = m * m;
  int32_t *order;
  mesh natural = grids(1, m, NULL);
  assert_int_equal(ht_order_auto(ctx, &natural.graph, &order), HT_OK);
  assert_null(order);
  int32_t *number = shuffled(n);
  mesh random = grids(1, m, number);
  assert_int_equal(ht_order_auto(ctx, &random.graph, &order), HT_OK);
  assert_non_null(order);
  check_permutation(order, n);
  ht_release(ctx, order);
  release(&natural);
  release(&random);
  free(number);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shuffled_grid), cmocka_unit_test(test_components),
                                     cmocka_unit_test(test_odd_graphs), cmocka_unit_test(test_auto)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
