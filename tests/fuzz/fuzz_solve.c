/* Small systems of any values, on every route: no crash, and never a false "converged". The residual is recomputed here in
 * long double. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "halftone/halftone.h"

enum { MOST = 9 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
  const uint8_t *at, *end;
} input;

static unsigned take(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* Small numbers mostly; sometimes a power of two of any size, sometimes eight bytes as they come. */
static double take_value(input *in) {
  unsigned kind = take(in);
  if (kind < 160) return (double)kind / 8 - 8;
  if (kind < 224) return ldexp(kind & 1 ? 1 : -1, (int)(take(in) << 3) - 1020);
  unsigned char bytes[8];
  double value;
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)take(in);
  memcpy(&value, bytes, sizeof value);
  return value;
}

static int64_t take_matrix(input *in, int n, int64_t *row_start, int32_t *columns, double *values) {
  double a[MOST][MOST] = {{0}};
  for (int i = 0; i < n; i++) a[i][i] = 8 + (double)(take(in) & 15);
  for (unsigned entries = take(in) % 40; entries > 0; entries--) {
    int i = (int)take(in) % n, j = (int)take(in) % n;
    a[i][j] = a[j][i] = take_value(in);
    if (take(in) == 255) a[i][j] = take_value(in); /* now and then not symmetric */
  }
  int64_t nnz = 0;
  for (int i = 0; i < n; i++) {
    row_start[i] = nnz;
    for (int j = 0; j < n; j++)
      if (a[i][j] != 0) columns[nnz] = j, values[nnz++] = a[i][j];
  }
  return row_start[n] = nnz;
}

/* Norms of b - A x, of b, and of what rounding may add to the first. */
static void norms(int n, const int64_t *row_start, const int32_t *columns, const double *values, const double *b, const double *x,
                  long double *residual, long double *right, long double *rounding) {
  *residual = *right = *rounding = 0;
  for (int i = 0; i < n; i++) {
    long double r = b[i], size = fabs(b[i]);
    for (int64_t k = row_start[i]; k < row_start[i + 1]; k++) {
      long double term = (long double)values[k] * x[columns[k]];
      r -= term;
      size += fabsl(term);
    }
    *residual += r * r;
    *right += (long double)b[i] * b[i];
    *rounding += size * size;
  }
  *residual = sqrtl(*residual);
  *right = sqrtl(*right);
  *rounding = sqrtl(*rounding) * 0x1p-52L * (n + 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const choices[][2] = {
      {"policy", "fixed:f64"}, {"policy", "fixed:f32"}, {"policy", "fixed:bf16"},    {"policy", "rule"},    {"policy", "budget"},
      {"precond", "none"},     {"precond", "ic0"},      {"precond", "block-jacobi"}, {"format", "split"},   {"format", "csr"},
      {"format", "tilecsc"},   {"engine", "textbook"},  {"ordering", "rcm"},         {"stopping", "paper"}, {"exactness-flags", "no"},
  };
  input in = {data, data + size};
  int n = 1 + (int)take(&in) % MOST;
  int64_t row_start[MOST + 1];
  int32_t columns[MOST * MOST];
  double values[MOST * MOST], b[MOST], x[MOST];
  ht_context *ctx;
  ht_matrix *a = NULL;
  ht_solver *solver = NULL;
  ht_report report;
  int paper = 0;

  if (ht_context_create(&ctx)) abort();
  if (ht_context_set_threads(ctx, 1) || ht_solver_create(ctx, NULL, &solver)) abort();
  if (ht_solver_set_option(solver, "threads", "1") || ht_solver_set_option(solver, "time-limit", "2")) abort();
  unsigned bits = take(&in);
  bits |= take(&in) << 8;
  for (unsigned k = 0; k < sizeof choices / sizeof *choices; k++)
    if (bits >> k & 1) {
      if (ht_solver_set_option(solver, choices[k][0], choices[k][1])) abort();
      paper |= !strcmp(choices[k][1], "paper");
    }
  take_matrix(&in, n, row_start, columns, values);
  for (int i = 0; i < n; i++) b[i] = take_value(&in), x[i] = take(&in) & 1 ? take_value(&in) : 0;
  ht_status status = ht_matrix_create_csr(ctx, n, row_start, columns, values, HT_COPY, &a);
  if (!status) status = ht_solver_set_matrix(solver, a);
  if (!status) status = ht_solver_solve(solver, 1, b, x, &report);
  if (status && !*ht_context_error(ctx)) abort();
  if (status == HT_INTERNAL) abort();
  if (!status && report.outcome == HT_CONVERGED && !paper) {
    long double residual, right, rounding;
    norms(n, row_start, columns, values, b, x, &residual, &right, &rounding);
    if (!(residual <= 1e-10L * right + rounding)) abort();
  }
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return 0;
}
