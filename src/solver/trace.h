/* The recorder of a solve, for ht_solver_trace. A NULL recorder records nothing. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_TRACE_H
#define HT_SOLVER_TRACE_H
#include "base/context.h"
#include "halftone/trace.h"

enum { HT_TRACE_GROUPS_MOST = 512, HT_TRACE_ENTRIES_MOST = 512 }; /* both even */

typedef struct ht_recorder ht_recorder;

/* `blocks`: column blocks of the operator, 0 where it has no levels. */
ht_status ht_recorder_create(ht_context *ctx, int64_t blocks, ht_recorder **recorder);
void ht_recorder_release(ht_recorder *recorder); /* NULL is allowed */

void ht_recorder_begin(ht_recorder *recorder); /* forget the solve before */
/* The reason of the next change, where it is not the usual one. */
void ht_recorder_because(ht_recorder *recorder, ht_trace_why why);
/* One ht_level a block, for the product of this iteration: an entry where they are not those of before. */
void ht_recorder_levels(ht_recorder *recorder, int64_t iteration, const uint8_t *level, ht_trace_why usual);
void ht_recorder_residual(ht_recorder *recorder, int64_t iteration, double residual_true, ht_trace_why why);
void ht_recorder_time(ht_recorder *recorder, int64_t iteration, double elapsed_s);
const ht_solve_trace *ht_recorder_view(const ht_recorder *recorder);

#endif
