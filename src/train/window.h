/* Training of policies of the kind window. The environment is the solver itself, guard and all: an episode is one solve, its transitions
 * are the policy's looks. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_WINDOW_H
#define HT_TRAIN_WINDOW_H
#include "halftone/solver.h"
#include "policy/features.h"
#include "train/price.h"
#include "train/rollout.h"

enum {
  HT_WINDOW_RIGHT_SIDES = 4,     /* of a matrix: the first to judge by, the others to learn from */
  HT_WINDOW_USUAL_INTERVAL = 32, /* of actions that say none */
};

/* One solver on one matrix with one preconditioner, on a thread and context of its own. */
typedef struct ht_window_worker {
  ht_context *ctx;
  const ht_matrix *matrix;
  ht_solver *solver;
  ht_activations rows;
  double *b, *x;
  double *fallen[HT_WINDOW_RIGHT_SIDES]; /* of the FP64 solves (ht_price) */
  int64_t iterations_64[HT_WINDOW_RIGHT_SIDES];
  double true_64;      /* of the first, by ||b|| */
  int idle;            /* FP64 takes too many iterations here, and not with the other preconditioner: left out */
  int64_t episodes;    /* sampled so far */
  double mean, square; /* of what these earned, the older the less */
  /* of the solve on the way: who chooses, and where it stands */
  const ht_packed *packed;   /* samples; else */
  const ht_network *network; /* takes the likeliest; neither: FP64 */
  uint64_t seed;
  ht_price price;
  ht_stand stand;
  double norm, total;
  int64_t begun; /* its first transition */
  ht_report report;
  ht_status status;
  /* transitions since the last update */
  int64_t room, count;
  float *state, *reward, *value, *log_probability, *advantage, *target;
  uint8_t *action;
  ht_episode *finished;
  int64_t finished_count;
} ht_window_worker;

typedef struct ht_window {
  ht_context *ctx;
  const ht_train_options *options; /* borrowed */
  int cases, workers;              /* a matrix and preconditioner each; worker w does the case w modulo their number */
  ht_window_worker *worker;
  ht_policy_chooser chooser;
  int actions;
  int64_t quota; /* transitions of a worker, after which it begins no other episode */
  ht_ppo_batch batch;
  int64_t most; /* transitions */
  ht_episode *finished;
  int64_t finished_count;
} ht_window;

/* HT_BAD_MATRIX where the solver does not reach the tolerance in FP64 with any of the preconditioners that are asked for; HT_BAD_OPTION for
 * actions that are none, or do not begin with f64. */
ht_status ht_window_create(ht_context *ctx, const ht_train_options *options, int matrices, const ht_matrix *const *matrix,
                           ht_window **window);
void ht_window_destroy(ht_window *window); /* NULL is allowed */
/* Whatever a worker does needs a packed network's workspace. */
ht_status ht_window_attach(ht_window *window, const ht_packed *packed);
/* Fill the batch with the next episodes, advantages and targets included. */
ht_status ht_window_collect(ht_window *window, const ht_packed *packed);
/* Of the first worker that failed. */
ht_status ht_window_failure(ht_window *window);
/* The chooser of a worker, `user`: asked by the guard at every look. */
int ht_window_choose(void *user, const ht_policy_look *look);
/* Solves with the likeliest actions, one a case; of those left out iterations_64 is 0. */
ht_status ht_window_judge(ht_window *window, const ht_network *network, ht_judgement *judgement);

#endif
