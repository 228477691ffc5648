/* 04: a precision policy of one's own: each block of 64 columns is read in the fewest bytes that an error budget allows.
 * Whatever a policy answers, the result is certified against the FP64 matrix. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include "halftone/halftone.h"

enum { N = 20000 };

typedef struct counts {
  int64_t looks, blocks_16, blocks_f32, blocks_f64;
} counts;

/* Reading block j at a lower level changes A p by at most error[j] ||p_j||, and the residual by alpha times that. Allow a
 * hundredth of the current residual in total, in equal shares. */
static int policy(void *user, const ht_policy_view *view, uint8_t *precision) {
  counts *c = user;
  double share = 0.01 * view->residual / (double)view->blocks;
  c->looks++;
  for (int64_t j = 0; j < view->blocks; j++) {
    double size = view->alpha * sqrt(view->direction_norm2[j]);
    if (size * view->error_16[j] <= share)
      precision[j] = HT_BF16, c->blocks_16++;
    else if (size * view->error_f32[j] <= share)
      precision[j] = HT_F32, c->blocks_f32++;
    else
      precision[j] = HT_F64, c->blocks_f64++;
  }
  return 0;
}

int main(void) {
  static int64_t row_start[N + 1];
  static int32_t columns[3 * N];
  static double values[3 * N], b[N], x[N];
  ht_context *ctx = NULL;
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  ht_report report;
  counts count = {0};
  int64_t nnz = 0;
  int failed = 1;

  for (int i = 0; i < N; i++) { /* a chain whose links differ, with every node held by a weak spring */
    double left = 2 + sin(i), right = 2 + sin(i + 1);
    row_start[i] = nnz;
    if (i > 0) columns[nnz] = i - 1, values[nnz++] = -left;
    columns[nnz] = i, values[nnz++] = left + right + 0.01;
    if (i < N - 1) columns[nnz] = i + 1, values[nnz++] = -right;
    b[i] = 1;
  }
  row_start[N] = nnz;

  if (ht_context_create(&ctx)) return 3;
  if (ht_matrix_create_csr(ctx, N, row_start, columns, values, HT_BORROW, &a)) goto done;
  if (ht_solver_create(ctx, NULL, &solver)) goto done;
  if (ht_solver_set_option(solver, "format", "split")) goto done; /* the storage that can be read at 2, 4 and 8 bytes */
  if (ht_solver_set_option(solver, "policy-interval", "8")) goto done;
  ht_solver_set_policy(solver, policy, &count);
  if (ht_solver_set_matrix(solver, a)) goto done;
  if (ht_solver_solve(solver, 1, b, x, &report)) goto done;
  failed = 0;
  printf("%s after %lld iterations, true residual %.1e\n", ht_outcome_name(report.outcome), (long long)report.iterations,
         report.residual_true);
  printf("%lld looks; blocks at 16 bits %lld, at 32 bits %lld, at 64 bits %lld\n", (long long)count.looks, (long long)count.blocks_16,
         (long long)count.blocks_f32, (long long)count.blocks_f64);
done:
  if (failed) fprintf(stderr, "%s\n%s", ht_context_error(ctx), ht_context_trail(ctx));
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return failed ? 2 : report.outcome != HT_CONVERGED;
}
