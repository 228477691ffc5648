/* The network against constant levels. SPDX-License-Identifier: BSD-3-Clause */
#include "train/compete_tiles.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "halftone/solver.h"
#include "policy/learned_file.h"
#include "solver/chooser.h"
#include "train/device.h"
#include "train/saving.h"

const char *const ht_rival_names[HT_RIVALS] = {"learned", "fixed:f64", "fixed:f32", "fixed:bf16"};

/* What is not better by so much is no better. */
static const double MARGIN = 0.99;

enum { SYSTEMS = 2, CLOCKED = 5 }; /* CLOCKED: solves on a device, of which the fastest counts */

static ht_status set_up(const ht_trainer *t, const ht_environment *e, ht_solver *solver) {
  const ht_train_options *o = &t->options;
  char rtol[40], most[40];
  int tiles = o->format == HT_TRAIN_TILECSC, on_device = !ht_backend_is_host(t->ctx, t->backend);
  snprintf(rtol, sizeof rtol, "%.17g", o->rtol);
  snprintf(most, sizeof most, "%lld", 4 * (long long)e->iterations_64 + 100);
  const char *const options[][2] = {{"precond", "none"}, /* as in the episodes */
                                    {"rtol", rtol},
                                    {"max-iterations", most},
                                    {"backend", !on_device                           ? "cpu"
                                                : strcmp(t->options.backend, "auto") ? t->options.backend
                                                                                     : "cuda"},
                                    {"format", tiles ? "tilecsc" : "split"},
                                    {"ordering", tiles ? "natural" : "auto"},
                                    {"engine", tiles && on_device ? "paper" : "auto"}};
  for (size_t k = 0; k < sizeof options / sizeof *options; k++) HT_TRY(t->ctx, ht_solver_set_option(solver, options[k][0], options[k][1]));
  return ht_solver_set_matrix(solver, e->matrix);
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

/* By the model, in bytes; on a device by the clock, in seconds. */
static double time_of(const ht_trainer *t, int matrix, const ht_solver *solver, const ht_report *report) {
  double bytes = 0;
  if (report->outcome != HT_CONVERGED) return INFINITY;
  if (!t->saving[matrix]) return report->time_solve_s;
  for (int level = 0; level < HT_LEVELS; level++) bytes += ht_solver_bytes(solver)[level];
  const ht_stand stand = {.iterations = report->iterations,
                          .exact_products = report->products - report->iterations,
                          .looks = ht_solver_looks(solver),
                          .bytes = bytes};
  return ht_price_cost(&t->saving[matrix]->price[0], &stand);
}

static ht_status run(ht_trainer *t, int matrix, int candidate, ht_solver *solver, const double *b, double *x, double *time) {
  ht_report report;
  int solves = t->saving[matrix] ? 1 : CLOCKED;
  HT_TRY(t->ctx, ht_solver_set_option(solver, "policy", candidate == HT_RIVAL_NETWORK ? "learned:network" : ht_rival_names[candidate]));
  if (candidate == HT_RIVAL_NETWORK) HT_TRY(t->ctx, enter_network(t, solver));
  *time = INFINITY;
  for (int k = 0; k < solves; k++) {
    memset(x, 0, (size_t)t->environment[matrix]->n * sizeof *x);
    HT_TRY(t->ctx, ht_solver_solve(solver, 1, b, x, &report));
    *time = fmin(*time, time_of(t, matrix, solver, &report));
  }
  return HT_OK;
}

/* On A*1, which column sums favour, and on a random b, which they do not. Adds each one's time by FP64's. */
static ht_status compare(ht_trainer *t, int matrix, ht_solver *solver, double *vectors, double sum[HT_RIVALS]) {
  const ht_environment *e = t->environment[matrix];
  ht_train_options options = t->options;
  HT_TRY(t->ctx, set_up(t, e, solver));
  for (options.rhs = HT_RIGHT_SIDE_ONES; options.rhs <= HT_RIGHT_SIDE_RANDOM; options.rhs++) {
    double time[HT_RIVALS];
    ht_right_side(e->matrix, &options, 0, vectors);
    for (int k = 0; k < HT_RIVALS; k++) HT_TRY(t->ctx, run(t, matrix, k, solver, vectors, vectors + e->n, &time[k]));
    double by = time[HT_RIVAL_64];
    for (int k = 0; k < HT_RIVALS; k++) sum[k] += (isfinite(by) ? time[k] / by : 1) / SYSTEMS; /* what FP64 does not solve tells nothing */
  }
  return HT_OK;
}

static ht_status compare_on(ht_trainer *t, int matrix, double sum[HT_RIVALS]) {
  double *vectors;
  ht_solver *solver = NULL;
  HT_TRY(t->ctx, ht_allocate(t->ctx, 2 * t->environment[matrix]->n, sizeof *vectors, &vectors));
  ht_status status = ht_solver_create(t->ctx, NULL, &solver);
  if (status == HT_OK) status = compare(t, matrix, solver, vectors, sum);
  ht_solver_destroy(solver);
  ht_release(t->ctx, vectors);
  return status;
}

ht_status ht_compete_tiles(ht_trainer *t, double time[HT_RIVALS], int *best) {
  static const int order[] = {HT_RIVAL_32, HT_RIVAL_16, HT_RIVAL_NETWORK};
  memset(time, 0, HT_RIVALS * sizeof *time);
  for (int k = 0; k < t->matrices; k++) HT_TRY(t->ctx, compare_on(t, k, time));
  for (int k = 0; k < HT_RIVALS; k++) time[k] /= t->matrices;
  *best = HT_RIVAL_64;
  for (size_t k = 0; k < sizeof order / sizeof *order; k++)
    if (time[order[k]] < MARGIN * time[*best]) *best = order[k];
  return HT_OK;
}
