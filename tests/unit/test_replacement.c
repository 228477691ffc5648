/* When a residual is replaced, and what of it: the rules that the guard and the devices share. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "backend/backend.h"

/* A network may choose any level from now on; FP64 has been read until here. */
static ht_cg_replacing unseen(void) {
  return (ht_cg_replacing){.follows = 1,
                           .floor = HT_LEVEL_16,
                           .to_replace = HT_LEVEL_64,
                           .inexact = {HT_LEVEL_16, HT_LEVEL_32, HT_LEVEL_64},
                           .first_drop = {0.03, 1e-3, 0},
                           .reference = 100,
                           .watched = 10};
}

static void fp64_alone_needs_none(void **state) {
  (void)state;
  ht_cg_replacing m = unseen();
  m.follows = 0;
  assert_true(ht_replacing_below(&m, 1e-6) == -1 && !ht_replacing_is_due(&m, 0));
  m.follows = 1;
  m.inexact[0] = m.inexact[1] = HT_LEVEL_64; /* every value is exact at 16 bits */
  assert_true(ht_replacing_below(&m, 1e-6) == -1);
}

static void a_fall_is_watched_for_the_lowest_level_that_may_come(void **state) {
  (void)state;
  ht_cg_replacing m = unseen();
  assert_true(ht_replacing_below(&m, 1e-6) == 0.03 * 10);
  assert_true(ht_replacing_below(&m, 1) == -1); /* the goal comes first */
  ht_replacing_follow(&m, HT_LEVEL_64);
  assert_true(m.to_replace == HT_LEVEL_64 && m.reference == 100);
  ht_replacing_follow(&m, HT_LEVEL_32);
  assert_true(m.to_replace == HT_LEVEL_32 && m.reference == 10 && m.drop == 1e-3);
  assert_true(!ht_replacing_is_due(&m, 0.3) && ht_replacing_is_due(&m, 0.01));
}

/* A run that ends in between tells of 32 bits before 16 come: that changes nothing. */
static void where_runs_end_does_not_matter(void **state) {
  (void)state;
  ht_cg_replacing one = unseen(), two = unseen();
  ht_replacing_follow(&two, HT_LEVEL_32);
  assert_true(ht_replacing_below(&one, 1e-6) == ht_replacing_below(&two, 1e-6));
  ht_replacing_follow(&one, HT_LEVEL_16);
  ht_replacing_follow(&two, HT_LEVEL_16);
  assert_true(one.to_replace == two.to_replace && one.reference == two.reference && one.drop == two.drop && one.drop == 0.03);
}

static void what_is_lost_decides_what_follows(void **state) {
  (void)state;
  ht_cg_replacing m = unseen(), start;
  ht_replacing_follow(&m, HT_LEVEL_16);
  start = m;
  assert_true(ht_replacing_settle(&m, 0.3, 1e-3, HT_LEVEL_16, 1e-6)); /* little */
  assert_true(m.reference == 0.3 && m.watched == 0.3 && m.drop == 0.03 && m.to_replace == HT_LEVEL_16);
  m = start;
  assert_true(ht_replacing_settle(&m, 0.3, 1e-6, HT_LEVEL_16, 1e-6) && m.drop == 0.03); /* as much may be lost once more */
  m.reference = 10;
  assert_true(ht_replacing_settle(&m, 0.3, 1e-6, HT_LEVEL_16, 1e-6) &&
              m.drop == 0); /* then it is in proportion: the goal does not notice */
  m.follows = 0;
  assert_true(ht_replacing_below(&m, 1e-6) == -1);
  m = start;
  assert_true(ht_replacing_settle(&m, 3, 0.2, HT_LEVEL_16, 1e-6) && m.drop == 0.3); /* as much as can be borne */
  m = start;
  assert_true(!ht_replacing_settle(&m, 0.3, 0.1, HT_LEVEL_16, 1e-6)); /* too much for the direction */
  m = start;
  assert_true(!ht_replacing_settle(&m, 4, 0.35, HT_LEVEL_16, 1e-6)); /* and for the level */
  m = start;
  assert_true(!ht_replacing_settle(&m, 6, 0, HT_LEVEL_16, 1e-6)); /* it does not follow */
  m = start;
  assert_true(ht_replacing_settle(&m, 0.3, 1e-3, HT_LEVEL_64, 1e-6) && m.to_replace == HT_LEVEL_64); /* the last look left it */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fp64_alone_needs_none),
                                     cmocka_unit_test(a_fall_is_watched_for_the_lowest_level_that_may_come),
                                     cmocka_unit_test(where_runs_end_does_not_matter), cmocka_unit_test(what_is_lost_decides_what_follows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
