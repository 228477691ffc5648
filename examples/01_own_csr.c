/* 01: solve with CSR arrays that the program owns; the library borrows them. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "halftone/halftone.h"

enum { N = 1000 };

/* A rod of N springs between two walls: stiffness k_i = 1 + i/N. */
static double stiffness(int i) { return 1.0 + (double)i / N; }

static void fill(int64_t *row_start, int32_t *columns, double *values) {
  int64_t nnz = 0;
  for (int i = 0; i < N; i++) {
    row_start[i] = nnz;
    if (i > 0) columns[nnz] = i - 1, values[nnz++] = -stiffness(i);
    columns[nnz] = i, values[nnz++] = stiffness(i) + stiffness(i + 1);
    if (i < N - 1) columns[nnz] = i + 1, values[nnz++] = -stiffness(i + 1);
  }
  row_start[N] = nnz;
}

int main(void) {
  static int64_t row_start[N + 1];
  static int32_t columns[3 * N];
  static double values[3 * N], b[N], x[N];
  ht_context *ctx = NULL;
  ht_options *options = NULL;
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  ht_report report;
  int failed = 1;

  fill(row_start, columns, values);
  for (int i = 0; i < N; i++) b[i] = i == N / 2; /* a unit force in the middle */

  if (ht_context_create(&ctx)) return 3;
  if (ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_BORROW, &a)) goto done;
  if (ht_options_create(ctx, &options)) goto done;
  if (ht_options_set_real(options, "rtol", 1e-12)) goto done;
  if (ht_options_set(options, "precond", "jacobi")) goto done;
  if (ht_solver_create(ctx, options, &solver)) goto done;
  if (ht_solver_set_matrix(solver, a)) goto done;
  if (ht_solver_solve(solver, 1, b, x, &report)) goto done;
  failed = 0;
  printf("%s after %lld iterations, backward error %.1e\n", ht_outcome_name(report.outcome), (long long)report.iterations,
         report.backward_error);
  printf("displacement under the force: %.6f\n", x[N / 2]);
done:
  if (failed) fprintf(stderr, "%s\n%s", ht_context_error(ctx), ht_context_trail(ctx));
  ht_solver_destroy(solver);
  ht_options_destroy(options);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return failed ? 2 : report.outcome != HT_CONVERGED;
}
