/* The reward `time` of policies that give each block its level: what a solve saves of FP64's modelled time, replacements included.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_SAVING_H
#define HT_TRAIN_SAVING_H
#include "train/price.h"
#include "train/rollout.h"

enum { HT_SAVING_RIGHT_SIDES = 4 }; /* of a matrix: the first to judge by, the others to learn from */

/* Prices on one matrix, and the FP64 solves that others are compared with. */
typedef struct ht_saving {
  ht_policy_facts facts;
  int64_t blocks;
  double seconds[HT_LEVELS]; /* an iteration's at each level, where that was measured; else 0 */
  ht_price price[HT_SAVING_RIGHT_SIDES];
  double *fallen[HT_SAVING_RIGHT_SIDES]; /* ht_price */
} ht_saving;

/* Where solves are made elsewhere: prices are those of this backend, and FP64's solve with a right-hand side is asked for. */
typedef struct ht_saving_source {
  const char *backend;
  int measures; /* iterations at each level are timed there, in the place of a model */
  void *user;
  /* *fallen: ht_price, to be released. iterations: also where the tolerance is not reached. */
  ht_status (*refer)(void *user, const ht_environment *environment, int right_side, double **fallen, int64_t *iterations, int *reached);
} ht_saving_source;

/* source: NULL for the CPU. */
ht_status ht_saving_create(ht_environment *environment, const ht_saving_source *source, ht_saving **saving);
void ht_saving_destroy(ht_context *ctx, ht_saving *saving); /* NULL is allowed */
int ht_saving_right_sides(const ht_train_options *options); /* of a matrix */
/* Which right-hand side the episode of that number, of those on a matrix, has. */
int ht_saving_right_side(const ht_train_options *options, int64_t episode);
/* What a lane's last step earned: progress less cost, both as shares of the FP64 solve. Over an episode these add up to what it saves, and
 * a residual that is replaced takes back at once what the recurrence had claimed. An end short of the tolerance costs twice what is
 * missing. */
double ht_saving_reward(const ht_saving *saving, int right_side, ht_lane *lane);
/* Modelled time of a whole solve by FP64's, with as many looks; end: the course where it ended. */
double ht_saving_time(const ht_saving *saving, ht_course *end, double bytes, int64_t replacements, int64_t looks);
/* The same for a device, where an iteration is priced by the share of the column blocks at each level. count: blocks over the iterations.
 */
void ht_saving_sides(const ht_saving *saving, int right_sides, ht_learner_side *side);
double ht_saving_time_by_level(const ht_saving *saving, ht_course *end, const int64_t count[HT_LEVELS], int64_t replacements,
                               int64_t looks);

#endif
