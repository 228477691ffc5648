/* Level sets of a lower triangle. SPDX-License-Identifier: BSD-3-Clause */
#include "factor/levels.h"
#include <omp.h>
#include "base/barrier.h"

/* A set is shared from this many entries on: some 5 us of work, against the microsecond a barrier takes. */
enum { WIDE_FROM = 4096, ENTRIES_A_THREAD = 2048 };

/* level[i] = 1 + the largest level among the rows that row i needs; returns the number of levels. */
static int64_t find_levels(int64_t n, const int64_t *row_start, const int32_t *columns, int32_t *level) {
  int32_t most = -1;
  for (int64_t i = 0; i < n; i++) {
    int32_t own = 0;
    for (int64_t k = row_start[i]; k < row_start[i + 1] && columns[k] < i; k++)
      if (level[columns[k]] >= own) own = level[columns[k]] + 1;
    level[i] = own;
    if (own > most) most = own;
  }
  return (int64_t)most + 1;
}

/* Counting sort by level, stable. `begin` gets the first row of each level, levels + 1 entries. */
static void sort_by_level(ht_levels *l, const int32_t *level, int64_t *begin) {
  for (int64_t i = 0; i < l->n; i++) begin[level[i] + 1]++;
  for (int64_t s = 0; s < l->levels; s++) begin[s + 1] += begin[s];
  for (int64_t i = 0; i < l->n; i++) {
    int64_t at = begin[level[i]]++;
    l->order[at] = (int32_t)i;
    l->position[i] = (int32_t)at;
  }
  for (int64_t s = l->levels; s > 0; s--) begin[s] = begin[s - 1];
  begin[0] = 0;
}

/* Work of rows begin..end-1: their entries left of the diagonal, and one for the diagonal. */
static int64_t work_of(const ht_levels *l, const int64_t *row_start, const int32_t *columns, int64_t begin, int64_t end) {
  int64_t work = end - begin;
  for (int64_t r = begin; r < end; r++) {
    int64_t i = l->order[r];
    for (int64_t k = row_start[i]; k < row_start[i + 1] && columns[k] < i; k++) work++;
  }
  return work;
}

static void form_stages(ht_levels *l, const int64_t *row_start, const int32_t *columns, const int64_t *begin) {
  int64_t wide_stages = 0, wide_work = 0;
  l->stages = 0;
  for (int64_t s = 0; s < l->levels; s++) {
    int64_t work = work_of(l, row_start, columns, begin[s], begin[s + 1]);
    int wide = work >= WIDE_FROM;
    if (wide) {
      wide_stages++;
      wide_work += work;
    }
    if (wide || !l->stages || l->wide[l->stages - 1]) {
      l->stage_begin[l->stages] = begin[s];
      l->wide[l->stages++] = (uint8_t)wide;
    }
  }
  l->stage_begin[l->stages] = l->n;
  int64_t useful = wide_stages ? wide_work / wide_stages / ENTRIES_A_THREAD : 1;
  l->useful_threads = useful > 4096 ? 4096 : (int)useful;
}

ht_status ht_levels_create(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns, ht_levels *levels) {
  int32_t *level = NULL;
  int64_t *begin = NULL;
  ht_status status;
  *levels = (ht_levels){.n = n};
  levels->cores = ht_available_cores();
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *level, &level), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *levels->order, &levels->order), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *levels->position, &levels->position), done);
  levels->levels = find_levels(n, row_start, columns, level);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, levels->levels + 1, sizeof *begin, &begin), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, levels->levels + 1, sizeof *levels->stage_begin, &levels->stage_begin), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, levels->levels, sizeof *levels->wide, &levels->wide), done);
  sort_by_level(levels, level, begin);
  form_stages(levels, row_start, columns, begin);
done:
  ht_release(ctx, begin);
  ht_release(ctx, level);
  if (status != HT_OK) ht_levels_destroy(ctx, levels);
  return status;
}

void ht_levels_destroy(ht_context *ctx, ht_levels *levels) {
  ht_release(ctx, levels->order);
  ht_release(ctx, levels->position);
  ht_release(ctx, levels->stage_begin);
  ht_release(ctx, levels->wide);
  *levels = (ht_levels){0};
}

/* First row in begin..end whose entries before it, with one more a row, reach `share`. */
static int64_t row_at(const int64_t *row_start, int64_t begin, int64_t end, int64_t share) {
  int64_t low = begin, high = end;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (row_start[middle] - row_start[begin] + middle - begin < share)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* One piece of a stage, of as many as there are threads where the stage is wide. */
static void run_piece(const ht_levels *l, const int64_t *row_start, int64_t stage, int piece, int threads, ht_levels_fn fn, void *user) {
  int64_t begin = l->stage_begin[stage], end = l->stage_begin[stage + 1];
  int pieces = l->wide[stage] ? threads : 1;
  if (piece >= pieces) return;
  int64_t share = (row_start[end] - row_start[begin] + end - begin) / pieces;
  int64_t first = piece ? row_at(row_start, begin, end, share * piece) : begin;
  int64_t last = piece + 1 < pieces ? row_at(row_start, begin, end, share * (piece + 1)) : end;
  fn(user, piece, first, last);
}

/* The pieces do not depend on the team that the system grants: a smaller team takes several each. */
static void run(const ht_levels *l, const int64_t *row_start, int threads, int backward, ht_levels_fn fn, void *user) {
  ht_barrier barrier = {.spins = ht_barrier_spins(threads, l->cores)};
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int team = omp_get_num_threads(), self = omp_get_thread_num();
    for (int64_t s = 0; s < l->stages; s++) {
      for (int piece = self; piece < threads; piece += team)
        run_piece(l, row_start, backward ? l->stages - 1 - s : s, piece, threads, fn, user);
      ht_barrier_wait(&barrier, team);
    }
  }
}

void ht_levels_forward(const ht_levels *levels, const int64_t *row_start, int threads, ht_levels_fn fn, void *user) {
  run(levels, row_start, threads, 0, fn, user);
}

void ht_levels_backward(const ht_levels *levels, const int64_t *row_start, int threads, ht_levels_fn fn, void *user) {
  run(levels, row_start, threads, 1, fn, user);
}
