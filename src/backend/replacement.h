/* Residual replacement: the formulas that the guard and an engine that replaces by itself share. Host code (C11) and device code (C++)
 * compile this. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_REPLACEMENT_H
#define HT_BACKEND_REPLACEMENT_H
#include <stdint.h>
#include "base/random.h"

enum { HT_CG_REPLACEMENTS = 16 }; /* that an engine makes in a run by itself, at most */

/* b - A x was put in r's place after this iteration. */
typedef struct ht_cg_replacement {
  int64_t iteration;
  double norm, change; /* of b - A x, and its distance from what was there */
} ht_cg_replacement;

/* What a state tells an engine of it. */
typedef struct ht_cg_replacing {
  int32_t allowed;   /* at replace_below the engine replaces, instead of ending its run */
  double first_drop; /* how far ||r|| may fall before it is first replaced */
  double reference;  /* ||r|| at the last replacement or start */
} ht_cg_replacing;

/* A level is worth keeping where the true residual follows the loop's. */
static HT_KERNELS_TOO inline int ht_replacement_gains(double norm, double reference) { return norm <= 0.5 * reference; }

/* By how much the true residual may differ from the loop's before the direction is given up. */
static HT_KERNELS_TOO inline double ht_replacement_bearable(double norm) { return 0.1 * norm; }

/* How far ||r|| may fall until it is replaced again, 0 for never: where what is lost until then, which is in proportion to ||r|| now, stays
 * far below the goal. It may be a few times as much as before. */
static HT_KERNELS_TOO inline double ht_replacement_drop(double norm, double change, double reference, double first_drop, double goal) {
  double lost = change / reference, drop = 30 * lost > first_drop ? 30 * lost : first_drop;
  if (3 * lost * norm <= 0.1 * goal) return 0;
  return drop < 0.3 ? drop : 0.3;
}

#endif
