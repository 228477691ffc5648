/* Training on the GPU against training on the CPU: the same transitions from the same weights, the same weights from the same transitions,
 * the same judgement; its bits, its state, and what it refuses. SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_helpers.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "backend/cuda/learner.h"
#include "halftone/halftone.h"
#include "support/generated.h"
#include "policy/learned_file.h"
#include "train/device.h"
#include "train/initialise.h"
#include "train/saving.h"
#include "train/view.h"

enum { INPUTS = 64, ACTIONS = 3, LANES = 6 };
#define OK(call) assert_int_equal((call), HT_OK)

static void generate(gpu *g, const char *line, ht_matrix **matrix) { OK(generate_line(g->ctx, line, matrix)); }

static void *fetched(gpu *g, int64_t bytes, const void *device) {
  void *host = malloc((size_t)bytes);
  assert_non_null(host);
  gpu_fetch(g, bytes, device, host);
  return host;
}

/* ---- an update ---- */

typedef struct batch {
  ht_ppo_batch host;
  int64_t rows;
} batch;

static batch make_batch(int64_t transitions, int64_t most) {
  batch b = {{.transitions = transitions, .most_rows = most}, transitions * most};
  b.host.rows = malloc((size_t)transitions * 4);
  b.host.advantage = malloc((size_t)transitions * 4);
  b.host.target = malloc((size_t)transitions * 4);
  b.host.state = malloc((size_t)(b.rows * INPUTS) * 4);
  b.host.log_probability = malloc((size_t)b.rows * 4);
  b.host.action = malloc((size_t)b.rows);
  for (int64_t t = 0; t < transitions; t++) {
    b.host.rows[t] = (int32_t)(1 + t % most);
    b.host.advantage[t] = (float)ht_random_uniform(1, (uint64_t)t);
    b.host.target[t] = 2 * (float)ht_random_uniform(2, (uint64_t)t);
  }
  for (int64_t i = 0; i < b.rows * INPUTS; i++) b.host.state[i] = 0.25F * (float)ht_random_uniform(3, (uint64_t)i);
  for (int64_t i = 0; i < b.rows; i++) { /* ratios on both sides of the clip */
    b.host.action[i] = (uint8_t)(ht_random_bits(4, (uint64_t)i) % ACTIONS);
    b.host.log_probability[i] = -1.1F + 0.5F * (float)ht_random_uniform(5, (uint64_t)i);
  }
  return b;
}

static void place_batch(gpu *g, const batch *b, const ht_learner_batch *to) {
  int64_t count = b->host.transitions;
  assert_int_equal(to->transitions, count);
  assert_int_equal(to->most_rows, b->host.most_rows);
  OK(g->cuda->upload(g->ctx, count * 4, b->host.rows, to->rows));
  OK(g->cuda->upload(g->ctx, count * 4, b->host.advantage, to->advantage));
  OK(g->cuda->upload(g->ctx, count * 4, b->host.target, to->target));
  OK(g->cuda->upload(g->ctx, b->rows * INPUTS * 4, b->host.state, to->state));
  OK(g->cuda->upload(g->ctx, b->rows * 4, b->host.log_probability, to->log_probability));
  OK(g->cuda->upload(g->ctx, b->rows, b->host.action, to->action));
}

static void free_batch(batch *b) {
  void *memory[] = {b->host.rows, b->host.advantage, b->host.target, b->host.state, b->host.log_probability, b->host.action};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) free(memory[k]);
}

typedef struct both { /* the same network on the CPU and on the GPU */
  ht_network net;
  ht_ppo *ppo;
  ht_learner *learner;
  float *gradient, *weights, *first, *second; /* the GPU's */
  int64_t steps;
  batch batch;
} both;

static void set_up_both(gpu *g, both *f, int hidden, int64_t most, const ht_ppo_settings *settings) {
  const int64_t steps = 16;
  ht_matrix *a;
  generate(g, "stencil2d size=20", &a);
  const ht_csr_view view = ht_matrix_view(a);
  double *values, *b;
  OK(ht_allocate_zeroed(g->ctx, view.nnz * HT_LEVELS, sizeof *values, &values)); /* nobody solves here */
  OK(ht_allocate_zeroed(g->ctx, view.n, sizeof *b, &b));
  const ht_learner_system system = {
      .n = view.n, .row_start = view.row_start, .columns = view.columns, .values = values, .right_sides = b, .sides = 1};
  const ht_learner_settings learner = {
      .ppo = *settings, .hidden = hidden, .lanes = LANES, .steps = steps, .most_rows = most, .rtol = 1e-10};
  *f = (both){.net = {INPUTS, hidden, ACTIONS, NULL}, .batch = make_batch(LANES * steps, most)};
  int64_t size = ht_network_size(INPUTS, hidden, ACTIONS);
  OK(ht_allocate(g->ctx, size, sizeof(float), &f->net.weights));
  OK(ht_network_initialise(g->ctx, 7, &f->net));
  for (int64_t i = 0; i < size; i++) f->net.weights[i] += 0.1F * (float)ht_random_uniform(6, (uint64_t)i);
  OK(ht_ppo_create(g->ctx, settings, &f->net, LANES * steps, most, &f->ppo));
  OK(g->cuda->learner_create(g->ctx, &learner, 1, &system, &f->learner));
  OK(g->cuda->learner_set_network(f->learner, f->net.weights, f->ppo->first, f->ppo->second, 0));
  place_batch(g, &f->batch, &f->learner->batch);
  float **arrays[] = {&f->gradient, &f->weights, &f->first, &f->second};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) OK(ht_allocate(g->ctx, size, sizeof(float), arrays[k]));
  ht_release(g->ctx, values);
  ht_release(g->ctx, b);
  ht_matrix_destroy(a);
}

static void tear_down_both(gpu *g, both *f) {
  ht_ppo_destroy(f->ppo);
  g->cuda->learner_release(f->learner);
  free_batch(&f->batch);
  float *arrays[] = {f->gradient, f->weights, f->first, f->second, f->net.weights};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) ht_release(g->ctx, arrays[k]);
}

/* Of the gradient: sums over up to 96 * 32 rows' terms of size 1 over their number, behind two layers of 64 terms. */
static const double TOLERANCE = 64 * 8 * (double)FLT_EPSILON;

static void check_loss(const ht_ppo_loss *cpu, const ht_ppo_loss *device) {
  assert_true(fabs(cpu->policy - device->policy) < TOLERANCE && fabs(cpu->value - device->value) < 10 * TOLERANCE);
  assert_true(fabs(cpu->entropy - device->entropy) < TOLERANCE && fabs(cpu->clipped - device->clipped) < 0.01);
  assert_true(fabs(cpu->total - device->total) < 10 * TOLERANCE);
}

/* After one step a weight has moved by the rate times g / |g|, about: what the gradients' difference makes of that. */
static void one_step_is_the_cpus(gpu *g, int hidden, int64_t most) {
  const ht_ppo_settings settings = {0.2, 0.25, 0.02, 1e-3, 0.5, 1, 1000, 0, 0};
  both f;
  ht_ppo_loss cpu, device;
  double worst = 0;
  set_up_both(g, &f, hidden, most, &settings);
  ht_ppo_update(f.ppo, &f.batch.host, 11, &cpu);
  OK(g->cuda->learner_update(f.learner, 11, &device));
  check_loss(&cpu, &device);
  OK(g->cuda->learner_get_network(f.learner, f.weights, f.first, f.second, &f.steps));
  assert_int_equal(f.steps, 1);
  for (int64_t i = 0; i < f.ppo->weights; i++) { /* the first moment is a tenth of the gradient */
    double gradient = 10 * (double)f.ppo->first[i], miss = fabs(10 * (double)f.first[i] - gradient);
    double moved = fabs((double)f.weights[i] - (double)f.net.weights[i]);
    if (miss > worst) worst = miss;
    assert_true(miss < TOLERANCE);
    assert_true(moved <=
                settings.learning_rate * fmin(2.01, 2 * miss / fabs(gradient) + 1e-6) + (double)FLT_EPSILON * fabs((double)f.weights[i]));
  }
  printf("hidden %d, %lld tiles: gradients differ by at most %.1e\n", hidden, (long long)most, worst);
  tear_down_both(g, &f);
}

static void steps_are_those_of_the_cpu(void **state) {
  (void)state;
  gpu g = gpu_open();
  one_step_is_the_cpus(&g, 64, 32);
  one_step_is_the_cpus(&g, 64, 5);
  one_step_is_the_cpus(&g, 41, 3);
  one_step_is_the_cpus(&g, 1, 1);
  gpu_close(&g);
}

/* Many steps: the difference stays small beside the way that was gone. Minibatches of 20 of 96 transitions: the last one is smaller. */
static void updates_are_those_of_the_cpu(void **state) {
  (void)state;
  const ht_ppo_settings settings = {0.2, 0.25, 0.02, 1e-3, 0.5, 3, 20, 0, 0};
  gpu g = gpu_open();
  both f;
  ht_ppo_loss cpu, device;
  double way = 0, gap = 0;
  set_up_both(&g, &f, 64, 5, &settings);
  float *start = malloc((size_t)f.ppo->weights * sizeof *start);
  memcpy(start, f.net.weights, (size_t)f.ppo->weights * sizeof *start);
  ht_ppo_update(f.ppo, &f.batch.host, 12, &cpu);
  OK(g.cuda->learner_update(f.learner, 12, &device));
  check_loss(&cpu, &device);
  OK(g.cuda->learner_get_network(f.learner, f.weights, f.first, f.second, &f.steps));
  assert_true(f.steps == f.ppo->steps && f.steps == 15);
  for (int64_t i = 0; i < f.ppo->weights; i++) {
    way += pow((double)f.net.weights[i] - (double)start[i], 2);
    gap += pow((double)f.net.weights[i] - (double)f.weights[i], 2);
  }
  printf("15 steps: the weights moved by %.2e, and differ by %.1e\n", sqrt(way), sqrt(gap));
  assert_true(sqrt(gap) < 1e-2 * sqrt(way));
  free(start);
  tear_down_both(&g, &f);
  gpu_close(&g);
}

static void no_step_goes_to_nowhere(void **state) {
  (void)state;
  const ht_ppo_settings settings = {0.2, 0.25, 0.02, 1e-3, 0.5, 1, 1000, 0, 0};
  gpu g = gpu_open();
  both f;
  ht_ppo_loss loss;
  set_up_both(&g, &f, 64, 5, &settings);
  f.batch.host.target[3] = NAN;
  place_batch(&g, &f.batch, &f.learner->batch);
  OK(g.cuda->learner_update(f.learner, 1, &loss));
  OK(g.cuda->learner_get_network(f.learner, f.weights, f.first, f.second, &f.steps));
  assert_int_equal(f.steps, 0);
  assert_memory_equal(f.weights, f.net.weights, (size_t)f.ppo->weights * sizeof *f.weights);
  tear_down_both(&g, &f);
  gpu_close(&g);
}

/* ---- transitions ---- */

/* A training, ready for its first update, with so many lanes. */
static ht_trainer *prepared(gpu *g, const char *backend, int count, ht_matrix *const *matrix, const char *const (*options)[2]) {
  ht_trainer *t;
  OK(ht_trainer_create(g->ctx, &t));
  OK(ht_trainer_set_option(t, "reward", "paper"));
  OK(ht_trainer_set_option(t, "lanes", "6"));
  OK(ht_trainer_set_option(t, "backend", backend));
  for (; options && (*options)[0]; options++) OK(ht_trainer_set_option(t, (*options)[0], (*options)[1]));
  for (int k = 0; k < count; k++) OK(ht_trainer_add_matrix(t, matrix[k], "generated"));
  OK(ht_trainer_prepare(t));
  assert_true(ht_trains_on_device(t) == !strncmp(backend, "cuda", 4));
  return t;
}

static double largest(int64_t count, const float *a, const float *b) {
  double most = 0;
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
  return most;
}

static void compare_lanes(ht_trainer *cpu, ht_trainer *cuda, double tolerance) {
  for (int k = 0; k < LANES; k++) {
    ht_lane *a = &cpu->rollout->lane[k], *b;
    OK(ht_device_fetch_lane(cuda, k, &b));
    if (a->course.over) continue; /* the GPU has begun the next episode */
    assert_int_equal(a->episode, b->episode);
    assert_int_equal(a->course.iteration, b->course.iteration);
    assert_true(fabs(a->total - b->total) < 1e-6 * (1 + fabs(a->total)));
    assert_true(fabs(a->course.norm_r - b->course.norm_r) <= tolerance * a->course.norm_r);
    const ht_course *x = &a->course, *y = &b->course;
    double size = x->environment->backend->norm_inf(cpu->ctx, x->environment->n, x->p);
    for (int64_t i = 0; i < x->environment->n; i++) assert_true(fabs(x->p[i] - y->p[i]) <= tolerance * size);
  }
}

/* The reward time by the CPU's prices, and by its solves in FP64, whose last bits move their iterations. */
static void price_as_the_cpu(gpu *g, const ht_trainer *cpu, ht_trainer *cuda) {
  ht_learner_side side[HT_SAVING_RIGHT_SIDES];
  for (int k = 0; k < cpu->matrices && cpu->rollout->saving; k++) {
    ht_saving_sides(cpu->saving[k], ht_saving_right_sides(&cpu->options), side);
    g->cuda->learner_set_limit(cuda->learner, k, ht_most_iterations(cpu->environment[k]));
    OK(g->cuda->learner_set_saving(cuda->learner, k, side, ht_iterations_apart(cpu->rollout, cpu->environment[k])));
  }
}

/* steps: of a lane, an update; few enough that roundoff changes no action. */
static void compare_transitions(gpu *g, int count, ht_matrix *const *matrix, const char *const (*options)[2], double tolerance) {
  ht_trainer *cpu = prepared(g, "cpu", count, matrix, options), *cuda = prepared(g, "cuda", count, matrix, options);
  const ht_ppo_batch *a = &cpu->rollout->batch;
  const ht_learner_batch *b = &cuda->learner->batch;
  for (int k = 0; k < count; k++) { /* sums in another order move them where CG has lost its orthogonality */
    long long here = cpu->environment[k]->iterations_64, there = cuda->environment[k]->iterations_64;
    if (llabs(here - there) > 1 + here / 20)
      fail_msg("matrix %d of %d: %lld iterations in FP64, and %lld on the device", k, count, here, there);
  }
  price_as_the_cpu(g, cpu, cuda);
  ht_rollout_collect(cpu->rollout, &cpu->ppo->packed);
  OK(ht_device_collect(cuda));
  int64_t rows = a->transitions * a->most_rows;
  int32_t *taken = fetched(g, a->transitions * 4, b->rows);
  uint8_t *action = fetched(g, rows, b->action), *last = fetched(g, a->transitions, b->last);
  float *state = fetched(g, rows * INPUTS * 4, b->state), *log_probability = fetched(g, rows * 4, b->log_probability),
        *reward = fetched(g, a->transitions * 4, b->reward), *advantage = fetched(g, a->transitions * 4, b->advantage),
        *target = fetched(g, a->transitions * 4, b->target);
  assert_memory_equal(taken, a->rows, (size_t)a->transitions * 4);
  if (!cpu->rollout->saving) {
    assert_memory_equal(last, cpu->rollout->last, (size_t)a->transitions);
    assert_true(largest(a->transitions, reward, cpu->rollout->reward) < 40 * tolerance);
  }
  for (int64_t t = 0; t < a->transitions; t++) {
    int64_t first = t * a->most_rows;
    assert_memory_equal(action + first, a->action + first, (size_t)taken[t]);
    assert_true(largest(taken[t] * INPUTS, state + first * INPUTS, a->state + first * INPUTS) < tolerance);
    assert_true(largest(taken[t], log_probability + first, a->log_probability + first) < tolerance);
  }
  assert_true(largest(a->transitions, advantage, a->advantage) < 1000 * tolerance);
  assert_true(largest(a->transitions, target, a->target) < 1000 * tolerance);
  assert_int_equal(cpu->rollout->finished_count, cuda->rollout->finished_count);
  for (int64_t k = 0; k < cpu->rollout->finished_count; k++) {
    assert_int_equal(cpu->rollout->finished[k].number, cuda->rollout->finished[k].number);
    assert_int_equal(cpu->rollout->finished[k].iterations, cuda->rollout->finished[k].iterations);
    assert_true(fabs(cpu->rollout->finished[k].total - cuda->rollout->finished[k].total) < 40 * tolerance);
  }
  compare_lanes(cpu, cuda, 1e-6);
  void *memory[] = {taken, action, last, state, log_probability, reward, advantage, target};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) free(memory[k]);
  ht_trainer_destroy(cpu);
  ht_trainer_destroy(cuda);
}

static void transitions_are_those_of_the_cpu(void **state) {
  (void)state;
  static const char *const few[][2] = {{"update", "48"}, {NULL, NULL}},
                           *const picked[][2] = {{"update", "48"}, {"tiles", "3"}, {"rhs", "random"}, {NULL, NULL}},
                           *const whole[][2] = {{"update", "240"}, {"rtol", "1e-2"}, {"seed", "5"}, {NULL, NULL}},
                           *const wide[][2] = {{"update", "48"}, {"tiles", "31"}, {"hidden", "30"}, {NULL, NULL}};
  const double tolerance = 1e-5;
  gpu g = gpu_open();
  ht_matrix *matrix[3];
  generate(&g, "stencil2d size=18 coefficients=lognormal", &matrix[0]); /* 324: 6 tiles, the last not whole */
  generate(&g, "stencil2d size=45", &matrix[1]);                        /* 2025: 32 tiles */
  generate(&g, "stencil2d size=5", &matrix[2]);
  compare_transitions(&g, 1, matrix, few, tolerance);
  compare_transitions(&g, 1, matrix, picked, tolerance);
  compare_transitions(&g, 1, matrix, whole, tolerance);
  compare_transitions(&g, 1, matrix + 1, wide, tolerance);
  compare_transitions(&g, 3, matrix, picked, tolerance);
  for (int k = 0; k < 3; k++) ht_matrix_destroy(matrix[k]);
  gpu_close(&g);
}

/* Whole episodes, residuals made true on the way or not: the loosest tolerance ends them before roundoff shows. What is read by one draw
 * for all tiles is one level nearly everywhere, by which both price alike; with tilecsc they do so whatever is read. */
static void whole_episodes_are_those_of_the_cpu(void **state) {
  (void)state;
  static const char *const ways[][5][2] = {{{"format", "tilecsc"}, {"rtol", "0.02"}, {"update", "48"}, {NULL, NULL}},
                                           {{"format", "tilecsc"}, {"rtol", "0.02"}, {"update", "240"}, {"rhs", "ones"}, {NULL, NULL}},
                                           {{"format", "tilecsc"}, {"rtol", "0.05"}, {"tiles", "3"}, {"replace", "no"}, {NULL, NULL}},
                                           {{"format", "split"}, {"rtol", "0.02"}, {"update", "48"}, {NULL, NULL}},
                                           {{"format", "split"}, {"rtol", "0.02"}, {"update", "240"}, {"rhs", "ones"}, {NULL, NULL}}};
  gpu g = gpu_open();
  ht_matrix *matrix[3];
  generate(&g, "stencil3d size=8 points=27 coefficients=lognormal", &matrix[0]); /* 512: 8 tiles */
  generate(&g, "stencil3d size=11 points=7", &matrix[1]);                        /* 1331: 21 tiles, the last not whole */
  generate(&g, "elasticity3d size=5", &matrix[2]);                               /* three unknowns a node */
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    const char *options[8][2] = {{"reward", "time"}};
    for (int i = 0; ways[k][i][0]; i++) memcpy(options[i + 1], ways[k][i], sizeof *options);
    for (int m = 0; m < 3; m++) compare_transitions(&g, 1, matrix + m, (const char *const(*)[2])options, 1e-5);
    compare_transitions(&g, 3, matrix, (const char *const(*)[2])options, 1e-5);
  }
  for (int k = 0; k < 3; k++) ht_matrix_destroy(matrix[k]);
  gpu_close(&g);
}

static void compare_judgements(gpu *g, ht_matrix *a, const char *const (*options)[2]) {
  ht_trainer *cpu = prepared(g, "cpu", 1, &a, options), *cuda = prepared(g, "cuda", 1, &a, options);
  for (int64_t k = 0; k < cpu->ppo->weights; k++) /* decisions that are clear, and change with the state */
    cpu->deployed.weights[k] = cuda->deployed.weights[k] = 3 * cpu->network.weights[k] + 0.3F * (float)ht_random_uniform(9, (uint64_t)k);
  ht_packed_load(&cpu->deployed_packed, &cpu->deployed);
  if (cpu->rollout->saving) { /* by the CPU's prices */
    cuda->saving[0]->facts = cpu->saving[0]->facts;
    cuda->saving[0]->price[0].look = cpu->saving[0]->price[0].look;
  }
  for (int64_t interval = 1; interval <= 8; interval *= 4) {
    ht_judgement x, y;
    ht_judge(cpu->rollout, &cpu->deployed_packed, 0, interval, &x);
    OK(ht_device_judge(cuda, 0, interval, &y));
    printf("interval %lld: %lld and %lld iterations, time %.4f and %.4f, shares %.3f %.3f %.3f and %.3f %.3f %.3f\n", (long long)interval,
           (long long)x.iterations, (long long)y.iterations, x.time, y.time, x.share[0], x.share[1], x.share[2], y.share[0], y.share[1],
           y.share[2]);
    assert_int_equal(x.reached, y.reached);
    assert_true(fabs((double)(x.iterations - y.iterations)) <= 1 + 0.05 * (double)x.iterations);
    assert_true(fabs(x.time - y.time) < 0.08 * x.time);
    for (int level = 0; level < HT_LEVELS; level++) assert_true(fabs(x.share[level] - y.share[level]) < 0.05);
    assert_true(fabs(y.share[0] + y.share[1] + y.share[2] - 1) < 1e-12);
  }
  ht_trainer_destroy(cpu);
  ht_trainer_destroy(cuda);
}

/* Loose enough that no solve comes near its last iteration, which roundoff in FP64's solve moves. */
static void judgements_are_those_of_the_cpu(void **state) {
  (void)state;
  static const char *const paper[][2] = {{"rtol", "1e-6"}, {NULL, NULL}},
                           *const tiles[][2] = {{"reward", "time"}, {"format", "tilecsc"}, {"rtol", "1e-6"}, {NULL, NULL}},
                           *const split[][2] = {{"reward", "time"}, {"format", "split"}, {"rtol", "1e-6"}, {NULL, NULL}};
  gpu g = gpu_open();
  ht_matrix *a, *cube;
  generate(&g, "stencil2d size=18 coefficients=lognormal", &a);
  generate(&g, "stencil3d size=11 points=27", &cube);
  compare_judgements(&g, a, paper);
  compare_judgements(&g, cube, tiles);
  compare_judgements(&g, cube, split);
  ht_matrix_destroy(a);
  ht_matrix_destroy(cube);
  gpu_close(&g);
}

/* ---- whole trainings ---- */

/* Without a competition. */
static ht_trainer *trainer(gpu *g, const char *reward, const char *backend, const char *episodes, const ht_matrix *a) {
  const char *const options[][2] = {{"reward", reward}, {"patience", "0"}, {"update", "256"},
                                    {"epochs", "3"},    {"lanes", "16"},   {"compete", "no"}};
  ht_trainer *t;
  OK(ht_trainer_create(g->ctx, &t));
  for (size_t k = 0; k < sizeof options / sizeof *options; k++) OK(ht_trainer_set_option(t, options[k][0], options[k][1]));
  OK(ht_trainer_set_option(t, "backend", backend));
  OK(ht_trainer_set_option(t, "episodes", episodes));
  OK(ht_trainer_add_matrix(t, a, "generated"));
  return t;
}

static void *state_of(ht_trainer *t, int64_t *size) {
  const void *bytes;
  OK(ht_trainer_state(t, &bytes, size));
  void *copy = malloc((size_t)*size);
  assert_non_null(copy);
  memcpy(copy, bytes, (size_t)*size);
  return copy;
}

/* Twice as it is, and once stopped on the way. */
static void has_one_result(gpu *g, const char *reward, const ht_matrix *a) {
  ht_train_report r;
  void *bytes[3];
  int64_t size[3], early_size;
  for (int k = 0; k < 3; k++) {
    ht_trainer *t = trainer(g, reward, "cuda", "60", a), *early = trainer(g, reward, "cuda", "25", a);
    if (k == 2) {
      OK(ht_trainer_run(early, &r));
      void *half_way = state_of(early, &early_size);
      OK(ht_trainer_resume(t, half_way, early_size));
      free(half_way);
    }
    OK(ht_trainer_run(t, &r));
    assert_string_equal(r.outcome, "finished");
    assert_string_equal(r.backend, "cuda");
    assert_true(r.episodes >= 60 && r.missed == 0 && isfinite(r.return_last));
    bytes[k] = state_of(t, &size[k]);
    ht_trainer_destroy(t);
    ht_trainer_destroy(early);
  }
  for (int k = 1; k < 3; k++) {
    assert_int_equal(size[k], size[0]);
    assert_memory_equal(bytes[k], bytes[0], (size_t)size[0]);
  }
  for (int k = 0; k < 3; k++) free(bytes[k]);
}

static void a_training_has_one_result_and_goes_on(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *small, *large; /* whose solves take a block each, or more */
  generate(&g, "stencil2d size=14 coefficients=lognormal", &small);
  generate(&g, "stencil3d size=11 points=27", &large);
  has_one_result(&g, "paper", small);
  has_one_result(&g, "paper", large);
  has_one_result(&g, "time", small);
  has_one_result(&g, "time", large);
  ht_matrix_destroy(small);
  ht_matrix_destroy(large);
  gpu_close(&g);
}

/* What one backend has begun the other takes up. */
static void states_move_between_backends(void **state) {
  (void)state;
  static const char *const backend[] = {"cpu", "cuda"}, *const reward[] = {"paper", "time"};
  gpu g = gpu_open();
  ht_matrix *a;
  ht_train_report r;
  generate(&g, "stencil2d size=14 coefficients=lognormal", &a);
  for (int k = 0; k < 4; k++) {
    int64_t size, again_size;
    const char *by = reward[k / 2], *one = backend[k % 2], *other = backend[1 - k % 2];
    ht_trainer *from = trainer(&g, by, one, "25", a), *to = trainer(&g, by, other, "60", a), *same = trainer(&g, by, other, "60", a);
    OK(ht_trainer_run(from, &r));
    void *bytes = state_of(from, &size);
    OK(ht_trainer_resume(same, bytes, size));
    void *again = state_of(same, &again_size);
    assert_int_equal(again_size, size);
    assert_int_equal(same->at.updates, from->at.updates);
    assert_memory_equal(same->network.weights, from->network.weights, (size_t)from->ppo->weights * sizeof(float));
    OK(ht_trainer_resume(to, bytes, size));
    OK(ht_trainer_run(to, &r));
    assert_true(r.episodes >= 60 && r.missed == 0);
    free(bytes), free(again);
    ht_trainer_destroy(from);
    ht_trainer_destroy(to);
    ht_trainer_destroy(same);
  }
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* By the clock, on the device. What is kept is the fastest but for what the clock's noise may be. */
static void policies_compete_on_the_device(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a;
  ht_train_report r;
  int64_t size;
  const void *bytes;
  ht_learned *learned;
  generate(&g, "stencil2d size=60 coefficients=lognormal", &a);
  ht_trainer *t = trainer(&g, "paper", "cuda", "40", a);
  OK(ht_trainer_set_option(t, "compete", "yes"));
  OK(ht_trainer_run(t, &r));
  OK(ht_trainer_policy(t, &bytes, &size));
  OK(ht_learned_parse(g.ctx, bytes, size, "kept", &learned));
  const double time[HT_RIVALS_FIXED] = {r.time_network, 1, r.time_f32, r.time_16};
  int best = 0;
  while (best < HT_RIVALS_FIXED - 1 && strcmp(r.chosen, ht_rival_name(best)) != 0) best++;
  assert_string_equal(learned->chosen, ht_rival_name(best));
  assert_non_null(strstr(r.contest, "measured on cuda"));
  for (int k = 0; k < HT_RIVALS_FIXED; k++) assert_true(time[k] > 0.2 && time[k] < 5 && time[best] <= 1.25 * time[k]);
  ht_learned_release(g.ctx, learned);
  ht_trainer_destroy(t);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

static ht_status compete(gpu *g, const ht_matrix *a, const char *backend, const char *const options[3][2], ht_train_report *r) {
  ht_trainer *t;
  OK(ht_trainer_create(g->ctx, &t));
  OK(ht_trainer_set_option(t, "backend", backend));
  OK(ht_trainer_set_option(t, "episodes", "8"));
  for (int k = 0; k < 3; k++) OK(ht_trainer_set_option(t, options[k][0], options[k][1]));
  OK(ht_trainer_add_matrix(t, a, "a"));
  ht_status status = ht_trainer_run(t, r);
  ht_trainer_destroy(t);
  return status;
}

/* What a device does not learn is learned on the CPU, and competes on the device by the clock as what is learned there; by itself where the
 * solver would take the device, and nothing else is asked for. Where there is nothing to do on the device it is refused. */
static void what_is_learned_competes_on_the_device(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *small, *large;
  ht_train_report r;
  generate(&g, "stencil2d size=30 coefficients=lognormal", &small);
  generate(&g, "stencil2d size=64 coefficients=lognormal", &large); /* 20,224 nonzeros */
  static const struct {
    const char *option[3][2], *learns;
  } ways[] = {{{{"reward", "time"}, {"state", "paper"}, {"format", "split"}}, "cuda"},
              {{{"reward", "time"}, {"state", "paper"}, {"format", "tilecsc"}}, "cuda"},
              {{{"reward", "time"}, {"state", "features"}, {"precond", "jacobi"}}, "cpu"},
              {{{"reward", "paper"}, {"format", "split"}, {"compete", "yes"}}, "cpu"}};
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    OK(compete(&g, small, "cuda", ways[k].option, &r));
    assert_string_equal(r.backend, ways[k].learns);
    if (!strstr(r.contest, "measured on cuda")) fail_msg("way %zu: %s", k, r.contest);
    OK(compete(&g, small, "auto", ways[k].option, &r));
    assert_non_null(strstr(r.contest, "by the model of cpu"));
    OK(compete(&g, large, "auto", ways[k].option, &r));
    assert_string_equal(r.backend, ways[k].learns);
    if (!strstr(r.contest, "measured on cuda")) fail_msg("way %zu: %s", k, r.contest);
    OK(compete(&g, large, "cpu", ways[k].option, &r));
    assert_non_null(strstr(r.contest, "by the model of cpu"));
  }
  static const char *const measured[3][2] = {{"reward", "time"}, {"price", "time"}, {"format", "tilecsc"}};
  OK(compete(&g, small, "cuda", measured, &r));
  assert_string_equal(r.backend, "cuda");
  assert_int_equal(compete(&g, small, "cpu", measured, &r), HT_BAD_OPTION);
  static const char *const wide[3][2] = {{"reward", "time"}, {"hidden", "65"}, {"tiles", "33"}}; /* more than a device learns */
  OK(compete(&g, small, "cuda", wide, &r));
  assert_string_equal(r.backend, "cpu");
  assert_non_null(strstr(r.contest, "measured on cuda"));
  static const char *const idle[][3][2] = {{{"reward", "time"}, {"compete", "yes"}, {"judge", "model"}},
                                           {{"reward", "paper"}, {"compete", "yes"}, {"judge", "model"}}};
  for (size_t k = 0; k < sizeof idle / sizeof *idle; k++) assert_int_equal(compete(&g, small, "cuda", idle[k], &r), HT_UNSUPPORTED);
  ht_matrix_destroy(small);
  ht_matrix_destroy(large);
  gpu_close(&g);
}

static void it_refuses_what_it_cannot_do(void **state) {
  (void)state;
  static const char *const options[][2] = {{"format", "split"}, {"replace", "yes"}, {"hidden", "65"}, {"tiles", "33"}};
  gpu g = gpu_open();
  ht_matrix *a;
  ht_train_report r;
  generate(&g, "stencil2d size=50", &a); /* 40 tiles */
  for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
    ht_trainer *t = trainer(&g, "paper", "cuda", "5", a);
    OK(ht_trainer_set_option(t, options[k][0], options[k][1]));
    assert_int_equal(ht_trainer_run(t, &r), HT_UNSUPPORTED);
    OK(ht_trainer_set_option(t, "backend", "auto")); /* which takes the CPU then */
    if (k > 1) OK(ht_trainer_run(t, &r));
    if (k > 1) assert_string_equal(r.backend, "cpu");
    ht_trainer_destroy(t);
  }
  ht_matrix_destroy(a);
  gpu_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_those_of_the_cpu),
      cmocka_unit_test(updates_are_those_of_the_cpu),
      cmocka_unit_test(no_step_goes_to_nowhere),
      cmocka_unit_test(transitions_are_those_of_the_cpu),
      cmocka_unit_test(whole_episodes_are_those_of_the_cpu),
      cmocka_unit_test(judgements_are_those_of_the_cpu),
      cmocka_unit_test(a_training_has_one_result_and_goes_on),
      cmocka_unit_test(states_move_between_backends),
      cmocka_unit_test(it_refuses_what_it_cannot_do),
      cmocka_unit_test(policies_compete_on_the_device),
      cmocka_unit_test(what_is_learned_competes_on_the_device),
  };
  if (!gpu_present()) return GPU_SKIPPED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
