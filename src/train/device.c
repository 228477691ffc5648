/* Training on a device. SPDX-License-Identifier: BSD-3-Clause */
#include "train/device.h"
#include <math.h>
#include <string.h>
#include "solver/choose_backend.h"
#include "solver/guard.h"
#include "train/saving.h"
#include "train/stored_rows.h"
#include "train/view.h"

/* Below this the CPU is done before a GPU has been started. */
static const int64_t LEAST_NONZEROS = 1000;

enum { HOST_LANES = 8, DEVICE_LANES = 32 };

static int is_saving(const ht_trainer *t) { return t->options.reward == HT_REWARD_TIME; }

/* ---- which backend ---- */

/* What the options leave to the CPU alone, as the end of a sentence; NULL where a device serves. */
static const char *only_on_cpu(const ht_train_options *o) {
  int is_paper = o->reward == HT_REWARD_PAPER;
  if (o->state != HT_STATE_PAPER) return "a device learns from the state paper alone";
  if (o->hidden > HT_LEARNER_MOST_UNITS) return "a device learns networks of up to 64 units a layer";
  if (o->tiles > HT_LEARNER_MOST_TILES) return "a device learns from up to 32 tiles of an iteration";
  if (is_paper && o->format != HT_TRAIN_TILECSC) return "with the reward paper a device rounds as the storage tilecsc does";
  if (is_paper && o->replace != HT_REPLACE_NO) return "with the reward paper a device replaces no residual";
  if (o->compete == HT_COMPETE_YES && o->judge == HT_JUDGE_MODEL) return "what a device learns competes by the clock";
  return NULL;
}

/* What is learned on the CPU may be for the device all the same, and competes there. */
static ht_status learn_elsewhere(ht_trainer *t, const char *reason) {
  const ht_train_options *o = &t->options;
  HT_CHECK(t->ctx, o->state == HT_STATE_FEATURES || (o->compete == HT_COMPETE_YES && o->judge != HT_JUDGE_MODEL), HT_UNSUPPORTED,
           "%s, and nothing would be done on the %s backend: let the policy compete there, by the clock, with --compete yes, or use "
           "--backend cpu",
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
  int learns_there = t->options.reward == HT_REWARD_PAPER && !only_on_cpu(&t->options); /* learned there, whatever solve would take */
  if (learns_there ? nonzeros >= LEAST_NONZEROS : is_solved_on_device(t)) {
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
  int measures = ht_trains_on_device(t) && is_saving(t);
  HT_CHECK(
      t->ctx, t->options.price == HT_PRICE_MODEL || measures, HT_BAD_OPTION,
      "iterations are measured on a device that learns from the reward time, and this training is on the %s backend; use --price model, "
      "or --backend cuda",
      t->backend->name);
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

/* Of each matrix; 0: random ones, another in each episode, which the learner draws by itself. */
static int right_sides(const ht_trainer *t) {
  if (is_saving(t)) return ht_saving_right_sides(&t->options);
  return t->options.rhs == HT_RIGHT_SIDE_ONES;
}

/* As an environment reads the matrix, in its order of the unknowns. `sides` is to be released. */
static ht_status describe(ht_trainer *t, int matrix, ht_stored_rows *rows, double **sides, ht_learner_system *system) {
  ht_environment *e = t->environment[matrix];
  ht_course *c = &t->rollout->judge.course;
  int count = right_sides(t);
  HT_TRY(t->ctx, ht_stored_rows_create(e, rows));
  if (count) HT_TRY(t->ctx, ht_allocate(t->ctx, count * e->n, sizeof **sides, sides));
  for (int k = 0; k < count; k++) {
    ht_course_begin(e, (uint64_t)k, c);
    memcpy(*sides + k * e->n, c->r, (size_t)e->n * sizeof **sides);
  }
  *system = (ht_learner_system){.n = e->n,
                                .row_start = rows->row_start,
                                .columns = rows->columns,
                                .values = rows->values,
                                .right_sides = *sides,
                                .sides = count,
                                .parts = rows->parts,
                                .part = rows->part,
                                .touch_start = rows->touch_start,
                                .touched = rows->touched};
  return HT_OK;
}

static ht_status create_from(ht_trainer *t, const ht_learner_system *system) {
  const ht_train_options *o = &t->options;
  ht_learner_settings settings = {.ppo = t->ppo->settings,
                                  .hidden = (int)o->hidden,
                                  .lanes = (int)o->lanes,
                                  .steps = t->rollout->steps,
                                  .most_rows = t->rollout->batch.most_rows,
                                  .seed = (uint64_t)o->seed,
                                  .rtol = o->rtol,
                                  .gamma = o->gamma,
                                  .gae_lambda = o->gae_lambda,
                                  .tile_cost = o->tile_cost,
                                  .saves = is_saving(t),
                                  .replaces = is_saving(t) && o->replace == HT_REPLACE_YES};
  for (int level = 0; level < HT_LEVELS; level++) settings.drop[level] = ht_guard_usual_drop((ht_level)level);
  return t->backend->learner_create(t->ctx, &settings, t->matrices, system, &t->learner);
}

static ht_status create(ht_trainer *t) {
  ht_learner_system system[HT_MOST_MATRICES];
  ht_stored_rows rows[HT_MOST_MATRICES] = {{.parts = 0}};
  double *sides[HT_MOST_MATRICES] = {NULL};
  ht_status status = HT_OK;
  for (int k = 0; k < t->matrices && status == HT_OK; k++) status = describe(t, k, &rows[k], &sides[k], &system[k]);
  if (status == HT_OK) status = create_from(t, system);
  for (int k = 0; k < t->matrices; k++) {
    ht_stored_rows_release(t->ctx, &rows[k]);
    ht_release(t->ctx, sides[k]);
  }
  if (status != HT_OK) return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* A judged solve, whose end the rollout's judge then stands at. */
static ht_status solve(ht_trainer *t, int environment, ht_learner_trial *trial, ht_learner_judgement *j) {
  ht_course *c = &t->rollout->judge.course;
  ht_course_begin(t->environment[environment], (uint64_t)trial->side, c);
  trial->x = c->x;
  HT_TRY(t->ctx, t->backend->learner_judge(t->learner, environment, trial, j));
  c->iteration = j->iterations;
  c->reached = j->reached;
  c->broken = j->broken;
  c->lowest = j->lowest;
  return HT_OK;
}

/* FP64's solve with a right-hand side, for the reward time. `user`: the trainer. */
static ht_status refer(void *user, const ht_environment *e, int right_side, double **fallen, int64_t *iterations, int *reached) {
  ht_trainer *t = user;
  int matrix = 0;
  while (t->environment[matrix] != e) matrix++;
  ht_learner_judgement j;
  ht_learner_trial trial = {.most_iterations = t->options.max_iterations, .side = right_side};
  for (trial.room = e->iterations_64;; trial.room = j.iterations) { /* as many as with A*1, or as are found to be needed */
    ht_release(t->ctx, *fallen);
    *fallen = NULL;
    HT_TRY(t->ctx, ht_allocate(t->ctx, trial.room + 1, sizeof **fallen, fallen));
    trial.norms = *fallen + 1;
    HT_TRY(t->ctx, solve(t, matrix, &trial, &j));
    if (j.iterations <= trial.room) break;
  }
  (*fallen)[0] = 1;
  for (int64_t k = 1; k <= j.iterations; k++) (*fallen)[k] = fmin((*fallen)[k] / j.norm_0, (*fallen)[k - 1]);
  *iterations = j.iterations;
  *reached = j.reached;
  return HT_OK;
}

static ht_status prepare_saving(ht_trainer *t, int matrix) {
  ht_environment *e = t->environment[matrix];
  const ht_saving_source here = {ht_device_name(t), t->options.price == HT_PRICE_TIME, t, refer};
  ht_learner_side side[HT_SAVING_RIGHT_SIDES];
  HT_TRY(t->ctx, ht_saving_create(e, &here, &t->saving[matrix]));
  ht_saving_sides(t->saving[matrix], right_sides(t), side);
  return t->backend->learner_set_saving(t->learner, matrix, side, ht_iterations_apart(t->rollout, e));
}

ht_status ht_device_prepare(ht_trainer *t) {
  HT_TRY(t->ctx, create(t));
  for (int k = 0; k < t->matrices; k++) {
    ht_environment *e = t->environment[k];
    ht_learner_judgement j;
    ht_learner_trial trial = {.most_iterations = t->options.max_iterations};
    HT_TRY(t->ctx, solve(t, k, &trial, &j));
    HT_TRY(t->ctx, ht_environment_refer_to(e, &t->rollout->judge.course, j.norm_r / j.norm_0));
    t->backend->learner_set_limit(t->learner, k, ht_most_iterations(e));
    if (is_saving(t)) HT_TRY(t->ctx, prepare_saving(t, k));
  }
  t->rollout->saving = is_saving(t) ? t->saving : NULL;
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
  ht_course_begin(e, 0, c); /* zeros behind the last unknown, and for x, at which no reward looks any more, or no residual on the way */
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
  ht_learner_trial trial = {.weights = t->deployed.weights, .interval = interval, .most_iterations = ht_most_iterations(e)};
  HT_TRY(t->ctx, solve(t, environment, &trial, &made));
  *j = (ht_judgement){.iterations = made.iterations,
                      .iterations_64 = e->iterations_64,
                      .true_64 = e->true_64,
                      .reached = made.reached,
                      .true_residual = ht_course_true_residual(c)};
  memcpy(j->rises, made.rises, sizeof j->rises);
  for (int level = 0; level < HT_LEVELS; level++)
    j->share[level] = (double)made.count[level] / (double)(e->blocks * (made.iterations > 0 ? made.iterations : 1));
  const ht_saving *s = t->saving[environment];
  int64_t looks = (made.iterations + interval - 1) / interval;
  j->time = is_saving(t) ? ht_saving_time_by_level(s, c, made.count, made.replacements, looks)
                         : ht_environment_share(e, made.count, made.iterations) / (double)e->iterations_64 + 2 * ht_missing_progress(c);
  return HT_OK;
}
