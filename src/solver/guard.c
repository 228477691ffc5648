/* The guard's decisions. Read ht_guard_solve at the end first. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/guard.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "solver/spectrum.h"

enum { CHECK_EVERY = 64, NULL_TEST_AFTER = 200, FUTILE_CLAIMS = 3 };
static const double POLL_EVERY_S = 0.05; /* for the stop flag, the time limit and the progress callback */

/* The loop aims slightly below the goal, because the true residual it is judged by differs in the last digits. */
static const double AIM = 0.995;
/* Below this share of ||b|| the loop's residual says nothing that the true one could follow, and its squares would underflow. */
static const double LOWEST_AIM = DBL_EPSILON * DBL_EPSILON;
/* The true residual may differ from the loop's by this share before the direction is given up. */
static const double KEEP_DIRECTION = 0.1;

/* ---- levels ---- */

static ht_level lowest_level(const ht_guard *g) {
  ht_level level = HT_LEVEL_64;
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < level) level = (ht_level)g->loop->block_level[b];
  return level;
}

static void enforce_floor(ht_guard *g) {
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < g->floor) g->loop->block_level[b] = (uint8_t)g->floor;
  g->loop->levels_changed(g->loop);
}

static void start_levels(ht_guard *g) {
  if (!g->loop->op->blocks) return;
  memset(g->loop->block_level, (int)g->policy.start, (size_t)g->loop->op->blocks);
  enforce_floor(g);
}

static int64_t sum_of_levels(const ht_guard *g) {
  int64_t sum = 0;
  for (int64_t b = 0; b < g->loop->op->blocks; b++) sum += g->loop->block_level[b];
  return sum;
}

static void consult_policy(ht_guard *g) {
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
                         .measured_f32 = sqrt(s->error2[HT_LEVEL_32])};
  int64_t before = sum_of_levels(g);
  g->policy.decide(&g->policy, &view, g->loop->block_level);
  enforce_floor(g);
  /* A look costs a few per cent of a product: the less it changes, the longer until the next. */
  int64_t longest = 8 * g->policy_interval;
  g->interval = sum_of_levels(g) != before ? g->policy_interval : 2 * g->interval < longest ? 2 * g->interval : longest;
  g->next_look = s->iteration + g->interval;
}

/* How far the residual may fall before it is replaced. The replacement changes it by about a thousandth at 16 bits, which costs
 * CG few iterations; a longer fall costs more of them than it saves in replacements. */
static double first_drop(ht_level level) { return level == HT_LEVEL_16 ? 0.03 : level == HT_LEVEL_32 ? 1e-6 : 0; }

static void raise_floor(ht_guard *g) {
  ht_level lowest = lowest_level(g);
  g->floor = lowest < HT_LEVEL_64 ? lowest + 1 : HT_LEVEL_64;
  enforce_floor(g);
  g->drop = g->policy.replaces ? first_drop(lowest_level(g)) : 0;
}

/* The level failed: over to the policy's fallback where it has one, else one level up. */
static void give_up_level(ht_guard *g) {
  if (!g->policy.fallback) {
    raise_floor(g);
    return;
  }
  g->policy.decide = g->policy.fallback;
  g->policy.fallback = NULL;
  g->policy.replaces = 0;
  g->policy.start = HT_LEVEL_64;
  g->drop = 0;
  g->next_look = g->loop->state.iteration + g->interval;
  start_levels(g);
}

/* ---- true residuals ---- */

/* An infinite norm meets no goal, not even an infinite one. */
static int meets_goal(const ht_guard *g, double norm) { return norm <= g->goal && isfinite(norm); }

/* x and its true residual from the loop's state; `change` is how far the loop's residual was from it. */
static ht_status refresh(ht_guard *g, double *norm, double *change) {
  ht_loop *loop = g->loop;
  int64_t n = loop->op->n;
  loop->get_iterate(loop, g->x);
  loop->get_residual(loop, g->previous);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, norm));
  g->certified = *norm;
  g->certifier.backend->axpy(g->ctx, n, -1, g->residual, g->previous);
  *change = ht_norm2(g->ctx, g->certifier.backend, n, g->previous);
  if (*norm < g->best_norm) {
    g->best_norm = *norm;
    memcpy(g->best, g->x, (size_t)n * sizeof(double));
  }
  return HT_OK;
}

static void restart(ht_guard *g) {
  g->loop->state.fresh = 1;
  if (g->segment_end < 0) g->segment_end = g->loop->state.iteration;
}

/* Put the true residual in the loop's place. The direction is kept when the change is small against it. */
static void replace(ht_guard *g, double norm, double change) {
  g->loop->set_residual(g->loop, g->residual);
  if (!(change <= KEEP_DIRECTION * norm)) restart(g);
  g->reference = norm;
  g->replacements++;
}

/* Back to the best iterate known, with a fresh direction. */
static ht_status restore(ht_guard *g) {
  double norm;
  g->loop->set_iterate(g->loop, g->best);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->best, g->b, g->residual, &norm));
  g->loop->set_residual(g->loop, g->residual);
  restart(g);
  g->reference = norm;
  g->restores++;
  return HT_OK;
}

/* ---- what to do at each event ---- */

/* Each handler sets *done and *outcome when the solve is over. */
typedef ht_status handler(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome);

static void finish(int *done, ht_outcome *outcome, ht_outcome which) {
  *done = 1;
  *outcome = which;
}

/* The loop's residual fell by what the level can bear: replace it, and learn how far the next fall may go. */
static ht_status on_dropped(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double norm, change, before = g->reference;
  (void)event, (void)done, (void)outcome;
  HT_TRY(g->ctx, refresh(g, &norm, &change));
  replace(g, norm, change);
  if (norm > 0.5 * before)
    give_up_level(g);
  else
    g->drop = fmin(fmax(30 * change / before, first_drop(lowest_level(g))), 0.3);
  return HT_OK;
}

/* The loop says the tolerance is met: only the true residual decides. */
static ht_status on_reached(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double norm, change, before = g->reference;
  (void)event;
  HT_TRY(g->ctx, refresh(g, &norm, &change));
  if (meets_goal(g, norm)) {
    finish(done, outcome, HT_CONVERGED);
    return HT_OK;
  }
  if (g->options->stopping == HT_STOPPING_PAPER) {
    finish(done, outcome, HT_RECURSIVE_ONLY);
    snprintf(g->detail, HT_REPORT_TEXT, "the true residual is %.2e ||b|| where the recursive one is %.2e", norm / g->norm_b,
             g->loop->state.norm_r / g->norm_b);
    return HT_OK;
  }
  replace(g, norm, change);
  restart(g);
  if (lowest_level(g) < HT_LEVEL_64) {
    if (!g->policy.replaces || norm > 0.5 * before) give_up_level(g);
    return HT_OK;
  }
  g->futile = norm > 0.5 * g->claimed ? g->futile + 1 : 0;
  g->claimed = norm;
  if (g->futile >= FUTILE_CLAIMS) {
    finish(done, outcome, HT_ATTAINABLE_ACCURACY);
    snprintf(g->detail, HT_REPORT_TEXT, "the recursive residual met the tolerance %d times and the true one stayed at %.2e ||b||",
             FUTILE_CLAIMS + 1, norm / g->norm_b);
  }
  return HT_OK;
}

static ht_status on_decide(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event, (void)done, (void)outcome;
  consult_policy(g);
  return HT_OK;
}

static ht_status on_limit(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event;
  snprintf(g->detail, HT_REPORT_TEXT, "%lld iterations were made; raise max-iterations, or try a stronger preconditioner",
           (long long)g->loop->state.iteration);
  finish(done, outcome, HT_ITERATION_LIMIT);
  return HT_OK;
}

static ht_status on_failed(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  (void)event, (void)done, (void)outcome;
  return g->ctx->status;
}

/* ||A|| ||p||^2, which p'Ap is measured by: with a unit diagonal (fused loop) ||A|| is 1, else ||A||_inf is taken. */
static double curvature_scale(const ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  double size = g->loop->op->split && g->loop->plan ? 1 : g->certifier.norm_inf;
  return g->certifier.backend->dot(g->ctx, s->n, s->p, s->p) * (isfinite(size) && size > 0 ? size : 1);
}

/* Non-positive curvature, a non-finite number or, below FP64 alone (set_events), a residual that grew. Below FP64 the storage may
 * be to blame: go back and climb. In FP64 it is the matrix, or a direction that rounding has spoilt near the end: that gets
 * FUTILE_CLAIMS restarts. */
static ht_status on_breakdown(ht_guard *g, ht_cg_event event, int *done, ht_outcome *outcome) {
  double norm, change, scale = curvature_scale(g), curvature = g->loop->state.pap / scale;
  if (lowest_level(g) < HT_LEVEL_64) {
    HT_TRY(g->ctx, refresh(g, &norm, &change));
    give_up_level(g);
    return restore(g);
  }
  if (event == HT_CG_CURVATURE && curvature < -1e-10) {
    snprintf(g->detail, HT_REPORT_TEXT, "p'Ap = %.3e at iteration %lld, %.1e of ||A|| ||p||^2: the matrix has a negative eigenvalue",
             g->loop->state.pap, (long long)g->loop->state.iteration, curvature);
    finish(done, outcome, HT_INDEFINITE);
    return HT_OK;
  }
  HT_TRY(g->ctx, refresh(g, &norm, &change));
  if (meets_goal(g, norm)) {
    finish(done, outcome, HT_CONVERGED);
    return HT_OK;
  }
  if (g->futile++ < FUTILE_CLAIMS) return restore(g);
  if (event == HT_CG_NONFINITE || !(scale * DBL_EPSILON >= DBL_MIN)) { /* a p'Ap that underflows says nothing about A */
    snprintf(g->detail, HT_REPORT_TEXT,
             "r'r = %g, r'z = %g, p'Ap = %g at iteration %lld; the values are too large or too small for FP64 sums",
             g->loop->state.norm_r * g->loop->state.norm_r, g->loop->state.rz, g->loop->state.pap, (long long)g->loop->state.iteration);
    finish(done, outcome, HT_NON_FINITE);
    return HT_OK;
  }
  if (ht_backward_error(&g->certifier, g->x, g->b, g->residual) < 4 * DBL_EPSILON) {
    snprintf(g->detail, HT_REPORT_TEXT, "x solves a system whose entries differ in the last place; no smaller residual can be had in FP64");
    finish(done, outcome, HT_ATTAINABLE_ACCURACY);
    return HT_OK;
  }
  snprintf(g->detail, HT_REPORT_TEXT, "p'Ap = %.3e at iteration %lld, %.1e of ||A|| ||p||^2: zero to rounding", g->loop->state.pap,
           (long long)g->loop->state.iteration, curvature);
  finish(done, outcome, HT_SINGULAR);
  return HT_OK;
}

/* Whether the residual is a null vector of A to FP64: then no iterate can reduce it. */
static ht_status test_null_vector(ht_guard *g, int *is_null, double *ratio) {
  double norm_r, norm_ar;
  int64_t n = g->loop->op->n;
  g->loop->get_residual(g->loop, g->residual);
  HT_TRY(g->ctx, g->loop->op->apply(g->loop->op, NULL, g->residual, g->previous, NULL));
  norm_r = ht_norm2(g->ctx, g->certifier.backend, n, g->residual);
  norm_ar = ht_norm2(g->ctx, g->certifier.backend, n, g->previous);
  *ratio = norm_ar / (norm_r * g->certifier.norm_inf);
  *is_null = *ratio < 1e-13;
  return HT_OK;
}

static void ritz_extremes(const ht_guard *g, double *smallest, double *largest) {
  const ht_cg_state *s = &g->loop->state;
  int64_t steps = g->segment_end >= 0 ? g->segment_end : s->iteration;
  ht_ritz_extremes(steps < s->capacity ? steps : s->capacity, s->alphas, s->betas, g->ritz, smallest, largest);
}

/* A level's error must stay small against the smallest eigenvalue, which the Ritz values approach from above. When it no longer
 * is, the residual is made exact and the loop goes on, direction and all, under the fallback. */
static ht_status check_level(ht_guard *g) {
  static const double SAFE = 4; /* the 2-norm of random errors is about twice their largest column norm */
  double smallest, largest, norm, change;
  if (!g->policy.fallback || g->segment_end >= 0) return HT_OK;
  ritz_extremes(g, &smallest, &largest);
  if (!(smallest < SAFE * g->policy.error_start)) return HT_OK;
  give_up_level(g);
  HT_TRY(g->ctx, refresh(g, &norm, &change));
  replace(g, norm, change);
  return HT_OK;
}

static ht_status check_progress(ht_guard *g, int *done, ht_outcome *outcome) {
  const ht_cg_state *s = &g->loop->state;
  if (s->norm_r < g->best_norm && lowest_level(g) == HT_LEVEL_64) { /* below FP64 the loop's residual is no measure of x */
    g->loop->get_iterate(g->loop, g->best);
    g->best_norm = s->norm_r;
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
  if (idle % NULL_TEST_AFTER < CHECK_EVERY) HT_TRY(g->ctx, test_null_vector(g, &is_null, &ratio));
  if (is_null) {
    snprintf(g->detail, HT_REPORT_TEXT, "||A r|| = %.1e ||A|| ||r|| at iteration %lld: what remains of b is in the null space of A", ratio,
             (long long)s->iteration);
    finish(done, outcome, HT_SINGULAR);
    return HT_OK;
  }
  int64_t patience = 2 * n < 5000 ? 5000 : 2 * n < 50000 ? 2 * n : 50000;
  if (idle > patience) {
    snprintf(g->detail, HT_REPORT_TEXT, "no new low of the residual in the last %lld iterations", (long long)idle);
    finish(done, outcome, HT_STAGNATED);
  }
  return HT_OK;
}

/* The next pause: at the next check, or sooner where iterations are slow or a callback wants them all. Pauses change no bit. */
static void plan_pause(ht_guard *g, double elapsed) {
  int64_t iteration = g->loop->state.iteration, next = 1;
  if (!g->progress && iteration > 0) {
    double fit = POLL_EVERY_S * (double)iteration / elapsed;
    next = fit < 1 ? 1 : fit > CHECK_EVERY ? CHECK_EVERY : (int64_t)fit;
  }
  g->next_pause = iteration + next < g->next_check ? iteration + next : g->next_check;
}

static ht_status poll(ht_guard *g, double elapsed, int *done, ht_outcome *outcome) {
  const ht_cg_state *s = &g->loop->state;
  int stop = ht_stop_requested(g->ctx);
  if (g->progress) {
    int is_callers = !g->loop->plan && g->b != g->shifted; /* order and scale */
    ht_progress view = {s->iteration, s->norm_r / g->norm_b, elapsed, is_callers ? s->x : NULL};
    stop |= g->progress(g->progress_user, &view) != 0;
  }
  if (stop) {
    snprintf(g->detail, HT_REPORT_TEXT, "stopped on request after %lld iterations; the best iterate is kept", (long long)s->iteration);
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
  if (!*done && g->loop->state.iteration >= g->next_check) {
    g->next_check = g->loop->state.iteration + CHECK_EVERY;
    HT_TRY(g->ctx, check_level(g));
    HT_TRY(g->ctx, check_progress(g, done, outcome));
  }
  plan_pause(g, elapsed);
  return HT_OK;
}

static handler *const handlers[] = {
    [HT_CG_CONTINUE] = on_failed,     [HT_CG_REACHED] = on_reached,     [HT_CG_LIMIT] = on_limit,     [HT_CG_DECIDE] = on_decide,
    [HT_CG_CURVATURE] = on_breakdown, [HT_CG_NONFINITE] = on_breakdown, [HT_CG_DROPPED] = on_dropped, [HT_CG_GREW] = on_breakdown,
    [HT_CG_PAUSE] = on_pause,         [HT_CG_FAILED] = on_failed};

/* ---- the solve ---- */

static int64_t iteration_limit(const ht_guard *g) {
  if (g->options->max_iterations) return g->options->max_iterations;
  int64_t limit = 10 * g->loop->op->n;
  return limit < 1000 ? 1000 : limit > HT_MOST_DEFAULT_ITERATIONS ? HT_MOST_DEFAULT_ITERATIONS : limit;
}

static void set_events(ht_guard *g) {
  ht_cg_state *s = &g->loop->state;
  s->goal = g->options->stopping == HT_STOPPING_PAPER ? g->goal : fmax(g->goal * AIM, g->norm_b * LOWEST_AIM);
  s->replace_below = g->drop > 0 && g->drop * g->reference > s->goal ? g->drop * g->reference : -1;
  s->grow_above = lowest_level(g) < HT_LEVEL_64 ? 1e6 * g->reference : INFINITY;
  s->iteration_end = iteration_limit(g);
  s->decide_at = g->policy.decide && g->loop->op->blocks ? g->next_look : INT64_MAX;
  s->pause_at = g->next_pause;
}

static void begin(ht_guard *g, double norm) {
  ht_cg_state *s = &g->loop->state;
  g->floor = HT_LEVEL_16;
  g->policy = g->asked;
  g->interval = g->next_look = g->policy_interval;
  start_levels(g);
  g->drop = g->policy.replaces && g->options->stopping == HT_STOPPING_TRUE ? first_drop(lowest_level(g)) : 0;
  g->reference = g->lowest = norm;
  g->claimed = INFINITY;
  g->futile = 0;
  g->improved_at = 0;
  g->next_pause = g->progress ? 0 : 1;
  g->next_check = CHECK_EVERY;
  g->segment_end = -1;
  g->replacements = g->restores = 0;
  s->iteration = 0;
  s->fresh = 1;
  s->norm_r = s->history[0] = norm;
  memset(s->bytes_level, 0, sizeof s->bytes_level);
  for (int k = 0; k < HT_LEVEL_64; k++) s->error2[k] = NAN;
  g->loop->set_iterate(g->loop, g->x);
  g->loop->set_residual(g->loop, g->residual);
}

/* A converged solve leaves x and its residual as the certificate saw them, with its norm in `certified`. */
static ht_status iterate(ht_guard *g, ht_outcome *outcome, double *norm) {
  for (int done = 0; !done;) {
    set_events(g);
    ht_cg_event event = g->loop->run(g->loop);
    HT_TRY(g->ctx, handlers[event](g, event, &done, outcome));
    int missed = event != HT_CG_PAUSE && g->loop->state.iteration >= g->next_pause; /* a loop tells one event an iteration */
    if (missed && !done) HT_TRY(g->ctx, on_pause(g, event, &done, outcome));
  }
  *norm = g->certified;
  return HT_OK;
}

/* The better of the current and the best iterate goes to x, its true residual to g->residual. */
static ht_status keep_best(ht_guard *g, double *norm) {
  int64_t n = g->loop->op->n;
  double best = g->best_norm;
  if (best < INFINITY) HT_TRY(g->ctx, ht_certify(&g->certifier, g->best, g->b, g->residual, &best));
  g->loop->get_iterate(g->loop, g->x);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, norm));
  if (*norm <= best) return HT_OK;
  memcpy(g->x, g->best, (size_t)n * sizeof(double));
  return ht_certify(&g->certifier, g->x, g->b, g->residual, norm);
}

/* Entries of b and x0 must be finite, in the scale of the solve too; the outcome says which is not. */
static int find_non_finite(ht_guard *g, const double *v, int shift, const char *name) {
  for (int64_t i = 0; i < g->loop->op->n; i++)
    if (!isfinite(ldexp(v[i], shift))) {
      snprintf(g->detail, HT_REPORT_TEXT, "entry %lld of %s, counted from 1, is %g%s", (long long)i + 1, name, v[i],
               isfinite(v[i]) ? ", too large beside b" : "");
      return 1;
    }
  return 0;
}

static void fill_report(const ht_guard *g, double norm, ht_report *report) {
  const ht_cg_state *s = &g->loop->state;
  report->iterations = s->iteration;
  report->products = s->iteration + g->certifier.products;
  report->replacements = g->replacements;
  report->restores = g->restores;
  report->norm_b = g->norm_b;
  report->residual_true = norm / g->norm_b;
  report->residual_recursive = s->norm_r / g->norm_b;
  report->tolerance = g->goal / g->norm_b;
  report->backward_error = ht_backward_error(&g->certifier, g->x, g->b, g->residual);
  report->bytes_16 = s->bytes_level[HT_LEVEL_16];
  report->bytes_f32 = s->bytes_level[HT_LEVEL_32];
  report->bytes_f64 = s->bytes_level[HT_LEVEL_64] + (double)g->certifier.products * ht_certificate_bytes(&g->certifier);
  report->bytes_vectors = (double)s->iteration * g->loop->vector_bytes;
  ritz_extremes(g, &report->eigenvalue_min, &report->eigenvalue_max);
  report->condition_estimate = report->eigenvalue_max / report->eigenvalue_min;
  /* While the loop runs the history is absolute; readers get it relative to ||b||. */
  for (int64_t i = 0; i <= s->iteration && i < s->capacity; i++) s->history[i] /= g->norm_b;
  /* ||e||_A^2 = r'A^-1 r <= r'M^-1 r / lambda_min(M^-1 A), against x'Ax = x'(b - r). */
  const ht_backend *v = g->certifier.backend;
  double energy = v->dot(g->ctx, g->loop->op->n, g->x, g->b) - v->dot(g->ctx, g->loop->op->n, g->x, g->residual);
  double rz = s->rz * (norm / s->norm_r) * (norm / s->norm_r);
  report->error_estimate = sqrt(rz / report->eigenvalue_min / energy);
}

/* b = 0 has the solution 0, for every tolerance. */
static void solve_zero(ht_guard *g, ht_report *report) {
  memset(g->x, 0, (size_t)g->loop->op->n * sizeof(double));
  g->loop->state.iteration = 0;
  g->loop->state.history[0] = 0;
  report->outcome = HT_CONVERGED;
  report->iterations = report->products = report->replacements = report->restores = 0;
  report->norm_b = report->residual_true = report->residual_recursive = report->residual_initial = report->backward_error = 0;
}

/* r'r is of the size ||b||^2 and r'M^-1 r of ||b||^2 / ||A||, and both fall by rtol^2. A power of two on b and x keeps both far
 * from the ends of the range; 0 where that is no question. A norm may overflow where no entry does. */
static int choose_shift(const ht_guard *g) {
  int64_t n = g->loop->op->n;
  double size = isfinite(g->norm_b) ? log2(g->norm_b) : log2(ht_norm_inf(n, g->b)) + log2((double)n) / 2;
  double centre = 2 * size - (isfinite(g->certifier.norm_inf) ? log2(g->certifier.norm_inf) / 2 : 0);
  return fabs(centre) > 200 && isfinite(centre) ? (int)(-centre / 2) : 0;
}

static void shift_vector(int64_t n, const double *from, double *to, int shift) {
  for (int64_t i = 0; i < n; i++) to[i] = ldexp(from[i], shift);
}

/* b - A x of the start; x = 0, the usual one, needs no product. */
static ht_status first_residual(ht_guard *g, double *norm) {
  int64_t n = g->loop->op->n;
  if (ht_norm_inf(n, g->x) > 0) {
    HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, norm));
    return HT_OK;
  }
  memcpy(g->residual, g->b, (size_t)n * sizeof(double));
  *norm = g->norm_b;
  return HT_OK;
}

/* The caller's scale may not hold x: entries overflow or lose digits there. What is certified is what the caller gets. */
static ht_status round_iterate(ht_guard *g, int shift, ht_report *report, double *norm) {
  int64_t changed = -1;
  for (int64_t i = 0; i < g->loop->op->n; i++) {
    double rounded = ldexp(ldexp(g->x[i], -shift), shift);
    if (rounded != g->x[i]) changed = i;
    g->x[i] = rounded;
  }
  if (changed < 0) return HT_OK;
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, norm));
  if (report->outcome != HT_CONVERGED || meets_goal(g, *norm)) return HT_OK;
  snprintf(g->detail, HT_REPORT_TEXT,
           "the solution leaves the range of FP64, at entry %lld, counted from 1, among others; scale the system", (long long)changed + 1);
  report->outcome = isfinite(*norm) ? HT_ATTAINABLE_ACCURACY : HT_NON_FINITE;
  return HT_OK;
}

static ht_status solve_shifted(ht_guard *g, int shift, ht_report *report) {
  double norm;
  HT_TRY(g->ctx, first_residual(g, &norm));
  report->residual_initial = norm / g->norm_b;
  if (g->options->stopping == HT_STOPPING_PAPER) g->goal = g->options->rtol * norm;
  begin(g, norm);
  memcpy(g->best, g->x, (size_t)g->loop->op->n * sizeof(double));
  g->best_norm = norm;
  if (!meets_goal(g, norm)) {
    HT_TRY(g->ctx, iterate(g, &report->outcome, &norm));
    if (report->outcome != HT_CONVERGED) HT_TRY(g->ctx, keep_best(g, &norm));
  }
  if (meets_goal(g, norm)) report->outcome = HT_CONVERGED;
  if (shift) HT_TRY(g->ctx, round_iterate(g, shift, report, &norm));
  fill_report(g, norm, report);
  return HT_OK;
}

ht_status ht_guard_solve(ht_guard *g, const double *b, double *x, ht_report *report) {
  int64_t n = g->loop->op->n;
  g->b = b;
  g->x = x;
  g->detail = report->detail;
  g->started = ht_seconds();
  g->best_norm = INFINITY;
  g->certifier.products = 0;
  g->certifier.time_s = 0;
  g->norm_b = ht_norm2(g->ctx, g->certifier.backend, n, b);
  int bad = find_non_finite(g, b, 0, "b"), shift = bad || g->norm_b == 0 ? 0 : choose_shift(g);
  if (bad || find_non_finite(g, x, shift, "x0")) {
    report->outcome = HT_NON_FINITE;
    g->loop->state.iteration = -1; /* no history */
  } else if (g->norm_b == 0) {
    solve_zero(g, report);
  } else {
    double norm_b = g->norm_b;
    if (shift) {
      shift_vector(n, b, g->shifted, shift);
      shift_vector(n, x, x, shift);
      g->b = g->shifted;
      g->norm_b = ht_norm2(g->ctx, g->certifier.backend, n, g->b);
    }
    g->goal = fmax(g->options->rtol * g->norm_b, ldexp(g->options->atol, shift));
    HT_TRY(g->ctx, solve_shifted(g, shift, report));
    if (shift) shift_vector(n, x, x, -shift);
    report->norm_b = norm_b;
  }
  report->time_solve_s = ht_seconds() - g->started;
  report->time_certificate_s = g->certifier.time_s;
  return HT_OK;
}

ht_status ht_guard_allocate(ht_guard *g, int64_t n) {
  double **work[] = {&g->residual, &g->previous, &g->best, &g->shifted};
  for (size_t k = 0; k < sizeof work / sizeof *work; k++) HT_TRY(g->ctx, ht_allocate(g->ctx, n, sizeof(double), work[k]));
  HT_TRY(g->ctx, ht_allocate(g->ctx, 2 * g->loop->state.capacity, sizeof(double), &g->ritz));
  return HT_OK;
}

void ht_guard_release(ht_guard *g) {
  double **work[] = {&g->residual, &g->previous, &g->best, &g->shifted, &g->ritz};
  for (size_t k = 0; k < sizeof work / sizeof *work; k++) {
    ht_release(g->ctx, *work[k]);
    *work[k] = NULL;
  }
}
