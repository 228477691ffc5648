/* What `auto` makes of the facts of a matrix, on the CPU and on a device. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/context.h"
#include "policy/policy.h"

typedef struct choice {
  const char *matrix;
  double row, gathered;                     /* nonzeros a row, share of them that is gathered */
  int unknowns, constants, in_cache, exact; /* unknowns a node; A times ones is nearly nothing; at 16 bits */
  ht_level cpu, device;                     /* where it starts */
  int watched;                              /* on the device: 16 bits are left where the smallest Ritz value tells it */
  double range;                             /* of the diagonal; 0: not known */
  int preconditioned, waits;                /* waits: on the device, until the residual has fallen */
  double slenderness;
} choice;

static const choice choices[] = {
    {"27 points", 27, 0, 1, 1, 0, 0, HT_LEVEL_16, HT_LEVEL_16, 0, 0, 0, 0, 0},
    {"27 points, rows and columns scaled", 27, 0, 1, 0, 0, 0, HT_LEVEL_16, HT_LEVEL_16, 1, 0, 0, 0, 0},
    {"7 points", 7, 0, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_16, 0, 0, 0, 0, 0},
    {"7 points, rows and columns scaled", 7, 0, 1, 0, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 0, 0, 0, 0},
    {"5 points", 5, 0, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 0, 0, 0, 0},
    {"quadratic tetrahedra", 27, 0.9, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 0, 0, 0, 0},
    {"elasticity", 79, 0, 3, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 0, 0, 0, 0},
    {"27 points, exact", 27, 0, 1, 1, 0, 1, HT_LEVEL_16, HT_LEVEL_16, 0, 0, 0, 0, 0},
    {"27 points in the cache", 27, 0, 1, 1, 1, 0, HT_LEVEL_64, HT_LEVEL_64, 0, 0, 0, 0, 0},
    {"27 points, lognormal", 27, 0, 1, 1, 0, 0, HT_LEVEL_16, HT_LEVEL_16, 0, 1.3e3, 0, 0, 0},
    {"27 points, jumps", 27, 0, 1, 1, 0, 0, HT_LEVEL_16, HT_LEVEL_32, 0, 1e4, 0, 0, 0},
    {"27 points, large jumps", 27, 0, 1, 1, 0, 0, HT_LEVEL_16, HT_LEVEL_32, 0, 1e8, 0, 0, 0},
    {"27 points, large jumps, Jacobi", 27, 0, 1, 1, 0, 0, HT_LEVEL_16, HT_LEVEL_16, 0, 1e8, 1, 0, 0},
    {"7 points, jumps", 7, 0, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_16, 0, 1e4, 0, 0, 0},
    {"7 points, jumps, Jacobi", 7, 0, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 1e4, 1, 1, 0},
    {"7 points, large jumps", 7, 0, 1, 1, 0, 0, HT_LEVEL_64, HT_LEVEL_64, 0, 1e8, 0, 0, 0},
    {"7 points, large jumps, Jacobi", 7, 0, 1, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 1e8, 1, 1, 0},
    {"elasticity, as long as wide", 79, 0, 3, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 0, 0, 0, 1.7},
    {"elasticity, a plate", 79, 0, 3, 1, 0, 0, HT_LEVEL_64, HT_LEVEL_64, 0, 0, 1, 0, 2.8},
    {"elasticity, a plate, exact", 79, 0, 3, 1, 0, 1, HT_LEVEL_16, HT_LEVEL_16, 0, 0, 0, 0, 2.8},
    {"elasticity, large jumps", 79, 0, 3, 1, 0, 0, HT_LEVEL_32, HT_LEVEL_32, 0, 1e8, 0, 0, 0},
};

static ht_policy_facts facts_of(const choice *c, int device) {
  return (ht_policy_facts){.levels = 1,
                           .device = device,
                           .keeps_constants = c->constants,
                           .bytes_streamed = c->in_cache ? 10e6 : 1e9,
                           .cache_bytes = 50e6,
                           .nonzeros = 1e8,
                           .gathers = c->gathered * 1e8,
                           .nonzeros_per_row = c->row,
                           .unknowns_per_node = c->unknowns,
                           .slenderness = c->slenderness,
                           .preconditioned = c->preconditioned,
                           .diagonal_range = c->range > 0 ? c->range : NAN,
                           .share_exact_16 = c->exact,
                           .share_exact_32 = c->exact,
                           .error_16 = 1e-5,
                           .error_32 = 1e-9};
}

static void levels_follow_from_facts(void **state) {
  ht_context *ctx;
  (void)state;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_policy_options options = {.policy = "auto", .budget_theta = 0.03, .budget_eta = 0.01};
  for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
    for (int device = 0; device < 2; device++) {
      const choice *c = &choices[k];
      ht_policy_facts facts = facts_of(c, device);
      ht_policy policy;
      char why[256];
      assert_int_equal(ht_policy_create(ctx, &options, &facts, NULL, &policy, why), HT_OK);
      ht_level level = policy.later_drop > 0 ? policy.later : policy.start;
      if (level != (device ? c->device : c->cpu)) fail_msg("%s, device %d: level %d, %s", c->matrix, device, level, why);
      assert_int_equal(policy.later_drop > 0 && policy.start == HT_LEVEL_64, device && c->waits);
      assert_int_equal(!strncmp(why, "fixed:f64 until the residual has fallen by 1e3, then fixed:f32", 62), device && c->waits);
      assert_int_equal(policy.replaces, level < HT_LEVEL_64 && !c->exact);
      if (device && (policy.error_start > 0) != c->watched) fail_msg("%s: error %g, %s", c->matrix, policy.error_start, why);
      ht_policy_release(ctx, &policy);
    }
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(levels_follow_from_facts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
