/* Solves of policies of the kind window. SPDX-License-Identifier: BSD-3-Clause */
#include "train/window.h"
#include <math.h>
#include <string.h>
#include "solver/chooser.h"

/* ---- a solve ---- */

int ht_window_choose(void *user, const ht_policy_look *look) {
  ht_window_worker *w = user;
  if (w->network) return ht_policy_likeliest(w->network, look->feature);
  int number = w->asked++;
  if (w->recorded && number < HT_WINDOW_LOOKS) memcpy(w->recorded->state[number], look->feature, sizeof w->recorded->state[number]);
  return number == w->leaves_at ? w->leaves_for : w->begins_with;
}

static double sum_of(const double *bytes) {
  double sum = 0;
  for (int level = 0; level < HT_LEVELS; level++) sum += bytes[level];
  return sum;
}

void ht_window_solve(const ht_window *r, ht_window_worker *w, int right_side) {
  const ht_report *report = &w->report;
  ht_right_side(w->matrix, r->options, (uint64_t)right_side, w->b);
  memset(w->x, 0, (size_t)w->price.n * sizeof *w->x);
  w->price.fallen = w->fallen[right_side];
  w->price.iterations_64 = w->iterations_64[right_side];
  w->asked = 0;
  w->status = ht_solver_solve(w->solver, 1, w->b, w->x, &w->report);
  if (w->status != HT_OK) return;
  int reached = report->outcome == HT_CONVERGED;
  w->stand = (ht_stand){.iterations = report->iterations,
                        .exact_products = report->products - report->iterations,
                        .looks = ht_solver_looks(w->solver),
                        .bytes = sum_of(ht_solver_bytes(w->solver)),
                        .progress = reached ? (double)w->price.iterations_64 : ht_price_progress(&w->price, report->residual_true)};
}

double ht_window_earned(const ht_window_worker *w) {
  double earned = ht_price_step(&w->price, &(ht_stand){0}, &w->stand);
  return w->report.outcome == HT_CONVERGED ? earned : earned - ht_price_missed(&w->price, &w->stand);
}

/* ---- all workers ---- */

ht_status ht_window_failure(ht_window *r) {
  for (int k = 0; k < r->cases; k++) {
    ht_status status = r->worker[k].status;
    if (status != HT_OK) HT_FAIL(r->ctx, status, "%s", ht_context_error(r->worker[k].ctx));
  }
  return HT_OK;
}

static const double JUDGED_AT = 4; /* an iteration's bytes by the cache's, where it may be any */

static ht_status pretend(const ht_window *r, ht_window_worker *w, const char *policy) {
  double cache = r->any ? w->price.facts->bytes_streamed / JUDGED_AT : r->cache_bytes;
  return ht_solver_pretend(w->solver, &(ht_pretence){.cache_bytes = cache, .device = r->device, .policy = policy});
}

static void judge(const ht_window *r, int k, const ht_network *network, const char *policy, ht_judgement *j) {
  ht_window_worker *w = &r->worker[k];
  const ht_report *report = &w->report;
  *j = (ht_judgement){0};
  if (w->idle) return;
  w->network = network;
  w->status = pretend(r, w, policy);
  if (w->status == HT_OK) ht_window_solve(r, w, 0);
  w->network = NULL;
  if (w->status != HT_OK) return;
  *j = (ht_judgement){.iterations = report->iterations,
                      .iterations_64 = w->iterations_64[0],
                      .true_residual = report->residual_true,
                      .true_64 = w->true_64,
                      .reached = report->outcome == HT_CONVERGED,
                      .time = ht_price_cost(&w->price, &w->stand) / ht_price_cost_64(&w->price)};
  if (!j->reached) j->time += ht_price_missed(&w->price, &w->stand);
  const double *bytes = ht_solver_bytes(w->solver);
  double sum = 0;
  for (int level = 0; level < HT_LEVELS; level++) sum += j->share[level] = bytes[level] / w->price.facts->bytes_level[level];
  for (int level = 0; level < HT_LEVELS; level++) j->share[level] /= sum;
}

ht_status ht_window_judge(ht_window *r, const ht_network *network, ht_judgement *judgement) {
  int threads = r->ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (ht_window_is_wide(r))
  for (int k = 0; k < r->cases; k++) judge(r, k, network, NULL, &judgement[k]);
  HT_TRY(r->ctx, ht_window_failure(r));
  return HT_OK;
}

ht_status ht_window_judge_case(ht_window *r, int number, const ht_network *network, const char *policy, ht_judgement *judgement) {
  judge(r, number, network, policy, judgement);
  return r->worker[number].status;
}

/* ---- what a solve can become ---- */

/* Leaving at each look, for each other action. */
static void grow(const ht_window *r, ht_window_worker *w, int right_side, ht_tree *tree) {
  w->recorded = tree;
  w->leaves_at = -1;
  ht_window_solve(r, w, right_side);
  w->recorded = NULL;
  tree->looks = w->asked < HT_WINDOW_LOOKS ? w->asked : HT_WINDOW_LOOKS;
  tree->earned = ht_window_earned(w);
  tree->iterations = w->report.iterations;
  for (int look = 0; look < tree->looks; look++)
    for (int a = 0; a < r->actions && w->status == HT_OK && !ht_stop_requested(r->ctx); a++) {
      if (a == r->begins_with) continue;
      w->leaves_at = look;
      w->leaves_for = a;
      ht_window_solve(r, w, right_side);
      tree->gain[look][a] = ht_window_earned(w) - tree->earned;
    }
  tree->made = w->status == HT_OK;
}

void ht_window_grow(ht_window *r, int number) {
  ht_window_worker *w = &r->worker[number];
  w->status = pretend(r, w, NULL);
  for (int k = 0; k < HT_WINDOW_RIGHT_SIDES && w->status == HT_OK; k++) grow(r, w, k, &w->tree[k]);
}
