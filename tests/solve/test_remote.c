/* Solves on a device whose memory the host cannot touch, against the CPU: the same outcomes, and residuals in long double.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solve_helpers.h"
#include "support/failing.h"
#include "support/generated.h"
#include "support/remote.h"

enum { MOST_SETTINGS = 5 };
typedef const char *settings_list[MOST_SETTINGS][2]; /* up to the first NULL */

static int setup(void **state) {
  ht_context *ctx;
  OK(ht_context_create(&ctx));
  remote_install(ctx, &remote_backend);
  *state = ctx;
  return 0;
}

static int teardown(void **state) {
  ht_backend_set_extra(NULL);
  assert_int_equal(remote.alive, 0);
  ht_context_destroy(*state);
  return 0;
}

static ht_solver *solver_on(ht_context *ctx, const ht_matrix *a, const char *backend, settings_list settings) {
  ht_solver *solver;
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, "backend", backend));
  for (int k = 0; k < MOST_SETTINGS && settings[k][0]; k++) OK(ht_solver_set_option(solver, settings[k][0], settings[k][1]));
  if (a) OK(ht_solver_set_matrix(solver, a));
  return solver;
}

static ht_report solve_on(ht_context *ctx, const ht_matrix *a, const char *backend, settings_list settings, int columns, const double *b,
                          double *x) {
  ht_report report;
  ht_solver *solver = solver_on(ctx, a, backend, settings);
  if (ht_solver_solve(solver, columns, b, x, &report) != HT_OK) fail_msg("%s", ht_context_error(ctx));
  ht_solver_destroy(solver);
  return report;
}

/* Both backends from the same start: the same outcome and sentence, nearly the same iterations. */
static ht_report compare(ht_context *ctx, const ht_matrix *a, settings_list settings, int columns, const double *b, const double *x0) {
  int64_t n = ht_matrix_rows(a), all = n * columns;
  double *x = vector(all), *y = vector(all);
  if (x0) memcpy(x, x0, (size_t)all * sizeof *x), memcpy(y, x0, (size_t)all * sizeof *y);
  ht_report on_cpu = solve_on(ctx, a, "cpu", settings, columns, b, x), r = solve_on(ctx, a, "remote", settings, columns, b, y);
  assert_string_equal(on_cpu.backend, "cpu");
  assert_string_equal(r.backend, "remote");
  assert_string_equal(r.isa, "a device that is none");
  if (r.outcome != on_cpu.outcome)
    fail_msg("%s on the device (%s), %s on the CPU (%s)", ht_outcome_name(r.outcome), r.detail, ht_outcome_name(on_cpu.outcome),
             on_cpu.detail);
  for (int k = 0; k < columns && r.outcome == HT_CONVERGED; k++) assert_true(true_residual(a, y + k * n, b + k * n) <= 1e-10 + 1e-13);
  if (r.outcome == HT_CONVERGED) assert_true(fabs((double)(r.iterations - on_cpu.iterations)) <= 3 + 0.1 * (double)on_cpu.iterations);
  free(x), free(y);
  return r;
}

static const char *const problems[] = {
    "stencil2d size=1",           "stencil2d size=9", "stencil2d size=23 coefficients=lognormal", "stencil3d size=9 coefficients=lognormal",
    "stencil3d size=8 points=27", "wathen nx=9"};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static void compare_problem(ht_context *ctx, const char *line, settings_list settings, const char *engine) {
  ht_matrix *a;
  OK(generate_line(ctx, line, &a));
  int64_t n = ht_matrix_rows(a);
  double *known = vector(n), *b = vector(n);
  known_solution(a, known, b);
  ht_report r = compare(ctx, a, settings, 1, b, NULL);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_string_equal(r.engine, engine);
  free(known), free(b);
  ht_matrix_destroy(a);
}

static void every_storage_and_loop(void **state) {
  static const char *const loops[][3] = {
      {"csr", "auto", "textbook"}, {"tilecsc", "auto", "textbook"}, {"split", "auto", "persistent"}, {"split", "textbook", "textbook"}};
  static const char *const preconds[] = {"none", "jacobi"};
  for (int p = 0; p < PROBLEMS; p++)
    for (int l = 0; l < 4; l++)
      for (int m = 0; m < 2; m++) {
        settings_list settings = {{"format", loops[l][0]}, {"engine", loops[l][1]}, {"precond", preconds[m]}, {"policy", "fixed:f64"}};
        compare_problem(*state, problems[p], settings, loops[l][2]);
      }
}

static void every_policy(void **state) {
  static const char *const policies[] = {"auto", "fixed:f32", "fixed:bf16", "rule", "budget"};
  for (int p = 0; p < PROBLEMS; p++)
    for (int k = 0; k < 5; k++) {
      settings_list engine = {{"policy", policies[k]}}, tilecsc = {{"policy", policies[k]}, {"format", "tilecsc"}};
      compare_problem(*state, problems[p], tilecsc, "textbook");
      remote.decisions = 0;
      if (k) compare_problem(*state, problems[p], engine, "persistent"); /* auto goes by the cache, which differs */
      assert_int_equal(remote.decisions > 0, k >= 3 && strcmp(problems[p], "stencil2d size=1") != 0);
    }
}

/* The engine that was asked for is the one that the store is made for; the CPU has neither. */
static void engines_by_name(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "9", NULL, NULL);
  double b[81], x[81] = {0};
  settings_list streaming = {{"engine", "streaming"}}, fused = {{"engine", "fused"}}, plain = {{"format", "csr"}, {"engine", "persistent"}};
  for (int i = 0; i < 81; i++) b[i] = 1;
  assert_string_equal(solve_on(*state, a, "remote", streaming, 1, b, x).engine, "streaming");
  const struct {
    const char *backend;
    settings_list *settings;
    ht_status status;
  } refused[] = {{"cpu", &streaming, HT_BAD_OPTION},   {"remote", &fused, HT_BAD_OPTION},        {"remote", &plain, HT_BAD_OPTION},
                 {"auto", &streaming, HT_UNSUPPORTED}, {"remote:1", &streaming, HT_UNSUPPORTED}, {"gpu", &streaming, HT_BAD_OPTION}};
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    ht_solver *solver = solver_on(*state, a, refused[k].backend, *refused[k].settings);
    assert_int_equal(ht_solver_prepare(solver), refused[k].status);
    assert_true(strlen(ht_context_error(*state)) > 0);
    ht_solver_destroy(solver);
  }
  ht_matrix_destroy(a);
}

static void host_preconditioners_and_operators_are_refused(void **state) {
  static const char *const preconds[] = {"ic0", "block-jacobi"};
  ht_matrix *a = make(*state, "stencil2d", "size", "9", NULL, NULL);
  for (int k = 0; k < 2; k++) {
    settings_list settings = {{"precond", preconds[k]}};
    ht_solver *solver = solver_on(*state, a, "remote", settings);
    assert_int_equal(ht_solver_prepare(solver), HT_UNSUPPORTED);
    assert_non_null(strstr(ht_context_error(*state), "--precond jacobi"));
    ht_solver_destroy(solver);
  }
  ht_matrix_destroy(a);
}

static int identity(void *user, int64_t n, const double *x, double *y) {
  (void)user;
  memcpy(y, x, (size_t)n * sizeof *x);
  return 0;
}

static void the_callers_operator_stays_at_home(void **state) {
  settings_list none = {{NULL}};
  double b[3] = {1, 2, 3}, x[3] = {0};
  ht_solver *solver = solver_on(*state, NULL, "remote", none);
  OK(ht_solver_set_operator(solver, 3, identity, NULL, NULL));
  assert_int_equal(ht_solver_solve(solver, 1, b, x, NULL), HT_UNSUPPORTED);
  OK(ht_solver_set_option(solver, "backend", "auto"));
  OK(ht_solver_solve(solver, 1, b, x, NULL));
  assert_non_null(strstr(ht_solver_column_report(solver, 0)->backend_chosen, "operator"));
  assert_true(x[2] == 3);
  ht_solver_destroy(solver);
}

static const char *const formats[] = {"csr", "tilecsc", "split"};

/* Certified with the matrix as given, in the device's memory. */
static void nearly_symmetric(void **state) {
  const double next = nextafter(1, 2), dense[] = {4, 1, 0, next, 4, 1, 0, 1, 4}, b[] = {1, 2, 3};
  ht_matrix *a = from_dense(*state, 3, dense);
  assert_int_equal(ht_matrix_symmetry(a), HT_NEARLY_SYMMETRIC);
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    assert_int_equal(compare(*state, a, settings, 1, b, NULL).outcome, HT_CONVERGED);
  }
  ht_matrix_destroy(a);
}

static void singular(void **state) {
  const double dense[] = {4, 1, 0, 1, 4, 0, 0, 0, 0}, consistent[] = {1, 2, 0}, inconsistent[] = {1, 2, 3};
  const double indefinite[] = {1, 2, 2, 1}, b[] = {1, -1};
  ht_matrix *empty = from_dense(*state, 3, dense), *hidden = from_dense(*state, 2, indefinite);
  ht_matrix *neumann = make(*state, "neumann", "size", "20", NULL, NULL);
  int64_t n = ht_matrix_rows(neumann);
  double *known = vector(n), *c = vector(n);
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    assert_int_equal(compare(*state, empty, settings, 1, consistent, NULL).outcome, HT_CONVERGED);
    assert_int_equal(compare(*state, empty, settings, 1, inconsistent, NULL).outcome, HT_SINGULAR);
    ht_report r = compare(*state, hidden, settings, 1, b, NULL);
    assert_int_equal(r.outcome, HT_INDEFINITE);
    assert_non_null(strstr(r.detail, "p'Ap"));
    known_solution(neumann, known, c);
    assert_int_equal(compare(*state, neumann, settings, 1, c, NULL).outcome, HT_CONVERGED);
    for (int64_t i = 0; i < n; i++) c[i] += 1;
    r = compare(*state, neumann, settings, 1, c, NULL);
    assert_int_equal(r.outcome, HT_SINGULAR);
    assert_non_null(strstr(r.detail, "subtract their mean"));
  }
  ht_matrix_destroy(empty), ht_matrix_destroy(hidden), ht_matrix_destroy(neumann);
  free(known), free(c);
}

static void starts_and_columns(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "20", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x0 = vector(3 * n), *b = vector(3 * n), *known = vector(n);
  for (int64_t k = 0; k < 3; k++) known_solution(a, known, b + k * n);
  memcpy(x0, known, (size_t)n * sizeof *x0); /* the solution, nothing and something far off; b = 0 for the last */
  for (int64_t i = 0; i < n; i++) x0[2 * n + i] = cos((double)i), b[2 * n + i] = 0;
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    ht_report r = compare(*state, a, settings, 3, b, x0);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_int_equal(r.columns, 3);
  }
  free(x0), free(b), free(known);
  ht_matrix_destroy(a);
}

static void numbers_that_are_none(void **state) {
  const double dense[] = {4, 1, 0, 1, 4, 1, 0, 1, 4}, fine[] = {1, 2, 3}, bad_b[] = {1, NAN, 3}, bad_x[] = {0, 0, INFINITY};
  ht_matrix *a = from_dense(*state, 3, dense);
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    assert_non_null(strstr(compare(*state, a, settings, 1, bad_b, NULL).detail, "entry 2 of b"));
    assert_non_null(strstr(compare(*state, a, settings, 1, fine, bad_x).detail, "entry 3 of x0"));
  }
  ht_matrix_destroy(a);
}

/* Powers of two on b and x, on the device. */
static void ends_of_the_range(void **state) {
  const double b[] = {1, 2, 3}, huge_b[] = {1e200, 1e200, 1e200}, largest[] = {1.7e308, 1.7e308, 1.7e308},
               one[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    for (int e = -300; e <= 300; e += 100) {
      double s = pow(10, e), dense[] = {4 * s, s, 0, s, 4 * s, s, 0, s, 4 * s};
      ht_matrix *a = from_dense(*state, 3, dense);
      assert_int_equal(compare(*state, a, settings, 1, b, NULL).outcome, HT_CONVERGED);
      if (e == -200) assert_int_equal(compare(*state, a, settings, 1, huge_b, NULL).outcome, HT_NON_FINITE); /* x beyond the range */
      ht_matrix_destroy(a);
    }
    ht_matrix *a = from_dense(*state, 3, one);
    double x[3] = {0};
    assert_int_equal(solve_on(*state, a, "remote", settings, 1, largest, x).outcome, HT_CONVERGED); /* ||b|| overflows */
    assert_true(x[0] == 1.7e308 && x[2] == 1.7e308);
    ht_matrix_destroy(a);
  }
}

static void limits_and_accuracy(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = sin(3.7 * (double)i);
  for (int f = 0; f < 3; f++) {
    settings_list few = {{"format", formats[f]}, {"max-iterations", "20"}}, exact = {{"format", formats[f]}, {"rtol", "1e-18"}};
    ht_report r = compare(*state, a, few, 1, b, NULL);
    assert_int_equal(r.outcome, HT_ITERATION_LIMIT);
    assert_int_equal(r.iterations, 20);
    assert_int_equal(compare(*state, a, exact, 1, b, NULL).outcome, HT_ATTAINABLE_ACCURACY);
  }
  settings_list paper = {{"stopping", "paper"}, {"policy", "fixed:bf16"}};
  assert_int_equal(compare(*state, a, paper, 1, b, NULL).outcome, HT_RECURSIVE_ONLY);
  free(b);
  ht_matrix_destroy(a);
}

static void new_values(void **state) {
  for (int f = 0; f < 3; f++) {
    ht_matrix *a = make(*state, "stencil2d", "size", "20", "coefficients", "lognormal");
    int64_t n = ht_matrix_rows(a), nnz = ht_matrix_nonzeros(a);
    double *x = vector(n), *b = vector(n), *values = vector(nnz);
    const double *old;
    settings_list settings = {{"format", formats[f]}};
    for (int64_t i = 0; i < n; i++) b[i] = 1;
    ht_solver *solver = solver_on(*state, a, "remote", settings);
    OK(ht_solver_solve(solver, 1, b, x, NULL));
    ht_matrix_csr(a, NULL, NULL, &old);
    for (int64_t k = 0; k < nnz; k++) values[k] = 3 * old[k];
    OK(ht_matrix_set_values(a, values));
    OK(ht_solver_solve(solver, 1, b, x, NULL));
    assert_int_equal(ht_solver_column_report(solver, 0)->outcome, HT_CONVERGED);
    assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
    ht_solver_destroy(solver);
    ht_matrix_destroy(a);
    free(x), free(b), free(values);
  }
}

/* The caller's arrays on the device are used as they are. */
static void arrays_on_the_device(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "20", NULL, NULL);
  int64_t n = ht_matrix_rows(a), bytes = n * (int64_t)sizeof(double);
  double *x = vector(n), *b = vector(n), *remote_x, *remote_b;
  ht_report r;
  settings_list settings = {{"policy", "fixed:f64"}};
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  OK(remote_create(*state, bytes, &remote_x));
  OK(remote_create(*state, bytes, &remote_b));
  OK(remote_upload(*state, bytes, b, remote_b));
  ht_solver *solver = solver_on(*state, a, "remote", settings);
  OK(ht_solver_prepare(solver));
  remote.transfers = remote.waits = 0;
  OK(ht_solver_solve(solver, 1, remote_b, remote_x, &r));
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_int_equal(remote.transfers, 0);
  assert_int_equal(remote.waits, 2); /* at the start, and with the certificate */
  OK(remote_download(*state, bytes, remote_x, x));
  assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  ht_solver_destroy(solver);
  remote_release(*state, remote_x), remote_release(*state, remote_b);
  free(x), free(b);
  ht_matrix_destroy(a);
}

/* The device is lost in the middle: an error, and the caller's start is still there. */
static void a_lost_device(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "40", NULL, NULL);
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  for (int f = 0; f < 3; f += 2) {
    settings_list settings = {{"format", formats[f]}};
    ht_solver *solver = solver_on(*state, a, "remote", settings);
    OK(ht_solver_prepare(solver));
    remote.runs = 0;
    remote.fail_after = 1;
    assert_int_equal(ht_solver_solve(solver, 1, b, x, NULL), HT_INTERNAL);
    assert_non_null(strstr(ht_context_error(*state), "lost"));
    for (int64_t i = 0; i < n; i++) assert_true(x[i] == 0);
    ht_solver_destroy(solver);
    remote.fail_after = 0;
    remote.status = HT_OK;
  }
  free(x), free(b);
  ht_matrix_destroy(a);
}

typedef struct {
  int looks, with_iterate;
} watched;

static int watch(void *user, const ht_progress *progress) {
  watched *w = user;
  w->looks++;
  if (progress->x) w->with_iterate += isfinite(progress->x[0]) != 0; /* must be readable */
  return 0;
}

static int all_16(void *user, const ht_policy_view *view, uint8_t *precision) {
  ++*(int *)user;
  for (int64_t b = 0; b < view->blocks; b++) {
    assert_true(view->direction_norm2[b] >= 0 && view->error_16[b] >= view->error_f32[b]);
    precision[b] = HT_BF16;
  }
  return 0;
}

static void callbacks(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "30", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  for (int64_t i = 0; i < n; i++) b[i] = 1;
  for (int f = 0; f < 3; f++) {
    watched w = {0, 0};
    int decisions = 0;
    ht_report r;
    settings_list settings = {{"format", formats[f]}};
    ht_solver *solver = solver_on(*state, a, "remote", settings);
    ht_solver_set_progress(solver, watch, &w);
    ht_solver_set_policy(solver, all_16, &decisions);
    memset(x, 0, (size_t)n * sizeof *x);
    OK(ht_solver_solve(solver, 1, b, x, &r));
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
    assert_int_equal(w.looks, r.iterations);
    assert_int_equal(w.with_iterate, f == 2 ? 0 : w.looks);
    assert_int_equal(decisions > 0, f > 0);
    assert_int_equal(r.bytes_16 > 0, f > 0);
    ht_solver_destroy(solver);
  }
  settings_list textbook = {{"engine", "textbook"}, {"policy", "budget"}};
  ht_solver *solver = solver_on(*state, a, "remote", textbook);
  assert_int_equal(ht_solver_prepare(solver), HT_BAD_OPTION); /* the store's blocks are its own */
  ht_solver_destroy(solver);
  free(x), free(b);
  ht_matrix_destroy(a);
}

/* auto: by size, by what is asked, by what there is. */
static void automatic_choice(void **state) {
  static const struct {
    const char *size, *option, *value, *backend, *word;
  } choices[] = {{"20", NULL, NULL, "cpu", "fewer"},
                 {"80", NULL, NULL, "cuda", "enough"},
                 {"80", "precond", "ic0", "cpu", "preconditioner"},
                 {"80", "engine", "fused", "cpu", "fused"},
                 {"80", "isa", "portable", "cpu", "instruction set"},
                 {"20", "engine", "streaming", "cuda", "engine"}};
  for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
    ht_matrix *a = make(*state, "stencil2d", "size", choices[k].size, NULL, NULL);
    int64_t n = ht_matrix_rows(a);
    double *x = vector(n), *b = vector(n);
    for (int64_t i = 0; i < n; i++) b[i] = 1;
    settings_list settings = {{choices[k].option, choices[k].value}};
    remote_install(*state, &remote_cuda);
    ht_report r = solve_on(*state, a, "auto", settings, 1, b, x);
    assert_string_equal(r.backend, choices[k].backend);
    assert_non_null(strstr(r.backend_chosen, choices[k].word));
    assert_string_equal(ht_context_error(*state), "");
    if (k == 1) { /* too little memory there: the CPU, without an error */
      remote.limit = 100000;
      r = solve_on(*state, a, "auto", settings, 1, b, x);
      assert_string_equal(r.backend, "cpu");
      assert_non_null(strstr(r.backend_chosen, "device memory"));
      assert_string_equal(ht_context_error(*state), "");
      ht_backend_set_extra(NULL); /* no device */
      r = solve_on(*state, a, "auto", settings, 1, b, x);
      assert_string_equal(r.backend, "cpu");
      assert_non_null(strstr(r.backend_chosen, "no CUDA device"));
      assert_string_equal(ht_context_error(*state), "");
    }
    assert_int_equal(remote.alive, 0);
    free(x), free(b);
    ht_matrix_destroy(a);
  }
}

/* Each request for device memory refused once. */
static void device_memory_may_end_anywhere(void **state) {
  ht_matrix *a = make(*state, "stencil2d", "size", "9", NULL, NULL);
  for (int f = 0; f < 3; f++) {
    settings_list settings = {{"format", formats[f]}};
    ht_status status = HT_NO_MEMORY;
    for (remote.limit = 64; status != HT_OK; remote.limit += 64) {
      ht_solver *solver = solver_on(*state, a, "remote", settings);
      status = ht_solver_prepare(solver);
      assert_true(status == HT_OK || status == HT_NO_MEMORY);
      ht_solver_destroy(solver);
      assert_int_equal(remote.alive, 0);
    }
  }
  remote.limit = 0;
  ht_matrix_destroy(a);
}

/* Each request for host memory refused once: nothing is left on either side. */
static void host_memory_may_end_anywhere(void **state) {
  static const double u = 0x1p-52;
  (void)state;
  for (int f = 0; f < 6; f++) {
    settings_list settings = {{"format", formats[f % 3]}};
    const double dense[] = {4, 1, f < 3 ? 1 : 1 + u, 4}, b[] = {1, 2}; /* symmetric, or but for rounding */
    ht_status status = HT_NO_MEMORY;
    for (long fail_at = 0; status != HT_OK; fail_at++) {
      failing_allocator memory;
      ht_context *ctx;
      double x[2] = {0};
      OK(failing_context(&memory, &ctx));
      ht_matrix *a = from_dense(ctx, 2, dense);
      ht_solver *solver = solver_on(ctx, a, "remote", settings);
      memory.requests = 0;
      memory.fail_at = fail_at;
      status = ht_solver_solve(solver, 1, b, x, NULL);
      assert_true(status == HT_OK || status == HT_NO_MEMORY);
      if (status != HT_OK) OK(ht_solver_solve(solver, 1, b, x, NULL));
      ht_solver_destroy(solver);
      ht_matrix_destroy(a);
      ht_context_destroy(ctx);
      assert_int_equal(memory.alive, 0);
      assert_int_equal(remote.alive, 0);
    }
  }
}

/* What the device rounds away is computed again on the host, in twice the precision. */
static void rounding_meets_no_goal(void **state) {
  const double dense[] = {1.000000000000001, -1, -1, 1};
  double b[] = {1.000000000000001 - 1, 0};
  ht_matrix *a = from_dense(*state, 2, dense);
  static const char *const engines[] = {"auto", "textbook"};
  for (int k = 0; k < 2; k++) {
    settings_list settings = {{"engine", engines[k]}};
    double x[2] = {0};
    ht_report r = solve_on(*state, a, "remote", settings, 1, b, x);
    assert_residual_is_told(a, x, b, &r);
  }
  ht_matrix_destroy(a);
}

#define ON_REMOTE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REMOTE(every_storage_and_loop),
      ON_REMOTE(every_policy),
      ON_REMOTE(engines_by_name),
      ON_REMOTE(host_preconditioners_and_operators_are_refused),
      ON_REMOTE(the_callers_operator_stays_at_home),
      ON_REMOTE(nearly_symmetric),
      ON_REMOTE(singular),
      ON_REMOTE(starts_and_columns),
      ON_REMOTE(numbers_that_are_none),
      ON_REMOTE(ends_of_the_range),
      ON_REMOTE(limits_and_accuracy),
      ON_REMOTE(new_values),
      ON_REMOTE(arrays_on_the_device),
      ON_REMOTE(a_lost_device),
      ON_REMOTE(callbacks),
      ON_REMOTE(automatic_choice),
      ON_REMOTE(device_memory_may_end_anywhere),
      ON_REMOTE(host_memory_may_end_anywhere),
      ON_REMOTE(rounding_meets_no_goal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
