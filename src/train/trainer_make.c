/* What a training needs, made before its first episode. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <string.h>
#include "train/device.h"
#include "train/initialise.h"
#include "train/saving.h"

/* ---- preparation ---- */

/* What the solves are made with, and what the network will be. */
static ht_status prepare_solves(ht_trainer *t, ht_network *shape) {
  const ht_train_options *o = &t->options;
  *shape = (ht_network){ht_learned_inputs(ht_trainer_kind(t)), (int)o->hidden, HT_LEVELS, NULL};
  if (ht_trains_windows(t)) {
    HT_TRY(t->ctx, ht_window_create(t->ctx, o, t->matrices, t->matrix, t->device, &t->window));
    shape->actions = t->window->actions;
    return HT_OK;
  }
  for (int k = 0; k < t->matrices; k++)
    HT_TRY(t->ctx, ht_environment_create(t->ctx, t->matrix[k], o, ht_trains_on_device(t), &t->environment[k]));
  return HT_OK;
}

static ht_status prepare_rollout(ht_trainer *t, int64_t *transitions, int64_t *rows) {
  if (ht_trains_windows(t)) {
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
    HT_TRY(t->ctx, ht_saving_create(t->environment[k], NULL, &t->saving[k]));
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
  if (ht_trains_windows(t)) ht_network_lean(&t->network, t->window->begins_with);
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
  if (ht_trains_windows(t)) return HT_OK; /* its FP64 solves are made */
  if (ht_trains_on_device(t)) return ht_device_prepare(t);
  for (int k = 0; k < t->matrices; k++) HT_TRY(ctx, ht_environment_solve(t->environment[k]));
  return prepare_savings(t);
}

ht_status ht_trainer_prepare(ht_trainer *t) {
  if (t->prepared) return HT_OK;
  HT_CHECK(t->ctx, t->matrices > 0, HT_BAD_ARGUMENT, "training needs a matrix: call ht_trainer_add_matrix first");
  double start = ht_seconds();
  ht_train_options_settle(&t->options);
  HT_TRY(t->ctx, ht_train_options_check(t->ctx, &t->options, t->given));
  HT_TRY(t->ctx, ht_device_choose(t));
  ht_status status = prepare(t);
  if (status != HT_OK) ht_trainer_forget(t);
  if (status != HT_OK && ht_device_give_up(t, status)) {
    status = prepare(t);
    if (status != HT_OK) ht_trainer_forget(t);
  }
  if (status != HT_OK) return ht_trace(t->ctx, status, __func__, __FILE__, __LINE__);
  double to_learn_from = t->window ? t->window->time_grow_s : 0; /* for whole matrices all solves are made here */
  t->time_rollout_s += to_learn_from;
  t->time_prepare_s += ht_seconds() - start - to_learn_from;
  t->prepared = 1;
  return HT_OK;
}

void ht_trainer_forget(ht_trainer *t) {
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
