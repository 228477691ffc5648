/* Training from the first episode to the policy that is kept. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/convert.h"
#include "base/random.h"
#include "halftone/version.h"
#include "policy/learned_file.h"
#include "train/compete_tiles.h"
#include "train/device.h"
#include "train/initialise.h"
#include "train/saving.h"

/* ---- life ---- */

ht_status ht_trainer_create(ht_context *ctx, ht_trainer **trainer) {
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, trainer);
  ht_trainer *t;
  *trainer = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *t, &t));
  t->ctx = ctx;
  ht_train_options_set_defaults(&t->options);
  t->at.best_mean = -INFINITY;
  t->at.best_traffic = INFINITY;
  *trainer = t;
  return HT_OK;
}

static void forget(ht_trainer *t) {
  ht_context *ctx = t->ctx;
  ht_device_release(t);
  for (int k = 0; k < t->matrices; k++) ht_environment_destroy(t->environment[k]);
  for (int k = 0; k < t->matrices; k++) ht_saving_destroy(ctx, t->saving[k]);
  memset(t->environment, 0, sizeof t->environment);
  memset(t->saving, 0, sizeof t->saving);
  ht_ppo_destroy(t->ppo);
  ht_rollout_destroy(t->rollout);
  ht_window_destroy(t->window);
  ht_packed_release(&t->deployed_packed);
  float **weights[] = {&t->network.weights, &t->deployed.weights, &t->best};
  for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
    ht_release(ctx, *weights[k]);
    *weights[k] = NULL;
  }
  t->ppo = NULL;
  t->rollout = NULL;
  t->window = NULL;
  t->prepared = 0;
}

void ht_trainer_destroy(ht_trainer *t) {
  if (!t) return;
  forget(t);
  void *memory[] = {t->returns, t->iterations, t->bytes};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(t->ctx, memory[k]);
  ht_release(t->ctx, t);
}

ht_status ht_trainer_set_option(ht_trainer *t, const char *name, const char *value) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, name);
  HT_NEED(t->ctx, value);
  HT_CHECK(t->ctx, !t->prepared, HT_BAD_ARGUMENT,
           "the options of a training that has begun cannot be changed: set '%s' before the first run", name);
  HT_TRY(t->ctx, ht_train_options_set(t->ctx, &t->options, name, value));
  return HT_OK;
}

ht_status ht_trainer_get_option(const ht_trainer *t, const char *name, char *text, size_t size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, name);
  HT_NEED(t->ctx, text);
  char whole[HT_OPTION_TEXT_SIZE];
  int i = 0;
  while (i < ht_train_option_count() && strcmp(ht_train_option_at(i)->name, name)) i++;
  HT_CHECK(t->ctx, i < ht_train_option_count(), HT_BAD_OPTION, "there is no option '%s' of training", name);
  ht_train_options_print(&t->options, i, whole);
  HT_CHECK(t->ctx, strlen(whole) < size, HT_BAD_ARGUMENT, "the value of %s takes %zu bytes, and the buffer has %zu", name,
           strlen(whole) + 1, size);
  strcpy(text, whole);
  return HT_OK;
}

ht_status ht_trainer_add_matrix(ht_trainer *t, const ht_matrix *matrix, const char *name) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, matrix);
  HT_NEED(t->ctx, name);
  HT_CHECK(t->ctx, !t->prepared, HT_BAD_ARGUMENT, "matrices cannot be added to a training that has begun");
  HT_CHECK(t->ctx, t->matrices < HT_MOST_MATRICES, HT_BAD_ARGUMENT, "a training takes at most %d matrices", HT_MOST_MATRICES);
  size_t length = strlen(t->trained_on);
  snprintf(t->trained_on + length, sizeof t->trained_on - length, "%s%s", length ? ", " : "", name);
  t->matrix[t->matrices++] = matrix;
  return HT_OK;
}

void ht_trainer_set_progress(ht_trainer *t, ht_train_progress_fn fn, void *user) {
  if (!t) return;
  t->progress = fn;
  t->progress_user = user;
}

/* ---- preparation ---- */

static int is_window(const ht_trainer *t) { return t->options.state == HT_STATE_FEATURES; }

static ht_learned_kind kind(const ht_trainer *t) { return is_window(t) ? HT_LEARNED_WINDOW : HT_LEARNED_TILES; }

/* What the solves are made with, and what the network will be. */
static ht_status prepare_solves(ht_trainer *t, ht_network *shape) {
  const ht_train_options *o = &t->options;
  *shape = (ht_network){ht_learned_inputs(kind(t)), (int)o->hidden, HT_LEVELS, NULL};
  if (is_window(t)) {
    HT_TRY(t->ctx, ht_window_create(t->ctx, o, t->matrices, t->matrix, t->device, &t->window));
    shape->actions = t->window->actions;
    return HT_OK;
  }
  for (int k = 0; k < t->matrices; k++)
    HT_TRY(t->ctx, ht_environment_create(t->ctx, t->matrix[k], o, ht_trains_on_device(t), &t->environment[k]));
  return HT_OK;
}

static ht_status prepare_rollout(ht_trainer *t, int64_t *transitions, int64_t *rows) {
  if (is_window(t)) {
    HT_TRY(t->ctx, ht_window_attach(t->window, &t->deployed_packed));
    *transitions = *rows = 1; /* Adam alone is wanted */
    return HT_OK;
  }
  HT_TRY(t->ctx,
         ht_rollout_create(t->ctx, &t->options, t->matrices, t->environment, &t->deployed_packed, ht_trains_on_device(t), &t->rollout));
  *transitions = t->rollout->batch.transitions;
  *rows = t->rollout->batch.most_rows;
  return HT_OK;
}

static ht_status prepare_savings(ht_trainer *t) {
  int rewarded = t->options.reward == HT_REWARD_TIME;
  for (int k = 0; k < t->matrices && (rewarded || t->options.compete == HT_COMPETE_YES); k++)
    HT_TRY(t->ctx, ht_saving_create(t->environment[k], &t->saving[k]));
  t->rollout->saving = rewarded ? t->saving : NULL;
  return HT_OK;
}

static ht_status prepare(ht_trainer *t) {
  ht_context *ctx = t->ctx;
  const ht_train_options *o = &t->options;
  ht_network shape;
  int64_t transitions, rows;
  HT_TRY(ctx, prepare_solves(t, &shape));
  int64_t size = ht_network_size(shape.inputs, shape.hidden, shape.actions);
  t->network = t->deployed = shape;
  HT_TRY(ctx, ht_allocate(ctx, size, sizeof(float), &t->network.weights));
  HT_TRY(ctx, ht_allocate(ctx, size, sizeof(float), &t->deployed.weights));
  HT_TRY(ctx, ht_allocate(ctx, size, sizeof(float), &t->best));
  HT_TRY(ctx, ht_network_initialise(ctx, (uint64_t)o->seed, &t->network));
  if (is_window(t)) ht_network_lean(&t->network, t->window->begins_with);
  memcpy(t->best, t->network.weights, (size_t)size * sizeof(float));
  HT_TRY(ctx, ht_packed_create(ctx, &t->network, &t->deployed_packed));
  HT_TRY(ctx, prepare_rollout(t, &transitions, &rows));
  const ht_ppo_settings settings = {.clip = o->clip,
                                    .value_weight = o->value_weight,
                                    .entropy_weight = o->entropy_weight,
                                    .learning_rate = o->learning_rate,
                                    .gradient_clip = o->gradient_clip,
                                    .epochs = o->epochs,
                                    .minibatch = o->minibatch,
                                    .own_cost =
                                        o->reward == HT_REWARD_PAPER && o->credit == HT_CREDIT_OWN ? HT_LEARNING_COST * o->tile_cost : 0,
                                    .summed = o->loss == HT_LOSS_SUM};
  HT_TRY(ctx, ht_ppo_create(ctx, &settings, &t->network, transitions, rows, &t->ppo));
  if (is_window(t)) return HT_OK; /* its FP64 solves are made */
  if (ht_trains_on_device(t)) return ht_device_prepare(t);
  for (int k = 0; k < t->matrices; k++) HT_TRY(ctx, ht_environment_solve(t->environment[k]));
  return prepare_savings(t);
}

ht_status ht_trainer_prepare(ht_trainer *t) {
  if (t->prepared) return HT_OK;
  HT_CHECK(t->ctx, t->matrices > 0, HT_BAD_ARGUMENT, "training needs a matrix: call ht_trainer_add_matrix first");
  double start = ht_seconds();
  ht_train_options_settle(&t->options);
  HT_TRY(t->ctx, ht_train_options_check(t->ctx, &t->options));
  HT_TRY(t->ctx, ht_device_choose(t));
  ht_status status = prepare(t);
  if (status != HT_OK) forget(t);
  if (status != HT_OK && ht_device_give_up(t, status)) {
    status = prepare(t);
    if (status != HT_OK) forget(t);
  }
  if (status != HT_OK) return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  t->time_judge_s += ht_seconds() - start;
  t->prepared = 1;
  return HT_OK;
}

ht_status ht_trainer_make_room(ht_trainer *t, int64_t episodes) {
  if (episodes <= t->room) return HT_OK;
  int64_t room = 2 * episodes, *iterations;
  double *returns;
  HT_TRY(t->ctx, ht_allocate(t->ctx, room, sizeof *returns, &returns));
  ht_status status = ht_allocate(t->ctx, room, sizeof *iterations, &iterations);
  if (status != HT_OK) {
    ht_release(t->ctx, returns);
    return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  }
  if (t->room) {
    memcpy(returns, t->returns, (size_t)t->at.episodes * sizeof *returns);
    memcpy(iterations, t->iterations, (size_t)t->at.episodes * sizeof *iterations);
  }
  ht_release(t->ctx, t->returns);
  ht_release(t->ctx, t->iterations);
  t->returns = returns;
  t->iterations = iterations;
  t->room = room;
  return HT_OK;
}

/* ---- judgement ---- */

/* As the solver deploys them: weights of 16 bits. */
static void deploy(ht_trainer *t, const float *weights) {
  for (int64_t k = 0; k < t->ppo->weights; k++) t->deployed.weights[k] = (float)ht_load_f16(ht_store_f16(weights[k]));
  ht_packed_load(&t->deployed_packed, &t->deployed);
}

/* Solves that are judged: of each matrix one, or one a preconditioner. */
int ht_trainer_cases(const ht_trainer *t) { return is_window(t) ? t->window->cases : t->matrices; }

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
  if (is_window(t))
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
  if (!is_window(t)) {
    HT_TRY(t->ctx, judge_all(t, is_priced(t) ? HT_LEARNED_LONGEST : 1, judgement, weight)); /* priced looks are rare */
    return HT_OK;
  }
  *weight = 1 - ht_window_worth(t->window, &t->deployed_packed);
  return HT_OK;
}

/* Keep the weights if they deploy better than those kept; not more often than is cheap beside the episodes. */
static ht_status judge_weights(ht_trainer *t) {
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
static ht_status judge_best(ht_trainer *t, ht_train_report *report) {
  ht_judgement one[HT_MOST_MATRICES] = {{0}}, j[HT_MOST_CASES] = {{0}};
  int cases = ht_trainer_cases(t), judged = 0;
  deploy(t, t->best);
  if (is_window(t)) {
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

/* ---- learning ---- */

static double mean_return(const ht_trainer *t, int64_t first, int64_t last) {
  double sum = 0;
  for (int64_t k = first; k < last; k++) sum += t->returns[k];
  return last > first ? sum / (double)(last - first) : NAN;
}

static double mean_iterations(const ht_trainer *t, int64_t first) {
  double sum = 0;
  for (int64_t k = first; k < t->at.episodes; k++) sum += (double)t->iterations[k];
  return t->at.episodes > first ? sum / (double)(t->at.episodes - first) : NAN;
}

static int64_t window_start(const ht_trainer *t) { return t->at.episodes > HT_RETURN_WINDOW ? t->at.episodes - HT_RETURN_WINDOW : 0; }

/* Whether the mean return still rises; by less than a thousandth does not count. */
static int has_settled(ht_trainer *t) {
  double mean = mean_return(t, window_start(t), t->at.episodes);
  if (t->at.episodes < HT_RETURN_WINDOW) return 0;
  if (!(mean <= t->at.best_mean + 1e-3 * fabs(t->at.best_mean))) {
    t->at.best_mean = mean;
    t->at.improved_at = t->at.episodes;
  }
  return t->options.patience && t->at.episodes - t->at.improved_at >= t->options.patience;
}

/* The next transitions, and the episodes that ended with them. */
static ht_status collect(ht_trainer *t) {
  HT_TRY(t->ctx, ht_trainer_make_room(t, t->at.episodes + t->rollout->batch.transitions));
  if (t->learner)
    HT_TRY(t->ctx, ht_device_collect(t));
  else
    ht_rollout_collect(t->rollout, &t->ppo->packed);
  const ht_episode *finished = t->rollout->finished;
  int64_t count = t->rollout->finished_count;
  HT_TRY(t->ctx, ht_trainer_make_room(t, t->at.episodes + count));
  for (int64_t k = 0; k < count; k++, t->at.episodes++) {
    t->returns[t->at.episodes] = finished[k].total;
    t->iterations[t->at.episodes] = finished[k].iterations;
  }
  return HT_OK;
}

/* A step of Adam from a pass over all that the solves can become, which is an episode. */
static ht_status learn_from_trees(ht_trainer *t) {
  ht_window *w = t->window;
  double start = ht_seconds(), error;
  uint64_t seed = ht_random_bits((uint64_t)t->options.seed ^ 0x7ee5, (uint64_t)t->at.updates);
  HT_TRY(t->ctx, ht_trainer_make_room(t, t->at.episodes + 1));
  t->returns[t->at.episodes] = ht_window_gradient(w, t->ppo, seed, &error);
  t->iterations[t->at.episodes] = w->iterations;
  ht_ppo_step(t->ppo);
  t->time_update_s += ht_seconds() - start;
  t->at.updates++;
  t->at.episodes++;
  t->at.transitions += w->learned_rows;
  HT_TRY(t->ctx, judge_weights(t));
  return HT_OK;
}

static ht_status learn_once(ht_trainer *t) {
  if (t->window) return learn_from_trees(t);
  ht_ppo_loss loss;
  double start = ht_seconds();
  HT_TRY(t->ctx, collect(t));
  ht_ppo_batch *batch = &t->rollout->batch;
  double middle = ht_seconds();
  uint64_t seed = ht_random_bits((uint64_t)t->options.seed ^ 0x5f0e, (uint64_t)t->at.updates);
  if (t->learner)
    HT_TRY(t->ctx, ht_device_update(t, seed, &loss));
  else
    ht_ppo_update(t->ppo, batch, seed, &loss);
  t->time_rollout_s += middle - start;
  t->time_update_s += ht_seconds() - middle;
  t->at.updates++;
  t->at.transitions += batch->transitions;
  t->at.entropy = loss.entropy;
  HT_TRY(t->ctx, judge_weights(t));
  return HT_OK;
}

static int tell(const ht_trainer *t, double started) {
  if (!t->progress) return 0;
  int64_t first = window_start(t);
  const ht_train_progress now = {.episodes = t->at.episodes,
                                 .episodes_asked = t->options.episodes,
                                 .updates = t->at.updates,
                                 .transitions = t->at.transitions,
                                 .mean_return = mean_return(t, first, t->at.episodes),
                                 .best_return = t->at.best_mean > -INFINITY ? t->at.best_mean : NAN,
                                 .mean_iterations = mean_iterations(t, first),
                                 .traffic = isfinite(t->at.best_traffic) ? t->at.best_traffic : NAN,
                                 .elapsed_s = ht_seconds() - started};
  return t->progress(t->progress_user, &now);
}

static void describe(const ht_trainer *t, ht_train_report *r, const char *outcome, double started) {
  int64_t first = t->at.episodes < HT_RETURN_WINDOW ? t->at.episodes : HT_RETURN_WINDOW;
  snprintf(r->outcome, sizeof r->outcome, "%s", outcome);
  snprintf(r->backend, sizeof r->backend, "%s", t->backend->name);
  r->matrices = t->matrices;
  r->tiles = 0;
  for (int k = 0; k < t->matrices; k++) r->tiles += (ht_matrix_rows(t->matrix[k]) + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK;
  r->episodes = t->at.episodes;
  r->transitions = t->at.transitions;
  r->updates = t->at.updates;
  r->return_first = mean_return(t, 0, first);
  r->return_last = mean_return(t, window_start(t), t->at.episodes);
  r->return_best = t->at.best_mean > -INFINITY ? t->at.best_mean : NAN;
  r->entropy = t->at.updates && !is_window(t) ? t->at.entropy : NAN;
  r->time_s = ht_seconds() - started;
  r->time_rollout_s = t->time_rollout_s;
  r->time_update_s = t->time_update_s;
  r->time_judge_s = t->time_judge_s;
}

ht_status ht_trainer_run(ht_trainer *t, ht_train_report *report) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, report);
  double started = ht_seconds();
  const char *outcome = "finished";
  ht_train_report_clear(report);
  HT_TRY(t->ctx, ht_trainer_prepare(t));
  while (t->at.episodes < t->options.episodes) {
    if (ht_stop_requested(t->ctx)) {
      outcome = "interrupted";
      break;
    }
    HT_TRY(t->ctx, learn_once(t));
    int settled = has_settled(t);
    if (tell(t, started)) {
      outcome = "interrupted";
      break;
    }
    if (settled && t->at.episodes < t->options.episodes) {
      outcome = "settled";
      break;
    }
  }
  ht_context_clear_stop(t->ctx); /* what an interrupted training leaves is still judged */
  double start = ht_seconds();
  HT_TRY(t->ctx, judge_best(t, report));
  t->time_judge_s += ht_seconds() - start;
  describe(t, report, outcome, started);
  return HT_OK;
}

int64_t ht_trainer_history(const ht_trainer *t, const double **returns, const int64_t **iterations) {
  if (returns) *returns = t ? t->returns : NULL;
  if (iterations) *iterations = t ? t->iterations : NULL;
  return t ? t->at.episodes : 0;
}

ht_status ht_trainer_policy(ht_trainer *t, const void **bytes, int64_t *size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, bytes);
  HT_NEED(t->ctx, size);
  static const char *const rewards[] = {"auto", "paper", "time"};
  HT_CHECK(t->ctx, t->prepared && t->interval, HT_BAD_ARGUMENT, "there is no policy before a training has run");
  ht_learned learned = {
      .kind = kind(t), .network = t->network, .interval = (int)t->interval, .seed = (uint64_t)t->options.seed, .episodes = t->at.episodes};
  learned.network.weights = t->best;
  snprintf(learned.state, sizeof learned.state, "%s", is_window(t) ? "features" : "paper");
  if (is_window(t)) {
    snprintf(learned.actions, sizeof learned.actions, "%s", t->options.actions);
    learned.for_device = t->device != NULL;
  }
  snprintf(learned.reward, sizeof learned.reward, "%s", rewards[t->options.reward]);
  snprintf(learned.chosen, sizeof learned.chosen, "%s", t->fastest);
  snprintf(learned.contest, sizeof learned.contest, "%s", t->contest);
  snprintf(learned.trained_on, sizeof learned.trained_on, "%s", t->trained_on);
  snprintf(learned.version, sizeof learned.version, "%s", ht_version());
  ht_release(t->ctx, t->bytes);
  t->bytes = NULL;
  HT_TRY(t->ctx, ht_learned_serialize(t->ctx, &learned, &t->bytes, size));
  *bytes = t->bytes;
  return HT_OK;
}
