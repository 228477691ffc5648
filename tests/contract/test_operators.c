/* What every operator promises: products within the rounding bound of a long-double reference, the storage error that
 * column_error announces and no more, the same bits for any number of threads, update = rebuild, no leak when memory ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "op/operator.h"
#include "support/failing.h"
#include "support/patterns.h"

/* ---- everything registered ---- */

typedef ht_status (*create_fn)(ht_context *ctx, const ht_matrix *matrix, ht_operator **op);

static const ht_backend *cpu(ht_context *ctx) {
  const ht_backend *backend;
  assert_int_equal(ht_backend_find(ctx, "cpu", &backend), HT_OK);
  return backend;
}

static ht_status create_csr(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  return ht_operator_create_csr(ctx, cpu(ctx), matrix, op);
}

static ht_status create_tilecsc(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  ht_operator_options options = {0};
  return ht_operator_create_tilecsc(ctx, cpu(ctx), &options, matrix, op);
}

static ht_status create_tilecsc_128(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  ht_operator_options options = {.tile_rows = 128};
  return ht_operator_create_tilecsc(ctx, cpu(ctx), &options, matrix, op);
}

static ht_status create_split(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  ht_operator_options options = {.exactness_flags = 1};
  return ht_operator_create_split(ctx, cpu(ctx), &options, matrix, op);
}

static ht_status create_split_rcm(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  ht_operator_options options = {.ordering = HT_ORDERING_RCM};
  return ht_operator_create_split(ctx, cpu(ctx), &options, matrix, op);
}

static int multiply_plainly(void *user, int64_t n, const double *x, double *y) {
  const ht_matrix *a = user;
  for (int64_t i = 0; i < n; i++) {
    y[i] = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) y[i] += a->values[k] * x[a->columns[k]];
  }
  return 0;
}

static ht_status create_callback(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  union { /* the callback's user pointer is not const */
    const ht_matrix *given;
    void *user;
  } pointer = {matrix};
  return ht_operator_create_callback(ctx, matrix->n, multiply_plainly, pointer.user, op);
}

static const struct {
  const char *name;
  create_fn create;
  int updates;
} operators[] = {
    {"csr", create_csr, 1},
    {"tilecsc", create_tilecsc, 1},
    {"tilecsc, 128 rows", create_tilecsc_128, 1},
    {"split", create_split, 1},
    {"split, rcm, no exactness flags", create_split_rcm, 1},
    {"callback", create_callback, 0},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static const int64_t sizes[] = {1, 2, 63, 64, 65, 129, 1000};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 1000, MOST_BLOCKS = MOST / HT_COLUMN_BLOCK + 1, SPREAD = 12 };

/* ---- helpers ---- */

static ht_context *plain_context(void) {
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  return ctx;
}

static ht_operator *make(ht_context *ctx, int which, const ht_matrix *a) {
  ht_operator *op = NULL;
  if (operators[which].create(ctx, a, &op) != HT_OK) fail_msg("%s: %s", operators[which].name, ht_context_error(ctx));
  return op;
}

static void apply(ht_operator *op, const uint8_t *level, const double *x, double *y) {
  for (int64_t i = 0; i < op->n; i++) y[i] = NAN; /* every entry must be written */
  if (op->apply(op, level, x, y, NULL) != HT_OK) fail_msg("%s: %s", op->format, ht_context_error(op->ctx));
}

/* How levels are given to the column blocks: all FP64 by NULL, all the same, or at random. */
enum { LEVELS_DEFAULT = HT_LEVELS, LEVELS_MIXED, LEVEL_PLANS };
static const uint8_t *plan_levels(int plan, const ht_operator *op, uint8_t *level) {
  random_stream s = {(uint64_t)op->n};
  if (plan == LEVELS_DEFAULT) return NULL;
  for (int64_t b = 0; b < op->blocks; b++) level[b] = (uint8_t)(plan == LEVELS_MIXED ? random_below(&s, HT_LEVELS) : plan);
  return level;
}

/* Bound of a computed sum of `terms` products, each of which may have been rounded once more on the way. */
static double gamma_of(int64_t terms) {
  double mu = (double)(terms + 1) * 0x1p-53;
  return mu / (1 - mu);
}

/* Largest 2-norm of A_level x - A x that column_error allows. */
static double allowed_storage_error(const ht_operator *op, const uint8_t *level, const double *x) {
  double bound = 0;
  for (int64_t i = 0; i < op->n && level; i++) {
    int64_t b = i / HT_COLUMN_BLOCK;
    if (level[b] != HT_LEVEL_64) bound += op->column_error[level[b]][b] * fabs(x[op->order ? op->order[i] : i]);
  }
  return bound;
}

typedef struct {
  const char *op, *pattern;
  int64_t n;
} where;

static void each_case(void (*check)(const where *w, ht_context *ctx, int which, pattern p, int64_t n)) {
  ht_context *ctx = plain_context();
  for (int which = 0; which < OPERATORS; which++)
    for (int p = 0; p < PATTERNS; p++)
      for (int s = 0; s < SIZES; s++) {
        where w = {operators[which].name, pattern_names[p], sizes[s]};
        check(&w, ctx, which, (pattern)p, sizes[s]);
      }
  ht_context_destroy(ctx);
}

/* ---- the promises ---- */

static void check_product(const where *w, ht_context *ctx, int which, pattern p, int64_t n) {
  static double x[MOST], y[MOST], roundoff[MOST];
  static long double exact[MOST];
  uint8_t level[MOST_BLOCKS];
  ht_matrix *a = pattern_matrix(ctx, p, n, 7, SPREAD);
  ht_operator *op = make(ctx, which, a);
  assert_int_equal(op->n, n);
  random_vector(3, n, x);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    exact[i] = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      exact[i] += (long double)a->values[k] * x[a->columns[k]];
      sum += fabs(a->values[k] * x[a->columns[k]]);
    }
    roundoff[i] = gamma_of(a->row_start[i + 1] - a->row_start[i]) * sum * (1 + 0x1p-20); /* the sum itself is rounded */
  }
  for (int plan = 0; plan < LEVEL_PLANS; plan++) {
    const uint8_t *levels = plan_levels(plan, op, level);
    apply(op, levels, x, y);
    double difference = 0, round = 0, storage = op->blocks ? allowed_storage_error(op, levels, x) : 0;
    for (int64_t i = 0; i < n; i++) {
      double d = (double)(y[i] - exact[i]);
      if (storage == 0 && !(fabs(d) <= roundoff[i]))
        fail_msg("%s, %s, n %lld, levels %d: row %lld is off by %g, allowed %g", w->op, w->pattern, (long long)n, plan, (long long)i, d,
                 roundoff[i]);
      difference = hypot(difference, d);
      round = hypot(round, roundoff[i]);
    }
    /* the terms at a low level are at most 1 + 2^-7 times the exact ones */
    if (!(difference <= storage + 1.01 * round))
      fail_msg("%s, %s, n %lld, levels %d: off by %g, and column_error allows %g", w->op, w->pattern, (long long)n, plan, difference,
               storage + round);
  }
  ht_operator_destroy(op);
  ht_matrix_destroy(a);
}

static void check_symmetry(const where *w, ht_context *ctx, int which, pattern p, int64_t n) {
  static double x[MOST], y[MOST], ax[MOST], ay[MOST];
  ht_matrix *a = pattern_matrix(ctx, p, n, 11, SPREAD);
  ht_operator *op = make(ctx, which, a);
  random_vector(5, n, x);
  random_vector(6, n, y);
  apply(op, NULL, x, ax);
  apply(op, NULL, y, ay);
  long double left = 0, right = 0;
  double size = 0;
  int64_t longest = 0;
  for (int64_t i = 0; i < n; i++) {
    left += (long double)y[i] * ax[i];
    right += (long double)x[i] * ay[i];
    int64_t length = a->row_start[i + 1] - a->row_start[i];
    if (length > longest) longest = length;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      size += fabs(a->values[k]) * (fabs(y[i] * x[a->columns[k]]) + fabs(x[i] * y[a->columns[k]]));
  }
  double bound = gamma_of(longest) * size, difference = (double)fabsl(left - right);
  if (!(difference <= bound)) fail_msg("%s, %s, n %lld: y'Ax and x'Ay differ by %g", w->op, w->pattern, (long long)n, difference);
  ht_operator_destroy(op);
  ht_matrix_destroy(a);
}

/* Operators made and used with other numbers of threads give the same bits. */
static void check_threads(const where *w, ht_context *ctx, int which, pattern p, int64_t n) {
  static double x[MOST], first[MOST], y[MOST];
  uint8_t level[MOST_BLOCKS];
  ht_matrix *a = pattern_matrix(ctx, p, n, 13, SPREAD);
  random_vector(8, n, x);
  for (int plan = 0; plan < LEVEL_PLANS; plan++)
    for (int threads = 1; threads <= 3; threads++) {
      assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
      ht_operator *op = make(ctx, which, a);
      apply(op, plan_levels(plan, op, level), x, threads == 1 ? first : y);
      if (threads > 1 && memcmp(first, y, (size_t)n * sizeof *y))
        fail_msg("%s, %s, n %lld, levels %d: %d threads give other bits than one", w->op, w->pattern, (long long)n, plan, threads);
      ht_operator_destroy(op);
    }
  ht_matrix_destroy(a);
}

static void same_products(const where *w, ht_operator *op, ht_operator *fresh, const char *what) {
  static double x[MOST], y[MOST], z[MOST];
  uint8_t level[MOST_BLOCKS];
  random_vector(9, op->n, x);
  for (int plan = 0; plan < LEVEL_PLANS; plan++) {
    const uint8_t *levels = plan_levels(plan, op, level);
    apply(op, levels, x, y);
    apply(fresh, levels, x, z);
    if (memcmp(y, z, (size_t)op->n * sizeof *y)) fail_msg("%s, %s, n %lld, levels %d: %s", w->op, w->pattern, (long long)w->n, plan, what);
  }
  for (int l = 0; l < HT_LEVEL_64 && op->blocks; l++)
    assert_memory_equal(op->column_error[l], fresh->column_error[l], (size_t)op->blocks * sizeof(float));
}

static void check_update(const where *w, ht_context *ctx, int which, pattern p, int64_t n) {
  ht_matrix *a = pattern_matrix(ctx, p, n, 17, SPREAD), *b = pattern_matrix(ctx, p, n, 18, SPREAD);
  ht_operator *op = make(ctx, which, a), *fresh = make(ctx, which, b);
  if (operators[which].updates) {
    assert_int_equal(op->update(op, b), HT_OK);
    same_products(w, op, fresh, "an updated operator gives other bits than a new one");
  } else
    assert_int_equal(op->update(op, b), HT_UNSUPPORTED);
  ht_operator_destroy(op);
  ht_operator_destroy(fresh);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
}

/* Making and updating with memory that ends at every request: HT_NO_MEMORY, nothing leaks, the old values stay. */
static void check_memory(const where *w, ht_context *plain, int which, pattern p, int64_t n) {
  failing_allocator allocator;
  ht_context *ctx;
  assert_int_equal(failing_context(&allocator, &ctx), HT_OK);
  ht_matrix *a = pattern_matrix(plain, p, n, 19, SPREAD), *b = pattern_matrix(plain, p, n, 20, SPREAD);
  ht_operator *op = NULL;
  long before = allocator.alive;
  ht_status status = HT_NO_MEMORY;
  for (long fail_at = 0; status != HT_OK; fail_at++) {
    allocator.requests = 0;
    allocator.fail_at = fail_at;
    status = operators[which].create(ctx, a, &op);
    if (status == HT_OK) break;
    assert_int_equal(status, HT_NO_MEMORY);
    assert_null(op);
    assert_int_equal(allocator.alive, before);
  }
  ht_operator *fresh = make(plain, which, a);
  for (long fail_at = 0; operators[which].updates; fail_at++) {
    allocator.requests = 0;
    allocator.fail_at = fail_at;
    long alive = allocator.alive;
    status = op->update(op, b);
    assert_int_equal(allocator.alive, alive);
    if (status == HT_OK) break;
    assert_int_equal(status, HT_NO_MEMORY);
    same_products(w, op, fresh, "a failed update changed the values");
  }
  ht_operator_destroy(op);
  ht_operator_destroy(fresh);
  assert_int_equal(allocator.alive, before);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
  ht_context_destroy(ctx);
  assert_int_equal(allocator.alive, 0);
}

static void products_are_within_bounds(void **state) {
  (void)state;
  each_case(check_product);
}
static void products_are_symmetric(void **state) {
  (void)state;
  each_case(check_symmetry);
}
static void threads_do_not_change_bits(void **state) {
  (void)state;
  each_case(check_threads);
}
static void update_equals_rebuild(void **state) {
  (void)state;
  each_case(check_update);
}
static void memory_may_end_anywhere(void **state) {
  (void)state;
  each_case(check_memory);
}

/* ---- single properties ---- */

/* Values at the ends of the double range, where a narrow format overflows or loses everything without its scale. */
static void extreme_values_keep_their_digits(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  for (int which = 0; which < OPERATORS; which++)
    for (int large = 0; large < 2; large++) {
      double u = large ? 1e300 : 1e-300;
      const double full[9] = {4 * u, -u / 3, 0, -u / 3, 5 * u, u / 7, 0, u / 7, 6 * u};
      double x[3] = {1, -2, 3}, y[3];
      uint8_t level[1] = {HT_LEVEL_32};
      ht_matrix *a = full_matrix(ctx, 3, full);
      ht_operator *op = make(ctx, which, a);
      apply(op, level, x, y);
      for (int i = 0; i < 3; i++) {
        double exact = full[3 * i] * x[0] + full[3 * i + 1] * x[1] + full[3 * i + 2] * x[2];
        assert_true(fabs(y[i] - exact) <= 0x1p-22 * fabs(exact));
      }
      ht_operator_destroy(op);
      ht_matrix_destroy(a);
    }
  ht_context_destroy(ctx);
}

static void update_wants_the_same_pattern(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  ht_matrix *a = pattern_matrix(ctx, PATTERN_TRIDIAGONAL, 65, 1, 0), *b = pattern_matrix(ctx, PATTERN_DIAGONAL, 65, 1, 0);
  for (int which = 0; which < OPERATORS; which++) {
    ht_operator *op = make(ctx, which, a);
    if (operators[which].updates) assert_int_equal(op->update(op, b), HT_BAD_ARGUMENT);
    ht_operator_destroy(op);
  }
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
  ht_context_destroy(ctx);
}

static void bytes_are_counted(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  double x[129], y[129], bytes[HT_LEVELS];
  uint8_t level[3];
  ht_matrix *a = pattern_matrix(ctx, PATTERN_BANDED, 129, 1, 0);
  random_vector(1, 129, x);
  for (int which = 0; which < OPERATORS; which++) {
    ht_operator *op = make(ctx, which, a);
    double least = INFINITY;
    for (int plan = HT_LEVELS - 1; plan >= 0 && op->blocks; plan--) { /* narrower streams, fewer bytes, all at that level */
      memset(bytes, 0, sizeof bytes);
      assert_int_equal(op->apply(op, plan_levels(plan, op, level), x, y, bytes), HT_OK);
      double total = bytes[0] + bytes[1] + bytes[2];
      assert_true(total > 0 && total < least && total <= (double)op->bytes);
      least = total;
    }
    ht_operator_destroy(op);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static int refuse(void *user, int64_t n, const double *x, double *y) {
  (void)user, (void)n, (void)x, (void)y;
  return 42;
}

static void a_callback_may_fail(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  ht_operator *op;
  double x[2] = {1, 2}, y[2];
  assert_int_equal(ht_operator_create_callback(ctx, 2, refuse, NULL, &op), HT_OK);
  assert_int_equal(op->apply(op, NULL, x, y, NULL), HT_BAD_ARGUMENT);
  assert_non_null(strstr(ht_context_error(ctx), "42"));
  ht_operator_destroy(op);
  assert_int_equal(ht_operator_create_callback(ctx, 2, NULL, NULL, &op), HT_BAD_ARGUMENT);
  assert_null(op);
  assert_int_equal(ht_operator_create_callback(ctx, 0, refuse, NULL, &op), HT_BAD_ARGUMENT);
  ht_context_destroy(ctx);
}

static void tilecsc_refuses_heights_it_cannot_hold(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  ht_matrix *a = pattern_matrix(ctx, PATTERN_DIAGONAL, 5, 1, 0);
  ht_operator_options options = {.tile_rows = 31};
  ht_operator *op;
  assert_int_equal(ht_operator_create_tilecsc(ctx, cpu(ctx), &options, a, &op), HT_BAD_OPTION);
  assert_null(op);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_within_bounds),    cmocka_unit_test(products_are_symmetric),
      cmocka_unit_test(threads_do_not_change_bits),    cmocka_unit_test(update_equals_rebuild),
      cmocka_unit_test(memory_may_end_anywhere),       cmocka_unit_test(extreme_values_keep_their_digits),
      cmocka_unit_test(update_wants_the_same_pattern), cmocka_unit_test(bytes_are_counted),
      cmocka_unit_test(a_callback_may_fail),           cmocka_unit_test(tilecsc_refuses_heights_it_cannot_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
