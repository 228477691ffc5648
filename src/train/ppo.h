/* Proximal policy optimisation (Schulman et al. 2017) with many tiles that act side by side in a transition: the ratio and its clip are
 * a tile's, the advantage is the transition's, the value is the mean over the tiles. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_PPO_H
#define HT_TRAIN_PPO_H
#include "backend/learning.h"
#include "train/packed.h"

/* Transition t has rows[t] tiles, from the row t * most_rows on. */
typedef struct ht_ppo_batch {
  int64_t transitions, most_rows;
  int32_t *rows;
  float *advantage, *target;
  float *state; /* of a row `inputs` numbers */
  uint8_t *action;
  float *log_probability; /* of the action when it was taken */
} ht_ppo_batch;

enum { HT_PPO_SLOTS = 8 }; /* parts of a minibatch, summed in order: the bits do not depend on the threads */

typedef struct ht_ppo {
  ht_context *ctx;
  ht_ppo_settings settings;
  ht_network *network; /* borrowed */
  ht_packed packed;
  int64_t weights;                  /* how many */
  float *gradient, *first, *second; /* of the weights; Adam's moments */
  int64_t steps;                    /* of Adam */
  double deviation;                 /* of the batch's advantages before they were standardised */
  uint32_t *shuffled;
  float *sums; /* a padded gradient a slot */
  struct ht_ppo_slot {
    ht_activations forward, backward;
    ht_ppo_loss loss;
  } slot[HT_PPO_SLOTS];
} ht_ppo;

/* For batches of up to `transitions` of up to `tiles` tiles. */
ht_status ht_ppo_create(ht_context *ctx, const ht_ppo_settings *settings, ht_network *network, int64_t transitions, int64_t tiles,
                        ht_ppo **ppo);
void ht_ppo_destroy(ht_ppo *ppo); /* NULL is allowed */
/* Loss and, in ppo->gradient, its gradient, for `count` transitions of the batch by their numbers. */
void ht_ppo_gradient(ht_ppo *ppo, const ht_ppo_batch *batch, int64_t count, const uint32_t *transition, ht_ppo_loss *loss);
/* One step of Adam (Kingma and Ba 2015) along the gradient, which is cut to the norm gradient_clip. */
void ht_ppo_step(ht_ppo *ppo);
/* All epochs over the batch, in an order that depends on the seed; loss: the mean over the minibatches. Advantages are standardised here,
 * in place. */
void ht_ppo_update(ht_ppo *ppo, ht_ppo_batch *batch, uint64_t seed, ht_ppo_loss *loss);

#endif
