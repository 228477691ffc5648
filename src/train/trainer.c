/* Training from the first episode to the policy that is kept. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/random.h"
#include "base/words.h"
#include "train/device.h"
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

void ht_trainer_destroy(ht_trainer *t) {
  if (!t) return;
  ht_trainer_forget(t);
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
  HT_TRY(t->ctx, ht_train_options_set(t->ctx, &t->options, name, value, &t->given));
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
  ht_add_words(t->trained_on, sizeof t->trained_on, "%s%s", *t->trained_on ? ", " : "", name);
  t->matrix[t->matrices++] = matrix;
  return HT_OK;
}

void ht_trainer_set_progress(ht_trainer *t, ht_train_progress_fn fn, void *user) {
  if (!t) return;
  t->progress = fn;
  t->progress_user = user;
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
  HT_TRY(t->ctx, ht_trainer_judge_weights(t));
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
  HT_TRY(t->ctx, ht_trainer_judge_weights(t));
  return HT_OK;
}

double ht_trainer_elapsed(const ht_trainer *t) { return t->time_s + (ht_seconds() - t->started); }

void ht_trainer_tell(ht_trainer *t, ht_train_phase phase, int64_t solves) {
  t->phase_solves = phase == t->phase ? t->phase_solves + solves : solves;
  t->phase = phase;
  if (!t->progress) return;
  int64_t first = window_start(t);
  const ht_train_progress now = {.phase = phase,
                                 .solves = t->phase_solves,
                                 .episodes = t->at.episodes,
                                 .episodes_asked = t->options.episodes,
                                 .updates = t->at.updates,
                                 .transitions = t->at.transitions,
                                 .mean_return = mean_return(t, first, t->at.episodes),
                                 .best_return = t->at.best_mean > -INFINITY ? t->at.best_mean : NAN,
                                 .mean_iterations = mean_iterations(t, first),
                                 .traffic = isfinite(t->at.best_traffic) ? t->at.best_traffic : NAN,
                                 .elapsed_s = ht_trainer_elapsed(t)};
  if (t->progress(t->progress_user, &now)) ht_context_request_stop(t->ctx);
}

static void describe(const ht_trainer *t, ht_train_report *r, const char *outcome) {
  int64_t first = t->at.episodes < HT_RETURN_WINDOW ? t->at.episodes : HT_RETURN_WINDOW;
  snprintf(r->outcome, sizeof r->outcome, "%s", outcome);
  snprintf(r->backend, sizeof r->backend, "%s", t->backend->name);
  r->matrices = t->matrices;
  r->tiles = 0;
  for (int k = 0; k < t->matrices; k++) r->tiles += (ht_matrix_rows(t->matrix[k]) + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK;
  r->episodes = t->at.episodes;
  r->episodes_before = t->episodes_before;
  r->transitions = t->at.transitions;
  r->updates = t->at.updates;
  r->return_first = mean_return(t, 0, first);
  r->return_last = mean_return(t, window_start(t), t->at.episodes);
  r->return_best = t->at.best_mean > -INFINITY ? t->at.best_mean : NAN;
  r->entropy = t->at.updates && !ht_trains_windows(t) ? t->at.entropy : NAN;
  r->time_s = t->time_s;
  r->time_prepare_s = t->time_prepare_s;
  r->time_rollout_s = t->time_rollout_s;
  r->time_update_s = t->time_update_s;
  r->time_judge_s = t->time_judge_s;
  r->time_contest_s = t->time_contest_s;
}

static ht_status learn(ht_trainer *t, const char **outcome) {
  if (t->at.updates) HT_TRY(t->ctx, ht_trainer_judge_weights(t)); /* that an interrupt kept from being judged */
  while (t->at.episodes < t->options.episodes && !ht_stop_requested(t->ctx)) {
    HT_TRY(t->ctx, learn_once(t));
    int settled = has_settled(t);
    ht_trainer_tell(t, HT_TRAIN_LEARNS, 0);
    if (!settled || t->at.episodes >= t->options.episodes) continue;
    *outcome = "settled";
    break;
  }
  return HT_OK;
}

ht_status ht_trainer_run(ht_trainer *t, ht_train_report *report) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, report);
  const char *outcome = "finished";
  t->started = ht_seconds();
  t->phase = HT_TRAIN_LEARNS; /* none that is told of next */
  ht_train_report_clear(report);
  ht_trainer_tell(t, HT_TRAIN_PREPARES, 0);
  HT_TRY(t->ctx, ht_trainer_prepare(t));
  HT_TRY(t->ctx, learn(t, &outcome));
  HT_TRY(t->ctx, ht_trainer_judge(t, report));
  t->time_s = ht_trainer_elapsed(t);
  describe(t, report, report->judged ? outcome : "interrupted");
  ht_context_clear_stop(t->ctx); /* it was followed */
  return HT_OK;
}

int64_t ht_trainer_history(const ht_trainer *t, const double **returns, const int64_t **iterations) {
  if (returns) *returns = t ? t->returns : NULL;
  if (iterations) *iterations = t ? t->iterations : NULL;
  return t ? t->at.episodes : 0;
}
