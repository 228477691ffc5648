/* Patches of rows: always a permutation of exact sizes, and compact where the graph allows it. SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "data/matrix.h"
#include "data/patches.h"
#include "support/failing.h"
#include "support/generated.h"

enum { SMS = 132, UNIT = 64 };

static ht_context *context(int threads) {
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
  return ctx;
}

/* As a persistent engine asks for them: a patch a multiprocessor, whole column blocks. */
static int64_t engine_rows(int64_t n) { return ((n + SMS - 1) / SMS + UNIT - 1) / UNIT * UNIT; }

/* Every row once; patches have `rows` rows by construction, ascending inside. */
static void check_order(const int32_t *order, int64_t n, int64_t rows) {
  uint8_t *seen = calloc((size_t)n + 1, 1);
  for (int64_t i = 0; i < n; i++) {
    assert_true(order[i] >= 0 && order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = 1;
    if (i % rows) assert_true(order[i] > order[i - 1]);
  }
  free(seen);
}

/* The same order with one thread and two; returned. */
static int32_t *order_of(const ht_csr_view *a, int64_t rows) {
  int32_t *order[2];
  for (int k = 0; k < 2; k++) {
    ht_context *ctx = context(k + 1);
    order[k] = malloc((size_t)a->n * sizeof **order + 1);
    assert_int_equal(ht_order_patches(ctx, a, rows, order[k]), HT_OK);
    ht_context_destroy(ctx);
  }
  assert_memory_equal(order[0], order[1], (size_t)a->n * sizeof **order);
  check_order(order[0], a->n, rows);
  free(order[1]);
  return order[0];
}

/* Rows of other patches that a patch touches: the most. */
static int64_t largest_halo(const ht_csr_view *a, int64_t rows, const int32_t *order) {
  int64_t most = 0, *mark = calloc((size_t)a->n, sizeof *mark), *patch = malloc((size_t)a->n * sizeof *patch);
  for (int64_t i = 0; i < a->n; i++) patch[order[i]] = i / rows;
  for (int64_t begin = 0; begin < a->n; begin += rows) {
    int64_t halo = 0;
    for (int64_t i = begin; i < a->n && i < begin + rows; i++)
      for (int64_t k = a->row_start[order[i]]; k < a->row_start[order[i] + 1]; k++) {
        int32_t other = a->columns[k];
        if (patch[other] == begin / rows || mark[other] == begin + 1) continue;
        mark[other] = begin + 1;
        halo++;
      }
    if (halo > most) most = halo;
  }
  free(mark), free(patch);
  return most;
}

static int64_t halo_of(const char *line) {
  ht_context *ctx = context(2);
  ht_matrix *matrix;
  assert_int_equal(generate_line(ctx, line, &matrix), HT_OK);
  ht_csr_view a = ht_matrix_view(matrix);
  int32_t *order = order_of(&a, engine_rows(a.n));
  int64_t most = largest_halo(&a, engine_rows(a.n), order);
  free(order);
  ht_matrix_destroy(matrix);
  ht_context_destroy(ctx);
  return most;
}

/* Bounds: the halo of a diamond, square, cube or octahedron-like cell of as many points, inside the grid, and what rows that do not
 * divide into such cells add: a third at most. */
static void test_grids(void **state) {
  (void)state;
  assert_in_range(halo_of("jnlbrng"), 1, 57);                         /* 320 points: a diamond's is 2 * sqrt(2 * 320) = 51 */
  assert_in_range(halo_of("stencil2d points=9 size=255"), 1, 125);    /* 512: 4 * (sqrt(512) + 1) = 95 */
  assert_in_range(halo_of("stencil3d points=27 size=32"), 1, 440);    /* 256 = 8 * 8 * 4: 10 * 10 * 6 - 256 = 344 */
  assert_in_range(halo_of("stencil3d points=7 size=50"), 1, 500);     /* 960: a cube's is 6 * 960^(2/3) = 584, a turned cell's 368 */
  assert_in_range(halo_of("biharmonic size=63"), 1, 75);              /* 64: four diamond sides, two points deep */
  assert_in_range(halo_of("elasticity3d size=18"), 1, 593);           /* 192 rows = 64 points: 3 * (6^3 - 4^3) = 456 */
  assert_in_range(halo_of("stencil2d points=5 nx=4000 ny=5"), 1, 16); /* 192 points: strips */
}

/* Numbered at random: nothing but the graph tells where a row lies. Bounds: half more than a multilevel partitioner's. */
static void test_meshes(void **state) {
  (void)state;
  assert_in_range(halo_of("fem2d size=128 numbering=random"), 1, 80); /* METIS 5.1: 53 */
  assert_in_range(halo_of("fem3d size=20 numbering=random"), 1, 300);
  assert_in_range(halo_of("wathen nx=60 ny=60 seed=2"), 1, 150);
}

static void test_odd_sizes(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 63, 64, 65, 127, 129, 1000, 4097};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    char line[64];
    snprintf(line, sizeof line, "stencil2d points=5 nx=%d ny=1", (int)sizes[s]);
    ht_context *ctx = context(1);
    ht_matrix *matrix;
    assert_int_equal(generate_line(ctx, line, &matrix), HT_OK);
    ht_csr_view a = ht_matrix_view(matrix);
    for (int64_t rows = 1; rows <= 128; rows = rows == 1 ? 64 : 2 * rows) {
      int32_t *order = order_of(&a, rows);
      assert_in_range(largest_halo(&a, rows, order), 0, 2);
      free(order);
    }
    ht_matrix_destroy(matrix);
    ht_context_destroy(ctx);
  }
}

static uint64_t seed = 5;
static int64_t below(int64_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

enum { TORUS, RING, PIECES, EMPTY, DENSE_ROW, ARROW, ONE_WAY, HUB_WITHOUT_ROWS, RANDOM, KINDS };

static int64_t odd_row(int kind, int64_t n, int64_t i, int32_t *columns) {
  int64_t count = 0, side = 150;
  for (int64_t d = 0; kind == TORUS && d < 9; d++)
    columns[count++] = (int32_t)((i / side + d / 3 + n / side - 1) % (n / side) * side + (i + d % 3 + side - 1) % side);
  if (kind == RING || kind == DENSE_ROW) {
    columns[count++] = (int32_t)((i + n - 1) % n);
    columns[count++] = (int32_t)((i + 1) % n);
  }
  if (kind == PIECES && i % 7 != 6 && i + 1 < n) columns[count++] = (int32_t)(i + 1);
  if (kind == PIECES && i % 7 != 0) columns[count++] = (int32_t)(i - 1);
  for (int64_t j = 0; (kind == DENSE_ROW || kind == ARROW) && i == n / 3 && j < n; j++) columns[count++] = (int32_t)j;
  if ((kind == ARROW || kind == HUB_WITHOUT_ROWS) && i != n / 3) columns[count++] = (int32_t)(n / 3);
  if (kind == ONE_WAY) columns[count++] = (int32_t)((i + 1) % n);
  for (int k = 0; kind == RANDOM && k < 6; k++) columns[count++] = (int32_t)below(n);
  return count;
}

/* Rings, pieces, no entries at all, dense rows, patterns that are not symmetric, no geometry: still a permutation, for any threads. */
static void test_odd_graphs(void **state) {
  (void)state;
  int64_t *start = calloc(30002, sizeof *start);
  int32_t *columns = malloc(300010 * sizeof *columns);
  for (int kind = 0; kind < KINDS; kind++) {
    int64_t nnz = 0, n = kind == TORUS ? 30000 : 30001;
    for (int64_t i = 0; i < n; i++) start[i + 1] = nnz += odd_row(kind, n, i, columns + nnz);
    const ht_csr_view a = {.n = n, .nnz = nnz, .row_start = start, .columns = columns};
    int32_t *order = order_of(&a, 256);
    int64_t halo = largest_halo(&a, 256, order);
    if (kind == TORUS) assert_in_range(halo, 1, 88); /* a square's is 4 * (16 + 1) = 68 */
    if (kind == RING) assert_in_range(halo, 2, 8);   /* bends where the ring's ends lie side by side */
    if (kind == PIECES) assert_in_range(halo, 0, 64);
    if (kind == EMPTY) assert_int_equal(halo, 0);
    if (kind == DENSE_ROW) assert_int_equal(halo, n - 256); /* the dense row's own patch; the others see the ring */
    free(order);
  }
  free(start), free(columns);
}

/* Rows that are much longer than the others are shared out: no patch has many more nonzeros than the mean. */
static void test_long_rows(void **state) {
  (void)state;
  enum { ROWS = 256 };
  ht_context *ctx = context(1);
  ht_matrix *matrix;
  assert_int_equal(generate_line(ctx, "graph graph=preferential size=30000", &matrix), HT_OK);
  ht_csr_view a = ht_matrix_view(matrix);
  int32_t *order = order_of(&a, ROWS);
  int64_t most = 0;
  for (int64_t begin = 0; begin < a.n; begin += ROWS) {
    int64_t nonzeros = 0;
    for (int64_t i = begin; i < a.n && i < begin + ROWS; i++) nonzeros += a.row_start[order[i] + 1] - a.row_start[order[i]];
    most = nonzeros > most ? nonzeros : most;
  }
  assert_in_range(most, 1, a.nnz * ROWS / a.n * 5 / 4);
  free(order);
  ht_matrix_destroy(matrix);
  ht_context_destroy(ctx);
}

/* Every allocation is refused once; nothing leaks, and the last call, refused nothing, succeeds. */
static void test_allocations(void **state) {
  (void)state;
  const int64_t n = 30001;
  int64_t *start = calloc((size_t)n + 1, sizeof *start), nnz = 0;
  int32_t *columns = malloc((size_t)n * 10 * sizeof *columns), *order = malloc((size_t)n * sizeof *order);
  for (int64_t i = 0; i < n; i++) start[i + 1] = nnz += odd_row(RANDOM, n, i, columns + nnz);
  const ht_csr_view a = {.n = n, .nnz = nnz, .row_start = start, .columns = columns};
  failing_allocator memory;
  ht_context *ctx;
  assert_int_equal(failing_context(&memory, &ctx), HT_OK);
  long before = memory.alive;
  ht_status status = HT_NO_MEMORY;
  for (long k = 0; status == HT_NO_MEMORY; k++) {
    memory.fail_at = memory.requests + k;
    status = ht_order_patches(ctx, &a, 256, order);
    assert_int_equal(memory.alive, before);
    if (k < 10) assert_int_equal(status, HT_NO_MEMORY);
  }
  assert_int_equal(status, HT_OK);
  ht_context_destroy(ctx);
  free(start), free(columns), free(order);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_grids),     cmocka_unit_test(test_meshes),
                                     cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_odd_graphs),
                                     cmocka_unit_test(test_long_rows), cmocka_unit_test(test_allocations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
