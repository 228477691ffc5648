/* How good the policy is: which weights are kept on the way, and what they come to at the end. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/convert.h"
#include "train/compete_tiles.h"
#include "train/device.h"

/* ---- judgement ---- */

/* As the solver deploys them: weights of 16 bits. */
static void deploy(ht_trainer *t, const float *weights) {
  for (int64_t k = 0; k < t->ppo->weights; k++) t->deployed.weights[k] = (float)ht_load_f16(ht_store_f16(weights[k]));
  ht_packed_load(&t->deployed_packed, &t->deployed);
}

/* Solves that are judged: of each matrix one, or one a preconditioner. */
int ht_trainer_cases(const ht_trainer *t) { return ht_trains_windows(t) ? t->window->cases : t->matrices; }

static ht_status judge_tiles(ht_trainer *t, int64_t interval, ht_judgement *judgement) {
  for (int k = 0; k < t->matrices; k++) {
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
  int count = ht_trainer_cases(t), judged = 0;
  *traffic = NAN;
  if (ht_trains_windows(t))
    HT_TRY(t->ctx, ht_window_judge(t->window, &t->deployed, judgement));
  else
    HT_TRY(t->ctx, judge_tiles(t, interval, judgement));
  for (int k = 0; k < count; k++) {
    judged += judgement[k].iterations_64 > 0;
    sum += judgement[k].time;
  }
  *traffic = sum / judged;
  return HT_OK;
}

/* By the reward time: looks have their price. */
static int is_priced(const ht_trainer *t) { return t->rollout && t->rollout->saving; }

/* Solves are learned from, a transition each: how many between two judgements are enough to make these cheap. */
static int64_t transitions_between(const ht_trainer *t) {
  enum { EPISODES_BETWEEN = 8, UPDATES_BETWEEN = 8 };
  int64_t one = 0, beside = t->options.lanes / t->matrices; /* a judged solve runs alone: the less often, the more of them run at once */
  if (t->window) return UPDATES_BETWEEN * t->window->rows;
  for (int k = 0; k < t->matrices; k++) one += t->environment[k]->iterations_64;
  return (beside > EPISODES_BETWEEN ? beside : EPISODES_BETWEEN) * one;
}

/* By which weights are kept, the less the better: traffic, or what is saved of modelled time. */
static ht_status weigh(ht_trainer *t, double *weight) {
  ht_judgement judgement[HT_MOST_CASES];
  if (!ht_trains_windows(t)) {
    HT_TRY(t->ctx, judge_all(t, is_priced(t) ? HT_LEARNED_LONGEST : 1, judgement, weight)); /* priced looks are rare */
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
  t->at.judged_at = t->at.transitions;
  if (traffic < t->at.best_traffic && !ht_stop_requested(t->ctx)) {
    t->at.best_traffic = traffic;
    memcpy(t->best, t->network.weights, (size_t)t->ppo->weights * sizeof(float));
  }
  t->time_judge_s += ht_seconds() - start;
  return HT_OK;
}

static int64_t count_missed(const ht_trainer *t, const ht_judgement *judgement) {
  int64_t missed = 0;
  for (int k = 0; k < ht_trainer_cases(t); k++) missed += judgement[k].iterations_64 > 0 && !judgement[k].reached;
  return missed;
}

/* Of 1, 2, 4, ... the one with the least time, looks included, that costs no solve its end. `one`: judgements with 1. */
static ht_status choose_cheapest_interval(ht_trainer *t, const ht_judgement *one) {
  ht_judgement j[HT_MOST_MATRICES] = {{0}};
  double least = INFINITY, traffic;
  int64_t missed = count_missed(t, one);
  t->interval = 1;
  for (int64_t interval = 1; interval <= HT_LEARNED_LONGEST && !ht_stop_requested(t->ctx); interval *= 2) {
    HT_TRY(t->ctx, judge_all(t, interval, j, &traffic));
    if (count_missed(t, j) > missed || !(traffic < least)) continue;
    least = traffic;
    t->interval = interval;
  }
  return HT_OK;
}

/* With the paper's reward the interval is chosen as the paper does, and halved where it costs a solve its end. `one`: judgements with 1;
 * j: with the interval. */
static ht_status choose_interval(ht_trainer *t, const ht_judgement *one, ht_judgement *j, ht_train_report *report) {
  int paper = t->options.reward == HT_REWARD_PAPER;
  t->interval = t->options.interval ? t->options.interval : ht_longest_interval(t->matrices, one);
  if (!t->options.interval && !paper) HT_TRY(t->ctx, choose_cheapest_interval(t, one));
  for (;; t->interval /= 2) {
    HT_TRY(t->ctx, judge_all(t, t->interval, j, &report->traffic));
    if (t->options.interval || count_missed(t, j) <= count_missed(t, one) || t->interval == 1) break;
  }
  report->delayed = ht_share_delayed(t->matrices, one, t->interval);
  return HT_OK;
}

/* Which of the network and the constant levels the policy will stand for. */
static ht_status let_compete(ht_trainer *t, ht_train_report *report) {
  double time[HT_RIVALS];
  int best;
  size_t used = 0;
  *t->fastest = *t->contest = 0;
  if (t->options.compete != HT_COMPETE_YES) return HT_OK;
  HT_TRY(t->ctx, ht_compete_tiles(t, time, &best));
  double *told[HT_RIVALS] = {&report->time_network, NULL, &report->time_f32, &report->time_16};
  for (int k = 0; k < HT_RIVALS; k++) {
    if (told[k]) *told[k] = isfinite(time[k]) ? time[k] : NAN;
    used += (size_t)snprintf(t->contest + used, sizeof t->contest - used, "%s%s %.3f", k ? ", " : "", ht_rival_names[k], time[k]);
  }
  snprintf(t->contest + used, sizeof t->contest - used, " of FP64's time, %s %s", t->saving[0] ? "by the model of" : "measured on",
           t->backend->name);
  snprintf(t->fastest, sizeof t->fastest, "%s", ht_rival_names[best]);
  snprintf(report->chosen, sizeof report->chosen, "%s", t->fastest);
  snprintf(report->contest, sizeof report->contest, "%s", t->contest);
  return HT_OK;
}

static const char *judged_on(const ht_trainer *t) { return t->device ? t->device->name : t->backend->name; }

/* Of policies for whole matrices, against policies that always do the same. */
static ht_status let_windows_compete(ht_trainer *t, ht_train_report *report) {
  ht_contest contest;
  int measured = t->options.judge == HT_JUDGE_TIME || (t->options.judge == HT_JUDGE_AUTO && t->device);
  HT_TRY(t->ctx, ht_compete(t->window, &t->deployed, t->device ? t->options.backend : "cpu", measured, &contest));
  snprintf(t->fastest, sizeof t->fastest, "%s", ht_contestant_name(contest.winner));
  ht_contest_print(&contest, judged_on(t), t->contest, sizeof t->contest);
  snprintf(report->chosen, sizeof report->chosen, "%s", t->fastest);
  snprintf(report->contest, sizeof report->contest, "%s", t->contest);
  return HT_OK;
}

/* The interval, and the report's part about the solves with it. */
ht_status ht_trainer_judge(ht_trainer *t, ht_train_report *report) {
  ht_judgement one[HT_MOST_MATRICES] = {{0}}, j[HT_MOST_CASES] = {{0}};
  int cases = ht_trainer_cases(t), judged = 0;
  deploy(t, t->best);
  if (ht_trains_windows(t)) {
    HT_TRY(t->ctx, judge_all(t, 1, j, &report->traffic));
    t->interval = t->window->chooser.interval; /* the actions say when */
    HT_TRY(t->ctx, let_windows_compete(t, report));
  } else {
    HT_TRY(t->ctx, judge_all(t, 1, one, &report->traffic));
    HT_TRY(t->ctx, choose_interval(t, one, j, report));
    HT_TRY(t->ctx, let_compete(t, report));
  }
  report->missed = count_missed(t, j);
  report->interval = t->interval;
  report->iterations = report->iterations_f64 = 0;
  report->share_f64 = report->share_f32 = report->share_16 = report->residual_true = report->residual_true_f64 = 0;
  for (int k = 0; k < cases; k++) judged += j[k].iterations_64 > 0;
  for (int k = 0; k < cases; k++) {
    report->iterations += j[k].iterations;
    report->iterations_f64 += j[k].iterations_64;
    report->share_f64 += j[k].share[HT_LEVEL_64] / judged;
    report->share_f32 += j[k].share[HT_LEVEL_32] / judged;
    report->share_16 += j[k].share[HT_LEVEL_16] / judged;
    report->residual_true = fmax(report->residual_true, j[k].true_residual);
    report->residual_true_f64 = fmax(report->residual_true_f64, j[k].true_64);
  }
  return HT_OK;
}
