/* The order of a tile's entries for a warp that takes 32 of them at a time. Groups are filled from the entries that are left, diagonal by
 * diagonal, so that the lanes of a stencil's tile take rows and columns in sequence. SPDX-License-Identifier: BSD-3-Clause */
#include "data/tilecsc_interleave.h"
#include <omp.h>
#include <string.h>
#include "data/tilecsc_internal.h"

/* A half of a warp reads 16 doubles of shared memory at once where they lie in different ones of 16 banks. */
enum { LANES = HT_TILECSC_LANES, HALF = LANES / 2, BANKS = 16, MOST_LOOKS = 512 };

typedef struct filling {
  ht_interleave_work *work;
  const uint16_t *row;
  uint32_t first, end; /* of work->entry: what is left lies between, with holes */
  uint32_t rows;       /* of the tile */
  /* the group that is being filled */
  int size, count[2];
  uint32_t chosen[2][HALF];
  uint16_t row_banks[2], column_banks[2];
  uint8_t column_at[2][BANKS];
} filling;

static const uint32_t TAKEN = UINT32_MAX;

static int capacity(const filling *f, int half) { return half ? f->size - HALF : f->size < HALF ? f->size : HALF; }

static int is_full(const filling *f) { return f->count[0] + f->count[1] == f->size; }

static int fits(const filling *f, int half, uint32_t entry) {
  int row_bank = f->row[entry] % BANKS, column = f->work->column[entry], bank = column % BANKS;
  if (f->count[half] >= capacity(f, half) || f->row_banks[half] >> row_bank & 1) return 0;
  return !(f->column_banks[half] >> bank & 1) || f->column_at[half][bank] == column; /* lanes may read the same number */
}

static void put(filling *f, int half, uint32_t at) {
  uint32_t entry = f->work->entry[at];
  uint16_t row = f->row[entry];
  int column = f->work->column[entry], bank = column % BANKS;
  f->chosen[half][f->count[half]++] = entry;
  f->row_banks[half] |= (uint16_t)(1u << row % BANKS);
  if (!(f->column_banks[half] >> bank & 1)) f->column_at[half][bank] = (uint8_t)column;
  f->column_banks[half] |= (uint16_t)(1u << bank);
  f->work->held[row] = f->work->group;
  f->work->degree[row]--;
  f->work->entry[at] = TAKEN;
}

typedef enum wish { WITHOUT_CONFLICT, IN_ANOTHER_ROW, ANY } wish;

/* Goes through what is left, up to `looks` entries of it, and takes what is as wished for, of rows with at least so many entries left. */
static void fill(filling *f, wish wanted, int32_t degree, int looks) {
  const ht_interleave_work *w = f->work;
  for (uint32_t k = f->first; k < f->end && looks > 0 && !is_full(f); k++) {
    if (w->entry[k] == TAKEN) continue;
    uint32_t entry = w->entry[k];
    looks--;
    if (w->degree[f->row[entry]] < degree || (wanted != ANY && w->held[f->row[entry]] == w->group)) continue;
    int half = !fits(f, 0, entry), fitting = fits(f, half, entry);
    if (!fitting && wanted == WITHOUT_CONFLICT) continue;
    if (!fitting) half = f->count[0] >= capacity(f, 0);
    put(f, half, k);
  }
  while (f->first < f->end && w->entry[f->first] == TAKEN) f->first++;
}

/* Whether a row has as many entries left as there are groups: it must be in each of them. */
static int is_urgent(const filling *f, int32_t groups) {
  for (uint32_t i = 0; i < f->rows && groups <= COLUMNS; i++)
    if (f->work->degree[i] >= groups) return 1;
  return 0;
}

static void begin_group(filling *f, int size) {
  f->work->group++;
  f->size = size;
  for (int half = 0; half < 2; half++) f->count[half] = f->row_banks[half] = f->column_banks[half] = 0;
}

/* The next `size` entries. groups: that are still to be filled, with this one. */
static void fill_group(filling *f, int size, int32_t groups) {
  begin_group(f, size);
  if (is_urgent(f, groups)) fill(f, IN_ANOTHER_ROW, groups, INT32_MAX);
  fill(f, WITHOUT_CONFLICT, 1, MOST_LOOKS);
  fill(f, IN_ANOTHER_ROW, 1, INT32_MAX);
  fill(f, ANY, 1, INT32_MAX);
}

/* The group's entries into `list`, those of a row side by side. Returns the most of a row. */
static int list_group(filling *f, uint32_t *list) {
  int64_t seen = ++f->work->group;
  int meet = 0, count = 0, most = 1, run = 1;
  for (int half = 0; half < 2; half++)
    for (int k = 0; k < f->count[half]; k++) {
      uint32_t entry = f->chosen[half][k];
      meet |= f->work->held[f->row[entry]] == seen;
      f->work->held[f->row[entry]] = seen;
      list[count++] = entry;
    }
  for (int i = 1; i < count && meet; i++) /* by rows; equal ones keep their order */
    for (int j = i; j > 0 && f->row[list[j - 1]] > f->row[list[j]]; j--) {
      uint32_t moved = list[j];
      list[j] = list[j - 1];
      list[j - 1] = moved;
    }
  for (int i = 1; i < count && meet; i++) {
    run = f->row[list[i]] == f->row[list[i - 1]] ? run + 1 : 1;
    if (run > most) most = run;
  }
  return most;
}

/* Entries at places at, at + 2, ... Returns how often the most that meet must be halved to leave one. */
static int place_group(filling *f, uint32_t at, uint32_t *place, uint16_t *index) {
  uint32_t list[LANES] = {0}; /* an analyser cannot tell that as many are listed as are read */
  int most = list_group(f, list), halvings = 0;
  while (1 << halvings < most) halvings++;
  for (int k = 0; k < f->count[0] + f->count[1]; k++) {
    place[list[k]] = at + 2 * (uint32_t)k;
    index[place[list[k]]] = ht_tilecsc_index(f->row[list[k]], f->work->column[list[k]], most > 1);
  }
  return halvings;
}

/* Whether enough rows have two entries left. *most: of any row. */
static int has_twins(const filling *f, int32_t *most) {
  int wide = 0;
  *most = 0;
  for (uint32_t i = 0; i < f->rows; i++) {
    int32_t degree = f->work->degree[i];
    wide += degree >= 2;
    if (degree > *most) *most = degree;
  }
  return wide >= LANES;
}

/* Another entry of a row, which has one left. */
static uint32_t take_another(filling *f, uint16_t row) {
  ht_interleave_work *w = f->work;
  uint32_t entry = w->first[row];
  while (w->entry[w->place[entry]] == TAKEN) entry = w->next[entry];
  w->first[row] = entry;
  w->entry[w->place[entry]] = TAKEN;
  w->degree[row]--;
  return entry;
}

/* Steps whose lanes have two entries of a row each, as long as they are full. groups: as in fill_group. Returns how many. */
static int place_twins(filling *f, int32_t groups, uint32_t *place, uint16_t *index) {
  int steps = 0;
  int32_t most;
  for (; has_twins(f, &most); steps++, groups -= 2) {
    uint32_t list[LANES] = {0}, at = (uint32_t)steps * 2 * LANES;
    begin_group(f, LANES);
    if (is_urgent(f, groups)) fill(f, IN_ANOTHER_ROW, groups > 2 ? groups : 2, INT32_MAX);
    if (most > 3) fill(f, WITHOUT_CONFLICT, most - 1, MOST_LOOKS); /* else they would meet in the end */
    fill(f, WITHOUT_CONFLICT, 2, MOST_LOOKS);
    fill(f, IN_ANOTHER_ROW, 2, INT32_MAX);
    list_group(f, list);
    for (uint32_t k = 0; k < LANES; k++) {
      uint32_t pair[2] = {list[k], take_another(f, f->row[list[k]])};
      for (uint32_t i = 0; i < 2; i++) {
        place[pair[i]] = at + 2 * k + i;
        index[at + 2 * k + i] = ht_tilecsc_index(f->row[pair[i]], f->work->column[pair[i]], 0);
      }
    }
  }
  return steps;
}

/* Of a group that lacks its last entry: value 0 in a row that no other lane has. */
static uint16_t padding_index(const filling *f, int meet) {
  uint32_t row = 0;
  while (row + 1 < f->rows && f->work->held[row] == f->work->group) row++;
  return ht_tilecsc_index((int)row, 0, meet);
}

/* Entries by diagonals, and by columns on each. */
static void sort(filling *f, const uint32_t *start, int rows) {
  ht_interleave_work *w = f->work;
  memset(w->diagonal, 0, (size_t)(rows + COLUMNS) * sizeof *w->diagonal);
  for (int c = 0; c < COLUMNS; c++)
    for (uint32_t e = start[c]; e < start[c + 1]; e++) {
      w->column[e] = (uint8_t)c;
      w->degree[f->row[e]]++; /* each is taken again */
      w->diagonal[c - f->row[e] + rows]++;
    }
  for (int d = 0, at = 0; d < rows + COLUMNS; d++) {
    int count = w->diagonal[d];
    w->diagonal[d] = at;
    at += count;
  }
  for (uint32_t e = 0; e < start[COLUMNS]; e++) w->entry[w->diagonal[w->column[e] - f->row[e] + rows]++] = e;
  for (uint32_t k = start[COLUMNS]; k-- > 0;) {
    uint32_t e = w->entry[k];
    w->place[e] = k;
    w->next[e] = w->first[f->row[e]];
    w->first[f->row[e]] = e;
  }
}

ht_tile_head ht_tilecsc_interleave(const uint32_t *start, const uint16_t *row, int rows, ht_interleave_work *work, uint32_t *place,
                                   uint16_t *index) {
  uint32_t count = start[COLUMNS];
  filling f = {.work = work, .row = row, .end = count, .rows = (uint32_t)rows};
  int32_t groups = (int32_t)((count + 2 * LANES - 1) / (2 * LANES)) * 2;
  int most = 0;
  sort(&f, start, rows);
  int twins = place_twins(&f, groups, place, index);
  uint32_t at = (uint32_t)twins * 2 * LANES;
  groups -= 2 * twins;
  for (; at < count; at += 2 * LANES) {
    uint32_t left = count - at < 2 * LANES ? count - at : 2 * LANES;
    for (uint32_t k = 0; k < 2 && left > k; k++, groups--) {
      fill_group(&f, (int)((left + 1 - k) / 2), groups);
      int meet = place_group(&f, at + k, place, index);
      if (meet > most) most = meet;
      if (k && left % 2) index[at + left] = padding_index(&f, meet);
    }
    if (left == 1) {
      begin_group(&f, 0);
      index[at + 1] = padding_index(&f, 0);
    }
  }
  return (ht_tile_head){.meets = (uint8_t)most, .twins = (uint16_t)twins};
}

/* ---- all tiles ---- */

/* Of all tiles, whose rows come in CSC order. Threads take tiles of their own. */
static void interleave_tiles(ht_tilecsc *t, const uint16_t *row, ht_interleave_work *work) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(t->ctx->threads) if (t->entries > PARALLEL_FROM)
  for (int64_t tile = 0; tile < t->view.tiles; tile++) {
    const uint32_t *start = t->column_start + tile * STARTS;
    int64_t first = t->tile_entry[tile], entries = t->tile_entry[tile + 1] - first;
    ht_tile_head head = ht_tilecsc_interleave(start, row + first, t->view.rows_per_block, &work[omp_get_thread_num()], t->place + first,
                                              t->row_index + first);
    head.pair = (uint32_t)(first / 2);
    head.pairs = (uint32_t)(entries / 2);
    head.column = t->tile_column[tile];
    head.level = HT_LEVEL_64;
    t->head[tile] = head;
  }
}

static void release_work(const ht_tilecsc *t, ht_interleave_work *work) {
  for (int k = 0; work && k < t->ctx->threads; k++) {
    void *memory[] = {work[k].entry, work[k].column, work[k].diagonal, work[k].degree,
                      work[k].held,  work[k].first,  work[k].next,     work[k].place};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) ht_release(t->ctx, memory[i]);
  }
  ht_release(t->ctx, work);
}

static ht_status make_work(const ht_tilecsc *t, ht_interleave_work **out) {
  int64_t rows = t->view.rows_per_block, most = 0;
  ht_interleave_work *work;
  for (int64_t tile = 0; tile < t->view.tiles; tile++)
    if (t->tile_entry[tile + 1] - t->tile_entry[tile] > most) most = t->tile_entry[tile + 1] - t->tile_entry[tile];
  HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, t->ctx->threads, sizeof *work, &work));
  *out = work;
  for (int k = 0; k < t->ctx->threads; k++) {
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->entry, &work[k].entry));
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->column, &work[k].column));
    HT_TRY(t->ctx, ht_allocate(t->ctx, rows + COLUMNS, sizeof *work->diagonal, &work[k].diagonal));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->degree, &work[k].degree));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->held, &work[k].held));
    HT_TRY(t->ctx, ht_allocate_zeroed(t->ctx, rows, sizeof *work->first, &work[k].first));
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->next, &work[k].next));
    HT_TRY(t->ctx, ht_allocate(t->ctx, most, sizeof *work->place, &work[k].place));
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
  HT_TRY_GOTO(t->ctx, status, ht_allocate(t->ctx, t->view.tiles, sizeof *t->head, &t->head), done);
  HT_TRY_GOTO(t->ctx, status, make_work(t, &work), done);
  interleave_tiles(t, row, work);
done:
  release_work(t, work);
  ht_release(t->ctx, row);
  return status;
}
