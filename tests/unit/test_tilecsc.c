/* Interleaved Tile-CSC holds the matrix, in the order that backend.h tells, and marks what meets. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/convert.h"
#include "data/tilecsc.h"
#include "data/tilecsc_order.h"
#include "support/failing.h"
#include "support/generated.h"
#include "support/patterns.h"

#define OK(call) assert_int_equal(call, HT_OK)
enum { LANES = HT_TILECSC_LANES, COLUMNS = HT_COLUMN_BLOCK, BANKS = 16, HALF = LANES / 2 };

/* Walks a tile as a warp does. */
typedef struct walk {
  const ht_tilecsc_view *v;
  int64_t tile, at; /* at: in the streams */
  int64_t entries, together, marked, twins;
  int64_t reads, waves; /* of sums and of x by half warps, and what they take where numbers share banks */
  double *dense;        /* rows_per_block x 64 */
} walk;

static int row_of(const walk *w, int64_t at) { return w->v->row_index[at] & (HT_TILECSC_MEETS - 1); }
static int column_of(const walk *w, int64_t at) { return w->v->row_index[at] >> HT_TILECSC_COLUMN_SHIFT; }
static int is_marked(const walk *w, int64_t at) { return (w->v->row_index[at] & HT_TILECSC_MEETS) != 0; }

static int is_padding(const walk *w, int64_t at) {
  const ht_tilecsc_view *v = w->v;
  return v->value_f64[at] == 0 && v->value_f32[at] == 0 && v->value_bf16[at] == 0;
}

static void take(walk *w, int64_t at) {
  int row = row_of(w, at), column = column_of(w, at);
  double *to = &w->dense[row * COLUMNS + column];
  double scale = w->v->scale[(int64_t)w->v->tile_column[w->tile] * COLUMNS + column];
  assert_in_range(row, 0, w->v->rows_per_block - 1);
  assert_true(*to == 0);
  *to = w->v->value_f64[at];
  assert_true(ht_load_f32(w->v->value_f32[at]) == (double)(float)(*to / scale));
  assert_true(fabs(ht_load_bf16(w->v->value_bf16[at]) * scale - *to) <= fabs(*to) * 0x1p-8);
  w->entries++;
}

/* Different numbers in one bank wait for each other. */
static int waves_of(const int *numbers, int count) {
  int most = 0;
  for (int bank = 0; bank < BANKS; bank++) {
    uint64_t seen[HT_TILECSC_INTERLEAVED_ROWS / 64] = {0};
    int here = 0;
    for (int i = 0; i < count; i++) {
      if (numbers[i] % BANKS != bank || seen[numbers[i] / 64] >> numbers[i] % 64 & 1) continue;
      seen[numbers[i] / 64] |= 1ull << numbers[i] % 64;
      here++;
    }
    if (here > most) most = here;
  }
  return most;
}

/* sums: how often they are read and written. */
static void count_waves(walk *w, int64_t first, int count, int sums) {
  int row[HALF], column[HALF];
  for (int i = 0; i < count; i++) {
    row[i] = row_of(w, first + 2 * i);
    column[i] = column_of(w, first + 2 * i);
  }
  w->reads += sums + 1;
  w->waves += sums * waves_of(row, count) + waves_of(column, count);
}

/* Entries at first, first + 2, ...: they are in different rows, or all are marked and those of a row are neighbours. */
static void check_together(walk *w, int64_t first, int count, int sums) {
  int marks = 0, twice = 0, run = 1;
  for (int i = 0; i < count; i++) {
    marks += is_marked(w, first + 2 * i);
    run = i > 0 && row_of(w, first + 2 * i) == row_of(w, first + 2 * i - 2) ? run + 1 : 1;
    assert_true(run <= 1 << w->v->head[w->tile].meets);
    for (int j = 0; j < i; j++) {
      int same = row_of(w, first + 2 * i) == row_of(w, first + 2 * j);
      assert_true(!same || j > i - run);
      twice |= same;
    }
  }
  assert_true(marks == 0 || marks == count);
  assert_int_equal(marks > 0, twice);
  assert_true(!marks || w->v->head[w->tile].meets);
  w->together++;
  w->marked += marks > 0;
  count_waves(w, first, count < HALF ? count : HALF, sums);
  if (count > HALF) count_waves(w, first + 2 * HALF, count - HALF, sums);
}

static void walk_tile(walk *w) {
  const ht_tile_head *head = &w->v->head[w->tile];
  int64_t end = w->v->tile_entry[w->tile + 1];
  w->at = w->v->tile_entry[w->tile];
  assert_true(2 * (int64_t)head->pair == w->at && 2 * (int64_t)head->pairs == end - w->at);
  assert_true(head->column == w->v->tile_column[w->tile] && head->level == HT_LEVEL_64);
  for (; w->at < end; w->at += 2 * LANES) {
    int pairs = end - w->at < 2 * LANES ? (int)(end - w->at) / 2 : LANES;
    int twins = w->at < 2 * ((int64_t)head->pair + head->twins * LANES);
    check_together(w, w->at, pairs, 2);
    check_together(w, w->at + 1, pairs, twins ? 0 : 2); /* of a lane's two in a row the sum is read once */
    for (int i = 0; i < pairs && twins; i++) assert_int_equal(row_of(w, w->at + 2 * i), row_of(w, w->at + 2 * i + 1));
    assert_true(!twins || (pairs == LANES && !is_marked(w, w->at) && !is_marked(w, w->at + 1)));
    w->twins += 2 * twins;
    for (int i = 0; i < 2 * pairs; i++)
      if (w->at + i + 1 < end || !is_padding(w, w->at + i)) take(w, w->at + i);
  }
}

/* The same values go to the same places. */
static void check_update(ht_tilecsc *t, const ht_matrix *a) {
  size_t bytes = (size_t)t->entries * sizeof(double);
  double *before = malloc(bytes);
  assert_non_null(before);
  memcpy(before, t->value_f64, bytes);
  memset(t->value_f64, 0, bytes);
  OK(ht_tilecsc_update(t, a));
  assert_memory_equal(before, t->value_f64, bytes);
  free(before);
}

/* The walk, for its numbers. */
static walk check_matrix(ht_context *ctx, const ht_matrix *a, int rows) {
  const ht_tilecsc_shape shape = {.rows = rows, .most_rows = 512, .device_blocks = 1, .interleaved = 1};
  ht_tilecsc *t;
  OK(ht_tilecsc_create(ctx, a, &shape, &t));
  walk w = {.v = &t->view, .dense = calloc((size_t)t->view.rows_per_block * COLUMNS, sizeof(double))};
  assert_non_null(w.dense);
  int64_t found = 0;
  for (int64_t b = 0; b < t->view.row_blocks; b++)
    for (w.tile = t->tile_row_start[b]; w.tile < t->tile_row_start[b + 1]; w.tile++) {
      int64_t first_column = (int64_t)t->tile_column[w.tile] * COLUMNS, first_row = b * t->view.rows_per_block;
      memset(w.dense, 0, (size_t)t->view.rows_per_block * COLUMNS * sizeof *w.dense);
      walk_tile(&w);
      for (int64_t i = first_row; i < first_row + t->view.rows_per_block && i < a->n; i++)
        for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
          int64_t c = a->columns[k] - first_column;
          if (c < 0 || c >= COLUMNS) continue;
          assert_true(w.dense[(i - first_row) * COLUMNS + c] == a->values[k]);
          found++;
        }
    }
  assert_true(found == a->nnz && w.entries == a->nnz);
  assert_true(t->entries <= a->nnz + t->view.tiles);
  check_update(t, a);
  free(w.dense);
  ht_tilecsc_destroy(t);
  return w;
}

static void patterns_are_held(void **state) {
  static const int heights[] = {32, 128, 512};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (int p = 0; p < PATTERNS; p++)
    for (int h = 0; h < 3; h++)
      for (int64_t n = 1; n < 400; n = 3 * n + 1) {
        ht_matrix *a = pattern_matrix(ctx, (pattern)p, n, 5, 1);
        check_matrix(ctx, a, heights[h]);
        ht_matrix_destroy(a);
      }
  ht_context_destroy(ctx);
}

/* Of stencils and elements next to nothing meets, and few wait for a bank. */
static void few_meet(void **state) {
  static const struct {
    const char *line;
    int rows;
    double most, waves; /* of steps that are marked, and waves a read */
  } cases[] = {{"stencil2d size=100", 256, 0.01, 1.2},         {"stencil2d size=64 points=9", 512, 0.01, 1.2},
               {"stencil3d size=20 points=7", 512, 0.01, 1.2}, {"stencil3d size=32 points=27", 512, 0.01, 1.3},
               {"wathen nx=30 ny=31", 128, 0.15, 1.5},         {"fem3d size=12", 256, 0.2, 1.9}};
  ht_context *ctx;
  (void)state;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ht_matrix *a;
    OK(generate_line(ctx, cases[k].line, &a));
    walk w = check_matrix(ctx, a, cases[k].rows);
    double marked = (double)w.marked / (double)w.together, waves = (double)w.waves / (double)w.reads;
    printf("%s: %.4f of the steps are marked, %.3f of twins, %.3f waves a read, %.1f entries a step\n", cases[k].line, marked,
           (double)w.twins / (double)w.together, waves, (double)w.entries / (double)w.together);
    fflush(stdout);
    assert_true(marked <= cases[k].most && waves <= cases[k].waves);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* With column sums a product below FP64 of the vector of ones is that of FP64, of any other close to it; and the error's bound holds. */
static void column_sums_are_kept(void **state) {
  enum { N = 300 };
  ht_context *ctx;
  ht_tilecsc *t;
  double ones[N], low[N], whole[N];
  uint8_t level[(N + COLUMNS - 1) / COLUMNS];
  const ht_tilecsc_shape shape = {.most_rows = 512, .least_blocks = 1, .column_sums = 1};
  const ht_backend *cpu;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(ht_backend_find(ctx, "cpu", &cpu));
  ht_matrix *a = pattern_matrix(ctx, PATTERN_BANDED, N, 7, 1);
  OK(ht_tilecsc_create(ctx, a, &shape, &t));
  for (int i = 0; i < N; i++) ones[i] = 1;
  for (int turn = 0; turn < 4; turn++) {
    int lack = turn < 2, at = turn % 2; /* the level */
    double most = 0, size = 0, rounding = at == HT_LEVEL_16 ? 0x1p-9 : 0x1p-24;
    if (!lack) t->view.lack[HT_LEVEL_16] = t->view.lack[HT_LEVEL_32] = NULL;
    memset(level, at, sizeof level);
    cpu->tilecsc_multiply(ctx, &t->view, level, ones, low);
    cpu->tilecsc_multiply(ctx, &t->view, NULL, ones, whole);
    for (int i = 0; i < N; i++) {
      double sum = 0; /* of the row's magnitudes */
      for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += fabs(a->values[k]);
      most = fmax(most, fabs(low[i] - whole[i]) / sum);
      size = fmax(size, fabs(whole[i]));
    }
    /* the number is a float; sums in FP64 round, too */
    assert_true(size > 0 && (lack ? most <= fmax(0x1p-21 * rounding, 0x1p-48) : most > 0x1p-5 * rounding));
  }
  ht_tilecsc_destroy(t);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* Every entry of the matrix stands where the order says. */
static void check_reordered(const ht_matrix *a, const ht_matrix *b, const int32_t *order) {
  int32_t *position = calloc((size_t)a->n, sizeof *position);
  assert_non_null(position);
  for (int64_t i = 0; i < a->n; i++) position[order[i]]++;
  for (int64_t i = 0; i < a->n; i++) assert_int_equal(position[i], 1);
  for (int64_t i = 0; i < a->n; i++) position[order[i]] = (int32_t)i;
  assert_true(a->n == b->n && a->nnz == b->nnz);
  for (int64_t i = 0; i < a->n; i++) {
    int64_t from = a->row_start[order[i]], to = b->row_start[i];
    assert_true(a->row_start[order[i] + 1] - from == b->row_start[i + 1] - to);
    for (int64_t k = 0; k < b->row_start[i + 1] - to; k++)
      assert_true(b->columns[to + k] == position[a->columns[from + k]] && b->values[to + k] == a->values[from + k]);
  }
  free(position);
}

static int64_t tiles_of(ht_context *ctx, const ht_matrix *a) {
  const ht_tilecsc_shape shape = {.rows = 64, .most_rows = 512, .device_blocks = 1, .interleaved = 1};
  ht_tilecsc *t;
  OK(ht_tilecsc_create(ctx, a, &shape, &t));
  int64_t tiles = t->view.tiles;
  ht_tilecsc_destroy(t);
  return tiles;
}

static void scattered_unknowns_are_ordered(void **state) {
  ht_context *ctx;
  ht_matrix *a, *reordered;
  int32_t *order;
  (void)state;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "fem3d size=14 numbering=random", &a));
  OK(ht_tilecsc_order_auto(ctx, a, 64, &order));
  assert_non_null(order);
  OK(ht_tilecsc_reorder(ctx, a, order, &reordered));
  check_reordered(a, reordered, order);
  assert_true(4 * tiles_of(ctx, reordered) < tiles_of(ctx, a));
  ht_release(ctx, order);
  ht_matrix_destroy(reordered);
  ht_matrix_destroy(a);
  OK(generate_line(ctx, "stencil3d size=20 points=27", &a));
  OK(ht_tilecsc_order_auto(ctx, a, 64, &order));
  assert_null(order);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static void memory_may_end_anywhere(void **state) {
  const ht_tilecsc_shape shape = {.rows = 32, .most_rows = 512, .device_blocks = 1, .interleaved = 1};
  failing_allocator memory;
  ht_context *ctx;
  ht_tilecsc *t;
  ht_status status = HT_NO_MEMORY;
  (void)state;
  OK(failing_context(&memory, &ctx));
  ht_matrix *a = pattern_matrix(ctx, PATTERN_BANDED, 100, 5, 1);
  long alive = memory.alive, k;
  for (k = 0; status != HT_OK; k++) {
    memory.requests = 0;
    memory.fail_at = k;
    status = ht_tilecsc_create(ctx, a, &shape, &t);
    assert_true(status == HT_OK || (status == HT_NO_MEMORY && !t && memory.alive == alive));
    ht_context_clear_error(ctx);
  }
  assert_true(k > 15);
  memory.fail_at = -1;
  ht_tilecsc_destroy(t);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  assert_int_equal(memory.alive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(patterns_are_held), cmocka_unit_test(few_meet),
                                     cmocka_unit_test(column_sums_are_kept), cmocka_unit_test(scattered_unknowns_are_ordered),
                                     cmocka_unit_test(memory_may_end_anywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
