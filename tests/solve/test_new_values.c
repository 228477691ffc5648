/* New values on the same pattern, also ones that cannot be solved. SPDX-License-Identifier: BSD-3-Clause */
#include "solve_helpers.h"

enum { N = 65 };

static int64_t row_start[N + 1];
static int32_t columns[3 * N];

static void fill(double *values, double diagonal, double below) {
  int64_t k = 0;
  for (int i = 0; i < N; i++) {
    row_start[i] = k;
    if (i > 0) columns[k] = i - 1, values[k++] = below;
    columns[k] = i, values[k++] = diagonal + 0.1 * i;
    if (i < N - 1) columns[k] = i + 1, values[k++] = -1;
  }
  row_start[N] = k;
}

/* Good values, then ones that are refused before any iteration, then good ones again. */
static void refused_values_and_back(void **state) {
  (void)state;
  static const struct {
    double diagonal, below;
    ht_outcome outcome;
  } steps[] = {{3, -1, HT_CONVERGED}, {-3, -1, HT_INDEFINITE}, {4, -1, HT_CONVERGED}, {3, -2, HT_NOT_SYMMETRIC}, {5, -1, HT_CONVERGED}};
  ht_context *ctx;
  ht_matrix *a;
  ht_solver *solver;
  double values[3 * N], b[N], x[N];
  OK(ht_context_create(&ctx));
  fill(values, steps[0].diagonal, steps[0].below);
  OK(ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_COPY, &a));
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_matrix(solver, a));
  for (int i = 0; i < N; i++) b[i] = 1 + i % 3;
  for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
    ht_report report;
    fill(values, steps[k].diagonal, steps[k].below);
    OK(ht_matrix_set_values(a, values));
    OK(ht_solver_prepare(solver));
    memset(x, 0, sizeof x);
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_string_equal(ht_outcome_name(report.outcome), ht_outcome_name(steps[k].outcome));
    if (report.outcome == HT_CONVERGED) assert_true(true_residual(a, x, b) <= 1.01e-10);
  }
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* A CSR on a device needs one: the solver says so, and stays what it was. */
static void no_device_takes_nothing(void **state) {
  (void)state;
  ht_context *ctx;
  ht_matrix *a;
  ht_solver *solver;
  ht_report report;
  double values[3 * N], b[N], x[N] = {0};
  OK(ht_context_create(&ctx));
  fill(values, 3, -1);
  OK(ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_COPY, &a));
  OK(ht_solver_create(ctx, NULL, &solver));
  assert_int_equal(ht_solver_set_device_csr(solver, row_start, columns, values), HT_BAD_ARGUMENT); /* no matrix */
  OK(ht_solver_set_matrix(solver, a));
  OK(ht_solver_set_option(solver, "backend", "cpu"));
  assert_int_equal(ht_solver_set_device_csr(solver, row_start, columns, NULL), HT_BAD_ARGUMENT);
  assert_int_equal(ht_solver_set_device_csr(solver, row_start, columns, values), HT_UNSUPPORTED);
  ht_context_clear_error(ctx);
  for (int i = 0; i < N; i++) b[i] = 1 + i % 3;
  OK(ht_solver_solve(solver, 1, b, x, &report));
  assert_true(report.outcome == HT_CONVERGED && true_residual(a, x, b) <= 1.01e-10);
  fill(values, -3, -1);
  OK(ht_matrix_set_values(a, values));
  assert_int_equal(ht_solver_set_device_csr(solver, row_start, columns, values), HT_BAD_MATRIX); /* nothing was made of this one */
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused_values_and_back), cmocka_unit_test(no_device_takes_nothing)};
  return cmocka_run_group_tests_name("new values", tests, NULL, NULL);
}
