/* What a solve did while it ran: precisions, true residuals and time by iteration. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_TRACE_H
#define HALFTONE_TRACE_H
#include <stdint.h>
#include "halftone/solver.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum ht_trace_why {
#define HT_TRACE_WHY(name, key, meaning) HT_TRACE_##name,
#include "halftone/trace.def"
#undef HT_TRACE_WHY
  HT_TRACE_WHYS
} ht_trace_why;

HT_API const char *ht_trace_why_name(ht_trace_why why); /* "policy" */

/* From this iteration's product on, until the next change. Of group g, blocks[3 * g] column blocks are read at 16 bits,
 * blocks[3 * g + 1] at 32 and blocks[3 * g + 2] at 64: what the policy and the guard want; tiles that are exact at fewer bits are read
 * at those. */
typedef struct ht_trace_change {
  int64_t iteration;
  ht_trace_why why;
  int32_t *blocks;
} ht_trace_change;

typedef struct ht_trace_residual {
  int64_t iteration;
  double residual_true; /* relative to ||b||: computed in FP64 from the matrix as given */
  ht_trace_why why;
} ht_trace_residual;

typedef struct ht_trace_time {
  int64_t iteration;
  double elapsed_s; /* since the solve began */
} ht_trace_time;

/* Of the last column of the last solve. Each list is bounded: when it is full every second entry is dropped and from then on every
 * second is kept, but always the latest; `..._seen` says how many there were. */
typedef struct ht_solve_trace {
  int64_t blocks, groups, blocks_per_group; /* column blocks of 64 unknowns in the solver's order; 0: the storage has no levels */
  int at_run_ends; /* a device chose levels by itself: they are known where one of its runs ended, not where they changed */
  int64_t changes, changes_seen;
  const ht_trace_change *change;
  int64_t residuals, residuals_seen;
  const ht_trace_residual *residual;
  int64_t times, times_seen;
  const ht_trace_time *time;
} ht_solve_trace;

/* NULL where the option `trace` was off at the last prepare, or nothing was solved. Borrowed until the next prepare or solve. */
HT_API const ht_solve_trace *ht_solver_trace(const ht_solver *solver);

#ifdef __cplusplus
}
#endif
#endif
