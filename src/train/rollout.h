/* Solves under a policy: sampled ones to learn from, and one with the likeliest actions to judge it by.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_ROLLOUT_H
#define HT_TRAIN_ROLLOUT_H
#include "train/environment.h"
#include "train/ppo.h"

enum {
  HT_LANES_OF_EPISODES = 8, /* solves that run side by side, whatever the number of threads */
  HT_LEARNED_RISES = 7,     /* the longest interval is 2 to one less */
};

/* One solve of those, across updates. */
typedef struct ht_lane {
  ht_course course;
  ht_activations rows;  /* the tiles that go through the network together */
  int64_t episode;      /* its number; -1 before the first */
  double total, lowest; /* of the rewards so far; ||r|| */
  double owed;          /* progress that the recurrence claims and the gap to the truth takes away */
} ht_lane;

/* What an episode came to. */
typedef struct ht_episode {
  int64_t number, iterations;
  double total; /* of the rewards, not discounted */
} ht_episode;

typedef struct ht_rollout {
  ht_context *ctx;
  const ht_train_options *options; /* borrowed, as the next two */
  int environments;
  ht_environment *const *environment;
  ht_lane lane[HT_LANES_OF_EPISODES];
  int64_t steps; /* a lane and update */
  ht_ppo_batch batch;
  float *value, *reward; /* a transition; value: steps + 1 a lane */
  uint8_t *last;         /* whether it ended its episode */
  ht_episode *finished;  /* in the batch, by lane and time */
  int64_t finished_count;
  ht_episode *lane_finished;
  int64_t lane_finished_count[HT_LANES_OF_EPISODES];
  ht_lane judge; /* for ht_judge */
} ht_rollout;

ht_status ht_rollout_create(ht_context *ctx, const ht_train_options *options, int environments, ht_environment *const *environment,
                            const ht_packed *packed, ht_rollout **rollout);
void ht_rollout_destroy(ht_rollout *rollout); /* NULL is allowed */
/* Fill the batch with the next transitions, advantages and targets included. */
void ht_rollout_collect(ht_rollout *rollout, const ht_packed *packed);

/* An action from the logarithms of their probabilities; u: uniform from 0 to 1. */
int ht_sample(int actions, const float *log_probability, double u);

/* How a policy does when it takes the likeliest actions. */
typedef struct ht_judgement {
  int64_t iterations, iterations_64;
  double true_residual, true_64;
  int reached;             /* by the recurrence */
  double time;             /* bytes moved against those of the FP64 solve, with what is missing to the tolerance made up for in FP64 */
  double share[HT_LEVELS]; /* of the tiles, over the iterations */
  int64_t rises[HT_LEARNED_RISES]; /* rises in precision at iterations with so many zero bits at their end */
} ht_judgement;

/* `interval`: iterations between two decisions. */
void ht_judge(ht_rollout *rollout, const ht_packed *packed, int environment, int64_t interval, ht_judgement *judgement);
/* The largest of 1, 2, 4, ... that delays less than a tenth of the rises; *delayed: their share. */
int64_t ht_longest_interval(int count, const ht_judgement *judgement, double *delayed);

#endif
