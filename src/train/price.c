/* The reward `time`. SPDX-License-Identifier: BSD-3-Clause */
#include "train/price.h"
#include <math.h>

static const double ON_TIME = 1.05; /* iterations by those of FP64 */

double ht_price_progress(const ht_price *p, double residual) { return ht_learning_progress(p->fallen, p->iterations_64, residual); }

/* A residual recomputed: the CSR, its vectors, and those that the guard moves. */
static double exact_cost(const ht_price *p) {
  enum { CSR_ENTRY = 12, MOVES = 10, PAUSES = 4 };
  return CSR_ENTRY * p->facts->nonzeros + MOVES * 8.0 * (double)p->n + PAUSES * ht_policy_pause(p->facts);
}

double ht_price_cost(const ht_price *p, const ht_stand *s) {
  double none = ht_policy_time(p->facts, 0), matrix = ht_policy_time(p->facts, s->bytes) - none;
  double look = p->look > 0 ? p->look : ht_policy_look_cost(p->facts);
  return (double)s->iterations * none + matrix + (double)s->exact_products * exact_cost(p) + (double)s->looks * look;
}

double ht_price_cost_64(const ht_price *p) {
  return (double)p->iterations_64 * ht_policy_time(p->facts, p->facts->bytes_level[HT_LEVEL_64]) + exact_cost(p);
}

static double late(const ht_price *p, const ht_stand *s) {
  return p->late * fmax((double)s->iterations / (double)p->iterations_64 - ON_TIME, 0);
}

double ht_price_step(const ht_price *p, const ht_stand *from, const ht_stand *to) {
  return (to->progress - from->progress) / (double)p->iterations_64 -
         (ht_price_cost(p, to) - ht_price_cost(p, from)) / ht_price_cost_64(p) - (late(p, to) - late(p, from));
}

double ht_price_missed(const ht_price *p, const ht_stand *end) { return ht_learning_missed(end->progress, p->iterations_64); }
