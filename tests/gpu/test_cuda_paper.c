/* The EvoCG paper's engine on the GPU against the textbook loop on the CPU, and the decisions of a network against the same network in
 * FP64. SPDX-License-Identifier: BSD-3-Clause */
#include "base/convert.h"
#include "gpu/gpu_solves.h"
#include "op/operator.h"
#include "support/patterns.h"
#include "support/random.h"

/* ---- whole solves ---- */

static const char *const preconds[] = {"none", "jacobi"};
static const char *const policies[] = {"fixed:f64", "fixed:f32", "fixed:bf16", "auto", "rule", "budget", "custom"};
enum { PRECONDS = 2, POLICIES = 7, F64 = 0, CUSTOM = 6 };

static const char *const systems[] = {
    "stencil2d size=60",
    "stencil2d nx=4097 ny=1 coefficients=lognormal",
    "stencil3d size=20 points=7 coefficients=jumps contrast=100",
    "wathen nx=30 ny=31",
    "fem3d size=7 numbering=random",
    "elasticity3d size=7",
    "graph graph=shortcuts size=20000 sigma=1",
    "mass size=12",
    "trefethen size=2000",
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

static int custom_policy(void *user, const ht_policy_view *view, uint8_t *precision) {
  int *looks = user;
  ++*looks;
  for (int64_t k = 0; k < view->blocks; k++) {
    double largest = view->direction_max[k];
    assert_true(largest * largest <= view->direction_norm2[k] * (1 + 1e-12));
    assert_true(view->direction_norm2[k] <= 64 * largest * largest * (1 + 1e-12));
    precision[k] = (uint8_t)((view->iteration / 8 + k) % 3 == 0 ? HT_F32 : HT_F64);
  }
  assert_true(view->residual > 0 && view->alpha > 0);
  return 0;
}

/* Twice by the same solver: the same bits. */
static ht_report solve_twice(gpu *g, const ht_matrix *a, const setting *settings, int custom, const double *b, double *x) {
  ht_solver *solver = make_solver(g, a, settings);
  double *again = array(a->n);
  int looks = 0;
  if (custom) ht_solver_set_policy(solver, custom_policy, &looks);
  ht_report report = solve_with(g, solver, b, x), second = solve_with(g, solver, b, again);
  assert_true(second.iterations == report.iterations);
  assert_memory_equal(x, again, (size_t)a->n * sizeof *x);
  assert_true(!custom || looks > 0 || report.iterations <= 8);
  free(again);
  ht_solver_destroy(solver);
  return report;
}

static int64_t iterations_on_cpu(gpu *g, const ht_matrix *a, const double *b, int precond) {
  double *x = array(a->n);
  ht_report r = solve_once(g, a,
                           SETTINGS({"backend", "cpu"}, {"engine", "textbook"}, {"format", "tilecsc"}, {"precond", preconds[precond]},
                                    {"policy", "fixed:f64"}, {"max-iterations", "20000"}),
                           b, x);
  assert_int_equal(r.outcome, HT_CONVERGED);
  free(x);
  return r.iterations;
}

static void check_solve(gpu *g, const char *system, const ht_matrix *a, const double *b, int precond, int policy, int64_t cpu_iterations) {
  int custom = policy == CUSTOM;
  double *x = array(a->n);
  ht_report r = solve_twice(g, a,
                            SETTINGS({"backend", "cuda"}, {"engine", "paper"}, {"precond", preconds[precond]},
                                     {"policy", custom ? "auto" : policies[policy]}, {"max-iterations", "20000"}),
                            custom, b, x);
  if (r.outcome != HT_CONVERGED || !(r.residual_true <= rtol) || !meets_tolerance(g, a, b, x))
    fail_msg("%s, %s, %s: outcome %d (%s), %lld iterations, true residual %.3g", system, preconds[precond], policies[policy],
             (int)r.outcome, r.detail, (long long)r.iterations, r.residual_true);
  assert_string_equal(r.engine, "paper");
  assert_string_equal(r.format, "tilecsc");
  if (policy == F64 && llabs((long long)(r.iterations - cpu_iterations)) > 1 + cpu_iterations / 50)
    fail_msg("%s, %s: %lld iterations, and %lld on the CPU", system, preconds[precond], (long long)r.iterations, (long long)cpu_iterations);
  assert_true(r.iterations == 0 || r.bytes_f64 + r.bytes_f32 + r.bytes_16 > 0);
  free(x);
}

static void check_system(gpu *g, const char *name, const ht_matrix *a) {
  double *b = right_hand_side(a);
  for (int p = 0; p < PRECONDS; p++) {
    int64_t expected = iterations_on_cpu(g, a, b, p);
    for (int k = 0; k < POLICIES; k++) check_solve(g, name, a, b, p, k, expected);
  }
  free(b);
}

static void it_is_the_textbook_loop(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SYSTEMS; i++) {
    ht_matrix *a = generate(&g, systems[i]);
    check_system(&g, systems[i], a);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

static void odd_sizes_are_solved(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 63, 64, 65, 127, 1000};
  gpu g = gpu_open();
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    char name[32];
    snprintf(name, sizeof name, "n = %lld", (long long)sizes[k]);
    ht_matrix *a = pattern_matrix(g.ctx, sizes[k] == 127 ? PATTERN_DENSE_ROW : PATTERN_RANDOM, sizes[k], 7, 1);
    check_system(&g, name, a);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* The coefficients of the iteration come to the host: without them no eigenvalue could be estimated. */
static void its_records_give_eigenvalues(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "stencil2d size=60");
  double *b = right_hand_side(a), *x = array(a->n);
  ht_report r = solve_once(&g, a, SETTINGS({"backend", "cuda"}, {"engine", "paper"}, {"precond", "jacobi"}, {"policy", "fixed:f64"}), b, x);
  double angle = 3.14159265358979323846 / 61;
  assert_true(fabs(r.eigenvalue_min / (1 - cos(angle)) - 1) < 1e-2 && fabs(r.eigenvalue_max / (1 + cos(angle)) - 1) < 1e-2);
  free(b), free(x);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* The cuda backend, whose engines leave replacements to the host. */
static void the_device_replaces_as_the_host_does(void **state) {
  static const char *const lines[] = {"stencil3d size=20 points=27 coefficients=lognormal", "fem2d size=40 grading=1",
                                      "wathen nx=30 ny=31"};
  static const char *const low[] = {"fixed:f32", "fixed:bf16"};
  (void)state;
  gpu g = gpu_open();
  ht_backend plain = *g.cuda;
  plain.engine_set_right_side = NULL;
  for (int i = 0; i < 3; i++)
    for (int p = 0; p < 2; p++) {
      ht_matrix *a = generate(&g, lines[i]);
      double *b = right_hand_side(a), *x = array(a->n), *y = array(a->n);
      const setting *settings = SETTINGS({"backend", "cuda"}, {"engine", "paper"}, {"policy", low[p]}, {"precond", preconds[i % 2]});
      ht_report device = solve_once(&g, a, settings, b, x);
      ht_backend_set_extra(&plain);
      ht_report host = solve_once(&g, a, settings, b, y);
      ht_backend_set_extra(NULL);
      assert_int_equal(device.outcome, HT_CONVERGED);
      assert_int_equal(host.outcome, HT_CONVERGED);
      assert_true(device.replacements > 0 && device.replacements == host.replacements);
      assert_true(device.iterations == host.iterations && device.products == host.products);
      assert_memory_equal(x, y, (size_t)a->n * sizeof *x);
      free(b), free(x), free(y);
      ht_matrix_destroy(a);
    }
  gpu_close(&g);
}

/* A plate that low levels delay: with 2.2 times the iterations that FP64 takes every engine solves it under every policy, and twice
 * to the same bits. */
static void the_limit_is_shared(void **state) {
  static const char *const limited[] = {"fixed:f32", "fixed:bf16", "rule", "budget"};
  static const char *const engine[][2] = {{"paper", "tilecsc"}, {"streaming", "auto"}, {"persistent", "auto"}};
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "elasticity3d nx=40 ny=6 nz=1");
  double *b = right_hand_side(a), *x = array(a->n);
  int64_t left = 0;
  for (int e = 0; e < 3; e++) {
    char most[24];
    memset(x, 0, (size_t)a->n * sizeof *x);
    ht_report f64 = solve_once(
        &g, a,
        SETTINGS({"backend", "cuda"}, {"engine", engine[e][0]}, {"format", engine[e][1]}, {"precond", "none"}, {"policy", "fixed:f64"}), b,
        x);
    assert_int_equal(f64.outcome, HT_CONVERGED);
    snprintf(most, sizeof most, "%lld", (long long)(22 * f64.iterations / 10));
    for (int p = 0; p < 4; p++) {
      memset(x, 0, (size_t)a->n * sizeof *x);
      ht_report r = solve_twice(&g, a,
                                SETTINGS({"backend", "cuda"}, {"engine", engine[e][0]}, {"format", engine[e][1]}, {"precond", "none"},
                                         {"policy", limited[p]}, {"max-iterations", most}),
                                0, b, x);
      if (r.outcome != HT_CONVERGED)
        fail_msg("%s, %s: %s, true residual %.3g in %s iterations", engine[e][0], limited[p], r.detail, r.residual_true, most);
      left += r.left_to_f64;
    }
  }
  assert_true(left > 0);
  free(b), free(x);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* Scattered unknowns are ordered, which changes rounding alone; new values find their places. */
static void scattered_unknowns_are_ordered(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "fem3d size=14 numbering=random");
  double *b = right_hand_side(a), *x = array(a->n), *values = array(a->nnz);
  setting settings[MOST_OPTIONS] = {
      {"backend", "cuda"}, {"engine", "paper"}, {"policy", "fixed:f64"}, {"precond", "jacobi"}, {"ordering", "natural"}};
  ht_report natural = solve_once(&g, a, settings, b, x);
  assert_string_equal(natural.ordering, "natural");
  for (int k = 0; k < 2; k++) {
    settings[4].value = k ? "rcm" : "auto";
    ht_solver *solver = make_solver(&g, a, settings);
    memset(x, 0, (size_t)a->n * sizeof *x);
    ht_report r = solve_with(&g, solver, b, x);
    assert_string_equal(r.ordering, k ? "rcm" : "patches");
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(meets_tolerance(&g, a, b, x));
    assert_true(llabs((long long)(r.iterations - natural.iterations)) <= 1 + natural.iterations / 50);
    for (int64_t i = 0; i < a->nnz; i++) values[i] = 4 * a->values[i];
    OK(ht_matrix_set_values(a, values));
    memset(x, 0, (size_t)a->n * sizeof *x);
    r = solve_with(&g, solver, b, x);
    assert_int_equal(r.outcome, HT_CONVERGED);
    assert_true(meets_tolerance(&g, a, b, x));
    ht_solver_destroy(solver);
  }
  free(b), free(x), free(values);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

static void it_refuses_what_it_cannot_do(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a = generate(&g, "stencil2d size=20");
  static const setting wrong[][2] = {
      {{"backend", "cpu"}}, {{"backend", "cuda"}, {"format", "csr"}}, {{"backend", "cuda"}, {"precond", "ic0"}}};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    ht_solver *solver = make_solver(&g, a, SETTINGS({"engine", "paper"}, wrong[k][0], wrong[k][1]));
    assert_int_not_equal(ht_solver_prepare(solver), HT_OK);
    assert_non_null(strstr(ht_context_error(g.ctx), "use "));
    ht_context_clear_error(g.ctx);
    ht_solver_destroy(solver);
  }
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* ---- networks ---- */

enum { INPUTS = HT_COLUMN_BLOCK, ACTIONS = 3, MOST_WEIGHTS = 64 * 65 + 64 * 65 + 3 * 65 + 65 };
static const double CLEAR = 1e-2; /* a difference of logits that FP16 does not blur */

/* As the device keeps them: matrices in FP16, biases in FP32. */
static void store_network(int hidden, const float *w, double *stored) {
  const int units[] = {hidden, hidden, ACTIONS}, inputs[] = {INPUTS, hidden, hidden};
  for (int layer = 0; layer < 3; layer++) {
    int64_t matrix = (int64_t)units[layer] * inputs[layer];
    for (int64_t k = 0; k < matrix; k++) stored[k] = ht_load_f16(ht_store_f16(w[k]));
    for (int64_t k = matrix; k < matrix + units[layer]; k++) stored[k] = w[k];
    w += matrix + units[layer], stored += matrix + units[layer];
  }
}

static void random_network(uint64_t seed, int hidden, float *weights) {
  random_stream s = {seed};
  int64_t count = hidden * (INPUTS + 1) + hidden * (hidden + 1) + ACTIONS * (hidden + 1) + hidden + 1;
  for (int64_t k = 0; k < count; k++) weights[k] = (float)(0.5 * random_signed(&s));
}

static const double *layer_of(const double *w, int units, int inputs, int rectified, const double *in, double *out) {
  for (int u = 0; u < units; u++) {
    double sum = w[units * inputs + u];
    for (int i = 0; i < inputs; i++) sum += w[u * inputs + i] * in[i];
    out[u] = rectified ? fmax(sum, 0) : sum;
  }
  return w + units * (inputs + 1);
}

/* The level for a block, and how far its logit is above the next. */
static int level_by_hand(const double *w, int hidden, const double *p, int64_t count, double *gap) {
  double in[INPUTS] = {0}, one[INPUTS], two[INPUTS], logit[ACTIONS], square = 0;
  int best = 0;
  for (int64_t i = 0; i < count; i++) square += p[i] * p[i];
  for (int64_t i = 0; i < count; i++) in[i] = p[i] / fmax(sqrt(square), 1e-30);
  w = layer_of(w, hidden, INPUTS, 1, in, one);
  w = layer_of(w, hidden, hidden, 1, one, two);
  layer_of(w, ACTIONS, hidden, 0, two, logit);
  for (int k = 1; k < ACTIONS; k++)
    if (logit[k] > logit[best]) best = k;
  *gap = INFINITY;
  for (int k = 0; k < ACTIONS; k++)
    if (k != best) *gap = fmin(*gap, logit[best] - logit[k]);
  return HT_LEVEL_64 - best;
}

typedef struct fixture {
  gpu *g;
  ht_matrix *a;
  ht_operator *op;
  ht_engine *engine;
  ht_cg_state state;
  double *r, *x; /* host */
  void *device;
} fixture;

/* Directions of all sizes, some of them zero. */
static void make_residual(fixture *f) {
  random_stream s = {77};
  f->r = array(f->a->n);
  for (int64_t i = 0; i < f->a->n; i++) {
    int64_t block = i / INPUTS;
    f->r[i] = block % 50 == 7 ? 0 : random_signed(&s) * pow(10, (double)(block % 40) - 36);
  }
}

static void set_up_on(fixture *f, gpu *g, int streaming, const char *line) {
  const ht_operator_options options = {.ordering = HT_ORDERING_NATURAL, .exactness_flags = 1};
  const ht_engine_precond none = {.block = 0};
  *f = (fixture){.g = g, .a = generate(g, line)};
  if (streaming) {
    OK(ht_operator_create_store(g->ctx, g->cuda, &options, HT_STORE_ENGINE_STREAMING, 0, f->a, NULL, &f->op));
    OK(g->cuda->engine_create(f->op->store, &none, 1000, &f->engine));
  } else {
    OK(ht_operator_create_tilecsc(g->ctx, g->cuda, &options, f->a, &f->op));
    OK(g->cuda->engine_create_on_tiles(g->ctx, f->op->tiles, f->op->column_error, NULL, 1000, &f->engine));
  }
  make_residual(f);
  f->x = array(f->a->n);
  f->device = gpu_copy(g, 8 * f->a->n, f->r);
  f->state.capacity = 1000;
  f->state.history = array(1000);
  f->state.alphas = array(1000);
  f->state.betas = array(1000);
  f->state.block_level = malloc((size_t)f->op->blocks);
  assert_non_null(f->state.block_level);
}

static void set_up(fixture *f, gpu *g, int streaming, int64_t n) {
  char line[64];
  snprintf(line, sizeof line, "stencil2d nx=%lld ny=1", (long long)n);
  set_up_on(f, g, streaming, line);
}

static void tear_down(fixture *f) {
  f->g->cuda->engine_release(f->engine);
  ht_operator_destroy(f->op);
  f->g->cuda->memory_release(f->g->ctx, f->device);
  ht_matrix_destroy(f->a);
  free(f->r), free(f->x), free(f->state.history), free(f->state.alphas), free(f->state.betas), free(f->state.block_level);
}

static void begin(fixture *f, int64_t iteration_end, int64_t every) {
  ht_cg_state *s = &f->state;
  const ht_backend *cuda = f->g->cuda;
  OK(cuda->upload(f->g->ctx, 8 * f->a->n, f->x, f->device));
  cuda->engine_set_iterate(f->engine, f->device);
  OK(cuda->upload(f->g->ctx, 8 * f->a->n, f->r, f->device));
  cuda->engine_set_residual(f->engine, f->device);
  memset(s->block_level, HT_LEVEL_64, (size_t)f->op->blocks);
  cuda->engine_set_levels(f->engine, s->block_level);
  s->iteration = 0;
  s->fresh = 1;
  s->goal = 0;
  s->replace_below = -1;
  s->grow_above = INFINITY;
  s->iteration_end = iteration_end;
  s->pause_at = INT64_MAX;
  s->decide_at = 0;
  s->decide_rule = HT_DECIDE_LEARNED;
  s->decide_every = every;
  s->floor = HT_LEVEL_16;
}

static void check_decisions(gpu *g, int streaming, int hidden) {
  const int64_t n = 64 * 5000 + 17;
  float weights[MOST_WEIGHTS];
  double stored[MOST_WEIGHTS];
  int64_t clear = 0, different = 0, levels[HT_LEVELS] = {0};
  fixture f;
  set_up(&f, g, streaming, n);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    random_network(seed, hidden, weights);
    store_network(hidden, weights, stored);
    OK(g->cuda->engine_set_network(f.engine, weights, INPUTS, hidden, ACTIONS, 0));
    begin(&f, 1, 1000);
    assert_int_equal(g->cuda->engine_run(f.engine, &f.state), HT_CG_LIMIT);
    for (int64_t b = 0; b < f.op->blocks && b < (n + 63) / 64; b++) {
      double gap;
      int expected = level_by_hand(stored, hidden, f.r + 64 * b, n - 64 * b < 64 ? n - 64 * b : 64, &gap);
      levels[f.state.block_level[b]]++;
      if (gap <= CLEAR) continue;
      clear++;
      different += expected != f.state.block_level[b];
    }
  }
  printf("%s, %d units: %lld clear decisions, %lld other ones; %lld at 16, %lld at 32, %lld at 64 bits\n",
         streaming ? "streaming" : "paper", hidden, (long long)clear, (long long)different, (long long)levels[0], (long long)levels[1],
         (long long)levels[2]);
  assert_true(clear > 5000 && (double)different < 1e-3 * (double)clear);
  assert_true(levels[0] > 0 && levels[1] > 0 && levels[2] > 0);
  tear_down(&f);
}

static void networks_decide_as_by_hand(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int streaming = 0; streaming < 2; streaming++) {
    check_decisions(&g, streaming, 64);
    check_decisions(&g, streaming, 41);
  }
  gpu_close(&g);
}

/* The iterate after 40 iterations, stopped now and then on the way. */
static void run_with_pauses(fixture *f, int64_t between, double *x) {
  const int64_t end = 40;
  memset(f->x, 0, (size_t)f->a->n * 8);
  begin(f, end, 5);
  for (ht_cg_event event = HT_CG_PAUSE; event == HT_CG_PAUSE;) {
    f->state.pause_at = between ? f->state.iteration + between : INT64_MAX;
    event = f->g->cuda->engine_run(f->engine, &f->state);
    assert_true(event == HT_CG_PAUSE || event == HT_CG_LIMIT);
  }
  f->g->cuda->engine_get_iterate(f->engine, f->device);
  gpu_fetch(f->g, 8 * f->a->n, f->device, x);
  assert_true(f->state.iteration == end);
}

static void pauses_change_no_bit(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int k = 0; k < 4; k++) {
    fixture f;
    float weights[MOST_WEIGHTS];
    set_up(&f, &g, k % 2, 64 * 100 + 5);
    for (int64_t i = 0; i < f.a->n; i++) f.r[i] = sin(0.1 * (double)i);
    random_network(5, 64, weights);
    OK(g.cuda->engine_set_network(f.engine, weights, INPUTS, 64, ACTIONS, 3 + k / 2)); /* every 4: inside a replay */
    double *whole = array(f.a->n), *parts = array(f.a->n);
    run_with_pauses(&f, 0, whole);
    for (int64_t between = 1; between < 12; between += 3) {
      run_with_pauses(&f, between, parts);
      assert_memory_equal(whole, parts, (size_t)f.a->n * 8);
    }
    free(whole), free(parts);
    tear_down(&f);
  }
  gpu_close(&g);
}

/* Replacements with 16 bits throughout: the best iterate that they met has the residual that was told. */
static void the_best_iterate_is_kept(void **state) {
  (void)state;
  gpu g = gpu_open();
  fixture f;
  set_up_on(&f, &g, 0, "mass size=15 coefficients=lognormal");
  const int64_t n = f.a->n;
  ht_cg_state *s = &f.state;
  double norm_b = 0, best = INFINITY, square = 0, *x = array(n);
  for (int64_t i = 0; i < n; i++) f.r[i] = sin(0.1 * (double)i), norm_b += f.r[i] * f.r[i];
  norm_b = sqrt(norm_b);
  begin(&f, 400, 1000);
  assert_true(g.cuda->engine_set_right_side(f.engine, f.device));
  memset(s->block_level, HT_LEVEL_16, (size_t)f.op->blocks);
  g.cuda->engine_set_levels(f.engine, s->block_level);
  s->decide_rule = HT_DECIDE_HOST;
  s->decide_at = INT64_MAX;
  s->goal = 1e-14 * norm_b;
  s->replacing = (ht_cg_replacing){.allowed = 1,
                                   .to_replace = HT_LEVEL_16,
                                   .inexact = {HT_LEVEL_16, HT_LEVEL_32, HT_LEVEL_64},
                                   .first_drop = {0.3, 0.3, 0},
                                   .drop = 0.3,
                                   .reference = norm_b,
                                   .watched = norm_b,
                                   .best = INFINITY};
  s->replace_below = 0.3 * norm_b;
  g.cuda->engine_run(f.engine, s);
  for (int k = 0; k < s->replaced; k++) best = fmin(best, s->replacement[k].norm);
  assert_true(s->replaced > 0 && s->replacing.best == best && best < norm_b);
  g.cuda->engine_get_best(f.engine, f.device);
  gpu_fetch(&g, 8 * n, f.device, x);
  for (int64_t i = 0; i < n; i++) {
    double ax = 0;
    for (int64_t k = f.a->row_start[i]; k < f.a->row_start[i + 1]; k++) ax += f.a->values[k] * x[f.a->columns[k]];
    square += (f.r[i] - ax) * (f.r[i] - ax);
  }
  assert_true(fabs(sqrt(square) / best - 1) < 1e-8);
  free(x);
  tear_down(&f);
  gpu_close(&g);
}

static void networks_of_other_shapes_are_refused(void **state) {
  (void)state;
  gpu g = gpu_open();
  fixture f;
  float weights[MOST_WEIGHTS] = {0};
  set_up(&f, &g, 0, 100);
  assert_int_equal(g.cuda->engine_set_network(f.engine, weights, 32, 64, 3, 0), HT_UNSUPPORTED);
  assert_int_equal(g.cuda->engine_set_network(f.engine, weights, 64, 65, 3, 0), HT_UNSUPPORTED);
  assert_int_equal(g.cuda->engine_set_network(f.engine, weights, 64, 64, 4, 0), HT_UNSUPPORTED);
  ht_context_clear_error(g.ctx);
  tear_down(&f);
  gpu_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_the_textbook_loop),
      cmocka_unit_test(odd_sizes_are_solved),
      cmocka_unit_test(its_records_give_eigenvalues),
      cmocka_unit_test(the_device_replaces_as_the_host_does),
      cmocka_unit_test(the_limit_is_shared),
      cmocka_unit_test(scattered_unknowns_are_ordered),
      cmocka_unit_test(it_refuses_what_it_cannot_do),
      cmocka_unit_test(networks_decide_as_by_hand),
      cmocka_unit_test(pauses_change_no_bit),
      cmocka_unit_test(the_best_iterate_is_kept),
      cmocka_unit_test(networks_of_other_shapes_are_refused),
  };
  if (!gpu_present()) return GPU_SKIPPED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
