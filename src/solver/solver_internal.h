/* Inside of the solver object. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_SOLVER_INTERNAL_H
#define HT_SOLVER_SOLVER_INTERNAL_H
#include "solver/chooser.h"
#include "solver/guard.h"
#include "solver/null_space.h"

struct ht_solver {
  ht_context *ctx;
  struct ht_options options;
  /* what was given */
  const ht_matrix *matrix;
  const ht_matrix *symmetric; /* the matrix, or `averaged` where it is symmetric but for rounding */
  ht_matrix averaged;         /* borrows the pattern, owns its values */
  int64_t n;
  ht_apply_fn apply;
  void *apply_user;
  const double *diagonal; /* of the matrix, or the caller's for an operator; NULL when there is none */
  double *own_diagonal;   /* where it is kept here: a matrix may know its own */
  ht_progress_fn progress;
  void *progress_user;
  ht_policy_fn policy_fn;
  void *policy_user;
  ht_policy_chooser chooser; /* training's, in the place of a policy; choose NULL: none */
  /* what prepare made */
  int prepared;
  uint64_t version; /* of the matrix's values */
  const ht_backend *backend;
  char why_backend[HT_REPORT_TEXT];
  ht_operator *op;
  ht_precond *precond;
  ht_loop *loop;
  ht_guard guard;
  ht_policy_facts facts;
  ht_learned *policy_given; /* training's, until the policy is made of it; else NULL */
  ht_learned *policy_read;  /* the same from a policy file */
  char why[HT_REPORT_TEXT];
  ht_outcome refused; /* a typed outcome known before any iteration, else HT_CONVERGED */
  char refusal[HT_REPORT_TEXT];
  ht_null_space null_space;
  double time_setup_s;
  /* of the last solve */
  ht_report *column_reports;
  int columns, report_capacity;
};

/* What prepare made, all of it, or the loop alone. */
void ht_solver_forget(ht_solver *s);
void ht_solver_forget_loop(ht_solver *s);
/* Steps of prepare: the loop with its guard; what a policy may know; the policy, by s->facts. */
ht_status ht_solver_make_loop(ht_solver *s);
ht_policy_facts ht_solver_facts_of(const ht_solver *s);
ht_status ht_solver_make_policy(ht_solver *s);
/* A set-up and a solve take the threads that an iteration is worth: it reads the matrix and moves about eight vectors. What a caller's own
 * operator costs is not known. Returns what the context had. */
int ht_solver_limit_threads(ht_solver *s);

#endif
