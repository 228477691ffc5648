/* What a solve saves of FP64's time. SPDX-License-Identifier: BSD-3-Clause */
#include "train/saving.h"
#include <math.h>
#include <string.h>
#include "base/number.h"
#include "halftone/solver.h"
#include "solver/chooser.h"
#include "train/view.h"

/* What a look takes of a network that is asked for each column block. Measured on a Zen 4 core: with 64 units 24 to 29 ns a row, where the
 * model's bytes take 60 a ns. On an H200 some 3 us in all, a quarter of what its memory delivers meanwhile by its cache. */
static double look_cost(const ht_environment *e, const ht_policy_facts *facts) {
  static const double ROW = 1500, DEVICE_CACHES = 0.25;
  if (facts->device) return DEVICE_CACHES * facts->cache_bytes;
  return ht_policy_look_cost(facts) + ROW * (double)e->options->hidden / 64 * (double)e->n;
}

/* ---- prices ---- */

/* A solver like those that compete at the end, in FP64. */
static ht_status make_solver(const ht_environment *e, const char *backend, ht_solver **solver) {
  int tilecsc = e->options->format == HT_TRAIN_TILECSC, host = !strcmp(backend, "cpu");
  const char *const option[][2] = {{"policy", "fixed:f64"},
                                   {"backend", backend},
                                   {"precond", "none"},
                                   {"format", tilecsc ? "tilecsc" : "split"},
                                   {"ordering", tilecsc ? "natural" : "auto"},
                                   {"engine", tilecsc && !host ? "paper" : "auto"}};
  HT_TRY(e->ctx, ht_solver_create(e->ctx, NULL, solver));
  for (size_t k = 0; k < sizeof option / sizeof *option; k++) HT_TRY(e->ctx, ht_solver_set_option(*solver, option[k][0], option[k][1]));
  HT_TRY(e->ctx, ht_solver_set_matrix(*solver, e->matrix));
  return ht_solver_prepare(*solver);
}

/* The solver's own facts on this storage; it does not know what Tile-CSC reads at a level, nor the CPU's what an environment does. */
static void take_facts(const ht_environment *e, const char *backend, const ht_solver *solver, ht_policy_facts *facts) {
  *facts = *ht_solver_facts(solver);
  facts->device = strcmp(backend, "cpu") != 0;                         /* to the solver what has a store of its own */
  if (facts->device && e->options->format != HT_TRAIN_TILECSC) return; /* the store's, which is the device's own */
  for (int level = 0; level < HT_LEVELS; level++) facts->bytes_level[level] = ht_environment_bytes(e, (ht_level)level);
  facts->bytes_streamed = facts->bytes_level[HT_LEVEL_64] + facts->bytes_vectors;
}

/* The least of some turns, of unguarded solves that are cut short: nothing but iterations. work: b and x. */
static ht_status time_levels(const ht_environment *e, ht_solver *solver, double *work, double seconds[HT_LEVELS]) {
  enum { ROUNDS = 5 };
  static const char *const policy[HT_LEVELS] = {"fixed:bf16", "fixed:f32", "fixed:f64"};
  ht_report report;
  HT_TRY(e->ctx, ht_solver_set_option(solver, "guard", "no"));
  HT_TRY(e->ctx, ht_solver_set_option(solver, "max-iterations", "200"));
  for (int level = 0; level < HT_LEVELS; level++) seconds[level] = INFINITY;
  for (int turn = 0; turn < ROUNDS * HT_LEVELS; turn++) {
    int level = turn % HT_LEVELS;
    const ht_pretence pretence = {.policy = policy[level], .device = ht_solver_facts(solver)->device};
    HT_TRY(e->ctx, ht_solver_pretend(solver, &pretence));
    memset(work + e->n, 0, (size_t)e->n * sizeof *work);
    HT_TRY(e->ctx, ht_solver_solve(solver, 1, work, work + e->n, &report));
    if (report.iterations > 0) seconds[level] = fmin(seconds[level], report.time_solve_s / (double)report.iterations);
  }
  double longest = fmax(seconds[HT_LEVEL_16], fmax(seconds[HT_LEVEL_32], seconds[HT_LEVEL_64]));
  for (int level = 0; level < HT_LEVELS && !isfinite(longest); level++) seconds[level] = 0; /* one breaks down at once: the model serves */
  ht_log(e->ctx, HT_LOG_DEBUG, "an iteration at 16, 32 and 64 bits takes %.2f, %.2f and %.2f us", 1e6 * seconds[HT_LEVEL_16],
         1e6 * seconds[HT_LEVEL_32], 1e6 * seconds[HT_LEVEL_64]);
  return HT_OK;
}

static ht_status ask_solver(const ht_environment *e, const ht_saving_source *source, ht_saving *s) {
  ht_solver *solver = NULL;
  double *work = NULL;
  ht_status status = make_solver(e, source->backend, &solver);
  if (status == HT_OK) take_facts(e, source->backend, solver, &s->facts);
  if (status == HT_OK && source->measures) status = ht_allocate(e->ctx, 2 * e->n, sizeof *work, &work);
  if (status == HT_OK && source->measures) {
    ht_right_side(e->matrix, e->options, 0, work);
    status = time_levels(e, solver, work, s->seconds);
  }
  ht_release(e->ctx, work);
  ht_solver_destroy(solver);
  if (status != HT_OK) return ht_trace(e->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* Room for twice as many. */
static ht_status grow(ht_context *ctx, int64_t *room, double **numbers) {
  double *larger;
  HT_TRY(ctx, ht_allocate(ctx, 2 * *room, sizeof *larger, &larger));
  memcpy(larger, *numbers, (size_t)*room * sizeof *larger);
  ht_release(ctx, *numbers);
  *numbers = larger;
  *room *= 2;
  return HT_OK;
}

/* In FP64 from one right-hand side: what progress is measured on. `user`: a course. */
static ht_status refer_here(void *user, const ht_environment *e, int right_side, double **fallen, int64_t *iterations, int *reached) {
  ht_course *c = user;
  int64_t room = e->iterations_64 + 2;
  HT_TRY(e->ctx, ht_allocate(e->ctx, room, sizeof **fallen, fallen));
  ht_course_begin(e, (uint64_t)right_side, c);
  memset(c->level, HT_LEVEL_64, (size_t)e->blocks);
  (*fallen)[0] = 1;
  while (!c->over && !ht_stop_requested(e->ctx)) {
    ht_course_step(c, e->options->max_iterations);
    if (c->iteration == room) HT_TRY(e->ctx, grow(e->ctx, &room, fallen));
    (*fallen)[c->iteration] = fmin(c->norm_r / c->norm_0, (*fallen)[c->iteration - 1]);
  }
  *iterations = c->iteration;
  *reached = c->reached;
  return HT_OK;
}

static ht_status refer(const ht_environment *e, const ht_saving_source *source, int right_side, ht_saving *s) {
  int64_t iterations;
  int reached;
  HT_TRY(e->ctx, source->refer(source->user, e, right_side, &s->fallen[right_side], &iterations, &reached));
  HT_CHECK(e->ctx, !ht_stop_requested(e->ctx), HT_INTERRUPTED, "training was interrupted before its first episode");
  HT_CHECK(e->ctx, reached, HT_BAD_MATRIX,
           "training needs a matrix that CG solves in FP64, and right-hand side %d of %s is not solved after %s; more iterations "
           "or a larger rtol may help",
           right_side, e->matrix->source[0] ? e->matrix->source : "this one", ht_number_of(iterations, "iteration").text);
  s->price[right_side] = (ht_price){
      .facts = &s->facts, .fallen = s->fallen[right_side], .iterations_64 = iterations, .n = e->n, .look = look_cost(e, &s->facts)};
  return HT_OK;
}

int ht_saving_right_sides(const ht_train_options *o) { return o->rhs == HT_RIGHT_SIDE_ONES ? 1 : HT_SAVING_RIGHT_SIDES; }

static ht_status make(ht_environment *e, const ht_saving_source *source, ht_saving *s) {
  s->blocks = e->blocks;
  HT_TRY(e->ctx, ask_solver(e, source, s));
  for (int k = 0; k < ht_saving_right_sides(e->options); k++) HT_TRY(e->ctx, refer(e, source, k, s));
  return HT_OK;
}

static ht_status make_here(ht_environment *e, ht_saving *s) {
  ht_course course;
  ht_saving_source here = {"cpu", 0, &course, refer_here};
  ht_status status = ht_course_create(e->ctx, 1, &e, &course);
  if (status == HT_OK) status = make(e, &here, s);
  ht_course_release(e->ctx, &course);
  return status;
}

ht_status ht_saving_create(ht_environment *e, const ht_saving_source *source, ht_saving **saving) {
  ht_saving *s;
  *saving = NULL;
  HT_TRY(e->ctx, ht_allocate_zeroed(e->ctx, 1, sizeof *s, &s));
  ht_status status = source ? make(e, source, s) : make_here(e, s);
  if (status != HT_OK) {
    ht_saving_destroy(e->ctx, s);
    return ht_trace(e->ctx, status, __func__, __FILE__, __LINE__);
  }
  *saving = s;
  return HT_OK;
}

void ht_saving_destroy(ht_context *ctx, ht_saving *s) {
  if (!s) return;
  for (int k = 0; k < HT_SAVING_RIGHT_SIDES; k++) ht_release(ctx, s->fallen[k]);
  ht_release(ctx, s);
}

/* ---- the reward ---- */

int ht_saving_right_side(const ht_train_options *o, int64_t episode) { return ht_learning_side(ht_saving_right_sides(o), episode); }

/* The recurrence says so, and there is nothing below FP64 in it that was not made good. */
static int is_there(const ht_course *c) { return c->reached && c->lowest == HT_LEVEL_64; }

double ht_saving_reward(const ht_saving *s, int right_side, ht_lane *lane) {
  ht_course *c = &lane->course;
  const ht_price *price = &s->price[right_side];
  const ht_stand from = {.progress = ht_price_progress(price, lane->lowest / c->norm_0)};
  ht_stand to = {.iterations = 1, .exact_products = c->replaced, .bytes = c->read};
  lane->lowest = c->replaced || c->norm_r < lane->lowest ? c->norm_r : lane->lowest;
  int there = is_there(c), missed = c->over && !there;
  double residual = missed ? ht_course_true_residual(c) : lane->lowest / c->norm_0;
  to.progress = there ? (double)price->iterations_64 : ht_price_progress(price, residual);
  return ht_price_step(price, &from, &to) - (missed ? ht_price_missed(price, &to) : 0);
}

/* What an end without certified answer costs. */
static double cost_of_missing(const ht_price *price, ht_course *end) {
  if (is_there(end)) return 0;
  const ht_stand stand = {.progress = ht_price_progress(price, ht_course_true_residual(end))};
  return ht_price_missed(price, &stand);
}

double ht_saving_time(const ht_saving *s, ht_course *end, double bytes, int64_t replacements, int64_t looks) {
  const ht_price *price = &s->price[0];
  ht_stand stand = {.iterations = end->iteration, .exact_products = replacements, .looks = looks, .bytes = bytes};
  return ht_price_cost(price, &stand) / ht_price_cost_64(price) + cost_of_missing(price, end);
}

/* ---- by level ---- */

/* Of an iteration at a level, where a clock has told it by FP64's. */
static double iteration_cost(const ht_saving *s, const ht_price *price, int level) {
  const ht_stand one = {.iterations = 1, .bytes = s->facts.bytes_level[s->seconds[level] > 0 ? HT_LEVEL_64 : level]};
  double cost = ht_price_cost(price, &one);
  return s->seconds[level] > 0 ? cost * s->seconds[level] / s->seconds[HT_LEVEL_64] : cost;
}

static ht_learning_prices prices_of(const ht_saving *s, const ht_price *price) {
  const ht_stand exact = {.exact_products = 1}, look = {.looks = 1};
  double cost_64 = ht_price_cost_64(price);
  ht_learning_prices prices = {.exact = ht_price_cost(price, &exact) / cost_64, .look = ht_price_cost(price, &look) / cost_64};
  for (int level = 0; level < HT_LEVELS; level++) prices.iteration[level] = iteration_cost(s, price, level) / cost_64;
  return prices;
}

void ht_saving_sides(const ht_saving *s, int right_sides, ht_learner_side *side) {
  for (int k = 0; k < right_sides; k++)
    side[k] =
        (ht_learner_side){.fallen = s->price[k].fallen, .iterations = s->price[k].iterations_64, .prices = prices_of(s, &s->price[k])};
}

double ht_saving_time_by_level(const ht_saving *s, ht_course *end, const int64_t count[HT_LEVELS], int64_t replacements, int64_t looks) {
  const ht_learning_prices prices = prices_of(s, &s->price[0]);
  double time = (double)replacements * prices.exact + (double)looks * prices.look;
  for (int level = 0; level < HT_LEVELS; level++) time += (double)count[level] / (double)s->blocks * prices.iteration[level];
  return time + cost_of_missing(&s->price[0], end);
}
