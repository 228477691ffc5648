/* Where the time of a set-up goes: a stopwatch in the context. What ends a part calls ht_lap with its name, and the time since the lap
 * before is that part's, so that all parts together are the whole. A part may come often. Work of a device counts where the host waits for
 * it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_PHASES_H
#define HT_BASE_PHASES_H

typedef enum ht_phase {
#define HT_PHASE(name, what) HT_PHASE_##name,
#include "base/phases.def"
#undef HT_PHASE
  HT_PHASES
} ht_phase;

typedef struct ht_stopwatch {
  double last; /* lap's end, ht_seconds() */
  double seconds[HT_PHASES];
} ht_stopwatch;

struct ht_context;
void ht_laps_begin(struct ht_context *ctx);
void ht_lap(struct ht_context *ctx, ht_phase phase);
/* One line of the log at the level HT_LOG_DEBUG: "set-up: NAME MILLISECONDS, ..." of all parts that took any time. */
void ht_laps_tell(struct ht_context *ctx);

#endif
