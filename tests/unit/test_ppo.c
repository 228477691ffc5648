/* The loss of proximal policy optimisation and its gradient, against the same in double by finite differences; Adam's step; the dense
 * products. With --dump FILE: a batch and what is made of it, for tests/unit/check_ppo.py. SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "train/dense.h"
#include "train/initialise.h"
#include "train/ppo.h"

#ifndef PPO_SHAPE /* test_ppo_window.c has another */
enum { INPUTS = 10, HIDDEN = 12, ACTIONS = 3, TRANSITIONS = 21, TILES = 3 };
#endif
enum { HEADS = ACTIONS + 1, MOST_WEIGHTS = (INPUTS + HIDDEN + HEADS + 2) * HIDDEN + HEADS };

typedef struct fixture {
  ht_context *ctx;
  ht_network net;
  ht_ppo *ppo;
  ht_ppo_batch batch;
  uint32_t order[TRANSITIONS];
} fixture;

static const ht_ppo_settings SETTINGS = {0.2, 0.25, 0.02, 1e-2, 0.5, 3, TRANSITIONS, 0, 0};

static void fill_batch(fixture *f) {
  static int32_t rows[TRANSITIONS];
  static float advantage[TRANSITIONS], target[TRANSITIONS], state[TRANSITIONS * TILES * INPUTS], old[TRANSITIONS * TILES];
  static uint8_t action[TRANSITIONS * TILES];
  f->batch = (ht_ppo_batch){TRANSITIONS, TILES, rows, advantage, target, state, action, old};
  for (int t = 0; t < TRANSITIONS; t++) {
    f->order[t] = (uint32_t)t;
    rows[t] = 1 + t % TILES;
    advantage[t] = (float)ht_random_uniform(1, (uint64_t)t);
    target[t] = 2 * (float)ht_random_uniform(2, (uint64_t)t);
  }
  for (int i = 0; i < TRANSITIONS * TILES * INPUTS; i++) state[i] = (float)ht_random_uniform(3, (uint64_t)i);
  for (int i = 0; i < TRANSITIONS * TILES; i++) { /* ratios on both sides of the clip */
    action[i] = (uint8_t)(ht_random_bits(4, (uint64_t)i) % ACTIONS);
    old[i] = -logf((float)ACTIONS) + 0.5f * (float)ht_random_uniform(5, (uint64_t)i);
  }
}

static int set_up(void **state) {
  static fixture f;
  f = (fixture){.net = {INPUTS, HIDDEN, ACTIONS, NULL}};
  assert_int_equal(ht_context_create(&f.ctx), HT_OK);
  int64_t size = ht_network_size(INPUTS, HIDDEN, ACTIONS);
  assert_int_equal(ht_allocate(f.ctx, size, sizeof(float), &f.net.weights), HT_OK);
  assert_int_equal(ht_network_initialise(f.ctx, 7, &f.net), HT_OK);
  for (int64_t i = 0; i < size; i++) f.net.weights[i] += 0.1f * (float)ht_random_uniform(6, (uint64_t)i);
  assert_int_equal(ht_ppo_create(f.ctx, &SETTINGS, &f.net, TRANSITIONS, TILES, &f.ppo), HT_OK);
  fill_batch(&f);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  ht_ppo_destroy(f->ppo);
  ht_release(f->ctx, f->net.weights);
  ht_context_destroy(f->ctx);
  return 0;
}

/* ---- the same in double, written plainly ---- */

static const double *layer(const double *w, int inputs, int outputs, int relu, const double *x, double *y) {
  for (int o = 0; o < outputs; o++) {
    y[o] = w[inputs * outputs + o];
    for (int i = 0; i < inputs; i++) y[o] += w[o * inputs + i] * x[i];
    if (relu && y[o] < 0) y[o] = 0;
  }
  return w + (inputs + 1) * outputs;
}

static double cost_of(const fixture *f, int row) { return f->batch.action[row] == 0 ? 1 : f->batch.action[row] == 1 ? 0.5 : 0.25; }

static double own_advantage(const fixture *f, int t, int r) {
  double mean = 0, advantage = f->batch.advantage[t];
  for (int k = 0; k < f->batch.rows[t]; k++) mean += cost_of(f, t * TILES + k) / f->batch.rows[t];
  return advantage + f->ppo->settings.own_cost * (mean - cost_of(f, t * TILES + r)) / f->ppo->deviation;
}

/* policy: the weight of its part, by that of the entropy. */
static double tile_term(const fixture *f, int row, double advantage, double policy, const double *logits) {
  double sum = 0, entropy = 0;
  for (int a = 0; a < ACTIONS; a++) sum += exp(logits[a]);
  for (int a = 0; a < ACTIONS; a++) entropy -= exp(logits[a]) / sum * (logits[a] - log(sum));
  double ratio = exp(logits[f->batch.action[row]] - log(sum) - f->batch.log_probability[row]);
  double bounded = fmin(fmax(ratio, 1 - SETTINGS.clip), 1 + SETTINGS.clip);
  return -policy * fmin(ratio * advantage, bounded * advantage) - SETTINGS.entropy_weight * entropy;
}

static double loss_in_double(const fixture *f, const double *weights) {
  double loss = 0;
  for (int t = 0; t < TRANSITIONS; t++) {
    double value = 0, policy = 0;
    for (int r = 0; r < f->batch.rows[t]; r++) {
      double x[INPUTS], h1[HIDDEN], h2[HIDDEN], logits[ACTIONS], v;
      for (int i = 0; i < INPUTS; i++) x[i] = f->batch.state[(t * TILES + r) * INPUTS + i];
      const double *w = layer(weights, INPUTS, HIDDEN, 1, x, h1);
      w = layer(w, HIDDEN, HIDDEN, 1, h1, h2);
      w = layer(w, HIDDEN, ACTIONS, 0, h2, logits);
      layer(w, HIDDEN, 1, 0, h2, &v);
      double part = f->ppo->settings.summed ? f->batch.rows[t] : 1;
      policy += tile_term(f, t * TILES + r, own_advantage(f, t, r), part, logits) / f->batch.rows[t];
      value += v / f->batch.rows[t];
    }
    loss += (policy + SETTINGS.value_weight * (value - f->batch.target[t]) * (value - f->batch.target[t])) / TRANSITIONS;
  }
  return loss;
}

/* ---- tests ---- */

/* Each weight's sum runs over up to 63 tiles and a few terms each, of size about 1. */
static const double TOLERANCE = 64 * 8 * (double)FLT_EPSILON / 2;

static void check_gradients(fixture *f) {
  int64_t size = f->ppo->weights, kinks = 0;
  double weights[MOST_WEIGHTS], tolerance = TOLERANCE * (f->ppo->settings.summed ? TILES : 1);
  ht_ppo_loss loss;
  for (int64_t i = 0; i < size; i++) weights[i] = f->net.weights[i];
  ht_ppo_gradient(f->ppo, &f->batch, TRANSITIONS, f->order, &loss);
  double whole = loss_in_double(f, weights);
  assert_true(fabs(loss.total - whole) < tolerance);
  assert_true(loss.clipped > 0.1 && loss.clipped < 0.9);
  for (int64_t i = 0; i < size; i++) {
    const double step = 1e-6; /* cube root of the unit roundoff, about */
    double at = weights[i];
    weights[i] = at + step;
    double above = loss_in_double(f, weights);
    weights[i] = at - step;
    double below = loss_in_double(f, weights);
    weights[i] = at;
    if (fabs((above - whole) - (whole - below)) > 1e-8) {
      kinks++; /* a ReLU or the clip between the two */
      continue;
    }
    assert_true(fabs((above - below) / (2 * step) - f->ppo->gradient[i]) < tolerance);
  }
  assert_true(kinks < size / 50);
}

static void gradients_are_those_of_the_loss(void **state) { check_gradients(*state); }

/* Summed over up to TILES tiles: as many times the terms. */
static void so_are_those_of_the_sum_over_tiles(void **state) {
  fixture *f = *state;
  f->ppo->settings.summed = 1;
  check_gradients(f);
}

static void so_are_those_with_each_tile_s_own_cost(void **state) {
  fixture *f = *state;
  f->ppo->settings.own_cost = 0.8;
  f->ppo->deviation = 1.7;
  check_gradients(f);
}

static void gradients_do_not_depend_on_threads(void **state) {
  fixture *f = *state;
  float first[MOST_WEIGHTS];
  ht_ppo_loss loss;
  for (int threads = 1; threads <= 3; threads++) {
    assert_int_equal(ht_context_set_threads(f->ctx, threads), HT_OK);
    ht_ppo_gradient(f->ppo, &f->batch, TRANSITIONS, f->order, &loss);
    if (threads == 1) memcpy(first, f->ppo->gradient, (size_t)f->ppo->weights * sizeof *first);
    assert_memory_equal(first, f->ppo->gradient, (size_t)f->ppo->weights * sizeof *first);
  }
}

static void a_large_gradient_is_cut(void **state) {
  fixture *f = *state;
  for (int64_t i = 0; i < f->ppo->weights; i++) f->ppo->gradient[i] = 1000;
  ht_ppo_step(f->ppo);
  double each = SETTINGS.gradient_clip / sqrt((double)f->ppo->weights);
  for (int64_t i = 0; i < f->ppo->weights; i++) assert_true(fabs(f->ppo->first[i] - 0.1 * each) < 1e-6 * each);
}

static void no_step_goes_to_nowhere(void **state) {
  fixture *f = *state;
  float before = f->net.weights[0];
  f->ppo->gradient[5] = NAN;
  ht_ppo_step(f->ppo);
  assert_true(f->net.weights[0] == before && f->ppo->steps == 0);
}

/* A loss that a step along the gradient does not make smaller has the wrong sign somewhere. */
static void updates_make_the_loss_smaller(void **state) {
  fixture *f = *state;
  ht_ppo_loss first, loss, last;
  ht_ppo_gradient(f->ppo, &f->batch, TRANSITIONS, f->order, &first);
  for (int k = 0; k < 20; k++) ht_ppo_update(f->ppo, &f->batch, (uint64_t)k, &loss);
  ht_ppo_gradient(f->ppo, &f->batch, TRANSITIONS, f->order, &last);
  assert_true(last.value < first.value / 2);
  assert_true(last.policy < first.policy);
}

static void dense_products_are_the_same_everywhere(void **state) {
  enum { M = 8, N = 32, K = 67 };
  static float a[M * K], b[K * N], c[2][M * N];
  (void)state;
  for (int i = 0; i < M * K; i++) a[i] = (float)ht_random_uniform(1, (uint64_t)i);
  for (int i = 0; i < K * N; i++) b[i] = (float)ht_random_uniform(2, (uint64_t)i);
  ht_dense_multiply(M, N, K, a, K, 1, b, N, c[0], N);
  ht_dense_multiply_portable(M, N, K, a, K, 1, b, N, c[1], N);
  assert_memory_equal(c[0], c[1], sizeof c[0]);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < K; k++) sum += (double)a[i * K + k] * b[k * N + j];
      assert_true(fabs(sum - c[0][i * N + j]) < K * (double)FLT_EPSILON * K);
    }
}

static void initial_weights_are_orthogonal(void **state) {
  (void)state;
  fixture f = {.net = {INPUTS, HIDDEN, ACTIONS, NULL}};
  float weights[MOST_WEIGHTS];
  assert_int_equal(ht_context_create(&f.ctx), HT_OK);
  f.net.weights = weights;
  assert_int_equal(ht_network_initialise(f.ctx, 3, &f.net), HT_OK);
  for (int i = 0; i < INPUTS; i++) /* more rows than columns: the columns are orthogonal */
    for (int j = 0; j <= i; j++) {
      double dot = 0;
      for (int o = 0; o < HIDDEN; o++) dot += (double)weights[o * INPUTS + i] * weights[o * INPUTS + j];
      assert_true(fabs(dot - (i == j ? 2 : 0)) < HIDDEN * (double)FLT_EPSILON);
    }
  ht_context_destroy(f.ctx);
}

/* ---- for the independent check ---- */

static void put(FILE *file, const char *name, int64_t count, const float *v) {
  fprintf(file, "%s", name);
  for (int64_t i = 0; i < count; i++) fprintf(file, " %.9g", (double)v[i]);
  fputc('\n', file);
}

static int dump(const char *path) {
  fixture *f;
  ht_ppo_loss loss;
  FILE *file = fopen(path, "w");
  float rows[TRANSITIONS], actions[TRANSITIONS * TILES];
  if (!file) return 1;
  set_up((void **)&f);
  for (int t = 0; t < TRANSITIONS; t++) rows[t] = (float)f->batch.rows[t];
  for (int i = 0; i < TRANSITIONS * TILES; i++) actions[i] = f->batch.action[i];
  fprintf(file, "shape %d %d %d %d %d\n", INPUTS, HIDDEN, ACTIONS, TRANSITIONS, TILES);
  fprintf(file, "settings %.17g %.17g %.17g %.17g %.17g\n", SETTINGS.clip, SETTINGS.value_weight, SETTINGS.entropy_weight,
          SETTINGS.learning_rate, SETTINGS.gradient_clip);
  put(file, "rows", TRANSITIONS, rows);
  put(file, "advantage", TRANSITIONS, f->batch.advantage);
  put(file, "target", TRANSITIONS, f->batch.target);
  put(file, "state", TRANSITIONS * TILES * INPUTS, f->batch.state);
  put(file, "action", TRANSITIONS * TILES, actions);
  put(file, "old", TRANSITIONS * TILES, f->batch.log_probability);
  put(file, "weights", f->ppo->weights, f->net.weights);
  ht_ppo_gradient(f->ppo, &f->batch, TRANSITIONS, f->order, &loss);
  ht_ppo_step(f->ppo);
  fprintf(file, "loss %.17g %.17g %.17g %.17g\n", loss.total, loss.policy, loss.value, loss.entropy);
  put(file, "gradient", f->ppo->weights, f->ppo->gradient);
  put(file, "after", f->ppo->weights, f->net.weights);
  tear_down((void **)&f);
  return fclose(file);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--dump")) return dump(argv[2]);
  const struct CMUnitTest tests[] = {TEST(gradients_are_those_of_the_loss),
                                     TEST(so_are_those_of_the_sum_over_tiles),
                                     TEST(so_are_those_with_each_tile_s_own_cost),
                                     TEST(gradients_do_not_depend_on_threads),
                                     TEST(a_large_gradient_is_cut),
                                     TEST(no_step_goes_to_nowhere),
                                     TEST(updates_make_the_loss_smaller),
                                     cmocka_unit_test(dense_products_are_the_same_everywhere),
                                     cmocka_unit_test(initial_weights_are_orthogonal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
