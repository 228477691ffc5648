/* How long and thin a mesh is, against its sides. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "data/matrix.h"
#include "data/slender.h"
#include "data/split.h"
#include "support/failing.h"
#include "support/generated.h"

/* Hexahedra with the nodes at x = 0 eliminated: from an end to the other a level an element along the longest side. */
static void hexahedra_are_as_long_as_their_side(void **state) {
  (void)state;
  static const struct {
    const char *line;
    double nodes, levels;
  } cases[] = {{"elasticity3d size=6", 6 * 7 * 7, 6},
               {"elasticity3d nx=40 ny=6 nz=1", 40 * 7 * 2, 39},
               {"elasticity3d nx=5 ny=31 nz=2", 5 * 32 * 3, 31},
               {"elasticity3d size=1", 4, 1}};
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ht_matrix *a;
    assert_int_equal(generate_line(ctx, cases[k].line, &a), HT_OK);
    const ht_csr_view view = ht_matrix_view(a);
    double expected = cases[k].levels / cbrt(cases[k].nodes), found = ht_slenderness(ctx, &view, 3);
    if (!(fabs(found - expected) <= 1e-12 * expected)) fail_msg("%s: %.17g where %.17g is expected", cases[k].line, found, expected);
    assert_true(ht_slenderness(ctx, &view, 1) == 0 && ht_slenderness(ctx, &view, 4) == 0);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

enum { SQUARE = 30, STRIP = 200, NODES = SQUARE * SQUARE + STRIP };

/* Two unknowns a node: a chain, which comes first and is slender, and a square of more nodes with neighbours across its sides alone. */
static void the_largest_component_counts(void **state) {
  static int64_t start[2 * NODES + 1];
  static int32_t columns[2 * NODES * 10];
  int64_t nnz = 0;
  ht_context *ctx;
  (void)state;
  for (int row = 0; row < 2 * NODES; row++) {
    int p = row / 2 - STRIP, near[5] = {row / 2, -1, -1, -1, -1};
    if (p < 0) {
      near[1] = row / 2 > 0 ? row / 2 - 1 : -1, near[2] = p < -1 ? row / 2 + 1 : -1;
    } else {
      near[1] = p % SQUARE ? row / 2 - 1 : -1, near[2] = p % SQUARE < SQUARE - 1 ? row / 2 + 1 : -1;
      near[3] = p >= SQUARE ? row / 2 - SQUARE : -1, near[4] = p < SQUARE * (SQUARE - 1) ? row / 2 + SQUARE : -1;
    }
    for (int k = 0; k < 5; k++)
      for (int u = 0; near[k] >= 0 && u < 2; u++) columns[nnz++] = 2 * near[k] + u;
    start[row + 1] = nnz;
  }
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  const ht_csr_view a = {.n = 2 * NODES, .nnz = nnz, .row_start = start, .columns = columns};
  assert_true(fabs(ht_slenderness(ctx, &a, 2) - 2.0 * (SQUARE - 1) / SQUARE) < 1e-12);
  const ht_csr_view chain = {.n = 2 * STRIP, .nnz = start[2 * STRIP], .row_start = start, .columns = columns};
  assert_true(fabs(ht_slenderness(ctx, &chain, 2) - (STRIP - 1) / sqrt(STRIP)) < 1e-12);
  ht_context_destroy(ctx);
}

/* Nothing depends on it but speed: without memory it is 0, and no error stays. */
static void no_memory_is_no_error(void **state) {
  static const int64_t start[] = {0, 2, 4};
  static const int32_t columns[] = {0, 1, 0, 1};
  const ht_csr_view a = {.n = 2, .nnz = 4, .row_start = start, .columns = columns};
  (void)state;
  for (long refused = 0; refused < 2; refused++) {
    failing_allocator memory;
    ht_context *ctx;
    assert_int_equal(failing_context(&memory, &ctx), HT_OK);
    memory.fail_at = memory.requests + refused;
    assert_true(ht_slenderness(ctx, &a, 2) == 0);
    assert_string_equal(ht_context_error(ctx), "");
    ht_context_destroy(ctx);
    assert_int_equal(memory.alive, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hexahedra_are_as_long_as_their_side), cmocka_unit_test(the_largest_component_counts),
                                     cmocka_unit_test(no_memory_is_no_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
