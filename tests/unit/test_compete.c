/* Competitions with costs that are made up: who wins, how long it takes, and that noise decides nothing.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "train/compete.h"

typedef struct script {
  ht_context *ctx;
  double cost[2][HT_RIVALS];  /* a case; infinite: not solved */
  double error[2][HT_RIVALS]; /* 0: not known */
  double noise;               /* a solve takes up to this share longer */
  int solves[HT_RIVALS], all, stop_after;
} script;

static ht_status solve(void *user, int number, int rival, ht_trial *trial) {
  script *s = user;
  double longer = (ht_random_uniform(7, (uint64_t)s->all) + 1) / 2;
  s->solves[rival]++;
  trial->cost = s->cost[number][rival] * (1 + s->noise * longer);
  if (s->error[number][rival] > 0) trial->error = s->error[number][rival];
  if (++s->all == s->stop_after) ht_context_request_stop(s->ctx);
  return HT_OK;
}

static ht_contest hold(script *s, int rivals, int cases, int measured, double seconds) {
  ht_contest contest;
  const ht_competition competition = {s->ctx, rivals, cases, measured, seconds, s, solve};
  assert_int_equal(ht_compete(&competition, &contest), HT_OK);
  return contest;
}

static script make(ht_context *ctx, const double cost[HT_RIVALS]) {
  script s = {.ctx = ctx};
  for (int k = 0; k < 2; k++) memcpy(s.cost[k], cost, sizeof s.cost[k]);
  return s;
}

static void the_fastest_wins(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){0.8, 1, 0.9, 1.5, 0.95, 0.85});
  ht_contest c = hold(&s, HT_RIVALS, 1, 0, 0);
  assert_int_equal(c.winner, HT_RIVAL_LEARNED);
  assert_true(s.all == HT_RIVALS && fabs(c.time[HT_RIVAL_16] - 1.5) < 1e-15 && c.time[HT_RIVAL_64] == 1);
  assert_int_equal(hold(&s, HT_RIVALS_FIXED, 2, 0, 0).winner, HT_RIVAL_LEARNED);
}

/* The geometric mean over the cases, of which those that FP64 does not solve tell nothing; an infinite one spoils the mean. */
static void cases_are_averaged(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){1, 1, 0.5, 1, 1, 1});
  s.cost[1][HT_RIVAL_32] = 2;
  ht_contest c = hold(&s, HT_RIVALS, 2, 0, 0);
  assert_true(fabs(c.time[HT_RIVAL_32] - 1) < 1e-15 && c.winner == HT_RIVAL_64);
  s.cost[1][HT_RIVAL_64] = INFINITY;
  assert_int_equal(hold(&s, HT_RIVALS, 2, 0, 0).winner, HT_RIVAL_32);
  s.cost[0][HT_RIVAL_32] = INFINITY;
  c = hold(&s, HT_RIVALS, 2, 0, 0);
  assert_true(isinf(c.time[HT_RIVAL_32]) && c.winner == HT_RIVAL_64);
}

static void as_fast_is_no_reason_to_choose_another(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){0.985, 1, 0.992, 0.991, 0.993, 0.995});
  assert_int_equal(hold(&s, HT_RIVALS, 1, 0, 0).winner, HT_RIVAL_LEARNED);
  s.cost[0][HT_RIVAL_LEARNED] = 0.991;
  assert_int_equal(hold(&s, HT_RIVALS, 1, 0, 0).winner, HT_RIVAL_64);
}

/* Whoever loses digits that FP64 has is not chosen, however fast; errors of rounding are none. */
static void the_fastest_must_be_as_good(void **state) {
  char text[512];
  script s = make(*state, (const double[HT_RIVALS]){0.7, 1, 0.8, 0.9, 1, 1});
  for (int k = 0; k < HT_RIVALS; k++) s.error[1][k] = 1e-9;
  assert_int_equal(hold(&s, HT_RIVALS_FIXED, 2, 0, 0).winner, HT_RIVAL_LEARNED);
  s.error[1][HT_RIVAL_LEARNED] = 3e-9;
  s.error[1][HT_RIVAL_32] = 1.9e-9;
  ht_contest c = hold(&s, HT_RIVALS_FIXED, 2, 0, 0);
  assert_true(c.winner == HT_RIVAL_32 && fabs(c.error[HT_RIVAL_LEARNED] - 3) < 1e-14 && fabs(c.error[HT_RIVAL_16] - 1) < 1e-15);
  ht_contest_print(&c, "abacus", text, sizeof text);
  assert_non_null(strstr(text, "by the model of abacus; learned has 3 times the error of FP64, and is left out"));
  s.error[0][HT_RIVAL_64] = 1e-9; /* the worst case counts */
  s.error[0][HT_RIVAL_32] = 1e-8;
  c = hold(&s, HT_RIVALS_FIXED, 2, 0, 0);
  assert_true(c.winner == HT_RIVAL_16 && fabs(c.error[HT_RIVAL_32] - 10) < 1e-14);
  for (int k = 0; k < 2; k++)
    for (int rival = 0; rival < HT_RIVALS; rival++) s.error[k][rival] = rival == HT_RIVAL_64 ? 1e-17 : 1e-15;
  assert_int_equal(hold(&s, HT_RIVALS_FIXED, 2, 0, 0).winner, HT_RIVAL_LEARNED);
}

/* What a quiet clock tells in few rounds a noisy one tells in more, or not at all. */
static void noise_decides_nothing(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){0.94, 1, 0.96, 0.95, 1, 1});
  ht_contest quiet = hold(&s, HT_RIVALS_FIXED, 1, 1, 1e9);
  int few = s.all;
  s.noise = 0.5;
  ht_contest noisy = hold(&s, HT_RIVALS_FIXED, 1, 1, 1e9);
  assert_true(quiet.winner == HT_RIVAL_LEARNED && quiet.rounds < noisy.rounds && few < s.all - few);
  assert_int_equal(noisy.winner, HT_RIVAL_64);
  assert_true(noisy.noise[HT_RIVAL_64] > 0.02);
  s.cost[0][HT_RIVAL_LEARNED] = 0.3; /* that no noise can hide */
  assert_int_equal(hold(&s, HT_RIVALS_FIXED, 1, 1, 1e9).winner, HT_RIVAL_LEARNED);
}

static void the_slow_run_once_and_time_is_bounded(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){3, 1, 0.9, INFINITY, 1, 1});
  ht_contest c = hold(&s, HT_RIVALS_FIXED, 1, 1, 1e9);
  assert_true(s.solves[HT_RIVAL_LEARNED] == 1 && s.solves[HT_RIVAL_16] == 1 && s.solves[HT_RIVAL_32] == c.rounds && c.rounds > 1);
  assert_true(c.winner == HT_RIVAL_32 && fabs(c.time[HT_RIVAL_LEARNED] - 3) < 1e-14);
  s = make(*state, (const double[HT_RIVALS]){1, 1, 0.9, 1, 1, 1});
  c = hold(&s, HT_RIVALS_FIXED, 2, 1, 0);
  assert_true(c.rounds == 1 && s.all == 2 * HT_RIVALS_FIXED);
  assert_int_equal(c.winner, HT_RIVAL_64); /* a single solve by a clock says little */
  s = make(*state, (const double[HT_RIVALS]){1, 1, 0.4, 1, 1, 1});
  assert_int_equal(hold(&s, HT_RIVALS_FIXED, 2, 1, 0).winner, HT_RIVAL_32);
}

static void a_stop_ends_it(void **state) {
  script s = make(*state, (const double[HT_RIVALS]){1, 1, 0.9, 1, 1, 1});
  s.stop_after = 3;
  hold(&s, HT_RIVALS, 2, 1, 1e9);
  assert_int_equal(s.all, 3);
  ht_context_clear_stop(s.ctx);
}

static void it_is_told_in_a_line(void **state) {
  char text[256], little[20];
  script s = make(*state, (const double[HT_RIVALS]){2, 1, 0.5, INFINITY, 1, 1});
  ht_contest c = hold(&s, HT_RIVALS_FIXED, 1, 0, 0);
  ht_contest_print(&c, "abacus", text, sizeof text);
  assert_string_equal(text, "learned 2.000, fixed:f64 1.000, fixed:f32 0.500, fixed:bf16 inf of FP64's time, by the model of abacus");
  ht_contest_print(&c, "abacus", little, sizeof little);
  assert_string_equal(little, "learned 2.000, ...");
  c = hold(&s, HT_RIVALS_FIXED, 1, 1, 1e9);
  ht_contest_print(&c, "abacus", text, sizeof text);
  assert_non_null(strstr(text, "of FP64's time, measured on abacus, good to 0.0 %"));
}

static int set_up(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }

static int tear_down(void **state) {
  ht_context_destroy(*state);
  return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_fastest_wins),
                                     TEST(cases_are_averaged),
                                     TEST(as_fast_is_no_reason_to_choose_another),
                                     TEST(the_fastest_must_be_as_good),
                                     TEST(noise_decides_nothing),
                                     TEST(the_slow_run_once_and_time_is_bounded),
                                     TEST(a_stop_ends_it),
                                     TEST(it_is_told_in_a_line)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
