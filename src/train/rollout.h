/* Solves under a policy: sampled ones to learn from, and one with the likeliest actions to judge it by.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_ROLLOUT_H
#define HT_TRAIN_ROLLOUT_H
#include "train/environment.h"
#include "train/ppo.h"

enum { HT_LEARNED_LONGEST = 1 << (HT_LEARNING_RISES - 1) }; /* of the intervals between two decisions */

/* One solve of those, across updates. */
typedef struct ht_lane {
  ht_course course;
  ht_activations rows;  /* the tiles that go through the network together */
  int64_t episode;      /* its number; -1 before the first */
  double total, lowest; /* of the rewards so far; ||r|| */
} ht_lane;

typedef struct ht_rollout {
  ht_context *ctx;
  const ht_train_options *options; /* borrowed, as the next two */
  int environments;
  ht_environment *const *environment;
  ht_lane *lane; /* options->lanes; without memory where a device has them */
  int64_t steps; /* a lane and update */
  ht_ppo_batch batch;
  float *value, *reward; /* a transition; value: steps + 1 a lane */
  uint8_t *last;         /* whether it ended its episode */
  ht_episode *finished;  /* in the batch, by lane and time */
  int64_t finished_count;
  ht_episode *lane_finished;
  int64_t *lane_finished_count;
  ht_lane judge;                   /* for ht_judge */
  struct ht_saving *const *saving; /* an environment each, of the reward time; else NULL. Borrowed */
} ht_rollout;

/* on_device: the lanes are elsewhere, and nothing is collected here. */
ht_status ht_rollout_create(ht_context *ctx, const ht_train_options *options, int environments, ht_environment *const *environment,
                            const ht_packed *packed, int on_device, ht_rollout **rollout);
void ht_rollout_destroy(ht_rollout *rollout); /* NULL is allowed */
/* From one decision of an episode to the next, with the reward time: so that its transitions find room. */
int64_t ht_iterations_apart(const ht_rollout *rollout, const ht_environment *environment);
/* Fill the batch with the next transitions, advantages and targets included. */
void ht_rollout_collect(ht_rollout *rollout, const ht_packed *packed);

/* How a policy does when it takes the likeliest actions. */
typedef struct ht_judgement {
  int64_t iterations, iterations_64;
  double true_residual, true_64;
  int reached;             /* by the recurrence */
  double time;             /* bytes moved against those of the FP64 solve, with what is missing to the tolerance made up for in FP64 */
  double share[HT_LEVELS]; /* of the tiles, over the iterations */
  int64_t rises[HT_LEARNING_RISES]; /* rises in precision at iterations with so many zero bits at their end */
} ht_judgement;

/* `interval`: iterations between two decisions. */
void ht_judge(ht_rollout *rollout, const ht_packed *packed, int environment, int64_t interval, ht_judgement *judgement);
/* Share of the rises in precision that decisions every so many iterations would delay; of judgements with an interval of 1. */
double ht_share_delayed(int count, const ht_judgement *judgement, int64_t interval);
/* The EvoCG paper's K*: the largest of 1, 2, 4, ... that delays less than a tenth of them. */
int64_t ht_longest_interval(int count, const ht_judgement *judgement);

#endif
