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
  double before;       /* the reference until then */
} ht_cg_replacement;

/* Where replacement stands: the guard's, and an engine's during a run. Levels as in ht_level. */
typedef struct ht_cg_replacing {
  int32_t allowed;      /* at replace_below the engine replaces, instead of ending its run */
  int32_t follows;      /* levels come into use that nobody tells of (HT_DECIDE_LEARNED), but none below the floor */
  int32_t floor;        /* lowest of those */
  int32_t to_replace;   /* lowest level whose error is in the loop's residual and left to the next replacement; FP64: none */
  int32_t inexact[3];   /* what a level that is read leaves so */
  int32_t replaced;     /* once at least */
  double first_drop[3]; /* how far ||r|| may fall before it is first replaced, by level; 0: any */
  double drop;          /* replace when ||r|| falls below drop * reference; 0: never */
  double reference;     /* ||r|| at the last replacement or start */
  double watched;       /* ||r|| then, or when levels were found to have left nothing that is due since */
  double best;          /* true residual of the best iterate known */
} ht_cg_replacing;

/* A residual that has grown beyond this since it was last replaced comes from a level that breaks down. */
static HT_KERNELS_TOO inline double ht_replacing_grown(const ht_cg_replacing *m) { return 1e6 * m->reference; }

/* A level is worth keeping where the true residual follows the loop's, and where what it loses is little beside what the residual fell
 * from. On elasticity 16 bits lose 3 to 10 % of that, and then take twice FP64's iterations; elsewhere it is mostly below one. */
static HT_KERNELS_TOO inline int ht_replacement_gains(double norm, double change, double reference) {
  return norm <= 0.5 * reference && change <= 0.03 * reference;
}

/* By how much the true residual may differ from the loop's before the direction is given up. */
static HT_KERNELS_TOO inline double ht_replacement_bearable(double norm) { return 0.1 * norm; }

/* How far ||r|| may fall until it is replaced again, 0 for never: where what is lost until then stays far below the goal. What is lost is A
 * less the level's A, times what x gains: as a rule in proportion to ||r|| now, and a few times as much as before. But the first time x may
 * have gained something smooth, of which the storage loses nothing (column sums); what was lost is then what x still lacked, and as much is
 * lost again when it gains that. */
static HT_KERNELS_TOO inline double ht_replacement_drop(double norm, double change, double reference, double first_drop, int first,
                                                        double goal) {
  double lost = change / reference, drop = 30 * lost > first_drop ? 30 * lost : first_drop;
  if ((first ? change : 3 * lost * norm) <= 0.1 * goal) return 0;
  return drop < 0.3 ? drop : 0.3;
}

enum { HT_REPLACES_NONE = 2 }; /* ht_level of FP64 */

/* ||r|| at which a replacement may be due; -1: at none above the goal. Where levels come into use unseen, it is that at which the lowest
 * of them would be. It does not depend on where runs ended for other reasons, some of which depend on the clock. */
static HT_KERNELS_TOO inline double ht_replacing_below(const ht_cg_replacing *m, double goal) {
  double below = m->to_replace < HT_REPLACES_NONE ? m->drop * m->reference : 0, first = m->first_drop[m->floor], unseen = 0;
  if (m->follows && m->inexact[m->floor] < m->to_replace) unseen = (first > m->drop ? first : m->drop) * m->watched;
  if (unseen > below) below = unseen;
  return below > goal ? below : -1;
}

/* Levels down to `lowest` have come into use since ||r|| was watched: the first one begins a gap, and the lowest says how soon it is
 * closed. */
static HT_KERNELS_TOO inline void ht_replacing_follow(ht_cg_replacing *m, int lowest) {
  int level = m->inexact[lowest];
  if (level >= m->to_replace) return;
  m->reference = m->watched;
  m->to_replace = level;
  if (m->first_drop[level] > m->drop) m->drop = m->first_drop[level];
}

static HT_KERNELS_TOO inline int ht_replacing_is_due(const ht_cg_replacing *m, double norm_r) {
  return m->to_replace < HT_REPLACES_NONE && norm_r <= m->drop * m->reference;
}

/* b - A x is in r's place, while blocks are read down to `level`. Returns whether level and direction may be kept. */
static HT_KERNELS_TOO inline int ht_replacing_settle(ht_cg_replacing *m, double norm, double change, int level, double goal) {
  double before = m->reference;
  int first = !m->replaced;
  m->replaced = 1;
  m->to_replace = m->inexact[level];
  m->reference = m->watched = norm;
  if (!ht_replacement_gains(norm, change, before)) return 0;
  m->drop = ht_replacement_drop(norm, change, before, m->first_drop[m->to_replace], first, goal);
  return change <= ht_replacement_bearable(norm);
}

#endif
