/* The guard: one solve of one right-hand side, from the first residual to a certified outcome. It owns the decisions that the
 * loops leave open: when the residual is replaced by the true one, which level the policy may use, when a state is given up,
 * and what the outcome is. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_GUARD_H
#define HT_SOLVER_GUARD_H
#include "halftone/solver.h"
#include "policy/policy.h"
#include "solver/certificate.h"
#include "solver/loop.h"
#include "solver/null_space.h"
#include "solver/options.h"
#include "solver/trace.h"

/* What the report tells of x and its residual. */
typedef enum ht_fact { HT_FACT_R_NORM_INF, HT_FACT_X_NORM_INF, HT_FACT_XB, HT_FACT_XR, HT_FACTS } ht_fact;

enum { HT_FALLS = 32, HT_USUAL_INTERVAL = 8 /* iterations between two looks of a policy that has no wish of its own */ };

typedef struct ht_guard {
  ht_context *ctx;
  ht_loop *loop;
  ht_certifier certifier;
  const ht_matrix *matrix;         /* NULL for the caller's operator */
  const ht_null_space *null_space; /* of the matrix */
  ht_policy asked;                 /* as it was made; `policy` may go over to its fallback */
  ht_policy policy;
  const ht_policy_facts *known; /* of the matrix and its storage */
  const ht_solve_options *options;
  int64_t policy_interval;
  ht_progress_fn progress;
  void *progress_user;
  ht_recorder *recorder; /* NULL: nobody wants a trace */
  /* workspace, n each, in the backend's memory; own_b and own_x stand for the caller's where the backend does not reach them */
  double *residual, *previous, *best, *own_b, *own_x;
  double *work; /* all of them */
  double *host; /* what the host looks at, where it cannot touch the backend's memory; else NULL */
  double *ritz; /* 2 entries for each iteration that the loop records */
  /* of the running solve */
  const double *b;
  double *x;
  int shift; /* b and x are those of the caller times this power of two */
  double goal, norm_b, started;
  double b_norm_inf, x0_norm_inf; /* in the caller's scale */
  ht_reduction facts[HT_FACTS];
  int64_t facts_of;          /* the certificate that they were taken with, by its number; -1: none */
  ht_level floor;            /* lowest level allowed: raised when a level fails */
  ht_cg_replacing replacing; /* where it stands, and what the loop is told of it */
  int by_budget;             /* the levels are the error budget's, which leaves nothing to replacement */
  int by_rule;               /* a policy of the kind window has what auto's rule takes */
  int rule_failed;           /* and has found that its level does not do */
  int has_left, action;      /* such a policy has left the action that it began with; the number of the one that it takes */
  double take_up_below;      /* the policy's later level is taken up when ||r|| falls below it; -1: no more */
  double asked_drop;         /* by the action of a policy of the kind window; 0: as is usual at the level */
  int64_t asked_window;      /* iterations to its next look; 0: the policy's interval */
  double best_norm;          /* true residual of `best`, or infinity */
  int best_written;          /* since it was made, as zeros */
  int best_in_loop;          /* it is the iterate of a replacement that the loop made, and not in `best` yet */
  double certified;          /* true residual of the last certificate */
  double claimed;            /* true residual at the last failed claim in FP64 */
  int futile;                /* failed claims in FP64 that gained nothing */
  int64_t improved_at;       /* iteration of the last clear fall of ||r|| */
  double lowest;             /* ||r|| then */
  int64_t next_pause;        /* every iteration where there is a progress callback */
  int64_t next_check;        /* of level and progress, which cost more: every check_every */
  int64_t
      settle_at; /* iteration at whose end the levels raised before it have no step at the old ones left: the residual is made true; -1 */
  int64_t check_every;
  ht_level lowest_used; /* of all blocks, since the start, and not exact */
  int shares_seen;      /* of the iteration limit: a quarter of it was made, or half */
  int64_t left_to_f64;  /* times that the rest of the limit was left to FP64: 0 or 1 */
  int64_t interval;     /* iterations to the policy's next look: policy_interval, longer while nothing changes */
  int64_t next_look;
  int64_t looks;
  double gap, gap_borne; /* between the true residual and the loop's when it was last seen, and what would have been borne; NaN: never */
  double owed;           /* what products below FP64 have added to it since, as measured at the looks */
  int64_t looked_at;     /* iteration of the last look */
  int64_t fell_at[HT_FALLS]; /* iteration at which ||r|| had first fallen by so many decades */
  int falls;                 /* of them known */
  int plateaus;              /* one was met */
  int64_t falls_seen;        /* iterations that they were looked for in */
  int64_t ritz_steps;        /* of the CG coefficients that the following were made of */
  double ritz_smallest, ritz_largest;
  int64_t segment_end; /* CG coefficients up to here belong to one Krylov space; -1: still running */
  int64_t replacements, restores;
  int unaided;        /* the loop replaces the residual by itself, from b */
  int64_t seen_after; /* replacements that it made so */
  char *detail;       /* HT_REPORT_TEXT: the value and index that show the outcome */
} ht_guard;

/* Workspace and certificate. `averaged`: the operator was made of other values than the matrix as given. */
ht_status ht_guard_allocate(ht_guard *guard, int averaged);
void ht_guard_release(ht_guard *guard);
/* Solve A x = b; x holds the start and receives the best iterate. Fills the solve's fields of the report. On an error the caller's x is
 * as it was where the backend does not reach it. */
ht_status ht_guard_solve(ht_guard *guard, const double *b, double *x, ht_report *report);

/* ---- Steps of the above ---- */

int ht_guard_starts_from_zero(const ht_guard *guard); /* guard.c: in the scale of the solve, which may have rounded all to zero */
/* guard.c: entries of a vector of n where the host can read them, until the next look. */
ht_status ht_guard_look(ht_guard *guard, const double *vector, const double **entries);
/* guard_events.c: what to do about an event. Sets *done and *outcome when the solve is over. */
ht_status ht_guard_handle(ht_guard *guard, ht_cg_event event, int *done, ht_outcome *outcome);
void ht_guard_ritz_extremes(const ht_guard *guard, double *smallest, double *largest);
/* guard_limit.c: levels below FP64 may spend a part of the iteration limit, and more of it where they are on course. */
int64_t ht_guard_next_share(const ht_guard *guard); /* iteration at which that is looked at next */
ht_status ht_guard_share_limit(ht_guard *guard);    /* there */
int ht_guard_misses_limit(const ht_guard *guard);   /* beyond half of it, if the residual goes on falling as it has since the start */
void ht_guard_leave_to_f64(ht_guard *guard);        /* the rest of it, direction and all */
/* guard_window.c: the levels until the next look, by a policy of the kind window. */
void ht_guard_decide_window(ht_guard *guard, const ht_policy_view *view);
/* Whether such a policy's looks wait for the loop's pauses: an engine need not tell of the direction then. */
int ht_guard_looks_at_pauses(const ht_guard *guard);
int ht_guard_look_is_due(const ht_guard *guard); /* at this pause: it then depends on no clock */
/* In which a residual of this size, that CG has not seen, would fall to the goal, as far as this solve tells. */
double ht_guard_iterations_again(const ht_guard *guard, double size);
/* guard_levels.c */
ht_level ht_guard_lowest_level(const ht_guard *guard);
int ht_guard_is_exact(const ht_guard *guard, ht_level level); /* it holds every value as FP64 does */
void ht_guard_start_levels(ht_guard *guard);
void ht_guard_note_lowest(ht_guard *guard);   /* of the levels that were read */
void ht_guard_take_up_level(ht_guard *guard); /* the policy's later one */
void ht_guard_note_levels(ht_guard *guard);   /* after the loop's residual was made true: what its next error will be left to */
void ht_guard_consult_policy(ht_guard *guard);
int ht_guard_decides_unseen(const ht_guard *guard); /* a learned policy, on the device: levels are known where a run ends */
void ht_guard_follow_unseen(ht_guard *guard);       /* after such a run */
void ht_guard_plan_replacement(ht_guard *guard);    /* what the loop is to know of it in the next run */
void ht_guard_begin_drop(ht_guard *guard);     /* as at first for the levels in use, where the options have residuals replaced; else 0 */
void ht_guard_fetch_best(ht_guard *guard);     /* to `best`, before it is used */
void ht_guard_settle_later(ht_guard *guard);   /* make the residual true once the step of the levels before is made */
void ht_guard_give_up_level(ht_guard *guard);  /* it failed: over to the policy's fallback where it has one, else one level up */
void ht_guard_give_up_levels(ht_guard *guard); /* all below FP64, for the rest of the solve */
double ht_guard_usual_drop(ht_level level);    /* how far the residual may fall before it is first replaced; 0: never */
double ht_guard_first_drop(const ht_guard *guard, ht_level level); /* the same, where no action says another */
int ht_guard_meets_goal(const ht_guard *guard, double norm);
/* x and its true residual from the loop's state; `change` is how far the loop's residual was from it. */
ht_status ht_guard_refresh(ht_guard *guard, double *norm, double *change);
/* The same in two steps: a look, of which nothing is noted, and what is noted of it where something follows. */
ht_status ht_guard_compare(ht_guard *guard, double *norm, double *change);
void ht_guard_note_comparison(ht_guard *guard, double norm, double change);
/* The same where the loop says that it has reached the goal: with what the report needs, and, where the goal is missed, `change`. */
ht_status ht_guard_refresh_claim(ht_guard *guard, double *norm, double *change);
/* Of x and its residual, unless they came with its certificate. */
void ht_guard_measure(ht_guard *guard);
double ht_guard_backward_error(const ht_guard *guard); /* of what was measured */
/* Whether it is of the size of rounding, so that iterations have nothing left to give; the detail then says so. */
int ht_guard_is_at_rounding(ht_guard *guard);
/* A true residual is in the loop's place: whether the level may go on, and how far ||r|| may fall until the next. */
void ht_guard_judge_replacement(ht_guard *guard, double norm, double change);
void ht_guard_follow_replacements(ht_guard *guard); /* that the loop made by itself in the run before */
/* Put the true residual in the loop's place. The direction is kept when the change is small against it. */
void ht_guard_replace(ht_guard *guard, double norm, double change);
void ht_guard_restart(ht_guard *guard);      /* with a fresh direction */
ht_status ht_guard_restore(ht_guard *guard); /* back to the best iterate known, with a fresh direction */
void ht_guard_start_over(ht_guard *guard);   /* back to x = 0; x must be finite */

#endif
