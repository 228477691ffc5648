/* The recorder of a solve stays short, and keeps what came last. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/backend.h"
#include "solver/trace.h"

static ht_recorder *make(ht_context *ctx, int64_t blocks) {
  ht_recorder *r;
  assert_int_equal(ht_recorder_create(ctx, blocks, &r), HT_OK);
  return r;
}

static int64_t power_of_two_over(int64_t count) {
  int64_t p = 1;
  while (p * HT_TRACE_ENTRIES_MOST < count) p *= 2;
  return p;
}

/* After every entry: bounded, in order, evenly spaced but for the last, which is the latest. */
static void test_lists_are_thinned_evenly(void **state) {
  ht_context *ctx;
  (void)state;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_recorder *r = make(ctx, 0);
  for (int64_t k = 0; k < 20 * HT_TRACE_ENTRIES_MOST; k++) {
    ht_recorder_time(r, k, (double)k);
    ht_recorder_residual(r, k, (double)k, HT_TRACE_REPLACEMENT);
    const ht_solve_trace *v = ht_recorder_view(r);
    assert_int_equal(v->times_seen, k + 1);
    assert_int_equal(v->residuals, v->times);
    assert_true(v->times <= HT_TRACE_ENTRIES_MOST);
    assert_int_equal(v->time[v->times - 1].iteration, k);
    assert_true(v->times == k + 1 || v->times >= HT_TRACE_ENTRIES_MOST / 2);
    int64_t every = v->times > 2 ? v->time[1].iteration : 1;
    assert_true(every == 1 || every <= 2 * power_of_two_over(k + 1));
    for (int64_t j = 0; j + 1 < v->times; j++) assert_int_equal(v->time[j].iteration, j * every);
  }
  assert_int_equal(ht_recorder_view(r)->changes, 0); /* no blocks, no levels */
  ht_recorder_release(r);
  ht_context_destroy(ctx);
}

/* Which group each change has at 16 bits is told by its iteration: entries keep their own counts when the list is halved. */
static void test_changes_keep_their_counts(void **state) {
  enum { BLOCKS = 3 * HT_TRACE_GROUPS_MOST + 5 };
  static uint8_t level[BLOCKS];
  ht_context *ctx;
  (void)state;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_recorder *r = make(ctx, BLOCKS);
  for (int64_t k = 0; k < 3 * HT_TRACE_ENTRIES_MOST; k++) {
    memset(level, HT_LEVEL_64, sizeof level);
    level[k % BLOCKS] = HT_LEVEL_16;
    ht_recorder_levels(r, k, level, HT_TRACE_POLICY);
    ht_recorder_levels(r, k, level, HT_TRACE_POLICY); /* the same again is no change */
  }
  const ht_solve_trace *v = ht_recorder_view(r);
  assert_true(v->groups <= HT_TRACE_GROUPS_MOST);
  assert_int_equal((v->blocks - 1) / v->blocks_per_group + 1, v->groups);
  assert_int_equal(v->changes_seen, 3 * HT_TRACE_ENTRIES_MOST);
  assert_int_equal(v->change[v->changes - 1].iteration, 3 * HT_TRACE_ENTRIES_MOST - 1);
  for (int64_t j = 0; j < v->changes; j++) {
    const ht_trace_change *c = &v->change[j];
    int64_t group = c->iteration % BLOCKS / v->blocks_per_group, sum = 0;
    assert_true(j == 0 || c->iteration > v->change[j - 1].iteration);
    assert_int_equal(c->why, j == 0 ? HT_TRACE_START : HT_TRACE_POLICY);
    for (int64_t g = 0; g < v->groups; g++) {
      assert_int_equal(c->blocks[3 * g], g == group);
      sum += c->blocks[3 * g] + c->blocks[3 * g + 1] + c->blocks[3 * g + 2];
    }
    assert_int_equal(sum, BLOCKS);
  }
  ht_recorder_release(r);
  ht_context_destroy(ctx);
}

static void test_reasons(void **state) {
  uint8_t level[2] = {HT_LEVEL_16, HT_LEVEL_16};
  ht_context *ctx;
  (void)state;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_recorder *r = make(ctx, 2);
  const ht_solve_trace *v = ht_recorder_view(r);
  ht_recorder_levels(r, 0, level, HT_TRACE_POLICY);
  ht_recorder_because(r, HT_TRACE_RAISE);
  level[1] = HT_LEVEL_32;
  ht_recorder_levels(r, 4, level, HT_TRACE_POLICY);
  ht_recorder_because(r, HT_TRACE_FALLBACK);
  ht_recorder_levels(r, 5, level, HT_TRACE_POLICY); /* nothing changed: the reason is spent */
  level[0] = HT_LEVEL_64;
  ht_recorder_levels(r, 6, level, HT_TRACE_DEVICE);
  v = ht_recorder_view(r);
  assert_int_equal(v->changes, 3);
  assert_int_equal(v->change[0].why, HT_TRACE_START);
  assert_int_equal(v->change[1].why, HT_TRACE_RAISE);
  assert_int_equal(v->change[2].why, HT_TRACE_DEVICE);
  assert_true(v->at_run_ends);
  assert_string_equal(ht_trace_why_name(HT_TRACE_DEVICE), "device");
  assert_string_equal(ht_trace_why_name(HT_TRACE_WHYS), "unknown");
  ht_recorder_begin(r);
  v = ht_recorder_view(r);
  assert_true(v->changes == 0 && v->times == 0 && v->residuals == 0 && !v->at_run_ends);
  ht_recorder_release(r);
  ht_recorder_begin(NULL), ht_recorder_time(NULL, 0, 0), ht_recorder_release(NULL);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists_are_thinned_evenly), cmocka_unit_test(test_changes_keep_their_counts),
                                     cmocka_unit_test(test_reasons)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
