/* Whole solves through the public interface. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_GPU_SOLVES_H
#define HT_TEST_GPU_SOLVES_H
#include "gpu/gpu_helpers.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "data/matrix.h"
#include "halftone/halftone.h"
#include "support/generated.h"

#define OK(call) assert_int_equal((call), HT_OK)
enum { MOST_OPTIONS = 8 };
static const double rtol = 1e-10;
static const char *const engines[] = {"textbook", "persistent", "streaming"};
enum { ENGINES = 3, TEXTBOOK = 0 };

static inline double *array(int64_t n) {
  double *x = calloc((size_t)n, sizeof *x);
  assert_non_null(x);
  return x;
}

static inline ht_matrix *generate(gpu *g, const char *line) {
  ht_matrix *a;
  if (generate_line(g->ctx, line, &a) != HT_OK) fail_msg("%s: %s", line, ht_context_error(g->ctx));
  return a;
}

/* A solution without structure, and its right-hand side. */
static inline double *right_hand_side(const ht_matrix *a) {
  double *x = array(a->n), *b = array(a->n);
  for (int64_t i = 0; i < a->n; i++) x[i] = sin(1.1 * (double)i) + 0.3;
  OK(ht_matrix_multiply(a, x, b));
  free(x);
  return b;
}

/* ---- solvers ---- */

typedef struct setting {
  const char *name, *value;
} setting;

/* Up to MOST_OPTIONS settings, the last without a name. */
static inline ht_solver *make_solver(gpu *g, const ht_matrix *a, const setting *settings) {
  ht_options *options;
  ht_solver *solver;
  OK(ht_options_create(g->ctx, &options));
  for (int i = 0; i < MOST_OPTIONS && settings[i].name; i++) OK(ht_options_set(options, settings[i].name, settings[i].value));
  OK(ht_solver_create(g->ctx, options, &solver));
  ht_options_destroy(options);
  OK(ht_solver_set_matrix(solver, a));
  return solver;
}

static inline ht_report solve_with(gpu *g, ht_solver *solver, const double *b, double *x) {
  ht_report report;
  if (ht_solver_solve(solver, 1, b, x, &report) != HT_OK) fail_msg("%s", ht_context_error(g->ctx));
  return report;
}

#define SETTINGS(...)                                                                                                                      \
  (const setting[MOST_OPTIONS]) { __VA_ARGS__ }

static inline ht_report solve_once(gpu *g, const ht_matrix *a, const setting *settings, const double *b, double *x) {
  ht_solver *solver = make_solver(g, a, settings);
  ht_report report = solve_with(g, solver, b, x);
  ht_solver_destroy(solver);
  return report;
}

/* ||b - A x|| <= rtol ||b||, with the CPU's residual; two certificates may differ by the rounding of their sums. */
static inline int meets_tolerance(gpu *g, const ht_matrix *a, const double *b, const double *x) {
  const ht_csr_view view = ht_matrix_view(a);
  double *r = array(a->n), rr = 0, bb = 0, rounding = 0;
  g->cpu->csr_residual(g->ctx, &view, x, b, r);
  for (int64_t i = 0; i < a->n; i++) {
    double magnitude = fabs(b[i]), length = (double)(a->row_start[i + 1] - a->row_start[i]);
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) magnitude += fabs(a->values[k] * x[a->columns[k]]);
    rr += r[i] * r[i];
    bb += b[i] * b[i];
    rounding += (length + 2) * magnitude * (length + 2) * magnitude;
  }
  free(r);
  return sqrt(rr) <= rtol * sqrt(bb) * (1 + 1e-12) + 2 * DBL_EPSILON * sqrt(rounding);
}

#endif
