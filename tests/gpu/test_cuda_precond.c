/* Block-Jacobi in the CUDA backend's engines, against the CPU's textbook loop. SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_solves.h"

static const char *const systems[] = {
    "elasticity3d size=7",
    "elasticity3d size=12",
    "wathen nx=30 ny=31",
    "stencil2d size=47 points=9 coefficients=lognormal",
    "stencil2d size=61",
    "stencil3d size=17 points=27",
    "fem3d size=7 numbering=random",
    "trefethen size=2001",
    "biharmonic size=33",
};
static const char *const blocks[] = {"0", "1", "2", "3", "4", "7", "8", "16", "22", "32", "64"};
/* Short runs take each A_FEW-th system. */
enum { A_FEW = 3, SYSTEMS = sizeof systems / sizeof *systems, BLOCKS = sizeof blocks / sizeof *blocks, FIRST_ENGINE = TEXTBOOK + 1 };
static const double few_percent = 0.03; /* FP32 blocks, and another order of sums */

static ht_report solve_by(gpu *g, const ht_matrix *a, const char *engine, const char *block, const char *policy, const double *b,
                          double *x) {
  memset(x, 0, (size_t)a->n * sizeof *x);
  return solve_once(g, a,
                    SETTINGS({"backend", strcmp(engine, "textbook") ? "cuda" : "cpu"}, {"engine", engine}, {"precond", "block-jacobi"},
                             {"precond-block", block}, {"policy", policy}, {"max-iterations", "20000"}),
                    b, x);
}

static void check(gpu *g, const char *system, const ht_matrix *a, const char *engine, const char *block, const char *policy,
                  const double *b, int64_t expected) {
  double *x = array(a->n), *again = array(a->n);
  ht_report r = solve_by(g, a, engine, block, policy, b, x);
  if (r.outcome != HT_CONVERGED || !(r.residual_true <= rtol) || !meets_tolerance(g, a, b, x))
    fail_msg("%s, %s, blocks of %s, %s: outcome %d (%s), %lld iterations, true residual %.3g", system, engine, block, policy,
             (int)r.outcome, r.detail, (long long)r.iterations, r.residual_true);
  assert_string_equal(r.backend, "cuda");
  assert_non_null(strstr(r.precond, "block-jacobi"));
  assert_true(strcmp(r.engine, "textbook") != 0);
  if (expected >= 0 && fabs((double)(r.iterations - expected)) > few_percent * (double)expected + 2)
    fail_msg("%s, %s, blocks of %s: %lld iterations, and %lld on the CPU", system, engine, block, (long long)r.iterations,
             (long long)expected);
  solve_by(g, a, engine, block, policy, b, again);
  assert_memory_equal(x, again, (size_t)a->n * sizeof *x);
  free(x), free(again);
}

/* With every size of block as many iterations as on the CPU. */
static void every_size_of_block(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SYSTEMS; i += gpu_short() ? A_FEW : 1) {
    ht_matrix *a = generate(&g, systems[i]);
    double *b = right_hand_side(a), *x = array(a->n);
    for (int k = 0; k < BLOCKS; k++) {
      ht_report r = solve_by(&g, a, "textbook", blocks[k], "fixed:f64", b, x);
      assert_int_equal(r.outcome, HT_CONVERGED);
      for (int e = FIRST_ENGINE; e < ENGINES; e++) check(&g, systems[i], a, engines[e], blocks[k], "fixed:f64", b, r.iterations);
    }
    free(b), free(x);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

static void every_policy(void **state) {
  (void)state;
  gpu g = gpu_open();
  static const char *const policies[] = {"fixed:f32", "fixed:bf16", "auto", "rule", "budget"};
  static const char *const some[] = {"0", "8", "32"};
  for (int i = 0; i < SYSTEMS; i += gpu_short() ? A_FEW : 1) {
    ht_matrix *a = generate(&g, systems[i]);
    double *b = right_hand_side(a);
    for (int k = 0; k < 3; k++)
      for (int e = FIRST_ENGINE; e < ENGINES; e++)
        for (int p = 0; p < 5; p++) check(&g, systems[i], a, engines[e], some[k], policies[p], b, -1);
    free(b);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Sizes around those of blocks, column blocks and patches. */
static void odd_sizes(void **state) {
  (void)state;
  gpu g = gpu_open();
  static const char *const sizes[] = {"1", "2", "3", "31", "63", "64", "65", "127", "129", "1000", "4097", "8449"};
  static const char *const some[] = {"2", "3", "8", "22", "64"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char line[64];
    snprintf(line, sizeof line, "trefethen size=%s", sizes[i]);
    ht_matrix *a = generate(&g, line);
    double *b = right_hand_side(a), *x = array(a->n);
    for (int k = 0; k < 5; k++) {
      ht_report r = solve_by(&g, a, "textbook", some[k], "fixed:f64", b, x);
      for (int e = FIRST_ENGINE; e < ENGINES; e++) check(&g, line, a, engines[e], some[k], "fixed:f64", b, r.iterations);
    }
    free(b), free(x);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

static int count_calls(void *user, const ht_progress *progress) {
  (void)progress;
  ++*(int64_t *)user;
  return 0;
}

/* A run that is interrupted at each iteration goes through the same numbers; so does one after another matrix's values. */
static void pauses_and_new_values(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int e = FIRST_ENGINE; e < ENGINES; e++) {
    ht_matrix *a = generate(&g, "stencil3d size=13 points=27 coefficients=lognormal seed=1");
    ht_matrix *other = generate(&g, "stencil3d size=13 points=27 coefficients=lognormal seed=2");
    double *b = right_hand_side(a), *x = array(a->n), *paused = array(a->n), *fresh = array(a->n);
    int64_t calls = 0;
    const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"precond", "block-jacobi"});
    ht_solver *solver = make_solver(&g, a, settings);
    ht_report one = solve_with(&g, solver, b, x);
    assert_int_equal(one.outcome, HT_CONVERGED);
    ht_solver_set_progress(solver, count_calls, &calls);
    ht_report two = solve_with(&g, solver, b, paused);
    assert_true(one.iterations == two.iterations && calls >= two.iterations);
    assert_memory_equal(x, paused, (size_t)a->n * sizeof *x);
    ht_solver_set_progress(solver, NULL, NULL);
    OK(ht_matrix_set_values(a, other->values));
    memset(x, 0, (size_t)a->n * sizeof *x);
    assert_int_equal(solve_with(&g, solver, b, x).outcome, HT_CONVERGED);
    assert_true(meets_tolerance(&g, other, b, x));
    assert_int_equal(solve_once(&g, other, settings, b, fresh).outcome, HT_CONVERGED);
    assert_memory_equal(x, fresh, (size_t)a->n * sizeof *x);
    ht_solver_destroy(solver);
    free(b), free(x), free(paused), free(fresh);
    ht_matrix_destroy(a);
    ht_matrix_destroy(other);
  }
  gpu_close(&g);
}

/* Blocks [1 1 - d; 1 - d 1], which FP32 holds hardly or not at all, hung together by small couplings: M^-1 must stay positive. */
static void nearly_singular_blocks(void **state) {
  (void)state;
  enum { N = 1400 };
  gpu g = gpu_open();
  static const double distances[] = {1e-3, 1e-6, 1e-9};
  for (int d = 0; d < 3; d++) {
    int64_t start[N + 1] = {0}, k = 0;
    int32_t columns[4 * N];
    double values[4 * N], *x = array(N);
    for (int64_t i = 0; i < N; i++) {
      for (int64_t j = i - 2; j <= i + 2; j++) {
        double v = j == i ? 1 : j / 2 == i / 2 ? 1 - distances[d] : j == i - 2 || j == i + 2 ? distances[d] / 8 : 0;
        if (j < 0 || j >= N || v == 0) continue;
        columns[k] = (int32_t)j;
        values[k++] = v;
      }
      start[i + 1] = k;
    }
    ht_matrix *a;
    OK(ht_matrix_create_csr(g.ctx, N, start, columns, values, HT_COPY, &a));
    double *b = right_hand_side(a);
    for (int e = FIRST_ENGINE; e < ENGINES; e++) {
      ht_report r = solve_by(&g, a, engines[e], "2", "fixed:f64", b, x);
      if (r.outcome != HT_CONVERGED) fail_msg("%s, distance %g: outcome %d (%s)", engines[e], distances[d], (int)r.outcome, r.detail);
      assert_true(meets_tolerance(&g, a, b, x));
    }
    free(b), free(x);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_of_block),   cmocka_unit_test(every_policy),           cmocka_unit_test(odd_sizes),
      cmocka_unit_test(pauses_and_new_values), cmocka_unit_test(nearly_singular_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
