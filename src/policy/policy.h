/* Precision policies: which level each column block is read at. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_POLICY_H
#define HT_POLICY_POLICY_H
#include "backend/backend.h"
#include "halftone/solver.h"
#include "policy/learned.h"
#include "policy/options.h"

typedef struct ht_policy ht_policy;

/* What a policy of the kind window is asked with. */
typedef struct ht_policy_look {
  const float *feature; /* HT_FEATURES of them */
} ht_policy_look;

/* In the place of a network while one is trained: the number of the action. */
typedef int ht_policy_choose_fn(void *user, const ht_policy_look *look);
typedef struct ht_policy_chooser {
  ht_policy_choose_fn *choose;
  void *user;
  const char *actions; /* as in ht_learned */
  int interval;
  int deployed; /* not asked where there is no choice (ht_policy_has_choice) */
} ht_policy_chooser;

struct ht_policy {
  char name[HT_REPORT_TEXT]; /* as long as the option may be */
  ht_level start;            /* level of every block before the first look */
  /* Where `later_drop` is more than 0: the level from then on that the residual has fallen by it; what is lost from there on is less. */
  ht_level later;
  double later_drop;
  int replaces; /* the storage error is left to residual replacement: replace as the residual falls */
  /* Look at the direction, write one level a block. NULL: the level stays `start`. */
  void (*decide)(const ht_policy *self, const ht_policy_view *view, uint8_t *level);
  ht_decide_rule rule; /* the same for a device that decides by itself; HT_DECIDE_HOST where only `decide` knows */
  double theta, eta;   /* budget */
  /* What to go over to when `start` proves too low for the matrix: at a breakdown, or once the smallest Ritz value shows that the
   * level's error, error_start relative to the scaled matrix, is no longer small against it. NULL: only the level is raised. */
  void (*fallback)(const ht_policy *self, const ht_policy_view *view, uint8_t *level);
  ht_decide_rule fallback_rule;
  double error_start;
  ht_policy_fn user_fn;
  void *user;
  int sees_direction;  /* it wants view->direction */
  ht_learned *learned; /* with its weights as they are deployed; NULL: no policy from a file */
  int by_network;      /* a network chooses, or what trains one */
  ht_policy_choose_fn *choose;
  void *choose_user;
  ht_learned_action *action; /* what the outputs of its network stand for */
  int window;                /* of the kind window: ht_policy_choose_action in the place of `decide` */
  int begins_with;           /* of the kind window: which action */
  ht_policy *by_rule;        /* of the kind window: what auto would take here, which is one of the actions */
  int by_facts; /* auto and learned: from what the matrix is, which gives them more of the iteration limit (solver/guard_limit.c) */
  int interval; /* iterations between two looks that it was made for; 0: any, and longer ones while nothing changes */
  int threads;
};

/* What auto chooses from, all measured when the matrix is prepared; the shares go to the report too. */
typedef struct ht_policy_facts {
  int levels;            /* the operator has levels */
  int preconditioned;    /* by more than the identity: Ritz values are those of a matrix of norm about 1 */
  int device;            /* its products and engines are a device's own */
  int keeps_constants;   /* most rows times ones give little: those that delta16 holds exact at 16 bits matter most */
  double bytes_streamed; /* matrix at FP64 and vectors, an iteration */
  double bytes_vectors, bytes_level[HT_LEVELS]; /* of these, and what the matrix takes at each level */
  double nonzeros, gathers;                     /* gathers: entries whose x is gathered, one by one */
  double cache_bytes;
  double nonzeros_per_row;
  int unknowns_per_node;
  double slenderness;                    /* of the mesh where there are several (data/slender.h); else 0 */
  double share_exact_16, share_exact_32; /* of the nonzeros */
  double diagonal_range;                 /* its largest entry by its smallest */
  double error_16, error_32;             /* largest column errors against the scaled matrix: about the relative change of A */
} ht_policy_facts;

/* policy.c: the modelled time of an iteration that reads so many bytes of the matrix, in bytes: what is streamed, and the work on its
 * nonzeros; and that of an iteration at a level, by that of FP64. Facts of the operator alone: no clock. */
double ht_policy_time(const ht_policy_facts *facts, double matrix_bytes);
double ht_policy_pause(const ht_policy_facts *facts); /* the part of it that does not depend on the bytes: to stop and go on */
double ht_policy_look_cost(const ht_policy_facts *facts);
double ht_policy_cost(const ht_policy_facts *facts, ht_level level);

/* What auto takes by its rule, and why. */
ht_policy ht_policy_by_rule(const ht_policy_options *options, const ht_policy_facts *facts, char *why);
/* Whether there is anything to decide: not where every value is exact at 16 bits, nor where all stays in the cache. */
int ht_policy_has_choice(const ht_policy_facts *facts);
/* Where there is none, and on a machine that it did not learn for, a policy of the kind window becomes the rule, which looks at nothing: a
 * look takes time. */
void ht_policy_settle(ht_policy *policy, const ht_policy_facts *facts);

/* By name: auto, fixed:f64, fixed:f32, fixed:bf16, rule, budget, learned, which is learned:universal, and learned:FILE, whose file is read
 * unless *read holds what was in it, which is taken; `read` may be NULL. `why` (256 characters) receives a sentence of what auto chose, or
 * of what was learned. HT_BAD_OPTION with the nearest name for others; the errors of ht_learned_read. */
ht_status ht_policy_create(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_learned **read,
                           ht_policy *policy, char *why);
void ht_policy_create_user(ht_policy_fn fn, void *user, ht_policy *policy);
void ht_policy_release(ht_context *ctx, ht_policy *policy); /* what it owns; copies of it hold nothing of their own */

/* Whether the policy decides by each block's part of the direction, as EvoCG does: an engine that reads each block at its own level
 * serves it best. *read (NULL before) receives what a policy file holds, for ht_policy_create. The errors of ht_learned_read. */
ht_status ht_policy_wants_tiles(ht_context *ctx, const ht_policy_options *options, ht_learned **read, int *wants);

/* learned.c: of what was read from this file, which is taken, also on an error. */
ht_status ht_policy_create_learned(ht_context *ctx, const char *path, ht_learned *learned, const ht_policy_options *options,
                                   const ht_policy_facts *facts, ht_policy *policy, char *why);

/* The one that the library carries. */
ht_status ht_policy_create_universal(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_policy *policy,
                                     char *why);
/* Of the kind window, under training. HT_BAD_OPTION for a list of actions that is none. */
ht_status ht_policy_create_chosen(ht_context *ctx, const ht_policy_chooser *chooser, const ht_policy_options *options,
                                  const ht_policy_facts *facts, ht_policy *policy);

/* Of the kind window: the number of the action that these features call for. */
int ht_policy_choose_action(const ht_policy *self, const ht_policy_look *look);
int ht_policy_likeliest(const ht_network *network, const float *features);
/* The budget's levels, whatever the policy. */
void ht_policy_decide_budget(const ht_policy *self, const ht_policy_view *view, double theta, uint8_t *level);

#endif
