/* 05: watch a solve, stop it early, go on from where it stood, and read the residual history. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "halftone/halftone.h"

enum { N = 5000, STOP_AT = 100 };

/* Called once an iteration; nonzero ends the solve with the outcome "interrupted" and the best iterate so far. */
static int watch(void *user, const ht_progress *progress) {
  int64_t stop_at = *(int64_t *)user;
  if (progress->iteration % 50 == 0)
    printf("iteration %lld: residual %.2e\n", (long long)progress->iteration, progress->residual_recursive);
  return stop_at > 0 && progress->iteration >= stop_at;
}

int main(void) {
  static int64_t row_start[N + 1];
  static int32_t columns[3 * N];
  static double values[3 * N], b[N], x[N];
  ht_context *ctx = NULL;
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  ht_report report;
  const double *history;
  int64_t nnz = 0, stop_at = STOP_AT;
  int failed = 1;

  for (int i = 0; i < N; i++) { /* a chain with every node held by a weak spring */
    row_start[i] = nnz;
    if (i > 0) columns[nnz] = i - 1, values[nnz++] = -1;
    columns[nnz] = i, values[nnz++] = 2.01;
    if (i < N - 1) columns[nnz] = i + 1, values[nnz++] = -1;
    b[i] = 1.0 / (i + 1);
  }
  row_start[N] = nnz;

  if (ht_context_create(&ctx)) return 3;
  if (ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_BORROW, &a)) goto done;
  if (ht_solver_create(ctx, NULL, &solver)) goto done;
  if (ht_solver_set_matrix(solver, a)) goto done;
  ht_solver_set_progress(solver, watch, &stop_at);
  if (ht_solver_solve(solver, 1, b, x, &report)) goto done;
  printf("first solve: %s after %lld iterations\n", ht_outcome_name(report.outcome), (long long)report.iterations);

  stop_at = 0;
  if (ht_solver_solve(solver, 1, b, x, &report)) goto done; /* x holds the iterate of the first solve */
  int64_t entries = ht_solver_history(solver, &history);
  failed = 0;
  printf("second solve: %s after %lld iterations\n", ht_outcome_name(report.outcome), (long long)report.iterations);
  printf("history: %lld entries, from %.2e to %.2e\n", (long long)entries, history[0], history[entries - 1]);
done:
  if (failed) fprintf(stderr, "%s\n%s", ht_context_error(ctx), ht_context_trail(ctx));
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return failed ? 2 : report.outcome != HT_CONVERGED;
}
