/* Learned policies on the GPU: the engines decide by themselves, and lead where the CPU's decisions lead.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_solves.h"
#include "support/learned.h"

static const char *const systems[] = {"stencil2d size=60",
                                      "stencil2d nx=4097 ny=1 coefficients=lognormal",
                                      "stencil3d size=20 points=7 coefficients=jumps contrast=100",
                                      "stencil3d size=16 points=27 coefficients=lognormal",
                                      "wathen nx=30 ny=31",
                                      "fem3d size=7 numbering=random",
                                      "elasticity3d size=7"};
static const char *const device_engines[] = {"paper", "streaming", "auto"};
enum { SYSTEMS = sizeof systems / sizeof *systems, DEVICE_ENGINES = 3, PAPER = 0, NETWORKS = 5, MOST_PATH = 64 };

static void no_direction(ht_engine *engine, double *p) {
  (void)engine, (void)p;
  fail_msg("the host fetched the direction");
}

/* The cuda backend, whose engines give no direction away. */
static ht_backend watched;

static void watch(gpu *g) {
  watched = *g->cuda;
  watched.engine_get_direction = no_direction;
  ht_backend_set_extra(&watched);
}

/* Network k: one that always says 16 bits, or 32, and random ones; a name as the option `policy` takes it. */
static void write_network(gpu *g, int k, char *policy) {
  snprintf(policy, MOST_PATH, "learned:/tmp/halftone-gpu-XXXXXX");
  int file = mkstemp(policy + strlen("learned:"));
  assert_true(file >= 0 && !close(file));
  ht_learned *l = k < 2 ? learned_always(g->ctx, HT_LEARNED_TILES, 2 - k, 1 + 3 * k)
                        : learned_random(g->ctx, HT_LEARNED_TILES, 16 * k, 2 * k - 3, (uint64_t)k);
  assert_non_null(l);
  assert_int_equal(learned_write(g->ctx, l, policy + strlen("learned:")), 0);
  ht_learned_release(g->ctx, l);
}

static void forget_network(const char *policy) { assert_int_equal(remove(policy + strlen("learned:")), 0); }

static int64_t iterations_on_cpu(gpu *g, const ht_matrix *a, const char *policy, int paper, const double *b, ht_report *report) {
  double *x = array(a->n);
  *report = solve_once(g, a,
                       SETTINGS({"backend", "cpu"}, {"format", paper ? "tilecsc" : "auto"}, {"precond", "jacobi"}, {"policy", policy},
                                {"max-iterations", "20000"}),
                       b, x);
  assert_int_equal(report->outcome, HT_CONVERGED);
  free(x);
  return report->iterations;
}

static void check_solve(gpu *g, const char *system, const ht_matrix *a, const char *policy, int network, int engine) {
  double *b = right_hand_side(a), *x = array(a->n), *again = array(a->n);
  ht_report cpu;
  int64_t expected = iterations_on_cpu(g, a, policy, engine == PAPER, b, &cpu);
  ht_solver *solver = make_solver(g, a,
                                  SETTINGS({"backend", "cuda"}, {"engine", device_engines[engine]}, {"precond", "jacobi"},
                                           {"policy", policy}, {"max-iterations", "20000"}));
  ht_report r = solve_with(g, solver, b, x), second = solve_with(g, solver, b, again);
  printf("%s, network %d, %s (%s): %lld iterations, %lld on the CPU; true residual %.2e, %lld replacements, %lld on the CPU\n", system,
         network, device_engines[engine], r.engine, (long long)r.iterations, (long long)expected, r.residual_true,
         (long long)r.replacements, (long long)cpu.replacements);
  if (r.outcome != HT_CONVERGED || !meets_tolerance(g, a, b, x)) fail_msg("outcome %d (%s)", (int)r.outcome, r.detail);
  /* The paper's engine takes the steps of the CPU's textbook loop, whose levels come one product later; the streaming one reads
   * 16 bits another way than the CPU's loop. */
  assert_true(llabs((long long)(r.iterations - expected)) <= 8 + expected / (engine == PAPER ? 8 : 2));
  assert_true(second.iterations == r.iterations);
  assert_memory_equal(x, again, (size_t)a->n * sizeof *x);
  assert_string_equal(r.engine, engine == PAPER ? "paper" : "streaming");
  ht_solver_destroy(solver);
  free(b), free(x), free(again);
}

static void the_engines_decide(void **state) {
  (void)state;
  gpu g = gpu_open();
  watch(&g);
  for (int k = 0; k < NETWORKS; k++) {
    char policy[MOST_PATH];
    write_network(&g, k, policy);
    for (int i = 0; i < SYSTEMS; i++) {
      ht_matrix *a = generate(&g, systems[i]);
      for (int e = 0; e < DEVICE_ENGINES; e++) check_solve(&g, systems[i], a, policy, k, e);
      ht_matrix_destroy(a);
    }
    forget_network(policy);
  }
  ht_backend_set_extra(NULL);
  gpu_close(&g);
}

/* A trace stops the engine where it looks, which changes no bit, and tells what it chose. */
static void check_trace(gpu *g, int network) {
  char policy[MOST_PATH];
  write_network(g, network, policy);
  for (int e = 0; e < 2; e++) {
    ht_matrix *a = generate(g, systems[2]);
    double *b = right_hand_side(a), *x = array(a->n), *y = array(a->n);
    setting settings[MOST_OPTIONS] = {{"backend", "cuda"}, {"engine", device_engines[e]}, {"policy", policy}, {"trace", "yes"}};
    ht_solver *solver = make_solver(g, a, settings);
    ht_report traced = solve_with(g, solver, b, x);
    const ht_solve_trace *t = ht_solver_trace(solver);
    assert_true((network < 2 || t->changes_seen > 2) && !t->at_run_ends);
    settings[3].value = "no";
    ht_report r = solve_once(g, a, settings, b, y);
    assert_true(r.iterations == traced.iterations);
    assert_memory_equal(x, y, (size_t)a->n * sizeof *x);
    ht_solver_destroy(solver);
    free(b), free(x), free(y);
    ht_matrix_destroy(a);
  }
  forget_network(policy);
}

static void a_trace_changes_nothing(void **state) {
  (void)state;
  gpu g = gpu_open();
  watch(&g);
  for (int k = 0; k < NETWORKS; k++) check_trace(&g, k);
  ht_backend_set_extra(NULL);
  gpu_close(&g);
}

/* By a backend whose engines replace, and by one that leaves it to the host: the same bits, whatever is chosen and when. */
static void check_replacements(gpu *g, const ht_backend *plain, const char *system, const char *policy, int network) {
  ht_matrix *a = generate(g, system);
  double *b = right_hand_side(a), *x = array(a->n), *y = array(a->n);
  const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", "paper"}, {"policy", policy}, {"max-iterations", "20000"});
  ht_report device = solve_once(g, a, settings, b, x);
  ht_backend_set_extra(plain);
  ht_report host = solve_once(g, a, settings, b, y);
  ht_backend_set_extra(NULL);
  printf("%s, network %d: %lld iterations and %lld replacements on the device, %lld and %lld on the host\n", system, network,
         (long long)device.iterations, (long long)device.replacements, (long long)host.iterations, (long long)host.replacements);
  assert_int_equal(device.outcome, HT_CONVERGED);
  assert_true(network >= 2 || device.replacements > 0);
  assert_true(device.replacements == host.replacements && device.restores == host.restores);
  assert_true(device.iterations == host.iterations && device.products == host.products);
  assert_memory_equal(x, y, (size_t)a->n * sizeof *x);
  free(b), free(x), free(y);
  ht_matrix_destroy(a);
}

static void the_device_replaces_as_the_host_does(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_backend plain = *g.cuda;
  plain.engine_set_right_side = NULL;
  for (int k = 0; k < NETWORKS; k++) {
    char policy[MOST_PATH];
    write_network(&g, k, policy);
    for (int i = 0; i < SYSTEMS; i++) check_replacements(&g, &plain, systems[i], policy, k);
    forget_network(policy);
  }
  gpu_close(&g);
}

/* Over more iterations than a level on trial is given to show that it gains. */
static void a_level_that_gains_is_kept(void **state) {
  (void)state;
  gpu g = gpu_open();
  char policy[MOST_PATH];
  write_network(&g, 1, policy);
  ht_matrix *a = generate(&g, "wathen nx=60 ny=60");
  double *b = right_hand_side(a), *x = array(a->n), *y = array(a->n);
  for (int e = 0; e < 2; e++) {
    setting settings[MOST_OPTIONS] = {{"backend", "cuda"}, {"engine", device_engines[e]}, {"precond", "none"}, {"policy", policy}};
    ht_report learned = solve_once(&g, a, settings, b, x);
    settings[3].value = "fixed:f32";
    ht_report fixed = solve_once(&g, a, settings, b, y);
    printf("%s: %lld iterations, and %lld at 32 bits throughout\n", device_engines[e], (long long)learned.iterations,
           (long long)fixed.iterations);
    assert_int_equal(learned.outcome, HT_CONVERGED);
    assert_true(fixed.iterations > 256 && learned.iterations <= fixed.iterations + fixed.iterations / 20);
    assert_true(e != PAPER || learned.bytes_f64 < 0.1 * learned.bytes_f32); /* the streaming one reads rows in FP64 beside the groups */
    memset(x, 0, (size_t)a->n * sizeof *x), memset(y, 0, (size_t)a->n * sizeof *y);
  }
  forget_network(policy);
  free(b), free(x), free(y);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* More units than the device's kernel has, or the persistent engine: the host decides. */
static void what_no_engine_takes_is_left_to_the_host(void **state) {
  (void)state;
  gpu g = gpu_open();
  char policy[MOST_PATH] = "learned:/tmp/halftone-gpu-XXXXXX";
  assert_int_equal(learned_make(HT_LEARNED_TILES, 100, 5, 4, policy), 0);
  ht_matrix *a = generate(&g, systems[0]);
  double *b = right_hand_side(a), *x = array(a->n);
  static const char *const all[] = {"paper", "streaming", "persistent"};
  for (int e = 0; e < 3; e++) {
    ht_report r = solve_once(&g, a, SETTINGS({"backend", "cuda"}, {"engine", all[e]}, {"policy", policy}), b, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_string_equal(r.engine, all[e]);
    memset(x, 0, (size_t)a->n * sizeof *x);
  }
  forget_network(policy);
  free(b), free(x);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_engines_decide), cmocka_unit_test(a_trace_changes_nothing),
                                     cmocka_unit_test(the_device_replaces_as_the_host_does), cmocka_unit_test(a_level_that_gains_is_kept),
                                     cmocka_unit_test(what_no_engine_takes_is_left_to_the_host)};
  if (!gpu_present()) return GPU_SKIPPED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
