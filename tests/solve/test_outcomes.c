/* Every outcome on a system that shows it, with the value and index in the sentence. SPDX-License-Identifier: BSD-3-Clause */
#include "solve_helpers.h"

static ht_report solve(ht_context *ctx, const ht_matrix *a, const double *b, double *x, const char *option, const char *value) {
  ht_options *options;
  ht_solver *solver;
  ht_report report;
  OK(ht_options_create(ctx, &options));
  if (option) OK(ht_options_set(options, option, value));
  OK(ht_solver_create(ctx, options, &solver));
  OK(ht_solver_set_matrix(solver, a));
  OK(ht_solver_solve(solver, 1, b, x, &report));
  ht_solver_destroy(solver);
  ht_options_destroy(options);
  return report;
}

static ht_report solve_dense(ht_context *ctx, int64_t n, const double *dense, const double *b) {
  double x[16] = {0};
  ht_matrix *a = from_dense(ctx, n, dense);
  ht_report report = solve(ctx, a, b, x, NULL, NULL);
  ht_matrix_destroy(a);
  return report;
}

static int setup(void **state) {
  ht_context *ctx;
  OK(ht_context_create(&ctx));
  *state = ctx;
  return 0;
}

static int teardown(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static void one_by_one(void **state) {
  const double a[] = {4}, b[] = {8};
  double x[] = {0};
  ht_matrix *m = from_dense(*state, 1, a);
  ht_report r = solve(*state, m, b, x, NULL, NULL);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(x[0] == 2);
  ht_matrix_destroy(m);
}

static void indefinite(void **state) {
  const double swap[] = {0, 1, 1, 0}, b[] = {1, -1};
  ht_report r = solve_dense(*state, 2, swap, b);
  assert_int_equal(r.outcome, HT_INDEFINITE);
  assert_non_null(strstr(r.detail, "row 1"));
  const double negative[] = {2, 0, 0, -3};
  r = solve_dense(*state, 2, negative, b);
  assert_int_equal(r.outcome, HT_INDEFINITE);
  assert_non_null(strstr(r.detail, "row 2"));
  assert_non_null(strstr(r.detail, "-3"));
  const double hidden[] = {1, 2, 2, 1}; /* eigenvalues 3 and -1; b has a part in the second */
  r = solve_dense(*state, 2, hidden, b);
  assert_int_equal(r.outcome, HT_INDEFINITE);
  assert_non_null(strstr(r.detail, "p'Ap"));
}

static void not_symmetric(void **state) {
  const double a[] = {4, 1, 0, 1, 4, 1, 0, 1.5, 4}, b[] = {1, 1, 1};
  ht_report r = solve_dense(*state, 3, a, b);
  assert_int_equal(r.outcome, HT_NOT_SYMMETRIC);
  assert_non_null(strstr(r.detail, "(2,3)"));
  assert_non_null(strstr(r.detail, "0.5"));
}

/* An average of the two triangles is solved; the certificate uses the matrix as given. */
static void nearly_symmetric(void **state) {
  const double next = nextafter(1, 2), a[] = {4, 1, next, 4}, b[] = {1, 2};
  ht_report r = solve_dense(*state, 2, a, b);
  assert_int_equal(r.outcome, HT_CONVERGED);
}

static void zero_row(void **state) {
  const double a[] = {4, 1, 0, 1, 4, 0, 0, 0, 0}, consistent[] = {1, 2, 0}, inconsistent[] = {1, 2, 3};
  assert_int_equal(solve_dense(*state, 3, a, consistent).outcome, HT_CONVERGED);
  ht_report r = solve_dense(*state, 3, a, inconsistent);
  assert_int_equal(r.outcome, HT_SINGULAR);
}

static void neumann(void **state) {
  ht_matrix *a = make(*state, "neumann", "size", "30", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  assert_int_equal(solve(*state, a, b, x, NULL, NULL).outcome, HT_CONVERGED);
  assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  for (int64_t i = 0; i < n; i++) b[i] += 1;
  memset(x, 0, (size_t)n * sizeof(double));
  assert_int_equal(solve(*state, a, b, x, NULL, NULL).outcome, HT_SINGULAR);
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
}

static void non_finite_input(void **state) {
  const double a[] = {4, 1, 1, 4}, b[] = {1, NAN}, fine[] = {1, 1};
  ht_report r = solve_dense(*state, 2, a, b);
  assert_int_equal(r.outcome, HT_NON_FINITE);
  assert_non_null(strstr(r.detail, "entry 2 of b"));
  double x[] = {INFINITY, 0};
  ht_matrix *m = from_dense(*state, 2, a);
  r = solve(*state, m, fine, x, NULL, NULL);
  assert_int_equal(r.outcome, HT_NON_FINITE);
  assert_non_null(strstr(r.detail, "entry 1 of x0"));
  ht_matrix_destroy(m);
}

static void extreme_values(void **state) {
  const double b[] = {1, 2, 3};
  for (int e = -300; e <= 300; e += 100) {
    double s = pow(10, e), a[] = {4 * s, s, 0, s, 4 * s, s, 0, s, 4 * s};
    assert_int_equal(solve_dense(*state, 3, a, b).outcome, HT_CONVERGED);
  }
  const double wide[] = {1e99, 0, 0, 0, 1, 0, 0, 0, 1e-99};
  assert_int_equal(solve_dense(*state, 3, wide, b).outcome, HT_CONVERGED);
}

static void limits(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "60", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  ht_report r = solve(*state, a, b, x, "max-iterations", "20");
  assert_int_equal(r.outcome, HT_ITERATION_LIMIT);
  assert_int_equal(r.iterations, 20);
  assert_true(r.residual_true < 1 && r.residual_true > 1e-10);
  assert_true(fabs(true_residual(a, x, b) - r.residual_true) <= 1e-12);
  memset(x, 0, (size_t)n * sizeof(double));
  r = solve(*state, a, b, x, "time-limit", "1e-9");
  assert_int_equal(r.outcome, HT_TIME_LIMIT);
  memset(x, 0, (size_t)n * sizeof(double));
  r = solve(*state, a, b, x, "rtol", "1e-18"); /* below what FP64 can reach */
  assert_int_equal(r.outcome, HT_ATTAINABLE_ACCURACY);
  assert_true(r.residual_true < 1e-14);
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
}

/* The paper's rule believes the recursive residual; the outcome says when that was wrong. */
static void paper_stopping(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  ht_options *options;
  ht_solver *solver;
  ht_report r;
  for (int64_t i = 0; i < n; i++) b[i] = sin(3.7 * (double)i);
  OK(ht_options_create(*state, &options));
  OK(ht_options_set(options, "stopping", "paper"));
  OK(ht_options_set(options, "policy", "fixed:bf16"));
  OK(ht_solver_create(*state, options, &solver));
  OK(ht_solver_set_matrix(solver, a));
  OK(ht_solver_solve(solver, 1, b, x, &r));
  assert_int_equal(r.outcome, HT_RECURSIVE_ONLY);
  assert_true(r.residual_recursive <= 1e-10 && r.residual_true > 1e-10);
  assert_true(fabs(true_residual(a, x, b) - r.residual_true) <= 1e-12);
  OK(ht_solver_set_option(solver, "policy", "fixed:f64"));
  memset(x, 0, (size_t)n * sizeof(double));
  OK(ht_solver_solve(solver, 1, b, x, &r));
  assert_int_equal(r.outcome, HT_CONVERGED);
  ht_solver_destroy(solver);
  ht_options_destroy(options);
  free(x), free(b);
  ht_matrix_destroy(a);
}

static int stop_at_5(void *user, const ht_progress *progress) {
  (void)user;
  return progress->iteration >= 5;
}

static void interrupted(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "60", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  ht_options *options;
  ht_solver *solver;
  ht_report r;
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  OK(ht_options_create(*state, &options));
  OK(ht_solver_create(*state, options, &solver));
  OK(ht_solver_set_matrix(solver, a));
  ht_solver_set_progress(solver, stop_at_5, NULL);
  OK(ht_solver_solve(solver, 1, b, x, &r));
  assert_int_equal(r.outcome, HT_STOPPED);
  assert_int_equal(r.iterations, 5);
  const double *history;
  assert_int_equal(ht_solver_history(solver, &history), 6);
  assert_true(fabs(history[0] - 1) <= 1e-15);
  ht_solver_set_progress(solver, NULL, NULL);
  ht_context_request_stop(*state);
  OK(ht_solver_solve(solver, 1, b, x, &r));
  assert_int_equal(r.outcome, HT_STOPPED);
  ht_context_clear_stop(*state);
  OK(ht_solver_solve(solver, 1, b, x, &r));
  assert_int_equal(r.outcome, HT_CONVERGED);
  ht_solver_destroy(solver);
  ht_options_destroy(options);
  free(x), free(b);
  ht_matrix_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_by_one),       cmocka_unit_test(indefinite),     cmocka_unit_test(not_symmetric),
      cmocka_unit_test(nearly_symmetric), cmocka_unit_test(zero_row),       cmocka_unit_test(neumann),
      cmocka_unit_test(non_finite_input), cmocka_unit_test(extreme_values), cmocka_unit_test(limits),
      cmocka_unit_test(paper_stopping),   cmocka_unit_test(interrupted),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
