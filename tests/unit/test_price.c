/* The reward `time`: what it sums to, whatever the steps on the way. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/random.h"
#include "train/price.h"

enum { ITERATIONS = 40, ROWS = 1000 };

static double fallen[100 * ITERATIONS + 1];

static ht_policy_facts facts_of(double cache) {
  return (ht_policy_facts){.bytes_vectors = 64e3,
                           .bytes_level = {30e3, 60e3, 100e3},
                           .bytes_streamed = 164e3,
                           .cache_bytes = cache,
                           .nonzeros = 10e3,
                           .nonzeros_per_row = 10,
                           .gathers = 2e3};
}

/* An FP64 solve whose residual falls by a factor an iteration, with a plateau. */
static ht_price price_of(const ht_policy_facts *facts, int64_t iterations) {
  fallen[0] = 1;
  for (int64_t i = 1; i <= iterations; i++)
    fallen[i] = i % 5 == 3 ? fallen[i - 1] : fallen[i - 1] * exp(-23.0 / (double)iterations * 1.25 * (1 + 0.1 * sin((double)i)));
  return (ht_price){.facts = facts, .fallen = fallen, .iterations_64 = iterations, .n = ROWS, .late = 1};
}

static double random_share(random_stream *s) { return (random_signed(s) + 1) / 2; }

/* The sum over the steps of a solve that reaches the tolerance in `iterations`, and its last stand. */
static double walk(const ht_price *p, random_stream *s, int steps, int64_t iterations, ht_stand *end) {
  ht_stand now = {0};
  double sum = 0;
  for (int k = 1; k <= steps; k++) {
    int last = k == steps;
    ht_stand next = now;
    next.iterations = last ? iterations : now.iterations + (int64_t)(random_share(s) * (double)(iterations - now.iterations));
    next.exact_products += last || random_share(s) < 0.2;
    next.looks++;
    next.bytes += (double)(next.iterations - now.iterations) * (30e3 + 70e3 * random_share(s));
    next.progress = last ? (double)p->iterations_64 : now.progress + random_share(s) * ((double)p->iterations_64 - now.progress);
    sum += ht_price_step(p, &now, &next);
    now = next;
  }
  *end = now;
  return sum;
}

/* One less the cost by FP64's, less what is late: for solves of every length in steps of every number. */
static void the_sum_is_what_is_saved(void **state) {
  random_stream s = {3};
  (void)state;
  for (int k = 0; k < 2000; k++) {
    ht_policy_facts facts = facts_of(k % 3 ? 30e3 : 3e6);
    int64_t iterations_64 = ITERATIONS * (k % 7 ? 1 : 100), iterations = (int64_t)((double)iterations_64 * (0.5 + 2 * random_share(&s)));
    ht_price p = price_of(&facts, iterations_64);
    p.late = k % 2 ? 1 : 0;
    ht_stand end;
    double sum = walk(&p, &s, 1 + k % 29, iterations, &end);
    double late = p.late * fmax((double)iterations / (double)iterations_64 - 1.05, 0);
    double expected = 1 - ht_price_cost(&p, &end) / ht_price_cost_64(&p) - late;
    if (!(fabs(sum - expected) < 1e-11 * (1 + fabs(expected)))) fail_msg("case %d: %.17g, expected %.17g", k, sum, expected);
  }
}

/* FP64 itself earns nothing but the price of its looks; half the bytes earn what they save, the same for short and long solves. */
static void short_and_long_solves_earn_alike(void **state) {
  ht_policy_facts facts = facts_of(0);
  double saved[2];
  (void)state;
  for (int k = 0; k < 2; k++) {
    int64_t iterations = k ? 100 * ITERATIONS : ITERATIONS;
    ht_price p = price_of(&facts, iterations);
    ht_stand none = {0}, end = {.iterations = iterations, .exact_products = 1, .progress = (double)iterations};
    end.bytes = (double)iterations * facts.bytes_level[HT_LEVEL_64];
    assert_true(fabs(ht_price_step(&p, &none, &end)) < 1e-12);
    end.bytes = (double)iterations * facts.bytes_level[HT_LEVEL_16];
    saved[k] = ht_price_step(&p, &none, &end);
    assert_true(saved[k] > 0.2 && saved[k] < 1 - facts.bytes_level[HT_LEVEL_16] / facts.bytes_level[HT_LEVEL_64]);
  }
  assert_true(fabs(saved[0] - saved[1]) < 0.02);
}

static void progress_is_that_of_fp64(void **state) {
  ht_policy_facts facts = facts_of(0);
  ht_price p = price_of(&facts, ITERATIONS);
  (void)state;
  for (int i = 0; i < ITERATIONS; i++) {
    double at = ht_price_progress(&p, fallen[i]), lower = ht_price_progress(&p, sqrt(fallen[i] * fallen[i + 1]));
    if (fallen[i + 1] < fallen[i]) { /* where it falls in this iteration; a plateau is passed as soon as its level is reached */
      assert_true(fabs(lower - (i + 0.5)) < 1e-9);
    }
    assert_true(at <= i + 1e-9 && at >= 0 && lower >= at);
  }
  assert_true(ht_price_progress(&p, 2) == 0 && ht_price_progress(&p, NAN) == 0 && ht_price_progress(&p, INFINITY) == 0);
  assert_true(ht_price_progress(&p, 0) == ITERATIONS && ht_price_progress(&p, fallen[ITERATIONS]) == ITERATIONS);
}

/* No end without an answer earns as much as the FP64 solve, however little it reads. */
static void what_is_missed_costs_more_than_it_saves(void **state) {
  ht_policy_facts facts = facts_of(0);
  ht_price p = price_of(&facts, ITERATIONS);
  ht_stand none = {0}, end = {.iterations = ITERATIONS / 2, .progress = ITERATIONS / 2.0};
  (void)state;
  assert_true(ht_price_missed(&p, &end) == 1);
  assert_true(ht_price_step(&p, &none, &end) - ht_price_missed(&p, &end) < 0);
  assert_true(ht_price_missed(&p, &none) == 2);
}

/* Times grow with the bytes, levels cost no more than FP64, and nothing depends on the scale of bytes and cache together. */
static void costs_are_ordered(void **state) {
  (void)state;
  for (int k = 0; k < 30; k++) {
    ht_policy_facts facts = facts_of(164e3 * pow(10, 3 - 0.2 * k)), larger = facts;
    double *scaled[] = {&larger.bytes_vectors,  &larger.bytes_level[0], &larger.bytes_level[1], &larger.bytes_level[2],
                        &larger.bytes_streamed, &larger.cache_bytes,    &larger.nonzeros,       &larger.gathers};
    for (int i = 0; i < 8; i++) *scaled[i] *= 1024;
    double c16 = ht_policy_cost(&facts, HT_LEVEL_16), c32 = ht_policy_cost(&facts, HT_LEVEL_32);
    assert_true(0 < c16 && c16 < c32 && c32 < 1 && ht_policy_cost(&facts, HT_LEVEL_64) == 1);
    assert_true(c16 == ht_policy_cost(&larger, HT_LEVEL_16) && c32 == ht_policy_cost(&larger, HT_LEVEL_32));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_sum_is_what_is_saved), cmocka_unit_test(short_and_long_solves_earn_alike),
                                     cmocka_unit_test(progress_is_that_of_fp64), cmocka_unit_test(what_is_missed_costs_more_than_it_saves),
                                     cmocka_unit_test(costs_are_ordered)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
