/* 02: no matrix at all: the program computes y = A x itself. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include "halftone/halftone.h"

enum { M = 63, N = M * M };

/* Minus the Laplacian on an M x M grid with zero walls, five points, times h^2. */
static int laplacian(void *user, int64_t n, const double *x, double *y) {
  int64_t *calls = user;
  if (n != N) return 1; /* nonzero: the solve ends with an error */
  ++*calls;
  for (int j = 0; j < M; j++)
    for (int i = 0; i < M; i++) {
      const double *c = x + j * M + i;
      double sum = 4 * *c;
      if (i > 0) sum -= c[-1];
      if (i < M - 1) sum -= c[1];
      if (j > 0) sum -= c[-M];
      if (j < M - 1) sum -= c[M];
      y[j * M + i] = sum;
    }
  return 0;
}

int main(void) {
  static double diagonal[N], exact[N], b[N], x[N];
  const double h = 1.0 / (M + 1);
  ht_context *ctx = NULL;
  ht_solver *solver = NULL;
  ht_report report;
  int64_t calls = 0;
  int failed = 1;

  for (int k = 0; k < N; k++) { /* the solution x (1-x) y (1-y): five points are exact for it */
    int i = k % M + 1, j = k / M + 1;
    double px = h * i, py = h * j;
    exact[k] = px * (1 - px) * py * (1 - py);
    b[k] = 2 * h * h * (px * (1 - px) + py * (1 - py));
    diagonal[k] = 4;
  }
  if (ht_context_create(&ctx)) return 3;
  if (ht_solver_create(ctx, NULL, &solver)) goto done;
  if (ht_solver_set_operator(solver, N, laplacian, &calls, diagonal)) goto done; /* the diagonal is for Jacobi */
  if (ht_solver_solve(solver, 1, b, x, &report)) goto done;
  failed = 0;
  printf("%s after %lld iterations and %lld products\n", ht_outcome_name(report.outcome), (long long)report.iterations, (long long)calls);
  double error = 0;
  for (int k = 0; k < N; k++) error = fmax(error, fabs(x[k] - exact[k]));
  printf("middle of the membrane: %.6f, largest error %.1e\n", x[N / 2], error);
done:
  if (failed) fprintf(stderr, "%s\n%s", ht_context_error(ctx), ht_context_trail(ctx));
  ht_solver_destroy(solver);
  ht_context_destroy(ctx);
  return failed ? 2 : report.outcome != HT_CONVERGED;
}
