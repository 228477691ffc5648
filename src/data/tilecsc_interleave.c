/* The order of a tile's entries for a warp that takes its columns side by side. In each step the lanes are matched with rows, one lane
 * after the other; a lane that finds all its rows taken looks for a lane that can do with another (augmenting paths).
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc_interleave.h"
#include <omp.h>
#include "data/tilecsc_internal.h"

enum { LANES = HT_TILECSC_LANES, HALVES = COLUMNS / LANES, MOST_LOOKS = 16 };

/* The columns of the lanes. work->entry lists a column's entries in the order in which they are read; the first `taken` stand fixed. */
typedef struct half {
  const uint32_t *start;
  int32_t *degree; /* of a row: its entries that are not fixed yet */
  const uint16_t *row;
  ht_interleave_work *work;
  uint32_t taken[LANES];
  uint32_t choice[LANES]; /* where in work->entry that stands what a lane takes in this step */
} half;

static uint32_t length_of(const uint32_t *start, int column) { return start[column + 1] - start[column]; }

static uint16_t row_at(const half *s, uint32_t place) { return s->row[s->work->entry[place]]; }

static void give(half *s, int lane, uint32_t place) {
  uint16_t row = row_at(s, place);
  s->work->held[row] = s->work->step;
  s->work->holder[row] = lane;
  s->choice[lane] = place;
}

/* Among the next rows of this lane that no other has, the one with the most entries left: rows that are left to the end meet. */
static int find_free_row(half *s, int lane, uint32_t first, uint32_t end) {
  int32_t most = 0;
  int found = 0;
  for (uint32_t k = first; k < end && found < MOST_LOOKS; k++) {
    uint16_t row = row_at(s, k);
    if (s->work->held[row] == s->work->step) continue;
    found++;
    if (s->degree[row] <= most) continue;
    most = s->degree[row];
    s->choice[lane] = k;
  }
  if (found) give(s, lane, s->choice[lane]);
  return found > 0;
}

/* Whether there is a row for this lane that no other has, or that another can do without. */
static int find_row(half *s, int lane) { // NOLINT(misc-no-recursion): as deep as there are lanes
  uint32_t first = s->start[lane] + s->taken[lane], end = s->start[lane + 1];
  ht_interleave_work *w = s->work;
  if (find_free_row(s, lane, first, end)) return 1;
  for (uint32_t k = first; k < end; k++) {
    uint16_t row = row_at(s, k);
    if (w->seen[row] == w->search) continue;
    w->seen[row] = w->search;
    if (!find_row(s, w->holder[row])) continue;
    give(s, lane, k);
    return 1;
  }
  return 0;
}

/* What a lane takes comes next in its column; the others keep their order. */
static void fix_choice(half *s, int lane) {
  uint32_t first = s->start[lane] + s->taken[lane]++, *entry = s->work->entry, chosen = entry[s->choice[lane]];
  for (uint32_t k = s->choice[lane]; k > first; k--) entry[k] = entry[k - 1];
  entry[first] = chosen;
}

/* One entry for each of these lanes, of different rows where that can be. Returns whether some meet in a row. */
static int take_step(half *s, uint32_t lanes) {
  ht_interleave_work *w = s->work;
  int meet = 0;
  w->step++;
  for (int lane = 0; lane < LANES; lane++) {
    if (!(lanes >> lane & 1)) continue;
    w->search++;
    if (!find_row(s, lane)) s->choice[lane] = s->start[lane] + s->taken[lane];
  }
  w->step++;
  for (int lane = 0; lane < LANES; lane++) {
    if (!(lanes >> lane & 1)) continue;
    uint16_t row = row_at(s, s->choice[lane]);
    meet |= w->held[row] == w->step;
    w->held[row] = w->step;
    s->degree[row]--;
    fix_choice(s, lane);
  }
  return meet;
}

/* The lanes that have a k-th pair, or an odd entry where k < 0. */
static uint32_t lanes_with(const uint32_t *start, int64_t k) {
  uint32_t lanes = 0;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t length = length_of(start, lane), has = k < 0 ? length & 1 : length / 2 > (uint32_t)k;
    lanes |= has << lane;
  }
  return lanes;
}

/* Takes `each` entries for each of these lanes, and places them one behind the other from `at` on. Returns where they end. */
static uint32_t take_group(half *s, uint32_t lanes, uint32_t each, uint32_t at, uint32_t *place, uint16_t *row_index) {
  uint16_t mark[2];
  for (uint32_t k = 0; k < each; k++) mark[k] = take_step(s, lanes) ? HT_TILECSC_MEETS : 0;
  for (int lane = 0; lane < LANES; lane++)
    for (uint32_t k = 0; k < each && lanes >> lane & 1; k++, at++) {
      uint32_t entry = s->work->entry[s->start[lane] + s->taken[lane] - each + k];
      place[entry] = at;
      row_index[at] = s->row[entry] | mark[k];
    }
  return at;
}

void ht_tilecsc_interleave(const uint32_t *start, const uint16_t *row, int rows, ht_interleave_work *work, uint32_t *place,
                           uint16_t *row_index) {
  half halves[HALVES];
  uint32_t at = 0, longest = 0;
  for (uint32_t e = 0; e < start[COLUMNS]; e++) work->entry[e] = e;
  for (int c = 0; c < COLUMNS; c++)
    if (length_of(start, c) > longest) longest = length_of(start, c);
  for (int h = 0; h < HALVES; h++) {
    halves[h] = (half){.start = start + h * LANES, .row = row, .work = work, .degree = work->degree + (int64_t)h * rows};
    for (uint32_t e = halves[h].start[0]; e < halves[h].start[LANES]; e++) halves[h].degree[row[e]]++; /* each is taken again */
    at = take_group(&halves[h], lanes_with(halves[h].start, -1), 1, at, place, row_index);
  }
  if (at & 1) row_index[at++] = (uint16_t)rows;
  for (int64_t k = 0; k < longest / 2; k++)
    for (int h = 0; h < HALVES; h++) at = take_group(&halves[h], lanes_with(halves[h].start, k), 2, at, place, row_index);
}

/* ---- all tiles ---- */

/* Of all tiles, whose rows come in CSC order. Threads take tiles of their own. */
static void interleave_tiles(ht_tilecsc *t, const uint16_t *row, ht_interleave_work *work) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(t->ctx->threads) if (t->entries > PARALLEL_FROM)
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    const uint32_t *start = t->column_start + tile * STARTS;
    int64_t first = t->tile_entry[tile];
    ht_tilecsc_interleave(start, row + first, t->view.rows_per_block, &work[omp_get_thread_num()], t->place + first, t->row_index + first);
    for (int c = 0; c < COLUMNS; c++)
      t->column_count[tile * COLUMNS + 2 * (c % HT_TILECSC_LANES) + c / HT_TILECSC_LANES] = (uint16_t)(start[c + 1] - start[c]);
  }
}

static void release_work(ht_tilecsc *t, ht_interleave_work *work) {
  for (int k = 0; work && k < t->ctx->threads; k++) {
    void *owned[] = {work[k].entry, work[k].holder, work[k].degree, work[k].held, work[k].seen};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ht_release(t->ctx, owned[i]);
  }
  ht_release(t->ctx, work);
}

static ht_status make_work(ht_tilecsc *t, ht_interleave_work **out) {
  int64_t rows = t->view.rows_per_block, most = 0;
  ht_interleave_work *work;
  for (int64_t tile = 0; tile < t->view.tiles; tile++)
    if (t->tile_entry[tile + 1] - t->tile_entry[tile] > most) most = t->tile_entry[tile + 1] - t->tile_entry[tile];
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->ctx->threads, sizeof *work, &work));
  *out = work;
  for (int k = 0; k < t->ctx->threads; k++) {
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->entry, &work[k].entry));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->holder, &work[k].holder));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, 2 * rows, sizeof *work->degree, &work[k].degree));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->held, &work[k].held));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->seen, &work[k].seen));
  }
  return HT_OK;
}

ht_status ht_tilecsc_interleave_all(ht_tilecsc *t, const ht_matrix *matrix) {
  ht_status status;
  uint16_t *row = NULL;
  ht_interleave_work *work = NULL;
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->entries, sizeof *row, &row), done);
  HT_TRY_GOTO(t->ctx, status, ht_tilecsc_place(t, matrix, row, NULL), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->entries, sizeof *t->place, &t->place), done);
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->view.tiles * COLUMNS, sizeof *t->column_count, &t->column_count), done);
  HT_TRY_GOTO(t->ctx, status, make_work(t, &work), done);
  interleave_tiles(t, row, work);
done:
  release_work(t, work);
  ht_release(t->ctx, row);
  return status;
}
