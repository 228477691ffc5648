/* What a solve costs, and how far it has come, both against FP64's solve of the same system: the reward `time`.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_PRICE_H
#define HT_TRAIN_PRICE_H
#include "backend/learning.h"
#include "policy/policy.h"

/* The FP64 solve that others are compared with, and what its parts cost. */
typedef struct ht_price {
  const ht_policy_facts *facts; /* borrowed, as the next: of the prepared solver */
  const double *fallen;         /* lowest ||r|| by ||b|| in FP64 up to each iteration; iterations_64 + 1 of them */
  int64_t iterations_64, n;
  double late; /* what an iteration beyond 1.05 times those of FP64 costs more, in iterations of FP64 */
  double look; /* what a look takes, in bytes; 0: as the facts say, where the matrix is looked at as a whole */
} ht_price;

/* Where a solve stands. */
typedef struct ht_stand {
  int64_t iterations, exact_products, looks;
  double bytes;    /* of the matrix, read by products */
  double progress; /* in iterations of FP64: ht_price_progress of its lowest residual */
} ht_stand;

/* ht_learning_progress. */
double ht_price_progress(const ht_price *price, double residual);
/* Modelled time of all that a solve did so far, and of the FP64 solve with its certificate, in bytes. */
double ht_price_cost(const ht_price *price, const ht_stand *stand);
double ht_price_cost_64(const ht_price *price);
/* What the step from one stand to the next earns: progress less cost, both as shares of the FP64 solve. Over a solve that reaches the
 * tolerance these sum up to 1 - cost / cost_64 less what is late, whatever the number of its iterations and steps. */
double ht_price_step(const ht_price *price, const ht_stand *from, const ht_stand *to);
/* What an end without certified answer costs more: what is missing counts twice. */
double ht_price_missed(const ht_price *price, const ht_stand *end);

#endif
