/* All options of a solver: the components' structs side by side. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_OPTIONS_H
#define HT_SOLVER_OPTIONS_H
#include "base/option.h"
#include "op/options.h"
#include "policy/options.h"
#include "precond/options.h"

enum { HT_ENGINE_AUTO, HT_ENGINE_FUSED, HT_ENGINE_TEXTBOOK, HT_ENGINE_PERSISTENT, HT_ENGINE_STREAMING, HT_ENGINE_PAPER };
enum { HT_STOPPING_TRUE, HT_STOPPING_PAPER };
enum { HT_MOST_DEFAULT_ITERATIONS = 200000 }; /* the default limit is 10 n, within 1,000 and this */

#define HT_SOLVE_OPTIONS(X)                                                                                                                \
  X(REAL, rtol, 1e-10, 0, 1, AT_SOLVE, NULL, "stop when ||b - A x|| <= max(rtol ||b||, atol)")                                             \
  X(REAL, atol, 0, 0, 1e308, AT_SOLVE, NULL, "absolute tolerance on ||b - A x||")                                                          \
  X(INTEGER, max_iterations, 0, 0, 9e15, AT_SOLVE, NULL,                                                                                   \
    "iteration limit; 0 means 10 n, within 1,000 and 200,000. Low levels asked for by name spend a quarter, more while on course")         \
  X(REAL, time_limit, 0, 0, 1e9, AT_SOLVE, NULL, "seconds a solve may take; 0 means no limit")                                             \
  X(CHOICE, stopping, 0, 0, 1, AT_SOLVE, "true|paper",                                                                                     \
    "what is tested: the true residual, or the recursive one against ||r0|| without replacement, as the EvoCG paper does")                 \
  X(FLAG, guard, 1, 0, 1, AT_SOLVE, NULL,                                                                                                  \
    "mend what low precision spoils: replace residuals, raise levels, go back; without it a policy is on its own, for experiments")        \
  X(CHOICE, engine, 0, 0, 5, AT_PREPARE, "auto|fused|textbook|persistent|streaming|paper",                                                 \
    "CG loop: textbook takes all; fused is the CPU's, with split storage and none or jacobi, persistent and streaming a GPU's, which "     \
    "take block-jacobi, too; paper: the EvoCG paper's, a GPU's, with tilecsc storage")                                                     \
  X(TEXT, backend, 0, 0, 0, AT_PREPARE, "auto", "where the work is done: auto, cpu, cuda, or cuda:N for the N-th device from 0")           \
  X(INTEGER, threads, 0, 0, 4096, AT_PREPARE, NULL,                                                                                        \
    "most threads; 0: OMP_NUM_THREADS, or else every core this process may use. A small system gets fewer, as the report says")            \
  X(FLAG, trace, 0, 0, 1, AT_PREPARE, NULL, "record precisions, true residuals and time by iteration, for `halftone report`")

HT_OPTION_STRUCT(ht_solve_options, HT_SOLVE_OPTIONS);

struct ht_options {
  ht_context *ctx;
  ht_operator_options op;
  ht_precond_options precond;
  ht_policy_options policy;
  ht_solve_options solve;
};
void ht_options_set_defaults(ht_options *options);
#endif
