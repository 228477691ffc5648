/* The last word of a training of policies that give each block its level: the network against one level throughout, as the solver solves
 * with them behind its guard. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "policy/learned_file.h"
#include "solver/chooser.h"
#include "train/saving.h"
#include "train/trainer.h"

enum { SYSTEMS = 2 }; /* of a matrix: A*1, which column sums favour, and a random b, which they do not */

/* The solvers of the matrix that is on. What a store is made for depends on who decides, so that the network has its own. */
typedef struct contest {
  ht_trainer *trainer;
  int measured, matrix;
  ht_solver *network, *fixed;
  double *b, *x;
} contest;

static void release(contest *c) {
  ht_solver_destroy(c->network);
  ht_solver_destroy(c->fixed);
  ht_release(c->trainer->ctx, c->b);
  c->network = c->fixed = NULL;
  c->b = c->x = NULL;
}

static ht_status make_solver(const contest *c, const char *policy, ht_solver **solver) {
  const ht_trainer *t = c->trainer;
  const ht_environment *e = t->environment[c->matrix];
  int tiles = t->options.format == HT_TRAIN_TILECSC;
  const char *const options[][2] = {{"policy", policy},
                                    {"precond", "none"}, /* as in the episodes */
                                    {"format", tiles ? "tilecsc" : "split"},
                                    {"ordering", tiles ? "natural" : "auto"},
                                    {"engine", tiles && t->device ? "paper" : "auto"}};
  return ht_trainer_rivals_solver(t, e->matrix, e->iterations_64, options, sizeof options / sizeof *options, solver);
}

/* The policy as it would be read from its file. */
static ht_status enter_network(ht_trainer *t, ht_solver *solver) {
  const void *bytes;
  int64_t size;
  ht_learned *learned;
  HT_TRY(t->ctx, ht_trainer_policy(t, &bytes, &size));
  HT_TRY(t->ctx, ht_learned_parse(t->ctx, bytes, size, "the policy in training", &learned));
  ht_solver_set_learned(solver, learned);
  return HT_OK;
}

static ht_status begin_matrix(contest *c, int matrix) {
  ht_trainer *t = c->trainer;
  int64_t n = t->environment[matrix]->n;
  release(c);
  c->matrix = matrix;
  HT_TRY(t->ctx, ht_allocate(t->ctx, 2 * n, sizeof *c->b, &c->b));
  c->x = c->b + n;
  HT_TRY(t->ctx, make_solver(c, "learned:network", &c->network));
  HT_TRY(t->ctx, make_solver(c, ht_rival_name(HT_RIVAL_64), &c->fixed));
  HT_TRY(t->ctx, enter_network(t, c->network));
  HT_TRY(t->ctx, ht_solver_prepare(c->network));
  HT_TRY(t->ctx, ht_solver_prepare(c->fixed));
  return HT_OK;
}

/* In bytes that memory delivers meanwhile. */
static double modelled(const contest *c, const ht_solver *solver, const ht_report *report) {
  double bytes = 0;
  for (int level = 0; level < HT_LEVELS; level++) bytes += ht_solver_bytes(solver)[level];
  const ht_stand stand = {.iterations = report->iterations,
                          .exact_products = report->products - report->iterations,
                          .looks = ht_solver_looks(solver),
                          .bytes = bytes};
  return ht_price_cost(&c->trainer->saving[c->matrix]->price[0], &stand);
}

/* Of x beside ones. */
static double error_of(const contest *c, int64_t n) {
  double square = 0;
  for (int64_t i = 0; i < n; i++) square += (c->x[i] - 1) * (c->x[i] - 1);
  return sqrt(square / (double)n);
}

/* What holds every value does what FP64 does, in another sequence: its error says nothing of levels, and may be hundreds of FP64's by
 * chance. */
static int is_fp64_at(const ht_solver *solver, int rival) {
  const ht_policy_facts *f = ht_solver_facts(solver);
  return (rival == HT_RIVAL_16 && f->share_exact_16 == 1) || (rival == HT_RIVAL_32 && f->share_exact_32 == 1);
}

static ht_status solve(void *user, int number, int rival, ht_trial *trial) {
  contest *c = user;
  ht_trainer *t = c->trainer;
  ht_train_options options = t->options;
  ht_report report;
  if (c->matrix != number / SYSTEMS) HT_TRY(t->ctx, begin_matrix(c, number / SYSTEMS));
  const ht_environment *e = t->environment[c->matrix];
  ht_solver *solver = rival == HT_RIVAL_LEARNED ? c->network : c->fixed;
  const ht_pretence pretence = {.policy = ht_rival_policy(rival), .device = ht_solver_facts(solver)->device};
  if (rival != HT_RIVAL_LEARNED) HT_TRY(t->ctx, ht_solver_pretend(solver, &pretence));
  options.rhs = number % SYSTEMS ? HT_RIGHT_SIDE_RANDOM : HT_RIGHT_SIDE_ONES;
  ht_right_side(e->matrix, &options, 0, c->b);
  memset(c->x, 0, (size_t)e->n * sizeof *c->x);
  HT_TRY(t->ctx, ht_solver_solve(solver, 1, c->b, c->x, &report));
  trial->cost = report.outcome != HT_CONVERGED ? INFINITY : c->measured ? report.time_solve_s : modelled(c, solver, &report);
  if (options.rhs == HT_RIGHT_SIDE_ONES && !is_fp64_at(solver, rival)) trial->error = error_of(c, e->n);
  ht_trainer_tell(t, HT_TRAIN_COMPETES, 1);
  return HT_OK;
}

ht_status ht_compete_tiles(ht_trainer *t, int measured, double seconds, ht_contest *result) {
  contest c = {.trainer = t, .measured = measured, .matrix = -1};
  const ht_competition competition = {.ctx = t->ctx,
                                      .rivals = HT_RIVALS_FIXED,
                                      .cases = SYSTEMS * t->matrices,
                                      .measured = measured,
                                      .seconds = seconds,
                                      .user = &c,
                                      .solve = solve};
  ht_status status = ht_compete(&competition, result);
  release(&c);
  return status;
}
