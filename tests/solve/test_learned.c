/* Learned policies in the solver: whatever a network says, the answer is certified. Networks are random, or say one thing always.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>
#include "base/context.h"
#include "policy/features.h"
#include "solve_helpers.h"
#include "solver/chooser.h"
#include "support/generated.h"
#include "support/learned.h"
#include "support/remote.h"

enum { PATH_SIZE = 64, MOST_SETTINGS = 4 };
typedef const char *settings_list[MOST_SETTINGS][2]; /* up to the first NULL */
enum { SAY_64, SAY_32, SAY_16 };

static char folder[] = "/tmp/halftone-learned-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

/* The value of the option `policy`; the file is forgotten by `forget`. Takes the policy. */
static void say(ht_context *ctx, ht_learned *l, const char *name, char *option) {
  char path[PATH_SIZE];
  assert_non_null(l);
  snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
  assert_int_equal(learned_write(ctx, l, path), 0);
  snprintf(option, 2 * PATH_SIZE, "learned:%s", path);
  ht_learned_release(ctx, l);
}

static void forget(const char *option) { assert_int_equal(remove(option + strlen("learned:")), 0); }

/* In a cache that the matrix leaves: else a policy for whole matrices has nothing to decide. */
static void prepare_large(ht_solver *solver) {
  OK(ht_solver_prepare(solver));
  OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = ht_solver_facts(solver)->bytes_streamed / 4}));
}

static ht_report solve_with(ht_context *ctx, const ht_matrix *a, const char *policy, settings_list settings, const double *b, double *x) {
  ht_solver *solver;
  ht_report report;
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, "policy", policy));
  for (int k = 0; k < MOST_SETTINGS && settings[k][0]; k++) OK(ht_solver_set_option(solver, settings[k][0], settings[k][1]));
  OK(ht_solver_set_matrix(solver, a));
  if (strstr(policy, "/window.")) prepare_large(solver);
  memset(x, 0, (size_t)ht_matrix_rows(a) * sizeof *x);
  if (ht_solver_solve(solver, 1, b, x, &report) != HT_OK) fail_msg("%s", ht_context_error(ctx));
  ht_solver_destroy(solver);
  return report;
}

/* [-1 d -1] with a diagonal that no low level holds exactly. */
static ht_matrix *tridiagonal(ht_context *ctx, int64_t n) {
  enum { MOST = 200 };
  int64_t row_start[MOST + 1] = {0}, k = 0;
  int32_t columns[3 * MOST];
  double values[3 * MOST];
  ht_matrix *a;
  for (int32_t i = 0; i < n; i++) {
    for (int32_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < n; j++) {
      columns[k] = j;
      values[k++] = i == j ? 2.2 + 0.1 * sin(i) : -1.0 / 3 - 0.5 * sin(0.1 * (i + j));
    }
    row_start[i + 1] = k;
  }
  OK(ht_matrix_create_csr(ctx, n, row_start, columns, values, HT_COPY, &a));
  return a;
}

/* A network that says FP64 changes no bit and no iteration of fixed:f64. */
static void fp64_is_fp64(void **state) {
  static const int64_t sizes[] = {1, 2, 63, 64, 65, 199, 0};
  static settings_list how[] = {{{"engine", "fused"}},    {{"engine", "fused"}, {"precond", "none"}},
                                {{"engine", "textbook"}}, {{"precond", "ic0"}},
                                {{"format", "tilecsc"}},  {{"format", "csr"}}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int kind = 0; kind < 2; kind++) {
    char policy[2 * PATH_SIZE];
    say(ctx, learned_always(ctx, (ht_learned_kind)kind, SAY_64, 5), "f64", policy);
    for (int k = 0; k < 7; k++) {
      ht_matrix *a = sizes[k] ? tridiagonal(ctx, sizes[k]) : make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
      int64_t n = ht_matrix_rows(a);
      double *x = vector(n), *y = vector(n), *b = vector(n), *known = vector(n);
      known_solution(a, known, b);
      for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
        ht_report f64 = solve_with(ctx, a, "fixed:f64", how[h], b, x), r = solve_with(ctx, a, policy, how[h], b, y);
        assert_int_equal(r.outcome, HT_CONVERGED);
        assert_int_equal(r.iterations, f64.iterations);
        assert_int_equal(r.products, f64.products);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
        assert_string_equal(r.policy, "learned:f64");
      }
      free(x), free(y), free(b), free(known);
      ht_matrix_destroy(a);
    }
    forget(policy);
  }
  ht_context_destroy(ctx);
}

/* A policy that training chose in the network's place is that policy, however the network would choose. */
static void chosen_levels_are_fixed_policies(void **state) {
  static const char *const fixed[] = {"fixed:f64", "fixed:f32", "fixed:bf16"};
  static settings_list how[] = {{{"engine", "fused"}}, {{"format", "tilecsc"}, {"precond", "none"}}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *y = vector(n), *b = vector(n), *known = vector(n);
  known_solution(a, known, b);
  for (int k = 0; k < 3; k++) {
    char policy[2 * PATH_SIZE];
    ht_learned *l = learned_random(ctx, HT_LEARNED_TILES, 8, 1, 3);
    snprintf(l->chosen, sizeof l->chosen, "%s", fixed[k]);
    say(ctx, l, "chosen", policy);
    for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
      ht_report level = solve_with(ctx, a, fixed[k], how[h], b, x), r = solve_with(ctx, a, policy, how[h], b, y);
      assert_int_equal(r.outcome, HT_CONVERGED);
      assert_int_equal(r.iterations, level.iterations);
      assert_int_equal(r.products, level.products);
      assert_memory_equal(x, y, (size_t)n * sizeof *x);
      assert_non_null(strstr(r.policy_chosen, "the fastest in training"));
      assert_string_equal(r.policy, "learned:chosen");
    }
    forget(policy);
  }
  free(x), free(y), free(b), free(known);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Wherever FP64 converges every network does: certified, and not after an endless search. */
static void all_are_certified(void **state) {
  static const char *const problems[] = {"stencil2d size=45 coefficients=lognormal",
                                         "stencil2d size=40 coefficients=jumps",
                                         "stencil3d size=13 coefficients=lognormal",
                                         "wathen nx=12 ny=9",
                                         "elasticity3d nx=5",
                                         "biharmonic size=14"};
  static settings_list how[] = {{{"engine", "fused"}}, {{"engine", "fused"}, {"precond", "none"}}, {{"precond", "ic0"}}};
  ht_context *ctx;
  int solves = 0;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int k = 0; k < 14; k++) {
    char policy[2 * PATH_SIZE];
    ht_learned_kind kind = k % 2 ? HT_LEARNED_WINDOW : HT_LEARNED_TILES;
    int constant = k / 2 < 3 ? k / 2 : k == 7 ? 3 : k == 9 ? 4 : -1, interval = 1 + 5 * (k % 3);
    say(ctx, constant >= 0 ? learned_always(ctx, kind, constant, interval) : learned_random(ctx, kind, 16, interval, (uint64_t)k), "any",
        policy);
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
      ht_matrix *a;
      if (generate_line(ctx, problems[p], &a) != HT_OK) fail_msg("%s: %s", problems[p], ht_context_error(ctx));
      int64_t n = ht_matrix_rows(a);
      double *x = vector(n), *b = vector(n);
      random_vector(p + 1, n, b);
      for (size_t h = 0; h < sizeof how / sizeof *how; h++, solves++) {
        ht_report f64 = solve_with(ctx, a, "fixed:f64", how[h], b, x), r = solve_with(ctx, a, policy, how[h], b, x);
        assert_int_equal(f64.outcome, HT_CONVERGED);
        if (r.outcome != HT_CONVERGED) fail_msg("%s, policy %d: %s: %s", problems[p], k, ht_outcome_name(r.outcome), r.detail);
        assert_true(true_residual(a, x, b) <= 1e-10 + 1e-13);
        if (getenv("HALFTONE_SHOW"))
          print_message("%-45s %zu policy %2d: %5lld iterations, FP64 %5lld; %lld replacements, %lld restores\n", problems[p], h, k,
                        (long long)r.iterations, (long long)f64.iterations, (long long)r.replacements, (long long)r.restores);
        if (r.iterations > 3 * f64.iterations + 100)
          fail_msg("%s, policy %d: %lld iterations, %lld in FP64", problems[p], k, (long long)r.iterations, (long long)f64.iterations);
      }
      free(x), free(b);
      ht_matrix_destroy(a);
    }
    forget(policy);
  }
  ht_context_destroy(ctx);
}

/* Values that 16 bits hold exactly leave nothing to replace, whoever chose them; where a low level leads nowhere, FP64 still comes in time.
 */
static void low_levels_are_left_and_kept(void **state) {
  static settings_list none = {{NULL, NULL}}, patient = {{"max-iterations", "8000"}, {NULL, NULL}};
  ht_context *ctx;
  ht_matrix *exact, *hard;
  char policy[2 * PATH_SIZE];
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "biharmonic size=14", &exact));
  OK(generate_line(ctx, "spd size=100 condition=1e6", &hard));
  double *x = vector(196), *b = vector(196);
  random_vector(5, 196, b);
  say(ctx, learned_always(ctx, HT_LEARNED_TILES, SAY_16, 2), "any", policy);
  const char *const policies[] = {"fixed:bf16", policy};
  for (int k = 0; k < 2; k++) {
    ht_report f64 = solve_with(ctx, exact, "fixed:f64", none, b, x), r = solve_with(ctx, exact, policies[k], none, b, x);
    assert_int_equal(r.replacements, 0);
    assert_int_equal(r.iterations, f64.iterations);
    r = solve_with(ctx, hard, policies[k], patient, b, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
  }
  forget(policy);
  free(x), free(b);
  ht_matrix_destroy(exact), ht_matrix_destroy(hard);
  ht_context_destroy(ctx);
}

/* Systems that have no answer end as they do in FP64. */
static void outcomes_are_true(void **state) {
  static const double indefinite[] = {1, 3, 0, 3, 1, 3, 0, 3, 1}, singular[] = {1, -1, 0, -1, 2, -1, 0, -1, 1};
  static settings_list none = {{NULL, NULL}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int k = 0; k < 8; k++) {
    char policy[2 * PATH_SIZE];
    double b[3] = {1, 2, -1.5}, x[3];
    ht_matrix *a = from_dense(ctx, 3, k / 4 ? singular : indefinite);
    say(ctx, learned_always(ctx, (ht_learned_kind)(k % 2), k / 2 % 2 ? SAY_16 : SAY_32, 1), "any", policy);
    ht_report f64 = solve_with(ctx, a, "fixed:f64", none, b, x), r = solve_with(ctx, a, policy, none, b, x);
    assert_int_not_equal(f64.outcome, HT_CONVERGED);
    assert_int_equal(r.outcome, f64.outcome);
    forget(policy);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* Says f32 from a number of iterations on, which it sees in a feature: the first look behind it shows in the bytes. */
static ht_learned *f32_from(ht_context *ctx, double iterations, int interval) {
  ht_learned *l = learned_blank(ctx, HT_LEARNED_WINDOW, 2, interval);
  int inputs = l->network.inputs;
  float *w1 = l->network.weights, *b1 = w1 + 2 * inputs, *w2 = b1 + 2, *policy = w2 + 6;
  w1[HT_FEATURE_iterations] = 100; /* the feature is log10(1 + iterations) / 4 */
  b1[0] = -(float)(100 * log10(1 + iterations) / 4);
  w2[0] = 1;
  policy[SAY_32 * 2] = 1;
  return l;
}

/* The other way round: auto's rule up to there, then FP64. */
static ht_learned *rule_until(ht_context *ctx, double iterations, int interval) {
  ht_learned *l = f32_from(ctx, iterations, interval);
  snprintf(l->actions, sizeof l->actions, "f64,rule,f32,16,budget:0.03");
  int inputs = l->network.inputs;
  float *w1 = l->network.weights, *b1 = w1 + 2 * inputs;
  w1[HT_FEATURE_iterations] *= -1;
  b1[0] *= -1;
  return l;
}

static void intervals_are_kept(void **state) {
  static const struct {
    const char *asked; /* the user's; "0": the policy's own, 10 */
    int first;         /* multiple of it from 14.5 on */
  } cases[] = {{"0", 20}, {"7", 21}, {"1", 15}, {"4", 16}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a;
  OK(generate_line(ctx, "spd size=200 condition=200", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  char policy[2 * PATH_SIZE];
  random_vector(3, n, b);
  say(ctx, f32_from(ctx, 14.5, 10), "window", policy);
  for (int k = 0; k < 4; k++) {
    settings_list how = {{"rtol", "1e-10"}, {"exactness-flags", "no"}, {"policy-interval", cases[k].asked}};
    ht_report f32 = solve_with(ctx, a, "fixed:f32", how, b, x), r = solve_with(ctx, a, policy, how, b, x);
    double sweep = f32.bytes_f32 / (double)(f32.iterations + 1); /* the loop makes one product before the first iteration */
    assert_int_equal(r.restores, 0);
    assert_true(r.iterations > 30);
    assert_true(r.bytes_f32 / sweep == (double)(r.iterations - cases[k].first));
  }
  forget(policy);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Who leaves the levels that lose has the residual made true at once, not when it has fallen far enough: here in the iteration after the
 * look, with the residual still near its start. */
static void what_was_lost_is_made_good_at_once(void **state) {
  static settings_list how = {{"rtol", "1e-10"}, {"exactness-flags", "no"}, {"precond", "none"}, {"trace", "yes"}};
  ht_context *ctx;
  ht_matrix *a;
  ht_solver *solver;
  ht_report report;
  char policy[2 * PATH_SIZE];
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "spd size=200 condition=1e4", &a));
  double *x = vector(200), *b = vector(200);
  random_vector(3, 200, b);
  say(ctx, rule_until(ctx, 14.5, 4), "window", policy);
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, "policy", policy));
  for (int k = 0; k < 4; k++) OK(ht_solver_set_option(solver, how[k][0], how[k][1]));
  OK(ht_solver_set_matrix(solver, a));
  prepare_large(solver);
  OK(ht_solver_solve(solver, 1, b, x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  assert_int_equal(report.replacements, 1);
  const ht_solve_trace *trace = ht_solver_trace(solver);
  int64_t replaced = -1;
  for (int64_t k = 0; k < trace->residuals; k++)
    if (trace->residual[k].why == HT_TRACE_REPLACEMENT) replaced = trace->residual[k].iteration;
  assert_int_equal(replaced, 17); /* looks at 0, 4, ..., 16; the product at hand is still of the old level */
  ht_solver_destroy(solver);
  forget(policy);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* On a plateau levels that lose are not read: what they lose would have to cross it again. */
static void plateaus_are_crossed_without_loss(void **state) {
  settings_list how = {{"rtol", "1e-10"}, {"precond", "jacobi"}};
  ht_context *ctx;
  ht_matrix *a;
  char policy[2 * PATH_SIZE];
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "biharmonic size=24 coefficients=lognormal", &a));
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  random_vector(3, n, b);
  say(ctx, learned_always(ctx, HT_LEARNED_WINDOW, SAY_32, 16), "window", policy);
  ht_report f64 = solve_with(ctx, a, "fixed:f64", how, b, x), f32 = solve_with(ctx, a, "fixed:f32", how, b, x),
            r = solve_with(ctx, a, policy, how, b, x);
  if (getenv("HALFTONE_SHOW"))
    print_message("%lld %lld %lld\n", (long long)f64.iterations, (long long)f32.iterations, (long long)r.iterations);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.bytes_f32 > 0 && 2 * r.iterations < f64.iterations + f32.iterations);
  forget(policy);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* A window that asks for 16 bits whatever happens gets an answer all the same. */
static void stubborn_windows_are_overruled(void **state) {
  static const char *const problems[] = {"spd size=200 condition=30", "spd size=200 condition=1e5"};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int k = 0; k < 2; k++) {
    ht_matrix *a;
    char policy[2 * PATH_SIZE];
    OK(generate_line(ctx, problems[k], &a));
    int64_t n = ht_matrix_rows(a);
    double *x = vector(n), *b = vector(n);
    random_vector(3, n, b);
    say(ctx, learned_always(ctx, HT_LEARNED_WINDOW, SAY_16, 4), "window", policy);
    settings_list how = {{"rtol", "1e-8"}, {"exactness-flags", "no"}, {"precond", "none"}, {"max-iterations", "20000"}};
    ht_report r = solve_with(ctx, a, policy, how, b, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(r.bytes_16 > 0);
    forget(policy);
    free(x), free(b);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* The number of threads changes no bit. */
static void threads_change_nothing(void **state) {
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ctx->bytes_a_thread = 1; /* else a system so small has one thread */
  ht_matrix *a = make(ctx, "stencil2d", "size", "60", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *y = vector(n), *b = vector(n);
  char policy[2 * PATH_SIZE];
  random_vector(3, n, b);
  say(ctx, learned_random(ctx, HT_LEARNED_TILES, 32, 3, 9), "any", policy);
  settings_list one = {{"threads", "1"}}, three = {{"threads", "3"}};
  ht_report r = solve_with(ctx, a, policy, one, b, x), s = solve_with(ctx, a, policy, three, b, y);
  assert_int_equal(r.iterations, s.iterations);
  assert_true(r.bytes_16 == s.bytes_16 && r.bytes_16 > 0);
  assert_memory_equal(x, y, (size_t)n * sizeof *x);
  forget(policy);
  free(x), free(y), free(b);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* What a policy sees of the direction fits its norms, block by block, and ends in zeros. */
static int64_t unknowns, looks;

static int check_direction(void *user, const ht_policy_view *view, uint8_t *precision) {
  (void)user, (void)precision;
  looks++;
  assert_non_null(view->direction);
  for (int64_t b = 0; b < view->blocks; b++) {
    double sum = 0, largest = 0;
    for (int64_t i = 64 * b; i < 64 * (b + 1); i++) {
      sum += view->direction[i] * view->direction[i];
      largest = fmax(largest, fabs(view->direction[i]));
      if (i >= unknowns) assert_true(view->direction[i] == 0);
    }
    assert_true(sum == view->direction_norm2[b]);
    assert_true(largest == view->direction_max[b] && largest > 0);
  }
  return 0;
}

static void the_direction_is_shown(void **state) {
  static const int64_t sizes[] = {1, 63, 64, 65, 130};
  static settings_list how[] = {{{"engine", "fused"}}, {{"engine", "textbook"}}, {{"format", "tilecsc"}}, {{"backend", "remote"}}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  remote_install(ctx, &remote_backend);
  for (int k = 0; k < 20; k++) {
    ht_matrix *a = tridiagonal(ctx, unknowns = sizes[k % 5]);
    double *x = vector(unknowns), *b = vector(unknowns);
    random_vector(3, unknowns, b);
    ht_solver *solver;
    OK(ht_solver_create(ctx, NULL, &solver));
    OK(ht_solver_set_option(solver, "policy-interval", "1"));
    for (int s = 0; how[k / 5][s][0]; s++) OK(ht_solver_set_option(solver, how[k / 5][s][0], how[k / 5][s][1]));
    OK(ht_solver_set_matrix(solver, a));
    ht_solver_set_policy(solver, check_direction, NULL);
    looks = 0;
    OK(ht_solver_solve(solver, 1, b, x, NULL));
    assert_true(looks > 0 || unknowns == 1);
    ht_solver_destroy(solver);
    free(x), free(b);
    ht_matrix_destroy(a);
  }
  ht_backend_set_extra(NULL);
  ht_context_destroy(ctx);
}

/* On a device the direction comes from its engine, where that can give it. */
static void on_a_device(void **state) {
  settings_list remote_one = {{"backend", "remote"}}, cpu = {{"backend", "cpu"}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  remote_install(ctx, &remote_backend);
  ht_matrix *a = make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  char policy[2 * PATH_SIZE];
  random_vector(3, n, b);
  for (int kind = 0; kind < 2; kind++) {
    say(ctx, learned_random(ctx, (ht_learned_kind)kind, 32, 3, 9), "any", policy);
    ht_report r = solve_with(ctx, a, policy, remote_one, b, x), on_cpu = solve_with(ctx, a, policy, cpu, b, x);
    assert_string_equal(r.backend, "remote");
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(fabs((double)(r.iterations - on_cpu.iterations)) <= 3 + 0.1 * (double)on_cpu.iterations);
    assert_true(kind || r.bytes_16 > 0);
    ht_backend blind = remote_backend;
    ht_solver *solver;
    blind.engine_get_direction = NULL;
    ht_backend_set_extra(&blind);
    OK(ht_solver_create(ctx, NULL, &solver));
    OK(ht_solver_set_option(solver, "backend", "remote"));
    OK(ht_solver_set_option(solver, "policy", policy));
    OK(ht_solver_set_matrix(solver, a));
    assert_int_equal(ht_solver_prepare(solver), kind == HT_LEARNED_TILES ? HT_UNSUPPORTED : HT_OK);
    if (kind == HT_LEARNED_TILES) assert_non_null(strstr(ht_context_error(ctx), "looks at the direction itself"));
    ht_solver_destroy(solver);
    ht_backend_set_extra(&remote_backend);
    forget(policy);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_backend_set_extra(NULL);
  assert_int_equal(remote.alive, 0);
  ht_context_destroy(ctx);
}

/* Where the engine takes the network the host never fetches the direction, the report is that of the host's own decisions but for rounding,
 * and a trace tells levels where they were chosen. */
static void a_device_decides_by_itself(void **state) {
  static const char *const problems[] = {"stencil2d size=40 coefficients=lognormal", "stencil3d size=13 points=27", "wathen nx=12 ny=9",
                                         "elasticity3d nx=5"};
  ht_backend deciding = remote_backend;
  settings_list remote_one = {{"backend", "remote"}}, traced = {{"backend", "remote"}, {"trace", "yes"}}, cpu = {{"backend", "cpu"}};
  ht_context *ctx;
  int low = 0;
  (void)state;
  deciding.engine_set_network = remote_set_network;
  OK(ht_context_create(&ctx));
  remote_install(ctx, &deciding);
  for (int k = 0; k < 8; k++) {
    char policy[2 * PATH_SIZE];
    ht_matrix *a;
    int seed = k / 4 * 2;
    say(ctx,
        seed ? learned_random(ctx, HT_LEARNED_TILES, 32, 1 + 2 * seed, (uint64_t)seed) : learned_always(ctx, HT_LEARNED_TILES, SAY_16, 4),
        "any", policy);
    OK(generate_line(ctx, problems[k % 4], &a));
    int64_t n = ht_matrix_rows(a);
    double *x = vector(n), *y = vector(n), *b = vector(n);
    random_vector(3, n, b);
    remote.decisions = remote.directions = 0;
    ht_report r = solve_with(ctx, a, policy, remote_one, b, x);
    assert_int_equal(remote.directions, 0);
    assert_true(remote.decisions > 1);
    ht_report again = solve_with(ctx, a, policy, traced, b, y), on_cpu = solve_with(ctx, a, policy, cpu, b, y);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_int_equal(again.iterations, r.iterations);
    assert_true(fabs((double)(r.iterations - on_cpu.iterations)) <= 3 + 0.1 * (double)on_cpu.iterations);
    low += r.bytes_16 > 0;
    free(x), free(y), free(b);
    ht_matrix_destroy(a);
    forget(policy);
  }
  assert_true(low > 4);
  ht_backend_set_extra(NULL);
  ht_context_destroy(ctx);
}

static int64_t changes_of(ht_context *ctx, const ht_matrix *a, const char *policy, const double *b, double *x, int64_t *latest) {
  ht_solver *solver;
  ht_report report;
  OK(ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, "backend", "remote"));
  OK(ht_solver_set_option(solver, "policy", policy));
  OK(ht_solver_set_option(solver, "trace", "yes"));
  OK(ht_solver_set_matrix(solver, a));
  memset(x, 0, (size_t)ht_matrix_rows(a) * sizeof *x);
  OK(ht_solver_solve(solver, 1, b, x, &report));
  const ht_solve_trace *t = ht_solver_trace(solver);
  assert_false(t->at_run_ends);
  for (int64_t k = 1; k < t->changes; k++) assert_true(t->change[k].iteration >= t->change[k - 1].iteration);
  *latest = t->change[t->changes - 1].iteration;
  int64_t seen = t->changes_seen;
  assert_true(*latest <= report.iterations);
  ht_solver_destroy(solver);
  return seen;
}

/* As many changes as the host's own decisions make, within what rounding does to them. */
static void a_trace_tells_what_a_device_decides(void **state) {
  ht_backend deciding = remote_backend;
  ht_context *ctx;
  char policy[2 * PATH_SIZE];
  int64_t latest[2], seen[2];
  (void)state;
  deciding.engine_set_network = remote_set_network;
  OK(ht_context_create(&ctx));
  ht_matrix *a = make(ctx, "stencil2d", "size", "40", "coefficients", "lognormal");
  int64_t n = ht_matrix_rows(a);
  double *x = vector(n), *b = vector(n);
  random_vector(3, n, b);
  say(ctx, learned_random(ctx, HT_LEARNED_TILES, 32, 6, 9), "any", policy);
  for (int k = 0; k < 2; k++) {
    remote_install(ctx, k ? &deciding : &remote_backend);
    seen[k] = changes_of(ctx, a, policy, b, x, &latest[k]);
  }
  assert_true(seen[0] > 5 && llabs((long long)(seen[1] - seen[0])) <= 2 + seen[0] / 10);
  assert_true(llabs((long long)(latest[1] - latest[0])) <= 8 + latest[0] / 10);
  forget(policy);
  free(x), free(b);
  ht_matrix_destroy(a);
  ht_backend_set_extra(NULL);
  ht_context_destroy(ctx);
}

static void refusals(void **state) {
  static const struct {
    const char *policy, *words;
    ht_status status;
  } cases[] = {{"learned:/nowhere/p.safetensors", "/nowhere/p.safetensors cannot be opened", HT_BAD_FILE},
               {"learned:/etc/hostname", "/etc/hostname: expected", HT_BAD_FORMAT},
               {"learned:", "did you mean 'learned:FILE'", HT_BAD_OPTION},
               {"lerned:FILE", "did you mean 'learned:FILE'", HT_BAD_OPTION},
               {"budgt", "did you mean 'budget'", HT_BAD_OPTION}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  ht_matrix *a = tridiagonal(ctx, 5);
  double b[5] = {1, 2, 3, 4, 5}, x[5] = {0};
  for (int k = 0; k < 5; k++) {
    ht_solver *solver;
    OK(ht_solver_create(ctx, NULL, &solver));
    OK(ht_solver_set_matrix(solver, a));
    OK(ht_solver_set_option(solver, "policy", cases[k].policy));
    assert_int_equal(ht_solver_solve(solver, 1, b, x, NULL), cases[k].status);
    if (!strstr(ht_context_error(ctx), cases[k].words)) fail_msg("%s", ht_context_error(ctx));
    OK(ht_solver_set_option(solver, "policy", "auto")); /* it still solves */
    OK(ht_solver_solve(solver, 1, b, x, NULL));
    ht_solver_destroy(solver);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fp64_is_fp64),
                                     cmocka_unit_test(chosen_levels_are_fixed_policies),
                                     cmocka_unit_test(all_are_certified),
                                     cmocka_unit_test(outcomes_are_true),
                                     cmocka_unit_test(intervals_are_kept),
                                     cmocka_unit_test(what_was_lost_is_made_good_at_once),
                                     cmocka_unit_test(plateaus_are_crossed_without_loss),
                                     cmocka_unit_test(stubborn_windows_are_overruled),
                                     cmocka_unit_test(threads_change_nothing),
                                     cmocka_unit_test(the_direction_is_shown),
                                     cmocka_unit_test(on_a_device),
                                     cmocka_unit_test(a_device_decides_by_itself),
                                     cmocka_unit_test(a_trace_tells_what_a_device_decides),
                                     cmocka_unit_test(refusals),
                                     cmocka_unit_test(low_levels_are_left_and_kept)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
