/* The recorder of a solve: bounded lists of what happened. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/trace.h"
#include <string.h>
#include "backend/backend.h"

/* A list that stays short: entry j is the (j * every)-th that came, but for the last one, which is the latest. */
typedef struct thinned {
  int64_t kept, seen, every;
} thinned;

struct ht_recorder {
  ht_context *ctx;
  ht_solve_trace view;
  uint8_t *level; /* of each block, at the last change */
  ht_trace_why why;
  int has_reason;
  thinned changes, residuals, times;
  ht_trace_change change[HT_TRACE_ENTRIES_MOST];
  ht_trace_residual residual[HT_TRACE_ENTRIES_MOST];
  ht_trace_time time[HT_TRACE_ENTRIES_MOST];
  int32_t *counts; /* what the changes point to */
};

const char *ht_trace_why_name(ht_trace_why why) {
  static const char *const names[] = {
#define HT_TRACE_WHY(name, key, meaning) key,
#include "halftone/trace.def"
#undef HT_TRACE_WHY
  };
  return (int)why >= 0 && why < HT_TRACE_WHYS ? names[why] : "unknown";
}

/* The even entries to the front. They change places with the others, whose memory is used again. */
static void halve(char *entries, size_t size) {
  char spare[64];
  for (int64_t j = 1; j < HT_TRACE_ENTRIES_MOST / 2; j++) {
    memcpy(spare, entries + (size_t)j * size, size);
    memcpy(entries + (size_t)j * size, entries + 2 * (size_t)j * size, size);
    memcpy(entries + 2 * (size_t)j * size, spare, size);
  }
}

/* Where the next entry belongs. The latest one that came is given up for it when it was out of step. */
static void *next_entry(thinned *list, void *entries, size_t size) {
  if (list->kept > 0 && (list->seen - 1) % list->every != 0) {
    list->kept--;
  } else if (list->kept == HT_TRACE_ENTRIES_MOST) {
    halve(entries, size);
    list->kept /= 2;
    list->every *= 2;
  }
  list->seen++;
  return (char *)entries + (size_t)list->kept++ * size;
}

ht_status ht_recorder_create(ht_context *ctx, int64_t blocks, ht_recorder **out) {
  ht_recorder *r;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *r, &r));
  r->ctx = ctx;
  ht_solve_trace *v = &r->view;
  v->blocks = blocks;
  v->blocks_per_group = blocks / HT_TRACE_GROUPS_MOST + (blocks % HT_TRACE_GROUPS_MOST != 0);
  v->groups = blocks ? (blocks - 1) / v->blocks_per_group + 1 : 0;
  v->change = r->change;
  v->residual = r->residual;
  v->time = r->time;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, blocks, 1, &r->level), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, HT_TRACE_ENTRIES_MOST * v->groups * HT_LEVELS, sizeof *r->counts, &r->counts), fail);
  for (int64_t j = 0; j < HT_TRACE_ENTRIES_MOST; j++) r->change[j].blocks = r->counts + j * v->groups * HT_LEVELS;
  ht_recorder_begin(r);
  *out = r;
  return HT_OK;
fail:
  ht_recorder_release(r);
  return status;
}

void ht_recorder_release(ht_recorder *r) {
  if (!r) return;
  ht_release(r->ctx, r->level);
  ht_release(r->ctx, r->counts);
  ht_release(r->ctx, r);
}

void ht_recorder_begin(ht_recorder *r) {
  if (!r) return;
  r->changes = r->residuals = r->times = (thinned){.every = 1};
  r->view.at_run_ends = 0;
  ht_recorder_because(r, HT_TRACE_START);
}

void ht_recorder_because(ht_recorder *r, ht_trace_why why) {
  if (!r) return;
  r->why = why;
  r->has_reason = 1;
}

static void count_levels(const ht_recorder *r, int32_t *counts) {
  memset(counts, 0, (size_t)(r->view.groups * HT_LEVELS) * sizeof *counts);
  for (int64_t b = 0; b < r->view.blocks; b++) counts[b / r->view.blocks_per_group * HT_LEVELS + r->level[b]]++;
}

void ht_recorder_levels(ht_recorder *r, int64_t iteration, const uint8_t *level, ht_trace_why usual) {
  if (!r || !r->view.blocks) return;
  r->view.at_run_ends |= usual == HT_TRACE_DEVICE;
  int changed = r->changes.seen == 0 || memcmp(r->level, level, (size_t)r->view.blocks) != 0;
  ht_trace_why why = r->has_reason ? r->why : usual;
  r->has_reason = 0;
  if (!changed) return;
  memcpy(r->level, level, (size_t)r->view.blocks);
  ht_trace_change *entry = next_entry(&r->changes, r->change, sizeof *r->change);
  entry->iteration = iteration;
  entry->why = why;
  count_levels(r, entry->blocks);
}

void ht_recorder_residual(ht_recorder *r, int64_t iteration, double residual_true, ht_trace_why why) {
  if (!r) return;
  ht_trace_residual *entry = next_entry(&r->residuals, r->residual, sizeof *r->residual);
  *entry = (ht_trace_residual){iteration, residual_true, why};
}

void ht_recorder_time(ht_recorder *r, int64_t iteration, double elapsed_s) {
  if (!r) return;
  ht_trace_time *entry = next_entry(&r->times, r->time, sizeof *r->time);
  *entry = (ht_trace_time){iteration, elapsed_s};
}

const ht_solve_trace *ht_recorder_view(const ht_recorder *recorder) {
  ht_recorder *r = (ht_recorder *)recorder; /* the counts of its own view */
  ht_solve_trace *v = &r->view;
  v->changes = r->changes.kept;
  v->changes_seen = r->changes.seen;
  v->residuals = r->residuals.kept;
  v->residuals_seen = r->residuals.seen;
  v->times = r->times.kept;
  v->times_seen = r->times.seen;
  return v;
}
