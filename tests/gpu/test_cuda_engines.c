/* Whole solves on the CUDA backend, by every engine, against the CPU's: through the public interface, as a caller sees them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>
#include "gpu/gpu_matrices.h"
#include "gpu/gpu_solves.h"
#include "solver/chooser.h"
#include "support/learned.h"

static const char *const preconds[] = {"none", "jacobi"};
enum { PRECONDS = 2 };

/* ---- every engine, preconditioner and policy ---- */

/* Short runs take each A_FEW-th. */
static const char *const systems[] = {
    "stencil3d size=20 points=7 coefficients=jumps contrast=100",
    "stencil2d size=60",
    "stencil2d size=47 points=9 coefficients=lognormal",
    "fem2d size=40 numbering=random",
    "fem3d size=7 numbering=random",
    "wathen nx=30 ny=31",
    "elasticity3d size=7",
    "stencil3d size=17 points=27",
    "mass size=12",
    "graph graph=preferential size=3000",
    "trefethen size=2000",
    "spd size=300 condition=1e3",
};
enum { SYSTEMS = sizeof systems / sizeof *systems, A_FEW = 3 };
static char tiles[] = "learned:/tmp/halftone-policy-XXXXXX", window[] = "learned:/tmp/halftone-policy-XXXXXX";
static const char *const policies[] = {"fixed:f64", "fixed:f32", "fixed:bf16", "auto", "rule", "budget", "custom", tiles, window};
enum { POLICIES = 9, F64 = 0, FIRST_DECIDING = 4, CUSTOM = 6 };

static int make_policies(void **state) {
  (void)state;
  return learned_make(HT_LEARNED_TILES, 16, 7, 3, tiles) || learned_make(HT_LEARNED_WINDOW, 16, 7, 3, window);
}

static int remove_policies(void **state) {
  (void)state;
  return remove(tiles + strlen("learned:")) || remove(window + strlen("learned:"));
}

typedef struct looks {
  int count, wrong;
} looks;

/* Whether the entries of p in a block have the norm that the engine found, and are 0 behind the last unknown. */
static int fits(const ht_policy_view *view, int64_t block) {
  double square = 0, norm2 = view->direction_norm2[block];
  for (int i = 0; i < HT_COLUMN_BLOCK; i++)
    square += view->direction[block * HT_COLUMN_BLOCK + i] * view->direction[block * HT_COLUMN_BLOCK + i];
  return fabs(square - norm2) <= 1e-12 * norm2;
}

/* Sees what it was promised, and mixes the levels. */
static int custom_policy(void *user, const ht_policy_view *view, uint8_t *precision) {
  looks *l = user;
  double square = 0;
  l->count++;
  for (int64_t k = 0; k < view->blocks; k++) {
    square += view->direction_norm2[k];
    double largest = view->direction_max[k];
    l->wrong +=
        !(largest * largest <= view->direction_norm2[k] * (1 + 1e-12) && view->direction_norm2[k] <= 64 * largest * largest * (1 + 1e-12));
    l->wrong += !view->direction || !fits(view, k);
    precision[k] = (uint8_t)((view->iteration / 8 + k) % 3 == 0 ? HT_F32 : HT_F64);
  }
  l->wrong += !(square > 0) || !(view->residual > 0) || !(view->alpha > 0);
  return 0;
}

static void history_is_sane(const ht_solver *solver, const ht_report *report) {
  const double *history;
  int64_t count = ht_solver_history(solver, &history);
  assert_true(count == report->iterations + 1);
  assert_true(fabs(history[0] - 1) <= 1e-12); /* x0 = 0 */
  assert_true(history[count - 1] == report->residual_recursive);
  for (int64_t k = 0; k < count; k++) assert_true(isfinite(history[k]) && history[k] >= 0);
}

/* Twice by the same solver: the same bits. */
static void solve_twice(gpu *g, const ht_matrix *a, const setting *settings, int custom, const double *b, double *x, ht_report *report) {
  ht_solver *solver = make_solver(g, a, settings);
  if (!strcmp(settings[3].value, window)) { /* on the chip it has nothing to decide */
    OK(ht_solver_prepare(solver));
    OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = ht_solver_facts(solver)->bytes_streamed / 400}));
  }
  double *again = array(a->n);
  looks l = {0, 0};
  if (custom) ht_solver_set_policy(solver, custom_policy, &l);
  *report = solve_with(g, solver, b, x);
  history_is_sane(solver, report);
  ht_report second = solve_with(g, solver, b, again);
  assert_true(second.iterations == report->iterations);
  assert_memory_equal(x, again, (size_t)a->n * sizeof *x);
  if (custom) assert_true(l.count > 0);
  if (l.wrong) fail_msg("%d looks of %d at the direction saw what cannot be", l.wrong, l.count);
  free(again);
  ht_solver_destroy(solver);
}

static void check_solve(gpu *g, const char *system, const ht_matrix *a, const double *b, int engine, int precond, int policy,
                        int64_t cpu_iterations) {
  int custom = policy == CUSTOM;
  const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", engines[engine]}, {"precond", preconds[precond]},
                                     {"policy", custom ? "auto" : policies[policy]}, {"max-iterations", "20000"});
  double *x = array(a->n);
  ht_report r;
  solve_twice(g, a, settings, custom, b, x, &r);
  if (r.outcome != HT_CONVERGED || !(r.residual_true <= rtol) || !meets_tolerance(g, a, b, x))
    fail_msg("%s, %s, %s, %s: outcome %d (%s), %lld iterations, true residual %.3g", system, engines[engine], preconds[precond],
             policies[policy], (int)r.outcome, r.detail, (long long)r.iterations, r.residual_true);
  assert_string_equal(r.backend, "cuda");
  if (engine != 1) assert_string_equal(r.engine, engines[engine]); /* patches that do not fit go to the streaming one */
  double slack = 0.02 * (double)cpu_iterations + 2;
  if (policy == F64 && fabs((double)(r.iterations - cpu_iterations)) > slack)
    fail_msg("%s, %s, %s: %lld iterations, and %lld on the CPU", system, engines[engine], preconds[precond], (long long)r.iterations,
             (long long)cpu_iterations);
  assert_true(r.bytes_f64 > 0 && r.bytes_matrix > 0 && r.time_solve_s > 0);
  free(x);
}

static int64_t iterations_on_cpu(gpu *g, const ht_matrix *a, const double *b, int precond, int textbook) {
  double *x = array(a->n);
  ht_report r = solve_once(g, a,
                           SETTINGS({"backend", "cpu"}, {"engine", textbook ? "textbook" : "fused"}, {"precond", preconds[precond]},
                                    {"policy", "fixed:f64"}, {"max-iterations", "20000"}),
                           b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  free(x);
  return r.iterations;
}

static void every_engine_converges_with_every_policy(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SYSTEMS; i += gpu_short() ? A_FEW : 1) {
    ht_matrix *a = generate(&g, systems[i]);
    double *b = right_hand_side(a);
    for (int p = 0; p < PRECONDS; p++)
      for (int e = 0; e < ENGINES; e++) {
        int64_t expected = iterations_on_cpu(&g, a, b, p, e == TEXTBOOK);
        for (int k = 0; k < (e == TEXTBOOK ? FIRST_DECIDING : POLICIES); k++) check_solve(&g, systems[i], a, b, e, p, k, expected);
      }
    free(b);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Halos of more rows than a block has threads, with one row a thread, with one and many threads, and with two; also with a
 * preconditioner, and at levels that do without the engine for them. */
static void halos_of_nearly_all_rows(void **state) {
  (void)state;
  static const char *const lines[] = {"graph graph=shortcuts size=2500 probability=1 shift=0.1", "trefethen size=20000",
                                      "graph graph=preferential size=20000 sigma=1 shift=0.1",
                                      "graph graph=shortcuts size=70000 sigma=1 shift=0.1",
                                      "graph graph=preferential size=60000 sigma=1 shift=0.1"};
  enum { CHOSEN = 3 };
  static const int chosen[CHOSEN] = {F64, F64 + 1, CUSTOM};
  gpu g = gpu_open();
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    ht_matrix *a = generate(&g, lines[i]);
    double *b = right_hand_side(a);
    for (int p = 0; p < 2; p++) { /* none, Jacobi */
      int64_t expected = iterations_on_cpu(&g, a, b, p, 0);
      for (int k = 0; k < CHOSEN; k++) check_solve(&g, lines[i], a, b, 1, p, chosen[k], expected);
    }
    free(b);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Values that the lower levels hold in other widths than most: those groups are read from memory in every iteration. */
static void values_of_every_encoding(void **state) {
  (void)state;
  enum { CHOSEN = 3 };
  gpu g = gpu_open();
  for (int i = 0; i < GPU_MATRICES; i++) {
    if (gpu_matrices[i].make != make_floats && gpu_matrices[i].make != make_raw) continue;
    ht_matrix *a = gpu_matrix_make(g.ctx, &gpu_matrices[i]);
    double *b = right_hand_side(a);
    int64_t expected = iterations_on_cpu(&g, a, b, 0, 0);
    for (int k = F64; k < F64 + CHOSEN; k++) check_solve(&g, gpu_matrices[i].name, a, b, 1, 0, k, expected);
    free(b);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

static void what_cannot_be_is_refused_with_a_sentence(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "stencil2d size=20");
  double *b = right_hand_side(a), *x = array(a->n);
  static const setting refused[][3] = {
      {{"precond", "block-jacobi"}, {"engine", "textbook"}}, {{"precond", "block-jacobi"}, {"format", "csr"}},
      {{"precond", "ic0"}, {"engine", "streaming"}},         {{"precond", "ic0"}, {"engine", "auto"}},
      {{"policy", "budget"}, {"engine", "textbook"}},        {{"policy", "rule"}, {"engine", "textbook"}},
      {{"format", "csr"}, {"engine", "persistent"}},         {{"engine", "fused"}, {"precond", "jacobi"}}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    ht_solver *solver = make_solver(&g, a, SETTINGS({"backend", "cuda"}, refused[i][0], refused[i][1]));
    ht_status status = ht_solver_solve(solver, 1, b, x, NULL);
    if (status != HT_BAD_OPTION && status != HT_UNSUPPORTED)
      fail_msg("%s %s with %s %s: status %d", refused[i][0].name, refused[i][0].value, refused[i][1].name, refused[i][1].value,
               (int)status);
    assert_true(strlen(ht_context_error(g.ctx)) > 20);
    ht_context_clear_error(g.ctx);
    ht_solver_destroy(solver);
  }
  ht_report r = solve_once(&g, a, SETTINGS({"backend", "cuda"}), b, x); /* nothing is left behind */
  assert_int_equal(r.outcome, HT_CONVERGED);
  free(b), free(x);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

static void host_threads_change_no_bit(void **state) {
  (void)state;
  gpu g = gpu_open();
  g.ctx->bytes_a_thread = 1; /* else a system so small has one thread */
  static const char *const threads[] = {"1", "2", "5"}, *const chosen[] = {"fixed:f64", "fixed:bf16", "budget"};
  ht_matrix *a = generate(&g, "fem2d size=110 numbering=random coefficients=lognormal");
  double *b = right_hand_side(a), *first = array(a->n), *x = array(a->n);
  for (int e = 0; e < ENGINES; e++)
    for (int p = 0; p < (e == TEXTBOOK ? 2 : 3); p++)
      for (int t = 0; t < 3; t++) {
        double *to = t ? x : first;
        memset(to, 0, (size_t)a->n * sizeof *to);
        const setting *s = SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"policy", chosen[p]}, {"threads", threads[t]});
        assert_int_equal(solve_once(&g, a, s, b, to).outcome, HT_CONVERGED);
        if (t) assert_memory_equal(first, x, (size_t)a->n * sizeof *x);
      }
  free(b), free(x), free(first);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* b = A*1 starts at the boundary, and the direction crosses the blocks in the natural order one after the other: what has not been reached
 * must not be read at 16 bits when it is. */
static void budget_waits_for_the_front(void **state) {
  (void)state;
  static const char *const where[][2] = {{"streaming", "split"}, {"paper", "tilecsc"}}, *const chosen[] = {"fixed:f64", "budget"};
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "stencil2d size=100 coefficients=lognormal");
  double *x = array(a->n), *b = array(a->n);
  for (int64_t i = 0; i < a->n; i++) x[i] = 1;
  OK(ht_matrix_multiply(a, x, b));
  for (int w = 0; w < 2; w++) {
    int64_t iterations[2];
    for (int k = 0; k < 2; k++) {
      const setting *s = SETTINGS({"backend", "cuda"}, {"engine", where[w][0]}, {"format", where[w][1]}, {"policy", chosen[k]},
                                  {"precond", "none"}, {"guard", "off"});
      memset(x, 0, (size_t)a->n * sizeof *x);
      ht_report r = solve_once(&g, a, s, b, x);
      /* without the guard nothing closes what the budget leaves between the two residuals */
      if (r.outcome != HT_CONVERGED && r.outcome != HT_RECURSIVE_ONLY) fail_msg("%s, %s: %s", where[w][0], chosen[k], r.detail);
      assert_true(k == 0 || r.bytes_f32 + r.bytes_16 > 0.1 * r.bytes_f64);
      iterations[k] = r.iterations;
    }
    if ((double)iterations[1] > 1.25 * (double)iterations[0]) /* read too coarsely they are more than twice as many */
      fail_msg("%s: %lld iterations instead of %lld", where[w][0], (long long)iterations[1], (long long)iterations[0]);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* What auto takes where short rows meet a steep diagonal: FP64 until the residual has fallen, then 32 bits, which cost next to nothing
 * there. A solver is told a small cache, since such matrices would be large. */
static void low_levels_wait_for_the_residual(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "stencil3d size=36 points=7 coefficients=jumps contrast=1e4");
  double *x = array(a->n), *b = array(a->n);
  random_vector(3, a->n, b);
  for (int e = 1; e < ENGINES; e++) {
    const setting *s = SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"precond", "jacobi"}, {"policy", "fixed:f64"});
    memset(x, 0, (size_t)a->n * sizeof *x);
    ht_report full = solve_once(&g, a, s, b, x);
    ht_solver *solver = make_solver(&g, a, SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"precond", "jacobi"}));
    OK(ht_solver_prepare(solver));
    OK(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = 1}));
    memset(x, 0, (size_t)a->n * sizeof *x);
    ht_report r = solve_with(&g, solver, b, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(meets_tolerance(&g, a, b, x) && r.bytes_16 == 0);
    assert_true(r.bytes_f64 > 0.1 * full.bytes_f64 && r.bytes_f32 > 0.1 * full.bytes_f64);
    if ((double)r.iterations > 1.05 * (double)full.iterations)
      fail_msg("%s: %lld iterations instead of %lld", engines[e], (long long)r.iterations, (long long)full.iterations);
    ht_solver_destroy(solver);
  }
  free(x), free(b);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* ---- starts and right-hand sides ---- */

static void each_engine(void (*test)(gpu *g, const char *engine)) {
  for (int e = 0; e < ENGINES; e++) {
    gpu g = gpu_open();
    test(&g, engines[e]);
    gpu_close(&g);
  }
}

/* Whole numbers, so that the residual of the solution is 0 to the bit. */
static void starts(gpu *g, const char *engine) {
  ht_matrix *a = generate(g, "stencil2d size=45");
  double *x = array(a->n), *b = array(a->n), *known = array(a->n);
  ht_solver *solver = make_solver(g, a, SETTINGS({"backend", "cuda"}, {"engine", engine}));
  for (int64_t i = 0; i < a->n; i++) x[i] = known[i] = (double)(i % 13);
  OK(ht_matrix_multiply(a, known, b));
  ht_report r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.iterations == 0 && r.residual_true == 0);
  assert_memory_equal(x, known, (size_t)a->n * sizeof *x);
  random_vector(3, a->n, x);
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.iterations > 0 && meets_tolerance(g, a, b, x) && r.residual_initial > 1e-3);
  int64_t from_afar = r.iterations;
  for (int64_t i = 0; i < a->n; i++) x[i] = known[i] * (1 + 1e-8);
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.iterations < from_afar && meets_tolerance(g, a, b, x));
  memset(b, 0, (size_t)a->n * sizeof *b);
  random_vector(4, a->n, x);
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.iterations == 0);
  for (int64_t i = 0; i < a->n; i++) assert_true(x[i] == 0);
  b[a->n / 2] = NAN;
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_NON_FINITE);
  assert_non_null(strstr(r.detail, "of b"));
  b[a->n / 2] = 1;
  x[3] = INFINITY;
  assert_int_equal(solve_with(g, solver, b, x).outcome, HT_NON_FINITE);
  memset(x, 0, (size_t)a->n * sizeof *x);
  assert_int_equal(solve_with(g, solver, b, x).outcome, HT_CONVERGED); /* nothing is left of it */
  free(x), free(b), free(known);
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
}

static void starts_and_right_hand_sides(void **state) {
  (void)state;
  each_engine(starts);
}

/* Columns of a block are solved as each alone; so they are where they lie in the device's memory. */
static void columns(gpu *g, const char *engine) {
  enum { COLUMNS = 3 };
  ht_matrix *a = generate(g, "fem3d size=6 numbering=random");
  int64_t n = a->n, bytes = COLUMNS * n * (int64_t)sizeof(double);
  double *b = array(COLUMNS * n), *x = array(COLUMNS * n), *alone = array(COLUMNS * n), *fetched = array(COLUMNS * n);
  ht_solver *solver = make_solver(g, a, SETTINGS({"backend", "cuda"}, {"engine", engine}));
  ht_report r;
  int64_t sum = 0;
  random_vector(12, COLUMNS * n, b);
  for (int k = 0; k < COLUMNS; k++) {
    r = solve_with(g, solver, b + k * n, alone + k * n);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(meets_tolerance(g, a, b + k * n, alone + k * n));
    sum += r.iterations;
  }
  OK(ht_solver_solve(solver, COLUMNS, b, x, &r));
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(r.iterations == sum && r.columns == COLUMNS);
  assert_memory_equal(x, alone, (size_t)bytes);
  double *device_b = gpu_copy(g, bytes, b), *device_x = gpu_copy(g, bytes, NULL);
  OK(ht_solver_solve(solver, COLUMNS, device_b, device_x, &r));
  assert_int_equal(r.outcome, HT_CONVERGED);
  gpu_fetch(g, bytes, device_x, fetched);
  assert_memory_equal(fetched, alone, (size_t)bytes);
  gpu_fetch(g, bytes, device_b, fetched);
  assert_memory_equal(fetched, b, (size_t)bytes);
  memset(x, 0, (size_t)bytes);
  OK(ht_solver_solve(solver, COLUMNS, device_b, x, &r)); /* one here, one there */
  assert_memory_equal(x, alone, (size_t)bytes);
  g->cuda->memory_release(g->ctx, device_b);
  g->cuda->memory_release(g->ctx, device_x);
  free(b), free(x), free(alone), free(fetched);
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
}

static void columns_and_device_pointers(void **state) {
  (void)state;
  each_engine(columns);
}

/* ---- limits and stops ---- */

static int stop_at_five(void *user, const ht_progress *progress) {
  ++*(int64_t *)user;
  return progress->iteration >= 5;
}

static int request_stop(void *user, const ht_progress *progress) {
  if (progress->iteration == 3) ht_context_request_stop(user);
  return 0;
}

static void limits(gpu *g, const char *engine) {
  ht_matrix *a = generate(g, "biharmonic size=150"), *small = generate(g, "stencil2d size=60");
  double *b = right_hand_side(a), *x = array(a->n);
  ht_report r = solve_once(g, a, SETTINGS({"backend", "cuda"}, {"engine", engine}, {"max-iterations", "20"}), b, x);
  assert_int_equal(r.outcome, HT_ITERATION_LIMIT);
  assert_true(r.iterations == 20 && r.residual_true > rtol && isfinite(r.residual_true));
  memset(x, 0, (size_t)a->n * sizeof *x);
  r = solve_once(g, a,
                 SETTINGS({"backend", "cuda"}, {"engine", engine}, {"precond", "none"}, {"time-limit", "0.01"}, {"rtol", "1e-13"},
                          {"max-iterations", "1000000"}),
                 b, x);
  assert_int_equal(r.outcome, HT_TIME_LIMIT);
  assert_true(r.iterations > 0 && r.time_solve_s >= 0.01 && isfinite(r.residual_true));
  free(b), free(x);
  b = right_hand_side(small), x = array(small->n);
  ht_solver *solver = make_solver(g, small, SETTINGS({"backend", "cuda"}, {"engine", engine}));
  int64_t calls = 0;
  ht_solver_set_progress(solver, stop_at_five, &calls);
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_STOPPED);
  assert_true(r.iterations == 5 && calls == 6); /* once an iteration, the start included */
  ht_solver_set_progress(solver, request_stop, g->ctx);
  memset(x, 0, (size_t)small->n * sizeof *x);
  r = solve_with(g, solver, b, x);
  assert_int_equal(r.outcome, HT_STOPPED);
  assert_true(r.iterations == 4); /* seen at the next check */
  ht_context_clear_stop(g->ctx);
  ht_solver_set_progress(solver, NULL, NULL);
  r = solve_with(g, solver, b, x); /* from where it stopped */
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(meets_tolerance(g, small, b, x));
  ht_solver_destroy(solver);
  free(b), free(x);
  ht_matrix_destroy(a);
  ht_matrix_destroy(small);
}

static void limits_and_stops(void **state) {
  (void)state;
  each_engine(limits);
}

static int count_calls(void *user, const ht_progress *progress) {
  (void)progress;
  ++*(int64_t *)user;
  return 0;
}

/* A run that is interrupted at each iteration goes through the same numbers. */
static void pauses_change_no_bit(void **state) {
  (void)state;
  gpu g = gpu_open();
  static const char *const chosen[] = {"fixed:f64", "fixed:f32", "fixed:bf16"};
  ht_matrix *a = generate(&g, "stencil3d size=14 points=27 coefficients=lognormal");
  double *b = right_hand_side(a), *x = array(a->n), *paused = array(a->n);
  for (int e = 0; e < ENGINES; e++)
    for (int p = 0; p < 3; p++) {
      int64_t calls = 0;
      ht_solver *solver = make_solver(&g, a, SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"policy", chosen[p]}));
      memset(x, 0, (size_t)a->n * sizeof *x);
      memset(paused, 0, (size_t)a->n * sizeof *paused);
      ht_report one = solve_with(&g, solver, b, x);
      ht_solver_set_progress(solver, count_calls, &calls);
      ht_report two = solve_with(&g, solver, b, paused);
      assert_int_equal(two.outcome, HT_CONVERGED);
      assert_true(one.iterations == two.iterations && calls >= two.iterations);
      assert_memory_equal(x, paused, (size_t)a->n * sizeof *x);
      ht_solver_destroy(solver);
    }
  free(b), free(x), free(paused);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* ---- matrices that are not what they should be ---- */

/* Blocks [d e; e d] along the diagonal, hung together by small couplings; e > d: indefinite, with a positive diagonal. */
static ht_matrix *make_blocks(gpu *g, int64_t blocks, double d, double e, double coupling) {
  int64_t n = 2 * blocks, *start = calloc((size_t)n + 1, sizeof *start), k = 0;
  int32_t *columns = malloc((size_t)(4 * n) * sizeof *columns);
  double *values = malloc((size_t)(4 * n) * sizeof *values);
  ht_matrix *a;
  assert_true(start && columns && values);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = i - 2; j <= i + 2; j++) {
      double v = j == i ? d : j / 2 == i / 2 ? e : j == i - 2 || j == i + 2 ? coupling : 0;
      if (j < 0 || j >= n || (v == 0 && j != i)) continue;
      columns[k] = (int32_t)j;
      values[k++] = v;
    }
    start[i + 1] = k;
  }
  OK(ht_matrix_create_csr(g->ctx, n, start, columns, values, HT_COPY, &a));
  free(start), free(columns), free(values);
  return a;
}

static void indefinite(gpu *g, const char *engine) {
  static const struct {
    double d, e, coupling;
    const char *shows;
  } kinds[] = {{0, 1, 0, "row 1"}, {-2, 1, 0.1, "row 1"}, {1, 2, 0.01, "p'Ap"}};
  for (int i = 0; i < 3; i++) {
    ht_matrix *a = make_blocks(g, 700, kinds[i].d, kinds[i].e, kinds[i].coupling);
    double *b = array(a->n), *x = array(a->n);
    for (int p = 0; p < PRECONDS; p++) {
      random_vector(2, a->n, b);
      ht_report r = solve_once(g, a, SETTINGS({"backend", "cuda"}, {"engine", engine}, {"precond", preconds[p]}), b, x);
      assert_int_equal(r.outcome, HT_INDEFINITE);
      assert_non_null(strstr(r.detail, kinds[i].shows));
      memset(x, 0, (size_t)a->n * sizeof *x);
    }
    free(b), free(x);
    ht_matrix_destroy(a);
  }
}

static void indefinite_matrices(void **state) {
  (void)state;
  each_engine(indefinite);
}

static void singular(gpu *g, const char *engine) {
  ht_matrix *a = generate(g, "neumann size=13");
  double *b = right_hand_side(a), *x = array(a->n);
  const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", engine});
  ht_report r = solve_once(g, a, settings, b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  assert_true(meets_tolerance(g, a, b, x));
  for (int64_t i = 0; i < a->n; i++) b[i] += 1;
  memset(x, 0, (size_t)a->n * sizeof *x);
  assert_int_equal(solve_once(g, a, settings, b, x).outcome, HT_SINGULAR);
  ht_matrix_destroy(a);
  /* [1 1; 1 1] again and again: the null space is not that of row sums */
  a = make_blocks(g, 500, 1, 1, 0);
  free(b), free(x);
  b = array(a->n), x = array(a->n);
  for (int64_t i = 0; i < a->n; i++) b[i] = (double)(1 + i / 2 % 7);
  assert_int_equal(solve_once(g, a, settings, b, x).outcome, HT_CONVERGED);
  for (int64_t i = 0; i < a->n; i++) b[i] += i % 2 ? 0.5 : -0.5;
  memset(x, 0, (size_t)a->n * sizeof *x);
  r = solve_once(g, a, settings, b, x);
  assert_true(r.outcome != HT_CONVERGED && r.outcome != HT_RECURSIVE_ONLY);
  free(b), free(x);
  ht_matrix_destroy(a);
}

static void singular_matrices(void **state) {
  (void)state;
  each_engine(singular);
}

static void multiply_values(ht_matrix *a, double factor) {
  double *values = array(a->nnz);
  for (int64_t k = 0; k < a->nnz; k++) values[k] = a->values[k] * factor;
  OK(ht_matrix_set_values(a, values));
  free(values);
}

static void extremes(gpu *g, const char *engine) {
  static const double factors[] = {1e-150, 1e150, 0x1p-500, 0x1p500};
  for (int i = 0; i < 4; i++)
    for (int s = 0; s < 3; s++) {
      ht_matrix *a = generate(g, "stencil3d size=9 coefficients=lognormal");
      double *b = right_hand_side(a), *x = array(a->n), *expected = array(a->n);
      const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", engine});
      assert_int_equal(solve_once(g, a, settings, b, expected).outcome, HT_CONVERGED);
      if (s < 2) multiply_values(a, factors[i]);
      if (s > 0)
        for (int64_t k = 0; k < a->n; k++) b[k] *= factors[i];
      ht_report r = solve_once(g, a, settings, b, x);
      /* without the guard nothing closes what the budget leaves between the two residuals */
      if (r.outcome != HT_CONVERGED && r.outcome != HT_RECURSIVE_ONLY) fail_msg("%s, %g, %d: %s", engine, factors[i], s, r.detail);
      double unit = s == 0 ? 1 / factors[i] : s == 1 ? 1 : factors[i];
      for (int64_t k = 0; k < a->n; k++) assert_true(fabs(x[k] / unit - expected[k]) <= 1e-6);
      free(b), free(x), free(expected);
      ht_matrix_destroy(a);
    }
}

static void tiny_and_huge_values(void **state) {
  (void)state;
  each_engine(extremes);
}

/* ---- new values, near symmetry, small sizes ---- */

static void new_values(gpu *g, const char *engine) {
  static const char *const chosen[] = {"fixed:f64", "fixed:bf16"};
  for (int p = 0; p < 2; p++) {
    ht_matrix *a = generate(g, "stencil3d size=13 points=27 coefficients=lognormal seed=1");
    ht_matrix *other = generate(g, "stencil3d size=13 points=27 coefficients=lognormal seed=2");
    double *b = right_hand_side(a), *x = array(a->n), *fresh = array(a->n);
    const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", engine}, {"policy", chosen[p]});
    ht_solver *solver = make_solver(g, a, settings);
    assert_int_equal(solve_with(g, solver, b, x).outcome, HT_CONVERGED);
    OK(ht_matrix_set_values(a, other->values));
    memset(x, 0, (size_t)a->n * sizeof *x);
    assert_int_equal(solve_with(g, solver, b, x).outcome, HT_CONVERGED);
    assert_true(meets_tolerance(g, other, b, x));
    assert_int_equal(solve_once(g, other, settings, b, fresh).outcome, HT_CONVERGED);
    assert_memory_equal(x, fresh, (size_t)a->n * sizeof *x);
    double *values = array(a->nnz); /* symmetric but for rounding */
    memcpy(values, other->values, (size_t)a->nnz * sizeof *values);
    values[1] = nextafter(values[1], 10);
    OK(ht_matrix_set_values(a, values));
    assert_int_equal(ht_matrix_symmetry(a), HT_NEARLY_SYMMETRIC);
    memset(x, 0, (size_t)a->n * sizeof *x);
    assert_int_equal(solve_with(g, solver, b, x).outcome, HT_CONVERGED);
    assert_true(meets_tolerance(g, a, b, x));
    free(values), free(b), free(x), free(fresh);
    ht_solver_destroy(solver);
    ht_matrix_destroy(a);
    ht_matrix_destroy(other);
  }
}

static void new_values_and_near_symmetry(void **state) {
  (void)state;
  each_engine(new_values);
}

static void odd_sizes(gpu *g, const char *engine) {
  static const char *const sizes[] = {"1", "2", "31", "33", "63", "64", "65", "127", "129", "1000", "4097", "8448", "8449", "20001"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int p = 0; p < 4; p++) {
      char line[128];
      snprintf(line, sizeof line, "trefethen size=%s", sizes[i]);
      ht_matrix *a = generate(g, line);
      double *b = right_hand_side(a), *x = array(a->n);
      ht_report r = solve_once(g, a, SETTINGS({"backend", "cuda"}, {"engine", engine}, {"policy", policies[p]}), b, x);
      if (r.outcome != HT_CONVERGED || !meets_tolerance(g, a, b, x))
        fail_msg("%s, %s, n = %s: %s", engine, policies[p], sizes[i], r.detail);
      free(b), free(x);
      ht_matrix_destroy(a);
    }
}

static void sizes_of_all_kinds(void **state) {
  (void)state;
  each_engine(odd_sizes);
}

static void a_full_device_is_told_and_forgotten(void **state) {
  (void)state;
  gpu g = gpu_open();
  void *memory;
  ht_matrix *a = generate(&g, "stencil2d size=50");
  double *b = right_hand_side(a), *x = array(a->n), *before = array(a->n);
  ht_solver *solver = make_solver(&g, a, SETTINGS({"backend", "cuda"}));
  assert_int_equal(solve_with(&g, solver, b, before).outcome, HT_CONVERGED);
  assert_int_equal(g.cuda->memory_create(g.ctx, INT64_C(1) << 49, &memory), HT_NO_MEMORY);
  assert_non_null(strstr(ht_context_error(g.ctx), "are free"));
  ht_context_clear_error(g.ctx);
  assert_int_equal(solve_with(&g, solver, b, x).outcome, HT_CONVERGED);
  assert_memory_equal(x, before, (size_t)a->n * sizeof *x);
  ht_solver_destroy(solver);
  memset(x, 0, (size_t)a->n * sizeof *x);
  assert_int_equal(solve_once(&g, a, SETTINGS({"backend", "cuda"}), b, x).outcome, HT_CONVERGED);
  assert_memory_equal(x, before, (size_t)a->n * sizeof *x);
  free(b), free(x), free(before);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_engine_converges_with_every_policy),
      cmocka_unit_test(halos_of_nearly_all_rows),
      cmocka_unit_test(values_of_every_encoding),
      cmocka_unit_test(what_cannot_be_is_refused_with_a_sentence),
      cmocka_unit_test(host_threads_change_no_bit),
      cmocka_unit_test(budget_waits_for_the_front),
      cmocka_unit_test(low_levels_wait_for_the_residual),
      cmocka_unit_test(starts_and_right_hand_sides),
      cmocka_unit_test(columns_and_device_pointers),
      cmocka_unit_test(limits_and_stops),
      cmocka_unit_test(pauses_change_no_bit),
      cmocka_unit_test(indefinite_matrices),
      cmocka_unit_test(singular_matrices),
      cmocka_unit_test(tiny_and_huge_values),
      cmocka_unit_test(new_values_and_near_symmetry),
      cmocka_unit_test(sizes_of_all_kinds),
      cmocka_unit_test(a_full_device_is_told_and_forgotten),
  };
  return cmocka_run_group_tests(tests, make_policies, remove_policies);
}
