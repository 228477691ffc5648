/* Training on a device. SPDX-License-Identifier: BSD-3-Clause */
#include "train/device.h"
#include <string.h>
#include "solver/choose_backend.h"
#include "train/view.h"

/* Below this the CPU is done before a GPU has been started. */
static const int64_t LEAST_NONZEROS = 1000;

enum { HOST_LANES = 8, DEVICE_LANES = 32 };

/* ---- which backend ---- */

/* What the options leave to the CPU alone, as the end of a sentence; NULL where a device serves. */
static const char *only_on_cpu(const ht_train_options *o) {
  if (o->state != HT_STATE_PAPER) return "a device learns from the state paper alone";
  if (o->reward != HT_REWARD_PAPER) return "a device learns from the reward paper alone";
  if (o->format != HT_TRAIN_TILECSC) return "a device rounds as the storage tilecsc does";
  if (o->replace != HT_REPLACE_NO) return "a device replaces no residual";
  if (o->compete == HT_COMPETE_YES && o->judge == HT_JUDGE_MODEL) return "what a device learns competes by the clock";
  return NULL;
}

/* What is learned on the CPU may be for the device all the same, and competes there. */
static ht_status learn_elsewhere(ht_trainer *t, const char *reason) {
  const ht_train_options *o = &t->options;
  HT_CHECK(
      t->ctx, o->state == HT_STATE_FEATURES || (o->compete == HT_COMPETE_YES && o->judge != HT_JUDGE_MODEL), HT_UNSUPPORTED,
      "%s, and nothing would be done on the %s backend: let the policy compete there, by the clock, with --compete yes, or use --reward "
      "paper with what it stands for, or --backend cpu",
      reason, t->backend->name);
  HT_TRY(t->ctx, ht_backend_find(t->ctx, "cpu", &t->backend));
  return HT_OK;
}

static ht_status take(ht_trainer *t, const char *name) {
  const char *reason = only_on_cpu(&t->options);
  HT_TRY(t->ctx, ht_backend_find(t->ctx, name, &t->backend));
  t->device = ht_backend_is_host(t->ctx, t->backend) ? NULL : t->backend;
  if (!t->device) return HT_OK;
  if (reason) return learn_elsewhere(t, reason);
  HT_CHECK(t->ctx, t->backend->learner_create, HT_UNSUPPORTED, "the %s backend does not train; use --backend cpu", t->backend->name);
  return HT_OK;
}

/* Whether the solver would take a device for one of the matrices, so that this is where a policy for them is to be fast. */
static int is_solved_on_device(ht_trainer *t) {
  struct ht_options options;
  const ht_backend *backend;
  char why[HT_REPORT_TEXT];
  int64_t most = 0;
  int any = t->options.machine == HT_MACHINE_ANY || (t->options.machine == HT_MACHINE_AUTO && t->matrices > 1);
  if (t->options.compete != HT_COMPETE_YES || t->options.judge == HT_JUDGE_MODEL || any) return 0;
  for (int k = 0; k < t->matrices; k++) most = t->matrix[k]->nnz > most ? t->matrix[k]->nnz : most;
  ht_options_set_defaults(&options);
  return ht_choose_backend(t->ctx, &options, most, &backend, why) == HT_OK && !ht_backend_is_host(t->ctx, backend);
}

static ht_status choose(ht_trainer *t) {
  int64_t nonzeros = 0;
  t->chosen = 0;
  if (strcmp(t->options.backend, "auto") != 0) return take(t, t->options.backend);
  for (int k = 0; k < t->matrices; k++) nonzeros += t->matrix[k]->nnz;
  if (only_on_cpu(&t->options) ? is_solved_on_device(t) : nonzeros >= LEAST_NONZEROS) {
    t->chosen = take(t, "cuda") == HT_OK;
    if (t->chosen) return HT_OK;
    ht_log(t->ctx, HT_LOG_INFO, "training on the CPU: %s", ht_context_error(t->ctx));
    ht_context_clear_error(t->ctx);
  }
  return take(t, "cpu");
}

static ht_status choose_lanes(ht_trainer *t) {
  ht_train_options *o = &t->options;
  t->lanes_asked = o->lanes;
  if (!o->lanes && !ht_trains_on_device(t)) o->lanes = HOST_LANES;
  if (!o->lanes) o->lanes = (DEVICE_LANES + t->matrices - 1) / t->matrices * t->matrices;
  while (!t->lanes_asked && o->lanes > o->update && o->lanes > t->matrices) o->lanes -= t->matrices;
  HT_CHECK(t->ctx, o->lanes <= o->update, HT_BAD_OPTION,
           "each of the lanes takes an equal part of an update's transitions, and there are %lld lanes for %lld of them; lower lanes or "
           "raise update",
           (long long)o->lanes, (long long)o->update);
  return HT_OK;
}

ht_status ht_device_choose(ht_trainer *t) {
  HT_TRY(t->ctx, choose(t));
  HT_TRY(t->ctx, choose_lanes(t));
  return HT_OK;
}

int ht_device_give_up(ht_trainer *t, ht_status status) {
  if (!t->chosen || (status != HT_NO_MEMORY && status != HT_UNSUPPORTED && status != HT_DEVICE)) return 0;
  ht_log(t->ctx, HT_LOG_INFO, "training on the CPU: %s", ht_context_error(t->ctx));
  ht_context_clear_error(t->ctx);
  t->options.lanes = t->lanes_asked;
  t->device = NULL;
  return ht_backend_find(t->ctx, "cpu", &t->backend) == HT_OK && choose_lanes(t) == HT_OK;
}

int ht_device_is_left(ht_trainer *t, ht_status status) {
  if (!t->chosen || t->learner || (status != HT_NO_MEMORY && status != HT_UNSUPPORTED && status != HT_DEVICE)) return 0;
  ht_log(t->ctx, HT_LOG_INFO, "competing on the CPU: %s", ht_context_error(t->ctx));
  ht_context_clear_error(t->ctx);
  t->device = NULL;
  return 1;
}

/* ---- the learner ---- */

static ht_status create(ht_trainer *t) {
  const ht_train_options *o = &t->options;
  ht_csr_view view[HT_MOST_MATRICES];
  const ht_learner_settings settings = {.ppo = t->ppo->settings,
                                        .hidden = (int)o->hidden,
                                        .lanes = (int)o->lanes,
                                        .steps = t->rollout->steps,
                                        .most_rows = t->rollout->batch.most_rows,
                                        .seed = (uint64_t)o->seed,
                                        .random_right_sides = o->rhs == HT_RIGHT_SIDE_RANDOM,
                                        .rtol = o->rtol,
                                        .gamma = o->gamma,
                                        .gae_lambda = o->gae_lambda,
                                        .tile_cost = o->tile_cost};
  for (int k = 0; k < t->matrices; k++) view[k] = ht_matrix_view(t->environment[k]->symmetric);
  return t->backend->learner_create(t->ctx, &settings, t->matrices, view, &t->learner);
}

/* A judged solve, whose end the rollout's judge then stands at. weights: NULL for FP64. */
static ht_status solve(ht_trainer *t, int environment, const float *weights, int64_t interval, int64_t most, ht_learner_judgement *j) {
  ht_course *c = &t->rollout->judge.course;
  ht_environment *e = t->environment[environment];
  ht_course_begin(e, 0, c);
  HT_TRY(t->ctx, t->backend->learner_judge(t->learner, environment, weights, interval, most, j, c->x));
  c->iteration = j->iterations;
  c->reached = j->reached;
  c->broken = j->broken;
  return HT_OK;
}

ht_status ht_device_prepare(ht_trainer *t) {
  HT_TRY(t->ctx, create(t));
  for (int k = 0; k < t->matrices; k++) {
    ht_environment *e = t->environment[k];
    ht_learner_judgement j;
    HT_TRY(t->ctx, solve(t, k, NULL, 0, t->options.max_iterations, &j));
    HT_TRY(t->ctx, ht_environment_refer_to(e, &t->rollout->judge.course, j.residual));
    t->backend->learner_set_limit(t->learner, k, ht_most_iterations(e));
  }
  HT_TRY(t->ctx, ht_device_place_network(t));
  return HT_OK;
}

void ht_device_release(ht_trainer *t) {
  if (t->learner) t->backend->learner_release(t->learner);
  t->learner = NULL;
}

ht_status ht_device_collect(ht_trainer *t) {
  HT_TRY(t->ctx, t->backend->learner_collect(t->learner, t->rollout->finished, &t->rollout->finished_count));
  return HT_OK;
}

ht_status ht_device_update(ht_trainer *t, uint64_t seed, ht_ppo_loss *loss) {
  HT_TRY(t->ctx, t->backend->learner_update(t->learner, seed, loss));
  return HT_OK;
}

ht_status ht_device_fetch_network(ht_trainer *t) {
  HT_TRY(t->ctx, t->backend->learner_get_network(t->learner, t->network.weights, t->ppo->first, t->ppo->second, &t->ppo->steps));
  return HT_OK;
}

ht_status ht_device_place_network(ht_trainer *t) {
  HT_TRY(t->ctx, t->backend->learner_set_network(t->learner, t->network.weights, t->ppo->first, t->ppo->second, t->ppo->steps));
  return HT_OK;
}

/* ---- lanes ---- */

ht_status ht_device_fetch_lane(ht_trainer *t, int number, ht_lane **fetched) {
  ht_lane *lane = &t->rollout->judge;
  ht_course *c = &lane->course;
  const ht_environment *e = t->environment[number % t->matrices];
  ht_learner_lane got = {.r = c->r, .p = c->p};
  ht_course_begin(e, 0, c); /* zeros behind the last unknown, and for x, which no reward of a device's looks at */
  HT_TRY(t->ctx, t->backend->learner_get_lane(t->learner, number, &got));
  ht_course_right_side(e, got.episode < 0 ? 0 : (uint64_t)got.episode, c);
  lane->episode = got.episode;
  lane->total = got.total;
  lane->lowest = c->norm_0 = c->reference = got.norm_0;
  c->iteration = got.iteration;
  c->norm_r = got.norm_r;
  c->rr = got.rr;
  c->lowest = HT_LEVEL_64;
  c->over = got.over;
  *fetched = lane;
  return HT_OK;
}

ht_status ht_device_place_lane(ht_trainer *t, int number) {
  const ht_lane *lane = &t->rollout->judge;
  const ht_course *c = &lane->course;
  const ht_learner_lane placed = {.episode = lane->episode,
                                  .iteration = c->iteration,
                                  .total = lane->total,
                                  .norm_0 = c->norm_0,
                                  .norm_r = c->norm_r,
                                  .rr = c->rr,
                                  .over = c->over,
                                  .r = c->r,
                                  .p = c->p};
  HT_TRY(t->ctx, t->backend->learner_set_lane(t->learner, number, &placed));
  return HT_OK;
}

/* ---- judging ---- */

ht_status ht_device_judge(ht_trainer *t, int environment, int64_t interval, ht_judgement *j) {
  const ht_environment *e = t->environment[environment];
  ht_course *c = &t->rollout->judge.course;
  ht_learner_judgement made;
  HT_TRY(t->ctx, solve(t, environment, t->deployed.weights, interval, ht_most_iterations(e), &made));
  *j = (ht_judgement){.iterations = made.iterations,
                      .iterations_64 = e->iterations_64,
                      .true_64 = e->true_64,
                      .reached = made.reached,
                      .true_residual = ht_course_true_residual(c)};
  memcpy(j->rises, made.rises, sizeof j->rises);
  for (int level = 0; level < HT_LEVELS; level++)
    j->share[level] = (double)made.count[level] / (double)(e->blocks * (made.iterations > 0 ? made.iterations : 1));
  j->time = ht_environment_share(e, made.count, made.iterations) / (double)e->iterations_64 + 2 * ht_missing_progress(c);
  return HT_OK;
}
