/* Training of policies of the kind window. What such a policy can do to a solve are few things, and all of them are tried: it is left to
 * what it begins with throughout, and once for each look and each other action it is left there for that one. A solve is the solver's own,
 * guard and all. So it is known what each action is worth at each look, and a network learns to tell that from what the look sees.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_WINDOW_H
#define HT_TRAIN_WINDOW_H
#include "halftone/solver.h"
#include "policy/features.h"
#include "train/price.h"
#include "train/rollout.h"

enum {
  HT_WINDOW_RIGHT_SIDES = 3,     /* of a matrix: the first to judge by, the others to learn from */
  HT_WINDOW_USUAL_INTERVAL = 32, /* of actions that say none */
  HT_WINDOW_LOOKS = 16,          /* of a solve that are learned from */
};

/* What can become of the solve of one right-hand side. */
typedef struct ht_tree {
  int made, looks; /* made 0: there is none */
  float state[HT_WINDOW_LOOKS][HT_FEATURES];
  /* what it earns beyond what the action that it begins with earns, when it is left there for another */
  double gain[HT_WINDOW_LOOKS][HT_NETWORK_MOST_ACTIONS];
  double earned;      /* by the action that it begins with, against FP64 */
  int64_t iterations; /* of it */
} ht_tree;

/* One solver on one matrix with one preconditioner, on a thread and context of its own. */
typedef struct ht_window_worker {
  ht_context *ctx;
  const ht_matrix *matrix;
  ht_solver *solver;
  double *b, *x;
  double *fallen[HT_WINDOW_RIGHT_SIDES]; /* of the FP64 solves (ht_price) */
  int64_t iterations_64[HT_WINDOW_RIGHT_SIDES];
  double true_64; /* of the first, by ||b|| */
  int idle;       /* FP64 takes too many iterations here, and not with the other preconditioner: left out */
  ht_tree tree[HT_WINDOW_RIGHT_SIDES];
  /* of the solve on the way: who chooses, and where it stands */
  const ht_network *network; /* takes the likeliest; else */
  ht_tree *recorded;         /* what the looks see is written here; NULL: nothing */
  int asked, leaves_at, leaves_for, begins_with;
  ht_price price;
  ht_stand stand; /* where it ended */
  ht_report report;
  ht_status status;
} ht_window_worker;

typedef struct ht_window {
  ht_context *ctx;
  const ht_train_options *options; /* borrowed */
  int cases;                       /* a matrix and preconditioner each */
  ht_window_worker *worker;        /* of a case */
  ht_policy_chooser chooser;
  /* the machine that the policy is for */
  int device; /* the CPU is taken for one */
  int any;    /* of any size of cache */
  double cache_bytes;
  int actions, begins_with; /* which of them is what a solve begins with: auto's rule, or the first */
  /* the network's passes */
  ht_activations forward, backward;
  float *sums;
  int64_t rows, learned_rows; /* of the longest pass; of the one to learn from */
  int trees;                  /* that are learned from */
  int64_t iterations;         /* of these solves, with the action that they begin with, in the mean */
  double time_grow_s;         /* that all the solves to learn from took */
} ht_window;

/* Whether cases are solved side by side, a thread each; else one after the other, by all threads. */
static inline int ht_window_is_wide(const ht_window *window) { return window->cases >= window->ctx->threads; }

/* HT_BAD_MATRIX where the solver does not reach the tolerance in FP64 with any of the preconditioners that are asked for; HT_BAD_OPTION for
 * actions that are none, or do not begin with f64. device: what the policy is for; NULL: the CPU. */
ht_status ht_window_create(ht_context *ctx, const ht_train_options *options, int matrices, const ht_matrix *const *matrix,
                           const ht_backend *device, ht_window **window);
void ht_window_destroy(ht_window *window); /* NULL is allowed */
/* window_make.c: memory for a packed network's passes over all looks. */
ht_status ht_window_attach(ht_window *window, const ht_packed *packed);
/* Of the first worker that failed. */
ht_status ht_window_failure(ht_window *window);
/* The chooser of a worker, `user`: asked by the guard at every look. */
int ht_window_choose(void *user, const ht_policy_look *look);
/* window_tree.c: all that the solves of a case can become. */
void ht_window_grow(ht_window *window, int number);
/* A network's outputs are to be what the actions are worth: in ppo->gradient the gradient of how far they are from it, with noise of that
 * seed on what is seen; *error: how far, in the mean square over the looks. Returns what the likeliest actions earn in the mean. */
double ht_window_gradient(ht_window *window, ht_ppo *ppo, uint64_t seed, double *error);
/* Of the right-hand sides to judge by, the mean of what the likeliest actions earn, and twice more what they earn less than the best that a
 * solve could have begun with. */
double ht_window_worth(ht_window *window, const ht_packed *packed);
/* Solves with the likeliest actions, one a case; of those left out iterations_64 is 0. */
ht_status ht_window_judge(ht_window *window, const ht_network *network, ht_judgement *judgement);
/* One of them, by a network or else by the policy of that name. */
ht_status ht_window_judge_case(ht_window *window, int number, const ht_network *network, const char *policy, ht_judgement *judgement);
/* One solve of the worker with the right-hand side of that number, to its stand and report. */
void ht_window_solve(const ht_window *window, ht_window_worker *worker, int right_side);
const char *ht_window_precond(const ht_window *window, int number); /* of a case */
/* What the worker's last solve earned: what it saves of FP64's modelled time. */
double ht_window_earned(const ht_window_worker *worker);

#endif
