/* Orders of the nodes: always a permutation, narrow on meshes, and taken only where it pays. SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "data/order.h"
#include "data/order_cache.h"
#include "data/patches.h"
#include "halftone/context.h"
#include "support/failing.h"

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
  assert_int_equal(ht_order_rcm(ctx, &g.graph, HT_ROOT_FAR, order), HT_OK);
  check_permutation(order, n);
  assert_true(bandwidth(&g.graph, NULL) > n / 2);
  /* Levels from a corner are squares' edges of at most 2 m points; a row couples to its own level and the ones beside it. */
  assert_true(bandwidth(&g.graph, order) <= 4 * m);
  assert_int_equal(ht_order_rcm(ctx, &g.graph, HT_ROOT_FAR, again), HT_OK);
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
  assert_int_equal(ht_order_rcm(ctx, &g.graph, HT_ROOT_FAR, order), HT_OK);
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
    assert_int_equal(ht_order_rcm(ctx, &graph, HT_ROOT_FAR, order), HT_OK);
    check_permutation(order, N);
  }
  int64_t none = 0;
  ht_node_graph empty = {.block = 1, .nodes = 0, .start = &none, .columns = columns};
  assert_int_equal(ht_order_rcm(ctx, &empty, HT_ROOT_FAR, order), HT_OK);
  free(start), free(columns), free(order);
  ht_context_destroy(ctx);
}

/* Levels of many nodes are worked on by all threads: the same order, also where a neighbour is named twice, or does not know it is one. */
static void test_threads(void **state) {
  enum { N = 60000, NEIGHBOURS = 7, MOST_THREADS = 4 };
  int64_t *start = calloc(N + 1, 8);
  int32_t *columns = malloc((size_t)N * (NEIGHBOURS + 1) * 4), *order[MOST_THREADS];
  (void)state;
  for (int kind = 0; kind < 3; kind++) { /* both roots are taken */
    int64_t nnz = 0;
    for (int64_t i = 0; i < N; i++) {
      for (int k = 0; kind < 2 && k < NEIGHBOURS; k++)
        columns[nnz++] = (int32_t)(kind ? (i * 8 + k) % N : below(N));                    /* or a tree, folded */
      for (int64_t j = 0; kind == 2 && i == 7 && j < N; j++) columns[nnz++] = (int32_t)j; /* a hub */
      if (kind == 2) columns[nnz++] = 7;
      if (i % 5 == 0 && nnz > start[i]) columns[nnz++] = columns[start[i]]; /* twice */
      start[i + 1] = nnz;
    }
    ht_node_graph graph = {.block = 1, .nodes = N, .start = start, .columns = columns};
    for (int t = 0; t < MOST_THREADS; t++) {
      ht_context *ctx = context();
      assert_int_equal(ht_context_set_threads(ctx, t + 1), HT_OK);
      order[t] = malloc(N * sizeof **order);
      assert_int_equal(ht_order_rcm(ctx, &graph, kind % 2 ? HT_ROOT_FIRST : HT_ROOT_FAR, order[t]), HT_OK);
      check_permutation(order[t], N);
      assert_memory_equal(order[t], order[0], N * sizeof **order);
      ht_context_destroy(ctx);
    }
    for (int t = 0; t < MOST_THREADS; t++) free(order[t]);
  }
  free(start), free(columns);
}

/* A grid in natural order stays; the same grid numbered at random is reordered. */
static void test_auto(void **state) {
  (void)state;
  ht_context *ctx = context();
  const int64_t m = 150, n = m * m;
  int32_t *order;
  mesh natural = grids(1, m, NULL);
  assert_int_equal(ht_order_auto(ctx, &natural.graph, HT_ROOT_FAR, NULL, &order), HT_OK);
  assert_null(order);
  int32_t *number = shuffled(n);
  mesh random = grids(1, m, number);
  assert_int_equal(ht_order_auto(ctx, &random.graph, HT_ROOT_FAR, NULL, &order), HT_OK);
  assert_non_null(order);
  check_permutation(order, n);
  ht_release(ctx, order);
  release(&natural);
  release(&random);
  free(number);
  ht_context_destroy(ctx);
}

/* Orders found by ht_order_rcm_kept and ht_order_patches_kept; returns the number of allocations that took. */
static long find_kept(ht_context *ctx, failing_allocator *memory, const mesh *g, int64_t rows, int32_t *order) {
  long before = memory->requests;
  const ht_csr_view a = {.n = g->graph.nodes, .nnz = g->start[g->graph.nodes], .row_start = g->start, .columns = g->columns};
  assert_int_equal(rows ? ht_order_patches_kept(ctx, &a, rows, NULL, order) : ht_order_rcm_kept(ctx, &g->graph, HT_ROOT_FAR, NULL, order),
                   HT_OK);
  assert_string_equal(ht_context_error(ctx), "");
  return memory->requests - before;
}

/* The same pattern elsewhere in memory gets the order that was found before, and no other pattern, be it of the same size. */
static void test_kept(void **state) {
  enum { M = 40, N = M * M, KEPT = 24 };
  failing_allocator memory;
  ht_context *ctx;
  int32_t *numbers[KEPT + 1], *order = malloc(N * sizeof *order), *expected = malloc(N * sizeof *order);
  (void)state;
  assert_int_equal(failing_context(&memory, &ctx), HT_OK);
  for (int k = 0; k <= KEPT; k++) numbers[k] = shuffled(N);
  for (int64_t rows = 0; rows <= 128; rows += 128)
    for (int k = 0; k <= KEPT; k++) {
      mesh g = grids(1, M, numbers[k]), again = grids(1, M, numbers[k]);
      assert_true(find_kept(ctx, &memory, &g, rows, expected) > 0);
      assert_int_equal(find_kept(ctx, &memory, &again, rows, order), 0);
      assert_memory_equal(order, expected, N * sizeof *order);
      const ht_csr_view a = {.n = N, .nnz = again.start[N], .row_start = again.start, .columns = again.columns};
      assert_int_equal(rows ? ht_order_patches(ctx, &a, rows, order) : ht_order_rcm(ctx, &again.graph, HT_ROOT_FAR, order), HT_OK);
      assert_memory_equal(order, expected, N * sizeof *order);
      release(&g), release(&again);
    }
  mesh first = grids(1, M, numbers[0]), second = grids(1, M, numbers[1]), last = grids(1, M, numbers[KEPT]);
  assert_int_equal(find_kept(ctx, &memory, &last, 128, order), 0);
  assert_true(find_kept(ctx, &memory, &last, 64, order) > 0);   /* other patches */
  assert_true(find_kept(ctx, &memory, &first, 128, order) > 0); /* the oldest had to go */
  last.columns[last.start[N] - 1] ^= 1;
  assert_true(find_kept(ctx, &memory, &last, 128, order) > 0); /* one entry differs, */
  last.columns[last.start[N] - 1] ^= 1;
  for (int64_t i = 1; i <= N / 2; i++) last.start[i]--;
  assert_true(find_kept(ctx, &memory, &last, 128, order) > 0); /* or the rows' ends alone */
  ht_context_destroy(ctx);
  assert_int_equal(memory.alive, 0);
  release(&first), release(&second), release(&last);
  for (int k = 0; k <= KEPT; k++) free(numbers[k]);
  free(order), free(expected);
}

/* No memory to keep an order: it is found all the same, and found anew the next time. */
static void test_not_kept(void **state) {
  enum { M = 40, N = M * M };
  int32_t *number = shuffled(N), *order = malloc(N * sizeof *order), *expected = malloc(N * sizeof *order);
  mesh g = grids(1, M, number);
  long requests = 0;
  (void)state;
  for (int refused = 0; refused < 3; refused++) { /* none, the order's memory, the cache's own */
    failing_allocator memory;
    ht_context *ctx;
    assert_int_equal(failing_context(&memory, &ctx), HT_OK);
    if (refused) memory.fail_at = memory.requests + requests - refused;
    long made = find_kept(ctx, &memory, &g, 0, refused ? order : expected);
    if (!refused) requests = made;
    if (refused) assert_memory_equal(order, expected, N * sizeof *order);
    assert_true((find_kept(ctx, &memory, &g, 0, order) == 0) == !refused);
    assert_memory_equal(order, expected, N * sizeof *order);
    ht_context_destroy(ctx);
    assert_int_equal(memory.alive, 0);
  }
  release(&g);
  free(number), free(order), free(expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shuffled_grid), cmocka_unit_test(test_components),
                                     cmocka_unit_test(test_odd_graphs),    cmocka_unit_test(test_auto),
                                     cmocka_unit_test(test_kept),          cmocka_unit_test(test_not_kept),
                                     cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
