/* Precision policies: which level each column block is read at. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_POLICY_H
#define HT_POLICY_POLICY_H
#include "backend/backend.h"
#include "halftone/solver.h"
#include "policy/learned.h"
#include "policy/options.h"

typedef struct ht_policy ht_policy;
struct ht_policy {
  char name[64];
  ht_level start; /* level of every block before the first look */
  int replaces;   /* the storage error is left to residual replacement: replace as the residual falls */
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
  int sees_direction;        /* it wants view->direction */
  ht_learned *learned;       /* with its weights as they are deployed; NULL: not a learned policy */
  ht_learned_action *action; /* what the outputs of its network stand for */
  int window;                /* of the kind window: ht_policy_choose_action in the place of `decide` */
  int interval;              /* iterations between two looks that it was made for; 0: any, and longer ones while nothing changes */
  int threads;
};

/* What auto chooses from, all measured when the matrix is prepared; the shares go to the report too. */
typedef struct ht_policy_facts {
  int levels;            /* the operator has levels */
  int preconditioned;    /* by more than the identity: Ritz values are those of a matrix of norm about 1 */
  int device;            /* its products and engines are a device's own */
  double bytes_streamed; /* matrix at FP64 and vectors, an iteration */
  double cache_bytes;
  double nonzeros_per_row;
  int unknowns_per_node;
  double share_exact_16, share_exact_32; /* of the nonzeros */
  double error_16, error_32;             /* largest column errors against the scaled matrix: about the relative change of A */
} ht_policy_facts;

/* By name: auto, fixed:f64, fixed:f32, fixed:bf16, rule, budget, learned:FILE. `why` (256 characters) receives a sentence of what auto
 * chose, or of what was learned. HT_BAD_OPTION with the nearest name for others; the errors of ht_learned_read. */
ht_status ht_policy_create(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_policy *policy, char *why);
void ht_policy_create_user(ht_policy_fn fn, void *user, ht_policy *policy);
void ht_policy_release(ht_context *ctx, ht_policy *policy); /* what it owns; copies of it hold nothing of their own */

/* Whether the policy decides by each block's part of the direction, as EvoCG does: an engine that reads each block at its own level
 * serves it best. The errors of ht_learned_read. */
ht_status ht_policy_wants_tiles(ht_context *ctx, const ht_policy_options *options, int *wants);

/* learned.c: from a policy file. */
ht_status ht_policy_create_learned(ht_context *ctx, const char *path, const ht_policy_options *options, ht_policy *policy, char *why);

/* Of the kind window: the action that these features call for. */
ht_learned_action ht_policy_choose_action(const ht_policy *self, const float *features);
/* The budget's levels, whatever the policy. */
void ht_policy_decide_budget(const ht_policy *self, const ht_policy_view *view, double theta, uint8_t *level);

#endif
