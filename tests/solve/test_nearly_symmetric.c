/* A matrix that is symmetric but for rounding is averaged for the solve and certified as given, in every format.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solve/solve_helpers.h"

static void count_warning(void *user, ht_log_level level, const char *message) {
  if (level == HT_LOG_WARNING && strstr(message, "symmetric but for rounding")) ++*(int *)user;
}

/* A stencil with every upper entry one unit in the last place larger, scaled so that values are no powers of two. */
static ht_matrix *disturbed(ht_context *ctx, double factor) {
  const int64_t *row_start;
  const int32_t *columns;
  const double *given;
  ht_matrix *a = make(ctx, "stencil2d", "size", "20", NULL, NULL), *b;
  ht_matrix_csr(a, &row_start, &columns, &given);
  double *values = vector(ht_matrix_nonzeros(a));
  for (int64_t i = 0; i < ht_matrix_rows(a); i++)
    for (int64_t k = row_start[i]; k < row_start[i + 1]; k++)
      values[k] = columns[k] > i ? nextafter(given[k] * factor, INFINITY) : given[k] * factor;
  OK(ht_matrix_create_csr(ctx, ht_matrix_rows(a), row_start, columns, values, HT_COPY, &b));
  assert_int_equal(ht_matrix_symmetry(b), HT_NEARLY_SYMMETRIC);
  ht_matrix_destroy(a);
  free(values);
  return b;
}

static void every_format_solves_the_average(void **state) {
  (void)state;
  static const char *const formats[] = {"split", "csr", "tilecsc"}, *const preconds[] = {"jacobi", "ic0"};
  ht_context *ctx;
  int warnings = 0;
  OK(ht_context_create(&ctx));
  ht_context_set_log(ctx, count_warning, &warnings, HT_LOG_WARNING);
  ht_matrix *a = disturbed(ctx, 1.0 / 3), *other = disturbed(ctx, 1.0 / 7);
  int64_t n = ht_matrix_rows(a);
  const double *new_values;
  double *x = vector(n), *b = vector(n), *known = vector(n);
  ht_matrix_csr(other, NULL, NULL, &new_values);
  for (int f = 0; f < 3; f++)
    for (int p = 0; p < 2; p++) {
      ht_matrix *m = disturbed(ctx, 1.0 / 3);
      ht_solver *solver;
      ht_report report;
      warnings = 0;
      OK(ht_solver_create(ctx, NULL, &solver));
      OK(ht_solver_set_option(solver, "format", formats[f]));
      OK(ht_solver_set_option(solver, "precond", preconds[p]));
      OK(ht_solver_set_matrix(solver, m));
      for (int round = 0; round < 2; round++) {
        known_solution(m, known, b);
        memset(x, 0, (size_t)n * sizeof *x);
        OK(ht_solver_solve(solver, 1, b, x, &report));
        assert_int_equal(report.outcome, HT_CONVERGED);
        assert_true(true_residual(m, x, b) <= 1e-10);
        assert_int_equal(warnings, round + 1);
        OK(ht_matrix_set_values(m, new_values)); /* nearly symmetric again */
      }
      ht_solver_destroy(solver);
      ht_matrix_destroy(m);
    }
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
  ht_matrix_destroy(other);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_format_solves_the_average)};
  return cmocka_run_group_tests_name("nearly symmetric", tests, NULL, NULL);
}
