/* The graph of blocks of unknowns, against all pairs. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "data/matrix.h"
#include "data/split.h"
#include "support/generated.h"

static int touches(const ht_csr_view *a, int64_t block, int64_t from, int64_t to) {
  for (int64_t i = from * block; i < (from + 1) * block && i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      if (a->columns[k] / block == to) return 1;
  return 0;
}

static void neighbours_are_those_of_the_rows(void **state) {
  (void)state;
  static const char *const lines[] = {"stencil2d size=9", "elasticity3d size=3", "trefethen size=65", "trefethen size=1"};
  static const int64_t sizes[] = {2, 3, 8, 22, 64};
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  for (int m = 0; m < 4; m++)
    for (int s = 0; s < 5; s++) {
      ht_matrix *a;
      ht_node_graph graph;
      assert_int_equal(generate_line(ctx, lines[m], &a), HT_OK);
      const ht_csr_view view = ht_matrix_view(a);
      assert_int_equal(ht_block_graph_create(ctx, &view, sizes[s], &graph), HT_OK);
      assert_int_equal(graph.nodes, (a->n + sizes[s] - 1) / sizes[s]);
      for (int64_t from = 0; from < graph.nodes; from++) {
        int64_t at = graph.start[from];
        for (int64_t to = 0; to < graph.nodes; to++)
          if (to != from && touches(&view, sizes[s], from, to)) assert_true(at < graph.start[from + 1] && graph.columns[at++] == to);
        assert_int_equal(at, graph.start[from + 1]);
      }
      ht_node_graph_release(ctx, &graph);
      ht_matrix_destroy(a);
    }
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_are_those_of_the_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
