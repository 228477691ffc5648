/* ht_matrix_facts: the parts put together, and the verdict. SPDX-License-Identifier: BSD-3-Clause */
#include "halftone/facts.h"
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/fields.h"
#include "data/order.h"
#include "data/split.h"
#include "solver/facts_scan.h"
#include "solver/lanczos.h"

static const ht_report_info fields[] = {
#define HT_FACT_REAL(name, unit, help) {#name, HT_REPORT_IS_REAL, unit, help, offsetof(ht_facts, name)},
#define HT_FACT_INTEGER(name, unit, help) {#name, HT_REPORT_IS_INTEGER, unit, help, offsetof(ht_facts, name)},
#define HT_FACT_STRING(name, unit, help) {#name, HT_REPORT_IS_STRING, unit, help, offsetof(ht_facts, name)},
#include "halftone/facts.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };

int ht_facts_count(void) { return FIELDS; }
const ht_report_info *ht_facts_at(int index) { return index >= 0 && index < FIELDS ? &fields[index] : NULL; }
size_t ht_facts_json(const ht_facts *facts, char *text, size_t size) { return ht_fields_json(fields, FIELDS, facts, text, size); }

static HT_PRINTF(3, 4) void say(ht_facts *f, int looks_spd, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(f->reason, sizeof f->reason, format, args);
  va_end(args);
  f->looks_spd = looks_spd;
}

/* A Ritz value may lie outside the spectrum by the rounding of the products: row length and steps, times the norm. */
static double rounding(const ht_facts *f, double norm) { return DBL_EPSILON * (double)(f->row_max + f->lanczos_steps) * norm; }

/* From what a single entry shows to what only an estimate shows. */
void ht_facts_judge(ht_facts *f) {
  long long r = (long long)f->diagonal_bad_row + 1;
  if (f->n == 0)
    say(f, 0, "the matrix is empty");
  else if (f->symmetry[0] == 'u')
    say(f, 0, "not symmetric: entries (%lld,%lld) and (%lld,%lld), counted from 1, differ by %.6g", (long long)f->asymmetry_row + 1,
        (long long)f->asymmetry_column + 1, (long long)f->asymmetry_column + 1, (long long)f->asymmetry_row + 1, f->asymmetry);
  else if (f->diagonal_bad_row >= 0)
    say(f, 0, "%lld diagonal entries are not positive, the first is (%lld,%lld), counted from 1",
        (long long)f->diagonal_missing + (long long)f->diagonal_negative, r, r);
  else if (f->coupling_max > 1 + 4 * DBL_EPSILON)
    say(f, 0, "entry (%lld,%lld), counted from 1, is too large for its two diagonal entries: a_ij^2 > a_ii a_jj",
        (long long)f->coupling_row + 1, (long long)f->coupling_column + 1);
  else if (f->eigenvalue_min < -rounding(f, f->norm_inf))
    say(f, 0, "the Lanczos process found the eigenvalue estimate %.6g below 0", f->eigenvalue_min);
  else if (f->scaled_eigenvalue_min < -rounding(f, (double)f->row_max))
    say(f, 0, "the Lanczos process found the eigenvalue estimate %.6g below 0 for the Jacobi-scaled matrix", f->scaled_eigenvalue_min);
  else if (f->zero_sum_rows == f->n)
    say(f, 0, "singular: every row adds up to 0, so the constant vector is a null vector");
  else if (f->strictly_dominant_rows == f->n)
    say(f, 1, "positive definite: the diagonal is positive and dominates every row");
  else if (f->scaled_eigenvalue_min <= rounding(f, (double)f->row_max))
    say(f, 0, "singular, or so close to it that FP64 cannot tell: an eigenvalue is 0 but for rounding");
  else if (f->lanczos_steps > 0)
    say(f, 1, "nothing speaks against it; the smallest eigenvalue estimate after %lld Lanczos steps is %.3g, above 0",
        (long long)f->lanczos_steps, f->eigenvalue_min);
  else
    say(f, 1, "no entry speaks against it; the eigenvalues were not estimated");
}

static ht_status estimate_scaled(const ht_matrix *a, double *diagonal, int steps, ht_facts *f) {
  ht_csr_view view = ht_matrix_view(a);
  ht_lanczos found;
  for (int64_t i = 0; i < a->n; i++) diagonal[i] = 1 / sqrt(diagonal[i]); /* no use for the diagonal after this */
  HT_TRY(a->ctx, ht_lanczos_extremes(a->ctx, &view, diagonal, steps, &found));
  f->scaled_eigenvalue_min = found.smallest;
  f->scaled_eigenvalue_max = found.largest;
  if (found.smallest > 0) f->scaled_condition_estimate = found.largest / found.smallest;
  return HT_OK;
}

static ht_status estimate(const ht_matrix *a, double *diagonal, int steps, ht_facts *f) {
  ht_csr_view view = ht_matrix_view(a);
  ht_lanczos found;
  f->lanczos_steps = 0;
  if (steps == 0 || a->symmetry == HT_UNSYMMETRIC) return HT_OK;
  HT_TRY(a->ctx, ht_lanczos_extremes(a->ctx, &view, NULL, steps, &found));
  f->lanczos_steps = found.steps;
  f->eigenvalue_min = found.smallest;
  f->eigenvalue_max = found.largest;
  if (found.smallest > 0) f->condition_estimate = found.largest / found.smallest;
  if (f->diagonal_bad_row < 0) HT_TRY(a->ctx, estimate_scaled(a, diagonal, steps, f));
  return HT_OK;
}

/* In the order and the storage of a solver: whether 16 bits hold a value depends on those that share an exponent with it. */
static ht_status build_split(const ht_matrix *a, const ht_csr_view *view, const ht_node_graph *graph, ht_facts *f) {
  ht_split_options options = {.exactness_flags = 1};
  ht_split *split = NULL;
  int32_t *order;
  double exact = 0;
  HT_TRY(a->ctx, ht_order_auto(a->ctx, graph, HT_ROOT_FAR, NULL, &order));
  options.order = order;
  ht_status status = ht_split_create(a->ctx, view, graph, &options, &split);
  ht_release(a->ctx, order);
  if (status != HT_OK) return ht_trace(a->ctx, status, __func__, __FILE__, __LINE__);
  for (int64_t t = 0; t < split->view.tiles; t++)
    if (split->view.tile[t].exact == HT_LEVEL_16) exact += (double)split->view.tile[t].nonzeros;
  f->share_exact_16 = exact / (double)a->nnz;
  ht_split_destroy(split);
  return HT_OK;
}

static ht_status measure_exact(const ht_matrix *a, ht_facts *f) {
  ht_csr_view view = ht_matrix_view(a);
  ht_node_graph graph = {0};
  if (a->symmetry == HT_UNSYMMETRIC || !a->nnz) return HT_OK;
  HT_TRY(a->ctx, ht_node_graph_create(a->ctx, &view, &graph));
  ht_status status = build_split(a, &view, &graph, f);
  ht_node_graph_release(a->ctx, &graph);
  if (status != HT_OK) return ht_trace(a->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

ht_status ht_matrix_facts(const ht_matrix *a, int lanczos_steps, ht_facts *facts) {
  HT_NEED(NULL, a);
  HT_NEED(a->ctx, facts);
  ht_context *ctx = a->ctx;
  double *diagonal;
  ht_facts f;
  HT_CHECK(ctx, lanczos_steps >= 0 && lanczos_steps <= HT_LANCZOS_MOST, HT_BAD_ARGUMENT, "Lanczos steps must be 0 to %d, and are %d",
           HT_LANCZOS_MOST, lanczos_steps);
  ht_fields_clear(fields, FIELDS, &f, sizeof f);
  HT_TRY(ctx, ht_allocate(ctx, a->n, sizeof *diagonal, &diagonal));
  ht_facts_scan_rows(a, diagonal, &f);
  ht_facts_scan_pairs(a, diagonal, &f);
  int threads = ctx->threads; /* as a solver would take them: Tile-CSC's tiles depend on it */
  ctx->threads = ht_threads_worth(ctx, 12 * (double)a->nnz + 9 * 8 * (double)a->n);
  ht_status status = ht_facts_storage(a, &f);
  if (status == HT_OK) status = measure_exact(a, &f);
  if (status == HT_OK) status = estimate(a, diagonal, lanczos_steps, &f);
  ctx->threads = threads;
  ht_release(ctx, diagonal);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  ht_facts_judge(&f);
  *facts = f;
  return HT_OK;
}
