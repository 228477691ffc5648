/* Learned policies: a network, and how it is put to use. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_LEARNED_H
#define HT_POLICY_LEARNED_H
#include "backend/backend.h"
#include "policy/network.h"

/* TILES: the EvoCG paper's. One action, the level, a column block, from its 64 entries of p divided by their norm.
 * WINDOW: one action for the whole matrix until the next look, from dimensionless features (policy/features.h). */
typedef enum { HT_LEARNED_TILES, HT_LEARNED_WINDOW } ht_learned_kind;

typedef struct ht_learned {
  ht_learned_kind kind;
  ht_network network;
  int interval;         /* K*: iterations between two decisions */
  char state[16];       /* "paper" of TILES, "features" of WINDOW */
  char reward[16];      /* "paper" or "time" */
  char actions[320];    /* what the outputs stand for, in order (ht_learned_actions); "": those usual for the kind */
  char trained_on[512]; /* as text */
  int for_device;       /* of WINDOW: learned for one, else for CPUs; elsewhere it is auto's rule */
  char chosen[16];      /* of what competed at the end of the training: "learned", or the policy that was better; "": nothing competed */
  char contest[256];    /* their times, as text */
  uint64_t seed;
  int64_t episodes;
  char version[32];
} ht_learned;

enum { HT_LEARNED_MOST_INTERVAL = 4096 };

/* An output of a network: a level for all that it speaks of, the error budget's choice a block, or what auto's rule would take. */
typedef struct ht_learned_action {
  int rule; /* level and replacement are the rule's */
  ht_level level;
  double theta; /* of the budget; 0: the level */
  double drop;  /* how far the residual may fall before it is replaced; 0: as is usual at the level */
  int window;   /* iterations to the next look; 0: the policy's interval */
} ht_learned_action;

/* Inputs that a network of this kind has, and the actions that it has unless it says others. */
int ht_learned_inputs(ht_learned_kind kind);
const char *ht_learned_usual_actions(ht_learned_kind kind);
/* What a list of actions may be, as the end of a sentence. */
#define HT_LEARNED_ACTIONS_FORM                                                                                                            \
  "commas between actions, which are f64, f32, 16, the last two with :DROP or without, budget:THETA, or rule, and @ITERATIONS behind "     \
  "each or not"
/* The actions of a list with commas between them, HT_NETWORK_MOST_ACTIONS at most; returns their number, 0 where one cannot be read:
 * f64, f32 or 16, the last two with :DROP behind them or without, budget:THETA, or rule; then @ITERATIONS or nothing. A network of the kind
 * TILES has f64,f32,16. */
int ht_learned_actions(ht_learned_kind kind, const char *list, ht_learned_action *action);
/* Which of the actions a solve begins with: the rule where it is among them, else the first. Once another is chosen, it is kept. */
int ht_learned_begins_with(int actions, const ht_learned_action *action);
/* The policy of that name in the network's place, as auto or fixed:f32; NULL: the network. */
const char *ht_learned_chosen(const ht_learned *learned);
void ht_learned_release(ht_context *ctx, ht_learned *learned); /* NULL is allowed */

#endif
