/* Every kernel of the engines on tiny problems and for a few iterations: what racecheck, under which blocks that wait for each other take
 * their time, gets through in a minute. SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_solves.h"

static const char *const systems[] = {"stencil3d size=8 points=27", "stencil2d size=30", "elasticity3d size=4",
                                      "graph graph=shortcuts size=2500 probability=1"};
static const char *const policies[] = {"fixed:f64", "fixed:f32", "fixed:bf16", "rule", "budget", "custom"};
static const char *const preconds[] = {"none", "jacobi", "block-jacobi"};
enum { SYSTEMS = 4, LONG_HALOS = 3 /* takes long: FP64 alone is of interest */, POLICIES = 6, CUSTOM = 5, PRECONDS = 3 };

static int mix_levels(void *user, const ht_policy_view *view, uint8_t *precision) {
  (void)user;
  for (int64_t k = 0; k < view->blocks; k++) precision[k] = (uint8_t)((view->iteration + k) % 2 ? HT_F32 : HT_F64);
  return 0;
}

static void a_few_iterations(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SYSTEMS; i++) {
    ht_matrix *a = generate(&g, systems[i]);
    double *b = right_hand_side(a), *x = array(a->n);
    for (int e = TEXTBOOK + 1; e < ENGINES; e++)
      for (int p = 0; p < (i == LONG_HALOS ? 2 : PRECONDS); p++)
        for (int k = 0; k < (i == LONG_HALOS ? 1 : POLICIES); k++) {
          ht_solver *solver =
              make_solver(&g, a,
                          SETTINGS({"backend", "cuda"}, {"engine", engines[e]}, {"precond", preconds[p]},
                                   {"policy", k == CUSTOM ? "auto" : policies[k]}, {"policy-interval", "3"}, {"max-iterations", "10"}));
          if (k == CUSTOM) ht_solver_set_policy(solver, mix_levels, NULL);
          memset(x, 0, (size_t)a->n * sizeof *x);
          ht_report r = solve_with(&g, solver, b, x);
          if ((r.outcome != HT_CONVERGED && r.outcome != HT_ITERATION_LIMIT) || !isfinite(r.residual_true))
            fail_msg("%s, %s, %s, %s: %s", systems[i], engines[e], preconds[p], policies[k], r.detail);
          ht_solver_destroy(solver);
        }
    free(b), free(x);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_few_iterations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
