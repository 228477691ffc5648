/* How good the policy is: which weights are kept on the way, and what they come to at the end. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/convert.h"
#include "train/device.h"

/* ---- on the way ---- */

/* As the solver deploys them: weights of 16 bits. */
static void deploy(ht_trainer *t, const float *weights) {
  for (int64_t k = 0; k < t->ppo->weights; k++) t->deployed.weights[k] = (float)ht_load_f16(ht_store_f16(weights[k]));
  ht_packed_load(&t->deployed_packed, &t->deployed);
}

/* Solves that are judged: of each matrix one, or one a preconditioner. */
int ht_trainer_cases(const ht_trainer *t) { return ht_trains_windows(t) ? t->window->cases : t->matrices; }

/* What FP64 does not solve within the iterations that are allowed is left out. */
static int64_t count_judged(const ht_trainer *t, const ht_judgement *judgement) {
  int64_t judged = 0;
  for (int k = 0; k < ht_trainer_cases(t); k++) judged += judgement[k].iterations_64 > 0;
  return judged;
}

static ht_status judge_tiles(ht_trainer *t, int64_t interval, ht_judgement *judgement) {
  for (int k = 0; k < t->matrices && !ht_stop_requested(t->ctx); k++) {
    if (t->learner)
      HT_TRY(t->ctx, ht_device_judge(t, k, interval, &judgement[k]));
    else
      ht_judge(t->rollout, &t->deployed_packed, k, interval, &judgement[k]);
  }
  return HT_OK;
}

/* All of them; *traffic: their mean. */
static ht_status judge_all(ht_trainer *t, int64_t interval, ht_judgement *judgement, double *traffic) {
  double sum = 0;
  *traffic = NAN;
  if (ht_trains_windows(t))
    HT_TRY(t->ctx, ht_window_judge(t->window, &t->deployed, judgement));
  else
    HT_TRY(t->ctx, judge_tiles(t, interval, judgement));
  for (int k = 0; k < ht_trainer_cases(t); k++) sum += judgement[k].time;
  *traffic = sum / (double)count_judged(t, judgement);
  return HT_OK;
}

/* By the reward time: looks have their price. */
static int is_priced(const ht_trainer *t) { return t->rollout && t->rollout->saving; }

/* Solves are learned from, a transition each: how many between two judgements are enough to make these cheap. */
static int64_t transitions_between(const ht_trainer *t) {
  enum { EPISODES_BETWEEN = 8, UPDATES_BETWEEN = 8 };
  int64_t one = 0, beside = t->options.lanes / t->matrices; /* a judged solve runs alone: the less often, the more of them run at once */
  if (t->learner) beside *= 2;                              /* and takes a tenth of the time that 32 take together */
  if (t->window) return UPDATES_BETWEEN * t->window->rows;
  for (int k = 0; k < t->matrices; k++) one += t->environment[k]->iterations_64;
  return (beside > EPISODES_BETWEEN ? beside : EPISODES_BETWEEN) * one;
}

/* Priced looks are rare. */
static int64_t interval_on_the_way(const ht_trainer *t) { return is_priced(t) ? HT_LEARNED_LONGEST : 1; }

/* By which weights are kept, the less the better: traffic, or what is saved of modelled time. */
static ht_status weigh(ht_trainer *t, double *weight) {
  ht_judgement judgement[HT_MOST_CASES];
  if (!ht_trains_windows(t)) {
    HT_TRY(t->ctx, judge_all(t, interval_on_the_way(t), judgement, weight));
    return HT_OK;
  }
  *weight = 1 - ht_window_worth(t->window, &t->deployed_packed);
  return HT_OK;
}

/* Keep the weights if they deploy better than those kept; not more often than is cheap beside the episodes. */
ht_status ht_trainer_judge_weights(ht_trainer *t) {
  double traffic;
  if (isfinite(t->at.best_traffic) && t->at.transitions - t->at.judged_at < transitions_between(t)) return HT_OK;
  double start = ht_seconds();
  if (t->learner) HT_TRY(t->ctx, ht_device_fetch_network(t));
  deploy(t, t->network.weights);
  HT_TRY(t->ctx, weigh(t, &traffic));
  t->time_judge_s += ht_seconds() - start;
  if (ht_stop_requested(t->ctx)) return HT_OK; /* it is still due */
  t->at.judged_at = t->at.transitions;
  if (traffic < t->at.best_traffic) {
    t->at.best_traffic = traffic;
    memcpy(t->best, t->network.weights, (size_t)t->ppo->weights * sizeof(float));
  }
  return HT_OK;
}

static int64_t count_missed(const ht_trainer *t, const ht_judgement *judgement) {
  int64_t missed = 0;
  for (int k = 0; k < ht_trainer_cases(t); k++) missed += judgement[k].iterations_64 > 0 && !judgement[k].reached;
  return missed;
}

/* ---- at the end ---- */

/* One of the solves that the end is about, which are followed. */
static ht_status judge_at_end(ht_trainer *t, int64_t interval, ht_judgement *judgement, double *traffic) {
  ht_trainer_tell(t, HT_TRAIN_JUDGES, 0);
  HT_TRY(t->ctx, judge_all(t, interval, judgement, traffic));
  ht_trainer_tell(t, HT_TRAIN_JUDGES, count_judged(t, judgement));
  return HT_OK;
}

/* The longest of ..., 4, 2, 1 that takes less time than the next shorter one, looks included, and costs no solve its end. one: judgements
 * with 1, *traffic their time; j: with what is chosen. */
static ht_status choose_cheapest_interval(ht_trainer *t, const ht_judgement *one, ht_judgement *j, double *traffic) {
  ht_judgement next[HT_MOST_MATRICES] = {{0}};
  double least = *traffic, time;
  int64_t missed = count_missed(t, one);
  size_t size = (size_t)t->matrices * sizeof *j;
  int found = 0;
  t->interval = 1;
  memcpy(j, one, size);
  for (int64_t interval = HT_LEARNED_LONGEST; interval > 1 && !ht_stop_requested(t->ctx); interval /= 2) {
    HT_TRY(t->ctx, judge_at_end(t, interval, next, &time));
    int is_better = count_missed(t, next) <= missed && time < least;
    if (found && !is_better) break;
    if (!is_better) continue;
    found = 1;
    least = time;
    t->interval = interval;
    memcpy(j, next, size);
  }
  *traffic = least;
  return HT_OK;
}

/* With the paper's reward the interval is chosen as the paper does, and halved where it costs a solve its end. */
static ht_status choose_interval(ht_trainer *t, const ht_judgement *one, ht_judgement *j, ht_train_report *report) {
  if (!t->options.interval && t->options.reward != HT_REWARD_PAPER) return choose_cheapest_interval(t, one, j, &report->traffic);
  t->interval = t->options.interval ? t->options.interval : ht_longest_interval(t->matrices, one);
  for (; !ht_stop_requested(t->ctx); t->interval /= 2) {
    HT_TRY(t->ctx, judge_at_end(t, t->interval, j, &report->traffic));
    if (t->options.interval || count_missed(t, j) <= count_missed(t, one) || t->interval == 1) break;
  }
  return HT_OK;
}

static ht_status judge_tiles_at_end(ht_trainer *t, ht_judgement *j, ht_train_report *report) {
  ht_judgement one[HT_MOST_MATRICES] = {{0}};
  HT_TRY(t->ctx, judge_at_end(t, 1, one, &report->traffic));
  HT_TRY(t->ctx, choose_interval(t, one, j, report));
  report->delayed = ht_share_delayed(t->matrices, one, t->interval);
  return HT_OK;
}

/* Of a policy for whole matrices the actions say when it looks. */
static ht_status judge_windows_at_end(ht_trainer *t, ht_judgement *j, ht_train_report *report) {
  t->interval = t->window->chooser.interval;
  HT_TRY(t->ctx, judge_at_end(t, t->interval, j, &report->traffic));
  return HT_OK;
}

static void describe_solves(const ht_trainer *t, const ht_judgement *j, ht_train_report *report) {
  int cases = ht_trainer_cases(t);
  double judged = (double)count_judged(t, j);
  report->judged = 1;
  report->solves = count_judged(t, j);
  report->missed = count_missed(t, j);
  report->interval = t->interval;
  report->iterations = report->iterations_f64 = 0;
  report->share_f64 = report->share_f32 = report->share_16 = report->residual_true = report->residual_true_f64 = 0;
  for (int k = 0; k < cases; k++) {
    report->iterations += j[k].iterations;
    report->iterations_f64 += j[k].iterations_64;
    report->share_f64 += j[k].share[HT_LEVEL_64] / judged;
    report->share_f32 += j[k].share[HT_LEVEL_32] / judged;
    report->share_16 += j[k].share[HT_LEVEL_16] / judged;
    report->residual_true = fmax(report->residual_true, j[k].true_residual);
    report->residual_true_f64 = fmax(report->residual_true_f64, j[k].true_64);
  }
}

/* ---- the competition ---- */

ht_status ht_trainer_rivals_solver(const ht_trainer *t, const ht_matrix *matrix, int64_t iterations_64, const char *const (*options)[2],
                                   size_t count, ht_solver **solver) {
  char rtol[40], most[40];
  snprintf(rtol, sizeof rtol, "%.17g", t->options.rtol);
  /* In the second half of what is allowed the guard looks to the end, so that one and a half times FP64's are free. */
  snprintf(most, sizeof most, "%lld", 3 * (long long)iterations_64 + 100);
  HT_TRY(t->ctx, ht_solver_create(t->ctx, NULL, solver));
  HT_TRY(t->ctx, ht_solver_set_option(*solver, "rtol", rtol));
  HT_TRY(t->ctx, ht_solver_set_option(*solver, "max-iterations", most));
  HT_TRY(t->ctx, ht_solver_set_option(*solver, "backend", ht_device_name(t)));
  for (size_t k = 0; k < count; k++) HT_TRY(t->ctx, ht_solver_set_option(*solver, options[k][0], options[k][1]));
  return ht_solver_set_matrix(*solver, matrix);
}

static int is_measured(const ht_trainer *t) {
  return t->options.judge == HT_JUDGE_TIME || (t->options.judge == HT_JUDGE_AUTO && t->device);
}

/* Half as long as the training took is enough for a clock, but for a small one. */
static double seconds_to_compete(const ht_trainer *t) {
  static const double LEAST = 2;
  return fmax(LEAST, (ht_trainer_elapsed(t) - t->time_contest_s) / 2);
}

static ht_status run_contest(ht_trainer *t, ht_contest *contest) {
  return (ht_trains_windows(t) ? ht_compete_windows : ht_compete_tiles)(t, is_measured(t), seconds_to_compete(t), contest);
}

/* Which of what was learned and of policies that always do the same the file will stand for. */
static ht_status let_compete(ht_trainer *t, ht_train_report *report) {
  ht_contest contest;
  double start = ht_seconds();
  if (t->options.compete != HT_COMPETE_YES || ht_stop_requested(t->ctx)) return HT_OK;
  ht_trainer_tell(t, HT_TRAIN_COMPETES, 0);
  ht_status status = run_contest(t, &contest);
  if (status != HT_OK && ht_device_is_left(t, status)) status = run_contest(t, &contest);
  if (status != HT_OK) return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  double *told[HT_RIVALS] = {&report->time_network, NULL, &report->time_f32, &report->time_16};
  for (int k = 0; k < HT_RIVALS; k++)
    if (told[k] && isfinite(contest.time[k])) *told[k] = contest.time[k];
  snprintf(t->fastest, sizeof t->fastest, "%s", ht_rival_name(contest.winner));
  ht_contest_print(&contest, t->device ? t->device->name : t->backend->name, t->contest, sizeof t->contest);
  t->time_contest_s += ht_seconds() - start;
  return HT_OK;
}

/* ---- all of it ---- */

static ht_status judge(ht_trainer *t, ht_train_report *report) {
  ht_judgement j[HT_MOST_CASES] = {{0}};
  deploy(t, t->best);
  HT_TRY(t->ctx, (ht_trains_windows(t) ? judge_windows_at_end : judge_tiles_at_end)(t, j, report));
  HT_TRY(t->ctx, let_compete(t, report));
  if (!ht_stop_requested(t->ctx)) describe_solves(t, j, report);
  return HT_OK;
}

/* The network looks as often as it did when its weights were chosen. */
static void leave_unjudged(ht_trainer *t, ht_train_report *report) {
  t->interval = t->options.interval ? t->options.interval : ht_trains_windows(t) ? t->window->chooser.interval : interval_on_the_way(t);
  report->judged = 0;
  report->interval = t->interval;
  report->delayed = report->time_network = report->time_f32 = report->time_16 = NAN;
  report->traffic = isfinite(t->at.best_traffic) ? t->at.best_traffic : NAN;
  snprintf(t->fastest, sizeof t->fastest, "%s", ht_rival_name(HT_RIVAL_LEARNED));
  snprintf(t->contest, sizeof t->contest, "none: the training was interrupted before it was judged");
}

ht_status ht_trainer_judge(ht_trainer *t, ht_train_report *report) {
  double start = ht_seconds();
  *t->fastest = *t->contest = 0;
  ht_status status = ht_stop_requested(t->ctx) ? HT_OK : judge(t, report);
  if (status != HT_OK && status != HT_INTERRUPTED) return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  if (status != HT_OK) ht_context_clear_error(t->ctx); /* a set-up was stopped */
  if (report->judged != 1) leave_unjudged(t, report);
  snprintf(report->chosen, sizeof report->chosen, "%s", t->fastest);
  snprintf(report->contest, sizeof report->contest, "%s", t->contest);
  t->time_judge_s += ht_seconds() - start;
  return HT_OK;
}
