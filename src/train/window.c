/* Training of policies of the kind window. SPDX-License-Identifier: BSD-3-Clause */
#include "train/window.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/random.h"
#include "solver/chooser.h"

/* ---- an episode ---- */

static double sum_of(const double *bytes) {
  double sum = 0;
  for (int level = 0; level < HT_LEVELS; level++) sum += bytes[level];
  return sum;
}

/* The last action has brought the solve to here. */
static void settle(ht_window_worker *w, const ht_stand *now) {
  double reward = ht_price_step(&w->price, &w->stand, now);
  w->total += reward;
  if (w->packed && w->count > w->begun) w->reward[w->count - 1] += (float)reward;
  w->stand = *now;
}

static int sample_action(ht_window_worker *w, const ht_policy_look *look) {
  const ht_packed *packed = w->packed;
  float *y = w->rows.activation[HT_PACKED_LAYERS];
  memcpy(w->rows.activation[0], look->feature, HT_FEATURES * sizeof(float));
  ht_packed_forward(packed, 1, &w->rows);
  ht_learning_log_softmax(packed->actions, y);
  double u = (ht_random_uniform(w->seed, (uint64_t)(w->count - w->begun)) + 1) / 2;
  int action = ht_learning_sample(packed->actions, y, u);
  if (w->count == w->room) return 0; /* cannot be: room is made for every look that there can be */
  memcpy(w->state + w->count * HT_FEATURES, look->feature, HT_FEATURES * sizeof(float));
  w->action[w->count] = (uint8_t)action;
  w->log_probability[w->count] = y[action];
  w->value[w->count] = y[packed->actions];
  w->reward[w->count++] = 0;
  return action;
}

int ht_window_choose(void *user, const ht_policy_look *look) {
  ht_window_worker *w = user;
  if (!w->packed && !w->network) return 0;
  if (!w->stand.looks) w->norm = look->residual;
  ht_stand now = {.iterations = look->iteration,
                  .exact_products = look->exact_products,
                  .looks = w->stand.looks + 1,
                  .bytes = sum_of(look->bytes),
                  .progress = fmax(w->stand.progress, ht_price_progress(&w->price, look->residual / w->norm))};
  if (w->stand.looks)
    settle(w, &now);
  else
    w->stand.looks = 1; /* what comes before the first look is the first action's */
  return w->packed ? sample_action(w, look) : ht_policy_likeliest(w->network, look->feature);
}

static void solve(const ht_window *r, ht_window_worker *w, int right_side) {
  const ht_report *report = &w->report;
  ht_right_side(w->matrix, r->options, (uint64_t)right_side, w->b);
  memset(w->x, 0, (size_t)w->price.n * sizeof *w->x);
  w->price.fallen = w->fallen[right_side];
  w->price.iterations_64 = w->iterations_64[right_side];
  w->stand = (ht_stand){0};
  w->total = 0;
  w->begun = w->count;
  w->status = ht_solver_solve(w->solver, 1, w->b, w->x, &w->report);
  if (w->status != HT_OK || (!w->packed && !w->network)) return;
  int reached = report->outcome == HT_CONVERGED;
  ht_stand end = {.iterations = report->iterations,
                  .exact_products = report->products - report->iterations,
                  .looks = w->stand.looks,
                  .bytes = sum_of(ht_solver_bytes(w->solver)),
                  .progress = reached ? (double)w->price.iterations_64 : ht_price_progress(&w->price, report->residual_true)};
  settle(w, &end);
  if (reached) return;
  double missed = ht_price_missed(&w->price, &end);
  w->total -= missed;
  if (w->packed && w->count > w->begun) w->reward[w->count - 1] -= (float)missed;
}

/* What a choice is worth differs a hundredfold between matrices. So that none drowns the others, rewards are taken by how much the earnings
 * of its solves have varied, where that is much. */
static double scale_of(const ht_window_worker *w) {
  static const double LEAST = 0.2, UNKNOWN = 0.3;
  enum { KNOWN = 4 };
  double deviation = sqrt(fmax(w->square - w->mean * w->mean, 0));
  return 1 / (w->episodes <= KNOWN ? UNKNOWN : fmax(deviation, LEAST));
}

static void remember(ht_window_worker *w) {
  static const double OLD = 0.95;
  double old = fmin(OLD, 1 - 1 / (double)w->episodes);
  w->mean = old * w->mean + (1 - old) * w->total;
  w->square = old * w->square + (1 - old) * w->total * w->total;
}

/* Generalised advantage estimate (Schulman et al. 2016), back from the end. */
static void estimate_advantages(const ht_train_options *o, ht_window_worker *w) {
  double next = 0, advantage = 0, scale = scale_of(w);
  for (int64_t t = w->count - 1; t >= w->begun; t--) {
    advantage = scale * w->reward[t] + o->gamma * next - w->value[t] + o->gamma * o->gae_lambda * advantage;
    w->advantage[t] = (float)advantage;
    w->target[t] = (float)(advantage + w->value[t]);
    next = w->value[t];
  }
}

/* The cache that a sampled solve believes in, since matrices to learn from are small: four of five solves stream 1 to 30 times as many
 * bytes, the others less, down to a three hundredth. */
static double cache_of(const ht_window_worker *w, uint64_t seed) {
  static const double LARGE = 0.8, LARGEST = 1.5, SMALLEST = 2.5;
  double u = (ht_random_uniform(seed, UINT64_MAX) + 1) / 2,
         decades = u < LARGE ? -LARGEST * u / LARGE : SMALLEST * (u - LARGE) / (1 - LARGE);
  return ht_solver_facts(w->solver)->bytes_streamed * pow(10, decades);
}

static void collect(const ht_window *r, int k, const ht_packed *packed) {
  ht_window_worker *w = &r->worker[k];
  w->count = w->finished_count = 0;
  w->packed = packed;
  w->network = NULL;
  while (w->count < r->quota && w->status == HT_OK && !w->idle) {
    int64_t number = k + r->workers * w->episodes++;
    w->seed = ht_random_bits((uint64_t)r->options->seed, (uint64_t)number);
    w->status = ht_solver_pretend_cache(w->solver, cache_of(w, w->seed));
    if (w->status != HT_OK) return;
    solve(r, w, 1 + (int)(ht_random_bits(w->seed, 1) % (HT_WINDOW_RIGHT_SIDES - 1)));
    estimate_advantages(r->options, w);
    remember(w);
    w->finished[w->finished_count++] = (ht_episode){number, w->report.iterations, w->total};
  }
}

/* ---- all workers ---- */

ht_status ht_window_failure(ht_window *r) {
  for (int k = 0; k < r->workers; k++) {
    ht_status status = r->worker[k].status;
    if (status != HT_OK) HT_FAIL(r->ctx, status, "%s", ht_context_error(r->worker[k].ctx));
  }
  return HT_OK;
}

static void gather(ht_window *r) {
  int64_t at = 0;
  ht_ppo_batch *b = &r->batch;
  r->finished_count = 0;
  for (int k = 0; k < r->workers; k++) {
    const ht_window_worker *w = &r->worker[k];
    size_t count = (size_t)w->count, numbers = count * sizeof(float);
    memcpy(b->state + at * HT_FEATURES, w->state, numbers * HT_FEATURES);
    memcpy(b->action + at, w->action, count);
    memcpy(b->log_probability + at, w->log_probability, numbers);
    memcpy(b->advantage + at, w->advantage, numbers);
    memcpy(b->target + at, w->target, numbers);
    at += w->count;
  }
  b->transitions = at;
  for (int64_t i = 0; i < r->quota; i++) /* workers take turns */
    for (int k = 0; k < r->workers; k++)
      if (i < r->worker[k].finished_count) r->finished[r->finished_count++] = r->worker[k].finished[i];
}

ht_status ht_window_collect(ht_window *r, const ht_packed *packed) {
  int threads = r->ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int k = 0; k < r->workers; k++) collect(r, k, packed);
  HT_TRY(r->ctx, ht_window_failure(r));
  gather(r);
  return HT_OK;
}

static const double JUDGED_AT = 4; /* an iteration's bytes by the cache's */

static void judge(const ht_window *r, int k, const ht_network *network, ht_judgement *j) {
  ht_window_worker *w = &r->worker[k];
  const ht_report *report = &w->report;
  *j = (ht_judgement){0};
  if (w->idle) return;
  w->packed = NULL;
  w->network = network;
  w->status = ht_solver_pretend_cache(w->solver, ht_solver_facts(w->solver)->bytes_streamed / JUDGED_AT);
  if (w->status != HT_OK) return;
  solve(r, w, 0);
  *j = (ht_judgement){.iterations = report->iterations,
                      .iterations_64 = w->iterations_64[0],
                      .true_residual = report->residual_true,
                      .true_64 = w->true_64,
                      .reached = report->outcome == HT_CONVERGED,
                      .time = 1 - w->total};
  const double *bytes = ht_solver_bytes(w->solver);
  double sum = 0;
  for (int level = 0; level < HT_LEVELS; level++) sum += j->share[level] = bytes[level] / w->price.facts->bytes_level[level];
  for (int level = 0; level < HT_LEVELS; level++) j->share[level] /= sum;
}

ht_status ht_window_judge(ht_window *r, const ht_network *network, ht_judgement *judgement) {
  int threads = r->ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int k = 0; k < r->cases; k++) judge(r, k, network, &judgement[k]);
  HT_TRY(r->ctx, ht_window_failure(r));
  return HT_OK;
}
