/* The policy that the library carries, on families that it was not trained on, on sizes that it was not, and on real matrices: every answer
 * is certified, and it takes little more iterations than FP64. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "data/matrix.h"
#include "solve_helpers.h"
#include "solver/chooser.h"
#include "support/generated.h"
#include "support/learned.h"
#include "support/random.h"

static const double LARGE = 1.0 / 4; /* a cache, by the bytes that an iteration streams: as for a large matrix */

static ht_report solve_in_cache(ht_context *ctx, const ht_matrix *a, const char *policy, const char *precond, double cache, const double *b,
                                double *x) {
  ht_solver *solver;
  ht_report report;
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, "policy", policy));
  OK(ht_solver_set_option(solver, "precond", precond));
  OK(ht_solver_set_option(solver, "backend", "cpu"));
  OK(ht_solver_set_matrix(solver, a));
  OK(ht_solver_prepare(solver));
  OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = cache * ht_solver_facts(solver)->bytes_streamed}));
  memset(x, 0, (size_t)ht_matrix_rows(a) * sizeof *x);
  if (ht_solver_solve(solver, 1, b, x, &report) != HT_OK) fail_msg("%s", ht_context_error(ctx));
  ht_solver_destroy(solver);
  return report;
}

/* Bytes of all products. */
static double bytes_of(const ht_report *r) { return r->bytes_16 + r->bytes_f32 + r->bytes_f64; }

/* Certified, and at most `most` times the iterations of FP64 and `bytes` times its bytes, vectors included. */
static void check(ht_context *ctx, const char *name, const ht_matrix *a, const char *precond, double most, double bytes) {
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  random_vector(77, n, b);
  ht_report f64 = solve_in_cache(ctx, a, "fixed:f64", precond, LARGE, b, x), r = solve_in_cache(ctx, a, "learned", precond, LARGE, b, x);
  if (getenv("HALFTONE_SHOW"))
    print_message("%-60s %-6s %6lld iterations, FP64 %6lld (%.3f), bytes %.3f, %lld replacements, %lld restores\n", name, precond,
                  (long long)r.iterations, (long long)f64.iterations, (double)r.iterations / (double)f64.iterations,
                  (bytes_of(&r) + r.bytes_vectors) / (bytes_of(&f64) + f64.bytes_vectors), (long long)r.replacements,
                  (long long)r.restores);
  assert_string_equal(r.policy, "learned:universal");
  if (r.outcome == HT_CONVERGED) assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
  if (f64.outcome == HT_CONVERGED) {
    if (r.outcome != HT_CONVERGED) fail_msg("%s, %s: %s: %s", name, precond, ht_outcome_name(r.outcome), r.detail);
    if ((double)r.iterations > most * (double)f64.iterations + 8)
      fail_msg("%s, %s: %lld iterations, %lld in FP64", name, precond, (long long)r.iterations, (long long)f64.iterations);
    if (bytes_of(&r) + r.bytes_vectors > bytes * (bytes_of(&f64) + f64.bytes_vectors)) fail_msg("%s, %s: too many bytes", name, precond);
  }
  free(x), free(b);
}

static void check_line(ht_context *ctx, const char *line, double most, double bytes) {
  static const char *const preconds[] = {"none", "jacobi"};
  ht_matrix *a;
  if (generate_line(ctx, line, &a) != HT_OK) fail_msg("%s: %s", line, ht_context_error(ctx));
  for (int k = 0; k < 2; k++) check(ctx, line, a, preconds[k], most, bytes);
  ht_matrix_destroy(a);
}

static void check_lines(const char *const *lines, size_t count) {
  ht_context *ctx;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; k < count; k++) check_line(ctx, lines[k], 1.4, 1.1);
  ht_context_destroy(ctx);
}

static void families_held_out(void **state) {
  static const char *const lines[] = {"weather size=14",
                                      "mass element=q1 size=14 coefficients=lognormal",
                                      "biharmonic size=24 coefficients=lognormal",
                                      "cvxbqp size=3000",
                                      "fv size=40",
                                      "jnlbrng nx=60 ny=60",
                                      "spd size=150 condition=1e4",
                                      "stencil3d points=15 size=14 coefficients=jumps",
                                      "radiation size=10", /* jumps of 1e12 */
                                      "oil size=17"};
  (void)state;
  check_lines(lines, sizeof lines / sizeof *lines);
}

static void larger_sizes(void **state) {
  static const char *const lines[] = {"stencil3d points=27 size=30 coefficients=lognormal seed=5",
                                      "stencil3d points=7 size=36 coefficients=jumps seed=6",
                                      "fem3d order=2 size=12 coefficients=lognormal seed=7",
                                      "elasticity3d size=14 coefficients=lognormal seed=8",
                                      "wathen nx=90 ny=70 seed=9",
                                      "graph graph=geometric size=20000 sigma=1 shift=0.1 seed=10"};
  (void)state;
  check_lines(lines, sizeof lines / sizeof *lines);
}

/* A network that never leaves the rule is auto's rule, to the bit, where that goes over to the budget, too. */
static void never_leaving_is_the_rule(void **state) {
  static const char *const lines[] = {"stencil3d points=27 size=16 coefficients=lognormal seed=5",
                                      "stencil3d points=7 size=14 coefficients=jumps seed=6",
                                      "elasticity3d size=6 coefficients=lognormal seed=8",
                                      "wathen nx=30 ny=30 seed=9",
                                      "radiation size=10",
                                      "stencil2d points=9 size=30 coefficients=jumps contrast=1e7 seed=3"};
  static const char *const preconds[] = {"none", "jacobi"};
  char path[] = "/tmp/halftone-policy-XXXXXX", policy[64];
  ht_context *ctx;
  int file = mkstemp(path), low = 0;
  (void)state;
  assert_true(file >= 0 && !close(file));
  OK(ht_context_create(&ctx));
  ht_learned *l = learned_always(ctx, HT_LEARNED_WINDOW, 1, 32);
  snprintf(l->actions, sizeof l->actions, "f64,rule@1024,f32,16,budget:0.03");
  assert_int_equal(learned_write(ctx, l, path), 0);
  ht_learned_release(ctx, l);
  snprintf(policy, sizeof policy, "learned:%s", path);
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
    for (int precond = 0; precond < 2; precond++) {
      ht_matrix *a;
      OK(generate_line(ctx, lines[k], &a));
      int64_t n = ht_matrix_rows(a);
      double *x = vector(n), *y = vector(n), *b = vector(n);
      random_vector(9, n, b);
      ht_report by_rule = solve_in_cache(ctx, a, "auto", preconds[precond], LARGE, b, x),
                learned = solve_in_cache(ctx, a, policy, preconds[precond], LARGE, b, y);
      assert_int_equal(by_rule.outcome, learned.outcome);
      assert_int_equal(by_rule.iterations, learned.iterations);
      assert_int_equal(by_rule.replacements, learned.replacements);
      assert_true(by_rule.bytes_16 == learned.bytes_16 && by_rule.bytes_f32 == learned.bytes_f32 && by_rule.bytes_f64 == learned.bytes_f64);
      assert_memory_equal(x, y, (size_t)n * sizeof *x);
      low += by_rule.bytes_16 + by_rule.bytes_f32 > 0;
      free(x), free(y), free(b);
      ht_matrix_destroy(a);
    }
  assert_true(low > 0);
  remove(path);
  ht_context_destroy(ctx);
}

/* A and b times powers of two: the same decisions, to the byte. */
static void the_scale_changes_nothing(void **state) {
  static const int exponents[][2] = {{0, 0}, {40, 0}, {0, -60}, {-90, 30}, {60, 30}, {0, 90}};
  ht_context *ctx;
  ht_matrix *a;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "stencil3d points=7 size=14 coefficients=lognormal", &a));
  int64_t n = ht_matrix_rows(a), nnz = a->nnz;
  double *x = vector(n), *b = vector(n), *scaled = vector(n), *values = vector(nnz);
  random_vector(5, n, b);
  for (int precond = 0; precond < 2; precond++) {
    ht_report first = {0};
    for (int k = 0; k < 6; k++) {
      ht_matrix *other;
      for (int64_t i = 0; i < nnz; i++) values[i] = ldexp(a->values[i], exponents[k][0]);
      for (int64_t i = 0; i < n; i++) scaled[i] = ldexp(b[i], exponents[k][1]);
      OK(ht_matrix_create_csr(ctx, n, a->row_start, a->columns, values, HT_COPY, &other));
      ht_report r = solve_in_cache(ctx, other, "learned", precond ? "jacobi" : "none", LARGE, scaled, x);
      if (!k) first = r;
      assert_int_equal(r.outcome, HT_CONVERGED);
      assert_int_equal(r.iterations, first.iterations);
      assert_int_equal(r.replacements, first.replacements);
      assert_true(r.bytes_16 == first.bytes_16 && r.bytes_f32 == first.bytes_f32 && r.bytes_f64 == first.bytes_f64);
      ht_matrix_destroy(other);
    }
    assert_true(first.bytes_16 + first.bytes_f32 > 0); /* there is something to decide */
  }
  free(x), free(b), free(scaled), free(values);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* The same bits for any number of threads. */
static void threads_change_nothing(void **state) {
  ht_context *ctx;
  ht_matrix *a;
  (void)state;
  OK(ht_context_create(&ctx));
  ctx->bytes_a_thread = 1; /* else a system so small has one thread */
  OK(generate_line(ctx, "fem3d size=12 coefficients=lognormal", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *y = vector(n), *b = vector(n);
  random_vector(6, n, b);
  for (int threads = 1; threads <= 3; threads++) {
    OK(ht_context_set_threads(ctx, threads));
    solve_in_cache(ctx, a, "learned", "jacobi", LARGE, b, threads == 1 ? x : y);
    if (threads > 1) assert_memory_equal(x, y, (size_t)n * sizeof *x);
  }
  free(x), free(y), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Of the real matrices those that FP64 solves in reasonable time. */
static void real_matrices(void **state) {
  static const char *const names[] = {
      "suitesparse/1138_bus",       "suitesparse/bcsstk15", "suitesparse/bcsstk16", "suitesparse/bcsstk18",       "suitesparse/bcsstk27",
      "suitesparse/nos3",           "suitesparse/s1rmq4m1", "suitesparse/Dubcova1", "suitesparse/gr_30_30",       "suitesparse/mesh2e1",
      "suitesparse/shallow_water1", "regenerated/fv1",      "regenerated/jnlbrng1", "regenerated/Trefethen_20000"};
  const char *folder = getenv("HALFTONE_MATRICES");
  ht_context *ctx;
  int found = 0;
  (void)state;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; folder && k < sizeof names / sizeof *names; k++) {
    char path[1024];
    ht_matrix *a;
    snprintf(path, sizeof path, "%s/%s.mtx.gz", folder, names[k]);
    FILE *file = fopen(path, "rb");
    if (!file) continue;
    fclose(file);
    found++;
    if (ht_matrix_read(ctx, path, &a) != HT_OK) fail_msg("%s: %s", path, ht_context_error(ctx));
    check(ctx, names[k], a, "jacobi", 1.75, 1.5);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
  if (!found) {
    print_message("no real matrices: set HALFTONE_MATRICES to their folder\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(families_held_out),         cmocka_unit_test(larger_sizes),
                                     cmocka_unit_test(never_leaving_is_the_rule), cmocka_unit_test(the_scale_changes_nothing),
                                     cmocka_unit_test(threads_change_nothing),    cmocka_unit_test(real_matrices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
