/* The solver object on every engine, storage, preconditioner and policy, judged by residuals in long double.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "base/context.h"
#include "solve_helpers.h"
#include "solver/chooser.h"
#include "support/generated.h"

/* Solve for a known solution; the certificate must hold in long double, whatever the route. The bound allows for the
 * rounding of the FP64 certificate itself, u times the row length. */
static void solve_and_check(ht_context *ctx, const ht_matrix *a, int count, const char *const settings[][2], ht_report *report) {
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n), *known = vector(n);
  ht_solver *solver = solver_with(ctx, a, count, settings);
  known_solution(a, known, b);
  OK(ht_solver_solve(solver, 1, b, x, report));
  if (report->outcome != HT_CONVERGED) fail_msg("%s: %s", ht_outcome_name(report->outcome), report->detail);
  assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  assert_true(fabs(report->residual_true - true_residual(a, x, b)) <= 1e-12);
  ht_solver_destroy(solver);
  free(x), free(b), free(known);
}

static void every_combination_converges(void **state) {
  static const char *const kinds[][3] = {{"stencil2d", "size", "23"}, {"stencil3d", "size", "9"}, {"wathen", "nx", "11"}};
  static const char *const formats[] = {"split", "csr", "tilecsc"}, *const preconds[] = {"none", "jacobi", "block-jacobi", "ic0"};
  static const char *const policies[] = {"auto", "fixed:f64", "fixed:f32", "fixed:bf16", "rule", "budget"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; k < 3; k++) {
    ht_matrix *a = make(ctx, kinds[k][0], kinds[k][1], kinds[k][2], k < 2 ? "coefficients" : NULL, "lognormal");
    for (size_t f = 0; f < 3; f++)
      for (size_t m = 0; m < 4; m++)
        for (size_t p = 0; p < 6; p++) {
          const char *const settings[][2] = {{"format", formats[f]}, {"precond", preconds[m]}, {"policy", policies[p]}};
          ht_report report;
          solve_and_check(ctx, a, 3, settings, &report);
        }
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* The fused engine is the textbook loop in another arithmetic order: the same convergence. */
static void fused_agrees_with_textbook(void **state) {
  static const char *const sizes[] = {"1", "2", "7", "8", "9", "63", "64", "65", "150"}, *const preconds[] = {"none", "jacobi"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (size_t m = 0; m < 2; m++) {
      ht_matrix *a = make(ctx, "stencil2d", "size", sizes[k], "coefficients", "lognormal");
      const char *const fused[][2] = {{"engine", "fused"}, {"policy", "fixed:f64"}, {"precond", preconds[m]}};
      const char *const textbook[][2] = {{"engine", "textbook"}, {"format", "csr"}, {"precond", preconds[m]}};
      ht_report f, t;
      solve_and_check(ctx, a, 3, fused, &f);
      solve_and_check(ctx, a, 3, textbook, &t);
      assert_string_equal(f.engine, "fused");
      assert_string_equal(t.engine, "textbook");
      assert_true(fabs((double)(f.iterations - t.iterations)) <= 2 + 0.02 * (double)t.iterations);
      ht_matrix_destroy(a);
    }
  ht_context_destroy(ctx);
}

/* A small system is solved by one thread, a large one by all that are allowed, and the context keeps what it was told. */
static void threads_are_as_many_as_the_size_is_worth(void **state) {
  static const struct {
    const char *size;
    int threads;
  } cases[] = {{"10", 1}, {"50", 1}, {"300", 3}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(ht_context_set_threads(ctx, 3));
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ht_matrix *a = make(ctx, "stencil2d", "size", cases[k].size, NULL, NULL);
    int64_t n = ht_matrix_rows(a);
    double *x = vector(n), *b = vector(n);
    for (int64_t i = 0; i < n; i++) b[i] = 1;
    const char *const settings[][2] = {{"max-iterations", "5"}};
    ht_solver *solver = solver_with(ctx, a, 1, settings);
    ht_report report;
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_int_equal(report.threads, cases[k].threads);
    assert_int_equal(ht_context_threads(ctx), 3);
    ht_solver_destroy(solver);
    ht_matrix_destroy(a);
    free(x), free(b);
  }
  ht_context_destroy(ctx);
}

static void bits_do_not_depend_on_threads(void **state) {
  static const char *const policies[] = {"fixed:f64", "fixed:bf16", "budget", "auto"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ctx->bytes_a_thread = 1; /* else a system so small has fewer threads */
  ht_matrix *a = make(ctx, "stencil3d", "size", "31", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x[3] = {vector(n), vector(n), vector(n)}, *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  for (size_t p = 0; p < 4; p++) {
    for (int t = 0; t < 3; t++) {
      const char *const settings[][2] = {{"policy", policies[p]}};
      OK(ht_context_set_threads(ctx, t + 1));
      ht_solver *solver = solver_with(ctx, a, 1, settings);
      ht_report report;
      memset(x[t], 0, (size_t)n * sizeof(double));
      OK(ht_solver_solve(solver, 1, b, x[t], &report));
      assert_int_equal(report.outcome, HT_CONVERGED);
      ht_solver_destroy(solver);
    }
    assert_memory_equal(x[0], x[1], (size_t)n * sizeof(double));
    assert_memory_equal(x[0], x[2], (size_t)n * sizeof(double));
  }
  for (int t = 0; t < 3; t++) free(x[t]);
  free(b), free(known);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static void several_columns_and_warm_start(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "20", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(3 * n), *b = vector(3 * n), *known = vector(n);
  for (int64_t k = 0; k < 3; k++) known_solution(a, known, b + k * n);
  for (int64_t i = 0; i < n; i++) b[n + i] = (double)(i % 7);
  memset(b + 2 * n, 0, (size_t)n * sizeof(double));
  memcpy(x, known, (size_t)n * sizeof(double));     /* column 0 starts at its solution */
  for (int64_t i = 0; i < n; i++) x[2 * n + i] = 1; /* b = 0 must give x = 0 */
  ht_solver *solver = solver_with(ctx, a, 0, NULL);
  ht_report report;
  OK(ht_solver_solve(solver, 3, b, x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  assert_int_equal(report.columns, 3);
  assert_int_equal(ht_solver_column_report(solver, 0)->iterations, 0);
  assert_true(ht_solver_column_report(solver, 1)->iterations > 0);
  assert_true(true_residual(a, x + n, b + n) <= 1e-10 + 1e-13);
  for (int64_t i = 0; i < n; i++) assert_true(x[2 * n + i] == 0);
  ht_solver_destroy(solver);
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static void new_values_give_what_a_new_solver_gives(void **state) {
  static const char *const formats[] = {"split", "csr", "tilecsc"}, *const preconds[] = {"none", "jacobi", "block-jacobi", "ic0"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (size_t c = 0; c < 12; c++) {
    ht_matrix *a = make(ctx, "stencil2d", "size", "30", "coefficients", "lognormal");
    int64_t n = ht_matrix_rows(a), nnz = ht_matrix_nonzeros(a);
    const double *old;
    double *x = vector(n), *y = vector(n), *b = vector(n), *values = vector(nnz);
    const char *const settings[][2] = {{"format", formats[c % 3]}, {"precond", preconds[c / 3]}};
    ht_report report;
    for (int64_t i = 0; i < n; i++) b[i] = 1;
    ht_solver *solver = solver_with(ctx, a, 2, settings);
    OK(ht_solver_solve(solver, 1, b, x, &report));
    ht_matrix_csr(a, NULL, NULL, &old);
    for (int64_t k = 0; k < nnz; k++) values[k] = 3 * old[k];
    OK(ht_matrix_set_values(a, values));
    memset(x, 0, (size_t)n * sizeof(double));
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_int_equal(report.outcome, HT_CONVERGED);
    assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
    ht_solver *other = solver_with(ctx, a, 2, settings);
    OK(ht_solver_solve(other, 1, b, y, &report));
    assert_memory_equal(x, y, (size_t)n * sizeof(double));
    ht_solver_destroy(solver);
    ht_solver_destroy(other);
    ht_matrix_destroy(a);
    free(x), free(y), free(b), free(values);
  }
  ht_context_destroy(ctx);
}

static int apply_matrix(void *user, int64_t n, const double *x, double *y) {
  (void)n;
  return ht_matrix_multiply(user, x, y) != HT_OK;
}

static int apply_fails(void *user, int64_t n, const double *x, double *y) {
  (void)user, (void)n, (void)x, (void)y;
  return 7;
}

static void the_callers_operator(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "wathen", "nx", "9", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  ht_solver *solver = solver_with(ctx, NULL, 0, NULL);
  ht_report report;
  OK(ht_solver_set_operator(solver, n, apply_matrix, a, NULL));
  OK(ht_solver_solve(solver, 1, b, x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  assert_string_equal(report.precond, "none");
  assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  OK(ht_solver_set_operator(solver, n, apply_fails, NULL, NULL));
  assert_int_not_equal(ht_solver_solve(solver, 1, b, x, &report), HT_OK);
  assert_non_null(strstr(ht_context_error(ctx), "7"));
  ht_solver_destroy(solver);
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static int calls;

static int all_16(void *user, const ht_policy_view *view, uint8_t *precision) {
  (void)user;
  calls++;
  assert_true(view->blocks > 0 && view->residual > 0 && view->alpha > 0);
  for (int64_t b = 0; b < view->blocks; b++) {
    assert_true(view->direction_norm2[b] >= 0 && view->direction_max[b] * view->direction_max[b] <= view->direction_norm2[b] * (1 + 1e-12));
    precision[b] = HT_BF16;
  }
  return 0;
}

/* Blocks that a policy leaves alone keep their precision, FP64 at the start; no answer means FP64. */
static int lower_one(void *user, const ht_policy_view *view, uint8_t *precision) {
  int *looks = user;
  for (int64_t b = 0; b < view->blocks; b++) assert_int_equal(precision[b], *looks == 1 && b == 0 ? HT_BF16 : HT_F64);
  precision[0] = HT_BF16;
  return (*looks)++ > 0;
}

static void policies_see_the_present_precision(void **state) {
  ht_context *ctx;
  int looks = 0;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  ht_solver *solver = solver_with(ctx, a, 0, NULL);
  ht_solver_set_policy(solver, lower_one, &looks);
  OK(ht_solver_solve(solver, 1, b, x, NULL));
  assert_true(looks > 2);
  assert_string_equal(ht_solver_column_report(solver, 0)->policy_chosen, "");
  ht_solver_destroy(solver);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* However careless the policy, the answer is certified. */
static void the_callers_policy(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  const char *const settings[][2] = {{"policy-interval", "3"}};
  ht_solver *solver = solver_with(ctx, a, 1, settings);
  ht_report report;
  ht_solver_set_policy(solver, all_16, NULL);
  OK(ht_solver_solve(solver, 1, b, x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  assert_true(calls > 0);
  assert_true(report.bytes_16 > 0);
  assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  ht_solver_destroy(solver);
  free(x), free(b), free(known);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

typedef struct {
  int64_t next;
  int with_iterate;
} watched;

static int watch(void *user, const ht_progress *progress) {
  watched *w = user;
  assert_int_equal(progress->iteration, w->next++);
  assert_int_equal(progress->x != NULL, w->with_iterate);
  return 0;
}

/* A callback sees each iteration, also those in which the policy looks, and changes no bit. */
static void progress_changes_nothing(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "50", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *y = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  for (int textbook = 0; textbook < 2; textbook++) {
    const char *const settings[][2] = {{"policy", "budget"}, {"engine", textbook ? "textbook" : "fused"}};
    watched w = {0, textbook};
    ht_report report;
    ht_solver *solver = solver_with(ctx, a, 2, settings);
    memset(x, 0, (size_t)n * sizeof(double));
    memset(y, 0, (size_t)n * sizeof(double));
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_true(report.iterations > 128);
    ht_solver_set_progress(solver, watch, &w);
    OK(ht_solver_solve(solver, 1, b, y, &report));
    assert_int_equal(w.next, report.iterations);
    assert_memory_equal(x, y, (size_t)n * sizeof(double));
    ht_solver_destroy(solver);
  }
  free(x), free(y), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* b = A*1 starts at the boundary, and the direction crosses the blocks in the natural order one after the other: what has not been reached
 * must not be read at 16 bits when it is. */
static void budget_waits_for_the_front(void **state) {
  ht_context *ctx;
  int64_t iterations[2];
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "100", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) x[i] = 1;
  OK(ht_matrix_multiply(a, x, b));
  for (int budget = 0; budget < 2; budget++) {
    const char *const settings[][2] = {
        {"policy", budget ? "budget" : "fixed:f64"}, {"format", "tilecsc"}, {"column-sums", "no"}, {"precond", "none"}, {"guard", "off"}};
    ht_report report;
    ht_solver *solver = solver_with(ctx, a, 5, settings);
    memset(x, 0, (size_t)n * sizeof(double));
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_int_equal(report.outcome, HT_CONVERGED);
    iterations[budget] = report.iterations;
    if (budget) assert_true(report.bytes_f32 + report.bytes_16 > 0.3 * report.bytes_f64);
    ht_solver_destroy(solver);
  }
  assert_true((double)iterations[1] < 1.06 * (double)iterations[0]);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static ht_report solve_within(ht_context *ctx, const ht_matrix *a, const char *policy, const char *most, const double *b, double *x) {
  const char *const settings[][2] = {{"policy", policy}, {"precond", "none"}, {"max-iterations", most}};
  ht_report report;
  ht_solver *solver = solver_with(ctx, a, 3, settings);
  memset(x, 0, (size_t)ht_matrix_rows(a) * sizeof(double));
  OK(ht_solver_solve(solver, 1, b, x, &report));
  ht_solver_destroy(solver);
  return report;
}

/* A quarter of the iterations that are allowed are made, and the residual does not fall fast enough for the rest to do: that is FP64's,
 * whatever the level was. Where they do, FP64 is the certificates' alone. */
static void few_iterations_are_left_to_fp64(void **state) {
  static const char *const policies[] = {"fixed:f32", "fixed:bf16"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "150", "coefficients", "lognormal");
  double *x = vector(ht_matrix_rows(a)), *b = vector(ht_matrix_rows(a));
  for (int64_t i = 0; i < ht_matrix_rows(a); i++) b[i] = sin((double)i);
  ht_report whole = solve_within(ctx, a, "fixed:f64", "500", b, x);
  assert_int_equal(whole.outcome, HT_ITERATION_LIMIT);
  assert_int_equal(whole.left_to_f64, 0);
  for (int k = 0; k < 2; k++) {
    ht_report few = solve_within(ctx, a, policies[k], "500", b, x), many = solve_within(ctx, a, policies[k], "9000", b, x);
    assert_int_equal(few.outcome, HT_ITERATION_LIMIT);
    assert_int_equal(few.left_to_f64, 1);
    assert_true(few.bytes_f64 > 0.6 * whole.bytes_f64 && few.bytes_f32 + few.bytes_16 > 0.05 * whole.bytes_f64);
    assert_int_equal(many.outcome, HT_CONVERGED);
    assert_int_equal(many.left_to_f64, 0);
    assert_true(many.bytes_f64 < 0.1 * whole.bytes_f64);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Every other block at 16 bits. */
static int half_low(void *user, const ht_policy_view *view, uint8_t *precision) {
  (void)user;
  for (int64_t k = 0; k < view->blocks; k++) precision[k] = k % 2 ? HT_BF16 : HT_F64;
  return 0;
}

typedef struct limited {
  const char *policy, *format, *rtol;
  int64_t most; /* 0: as is usual */
  const double *b;
  int small_cache; /* auto takes levels below FP64 then */
} limited;

static ht_report solve_limited(ht_context *ctx, const ht_matrix *a, const limited *how, double *x) {
  char most[24];
  int custom = !strcmp(how->policy, "custom");
  snprintf(most, sizeof most, "%lld", (long long)how->most);
  const char *const settings[][2] = {{"policy", custom ? "auto" : how->policy},
                                     {"format", how->format},
                                     {"rtol", how->rtol},
                                     {"max-iterations", most},
                                     {"precond", "none"},
                                     {"trace", "yes"}};
  ht_report report;
  ht_solver *solver = solver_with(ctx, a, 6, settings);
  if (custom) ht_solver_set_policy(solver, half_low, NULL);
  if (how->small_cache) OK(ht_solver_prepare(solver));
  if (how->small_cache) OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = 1}));
  memset(x, 0, (size_t)ht_matrix_rows(a) * sizeof(double));
  OK(ht_solver_solve(solver, 1, how->b, x, &report));
  const ht_solve_trace *trace = ht_solver_trace(solver);
  int64_t left = 0;
  for (int64_t k = 0; k < trace->changes; k++) left += trace->change[k].why == HT_TRACE_LIMIT;
  assert_true(left <= report.left_to_f64 && report.left_to_f64 <= 1); /* levels may have been FP64 then */
  ht_solver_destroy(solver);
  return report;
}

/* A plate, whose smallest eigenvalues 16 bits do not bear and 32 hardly: with 2.2 times the iterations that FP64 takes every policy solves
 * it, also with a right-hand side that is easier for FP64 than what a lower level leaves. */
static void the_limit_is_shared(void **state) {
  static const char *const policies[] = {"fixed:f32", "fixed:bf16", "rule", "budget", "custom", "learned", "auto"}, *const formats[] = {
                                                                                                                        "split", "tilecsc"};
  ht_context *ctx;
  ht_matrix *a;
  int left = 0;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "elasticity3d nx=40 ny=6 nz=1", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int k = 0; k < 4; k++) {
    for (int64_t i = 0; i < n; i++) x[i] = 1;
    OK(ht_matrix_multiply(a, x, b));
    for (int64_t i = 0; i < n && k / 2; i++) b[i] = sin(1.3 * (double)i * (double)i);
    limited how = {"fixed:f64", formats[k % 2], "1e-10", 0, b, 0};
    ht_report f64 = solve_limited(ctx, a, &how, x);
    assert_int_equal(f64.outcome, HT_CONVERGED);
    how.most = 22 * f64.iterations / 10;
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
      how.policy = policies[p];
      ht_report r = solve_limited(ctx, a, &how, x);
      if (r.outcome != HT_CONVERGED)
        fail_msg("%s, %s, %d: %s, residual %g; FP64 takes %lld of %lld iterations", how.policy, how.format, k / 2,
                 ht_outcome_name(r.outcome), r.residual_true, (long long)f64.iterations, (long long)how.most);
      left += (int)r.left_to_f64;
    }
  }
  assert_true(left >= 8); /* fixed:f32 and fixed:bf16 at least */
  limited how = {"fixed:f32", "split", "1e-10", 0, b, 0};
  assert_int_equal(solve_limited(ctx, a, &how, x).left_to_f64, 0); /* where there is time */
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Beyond the cache auto finds a plate by its graph, and does what FP64 does, to the bit; a cube of as many nodes is read at 32 bits. */
static void auto_takes_fp64_for_plates(void **state) {
  static const char *const lines[] = {"elasticity3d nx=40 ny=6 nz=1", "elasticity3d size=7"}, *const formats[] = {"split", "tilecsc"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int k = 0; k < 4; k++) {
    ht_matrix *a;
    OK(generate_line(ctx, lines[k % 2], &a));
    int64_t n = ht_matrix_rows(a);
    double *x = vector(n), *alone = vector(n), *b = vector(n);
    for (int64_t i = 0; i < n; i++) b[i] = sin(1.3 * (double)i * (double)i);
    limited how = {"fixed:f64", formats[k / 2], "1e-10", 0, b, 0};
    ht_report f64 = solve_limited(ctx, a, &how, alone);
    how.policy = "auto";
    how.small_cache = 1;
    ht_report r = solve_limited(ctx, a, &how, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_int_equal(!memcmp(x, alone, (size_t)n * sizeof *x), k % 2 == 0);
    if (k % 2 == 0) assert_int_equal(r.iterations, f64.iterations);
    free(x), free(alone), free(b);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* On course at a quarter and nowhere at half: FP64 starts over, and takes the iterations that it takes alone, to the bit. */
static void what_stands_still_starts_over(void **state) {
  ht_context *ctx;
  ht_matrix *a;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "elasticity3d nx=20 ny=20 nz=1", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *y = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) x[i] = 1;
  OK(ht_matrix_multiply(a, x, b));
  limited how = {"fixed:f64", "split", "1e-7", 0, b, 0};
  ht_report f64 = solve_limited(ctx, a, &how, x);
  how.policy = "fixed:bf16";
  how.most = 202 * f64.iterations / 100;
  ht_report r = solve_limited(ctx, a, &how, y);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.left_to_f64 == 1 && r.restores == 1);
  assert_int_equal(r.iterations, how.most / 2 + f64.iterations);
  assert_memory_equal(x, y, (size_t)n * sizeof *x);
  free(x), free(y), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* So few iterations are what the caller wants, and nobody's share. */
static void small_limits_are_kept(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "60", "coefficients", "lognormal");
  double *x = vector(ht_matrix_rows(a)), *b = vector(ht_matrix_rows(a));
  for (int64_t i = 0; i < ht_matrix_rows(a); i++) b[i] = sin((double)i);
  static const int64_t most[] = {1, 5, 63};
  for (int k = 0; k < 3; k++) {
    limited how = {"fixed:bf16", "split", "1e-10", most[k], b, 0};
    ht_report r = solve_limited(ctx, a, &how, x);
    assert_int_equal(r.outcome, HT_ITERATION_LIMIT);
    assert_int_equal(r.iterations, most[k]);
    assert_non_null(strstr(r.detail, "fixed:f64")); /* which may take fewer */
    assert_int_equal(r.left_to_f64, 0);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* What auto takes on a device where short rows meet a steep diagonal waits for the residual, also where nothing is mended or the recursive
 * residual is gone by: the CPU is taken for one, with a small cache. */
static void low_levels_wait_whoever_mends(void **state) {
  static const char *const ways[][2][2] = {{{"guard", "on"}, {"stopping", "true"}},
                                           {{"guard", "off"}, {"stopping", "true"}},
                                           {{"guard", "on"}, {"stopping", "paper"}},
                                           {{"guard", "off"}, {"stopping", "paper"}}};
  ht_context *ctx;
  ht_solver *solver;
  ht_report report;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a;
  OK(generate_line(ctx, "stencil3d size=16 points=7 coefficients=jumps contrast=1e4", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = sin((double)i);
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    const char *const settings[][2] = {
        {"precond", "jacobi"}, {"backend", "cpu"}, {ways[k][0][0], ways[k][0][1]}, {ways[k][1][0], ways[k][1][1]}};
    solver = solver_with(ctx, a, 4, settings);
    OK(ht_solver_prepare(solver));
    OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = 1, .device = 1}));
    memset(x, 0, (size_t)n * sizeof(double));
    OK(ht_solver_solve(solver, 1, b, x, &report));
    assert_non_null(strstr(report.policy_chosen, "until the residual has fallen"));
    assert_true(report.residual_recursive <= 1e-10 && report.bytes_16 == 0 && report.bytes_f32 > 0);
    if (!(report.bytes_f64 > 0.1 * report.bytes_f32))
      fail_msg("way %zu: %g bytes in FP64, %g below", k, report.bytes_f64, report.bytes_f32);
    ht_solver_destroy(solver);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* At a quarter of 1.25 times FP64's iterations the line says that the limit is missed: the level that auto chooses is trusted, the same by
 * name is left. */
static void auto_has_all_of_the_limit(void **state) {
  ht_context *ctx;
  ht_matrix *a;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "stencil3d size=14 points=7 coefficients=jumps contrast=1e4", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) x[i] = 1;
  OK(ht_matrix_multiply(a, x, b));
  limited how = {"fixed:f64", "split", "1e-10", 0, b, 0};
  int64_t alone = solve_limited(ctx, a, &how, x).iterations;
  how = (limited){"fixed:f32", "split", "1e-10", 125 * alone / 100, b, 0};
  assert_int_equal(solve_limited(ctx, a, &how, x).left_to_f64, 1);
  how.policy = "auto";
  how.small_cache = 1;
  ht_report r = solve_limited(ctx, a, &how, x);
  assert_true(r.outcome == HT_CONVERGED && r.bytes_f32 > 0 && r.left_to_f64 == 0);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_combination_converges),
      cmocka_unit_test(fused_agrees_with_textbook),
      cmocka_unit_test(threads_are_as_many_as_the_size_is_worth),
      cmocka_unit_test(bits_do_not_depend_on_threads),
      cmocka_unit_test(several_columns_and_warm_start),
      cmocka_unit_test(new_values_give_what_a_new_solver_gives),
      cmocka_unit_test(the_callers_operator),
      cmocka_unit_test(the_callers_policy),
      cmocka_unit_test(policies_see_the_present_precision),
      cmocka_unit_test(progress_changes_nothing),
      cmocka_unit_test(budget_waits_for_the_front),
      cmocka_unit_test(few_iterations_are_left_to_fp64),
      cmocka_unit_test(the_limit_is_shared),
      cmocka_unit_test(auto_takes_fp64_for_plates),
      cmocka_unit_test(what_stands_still_starts_over),
      cmocka_unit_test(auto_has_all_of_the_limit),
      cmocka_unit_test(small_limits_are_kept),
      cmocka_unit_test(low_levels_wait_whoever_mends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
