/* Inside of ht_trainer. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_TRAINER_H
#define HT_TRAIN_TRAINER_H
#include "halftone/train.h"
#include "policy/learned.h"
#include "train/compete.h"
#include "train/rollout.h"
#include "train/window.h"

enum { HT_MOST_MATRICES = 96, HT_MOST_CASES = 2 * HT_MOST_MATRICES, HT_RETURN_WINDOW = 50 };

/* What a training has come to, besides weights and solves on the way. */
typedef struct ht_train_counters {
  int64_t episodes, updates, transitions;
  int64_t judged_at;   /* transitions then */
  int64_t improved_at; /* episodes when best_mean rose */
  double best_mean;    /* of the returns over a window */
  double best_traffic; /* of the weights kept; infinite before the first judgement */
  double entropy;
} ht_train_counters;

struct ht_trainer {
  ht_context *ctx;
  ht_train_options options;
  uint64_t given; /* those that were set */
  int matrices;
  const ht_matrix *matrix[HT_MOST_MATRICES];
  ht_environment *environment[HT_MOST_MATRICES];
  char trained_on[512];
  ht_train_progress_fn progress;
  void *progress_user;
  /* from the first run, or resume, on */
  int prepared;
  const ht_backend *backend;    /* where solves and updates run */
  int chosen;                   /* a device, by itself */
  const ht_backend *device;     /* that the policy is for, and competes on; NULL: the CPU */
  int64_t lanes_asked;          /* as the option was given */
  ht_learner *learner;          /* of a device; it then has weights, moments and lanes */
  ht_network network, deployed; /* deployed: the best weights, then as 16 bits */
  float *best;                  /* weights */
  ht_packed deployed_packed;
  ht_ppo *ppo;
  ht_rollout *rollout;                        /* of the state paper */
  ht_window *window;                          /* of the state features */
  struct ht_saving *saving[HT_MOST_MATRICES]; /* of the reward time with the state paper, and where models compete */
  ht_train_counters at;
  double *returns; /* an episode each */
  int64_t *iterations, room;
  int64_t interval;
  char fastest[16], contest[256]; /* chosen and contest of ht_learned */
  int64_t episodes_before;        /* of the runs that this one goes on from */
  double started, time_s;         /* of what is on its way; all before it, since the trainer was created */
  ht_train_phase phase;           /* that a callback was last told of */
  int64_t phase_solves;
  double time_prepare_s, time_rollout_s, time_update_s, time_judge_s, time_contest_s;
  void *bytes; /* what was last handed out */
};

static inline int ht_trains_windows(const ht_trainer *t) { return t->options.state == HT_STATE_FEATURES; }
static inline ht_learned_kind ht_trainer_kind(const ht_trainer *t) { return ht_trains_windows(t) ? HT_LEARNED_WINDOW : HT_LEARNED_TILES; }

/* trainer_make.c: everything but the weights' values, and what all of it gives back. */
ht_status ht_trainer_prepare(ht_trainer *trainer);
void ht_trainer_forget(ht_trainer *trainer);
/* trainer.c: for the history of so many episodes. */
ht_status ht_trainer_make_room(ht_trainer *trainer, int64_t episodes);
/* What is being done now, and how many solves of it were made since this was last told, for a callback, which may have the context's stop
 * requested. */
void ht_trainer_tell(ht_trainer *trainer, ht_train_phase phase, int64_t solves);
double ht_trainer_elapsed(const ht_trainer *trainer); /* seconds, taking up a state included */
/* verdict.c: a solver for those who compete on the matrix, which FP64 solves in so many iterations: with the training's tolerance and
 * backend, and with `options`, names and values. Not prepared. */
ht_status ht_trainer_rivals_solver(const ht_trainer *trainer, const ht_matrix *matrix, int64_t iterations_64,
                                   const char *const (*options)[2], size_t count, ht_solver **solver);
/* compete_tiles.c, compete_windows.c: what was learned against policies that always do the same. `seconds` are for what is measured. */
ht_status ht_compete_tiles(ht_trainer *trainer, int measured, double seconds, ht_contest *contest);
ht_status ht_compete_windows(ht_trainer *trainer, int measured, double seconds, ht_contest *contest);
/* verdict.c: keep the weights if they deploy better than those kept, not more often than is cheap beside the episodes; and, at the end,
 * what the best ones come to: their interval, the report's part about the solves with them, and what is chosen. Where a stop is or
 * becomes requested, the policy is what there is, unjudged. */
int ht_trainer_cases(const ht_trainer *trainer);
ht_status ht_trainer_judge_weights(ht_trainer *trainer);
ht_status ht_trainer_judge(ht_trainer *trainer, ht_train_report *report);

#endif
