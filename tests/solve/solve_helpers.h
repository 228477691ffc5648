/* Shared by the solver tests: contexts, small matrices, independent residuals. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TESTS_SOLVE_HELPERS_H
#define HT_TESTS_SOLVE_HELPERS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "halftone/generate.h"
#include "halftone/halftone.h"

#define OK(call) assert_int_equal((call), HT_OK)

static inline ht_matrix *make(ht_context *ctx, const char *kind, const char *parameter, const char *value, const char *parameter2,
                              const char *value2) {
  const char *names[] = {parameter, parameter2}, *values[] = {value, value2};
  ht_matrix *a;
  OK(ht_generate(ctx, kind, parameter2 ? 2 : parameter ? 1 : 0, names, values, &a));
  return a;
}

/* A small dense matrix, zeros left out. */
static inline ht_matrix *from_dense(ht_context *ctx, int64_t n, const double *dense) {
  int64_t row_start[17] = {0}, k = 0;
  int32_t columns[256];
  double values[256];
  assert_true(n <= 16);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++)
      if (dense[i * n + j] != 0) {
        columns[k] = (int32_t)j;
        values[k++] = dense[i * n + j];
      }
    row_start[i + 1] = k;
  }
  ht_matrix *a;
  OK(ht_matrix_create_csr(ctx, n, row_start, columns, values, HT_COPY, &a));
  return a;
}

/* ||b - A x|| / ||b|| in long double: independent of the library's products. */
static inline double true_residual(const ht_matrix *a, const double *x, const double *b) {
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;
  long double rr = 0, bb = 0;
  ht_matrix_csr(a, &row_start, &columns, &values);
  for (int64_t i = 0; i < ht_matrix_rows(a); i++) {
    long double r = b[i];
    for (int64_t k = row_start[i]; k < row_start[i + 1]; k++) r -= (long double)values[k] * x[columns[k]];
    rr += r * r;
    bb += (long double)b[i] * b[i];
  }
  return bb > 0 ? (double)sqrtl(rr / bb) : (double)sqrtl(rr);
}

/* Converged or not: the residual that is told is the true one, for values of the size 1 as far as long double can tell. */
static inline void assert_residual_is_told(const ht_matrix *a, const double *x, const double *b, const ht_report *r) {
  double size = 0, norm_b = 0, residual = true_residual(a, x, b);
  for (int64_t i = 0; i < ht_matrix_rows(a); i++) {
    size = fmax(size, fabs(x[i]));
    norm_b = hypot(norm_b, b[i]);
  }
  double slack = 16 * 0x1p-64 * size / norm_b;
  if (r->outcome == HT_CONVERGED) assert_true(residual <= 1.01 * r->tolerance + slack);
  assert_true(fabs(residual - r->residual_true) <= 0.1 * residual + slack);
}

/* A solution without structure, and its right-hand side. */
static inline void known_solution(const ht_matrix *a, double *x, double *b) {
  for (int64_t i = 0; i < ht_matrix_rows(a); i++) x[i] = sin(1.1 * (double)i) + 0.3;
  OK(ht_matrix_multiply(a, x, b));
}

static inline double *vector(int64_t n) {
  double *v = calloc((size_t)n, sizeof *v);
  assert_non_null(v);
  return v;
}

/* With these options; `a`: its matrix, or NULL. */
static inline ht_solver *solver_with(ht_context *ctx, const ht_matrix *a, int count, const char *const settings[][2]) {
  ht_options *options;
  ht_solver *solver;
  OK(ht_options_create(ctx, &options));
  for (int i = 0; i < count; i++) OK(ht_options_set(options, settings[i][0], settings[i][1]));
  OK(ht_solver_create(ctx, options, &solver));
  ht_options_destroy(options);
  if (a) OK(ht_solver_set_matrix(solver, a));
  return solver;
}

#endif
