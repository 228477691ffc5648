/* How a learned policy decides: the network against plain sums in double, levels from the direction, features.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include "halftone/precision.h"
#include "policy/features.h"
#include "policy/policy.h"
#include "support/learned.h"

enum { SAY_64, SAY_32, SAY_16 };

static int open_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

/* y = W x + b in double; error: what rounding to FP32 may have changed, of x on entry, of y on return. */
static const float *reference_layer(const float *w, int inputs, int outputs, int relu, const double *x, double *y, double *error) {
  for (int o = 0; o < outputs; o++) {
    double sum = w[inputs * outputs + o], size = fabs(sum), carried = 0;
    for (int i = 0; i < inputs; i++) {
      sum += (double)w[o * inputs + i] * x[i];
      size += fabs(w[o * inputs + i] * x[i]);
      carried += fabs(w[o * inputs + i]) * error[i];
    }
    y[o] = relu && sum < 0 ? 0 : sum;
    error[HT_NETWORK_MOST_HIDDEN + o] = carried + (inputs + 1) * 1.01 * (FLT_EPSILON / 2) * (size + carried);
  }
  memmove(error, error + HT_NETWORK_MOST_HIDDEN, (size_t)outputs * sizeof *error);
  return w + inputs * outputs + outputs;
}

static void test_network(void **state) {
  enum { ROWS = 37, HIDDEN = 19 };
  ht_learned *l = learned_random(*state, HT_LEARNED_TILES, HIDDEN, 1, 5);
  const ht_network *net = &l->network;
  float *inputs = malloc(ROWS * 64 * sizeof *inputs), logits[ROWS * 3], again[ROWS * 3], value[ROWS];
  random_stream s = {8};
  for (int i = 0; i < ROWS * 64; i++) inputs[i] = (float)random_signed(&s);
  ht_network_forward(net, ROWS, inputs, logits, value);
  for (int r = 0; r < ROWS; r++) {
    double x[64], y[HT_NETWORK_MOST_HIDDEN], z[HT_NETWORK_MOST_HIDDEN], out[3], error[2 * HT_NETWORK_MOST_HIDDEN] = {0},
                                                                                          same[2 * HT_NETWORK_MOST_HIDDEN];
    for (int i = 0; i < 64; i++) x[i] = inputs[64 * r + i];
    const float *w = reference_layer(net->weights, 64, HIDDEN, 1, x, y, error);
    w = reference_layer(w, HIDDEN, HIDDEN, 1, y, z, error);
    memcpy(same, error, sizeof same);
    w = reference_layer(w, HIDDEN, 3, 0, z, out, error);
    for (int a = 0; a < 3; a++) assert_true(fabs(out[a] - logits[3 * r + a]) <= error[a]);
    reference_layer(w, HIDDEN, 1, 0, z, out, same);
    assert_true(fabs(out[0] - value[r]) <= same[0]);
    ht_network_forward(net, 1, inputs + 64 * r, again, NULL); /* alone: the same bits */
    assert_memory_equal(again, logits + 3 * r, 3 * sizeof *again);
  }
  free(inputs);
  ht_learned_release(*state, l);
}

/* Facts of a matrix that streams four times the cache, and of one that has nothing to choose. */
static ht_policy_facts facts_of(int in_cache, double exact, int device) {
  return (ht_policy_facts){.levels = 1,
                           .device = device,
                           .bytes_streamed = 3.3e8,
                           .bytes_vectors = 6e7,
                           .bytes_level = {7e7, 1.2e8, 2.7e8},
                           .nonzeros = 2.7e7,
                           .nonzeros_per_row = 27,
                           .unknowns_per_node = 1,
                           .cache_bytes = in_cache ? 1e9 : 8e7,
                           .share_exact_16 = exact,
                           .share_exact_32 = exact,
                           .error_16 = 1e-5,
                           .error_32 = 1e-9};
}

static void create(ht_context *ctx, ht_learned *l, ht_policy *policy) {
  char path[] = "/tmp/halftone-policy-XXXXXX", why[256];
  ht_policy_options options = {.budget_eta = 0.01};
  ht_policy_facts facts = facts_of(0, 0, 0);
  int file = mkstemp(path);
  assert_true(file >= 0 && !close(file));
  assert_int_equal(learned_write(ctx, l, path), 0);
  snprintf(options.policy, sizeof options.policy, "learned:%s", path);
  assert_int_equal(ht_policy_create(ctx, &options, &facts, NULL, policy, why), HT_OK);
  assert_true(strlen(why) > 0 && !strncmp(policy->name, "learned:halftone-policy-", 24));
  remove(path);
  ht_learned_release(ctx, l);
}

static void view_of(const double *p, int64_t blocks, double *norm2, ht_policy_view *view) {
  for (int64_t b = 0; b < blocks; b++) {
    norm2[b] = 0;
    for (int i = 0; i < 64; i++) norm2[b] += p[64 * b + i] * p[64 * b + i];
  }
  *view = (ht_policy_view){.blocks = blocks, .direction = p, .direction_norm2 = norm2};
}

/* Each block for itself, whatever its scale; weights are those of 16 bits. */
static void test_tiles(void **state) {
  enum { BLOCKS = 50 };
  static double p[64 * BLOCKS], norm2[BLOCKS];
  uint8_t level[BLOCKS], scaled[BLOCKS];
  int count[HT_LEVELS] = {0};
  ht_policy policy;
  ht_policy_view view;
  create(*state, learned_random(*state, HT_LEARNED_TILES, 16, 8, 11), &policy);
  const ht_network *net = &policy.learned->network;
  for (int64_t k = 0; k < ht_network_size(64, 16, 3); k++) assert_true(ht_precision_round(HT_F16, net->weights[k]) == net->weights[k]);
  random_vector(4, 64 * BLOCKS, p);
  view_of(p, BLOCKS, norm2, &view);
  policy.decide(&policy, &view, level);
  for (int b = 0; b < BLOCKS; b++) {
    count[level[b]]++;
    float one[64], logits[3];
    for (int i = 0; i < 64; i++) one[i] = (float)(p[64 * b + i] / sqrt(norm2[b]));
    ht_network_forward(net, 1, one, logits, NULL);
    int best = logits[1] > logits[0] ? 1 : 0;
    if (logits[2] > logits[best]) best = 2;
    assert_int_equal(level[b], HT_LEVEL_64 - best);
  }
  assert_true((count[0] > 0) + (count[1] > 0) + (count[2] > 0) >= 2);
  for (int i = 0; i < 64 * BLOCKS; i++) p[i] = ldexp(p[i], -90); /* blocks above delta */
  view_of(p, BLOCKS, norm2, &view);
  policy.decide(&policy, &view, scaled);
  assert_memory_equal(level, scaled, BLOCKS);
  ht_policy_release(*state, &policy);
}

/* Of equal scores the most precise wins; a direction of zeros, or one whose squares leave the range, is no trouble. */
static void test_ties_and_extremes(void **state) {
  static const double sizes[] = {0, 1e-300, 1e-31, 1, 1e200, DBL_MAX};
  double p[64], norm2[1];
  uint8_t level;
  ht_policy policy;
  ht_policy_view view;
  create(*state, learned_blank(*state, HT_LEARNED_TILES, 3, 8), &policy);
  for (int k = 0; k < 6; k++) {
    for (int i = 0; i < 64; i++) p[i] = sizes[k];
    view_of(p, 1, norm2, &view);
    level = 77;
    policy.decide(&policy, &view, &level);
    assert_int_equal(level, HT_LEVEL_64);
  }
  learned_bias(policy.learned)[SAY_16] = 1;
  learned_bias(policy.learned)[SAY_32] = 1;
  policy.decide(&policy, &view, &level);
  assert_int_equal(level, HT_LEVEL_32);
  ht_policy_release(*state, &policy);
}

static void test_window(void **state) {
  float feature[HT_FEATURES] = {0};
  ht_policy policy;
  create(*state, learned_always(*state, HT_LEARNED_WINDOW, 3, 8), &policy);
  assert_true(policy.window && !policy.decide && !policy.sees_direction && policy.interval == 8);
  int action = ht_policy_choose_action(&policy, &(ht_policy_look){.feature = feature});
  assert_true(policy.action[action].theta == 0.03 && policy.begins_with == 0);
  ht_policy_release(*state, &policy);
}

static void test_actions(void **state) {
  static const char *const bad[] = {
      "",           "f64,",     "f64,,16",  "f65",    "f64:0.1",   "16:",         "16:0",      "16:1.5",   "16:x",      "16@", "16@0",
      "16@1.5",     "16@5000",  "16@32@32", "budget", "budget:",   "budget:2",    "budget@32", "f32:-0.1", "f32 @32",   "@32", "16:0.03@-1",
      "budget:nan", "rule:0.1", "rule@",    "rules",  "16:inf@32", "budgets:0.1", "f32:0.1x",  "f32@3 2",  "16@32:0.03"};
  ht_learned_action a[HT_NETWORK_MOST_ACTIONS];
  char many[HT_NETWORK_MOST_ACTIONS * 4 + 8] = "f64";
  (void)state;
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, "f64,f32:0.001@128,16:0.03@32,budget:0.1@4096,16,f64@1", a), 6);
  assert_true(a[0].level == HT_LEVEL_64 && a[0].drop == 0 && a[0].window == 0 && a[0].theta == 0);
  assert_true(a[1].level == HT_LEVEL_32 && a[1].drop == 0.001 && a[1].window == 128 && a[1].theta == 0);
  assert_true(a[2].level == HT_LEVEL_16 && a[2].drop == 0.03 && a[2].window == 32);
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, "f64,rule@64,rule", a), 3);
  assert_int_equal(ht_learned_begins_with(3, a), 1);
  assert_true(a[1].rule && a[1].window == 64 && a[1].theta == 0 && a[2].rule && !a[0].rule);
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, "f64,f32:0.001@128,16:0.03@32,budget:0.1@4096,16,f64@1", a), 6);
  assert_true(a[3].theta == 0.1 && a[3].drop == 0 && a[3].window == 4096 && a[4].level == HT_LEVEL_16 && a[5].window == 1);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
    if (ht_learned_actions(HT_LEARNED_WINDOW, bad[k], a)) fail_msg("'%s' was taken", bad[k]);
  assert_int_equal(ht_learned_actions(HT_LEARNED_TILES, "f64,f32,16", a), 3);
  assert_int_equal(ht_learned_actions(HT_LEARNED_TILES, "f64,f32,16@32", a), 0);
  for (int k = 1; k < HT_NETWORK_MOST_ACTIONS; k++) strcat(many, ",16");
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, many, a), HT_NETWORK_MOST_ACTIONS);
  strcat(many, ",16");
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, many, a), 0);
}

/* Where nothing can be saved nothing is looked at: the rule's level, as it is. */
static void test_no_choice(void **state) {
  ht_policy_options options = {.budget_eta = 0.01, .policy = "learned"};
  const struct {
    ht_policy_facts facts;
    int looks;
    ht_level start;
  } cases[] = {{facts_of(0, 0, 0), 1, HT_LEVEL_64},
               {facts_of(0, 0, 1), 0, HT_LEVEL_16}, /* learned for CPUs */
               {facts_of(1, 0, 1), 0, HT_LEVEL_64}, /* on the chip */
               {facts_of(0, 1, 0), 0, HT_LEVEL_16}, /* exact */
               {facts_of(0, 1, 1), 0, HT_LEVEL_16}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ht_policy policy;
    char why[256];
    if (ht_policy_create(*state, &options, &cases[k].facts, NULL, &policy, why) != HT_OK) fail_msg("%s", ht_context_error(*state));
    assert_int_equal(policy.window, cases[k].looks);
    assert_int_equal(policy.by_network, cases[k].looks);
    assert_int_equal(policy.start, cases[k].start);
    if (cases[k].looks) assert_int_equal(policy.by_rule->start, HT_LEVEL_16);
    assert_string_equal(policy.name, "learned:universal");
    ht_policy_release(*state, &policy);
  }
}

/* A level costs by its bytes, on a device only where they leave the chip. */
static void test_cost(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    ht_policy_facts large = facts_of(0, 0, device), small = facts_of(1, 0, device);
    double cost_16 = ht_policy_cost(&large, HT_LEVEL_16), cost_32 = ht_policy_cost(&large, HT_LEVEL_32);
    assert_true(cost_16 > 0.3 && cost_16 < cost_32 && cost_32 < 0.9);
    assert_true(device ? ht_policy_cost(&small, HT_LEVEL_16) == 1 : ht_policy_cost(&small, HT_LEVEL_16) > cost_16);
    double twice = ht_policy_time(&large, 2e8) - ht_policy_time(&large, 0), once = ht_policy_time(&large, 1e8) - ht_policy_time(&large, 0);
    assert_true(fabs(twice - 2 * once) < 1e-9 * twice); /* prices add up bytes of many iterations */
  }
}

/* The policy that the library carries is whole, and weights are those of 16 bits. */
static void test_universal(void **state) {
  char why[256];
  const char *const names[] = {"learned", "learned:universal"};
  ht_policy_options options = {.budget_eta = 0.01};
  for (int k = 0; k < 2; k++) {
    ht_policy policy;
    snprintf(options.policy, sizeof options.policy, "%s", names[k]);
    ht_policy_facts facts = facts_of(0, 0, 0);
    if (ht_policy_create(*state, &options, &facts, NULL, &policy, why) != HT_OK) fail_msg("%s", ht_context_error(*state));
    assert_true(policy.window && policy.by_network && !strcmp(policy.name, "learned:universal"));
    const ht_network *net = &policy.learned->network;
    assert_true(policy.action[0].level == HT_LEVEL_64 && net->inputs == HT_FEATURES && net->actions > 2);
    for (int64_t i = 0; i < ht_network_size(net->inputs, net->hidden, net->actions); i++)
      assert_true(ht_precision_round(HT_F16, net->weights[i]) == net->weights[i]);
    ht_policy_release(*state, &policy);
  }
}

#define ANY_OF(v)                                                                                                                          \
  &v.residual, &v.residual_start, &v.residual_goal, &v.residual_8, &v.residual_32, &v.alpha, &v.beta, &v.ritz_smallest, &v.ritz_largest,   \
      &v.error_16, &v.error_32, &v.exact_16, &v.exact_32, &v.nonzeros_per_row, &v.bytes_streamed, &v.cache_bytes, &v.cost_16, &v.cost_32,  \
      &v.lost_16, &v.lost_32, &v.gap_used, &v.gap_allowed, &v.diagonal_range, &v.residual_16, &v.slope, &v.owed, &v.again_16, &v.again_32, \
      &v.again, &v.left

/* Whatever the numbers, features are finite and bounded; they do not depend on the scale of the problem. */
static void test_features(void **state) {
  static const double numbers[] = {0, 1, -1, 1e-320, DBL_MIN, DBL_MAX, INFINITY, -INFINITY, NAN};
  float f[HT_FEATURES], g[HT_FEATURES];
  random_stream s = {1};
  (void)state;
  for (int k = 0; k < 20000; k++) {
    ht_feature_view v = {.iteration = random_below(&s, INT64_MAX), .unknowns_per_node = 3, .device = 1, .level = HT_LEVEL_64};
    double *const any[] = {ANY_OF(v)};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) *any[i] = numbers[random_below(&s, 9)];
    ht_features_fill(&v, f);
    for (int i = 0; i < HT_FEATURES; i++) assert_true(fabsf(f[i]) <= 2.5f);
  }
  ht_feature_view v = {.iteration = 100,
                       .residual = 1e-3,
                       .residual_start = 10,
                       .residual_goal = 1e-9,
                       .residual_8 = 2e-3,
                       .residual_32 = 9e-3,
                       .alpha = 0.25,
                       .beta = 0.4,
                       .ritz_smallest = 0.01,
                       .ritz_largest = 2,
                       .error_16 = 1e-4,
                       .error_32 = 1e-9,
                       .exact_16 = 0.1,
                       .exact_32 = 0.3,
                       .nonzeros_per_row = 7,
                       .bytes_streamed = 1e8,
                       .cache_bytes = 3e7,
                       .cost_16 = 0.5,
                       .cost_32 = 0.7,
                       .lost_16 = 1e-6,
                       .lost_32 = 1e-11,
                       .unknowns_per_node = 1,
                       .diagonal_range = 1e4,
                       .residual_16 = 1e-2,
                       .slope = 0.02,
                       .owed = 1e-5,
                       .again_16 = 200,
                       .again_32 = 20,
                       .again = 100,
                       .left = 100,
                       .gap_used = 1e-6,
                       .gap_allowed = 1e-4,
                       .level = HT_LEVEL_32,
                       .floor = HT_LEVEL_16};
  ht_features_fill(&v, f);
  assert_true(fabsf(f[HT_FEATURE_fallen] - 0.4f) < 1e-6f && fabsf(f[HT_FEATURE_remaining] - 0.6f) < 1e-6f);
  assert_true(fabsf(f[HT_FEATURE_slope_8] - (float)log10(2)) < 1e-6f && fabsf(f[HT_FEATURE_level] - 0.5f) < 1e-6f);
  assert_true(fabsf(f[HT_FEATURE_step] - (float)log10(0.5) / 4) < 1e-6f && fabsf(f[HT_FEATURE_condition] - (float)log10(200) / 8) < 1e-6f);
  assert_true(fabsf(f[HT_FEATURE_error_16] - (float)log10(0.02) / 8) < 1e-6f);
  assert_true(fabsf(f[HT_FEATURE_loss_16] - (float)log10(2.5e-4) / 8) < 1e-6f && f[HT_FEATURE_cost_32] == 0.7f);
  assert_true(fabsf(f[HT_FEATURE_spread] - 0.5f) < 1e-6f && fabsf(f[HT_FEATURE_owed] + 0.25f) < 1e-6f);
  assert_true(fabsf(f[HT_FEATURE_pace] - 1.5625f) < 1e-6f); /* a decade in 16 iterations, four in 100 */
  assert_true(fabsf(f[HT_FEATURE_again_16] - (float)log10(2)) < 1e-6f && f[HT_FEATURE_again] == 0);
  assert_true(fabsf(f[HT_FEATURE_rate] - (float)log10(0.02 / (2 * log10(exp(1)) * sqrt(0.005))) / 2) < 1e-6f);
  /* b by 2^70 and A by 2^60: p goes with b, and what is lost with A p */
  double *of_b[] = {&v.residual, &v.residual_start, &v.residual_goal, &v.residual_8, &v.residual_32,
                    &v.gap_used, &v.gap_allowed,    &v.residual_16,   &v.owed};
  for (int i = 0; i < 9; i++) *of_b[i] *= 0x1p70;
  v.alpha *= 0x1p-60, v.ritz_smallest *= 0x1p60, v.ritz_largest *= 0x1p60, v.lost_16 *= 0x1p130, v.lost_32 *= 0x1p130;
  ht_features_fill(&v, g);
  for (int i = 0; i < HT_FEATURES; i++) assert_true(fabsf(f[i] - g[i]) < 1e-6f);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(test_network),   TEST(test_tiles),     TEST(test_ties_and_extremes),
                                     TEST(test_window),    TEST(test_features),  TEST(test_actions),
                                     TEST(test_universal), TEST(test_no_choice), TEST(test_cost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
