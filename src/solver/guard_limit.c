/* What of the iteration limit levels below FP64 may spend: a quarter of it, half or all, as long as they are on course. FP64 has the rest.
 * Levels that were chosen by what the matrix is (auto) have more, since who takes FP64 most of the limit is on course by no line: half of
 * it, and where they are trusted all of it, but where FP64 alone would have been there by half. Beyond half everyone is watched
 * (ht_guard_misses_limit).
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "solver/guard.h"

enum { QUARTER, HALF, SHARES };

/* A limit of so few iterations is a wish for so many, and no hope of an answer. */
enum { LEAST_LIMIT = 64 };

/* Of the limit, by the line at a quarter and at half of it: the first decades mostly fall faster than the last, and from half on a solve
 * that gains may still become faster. */
static const double ON_COURSE[SHARES] = {[QUARTER] = 0.6, [HALF] = 1.5};

int64_t ht_guard_next_share(const ht_guard *g) {
  static const int part[] = {[QUARTER] = 4, [HALF] = 2};
  int64_t limit = g->loop->state.iteration_end;
  int recorded = limit / 2 < g->loop->state.capacity; /* the lines are drawn through the history */
  int shares = g->options->guard && g->options->stopping == HT_STOPPING_TRUE && limit >= LEAST_LIMIT && recorded;
  return shares && g->shares_seen < SHARES ? limit / part[g->shares_seen] : INT64_MAX;
}

/* Iterations in all, on a line through log ||r|| at `from` and at `at`. */
static double projected(const ht_guard *g, int64_t from, double before, int64_t at, double norm) {
  double fallen = log10(before / norm);
  return fallen > 0 ? (double)from + (double)(at - from) * log10(before / g->goal) / fallen : INFINITY;
}

int ht_guard_misses_limit(const ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  return s->iteration > s->iteration_end / 2 && projected(g, 0, s->history[0], s->iteration, s->norm_r) > (double)s->iteration_end;
}

/* Where CG is slow its residual goes up and down by orders of magnitude, so that one iterate says little: of the last eighth of `end`
 * iterations the one that is worst by the line from the start. */
static int64_t worst_before(const ht_guard *g, int64_t end) {
  const double *norm = g->loop->state.history;
  int64_t last = end < g->loop->state.capacity ? end : g->loop->state.capacity - 1, worst = last;
  for (int64_t i = last - last / 8; i < last; i++)
    if (projected(g, 0, norm[0], i, norm[i]) > projected(g, 0, norm[0], worst, norm[worst])) worst = i;
  return worst;
}

/* At a quarter by the line from the start, at half by that from the quarter, which knows better of the later decades. `norm`: ||r|| now. */
static double projected_at(const ht_guard *g, int share, double norm) {
  const ht_cg_state *s = &g->loop->state;
  int64_t quarter = s->iteration_end / 4, now = s->iteration, worst = worst_before(g, now);
  double seen = s->history[worst], before = s->history[worst_before(g, quarter)];
  if (share == HALF) return projected(g, quarter, before, now, fmax(norm, seen));
  return fmax(projected(g, 0, s->history[0], worst, seen), projected(g, 0, s->history[0], now, norm));
}

void ht_guard_leave_to_f64(ht_guard *g) {
  ht_guard_give_up_levels(g);
  ht_recorder_because(g->recorder, HT_TRACE_LIMIT);
  g->left_to_f64++;
}

/* x is kept, since what was gained counts where the limit is just enough for FP64. The direction is not, but where next to nothing was
 * lost: CG has not seen the difference, and takes longer with it than with a fresh one. `spoilt`: x is not kept either, and FP64 has from
 * x = 0 to the bit what it would have had alone. */
static ht_status leave(ht_guard *g, double norm, double change, int spoilt) {
  static const double NOTHING = 0.1;
  ht_guard_note_comparison(g, norm, change);
  ht_guard_leave_to_f64(g);
  g->improved_at = g->loop->state.iteration;
  g->lowest = INFINITY; /* known at the next check */
  if (!isfinite(norm)) return ht_guard_restore(g);
  if (spoilt) {
    ht_guard_start_over(g);
  } else if (change <= NOTHING * g->goal) {
    g->settle_at = -1;
  } else {
    ht_guard_replace(g, norm, change);
    ht_guard_restart(g);
  }
  return HT_OK;
}

/* Whether FP64 alone would be there by half of the limit: until what was lost came back, the loop's residual fell as FP64's, and it came
 * so near the goal that a line from there says when. */
static int was_nearly_there(const ht_guard *g) {
  static const double NEAR = 0.75; /* of the decades */
  const ht_cg_state *s = &g->loop->state;
  double first = s->history[0], decades = log10(first / g->goal);
  int64_t last = s->iteration < s->capacity ? s->iteration : s->capacity - 1;
  for (int64_t i = 1; i <= last; i++)
    if (log10(first / s->history[i]) >= NEAR * decades && projected(g, 0, first, i, s->history[i]) <= (double)s->iteration_end / 2)
      return 1;
  return 0;
}

/* Solves that take FP64 nearly all of the iteration limit pass with levels that keep constants, the smoothest vectors of one unknown a
 * node. Of several unknowns rotations are as smooth, and no level keeps them. */
static int is_trusted(const ht_guard *g) { return g->asked.by_facts && g->known->unknowns_per_node <= 1; }

/* Whoever is on course by the loop's own residual and is not by the true one has lost what a replacement mends, and x is as good as that
 * says. */
ht_status ht_guard_share_limit(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  double norm, change;
  int share = g->shares_seen++;
  if (g->floor == HT_LEVEL_64 || g->lowest_used == HT_LEVEL_64) return HT_OK;
  if (g->asked.by_facts && share == QUARTER) return HT_OK;
  if (is_trusted(g) && (!was_nearly_there(g) || !ht_guard_starts_from_zero(g))) return HT_OK;
  HT_TRY(g->ctx, ht_guard_compare(g, &norm, &change));
  double most = ON_COURSE[share] * (double)s->iteration_end;
  int on_course = projected_at(g, share, s->norm_r) <= most;
  int follows = change <= fmax(ht_replacement_bearable(norm), g->goal) && projected_at(g, share, norm) <= most;
  if (on_course && follows) return HT_OK;
  return leave(g, norm, change, share == HALF && !on_course && ht_guard_starts_from_zero(g));
}
