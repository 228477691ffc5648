/* The guard's means: levels, and true residuals in the place of the loop's. SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "solver/guard.h"

ht_level ht_guard_lowest_level(const ht_guard *g) {
  ht_level level = HT_LEVEL_64;
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < level) level = (ht_level)g->loop->block_level[b];
  return level;
}

/* A device changes levels within a run, and runs end by the clock: there the products tell. What is exact is no low level. */
void ht_guard_note_lowest(ht_guard *g) {
  const double *bytes = g->loop->state.bytes_level;
  ht_level read = bytes[HT_LEVEL_16] > 0 ? HT_LEVEL_16 : bytes[HT_LEVEL_32] > 0 ? HT_LEVEL_32 : HT_LEVEL_64;
  ht_level lowest = g->loop->engine ? read : ht_guard_lowest_level(g);
  if (lowest < g->lowest_used && !ht_guard_is_exact(g, lowest)) g->lowest_used = lowest;
}

static void enforce_floor(ht_guard *g) {
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < g->floor) g->loop->block_level[b] = (uint8_t)g->floor;
  g->loop->calls->levels_changed(g->loop);
}

void ht_guard_start_levels(ht_guard *g) {
  if (!g->loop->op->blocks) return;
  memset(g->loop->block_level, (int)g->policy.start, (size_t)g->loop->op->blocks);
  enforce_floor(g);
}

static int64_t sum_of_levels(const ht_guard *g) {
  int64_t sum = 0;
  for (int64_t b = 0; b < g->loop->op->blocks; b++) sum += g->loop->block_level[b];
  return sum;
}

int ht_guard_is_exact(const ht_guard *g, ht_level level) {
  const double exact[HT_LEVELS] = {g->known->share_exact_16, g->known->share_exact_32, 1};
  return exact[level] == 1;
}

/* `lowest` where the policy leaves its error to replacement; one that holds every value exactly has none. */
static ht_level inexact_level(const ht_guard *g, ht_level lowest) {
  return g->policy.replaces && !g->by_budget && !ht_guard_is_exact(g, lowest) ? lowest : HT_LEVEL_64;
}

void ht_guard_note_levels(ht_guard *g) { g->replacing.to_replace = inexact_level(g, ht_guard_lowest_level(g)); }

/* A policy that mixes low levels into its choice: the first one to be read begins a gap, and the lowest says how soon it is closed.
 * norm: ||r|| when it was read, or before. */
static void follow_levels(ht_guard *g, ht_level lowest_read, double norm) {
  ht_level lowest = inexact_level(g, lowest_read);
  if (g->asked_drop > 0 && g->replacing.to_replace < HT_LEVEL_64 && g->options->stopping == HT_STOPPING_TRUE)
    g->replacing.drop = g->asked_drop;
  if ((int)lowest >= g->replacing.to_replace) return;
  if (g->replacing.to_replace == HT_LEVEL_64) g->replacing.reference = norm;
  g->replacing.to_replace = lowest;
  if (g->options->stopping == HT_STOPPING_TRUE)
    g->replacing.drop = g->asked_drop > 0 ? g->asked_drop : fmax(g->replacing.drop, ht_guard_first_drop(g, lowest));
}

/* ---- levels that a device chooses, and tells of when its run ends ---- */

int ht_guard_decides_unseen(const ht_guard *g) { return g->policy.rule == HT_DECIDE_LEARNED && g->floor < HT_LEVEL_64; }

void ht_guard_follow_unseen(ht_guard *g) { ht_replacing_follow(&g->replacing, g->loop->state.lowest); }

void ht_guard_plan_replacement(ht_guard *g) {
  ht_cg_replacing *m = &g->replacing;
  int unseen = ht_guard_decides_unseen(g), may = g->options->guard && !(g->take_up_below > 0);
  m->follows = may && unseen;
  m->allowed = may && g->unaided && (unseen || m->to_replace < HT_LEVEL_64);
  m->floor = g->floor;
  m->best = g->best_norm;
  for (int level = 0; level < HT_LEVELS; level++) {
    m->inexact[level] = inexact_level(g, (ht_level)level);
    m->first_drop[level] = g->options->stopping == HT_STOPPING_TRUE ? ht_guard_first_drop(g, (ht_level)level) : 0;
  }
}

void ht_guard_consult_policy(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  ht_policy_view view = {.iteration = s->iteration,
                         .blocks = g->loop->op->blocks,
                         .residual = s->norm_r,
                         .residual_target = g->goal,
                         .alpha = s->alpha,
                         .direction_norm2 = s->block_norm2,
                         .direction_max = s->block_max,
                         .error_16 = g->loop->op->column_error[HT_LEVEL_16],
                         .error_f32 = g->loop->op->column_error[HT_LEVEL_32],
                         .measured_16 = sqrt(s->error2[HT_LEVEL_16]),
                         .measured_f32 = sqrt(s->error2[HT_LEVEL_32]),
                         .direction = s->block_direction};
  int64_t before = sum_of_levels(g);
  g->looks++;
  if (g->policy.window)
    ht_guard_decide_window(g, &view);
  else
    g->policy.decide(&g->policy, &view, g->loop->block_level);
  enforce_floor(g);
  follow_levels(g, ht_guard_lowest_level(g), s->norm_r);
  /* A look costs a few per cent of a product: the less it changes, the longer until the next, but for a policy that has its own time. */
  int64_t usual = g->by_budget ? HT_USUAL_INTERVAL : g->policy_interval, longest = g->policy.interval && !g->by_budget ? usual : 8 * usual;
  g->interval = sum_of_levels(g) != before ? usual : 2 * g->interval < longest ? 2 * g->interval : longest;
  /* A policy's own time holds unless the caller has asked for another. */
  if (g->asked_window > 0 && g->policy_interval == g->policy.interval) g->interval = g->asked_window;
  g->next_look = s->iteration + g->interval;
}

/* How far the residual may fall before it is replaced. The replacement changes it by about a thousandth at 16 bits, which costs
 * CG few iterations; a longer fall costs more of them than it saves in replacements. At 32 bits elasticity takes 15 % more iterations
 * with one replacement at 1e-6, and 1 % with three. */
double ht_guard_usual_drop(ht_level level) { return level == HT_LEVEL_16 ? 0.03 : level == HT_LEVEL_32 ? 1e-3 : 0; }

double ht_guard_first_drop(const ht_guard *g, ht_level level) {
  return g->asked_drop > 0 && level < HT_LEVEL_64 ? g->asked_drop : ht_guard_usual_drop(level);
}

void ht_guard_begin_drop(ht_guard *g) {
  int replaces = g->policy.replaces && g->options->stopping == HT_STOPPING_TRUE;
  g->replacing.drop = replaces ? ht_guard_first_drop(g, ht_guard_lowest_level(g)) : 0;
}

/* What was lost was thought to stay below the goal, from a residual that is not the loop's any more, or wrongly. */
static void replace_again(ht_guard *g) {
  if (g->replacing.drop == 0) ht_guard_begin_drop(g);
}

/* FP64 has left nothing to replace: the next fall counts from here. */
void ht_guard_take_up_level(ht_guard *g) {
  g->take_up_below = -1;
  memset(g->loop->block_level, (int)g->policy.later, (size_t)g->loop->op->blocks);
  enforce_floor(g);
  ht_guard_note_levels(g);
  g->replacing.reference = g->replacing.watched = g->loop->state.norm_r;
  ht_guard_begin_drop(g);
}

static void raise_floor(ht_guard *g, ht_level floor) {
  g->floor = floor;
  ht_recorder_because(g->recorder, HT_TRACE_RAISE);
  enforce_floor(g);
  ht_guard_note_levels(g);
  ht_guard_begin_drop(g);
}

/* An engine may hold a product of the old levels for the step that comes next, so that the residual is made true after that step. */
void ht_guard_settle_later(ht_guard *g) {
  g->settle_at = g->loop->state.iteration + 1;
  if (g->next_pause > g->settle_at) g->next_pause = g->settle_at;
}

/* As auto goes over to the budget; the policy may still ask for something else, from the next look on. */
static void give_up_rule(ht_guard *g) {
  ht_recorder_because(g->recorder, HT_TRACE_FALLBACK);
  g->by_budget = 1;
  g->replacing.to_replace = HT_LEVEL_64;
  g->replacing.drop = 0;
  g->interval = HT_USUAL_INTERVAL;
  g->next_look = g->loop->state.iteration + g->interval;
  ht_guard_start_levels(g);
}

/* The level failed: over to the policy's fallback where it has one, else one level up. */
void ht_guard_give_up_level(ht_guard *g) {
  int first = g->by_rule && !g->rule_failed;
  g->rule_failed |= g->by_rule;
  ht_guard_settle_later(g);
  if (first && g->policy.by_rule->fallback) {
    give_up_rule(g);
    return;
  }
  ht_level lowest = ht_guard_lowest_level(g);
  if (!g->policy.fallback) {
    raise_floor(g, lowest < HT_LEVEL_64 ? lowest + 1 : HT_LEVEL_64);
    return;
  }
  ht_recorder_because(g->recorder, HT_TRACE_FALLBACK);
  g->policy.decide = g->policy.fallback;
  g->policy.rule = g->policy.fallback_rule;
  g->policy.fallback = NULL;
  g->policy.replaces = 0;
  g->policy.start = HT_LEVEL_64;
  g->replacing.to_replace = HT_LEVEL_64;
  g->replacing.drop = 0;
  g->next_look = g->loop->state.iteration + g->interval;
  ht_guard_start_levels(g);
}

void ht_guard_give_up_levels(ht_guard *g) {
  ht_guard_settle_later(g);
  raise_floor(g, HT_LEVEL_64);
}

/* ---- true residuals ---- */

/* An infinite norm meets no goal, not even an infinite one. */
int ht_guard_meets_goal(const ht_guard *g, double norm) { return norm <= g->goal && isfinite(norm); }

static void keep_if_best(ht_guard *g, double norm) {
  if (!(norm < g->best_norm)) return;
  g->best_norm = norm;
  g->best_written = 1;
  g->best_in_loop = 0;
  g->certifier.backend->copy(g->ctx, g->loop->op->n, g->x, g->best);
}

void ht_guard_fetch_best(ht_guard *g) {
  if (g->best_in_loop) g->loop->calls->get_best(g->loop, g->best);
  g->best_in_loop = 0;
}

/* ||g->previous - g->residual|| from its square; where that overflowed or underflowed, from the difference, in the place of `previous`. */
static double distance(ht_guard *g, double square) {
  if (square > HT_SQUARE_LEAST && square < HT_SQUARE_MOST) return sqrt(square);
  g->certifier.backend->axpy(g->ctx, g->loop->op->n, -1, g->residual, g->previous);
  return ht_norm2_of_square(&g->certifier, g->previous, square);
}

static void record_residual(const ht_guard *g, double norm, ht_trace_why why) {
  ht_recorder_residual(g->recorder, g->loop->state.iteration, norm / g->norm_b, why);
}

static void note_gap(ht_guard *g, double norm, double change) {
  g->gap = change;
  g->gap_borne = ht_replacement_bearable(norm);
}

ht_status ht_guard_compare(ht_guard *g, double *norm, double *change) {
  ht_reduction apart = {HT_DISTANCE_SQUARE, g->previous, g->residual, 0};
  g->loop->calls->get_iterate(g->loop, g->x);
  g->loop->calls->get_residual(g->loop, g->previous);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, 1, &apart, norm));
  *change = distance(g, apart.result);
  return HT_OK;
}

void ht_guard_note_comparison(ht_guard *g, double norm, double change) {
  record_residual(g, norm, HT_TRACE_REPLACEMENT);
  g->certified = norm;
  note_gap(g, norm, change);
  keep_if_best(g, norm);
}

ht_status ht_guard_refresh(ht_guard *g, double *norm, double *change) {
  HT_TRY(g->ctx, ht_guard_compare(g, norm, change));
  ht_guard_note_comparison(g, *norm, *change);
  return HT_OK;
}

static void list_facts(ht_guard *g) {
  const ht_reduction facts[HT_FACTS] = {[HT_FACT_R_NORM_INF] = {HT_NORM_INF, g->residual, NULL, 0},
                                        [HT_FACT_X_NORM_INF] = {HT_NORM_INF, g->x, NULL, 0},
                                        [HT_FACT_XB] = {HT_DOT, g->x, g->b, 0},
                                        [HT_FACT_XR] = {HT_DOT, g->x, g->residual, 0}};
  memcpy(g->facts, facts, sizeof facts);
}

ht_status ht_guard_refresh_claim(ht_guard *g, double *norm, double *change) {
  g->loop->calls->get_iterate(g->loop, g->x);
  list_facts(g);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, HT_FACTS, g->facts, norm));
  record_residual(g, *norm, HT_TRACE_CLAIM);
  g->facts_of = g->certifier.products;
  g->certified = *norm;
  *change = 0;
  if (ht_guard_meets_goal(g, *norm)) return HT_OK;
  ht_reduction apart = {HT_DISTANCE_SQUARE, g->previous, g->residual, 0};
  g->loop->calls->get_residual(g->loop, g->previous);
  g->certifier.backend->reduce(g->ctx, g->loop->op->n, 1, &apart);
  *change = distance(g, apart.result);
  note_gap(g, *norm, *change);
  keep_if_best(g, *norm);
  return HT_OK;
}

void ht_guard_measure(ht_guard *g) {
  if (g->facts_of == g->certifier.products) return;
  list_facts(g);
  g->certifier.backend->reduce(g->ctx, g->loop->op->n, HT_FACTS, g->facts);
  g->facts_of = g->certifier.products;
}

double ht_guard_backward_error(const ht_guard *g) {
  return ht_backward_error(&g->certifier, g->facts[HT_FACT_R_NORM_INF].result, g->facts[HT_FACT_X_NORM_INF].result,
                           ldexp(g->b_norm_inf, g->shift));
}

int ht_guard_is_at_rounding(ht_guard *g) {
  if (!(ht_guard_backward_error(g) < 4 * DBL_EPSILON)) return 0;
  snprintf(g->detail, HT_REPORT_TEXT, "the backward error is at rounding: x is as good as FP64 allows; ask for a larger --rtol");
  return 1;
}

void ht_guard_restart(ht_guard *g) {
  g->loop->state.fresh = 1;
  g->settle_at = -1;
  if (g->segment_end < 0) g->segment_end = g->loop->state.iteration;
}

/* The direction is kept when the change is small against the residual. */
static void count_replacement(ht_guard *g, double norm, double change) {
  if (!(change <= ht_replacement_bearable(norm))) ht_guard_restart(g);
  ht_guard_note_levels(g);
  g->replacing.reference = g->replacing.watched = norm;
  g->replacing.replaced = 1;
  g->owed = 0;
  g->replacements++;
}

void ht_guard_replace(ht_guard *g, double norm, double change) {
  g->loop->calls->set_residual(g->loop, g->residual);
  count_replacement(g, norm, change);
  replace_again(g);
}

void ht_guard_judge_replacement(ht_guard *g, double norm, double change) {
  double before = g->replacing.reference;
  int first = !g->replacing.replaced;
  count_replacement(g, norm, change);
  if (!ht_replacement_gains(norm, change, before))
    ht_guard_give_up_level(g);
  else
    g->replacing.drop =
        ht_replacement_drop(norm, change, before, ht_guard_first_drop(g, g->replacing.to_replace), first, g->loop->state.goal);
}

static void take_over_best(ht_guard *g) {
  if (!(g->replacing.best < g->best_norm)) return;
  g->best_norm = g->replacing.best;
  g->best_written = g->best_in_loop = 1;
}

void ht_guard_follow_replacements(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  if (!s->replacing.allowed && !s->replacing.follows) return;
  g->replacing = s->replacing;
  take_over_best(g);
  for (int k = 0; k < s->replaced; k++) {
    const ht_cg_replacement *made = &s->replacement[k];
    ht_recorder_residual(g->recorder, made->iteration, made->norm / g->norm_b, HT_TRACE_REPLACEMENT);
    note_gap(g, made->norm, made->change);
    if (!(made->change <= ht_replacement_bearable(made->norm))) ht_guard_restart(g);
    if (!ht_replacement_gains(made->norm, made->change, made->before)) ht_guard_give_up_level(g);
    g->owed = 0;
    g->replacements++;
    g->seen_after++;
  }
}

/* From another iterate, whose residual is in g->residual, with a fresh direction. */
static void go_back(ht_guard *g, const double *iterate, double norm) {
  g->loop->calls->set_iterate(g->loop, iterate);
  record_residual(g, norm, HT_TRACE_RESTORE);
  g->loop->calls->set_residual(g->loop, g->residual);
  ht_guard_restart(g);
  ht_guard_note_levels(g);
  g->replacing.reference = g->replacing.watched = norm;
  replace_again(g);
  g->owed = 0;
  g->restores++;
}

ht_status ht_guard_restore(ht_guard *g) {
  double norm;
  ht_guard_fetch_best(g);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->best, g->b, g->residual, 0, NULL, &norm));
  go_back(g, g->best, norm);
  return HT_OK;
}

void ht_guard_start_over(ht_guard *g) {
  const ht_backend *v = g->certifier.backend;
  int64_t n = g->loop->op->n;
  v->copy(g->ctx, n, g->x, g->previous);
  v->axpy(g->ctx, n, -1, g->previous, g->x);
  v->copy(g->ctx, n, g->b, g->residual);
  go_back(g, g->x, g->norm_b);
}
