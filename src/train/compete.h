/* Policies that compete: what was learned, and ones that always do the same. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_COMPETE_H
#define HT_TRAIN_COMPETE_H
#include "base/context.h"

/* What was learned, and then from the simplest on: of policies that are as fast the first of these is chosen. */
enum {
  HT_RIVAL_LEARNED,
  HT_RIVAL_64,
  HT_RIVAL_32,
  HT_RIVAL_16,
  HT_RIVALS_FIXED,
  HT_RIVAL_AUTO = HT_RIVALS_FIXED,
  HT_RIVAL_BUDGET,
  HT_RIVALS
};

const char *ht_rival_name(int rival);   /* as a policy's; "learned" */
const char *ht_rival_policy(int rival); /* NULL: what was learned */

typedef struct ht_trial {
  double cost;  /* infinite where it did not reach the tolerance */
  double error; /* of the solution, where that is known: relative, in the 2-norm; else NaN */
} ht_trial;

/* What kinds of policies differ in. */
typedef struct ht_competition {
  ht_context *ctx;
  int rivals; /* the first so many */
  int cases;
  int measured;   /* costs are seconds of a clock, of which there is a least and some noise; else one solve tells all */
  double seconds; /* measured: after which no other round begins, all cases together */
  void *user;
  /* One solve. All of a case come before the next case's. */
  ht_status (*solve)(void *user, int number, int rival, ht_trial *trial);
} ht_competition;

typedef struct ht_contest {
  double time[HT_RIVALS];  /* by FP64's, the geometric mean over the cases that FP64 solves; infinite where one of them is not solved */
  double noise[HT_RIVALS]; /* share of a measured time by which another solve may be faster, the mean over the cases */
  /* Of its solutions, by FP64's, the largest over the cases that FP64 solves; 0 where none is known. With the same residual, what low
   * levels leave lies along the smallest eigenvalues (docs/evocg.md). Who has more than HT_MOST_ERROR is not chosen. */
  double error[HT_RIVALS];
  int rivals, measured, winner;
  int rounds; /* most of a case */
} ht_contest;

#define HT_MOST_ERROR 2.0

/* Where a stop is requested meanwhile the contest is worth nothing. */
ht_status ht_compete(const ht_competition *competition, ht_contest *contest);
/* As a line of text; where: the machine that was measured on, or whose model it was. */
void ht_contest_print(const ht_contest *contest, const char *where, char *text, size_t size);

#endif
