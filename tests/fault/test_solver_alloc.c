/* Every allocation of a solver's life refused once: the call fails cleanly, and the same call then works.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>
#include "solve/solve_helpers.h"
#include "support/failing.h"
#include "support/learned.h"

enum { SMALL = 20, LARGE = 70 };

static int twice(void *user, int64_t n, const double *x, double *y) {
  (void)user;
  for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i];
  return 0;
}

/* [-1 d -1] with d = 3; `skew` makes it symmetric but for rounding. */
static ht_status tridiagonal(ht_context *ctx, int n, double skew, ht_matrix **a) {
  int64_t row_start[LARGE + 1] = {0}, k = 0;
  int32_t columns[3 * LARGE];
  double values[3 * LARGE];
  for (int i = 0; i < n; i++) {
    for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < n; j++) {
      columns[k] = j;
      values[k++] = i == j ? 3 : j > i ? -1 - skew : -1;
    }
    row_start[i + 1] = k;
  }
  return ht_matrix_create_csr(ctx, n, row_start, columns, values, HT_COPY, a);
}

/* A call that met the refusal is made again, as by a caller who has freed some memory. */
static void again(ht_context *ctx, ht_status first, ht_status *second) {
  if (first != HT_OK) {
    assert_int_equal(first, HT_NO_MEMORY);
    assert_true(strlen(ht_context_error(ctx)) > 0);
  }
  *second = first;
}

#define TWICE(ctx, call)                                                                                                                   \
  do {                                                                                                                                     \
    ht_status status_;                                                                                                                     \
    again(ctx, (call), &status_);                                                                                                          \
    if (status_ != HT_OK) OK(call);                                                                                                        \
  } while (0)

static void solve_again(ht_context *ctx, ht_solver *solver, const ht_matrix *a) {
  int64_t n = ht_matrix_rows(a);
  double *b = vector(2 * n), *x = vector(2 * n);
  ht_report report;
  for (int64_t i = 0; i < 2 * n; i++) b[i] = 1 + (double)(i % 7);
  TWICE(ctx, ht_solver_solve(solver, 2, b, x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  for (int k = 0; k < 2; k++) assert_true(true_residual(a, x + k * n, b + k * n) <= 1.1e-10);
  free(b), free(x);
}

/* Prepare once more, with the refusal in it or not; then solve, prepared or not. */
static void prepare_again(ht_context *ctx, ht_solver *solver, const ht_matrix *a) {
  ht_status status = ht_solver_prepare(solver);
  assert_true(status == HT_OK || status == HT_NO_MEMORY);
  solve_again(ctx, solver, a);
}

static void live(failing_allocator *memory, ht_context *ctx, const char *option, const char *value, long fail_at) {
  ht_matrix *small, *large, *nearly;
  ht_solver *solver;
  double diagonal[500];
  for (int i = 0; i < 500; i++) diagonal[i] = 2;
  OK(ht_context_set_threads(ctx, 1));
  OK(tridiagonal(ctx, SMALL, 0, &small));
  OK(tridiagonal(ctx, LARGE, 0, &large));
  OK(tridiagonal(ctx, LARGE, 2.3e-16, &nearly));
  assert_int_equal(ht_matrix_symmetry(nearly), HT_NEARLY_SYMMETRIC);
  memory->requests = 0;
  memory->fail_at = fail_at;
  TWICE(ctx, ht_solver_create(ctx, NULL, &solver));
  OK(ht_solver_set_option(solver, option, value));
  OK(ht_solver_set_matrix(solver, small));
  solve_again(ctx, solver, small);
  OK(ht_solver_set_matrix(solver, nearly));
  prepare_again(ctx, solver, nearly);
  prepare_again(ctx, solver, nearly);
  OK(ht_solver_set_matrix(solver, large));
  solve_again(ctx, solver, large);
  if (ht_solver_set_operator(solver, 500, twice, NULL, diagonal) != HT_OK) solve_again(ctx, solver, large); /* it still has the matrix */
  ht_solver_destroy(solver);
  ht_matrix_destroy(small), ht_matrix_destroy(large), ht_matrix_destroy(nearly);
}

static char policy[64] = "learned:/tmp/halftone-policy-XXXXXX";

static int write_policy(void **state) {
  (void)state;
  return learned_make(HT_LEARNED_TILES, 2, 3, 1, policy);
}

static int remove_policy(void **state) {
  (void)state;
  return remove(policy + strlen("learned:"));
}

static void every_refusal(void **state) {
  const char *const options[][2] = {{"precond", "jacobi"}, {"precond", "ic0"}, {"format", "csr"},
                                    {"format", "tilecsc"}, {"policy", policy}, {"trace", "yes"}};
  (void)state;
  for (size_t o = 0; o < sizeof options / sizeof *options; o++)
    for (long fail_at = -1, requests = 0; fail_at < requests; fail_at++) {
      failing_allocator memory;
      ht_context *ctx;
      OK(failing_context(&memory, &ctx));
      live(&memory, ctx, options[o][0], options[o][1], fail_at);
      requests = memory.requests;
      ht_context_destroy(ctx);
      assert_int_equal(memory.alive, 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_refusal)};
  return cmocka_run_group_tests(tests, write_policy, remove_policy);
}
