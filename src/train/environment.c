/* The solver as an environment. SPDX-License-Identifier: BSD-3-Clause */
#include "train/environment.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/random.h"
#include "halftone/solver.h"
#include "data/split.h"
#include "solver/guard.h"

/* CG needs a matrix that is symmetric to the bit: the average with the transpose, as the solver takes. */
static ht_status choose_symmetric(ht_environment *e) {
  e->symmetric = e->matrix;
  if (e->matrix->symmetry == HT_SYMMETRIC) return HT_OK;
  HT_CHECK(e->ctx, e->matrix->symmetry == HT_NEARLY_SYMMETRIC, HT_BAD_MATRIX,
           "training needs a symmetric matrix, and entry (%lld,%lld) of %s, counted from 1, differs from its partner by %g",
           (long long)e->matrix->asymmetric_row + 1, (long long)e->matrix->asymmetric_column + 1, e->matrix->source, e->matrix->asymmetry);
  e->averaged = *e->matrix;
  e->averaged.values = NULL;
  HT_TRY(e->ctx, ht_allocate(e->ctx, e->matrix->nnz, sizeof(double), &e->averaged.values));
  ht_matrix_averaged_values(e->matrix, e->averaged.values);
  e->averaged.symmetry = HT_SYMMETRIC;
  e->symmetric = &e->averaged;
  return HT_OK;
}

static ht_status tabulate_split(ht_environment *e) {
  const ht_split_view *a = e->op->split;
  HT_TRY(e->ctx, ht_allocate(e->ctx, e->padded, sizeof(double), &e->scale));
  HT_TRY(e->ctx, ht_allocate(e->ctx, a->tiles * HT_LEVELS, sizeof(double), &e->bytes));
  for (int64_t i = 0; i < e->padded; i++) e->scale[i] = ldexp(1, ht_split_exponent(a, i < a->n ? i : 0));
  for (int64_t t = 0; t < a->tiles; t++) {
    for (int level = 0; level < HT_LEVELS; level++)
      e->bytes[t * HT_LEVELS + level] = (double)ht_split_tile_bytes(a, &a->tile[t], ht_tile_level(&a->tile[t], (ht_level)level));
    e->bytes_64 += e->bytes[t * HT_LEVELS + HT_LEVEL_64];
  }
  return HT_OK;
}

static ht_status make_operator(ht_environment *e, int on_device) {
  ht_operator_options options = {.exactness_flags = 1, .column_sums = e->options->reward != HT_REWARD_PAPER}; /* the paper has none */
  HT_TRY(e->ctx, ht_backend_find(e->ctx, "cpu", &e->backend));
  HT_TRY(e->ctx, choose_symmetric(e));
  if (e->options->format != HT_TRAIN_TILECSC)
    HT_TRY(e->ctx, ht_operator_create_split(e->ctx, e->backend, &options, e->symmetric, &e->op));
  else if (!on_device)
    HT_TRY(e->ctx, ht_operator_create_tilecsc(e->ctx, e->backend, &options, e->symmetric, &e->op));
  e->n = e->matrix->n;
  e->blocks = e->op ? e->op->blocks : (e->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK;
  e->padded = e->blocks * HT_COLUMN_BLOCK;
  e->bytes_vectors = 8 * 8.0 * (double)e->n; /* 4 reads and 4 writes, as the fused loop */
  if (e->op && e->op->split) return tabulate_split(e);
  for (int64_t k = 0; k < e->matrix->nnz; k++) e->bytes_64 += 8 + 2;
  return HT_OK;
}

/* Why the solver itself does not solve the system in FP64, in its own words; "" where it does, or cannot be asked. */
static void ask_solver(ht_environment *e, char reason[HT_REPORT_TEXT]) {
  ht_solver *solver = NULL;
  ht_report report = {.outcome = HT_CONVERGED};
  double *b = NULL;
  ht_status status = ht_allocate_zeroed(e->ctx, 2 * e->n, sizeof *b, &b);
  if (status == HT_OK) status = ht_solver_create(e->ctx, NULL, &solver);
  if (status == HT_OK) status = ht_solver_set_option(solver, "policy", "fixed:f64");
  if (status == HT_OK) status = ht_solver_set_option(solver, "backend", "cpu");
  if (status == HT_OK) status = ht_solver_set_matrix(solver, e->matrix);
  if (status == HT_OK) {
    ht_right_side(e->matrix, e->options, 0, b);
    status = ht_solver_solve(solver, 1, b, b + e->n, &report);
  }
  snprintf(reason, HT_REPORT_TEXT, "%s", status == HT_OK && report.outcome != HT_CONVERGED ? report.detail : "");
  ht_solver_destroy(solver);
  ht_release(e->ctx, b);
}

ht_status ht_environment_refer_to(ht_environment *e, ht_course *c, double residual) {
  e->iterations_64 = c->iteration;
  e->true_64 = ht_course_true_residual(c);
  HT_CHECK(e->ctx, !ht_stop_requested(e->ctx), HT_INTERRUPTED, "training was interrupted before its first episode");
  if (c->reached && c->iteration) return HT_OK;
  char reason[HT_REPORT_TEXT];
  ask_solver(e, reason);
  HT_CHECK(e->ctx, !*reason, HT_BAD_MATRIX, "training needs a matrix that CG solves in FP64, and %s is none: %s",
           e->matrix->source[0] ? e->matrix->source : "this one", reason);
  HT_CHECK(
      e->ctx, isfinite(residual), HT_BAD_MATRIX,
      "training needs a right-hand side whose norm is a number above 0, and that of %s is none: A times ones is 0 where all rows sum to 0 "
      "(A is singular then), and entries near the ends of the range overflow",
      e->matrix->source[0] ? e->matrix->source : "this matrix");
  HT_FAIL(e->ctx, HT_BAD_MATRIX,
          "training needs a matrix that CG solves in FP64, and %s %s after %s with ||r|| = %.2e ||b||; more iterations or a "
          "larger rtol may help",
          e->matrix->source[0] ? e->matrix->source : "this one", c->broken ? "breaks down" : "ends",
          ht_number_of(c->iteration, "iteration").text, residual);
}

ht_status ht_environment_solve(ht_environment *e) {
  ht_course course;
  ht_status status = ht_course_create(e->ctx, 1, &e, &course);
  if (status == HT_OK) {
    ht_course_begin(e, 0, &course);
    memset(course.level, HT_LEVEL_64, (size_t)e->blocks);
    while (!course.over && !ht_stop_requested(e->ctx)) ht_course_step(&course, e->options->max_iterations);
    status = ht_environment_refer_to(e, &course, course.norm_r / course.norm_0);
  }
  ht_course_release(e->ctx, &course);
  return status;
}

ht_status ht_environment_create(ht_context *ctx, const ht_matrix *matrix, const ht_train_options *options, int on_device,
                                ht_environment **out) {
  ht_environment *e;
  *out = NULL;
  HT_CHECK(ctx, matrix->n > 0, HT_BAD_MATRIX, "training needs a matrix with at least one row");
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *e, &e));
  e->ctx = ctx;
  e->matrix = matrix;
  e->options = options;
  ht_status status = make_operator(e, on_device);
  if (status != HT_OK) {
    ht_environment_destroy(e);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = e;
  return HT_OK;
}

void ht_environment_destroy(ht_environment *e) {
  if (!e) return;
  ht_operator_destroy(e->op);
  ht_release(e->ctx, e->averaged.values);
  ht_release(e->ctx, e->scale);
  ht_release(e->ctx, e->bytes);
  ht_release(e->ctx, e);
}

/* ---- courses ---- */

static const int32_t *order_of(const ht_environment *e) { return e->op ? e->op->order : NULL; }

enum { VECTORS = 8 };

ht_status ht_course_create(ht_context *ctx, int count, ht_environment *const *environment, ht_course *c) {
  int64_t padded = 0, tiles = 1;
  *c = (ht_course){.over = 1};
  for (int k = 0; k < count; k++) {
    const ht_environment *e = environment[k];
    if (e->padded > padded) padded = e->padded;
    if (e->op && e->op->split && e->op->split->tiles > tiles) tiles = e->op->split->tiles;
  }
  HT_TRY(ctx, ht_allocate_zeroed(ctx, padded * VECTORS, sizeof(double), &c->memory));
  double **vector[VECTORS] = {&c->b, &c->x, &c->r, &c->p, &c->q, &c->scaled_p, &c->scaled_q, &c->work};
  for (int k = 0; k < VECTORS; k++) *vector[k] = c->memory + k * padded;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, padded / HT_COLUMN_BLOCK + tiles, 1, &c->level));
  c->tile_level = c->level + padded / HT_COLUMN_BLOCK;
  return HT_OK;
}

void ht_course_release(ht_context *ctx, ht_course *c) {
  ht_release(ctx, c->memory);
  ht_release(ctx, c->level);
  *c = (ht_course){.over = 1};
}

void ht_right_side(const ht_matrix *a, const ht_train_options *options, uint64_t number, double *b) {
  uint64_t seed = (uint64_t)options->seed;
  for (int64_t i = 0; i < a->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += a->values[k];
    b[i] = options->rhs == HT_RIGHT_SIDE_ONES ? sum : ht_learning_right_side(seed, (int64_t)number, i);
  }
}

void ht_course_right_side(const ht_environment *e, uint64_t number, ht_course *c) {
  c->environment = e;
  ht_right_side(e->matrix, e->options, number, c->b);
}

void ht_course_begin(const ht_environment *e, uint64_t number, ht_course *c) {
  const int32_t *order = order_of(e);
  size_t size = (size_t)e->padded * sizeof(double);
  ht_course_right_side(e, number, c);
  double *zeroed[] = {c->x, c->r, c->scaled_p, c->q};
  for (size_t k = 0; k < sizeof zeroed / sizeof *zeroed; k++) memset(zeroed[k], 0, size);
  for (int64_t i = 0; i < e->n; i++) c->r[i] = c->b[order ? order[i] : i];
  memcpy(c->p, c->r, size);
  c->rr = e->backend->dot(e->ctx, e->padded, c->r, c->r);
  c->norm_0 = c->norm_r = c->reference = sqrt(c->rr);
  c->lowest = HT_LEVEL_64;
  c->iteration = c->reached = 0;
  c->broken = c->over = !(c->norm_0 > 0 && isfinite(c->norm_0));
}

/* That Tile-CSC reads for so many tiles. */
static double tiles_bytes(const ht_environment *e, const int64_t count[HT_LEVELS]) {
  static const double per_level[HT_LEVELS] = {4.0 / 10, 6.0 / 10, 1};
  double bytes = 0;
  for (int level = 0; level < HT_LEVELS; level++) bytes += per_level[level] * (double)count[level] / (double)e->blocks * e->bytes_64;
  return bytes;
}

double ht_environment_bytes(const ht_environment *e, ht_level level) {
  const ht_split_view *a = e->op ? e->op->split : NULL;
  int64_t count[HT_LEVELS] = {[HT_LEVEL_16] = 0};
  double bytes = 0;
  count[level] = e->blocks;
  if (!a) return tiles_bytes(e, count);
  for (int64_t t = 0; t < a->tiles; t++) bytes += e->bytes[t * HT_LEVELS + level];
  return bytes;
}

double ht_environment_share(const ht_environment *e, const int64_t count[HT_LEVELS], int64_t iterations) {
  return (tiles_bytes(e, count) + (double)iterations * e->bytes_vectors) / (e->bytes_64 + e->bytes_vectors);
}

/* q = A p; returns the bytes read. */
static double multiply(ht_course *c) {
  const ht_environment *e = c->environment;
  const ht_split_view *a = e->op->split;
  double bytes = 0;
  if (!a) { /* cannot fail in the host's memory */
    if (e->op->apply(e->op, c->level, c->p, c->q, NULL) != HT_OK) c->q[0] = NAN;
    int64_t count[HT_LEVELS] = {0};
    for (int64_t b = 0; b < e->blocks; b++) count[c->level[b]]++;
    return tiles_bytes(e, count);
  }
  ht_split_tile_levels(a, c->level, c->tile_level);
  e->backend->scale_by(e->ctx, e->padded, e->scale, c->p, c->scaled_p);
  e->backend->split_multiply(e->ctx, a, c->tile_level, c->scaled_p, c->scaled_q);
  e->backend->scale_by(e->ctx, e->padded, e->scale, c->scaled_q, c->q);
  for (int64_t t = 0; t < a->tiles; t++) bytes += e->bytes[t * HT_LEVELS + c->tile_level[t]];
  return bytes;
}

/* b - A x in the caller's order, to scaled_q. */
static void subtract_product(ht_course *c) {
  const ht_environment *e = c->environment;
  const int32_t *order = order_of(e);
  const ht_csr_view view = ht_matrix_view(e->matrix);
  for (int64_t i = 0; i < e->n; i++) c->work[order ? order[i] : i] = c->x[i];
  e->backend->csr_residual(e->ctx, &view, c->work, c->b, c->scaled_q);
}

/* ---- replacement, as the guard does it ---- */

static int is_replacement_due(ht_course *c) {
  const ht_environment *e = c->environment;
  for (int64_t b = 0; b < e->blocks; b++)
    if (c->level[b] < c->lowest) c->lowest = c->level[b];
  if (e->options->replace == HT_REPLACE_NO || c->lowest == HT_LEVEL_64) return 0;
  return c->norm_r <= ht_guard_usual_drop((ht_level)c->lowest) * c->reference || c->norm_r <= e->options->rtol * c->norm_0;
}

/* r = b - A x; *change: how far r moves. */
static void replace(ht_course *c, double *rr, double *change) {
  const ht_environment *e = c->environment;
  const int32_t *order = order_of(e);
  double change2 = 0;
  subtract_product(c);
  for (int64_t i = 0; i < e->n; i++) {
    double r = c->scaled_q[order ? order[i] : i];
    change2 += (r - c->r[i]) * (r - c->r[i]);
    c->r[i] = r;
  }
  *rr = e->backend->dot(e->ctx, e->padded, c->r, c->r);
  *change = sqrt(change2);
  c->replaced = 1;
  c->norm_r = c->reference = sqrt(*rr);
  c->lowest = HT_LEVEL_64;
}

double ht_course_step(ht_course *c, int64_t most) {
  const ht_environment *e = c->environment;
  c->read = multiply(c);
  c->replaced = 0;
  double pq = e->backend->dot(e->ctx, e->padded, c->p, c->q), alpha = c->rr / pq;
  c->iteration++;
  double share = (c->read + e->bytes_vectors) / (e->bytes_64 + e->bytes_vectors);
  if (!(pq > 0) || !isfinite(alpha)) {
    c->broken = c->over = 1;
    return share;
  }
  e->backend->axpy(e->ctx, e->padded, alpha, c->p, c->x);
  e->backend->axpy(e->ctx, e->padded, -alpha, c->q, c->r);
  double rr = e->backend->dot(e->ctx, e->padded, c->r, c->r);
  c->norm_r = sqrt(rr);
  double change = 0;
  if (is_replacement_due(c)) {
    replace(c, &rr, &change);
    share += e->bytes_64 / (e->bytes_64 + e->bytes_vectors);
  }
  c->reached = c->norm_r <= e->options->rtol * c->norm_0;
  c->broken = !isfinite(rr);
  c->over = c->reached || c->broken || c->iteration >= most;
  e->backend->xpby(e->ctx, e->padded, c->r, change <= ht_replacement_bearable(c->norm_r) ? rr / c->rr : 0, c->p);
  c->rr = rr;
  return share;
}

double ht_course_true_residual(ht_course *c) {
  const ht_environment *e = c->environment;
  subtract_product(c);
  double norm = sqrt(e->backend->dot(e->ctx, e->n, c->scaled_q, c->scaled_q)) / c->norm_0;
  return isfinite(norm) ? norm : INFINITY;
}
