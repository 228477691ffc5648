/* The guard: one solve. Read ht_guard_solve near the end first; guard_events.c says what is done at the events of the loop.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solver/guard.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Iterations between two looks at level and progress. An engine on a device waits for the host while it looks: it is asked less often,
 * but where a low level is on trial. */
enum { CHECK_EVERY = 64, ENGINE_CHECK_EVERY = 512, ENGINE_FIRST_PAUSE = 256 };

/* The loop aims slightly below the goal, because the true residual it is judged by differs in the last digits. */
static const double AIM = 0.995;
/* Below this share of ||b|| the loop's residual says nothing that the true one could follow, and its squares would underflow. */
static const double LOWEST_AIM = DBL_EPSILON * DBL_EPSILON;

/* An engine's first pause comes before it is known how long iterations take: after as many nonzeros as an H200 reads in 0.1 s at FP64. */
static int64_t first_pause(const ht_guard *g) {
  static const double NONZEROS = 4e10;
  double fit = NONZEROS / fmax(g->known->nonzeros, 1);
  return fit < 1 ? 1 : fit < ENGINE_FIRST_PAUSE ? (int64_t)fit : ENGINE_FIRST_PAUSE;
}

static int64_t iteration_limit(const ht_guard *g) {
  if (g->options->max_iterations) return g->options->max_iterations;
  int64_t limit = 10 * g->loop->op->n;
  return limit < 1000 ? 1000 : limit > HT_MOST_DEFAULT_ITERATIONS ? HT_MOST_DEFAULT_ITERATIONS : limit;
}

/* A learned policy on the device looks where a direction is new, and then as often as it is asked to. */
static void plan_unseen_look(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  if (s->fresh) g->next_look = s->iteration;
  while (!s->fresh && g->next_look <= s->iteration) g->next_look += g->policy_interval;
}

/* A trace tells what each look changed: then a run ends where the next one is due. */
static int64_t next_pause(const ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  int64_t look = s->fresh && !g->policy.window ? s->iteration + g->policy_interval : g->next_look;
  int must_look = ht_guard_looks_at_pauses(g) || (g->recorder && ht_guard_decides_unseen(g));
  return must_look && look < g->next_pause ? look : g->next_pause;
}

static void set_events(ht_guard *g) {
  ht_cg_state *s = &g->loop->state;
  int unseen = ht_guard_decides_unseen(g), blind = g->policy.rule == HT_DECIDE_LEARNED && !unseen; /* FP64 alone is left to it */
  if (unseen) plan_unseen_look(g);
  s->replaced = 0;
  s->goal = g->options->stopping == HT_STOPPING_PAPER ? g->goal : fmax(g->goal * AIM, g->norm_b * LOWEST_AIM);
  int mends = g->options->guard;
  ht_guard_plan_replacement(g);
  s->replacing = g->replacing;
  s->replace_below =
      mends ? fmax(g->take_up_below, ht_replacing_below(&g->replacing, s->goal)) : g->take_up_below; /* a level that waits is no mending */
  s->grow_above = mends && ht_guard_lowest_level(g) < HT_LEVEL_64 ? ht_replacing_grown(&g->replacing) : INFINITY;
  int decides = g->policy.decide || (g->policy.window && !ht_guard_looks_at_pauses(g));
  s->decide_at = decides && g->loop->op->blocks && !blind ? g->next_look : INT64_MAX;
  s->decide_rule = g->loop->decides && !blind ? g->policy.rule : HT_DECIDE_HOST;
  s->decide_every = g->policy_interval;
  s->theta = g->policy.theta;
  s->eta = g->policy.eta;
  s->target = g->goal;
  s->floor = g->floor;
  s->pause_at = next_pause(g);
}

static int watches_error(const ht_guard *g) {
  return g->policy.error_start > 0 || (g->policy.window && g->policy.by_rule->error_start > 0);
}

/* A policy of the kind window is asked before there is a direction, by what is known of the matrix. The budget wants to see one, and is
 * asked for again then. */
static void ask_before_start(ht_guard *g) {
  ht_guard_consult_policy(g);
  g->looks = 0; /* nothing was looked at */
  if (g->by_budget) g->next_look = 0;
}

static void begin(ht_guard *g, double norm) {
  ht_cg_state *s = &g->loop->state;
  g->floor = HT_LEVEL_16;
  g->policy = g->asked;
  g->interval = g->policy_interval;
  g->next_look = g->policy.interval ? 0 : g->policy_interval; /* a learned policy knows of no start but its own */
  g->looks = 0;
  g->by_budget = g->by_rule = g->rule_failed = g->has_left = g->action = 0;
  g->asked_drop = 0;
  g->asked_window = 0;
  ht_guard_start_levels(g);
  ht_guard_note_levels(g);
  ht_guard_begin_drop(g);
  g->replacing.reference = g->replacing.watched = g->lowest = norm;
  g->replacing.replaced = 0;
  g->take_up_below = g->policy.later_drop > 0 ? g->policy.later_drop * norm : -1;
  g->claimed = INFINITY;
  g->futile = 0;
  g->improved_at = 0;
  int seldom = g->loop->decides && !watches_error(g) && (!g->policy.by_network || g->policy.window || ht_guard_decides_unseen(g));
  g->check_every = seldom ? ENGINE_CHECK_EVERY : CHECK_EVERY;
  g->next_check = ht_guard_decides_unseen(g) ? ENGINE_FIRST_PAUSE : g->check_every;
  g->settle_at = -1;
  g->lowest_used = HT_LEVEL_64;
  g->shares_seen = 0;
  g->left_to_f64 = 0;
  s->iteration_end = iteration_limit(g);
  g->next_pause = g->progress ? 0 : g->loop->decides ? first_pause(g) : 1;
  if (ht_guard_next_share(g) < g->next_pause) g->next_pause = ht_guard_next_share(g);
  g->segment_end = -1;
  g->gap = g->gap_borne = g->ritz_smallest = g->ritz_largest = NAN;
  g->ritz_steps = 0;
  g->owed = 0;
  g->looked_at = 0;
  g->falls = 0;
  g->falls_seen = 0;
  g->plateaus = 0;
  g->replacements = g->restores = g->seen_after = 0;
  /* what was averaged for the operator certifies nothing */
  g->unaided = !g->certifier.csr && g->loop->calls->set_right_side && g->loop->calls->set_right_side(g->loop, g->b);
  s->iteration = 0;
  s->fresh = 1;
  s->norm_r = s->history[0] = norm;
  s->alpha = s->beta = NAN; /* until a step is made */
  memset(s->bytes_level, 0, sizeof s->bytes_level);
  for (int k = 0; k < HT_LEVEL_64; k++) s->error2[k] = NAN;
  g->loop->calls->set_iterate(g->loop, g->x);
  g->loop->calls->set_residual(g->loop, g->residual);
  if (g->policy.window && g->loop->op->blocks) ask_before_start(g);
}

/* Levels that a device changed in the run before are told here too, and with them the reason. */
static void record_levels(const ht_guard *g, int64_t iteration) {
  int rule = g->loop->state.decide_rule, on_device = rule != HT_DECIDE_HOST && rule != HT_DECIDE_LEARNED;
  ht_recorder_levels(g->recorder, iteration, g->loop->block_level, on_device ? HT_TRACE_DEVICE : HT_TRACE_POLICY);
}

static void record_time(const ht_guard *g) {
  if (g->recorder) ht_recorder_time(g->recorder, g->loop->state.iteration, ht_seconds() - g->started);
}

/* A converged solve leaves x and its residual as the certificate saw them, with its norm in `certified`. */
static ht_status iterate(ht_guard *g, ht_outcome *outcome, double *norm) {
  const ht_cg_state *s = &g->loop->state;
  for (int done = 0; !done;) {
    set_events(g);
    int64_t product = s->iteration + !s->fresh;
    int unseen = s->decide_rule == HT_DECIDE_LEARNED;
    if (!unseen) record_levels(g, product);
    ht_cg_event event = g->loop->calls->run(g->loop);
    HT_TRY(g->ctx, g->certifier.backend->failed(g->ctx));
    ht_guard_follow_replacements(g);
    if (unseen) ht_guard_follow_unseen(g);
    if (unseen) record_levels(g, product);
    ht_guard_note_lowest(g);
    record_time(g);
    HT_TRY(g->ctx, ht_guard_handle(g, event, &done, outcome));
  }
  record_levels(g, s->iteration);
  *norm = g->certified;
  return HT_OK;
}

/* The better of the current and the best iterate goes to x, its true residual to g->residual, and is what the report tells. */
static ht_status keep_best(ht_guard *g, double *norm) {
  int64_t n = g->loop->op->n;
  double best = g->best_norm;
  ht_guard_fetch_best(g);
  if (best < INFINITY) HT_TRY(g->ctx, ht_certify(&g->certifier, g->best, g->b, g->residual, 0, NULL, &best));
  g->loop->calls->get_iterate(g->loop, g->x);
  HT_TRY(g->ctx, ht_certify_closely(&g->certifier, g->x, g->b, g->residual, norm));
  if (*norm <= best) return HT_OK;
  g->certifier.backend->copy(g->ctx, n, g->best, g->x);
  return ht_certify_closely(&g->certifier, g->x, g->b, g->residual, norm);
}

/* Entries of b and x0 must be finite, in the scale of the solve too; the outcome says which is not. size: the
 * vector's largest entry. */
static ht_status find_non_finite(ht_guard *g, const double *vector, double size, const char *name, int *found) {
  const double *v;
  int64_t n = g->loop->op->n;
  *found = 0;
  if (isfinite(ldexp(size, g->shift))) return HT_OK;
  HT_TRY(g->ctx, ht_guard_look(g, vector, &v));
  for (int64_t i = 0; i < n && !*found; i++) {
    *found = !isfinite(ldexp(v[i], g->shift));
    if (*found)
      snprintf(g->detail, HT_REPORT_TEXT, "entry %lld of %s, counted from 1, is %g%s", (long long)i + 1, name, v[i],
               isfinite(v[i]) ? ", too large beside b" : "");
  }
  return HT_OK;
}

static void fill_report(ht_guard *g, double norm, ht_report *report) {
  const ht_cg_state *s = &g->loop->state;
  ht_guard_measure(g);
  report->iterations = s->iteration;
  report->products = s->iteration + g->certifier.products + g->seen_after;
  report->replacements = g->replacements;
  report->restores = g->restores;
  report->left_to_f64 = g->left_to_f64;
  report->norm_b = g->norm_b;
  report->residual_true = norm / g->norm_b;
  report->residual_recursive = s->norm_r / g->norm_b;
  report->tolerance = g->goal / g->norm_b;
  report->backward_error = ht_guard_backward_error(g);
  report->bytes_16 = s->bytes_level[HT_LEVEL_16];
  report->bytes_f32 = s->bytes_level[HT_LEVEL_32];
  report->bytes_f64 = s->bytes_level[HT_LEVEL_64] + (double)g->certifier.products * ht_certificate_bytes(&g->certifier);
  report->bytes_vectors = (double)s->iteration * g->loop->vector_bytes;
  ht_guard_ritz_extremes(g, &report->eigenvalue_min, &report->eigenvalue_max);
  report->condition_estimate = report->eigenvalue_max / report->eigenvalue_min;
  /* While the loop runs the history is absolute; readers get it relative to ||b||. */
  for (int64_t i = 0; i <= s->iteration && i < s->capacity; i++) s->history[i] /= g->norm_b;
  /* ||e||_A^2 = r'A^-1 r <= r'M^-1 r / lambda_min(M^-1 A), against x'Ax = x'(b - r). */
  double energy = g->facts[HT_FACT_XB].result - g->facts[HT_FACT_XR].result;
  double rz = s->rz * (norm / s->norm_r) * (norm / s->norm_r);
  report->error_estimate = sqrt(rz / report->eigenvalue_min / energy);
}

/* b = 0 has the solution 0, for every tolerance. */
static void solve_zero(ht_guard *g, ht_report *report) {
  g->certifier.backend->copy(g->ctx, g->loop->op->n, g->b, g->x);
  g->loop->state.iteration = 0;
  g->loop->state.history[0] = 0;
  report->outcome = HT_CONVERGED;
  report->iterations = report->products = report->replacements = report->restores = report->left_to_f64 = 0;
  report->norm_b = report->residual_true = report->residual_recursive = report->residual_initial = report->backward_error = 0;
}

/* r'r is of the size ||b||^2 and r'M^-1 r of ||b||^2 / ||A||, and both fall by rtol^2. A power of two on b and x keeps both far
 * from the ends of the range, and the direction within FP32's, where an engine may keep it; 0 where that is no question. A norm may
 * overflow where no entry does. */
static int choose_shift(const ht_guard *g) {
  double size = isfinite(g->norm_b) ? log2(g->norm_b) : log2(g->b_norm_inf) + log2((double)g->loop->op->n) / 2;
  double centre = 2 * size - (isnan(g->certifier.norm_inf) ? 0 : fmin(log2(g->certifier.norm_inf), DBL_MAX_EXP) / 2);
  return fabs(centre) > 80 && isfinite(centre) ? (int)(-centre / 2) : 0;
}

int ht_guard_starts_from_zero(const ht_guard *g) { return !(ldexp(g->x0_norm_inf, g->shift) > 0); }

/* b - A x of the start; x = 0, the usual one, needs no product. */
static ht_status first_residual(ht_guard *g, double *norm) {
  if (!ht_guard_starts_from_zero(g)) {
    HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, 0, NULL, norm));
    return HT_OK;
  }
  g->certifier.backend->copy(g->ctx, g->loop->op->n, g->b, g->residual);
  *norm = g->norm_b;
  return HT_OK;
}

/* The last entry that two vectors differ in, or -1. */
static ht_status last_difference(ht_guard *g, double *a, const double *b, int64_t *where) {
  const double *entries;
  int64_t n = g->loop->op->n;
  *where = -1;
  g->certifier.backend->axpy(g->ctx, n, -1, b, a);
  HT_TRY(g->ctx, ht_guard_look(g, a, &entries));
  for (int64_t i = 0; i < n; i++)
    if (entries[i] != 0) *where = i;
  return HT_OK;
}

/* The caller's scale may not hold x: entries overflow or lose digits there. What is certified is what the caller gets, and an x that is
 * not finite there is nothing, however the solve ended. */
static ht_status round_iterate(ht_guard *g, ht_report *report, double *norm) {
  const ht_backend *v = g->certifier.backend;
  int64_t n = g->loop->op->n, changed;
  v->copy(g->ctx, n, g->x, g->previous);
  v->shift(g->ctx, n, -g->shift, g->x, g->x);
  v->shift(g->ctx, n, g->shift, g->x, g->x);
  HT_TRY(g->ctx, last_difference(g, g->previous, g->x, &changed));
  if (changed < 0) return HT_OK;
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, 0, NULL, norm));
  int finite = isfinite(v->norm_inf(g->ctx, n, g->x));
  if (finite && (report->outcome != HT_CONVERGED || ht_guard_meets_goal(g, *norm))) return HT_OK;
  snprintf(g->detail, HT_REPORT_TEXT,
           "the solution leaves the range of FP64, at entry %lld, counted from 1, among others; scale the system", (long long)changed + 1);
  report->outcome = finite ? HT_ATTAINABLE_ACCURACY : HT_NON_FINITE;
  return HT_OK;
}

/* Where rounding is all that is left, neither more iterations nor a better preconditioner would help. */
static void judge_rounding(ht_guard *g, ht_report *report) {
  if (report->outcome != HT_ITERATION_LIMIT && report->outcome != HT_STAGNATED) return;
  ht_guard_measure(g);
  if (ht_guard_is_at_rounding(g)) report->outcome = HT_ATTAINABLE_ACCURACY;
}

static void set_goal(ht_guard *g, double norm) {
  g->goal = fmax(g->options->rtol * norm, ldexp(g->options->atol, g->shift));
  g->certifier.goal = g->goal;
}

static ht_status solve_in_scale(ht_guard *g, ht_report *report) {
  double norm;
  HT_TRY(g->ctx, first_residual(g, &norm));
  report->residual_initial = norm / g->norm_b;
  if (g->options->stopping == HT_STOPPING_PAPER) set_goal(g, norm);
  begin(g, norm);
  if (g->best_written || !ht_guard_starts_from_zero(g)) {
    g->certifier.backend->copy(g->ctx, g->loop->op->n, g->x, g->best);
    g->best_written = 1;
  }
  g->best_norm = norm;
  g->best_in_loop = 0;
  ht_recorder_residual(g->recorder, 0, norm / g->norm_b, HT_TRACE_START);
  record_time(g);
  if (!ht_guard_meets_goal(g, norm)) {
    HT_TRY(g->ctx, iterate(g, &report->outcome, &norm));
    if (report->outcome != HT_CONVERGED) {
      HT_TRY(g->ctx, keep_best(g, &norm));
      judge_rounding(g, report);
      ht_recorder_residual(g->recorder, g->loop->state.iteration, norm / g->norm_b, HT_TRACE_END);
    }
  }
  if (ht_guard_meets_goal(g, norm)) report->outcome = HT_CONVERGED;
  if (g->shift) HT_TRY(g->ctx, round_iterate(g, report, &norm));
  fill_report(g, norm, report);
  return HT_OK;
}

/* Around the solve: b and x in its scale, and x back again, after an error too. */
static ht_status solve_shifted(ht_guard *g, ht_report *report) {
  const ht_backend *v = g->certifier.backend;
  int64_t n = g->loop->op->n;
  double norm_b = g->norm_b;
  if (g->shift) {
    v->shift(g->ctx, n, g->shift, g->b, g->own_b);
    v->shift(g->ctx, n, g->shift, g->x, g->x);
    g->b = g->own_b;
    g->norm_b = ht_norm2(&g->certifier, g->b);
  }
  set_goal(g, g->norm_b);
  ht_status status = solve_in_scale(g, report);
  if (g->shift) v->shift(g->ctx, n, -g->shift, g->x, g->x);
  report->norm_b = norm_b;
  if (status != HT_OK) return ht_trace(g->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* A part of b that A cannot reach and that the tolerance does not cover. */
static ht_status is_inconsistent(ht_guard *g, ht_report *report, int *found) {
  const double *b;
  *found = 0;
  if (!g->matrix || (!g->null_space->empty_rows && !g->null_space->constant)) return HT_OK;
  HT_TRY(g->ctx, ht_guard_look(g, g->b, &b));
  double part = ht_null_space_part(g->null_space, g->matrix, b, g->detail, HT_REPORT_TEXT);
  *found = part > fmax(g->options->rtol * g->norm_b, g->options->atol);
  if (*found)
    report->outcome = isfinite(part) ? HT_SINGULAR : HT_NON_FINITE;
  else
    g->detail[0] = 0;
  return HT_OK;
}

static ht_status solve_placed(ht_guard *g, ht_report *report) {
  int refused, bad;
  ht_reduction sums[] = {{HT_DOT, g->b, g->b, 0}, {HT_NORM_INF, g->b, NULL, 0}, {HT_NORM_INF, g->x, NULL, 0}};
  g->certifier.backend->reduce(g->ctx, g->loop->op->n, 3, sums);
  g->norm_b = ht_norm2_of_square(&g->certifier, g->b, sums[0].result);
  g->b_norm_inf = sums[1].result;
  g->x0_norm_inf = sums[2].result;
  HT_TRY(g->ctx, is_inconsistent(g, report, &refused));
  if (refused) {
    report->iterations = 0;
    report->norm_b = g->norm_b;
    g->loop->state.iteration = -1; /* no history */
    return HT_OK;
  }
  HT_TRY(g->ctx, find_non_finite(g, g->b, g->b_norm_inf, "b", &bad));
  g->shift = bad || g->norm_b == 0 ? 0 : choose_shift(g);
  if (!bad) HT_TRY(g->ctx, find_non_finite(g, g->x, g->x0_norm_inf, "x0", &bad));
  if (bad) {
    report->outcome = HT_NON_FINITE;
    g->loop->state.iteration = -1;
  } else if (g->norm_b == 0) {
    solve_zero(g, report);
  } else {
    HT_TRY(g->ctx, solve_shifted(g, report));
  }
  HT_TRY(g->ctx, g->certifier.backend->failed(g->ctx));
  return HT_OK;
}

/* The caller's vectors where the backend reaches them, else copies. */
static ht_status place(ht_guard *g, const double *b, double *x) {
  const ht_backend *v = g->certifier.backend;
  int64_t bytes = g->loop->op->n * (int64_t)sizeof(double);
  g->b = v->reaches(g->ctx, b) ? b : g->own_b;
  g->x = v->reaches(g->ctx, x) ? x : g->own_x;
  if (g->b != b) HT_TRY(g->ctx, v->upload(g->ctx, bytes, b, g->own_b));
  if (g->x != x) HT_TRY(g->ctx, v->upload(g->ctx, bytes, x, g->own_x));
  return HT_OK;
}

ht_status ht_guard_solve(ht_guard *g, const double *b, double *x, ht_report *report) {
  g->detail = report->detail;
  g->started = ht_seconds();
  g->best_norm = INFINITY;
  g->facts_of = -1;
  g->shift = 0;
  g->certifier.products = 0;
  g->certifier.time_s = 0;
  ht_recorder_begin(g->recorder);
  HT_TRY(g->ctx, place(g, b, x));
  HT_TRY(g->ctx, solve_placed(g, report));
  if (g->x != x) HT_TRY(g->ctx, g->certifier.backend->download(g->ctx, g->loop->op->n * (int64_t)sizeof(double), g->x, x));
  report->time_solve_s = ht_seconds() - g->started;
  report->time_certificate_s = g->certifier.time_s;
  return HT_OK;
}

ht_status ht_guard_look(ht_guard *g, const double *vector, const double **entries) {
  *entries = g->host ? g->host : vector;
  if (g->host) HT_TRY(g->ctx, g->certifier.backend->download(g->ctx, g->loop->op->n * (int64_t)sizeof(double), vector, g->host));
  return HT_OK;
}

ht_status ht_guard_allocate(ht_guard *g, int averaged) {
  const ht_backend *v = g->loop->op->backend;
  double **work[] = {&g->residual, &g->previous, &g->best, &g->own_b, &g->own_x};
  enum { WORK = sizeof work / sizeof *work, ALIGNED = 32 /* doubles: 256 bytes */ };
  int64_t n = g->loop->op->n, apart = (n + ALIGNED - 1) / ALIGNED * ALIGNED;
  int remote = !ht_backend_is_host(g->ctx, v), count = remote ? WORK : WORK - 1;
  HT_TRY(g->ctx, ht_certifier_init(&g->certifier, g->ctx, g->matrix, averaged, g->loop->op));
  HT_TRY(g->ctx,
         v->memory_create(g->ctx, count * apart * (int64_t)sizeof(double), &g->work)); /* at once: on a device each takes its time */
  for (int k = 0; k < count; k++) *work[k] = g->work + k * apart;
  if (remote) HT_TRY(g->ctx, ht_allocate(g->ctx, n, sizeof(double), &g->host));
  HT_TRY(g->ctx, ht_allocate(g->ctx, 2 * g->loop->state.capacity, sizeof(double), &g->ritz));
  return HT_OK;
}

void ht_guard_release(ht_guard *g) {
  double **host[] = {&g->host, &g->ritz};
  if (g->work) g->certifier.backend->memory_release(g->ctx, g->work);
  g->work = g->residual = g->previous = g->best = g->own_b = g->own_x = NULL;
  for (size_t k = 0; k < sizeof host / sizeof *host; k++) {
    ht_release(g->ctx, *host[k]);
    *host[k] = NULL;
  }
  ht_certifier_release(&g->certifier);
  ht_recorder_release(g->recorder);
  g->recorder = NULL;
  ht_policy_release(g->ctx, &g->asked);
}
