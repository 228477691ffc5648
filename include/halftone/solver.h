/* The solver: prepare once, solve many times. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_SOLVER_H
#define HALFTONE_SOLVER_H
#include <stdint.h>
#include "halftone/matrix.h"
#include "halftone/options.h"
#include "halftone/report.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct ht_solver ht_solver;

/* What a progress callback sees, once an iteration; `progress` and `x` are borrowed for the call. Return nonzero to stop (outcome
 * HT_STOPPED). */
typedef struct ht_progress {
  int64_t iteration;
  double residual_recursive; /* relative to ||b|| */
  double elapsed_s;
  const double *x; /* the current iterate, n entries in host memory; NULL where it is kept in the solver's order or scale (all engines but
                      textbook) */
} ht_progress;
typedef int (*ht_progress_fn)(void *user, const ht_progress *progress);

/* The caller's operator: y = A x, host memory, length n. Return nonzero to fail. Must be symmetric positive definite. */
typedef int (*ht_apply_fn)(void *user, int64_t n, const double *x, double *y);

/* The caller's precision policy, consulted every `policy-interval` iterations. Column blocks are 64 consecutive unknowns
 * in the solver's order. `precision` holds the present one of each block and receives the next: HT_F64, HT_F32 or HT_BF16, the
 * last standing for the 16-bit level. Return 0, or nonzero for no answer: then FP64 is read. Whatever it answers, the result is
 * certified. Arrays are borrowed for the call. */
typedef struct ht_policy_view {
  int64_t iteration, blocks;
  double residual, residual_target, alpha; /* norms of r in the 2-norm; alpha of the last iteration */
  const double *direction_norm2;           /* sum of p_j^2 a block */
  const double *direction_max;             /* max |p_j| a block */
  const float *error_f32, *error_16;       /* largest column 2-norm, in the block, of the storage error at that level */
  double measured_f32, measured_16;        /* ||(A - A_level) p|| measured for the current p; NaN where it is not known */
  const double *direction;                 /* p itself, 64 entries a block, zeros behind the last unknown; NULL where the engine keeps it */
} ht_policy_view;
typedef int (*ht_policy_fn)(void *user, const ht_policy_view *view, uint8_t *precision);

/* Make a solver. Options are copied (NULL: the defaults): later changes to `options` do not reach it; ht_solver_set_option
 * does. */
HT_API HT_MUST_CHECK ht_status ht_solver_create(ht_context *ctx, const ht_options *options, ht_solver **solver);
HT_API void ht_solver_destroy(ht_solver *solver); /* NULL is allowed */
HT_API HT_MUST_CHECK ht_status ht_solver_set_option(ht_solver *solver, const char *name, const char *value);

/* Give the matrix (borrowed until the solver is destroyed or another is set), or an operator with its diagonal (n entries, copied;
 * NULL: no preconditioner). Either replaces what was given before. Errors: HT_BAD_ARGUMENT, HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_solver_set_matrix(ht_solver *solver, const ht_matrix *matrix);
HT_API HT_MUST_CHECK ht_status ht_solver_set_operator(ht_solver *solver, int64_t n, ht_apply_fn apply, void *user, const double *diagonal);
/* `user` is handed to fn as it is; NULL for fn takes the callback away. */
HT_API void ht_solver_set_progress(ht_solver *solver, ht_progress_fn fn, void *user);
HT_API void ht_solver_set_policy(ht_solver *solver, ht_policy_fn fn, void *user);

/* Order, scale, tile, build the preconditioner, reserve the workspace. A solve calls it where it is due: at first, after an option
 * of HT_AT_PREPARE, and after ht_matrix_set_values, when the ordering and the pattern's analysis are kept. A matrix that cannot be
 * positive definite is no error: the solve gives the outcome. So it does where a factorisation was told to stop, or did not end within
 * time-limit, which set-up and solve have each; the next solve sets up again. Errors: HT_BAD_ARGUMENT, HT_BAD_OPTION, HT_BAD_MATRIX,
 * HT_UNSUPPORTED (the instruction set, or a backend that is not there or cannot do what is asked), HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_solver_prepare(ht_solver *solver);

/* New values from a CSR in the memory of the GPU that the solver works on (row_start n + 1 entries, columns ascending in each row; the
 * pattern of the solver's matrix, with which it is compared): they are taken where they lie, and never travel to the host. Solves have them
 * in the place of the matrix's until the solver is prepared again, which an option of HT_AT_PREPARE and ht_matrix_set_values lead to. The
 * arrays are borrowed and unchanged until then. What was put there on another stream than the default
 * one and ht_context_set_cuda_stream's must be complete. A solver that is not prepared is prepared first, with the matrix's values.
 * Preconditioners: none and jacobi. Errors: HT_BAD_ARGUMENT (memory of no GPU or another one, another pattern), HT_BAD_MATRIX (a value is
 * not finite, or not its partner's; a diagonal entry is not positive), HT_UNSUPPORTED (another engine or preconditioner; rows of more than
 * 256 entries where the unknowns are reordered). An error leaves the solver with the matrix's own values. */
HT_API HT_MUST_CHECK ht_status ht_solver_set_device_csr(ht_solver *solver, const int64_t *row_start, const int32_t *columns,
                                                        const double *values);

/* Solve A x = b for `columns` right-hand sides, column-major with leading dimension n, in host memory, or in the memory of the device
 * that the solver works on, where they are used in place. x holds the starting
 * vectors on entry and the best iterates on return; b and x may not overlap. After prepare only the first solve of so many columns
 * allocates, their reports. `report` (or NULL) is filled for all
 * columns together: the worst outcome, the sums of iterations and times; ht_solver_column_report gives one column's.
 * HT_OK also when it did not converge: look at the outcome. Errors: HT_BAD_ARGUMENT (also from a caller's operator that failed),
 * those of prepare, and those of a device that is lost, when an x in host memory is as it was. */
HT_API HT_MUST_CHECK ht_status ht_solver_solve(ht_solver *solver, int columns, const double *b, double *x, ht_report *report);
/* Of the last solve; NULL for a column that it did not have. Borrowed until the next prepare or solve. */
HT_API const ht_report *ht_solver_column_report(const ht_solver *solver, int column);
/* The last column's history: residual_recursive relative to ||b||, entry 0 before the first iteration; the first 1,000,001 entries
 * at most. Returns their number, 0 where nothing was solved. Borrowed until the next prepare or solve. */
HT_API int64_t ht_solver_history(const ht_solver *solver, const double **residual_recursive);

#ifdef __cplusplus
}
#endif
#endif
