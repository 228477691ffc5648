/* Rows as an environment reads them: their products are its own, whatever levels its column blocks ask for, in both storages.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "halftone/halftone.h"
#include "support/generated.h"
#include "train/stored_rows.h"

#define OK(call) assert_int_equal((call), HT_OK)

/* The level that an entry is read at. */
static int level_of(const ht_stored_rows *r, int64_t k, const uint8_t *block_level) {
  int level = HT_LEVEL_16;
  if (!r->parts) return block_level[r->columns[k] / HT_COLUMN_BLOCK];
  for (int64_t i = r->touch_start[r->part[k]]; i < r->touch_start[r->part[k] + 1]; i++)
    if (block_level[r->touched[i]] > level) level = block_level[r->touched[i]];
  return level;
}

/* One product of the environment, that of a solve's first step, and the same by rows. Sums are made in another order, and the split storage
 * adds what it corrects by itself. */
static void compare(const ht_environment *e, const ht_stored_rows *r, ht_course *c) {
  for (int64_t i = 0; i < e->n; i++) {
    double sum = 0, size = 0;
    for (int64_t k = r->row_start[i]; k < r->row_start[i + 1]; k++) {
      double term = r->values[k * HT_LEVELS + level_of(r, k, c->level)] * c->b[r->columns[k]];
      sum += term;
      size += fabs(term);
    }
    double bound = (double)(r->row_start[i + 1] - r->row_start[i] + 8) * DBL_EPSILON * size;
    if (!(fabs(sum - c->q[i]) <= bound)) fail_msg("row %lld: %.17g and %.17g", (long long)i, sum, c->q[i]);
  }
}

/* All blocks at one level, then each at one of its own. p is kept in b, in the solver's order. */
static void check(ht_context *ctx, const ht_matrix *a, int format, int reward) {
  ht_train_options options;
  ht_environment *e;
  ht_stored_rows rows;
  ht_course c;
  ht_train_options_set_defaults(&options);
  options.format = format;
  options.reward = reward;
  options.rhs = HT_RIGHT_SIDE_RANDOM;
  ht_train_options_settle(&options);
  OK(ht_environment_create(ctx, a, &options, 0, &e));
  OK(ht_stored_rows_create(e, &rows));
  OK(ht_course_create(ctx, 1, &e, &c));
  for (int way = 0; way < HT_LEVELS + 2; way++) {
    ht_course_begin(e, (uint64_t)way, &c);
    for (int64_t b = 0; b < e->blocks; b++)
      c.level[b] = (uint8_t)(way < HT_LEVELS ? way : (int)(ht_random_bits((uint64_t)way, (uint64_t)b) % HT_LEVELS));
    memcpy(c.b, c.p, (size_t)e->padded * sizeof *c.b);
    ht_course_step(&c, 2);
    compare(e, &rows, &c);
  }
  ht_course_release(ctx, &c);
  ht_stored_rows_release(ctx, &rows);
  ht_environment_destroy(e);
}

static void products_are_the_environments(void **state) {
  (void)state;
  static const char *const lines[] = {"stencil2d size=30 coefficients=lognormal", "stencil3d size=8 points=27", "elasticity3d size=5",
                                      "fem2d size=19 holes=0", "stencil3d size=9 coefficients=jumps"};
  ht_context *ctx;
  OK(ht_context_create(&ctx));
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    ht_matrix *a;
    OK(generate_line(ctx, lines[k], &a));
    check(ctx, a, HT_TRAIN_SPLIT, HT_REWARD_TIME);
    check(ctx, a, HT_TRAIN_TILECSC, HT_REWARD_TIME);
    check(ctx, a, HT_TRAIN_TILECSC, HT_REWARD_PAPER);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

/* Of a tile-CSC without corrections of its sums no level has entries but the matrix's; of FP64 the split storage has them to the bit. */
static void fp64_is_the_matrix(void **state) {
  (void)state;
  ht_context *ctx;
  ht_matrix *a;
  OK(ht_context_create(&ctx));
  OK(generate_line(ctx, "elasticity3d size=5", &a));
  for (int format = HT_TRAIN_SPLIT; format <= HT_TRAIN_TILECSC; format++) {
    ht_train_options options;
    ht_environment *e;
    ht_stored_rows r;
    double *row = calloc((size_t)a->n, sizeof *row);
    ht_train_options_set_defaults(&options);
    options.format = format;
    ht_train_options_settle(&options);
    OK(ht_environment_create(ctx, a, &options, 0, &e));
    OK(ht_stored_rows_create(e, &r));
    const int32_t *order = e->op->order;
    for (int64_t i = 0; i < a->n; i++) {
      int64_t old = order ? order[i] : i;
      memset(row, 0, (size_t)a->n * sizeof *row);
      for (int64_t k = r.row_start[i]; k < r.row_start[i + 1]; k++)
        row[order ? order[r.columns[k]] : r.columns[k]] += r.values[k * HT_LEVELS + HT_LEVEL_64];
      for (int64_t k = a->row_start[old]; k < a->row_start[old + 1]; k++) {
        assert_true(row[a->columns[k]] == a->values[k]);
        row[a->columns[k]] = 0;
      }
      for (int64_t j = 0; j < a->n; j++) assert_true(row[j] == 0);
    }
    free(row);
    ht_stored_rows_release(ctx, &r);
    ht_environment_destroy(e);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_the_environments), cmocka_unit_test(fp64_is_the_matrix)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
