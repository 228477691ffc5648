/* 03: the same pattern with new values, again and again, as a time loop does. Ordering and pattern are analysed once.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "halftone/halftone.h"

enum { N = 2000, STEPS = 5 };

/* Backward Euler for a cooling rod: (I + dt K) u_new = u_old, with the step dt doubling. */
static void fill(double dt, int64_t *row_start, int32_t *columns, double *values) {
  int64_t nnz = 0;
  for (int i = 0; i < N; i++) {
    row_start[i] = nnz;
    if (i > 0) columns[nnz] = i - 1, values[nnz++] = -dt;
    columns[nnz] = i, values[nnz++] = 1 + 2 * dt;
    if (i < N - 1) columns[nnz] = i + 1, values[nnz++] = -dt;
  }
  row_start[N] = nnz;
}

int main(void) {
  static int64_t row_start[N + 1];
  static int32_t columns[3 * N];
  static double values[3 * N], old[N], u[N];
  ht_context *ctx = NULL;
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  int failed = 1, converged = 0;
  double dt = 1;

  fill(dt, row_start, columns, values);
  for (int i = 0; i < N; i++) u[i] = 1;
  if (ht_context_create(&ctx)) return 3;
  if (ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_COPY, &a)) goto done;
  if (ht_solver_create(ctx, NULL, &solver)) goto done;
  if (ht_solver_set_matrix(solver, a)) goto done;
  for (int step = 0; step < STEPS; step++, dt *= 2) {
    if (step > 0) {
      fill(dt, row_start, columns, values); /* sorted rows, so this is the order of ht_matrix_csr */
      if (ht_matrix_set_values(a, values)) goto done;
      if (ht_solver_prepare(solver)) goto done; /* takes the new values; keeps what depends on the pattern alone */
    }
    for (int i = 0; i < N; i++) old[i] = u[i]; /* u itself is the starting vector: a warm start */
    ht_report report;
    if (ht_solver_solve(solver, 1, old, u, &report)) goto done;
    converged += report.outcome == HT_CONVERGED;
    printf("step %d: dt %g, %s after %lld iterations, end temperature %.6f\n", step + 1, dt, ht_outcome_name(report.outcome),
           (long long)report.iterations, u[0]);
  }
  failed = 0;
done:
  if (failed) fprintf(stderr, "%s\n%s", ht_context_error(ctx), ht_context_trail(ctx));
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return failed ? 2 : converged != STEPS;
}
