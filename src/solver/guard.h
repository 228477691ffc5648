/* The guard: one solve of one right-hand side, from the first residual to a certified outcome. It owns the decisions that the
 * loops leave open: when the residual is replaced by the true one, which level the policy may use, when a state is given up,
 * and what the outcome is. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_GUARD_H
#define HT_SOLVER_GUARD_H
#include "halftone/solver.h"
#include "policy/policy.h"
#include "solver/certificate.h"
#include "solver/loop.h"
#include "solver/options.h"

typedef struct ht_guard {
  ht_context *ctx;
  ht_loop *loop;
  ht_certifier certifier;
  ht_policy asked; /* as it was made; `policy` may go over to its fallback */
  ht_policy policy;
  const ht_solve_options *options;
  int64_t policy_interval;
  ht_progress_fn progress;
  void *progress_user;
  /* workspace, n each */
  double *residual, *previous, *best, *shifted;
  double *ritz; /* 2 entries for each iteration that the loop records */
  /* of the running solve */
  const double *b;
  double *x;
  double goal, norm_b, started;
  ht_level floor;      /* lowest level allowed: raised when a level fails */
  double reference;    /* ||r|| at the last replacement or start */
  double drop;         /* replace when ||r|| falls below drop * reference; 0: never */
  double best_norm;    /* true residual of `best`, or infinity */
  double certified;    /* true residual of the last certificate */
  double claimed;      /* true residual at the last failed claim in FP64 */
  int futile;          /* failed claims in FP64 that gained nothing */
  int64_t improved_at; /* iteration of the last clear fall of ||r|| */
  double lowest;       /* ||r|| then */
  int64_t next_pause;  /* every iteration where there is a progress callback */
  int64_t next_check;  /* of level and progress, which cost more */
  int64_t interval;    /* iterations to the policy's next look: policy_interval, longer while nothing changes */
  int64_t next_look;
  int64_t segment_end; /* CG coefficients up to here belong to one Krylov space; -1: still running */
  int64_t replacements, restores;
  char *detail; /* HT_REPORT_TEXT: the value and index that show the outcome */
} ht_guard;

ht_status ht_guard_allocate(ht_guard *guard, int64_t n);
void ht_guard_release(ht_guard *guard);
/* Solve A x = b; x holds the start and receives the best iterate. Fills the solve's fields of the report. */
ht_status ht_guard_solve(ht_guard *guard, const double *b, double *x, ht_report *report);

#endif
