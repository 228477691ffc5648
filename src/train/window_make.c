/* The workers' life, and the FP64 solves that others are compared with. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "solver/chooser.h"
#include "train/dense.h"
#include "train/window.h"

static const char *const preconds[] = {"none", "jacobi"};

static ht_status set_number(ht_solver *solver, const char *name, double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  return ht_solver_set_option(solver, name, text);
}

static ht_status make_solver(ht_window *r, ht_window_worker *w, const char *precond) {
  int64_t n = ht_matrix_rows(w->matrix);
  HT_TRY(w->ctx, ht_context_set_threads(w->ctx, ht_window_is_wide(r) ? 1 : r->ctx->threads));
  HT_TRY(w->ctx, ht_solver_create(w->ctx, NULL, &w->solver));
  HT_TRY(w->ctx, ht_solver_set_option(w->solver, "backend", "cpu"));
  HT_TRY(w->ctx, ht_solver_set_option(w->solver, "precond", precond));
  HT_TRY(w->ctx, set_number(w->solver, "rtol", r->options->rtol));
  HT_TRY(w->ctx, set_number(w->solver, "max-iterations", (double)r->options->max_iterations));
  HT_TRY(w->ctx, ht_solver_set_matrix(w->solver, w->matrix));
  ht_policy_chooser chooser = r->chooser;
  chooser.user = w;
  ht_solver_set_chooser(w->solver, &chooser);
  HT_TRY(w->ctx, ht_solver_prepare(w->solver));
  HT_TRY(w->ctx, ht_allocate(w->ctx, n, sizeof(double), &w->b));
  HT_TRY(w->ctx, ht_allocate(w->ctx, n, sizeof(double), &w->x));
  w->begins_with = 0; /* FP64, until that is solved */
  w->price = (ht_price){.facts = ht_solver_facts(w->solver), .n = n, .late = r->options->late};
  return HT_OK;
}

/* In FP64, from every right-hand side: what progress is measured on. */
static ht_status refer(const ht_window *r, ht_window_worker *w) {
  const double *history;
  for (int k = 0; k < HT_WINDOW_RIGHT_SIDES; k++) {
    ht_right_side(w->matrix, r->options, (uint64_t)k, w->b);
    memset(w->x, 0, (size_t)w->price.n * sizeof *w->x);
    HT_TRY(w->ctx, ht_solver_solve(w->solver, 1, w->b, w->x, &w->report));
    int64_t count = ht_solver_history(w->solver, &history);
    w->idle = r->options->precond == HT_TRAIN_PRECOND_BOTH && w->report.outcome == HT_ITERATION_LIMIT;
    if (w->idle) return HT_OK;
    int limited = w->report.outcome == HT_CONVERGED || w->report.outcome == HT_ITERATION_LIMIT;
    HT_CHECK(w->ctx, limited, HT_BAD_MATRIX, "training needs a matrix that CG solves in FP64, and %s is none: %s",
             w->matrix->source[0] ? w->matrix->source : "this one", w->report.detail);
    HT_CHECK(w->ctx, w->report.outcome == HT_CONVERGED && w->report.iterations > 0 && count > w->report.iterations, HT_BAD_MATRIX,
             "training needs a matrix that CG solves in FP64, and %s ends after %s with ||r|| = %.2e ||b||: %s; more iterations "
             "or a larger rtol may help",
             w->matrix->source[0] ? w->matrix->source : "this one", ht_number_of(w->report.iterations, "iteration").text,
             w->report.residual_true, w->report.detail);
    w->iterations_64[k] = w->report.iterations;
    HT_TRY(w->ctx, ht_allocate(w->ctx, count, sizeof(double), &w->fallen[k]));
    for (int64_t i = 0; i <= w->report.iterations; i++) w->fallen[k][i] = i ? fmin(history[i], w->fallen[k][i - 1]) : history[i];
    if (k == 0) w->true_64 = w->report.residual_true;
  }
  return HT_OK;
}

const char *ht_window_precond(const ht_window *r, int number) {
  int both = r->options->precond == HT_TRAIN_PRECOND_BOTH;
  return preconds[both ? number % 2 : r->options->precond == HT_TRAIN_PRECOND_JACOBI];
}

static ht_status make_worker(ht_window *r, ht_window_worker *w, const ht_matrix *matrix, const char *precond) {
  HT_TRY(r->ctx, ht_context_create_with(&r->ctx->allocator, &w->ctx));
  w->ctx->above = r->ctx;
  w->matrix = matrix;
  w->status = make_solver(r, w, precond);
  if (w->status != HT_OK) HT_FAIL(r->ctx, w->status, "%s", ht_context_error(w->ctx));
  return HT_OK;
}

/* In the second half of the iterations that are allowed the guard goes over to FP64 where the rest may not do: four times FP64's are. */
static ht_status limit_iterations(ht_window_worker *w) {
  int64_t most = 0;
  for (int k = 0; k < HT_WINDOW_RIGHT_SIDES; k++) most = w->iterations_64[k] > most ? w->iterations_64[k] : most;
  HT_TRY(w->ctx, set_number(w->solver, "max-iterations", (double)(4 * most + 100)));
  HT_TRY(w->ctx, ht_solver_prepare(w->solver)); /* its record of residuals shall be no longer than that */
  return HT_OK;
}

/* Solves in FP64, side by side. */
static ht_status refer_all(ht_window *r) {
  int threads = r->ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (ht_window_is_wide(r))
  for (int k = 0; k < r->cases; k++) {
    ht_window_worker *w = &r->worker[k];
    if (ht_stop_requested(r->ctx)) continue;
    w->status = refer(r, w);
    if (w->status == HT_OK && !w->idle) w->status = limit_iterations(w);
  }
  HT_CHECK(r->ctx, !ht_stop_requested(r->ctx), HT_INTERRUPTED, "training was interrupted before its first episode");
  HT_TRY(r->ctx, ht_window_failure(r));
  for (int k = 0; k + 1 < r->cases; k += 2)
    HT_CHECK(r->ctx, !r->worker[k].idle || !r->worker[k + 1].idle, HT_BAD_MATRIX,
             "training needs a matrix that CG solves in FP64, and %s takes more than %s; more iterations or a larger rtol may "
             "help",
             r->worker[k].matrix->source[0] ? r->worker[k].matrix->source : "this one",
             ht_number_of(r->options->max_iterations, "iteration").text);
  return HT_OK;
}

/* All that the solves can become, side by side. */
static ht_status grow_all(ht_window *r) {
  int threads = r->ctx->threads;
  for (int k = 0; k < r->cases; k++) r->worker[k].begins_with = r->begins_with;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (ht_window_is_wide(r))
  for (int k = 0; k < r->cases; k++)
    if (!r->worker[k].idle && !ht_stop_requested(r->ctx)) ht_window_grow(r, k);
  HT_CHECK(r->ctx, !ht_stop_requested(r->ctx), HT_INTERRUPTED, "training was interrupted before its first episode");
  HT_TRY(r->ctx, ht_window_failure(r));
  return HT_OK;
}

/* Passes are over the looks to learn from, or over those to judge by. */
static void count_rows(ht_window *r) {
  int64_t judged = 0;
  for (int k = 0; k < r->cases; k++)
    for (int number = 0; number < HT_WINDOW_RIGHT_SIDES; number++) {
      const ht_tree *tree = &r->worker[k].tree[number];
      int learned_from = number > 0;
      if (!tree->made) continue;
      r->trees += learned_from;
      r->iterations += learned_from ? tree->iterations : 0;
      *(learned_from ? &r->learned_rows : &judged) += tree->looks;
    }
  if (r->trees) r->iterations /= r->trees;
  r->rows = r->learned_rows > judged ? r->learned_rows : judged;
}

static ht_status read_actions(ht_window *r) {
  ht_learned_action action[HT_NETWORK_MOST_ACTIONS];
  const ht_train_options *o = r->options;
  r->chooser = (ht_policy_chooser){
      .choose = ht_window_choose, .actions = o->actions, .interval = o->interval ? (int)o->interval : HT_WINDOW_USUAL_INTERVAL};
  r->actions = ht_learned_actions(HT_LEARNED_WINDOW, o->actions, action);
  r->begins_with = ht_learned_begins_with(r->actions, action);
  HT_CHECK(r->ctx, r->actions > 1 && action[0].level == HT_LEVEL_64 && !(action[0].theta > 0), HT_BAD_OPTION,
           "training needs two actions or more, f64 the first, such as '%s', and was given '%s': %s",
           ht_learned_usual_actions(HT_LEARNED_WINDOW), o->actions, HT_LEARNED_ACTIONS_FORM);
  return HT_OK;
}

static ht_status make_all(ht_window *r, int matrices, const ht_matrix *const *matrix) {
  int both = r->options->precond == HT_TRAIN_PRECOND_BOTH;
  HT_TRY(r->ctx, read_actions(r));
  r->cases = both ? 2 * matrices : matrices;
  HT_TRY(r->ctx, ht_allocate_zeroed(r->ctx, r->cases, sizeof *r->worker, &r->worker));
  for (int k = 0; k < r->cases; k++) {
    HT_TRY(r->ctx, make_worker(r, &r->worker[k], matrix[both ? k / 2 : k], ht_window_precond(r, k)));
  }
  HT_TRY(r->ctx, refer_all(r));
  double start = ht_seconds();
  HT_TRY(r->ctx, grow_all(r));
  r->time_grow_s = ht_seconds() - start;
  count_rows(r);
  return HT_OK;
}

ht_status ht_window_create(ht_context *ctx, const ht_train_options *options, int matrices, const ht_matrix *const *matrix,
                           const ht_backend *device, ht_window **out) {
  ht_window *r;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *r, &r));
  r->ctx = ctx;
  r->options = options;
  r->device = device != NULL;
  r->any = options->machine == HT_MACHINE_ANY || (options->machine == HT_MACHINE_AUTO && matrices > 1);
  if (device) r->cache_bytes = (double)device->cache_bytes();
  ht_status status = make_all(r, matrices, matrix);
  if (status != HT_OK) {
    ht_window_destroy(r);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = r;
  return HT_OK;
}

ht_status ht_window_attach(ht_window *r, const ht_packed *packed) {
  int64_t rows = ht_dense_padded(r->rows > 0 ? r->rows : 1, HT_DENSE_ROWS);
  HT_TRY(r->ctx, ht_activations_create(r->ctx, packed, rows, &r->forward));
  HT_TRY(r->ctx, ht_activations_create(r->ctx, packed, rows, &r->backward));
  HT_TRY(r->ctx, ht_allocate(r->ctx, ht_packed_gradient_size(packed), sizeof(float), &r->sums));
  return HT_OK;
}

static void release_worker(ht_window_worker *w) {
  if (!w->ctx) return;
  ht_solver_destroy(w->solver);
  void *memory[] = {w->b, w->x};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(w->ctx, memory[k]);
  for (int k = 0; k < HT_WINDOW_RIGHT_SIDES; k++) ht_release(w->ctx, w->fallen[k]);
  ht_context_destroy(w->ctx);
}

void ht_window_destroy(ht_window *r) {
  if (!r) return;
  for (int k = 0; r->worker && k < r->cases; k++) release_worker(&r->worker[k]);
  ht_activations_release(r->ctx, &r->forward);
  ht_activations_release(r->ctx, &r->backward);
  ht_release(r->ctx, r->sums);
  ht_release(r->ctx, r->worker);
  ht_release(r->ctx, r);
}
