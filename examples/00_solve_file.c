/* 00: read a matrix file, solve A x = b with b = A*1, look at the outcome. usage: 00_solve_file A.mtx
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include "halftone/halftone.h"

static ht_status solve_file(ht_context *ctx, const char *path, ht_report *report) {
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  double *b = NULL, *x = NULL;
  ht_status status = ht_matrix_read(ctx, path, &a);
  if (status) goto done;
  int64_t n = ht_matrix_rows(a);
  b = malloc((size_t)n * sizeof *b);
  x = calloc((size_t)n, sizeof *x); /* the starting vector: zero */
  if (!b || !x) {
    status = HT_NO_MEMORY;
    goto done;
  }
  status = ht_vector_read(ctx, "A*ones", a, n, b);
  if (status) goto done;
  status = ht_solver_create(ctx, NULL, &solver); /* NULL: the default options */
  if (status) goto done;
  status = ht_solver_set_matrix(solver, a);
  if (status) goto done;
  status = ht_solver_solve(solver, 1, b, x, report); /* prepares on the first call */
done:
  ht_solver_destroy(solver); /* the solver borrows the matrix: it goes first */
  ht_matrix_destroy(a);
  free(x);
  free(b);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s A.mtx\n", argv[0]);
    return 2;
  }
  ht_context *ctx;
  ht_report report;
  ht_status status = ht_context_create(&ctx);
  if (status) {
    fprintf(stderr, "%s\n", ht_status_text(status));
    return 3;
  }
  status = solve_file(ctx, argv[1], &report);
  if (status) {
    const char *sentence = ht_context_error(ctx);
    fprintf(stderr, "%s\n", *sentence ? sentence : ht_status_text(status));
  } else {
    printf("%s: %s\n", ht_outcome_name(report.outcome), ht_outcome_text(report.outcome));
    printf("%lld unknowns, %lld iterations, true residual %.1e\n", (long long)report.n, (long long)report.iterations, report.residual_true);
  }
  ht_context_destroy(ctx);
  return status ? 2 : report.outcome != HT_CONVERGED;
}
