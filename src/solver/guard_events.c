/* What the guard does at each event of a loop. SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include "base/number.h"
#include "solver/guard.h"
#include "solver/spectrum.h"

enum { NULL_TEST_AFTER = 200, FUTILE_CLAIMS = 3, PATIENCE = 2000, PATIENCE_LEARNED = 256 };
/* Iterations between two checks where a network decides unseen: with a low level among what it chose, and without. */
enum { UNSEEN_CHECK_EVERY = 256, UNSEEN_CHECK_SELDOM = 512 };
static const double POLL_EVERY_S = 0.05; /* for the stop flag, the time limit and the progress callback */

/* Each handler sets *done and *outcome when the solve is over. */
typedef ht_status handler(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome);

static void finish(int *done, ht_outcome *outcome, ht_outcome which) {
  *done = 1;
  *outcome = which;
}

/* The loop's residual fell by what the level can bear: replace it, and learn how far the next fall may go. */
static ht_status on_dropped(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double norm, change;
  (void)event, (void)done, (void)outcome;
  if (g->loop->state.replaced > 0 && g->loop->state.replacement[g->loop->state.replaced - 1].iteration == g->loop->state.iteration)
    return HT_OK; /* it was, and was judged */
  if (g->loop->state.norm_r <= g->take_up_below) {
    ht_guard_take_up_level(g);
    return HT_OK;
  }
  HT_TRY(g->ctx, ht_guard_refresh(g, &norm, &change));
  g->loop->calls->set_residual(g->loop, g->residual);
  ht_guard_judge_replacement(g, norm, change);
  return HT_OK;
}

/* A tolerance that the loop's residual cannot tell of (set_events) it has not met. The report tells the residuals, of the x that is kept.
 */
static void tell_claim(ht_guard *g, const char *met) {
  if (g->loop->state.goal > g->goal)
    snprintf(g->detail, HT_REPORT_TEXT, "the recursive residual fell below %.1e ||b||, where it says nothing of the true one",
             g->loop->state.goal / g->norm_b);
  else
    snprintf(g->detail, HT_REPORT_TEXT, "%s", met);
}

/* The loop says the tolerance is met: only the true residual decides. */
static ht_status on_reached(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double norm, change, before = g->replacing.reference;
  (void)event;
  HT_TRY(g->ctx, ht_guard_refresh_claim(g, &norm, &change));
  if (ht_guard_meets_goal(g, norm)) {
    finish(done, outcome, HT_CONVERGED);
    return HT_OK;
  }
  if (g->options->stopping == HT_STOPPING_PAPER || !g->options->guard) {
    finish(done, outcome, HT_RECURSIVE_ONLY);
    tell_claim(g, ht_outcome_text(HT_RECURSIVE_ONLY));
    return HT_OK;
  }
  ht_guard_replace(g, norm, change);
  ht_guard_restart(g);
  if (ht_guard_lowest_level(g) < HT_LEVEL_64) {
    /* the budget, too, has spent what it was given: near the goal it would allow everything, and the way down is as long as at first */
    if (!g->policy.replaces || g->by_budget || norm > 0.5 * before) ht_guard_give_up_level(g);
    return HT_OK;
  }
  g->futile = norm > 0.5 * g->claimed ? g->futile + 1 : 0;
  g->claimed = norm;
  if (g->futile >= FUTILE_CLAIMS) {
    finish(done, outcome, HT_ATTAINABLE_ACCURACY);
    tell_claim(g, "the recursive residual meets the tolerance, and the true one has stopped following it");
  }
  return HT_OK;
}

static ht_status on_decide(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event, (void)done, (void)outcome;
  ht_guard_consult_policy(g);
  return HT_OK;
}

static ht_status on_limit(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event;
  int low = g->lowest_used < HT_LEVEL_64; /* FP64 may take far fewer */
  snprintf(g->detail, HT_REPORT_TEXT, "the iterations that are allowed were made; raise max-iterations, %s a stronger preconditioner%s",
           low ? "try" : "or try", low ? ", or --policy fixed:f64" : "");
  finish(done, outcome, HT_ITERATION_LIMIT);
  return HT_OK;
}

static ht_status on_failed(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event, (void)done, (void)outcome;
  return g->ctx->status;
}

/* ||A|| ||p||^2, which p'Ap is measured by: ||A|| is 1 where the diagonal is, else ||A||_inf is taken. */
static double curvature_scale(const ht_guard *g) {
  double size = g->loop->scaled ? 1 : g->certifier.norm_inf;
  return g->loop->calls->direction_square(g->loop) * (isfinite(size) && size > 0 ? size : 1);
}

/* Without the guard: nothing is gone back to. x may have met the tolerance all the same; its certificate is to say so. */
static ht_status on_breakdown_unguarded(ht_guard *g, int *done, ht_outcome *outcome) {
  const ht_cg_state *s = &g->loop->state;
  double norm, change;
  HT_TRY(g->ctx, ht_guard_refresh_claim(g, &norm, &change));
  finish(done, outcome, ht_guard_meets_goal(g, norm) ? HT_CONVERGED : HT_BROKE_DOWN);
  if (*outcome == HT_BROKE_DOWN)
    snprintf(g->detail, HT_REPORT_TEXT, "p'Ap = %.3e at iteration %lld after products below FP64, and the guard was off", s->pap,
             (long long)s->iteration);
  return HT_OK;
}

/* Non-positive curvature, a non-finite number or, below FP64 alone (set_events), a residual that grew. Below FP64 the storage may
 * be to blame: go back and climb. In FP64 it is the matrix, or a direction that rounding has spoilt near the end: that gets
 * FUTILE_CLAIMS restarts. */
static ht_status on_breakdown(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  if (!g->options->guard && g->lowest_used < HT_LEVEL_64) return on_breakdown_unguarded(g, done, outcome);
  double norm, change, scale = curvature_scale(g), curvature = g->loop->state.pap / scale;
  if (ht_guard_lowest_level(g) < HT_LEVEL_64) {
    HT_TRY(g->ctx, ht_guard_refresh(g, &norm, &change));
    ht_guard_give_up_level(g);
    return ht_guard_restore(g);
  }
  if (event == HT_CG_CURVATURE && curvature < -1e-10) {
    snprintf(g->detail, HT_REPORT_TEXT, "p'Ap = %.3e at iteration %lld, %.1e of ||A|| ||p||^2: the matrix has a negative eigenvalue",
             g->loop->state.pap, (long long)g->loop->state.iteration, curvature);
    finish(done, outcome, HT_INDEFINITE);
    return HT_OK;
  }
  HT_TRY(g->ctx, ht_guard_refresh_claim(g, &norm, &change));
  if (ht_guard_meets_goal(g, norm)) {
    finish(done, outcome, HT_CONVERGED);
    return HT_OK;
  }
  if (g->futile++ < FUTILE_CLAIMS) return ht_guard_restore(g);
  if (event == HT_CG_NONFINITE || !(scale * DBL_EPSILON >= DBL_MIN)) { /* a p'Ap that underflows says nothing about A */
    snprintf(g->detail, HT_REPORT_TEXT,
             "r'r = %g, r'z = %g, p'Ap = %g at iteration %lld; the values are too large or too small for FP64 sums",
             g->loop->state.norm_r * g->loop->state.norm_r, g->loop->state.rz, g->loop->state.pap, (long long)g->loop->state.iteration);
    finish(done, outcome, HT_NON_FINITE);
    return HT_OK;
  }
  if (ht_guard_is_at_rounding(g)) {
    finish(done, outcome, HT_ATTAINABLE_ACCURACY);
    return HT_OK;
  }
  snprintf(g->detail, HT_REPORT_TEXT, "p'Ap = %.3e at iteration %lld, %.1e of ||A|| ||p||^2: zero to rounding", g->loop->state.pap,
           (long long)g->loop->state.iteration, curvature);
  finish(done, outcome, HT_SINGULAR);
  return HT_OK;
}

/* Whether the residual is a null vector of A to FP64: then no iterate can reduce it. Without ||A|| nothing can be said. */
static ht_status test_null_vector(ht_guard *g, int *is_null, double *ratio) {
  double norm_r, norm_ar;
  g->loop->calls->get_residual(g->loop, g->residual);
  HT_TRY(g->ctx, g->loop->op->apply(g->loop->op, NULL, g->residual, g->previous, NULL));
  norm_r = ht_norm2(&g->certifier, g->residual);
  norm_ar = ht_norm2(&g->certifier, g->previous);
  *ratio = norm_ar / (norm_r * g->certifier.norm_inf);
  *is_null = isfinite(g->certifier.norm_inf) && *ratio < 1e-13;
  return HT_OK;
}

void ht_guard_ritz_extremes(const ht_guard *g, double *smallest, double *largest) {
  const ht_cg_state *s = &g->loop->state;
  int64_t steps = g->segment_end >= 0 ? g->segment_end : s->iteration;
  ht_ritz_extremes(steps < s->capacity ? steps : s->capacity, s->alphas, s->betas, g->ritz, smallest, largest);
}

/* On a plateau the direction is worth no more than the iterations that made it, and what was lost would spoil it for longer. */
static ht_status make_residual_true(ht_guard *g) {
  double norm, change;
  HT_TRY(g->ctx, ht_guard_refresh(g, &norm, &change));
  ht_guard_replace(g, norm, change);
  if (g->plateaus && !g->by_rule && ht_guard_iterations_again(g, change) > (double)g->loop->state.iteration) ht_guard_restart(g);
  return HT_OK;
}

/* The last step of the levels that were given up is made: what it left in the loop's residual would stay there. */
static ht_status settle(ht_guard *g) {
  if (g->settle_at < 0 || g->loop->state.iteration < g->settle_at) return HT_OK;
  g->settle_at = -1;
  return make_residual_true(g);
}

/* What the levels in use change the scaled matrix by, as far as that is for the guard to judge: a policy that mixes levels is not. */
static double level_error(const ht_guard *g) {
  const double error[HT_LEVELS] = {g->known->error_16, g->known->error_32, 0};
  if (g->policy.window) return g->by_rule && !g->rule_failed ? g->policy.by_rule->error_start : 0;
  if (g->policy.error_start > 0 || !g->policy.by_network) return g->policy.error_start;
  ht_level level = ht_guard_lowest_level(g);
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] != level) return 0;
  return error[level];
}

/* A level's error must stay small against the smallest eigenvalue, which the Ritz values approach from above. When it no longer
 * is, the loop goes on, direction and all, under the fallback. */
static ht_status check_level(ht_guard *g) {
  static const double SAFE = 4; /* the 2-norm of random errors is about twice their largest column norm */
  double smallest, largest, error = level_error(g);
  if (!(error > 0) || g->segment_end >= 0) return HT_OK;
  ht_guard_ritz_extremes(g, &smallest, &largest);
  if (!(smallest < SAFE * error * (g->known->preconditioned ? 1 : largest))) return HT_OK;
  ht_guard_give_up_level(g);
  g->policy.error_start = 0;
  return HT_OK;
}

/* Whoever asks for it: a caller, auto where its level has failed, a policy of the kind window. */
static int follows_budget(const ht_guard *g) { return g->by_budget || g->policy.rule == HT_DECIDE_BUDGET; }

/* Iterations without a new low of the residual: one may take as long as all before it, and a while more. A budget need not wait so long,
 * nor for the iteration limit, and least of all near the goal, where it reads little and stands still for good. */
static int64_t patience(const ht_guard *g, int learned) {
  enum { BUDGET_SHARE = 8 };
  static const double NEAR = 100;
  if (!follows_budget(g)) return (learned ? PATIENCE_LEARNED : PATIENCE) + g->improved_at;
  int64_t share = g->loop->state.iteration_end / BUDGET_SHARE, while_more = g->lowest <= NEAR * g->goal ? PATIENCE_LEARNED : PATIENCE;
  return (share < while_more ? share : while_more) + g->improved_at / BUDGET_SHARE;
}

/* 16 bits, or a learned policy, that make no progress are left, without a replacement or a claim to show it; a budget goes a level up.
 * Whatever the level, the rest is FP64's where the iterations that are allowed may not do: there the direction, which was leading
 * somewhere, is kept. */
static ht_status check_patience(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  int learned = g->policy.by_network && !g->by_rule, budget = follows_budget(g);
  ht_level lowest = ht_guard_lowest_level(g);
  if ((g->replacing.to_replace == HT_LEVEL_64 && !budget) || lowest == HT_LEVEL_64) return HT_OK;
  int idle = s->iteration - g->improved_at >= patience(g, learned) && (lowest == HT_LEVEL_16 || learned || budget);
  if (ht_guard_misses_limit(g)) {
    ht_guard_leave_to_f64(g);
  } else if (idle) {
    ht_guard_give_up_level(g);
    g->improved_at = s->iteration;
    HT_TRY(g->ctx, make_residual_true(g));
    ht_guard_restart(g);
  }
  return HT_OK;
}

static ht_status check_progress(ht_guard *g, int *done, ht_outcome *outcome) {
  const ht_cg_state *s = &g->loop->state;
  /* With the error of lower levels in it the loop's residual is no measure of x. */
  if (s->norm_r < g->best_norm && ht_guard_lowest_level(g) == HT_LEVEL_64 && g->replacing.to_replace == HT_LEVEL_64) {
    g->loop->calls->get_iterate(g->loop, g->best);
    g->best_norm = s->norm_r;
    g->best_written = 1;
    g->best_in_loop = 0;
  }
  if (s->norm_r < 0.9 * g->lowest) {
    g->lowest = s->norm_r;
    g->improved_at = s->iteration;
    return HT_OK;
  }
  int64_t idle = s->iteration - g->improved_at, n = g->loop->op->n;
  if (idle < NULL_TEST_AFTER) return HT_OK;
  int is_null = 0;
  double ratio = NAN;
  if (idle % NULL_TEST_AFTER < g->check_every) HT_TRY(g->ctx, test_null_vector(g, &is_null, &ratio));
  if (is_null) {
    snprintf(g->detail, HT_REPORT_TEXT, "||A r|| = %.1e ||A|| ||r|| at iteration %lld: what remains of b is in the null space of A", ratio,
             (long long)s->iteration);
    finish(done, outcome, HT_SINGULAR);
    return HT_OK;
  }
  int64_t patience = 2 * n < 5000 ? 5000 : 2 * n < 50000 ? 2 * n : 50000;
  if (idle > patience) {
    snprintf(g->detail, HT_REPORT_TEXT, "no new low of the residual in the last %s", ht_number_of(idle, "iteration").text);
    finish(done, outcome, HT_STAGNATED);
  }
  return HT_OK;
}

/* The next pause: at the next check, or sooner where iterations are slow or a callback wants them all. Pauses change no bit. */
static void plan_pause(ht_guard *g, double elapsed) {
  int64_t iteration = g->loop->state.iteration, next = 1;
  if (!g->progress && iteration > 0) {
    double fit = POLL_EVERY_S * (double)iteration / elapsed;
    next = fit < 1 ? 1 : fit > (double)g->check_every ? g->check_every : (int64_t)fit;
  }
  g->next_pause = iteration + next < g->next_check ? iteration + next : g->next_check;
  if (ht_guard_next_share(g) < g->next_pause) g->next_pause = ht_guard_next_share(g);
  if (g->settle_at >= 0 && g->settle_at < g->next_pause) g->next_pause = g->settle_at;
}

static ht_status poll(ht_guard *g, double elapsed, int *done, ht_outcome *outcome) {
  const ht_cg_state *s = &g->loop->state;
  int stop = ht_stop_requested(g->ctx);
  if (g->progress) {
    ht_progress view = {s->iteration, s->norm_r / g->norm_b, elapsed, NULL};
    if (s->x && !g->loop->scaled && !g->shift) HT_TRY(g->ctx, ht_guard_look(g, s->x, &view.x));
    stop |= g->progress(g->progress_user, &view) != 0;
  }
  if (stop) {
    snprintf(g->detail, HT_REPORT_TEXT, "stopped on request after %s; the best iterate is kept",
             ht_number_of(s->iteration, "iteration").text);
    finish(done, outcome, HT_STOPPED);
  } else if (g->options->time_limit > 0 && elapsed > g->options->time_limit) {
    snprintf(g->detail, HT_REPORT_TEXT, "%.3g s passed; the best iterate is kept", elapsed);
    finish(done, outcome, HT_TIME_LIMIT);
  }
  return HT_OK;
}

static ht_status on_pause(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double elapsed = ht_seconds() - g->started;
  (void)event;
  HT_TRY(g->ctx, poll(g, elapsed, done, outcome));
  if (!*done) HT_TRY(g->ctx, settle(g));
  if (!*done && g->loop->state.iteration >= ht_guard_next_share(g)) HT_TRY(g->ctx, ht_guard_share_limit(g));
  if (!*done && ht_guard_look_is_due(g)) ht_guard_consult_policy(g);
  if (!*done && g->loop->state.iteration >= g->next_check) {
    if (ht_guard_decides_unseen(g)) g->check_every = g->replacing.to_replace < HT_LEVEL_64 ? UNSEEN_CHECK_EVERY : UNSEEN_CHECK_SELDOM;
    g->next_check = g->loop->state.iteration + g->check_every;
    if (g->options->guard) HT_TRY(g->ctx, check_level(g));
    HT_TRY(g->ctx, check_progress(g, done, outcome));
    if (!*done && g->options->guard) HT_TRY(g->ctx, check_patience(g));
  }
  plan_pause(g, elapsed);
  return HT_OK;
}

static handler *const handlers[] = {
    [HT_CG_CONTINUE] = on_failed,     [HT_CG_REACHED] = on_reached,     [HT_CG_LIMIT] = on_limit,     [HT_CG_DECIDE] = on_decide,
    [HT_CG_CURVATURE] = on_breakdown, [HT_CG_NONFINITE] = on_breakdown, [HT_CG_DROPPED] = on_dropped, [HT_CG_GREW] = on_breakdown,
    [HT_CG_PAUSE] = on_pause,         [HT_CG_FAILED] = on_failed};

ht_status ht_guard_handle(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  HT_TRY(g->ctx, handlers[event](g, event, done, outcome));
  int due = g->loop->state.iteration >= g->next_pause || ht_guard_look_is_due(g);
  int missed = event != HT_CG_PAUSE && due; /* a loop tells one event an iteration */
  if (missed && !*done) HT_TRY(g->ctx, on_pause(g, event, done, outcome));
  return HT_OK;
}
