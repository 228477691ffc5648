/* What was learned against policies that always do the same. SPDX-License-Identifier: BSD-3-Clause */
#include "train/compete.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "solver/chooser.h"

static const char *const names[HT_CONTESTANTS] = {"learned", "auto", "fixed:f64", "fixed:f32", "fixed:bf16", "budget"};
enum { FP64 = 2 };

const char *ht_contestant_name(int contestant) { return names[contestant]; }

static const char *policy_of(int contestant) { return contestant == HT_CONTESTANT_LEARNED ? NULL : names[contestant]; }

/* ---- by the model ---- */

static ht_status model_case(ht_window *r, int k, const ht_network *network, double time[HT_CONTESTANTS]) {
  for (int c = 0; c < HT_CONTESTANTS; c++) {
    ht_judgement j;
    if (ht_window_judge_case(r, k, c == HT_CONTESTANT_LEARNED ? network : NULL, policy_of(c), &j) != HT_OK) return ht_window_failure(r);
    time[c] = j.reached ? j.time : INFINITY;
  }
  return HT_OK;
}

/* ---- by the clock ---- */

enum { ROUNDS = 7 };
static const double SECONDS_A_CASE = 30; /* after which no other round begins */

static int choose_likeliest(void *user, const ht_policy_look *look) { return ht_policy_likeliest(user, look->feature); }

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static ht_status time_once(ht_window *r, ht_window_worker *w, ht_solver *solver, int contestant, double *seconds) {
  ht_report report;
  HT_TRY(r->ctx, ht_solver_pretend(solver, &(ht_pretence){.policy = policy_of(contestant)}));
  memset(w->x, 0, (size_t)w->price.n * sizeof *w->x);
  HT_TRY(r->ctx, ht_solver_solve(solver, 1, w->b, w->x, &report));
  *seconds = report.outcome == HT_CONVERGED ? report.time_solve_s : INFINITY;
  return HT_OK;
}

/* Everyone once unmeasured, then in turn; every second round in the opposite order. */
static ht_status time_all(ht_window *r, ht_window_worker *w, ht_solver *solver, double median[HT_CONTESTANTS]) {
  double seconds[HT_CONTESTANTS][ROUNDS], begun = ht_seconds();
  int rounds = 0;
  ht_right_side(w->matrix, r->options, 0, w->b);
  for (int c = 0; c < HT_CONTESTANTS; c++) HT_TRY(r->ctx, time_once(r, w, solver, c, &seconds[c][0]));
  while (rounds < ROUNDS && (!rounds || ht_seconds() - begun < SECONDS_A_CASE) && !ht_stop_requested(r->ctx)) {
    for (int turn = 0; turn < HT_CONTESTANTS; turn++) {
      int c = rounds % 2 ? HT_CONTESTANTS - 1 - turn : turn;
      HT_TRY(r->ctx, time_once(r, w, solver, c, &seconds[c][rounds]));
    }
    rounds++;
  }
  for (int c = 0; c < HT_CONTESTANTS; c++) {
    qsort(seconds[c], (size_t)(rounds ? rounds : 1), sizeof(double), ascending);
    median[c] = seconds[c][rounds / 2];
  }
  return HT_OK;
}

static ht_status set_number(ht_solver *solver, const char *name, double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  return ht_solver_set_option(solver, name, text);
}

static ht_status time_on(ht_window *r, int k, ht_network *network, const char *backend, ht_solver *solver, double median[HT_CONTESTANTS]) {
  ht_window_worker *w = &r->worker[k];
  HT_TRY(r->ctx, ht_solver_set_option(solver, "backend", backend));
  HT_TRY(r->ctx, ht_solver_set_option(solver, "precond", ht_window_precond(r, k)));
  HT_TRY(r->ctx, set_number(solver, "rtol", r->options->rtol));
  HT_TRY(r->ctx, set_number(solver, "max-iterations", 4 * (double)w->iterations_64[0] + 100));
  HT_TRY(r->ctx, ht_solver_set_matrix(solver, w->matrix));
  ht_policy_chooser chooser = r->chooser;
  chooser.choose = choose_likeliest;
  chooser.user = network;
  chooser.deployed = 1;
  ht_solver_set_chooser(solver, &chooser);
  HT_TRY(r->ctx, ht_solver_prepare(solver));
  HT_TRY(r->ctx, time_all(r, w, solver, median));
  return HT_OK;
}

static ht_status time_case(ht_window *r, int k, const ht_network *network, const char *backend, double time[HT_CONTESTANTS]) {
  ht_solver *solver;
  ht_network deployed = *network;
  HT_TRY(r->ctx, ht_solver_create(r->ctx, NULL, &solver));
  ht_status status = time_on(r, k, &deployed, backend, solver, time);
  ht_solver_destroy(solver);
  if (status != HT_OK) return ht_trace(r->ctx, status, __func__, __FILE__, __LINE__);
  double by = time[FP64];
  for (int c = 0; c < HT_CONTESTANTS; c++) time[c] = isfinite(by) ? time[c] / by : 1; /* a system that FP64 does not solve tells nothing */
  return HT_OK;
}

/* ---- all ---- */

/* What was learned has to be faster by a hundredth: less is hard to tell from the clock's noise, and needs no network. */
static int find_winner(const double time[HT_CONTESTANTS]) {
  static const double FASTER = 0.99;
  int best = HT_CONTESTANT_LEARNED + 1;
  for (int c = best + 1; c < HT_CONTESTANTS; c++)
    if (time[c] < time[best]) best = c;
  return isfinite(time[HT_CONTESTANT_LEARNED]) && time[HT_CONTESTANT_LEARNED] <= FASTER * time[best] ? HT_CONTESTANT_LEARNED : best;
}

ht_status ht_compete(ht_window *r, const ht_network *network, const char *backend, int measured, ht_contest *contest) {
  double sum[HT_CONTESTANTS] = {0};
  int cases = 0;
  *contest = (ht_contest){.measured = measured};
  for (int k = 0; k < r->cases; k++) {
    double time[HT_CONTESTANTS] = {0};
    if (r->worker[k].idle) continue;
    HT_TRY(r->ctx, measured ? time_case(r, k, network, backend, time) : model_case(r, k, network, time));
    for (int c = 0; c < HT_CONTESTANTS; c++) sum[c] += log(time[c]);
    cases++;
  }
  for (int c = 0; c < HT_CONTESTANTS; c++) contest->time[c] = exp(sum[c] / cases);
  contest->winner = find_winner(contest->time);
  return HT_OK;
}

void ht_contest_print(const ht_contest *contest, const char *backend, char *text, size_t size) {
  size_t used = 0;
  for (int c = 0; c < HT_CONTESTANTS && used < size; c++)
    used += (size_t)snprintf(text + used, size - used, "%s%s %.3f", c ? ", " : "", names[c], contest->time[c]);
  if (used < size)
    snprintf(text + used, size - used, contest->measured ? " of FP64's time, measured on %s" : " of FP64's time, by the model", backend);
}
