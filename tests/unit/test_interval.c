/* The reuse interval of a policy's decisions, by the rises in precision that it would delay. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "train/rollout.h"

/* rises[k]: at iterations that 2^k divides, and 2^(k+1) does not; the last: that it divides. */

static void policies_that_never_rise_look_seldom(void **state) {
  (void)state;
  ht_judgement j[2] = {{0}};
  assert_int_equal(ht_longest_interval(2, j), 1024);
  assert_true(ht_share_delayed(2, j, 1024) == 0);
}

static void less_than_a_tenth_is_delayed(void **state) {
  (void)state;
  for (int k = 0; k < HT_LEARNING_RISES; k++) {
    ht_judgement j[2] = {{0}};
    j[0].rises[HT_LEARNING_RISES - 1] = 91;
    j[1].rises[k] = 9; /* 9 of 100 */
    assert_int_equal(ht_longest_interval(2, j), 1024);
    j[0].rises[HT_LEARNING_RISES - 1] = 90;
    j[1].rises[k] = 10;
    assert_int_equal(ht_longest_interval(2, j), 1 << k);
    assert_true(ht_share_delayed(2, j, 1 << k) == 0);
    if (k + 1 < HT_LEARNING_RISES) assert_true(ht_share_delayed(2, j, 2 << k) == 0.1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(policies_that_never_rise_look_seldom),
                                     cmocka_unit_test(less_than_a_tenth_is_delayed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
