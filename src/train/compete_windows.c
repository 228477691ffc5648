/* The last word of a training of policies for whole matrices: what was learned against policies that always do the same.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "solver/chooser.h"
#include "train/trainer.h"

typedef struct contest {
  ht_trainer *trainer;
  ht_network deployed;
  int number; /* of the case that the solver is for; -1: none yet */
  ht_solver *solver;
} contest;

/* ---- by the model ---- */

static ht_status solve_by_model(void *user, int number, int rival, ht_trial *trial) {
  const contest *c = user;
  ht_trainer *t = c->trainer;
  ht_judgement j;
  const ht_network *network = rival == HT_RIVAL_LEARNED ? &c->deployed : NULL;
  if (ht_window_judge_case(t->window, number, network, ht_rival_policy(rival), &j) != HT_OK) return ht_window_failure(t->window);
  trial->cost = j.reached ? j.time : INFINITY;
  ht_trainer_tell(t, HT_TRAIN_COMPETES, j.iterations_64 > 0);
  return HT_OK;
}

/* ---- by the clock ---- */

static int choose_likeliest(void *user, const ht_policy_look *look) { return ht_policy_likeliest(user, look->feature); }

static ht_status begin_case(contest *c, int number) {
  const ht_trainer *t = c->trainer;
  const ht_window_worker *w = &t->window->worker[number];
  const char *const options[][2] = {{"precond", ht_window_precond(t->window, number)}};
  ht_policy_chooser chooser = t->window->chooser;
  chooser.choose = choose_likeliest;
  chooser.user = &c->deployed;
  chooser.deployed = 1;
  ht_solver_destroy(c->solver);
  c->solver = NULL;
  c->number = number;
  HT_TRY(t->ctx, ht_trainer_rivals_solver(t, w->matrix, w->iterations_64[0], options, 1, &c->solver));
  ht_solver_set_chooser(c->solver, &chooser);
  ht_right_side(w->matrix, &t->options, 0, w->b);
  return ht_solver_prepare(c->solver);
}

static ht_status solve_by_clock(void *user, int number, int rival, ht_trial *trial) {
  contest *c = user;
  ht_trainer *t = c->trainer;
  const ht_window_worker *w = &t->window->worker[number];
  ht_report report;
  if (w->idle) return HT_OK;
  if (c->number != number) HT_TRY(t->ctx, begin_case(c, number));
  HT_TRY(t->ctx, ht_solver_pretend(c->solver, &(ht_pretence){.policy = ht_rival_policy(rival)}));
  memset(w->x, 0, (size_t)w->price.n * sizeof *w->x);
  HT_TRY(t->ctx, ht_solver_solve(c->solver, 1, w->b, w->x, &report));
  if (report.outcome == HT_CONVERGED) trial->cost = report.time_solve_s;
  ht_trainer_tell(t, HT_TRAIN_COMPETES, 1);
  return HT_OK;
}

ht_status ht_compete_windows(ht_trainer *t, int measured, double seconds, ht_contest *result) {
  contest c = {.trainer = t, .deployed = t->deployed, .number = -1};
  const ht_competition competition = {.ctx = t->ctx,
                                      .rivals = HT_RIVALS,
                                      .cases = t->window->cases,
                                      .measured = measured,
                                      .seconds = seconds,
                                      .user = &c,
                                      .solve = measured ? solve_by_clock : solve_by_model};
  ht_status status = ht_compete(&competition, result);
  ht_solver_destroy(c.solver);
  return status;
}
