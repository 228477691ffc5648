/* What every row of precond/list.def promises: symmetric, positive, linear, the same bits for any number of threads,
 * update = rebuild, exact where it should be, clean errors. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "precond/precond.h"
#include "support/failing.h"
#include "support/patterns.h"

static const int64_t sizes[] = {1, 2, 63, 64, 65, 129, 1000};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 1000, SPREAD = 12 };

static ht_context *plain_context(void) {
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  return ctx;
}

static const ht_backend *cpu(ht_context *ctx) {
  const ht_backend *backend;
  assert_int_equal(ht_backend_find(ctx, "cpu", &backend), HT_OK);
  return backend;
}

static ht_precond *make(ht_context *ctx, const char *name, ht_precond_options options, const ht_matrix *a) {
  ht_precond *m = NULL;
  while (ht_precond_at(options.precond) && strcmp(ht_precond_at(options.precond)->name, name)) options.precond++;
  if (ht_precond_create(ctx, cpu(ctx), &options, a, 1, &m) != HT_OK) fail_msg("%s: %s", name, ht_context_error(ctx));
  return m;
}

static ht_precond *make_row(ht_context *ctx, int row, const ht_matrix *a) {
  return make(ctx, ht_precond_at(row)->name, (ht_precond_options){0}, a);
}

static void apply(ht_precond *m, const double *r, double *z) {
  for (int64_t i = 0; i < m->n; i++) z[i] = NAN; /* every entry must be written */
  m->apply(m, r, z);
}

static double diagonal_of(const ht_matrix *a, int64_t i) {
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
    if (a->columns[k] == i) return a->values[k];
  return 0;
}

/* ||D^-1/2 r||: with the diagonal scaled away the test matrices have eigenvalues in [1/2, 3/2], and so do not amplify. */
static double scaled_norm(const ht_matrix *a, const double *r) {
  double norm = 0;
  for (int64_t i = 0; i < a->n; i++) norm = hypot(norm, r[i] / sqrt(diagonal_of(a, i)));
  return norm;
}

/* Relative bound of one application in that scaling. A triangular solve is exact for a factor off by gamma_n (here: the
 * longest row and a few operations more) elementwise; there are two, and |L| |L'| and the inverses are bounded by small
 * constants, 8 in all, on matrices as dominant as these. The identity has no D, and is exact anyway. */
static double relative_bound(const ht_matrix *a) {
  int64_t longest = 0;
  for (int64_t i = 0; i < a->n; i++)
    if (a->row_start[i + 1] - a->row_start[i] > longest) longest = a->row_start[i + 1] - a->row_start[i];
  return 8 * (double)(2 * longest + 8) * 0x1p-53;
}

static double dot(int64_t n, const double *x, const double *y) {
  long double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (long double)x[i] * y[i];
  return (double)sum;
}

typedef struct {
  const char *name, *pattern;
  int64_t n;
} where;

static void each_case(void (*check)(const where *w, ht_context *ctx, int row, pattern p, int64_t n)) {
  ht_context *ctx = plain_context();
  for (int row = 0; ht_precond_at(row); row++)
    for (int p = 0; p < PATTERNS; p++)
      for (int s = 0; s < SIZES; s++) {
        where w = {ht_precond_at(row)->name, pattern_names[p], sizes[s]};
        check(&w, ctx, row, (pattern)p, sizes[s]);
      }
  ht_context_destroy(ctx);
}

/* ---- the promises ---- */

static void check_algebra(const where *w, ht_context *ctx, int row, pattern p, int64_t n) {
  static double u[MOST], v[MOST], mu[MOST], mv[MOST], sum[MOST], msum[MOST];
  ht_matrix *a = pattern_matrix(ctx, p, n, 3, SPREAD);
  ht_precond *m = make_row(ctx, row, a);
  assert_string_equal(m->name, w->name);
  assert_string_equal(m->note, "");
  assert_int_equal(m->n, n);
  random_vector(1, n, u);
  random_vector(2, n, v);
  for (int64_t i = 0; i < n; i++) sum[i] = 4 * u[i] + 0.5 * v[i];
  apply(m, u, mu);
  apply(m, v, mv);
  apply(m, sum, msum);
  double allowed = relative_bound(a), nu = scaled_norm(a, u), nv = scaled_norm(a, v), off = 0;
  int identity = !strcmp(w->name, "none");
  if (!(dot(n, u, mu) > 0 && dot(n, v, mv) > 0)) fail_msg("%s, %s, n %lld: not positive", w->name, w->pattern, (long long)n);
  double skew = fabs(dot(n, u, mv) - dot(n, v, mu));
  if (!(skew <= (identity ? (double)n * 0x1p-53 : allowed * nu * nv)))
    fail_msg("%s, %s, n %lld: u'Mv and v'Mu differ by %g", w->name, w->pattern, (long long)n, skew);
  for (int64_t i = 0; i < n; i++) off = hypot(off, (msum[i] - 4 * mu[i] - 0.5 * mv[i]) * sqrt(diagonal_of(a, i)));
  if (!identity && !(off <= 3 * allowed * (4 * nu + 0.5 * nv)))
    fail_msg("%s, %s, n %lld: not linear by %g", w->name, w->pattern, (long long)n, off);
  for (int64_t i = 0; identity && i < n; i++) assert_true(mu[i] == u[i]);
  for (int64_t i = 0; i < n; i++) sum[i] = 8 * u[i];
  apply(m, sum, msum);
  for (int64_t i = 0; i < n; i++) assert_true(msum[i] == 8 * mu[i]); /* powers of two pass exactly */
  ht_precond_destroy(m);
  ht_matrix_destroy(a);
}

static void check_threads(const where *w, ht_context *ctx, int row, pattern p, int64_t n) {
  static double r[MOST], first[MOST], z[MOST];
  ht_matrix *a = pattern_matrix(ctx, p, n, 4, SPREAD);
  random_vector(5, n, r);
  for (int threads = 1; threads <= 5; threads += 2) {
    assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
    ht_precond *m = make_row(ctx, row, a);
    if (threads == 1) apply(m, r, first);
    for (int again = 0; again < 4; again++) { /* one may choose between ways of working by time */
      apply(m, r, z);
      if (memcmp(first, z, (size_t)n * sizeof *z))
        fail_msg("%s, %s, n %lld: %d threads give other bits than one", w->name, w->pattern, (long long)n, threads);
    }
    ht_precond_destroy(m);
  }
  ht_matrix_destroy(a);
}

static void same_bits(const where *w, ht_precond *m, ht_precond *fresh, const char *what) {
  static double r[MOST], z[MOST], y[MOST];
  random_vector(6, m->n, r);
  apply(m, r, z);
  apply(fresh, r, y);
  if (memcmp(z, y, (size_t)m->n * sizeof *z)) fail_msg("%s, %s, n %lld: %s", w->name, w->pattern, (long long)w->n, what);
  assert_string_equal(m->note, fresh->note);
}

static void check_update(const where *w, ht_context *ctx, int row, pattern p, int64_t n) {
  ht_matrix *a = pattern_matrix(ctx, p, n, 7, SPREAD), *b = pattern_matrix(ctx, p, n, 8, SPREAD);
  ht_precond *m = make_row(ctx, row, a), *fresh = make_row(ctx, row, b);
  assert_int_equal(m->update(m, b), HT_OK);
  same_bits(w, m, fresh, "an updated preconditioner gives other bits than a new one");
  ht_precond_destroy(m);
  ht_precond_destroy(fresh);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
}

static void check_memory(const where *w, ht_context *plain, int row, pattern p, int64_t n) {
  failing_allocator allocator;
  ht_context *ctx;
  assert_int_equal(failing_context(&allocator, &ctx), HT_OK);
  ht_matrix *a = pattern_matrix(plain, p, n, 9, SPREAD), *b = pattern_matrix(plain, p, n, 10, SPREAD);
  ht_precond *m = NULL;
  ht_precond_options options = {.precond = row};
  long before = allocator.alive;
  for (long fail_at = 0;; fail_at++) {
    allocator.requests = 0;
    allocator.fail_at = fail_at;
    ht_status status = ht_precond_create(ctx, cpu(ctx), &options, a, 1, &m);
    if (status == HT_OK) break;
    assert_int_equal(status, HT_NO_MEMORY);
    assert_null(m);
    assert_int_equal(allocator.alive, before);
  }
  ht_precond *fresh = make_row(plain, row, a);
  for (long fail_at = 0;; fail_at++) {
    long alive = allocator.alive;
    allocator.requests = 0;
    allocator.fail_at = fail_at;
    ht_status status = m->update(m, b);
    assert_int_equal(allocator.alive, alive);
    if (status == HT_OK) break;
    assert_int_equal(status, HT_NO_MEMORY);
    same_bits(w, m, fresh, "a failed update changed the values");
  }
  ht_precond_destroy(m);
  ht_precond_destroy(fresh);
  assert_int_equal(allocator.alive, before);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
  ht_context_destroy(ctx);
}

static void symmetric_positive_linear(void **state) {
  (void)state;
  each_case(check_algebra);
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

/* ---- exact where it should be ---- */

/* A z = r to roundoff, in the scaling of scaled_norm. */
static void assert_solves(const char *name, ht_precond_options options, pattern p) {
  static double r[MOST], z[MOST], left[MOST];
  ht_context *ctx = plain_context();
  for (int s = 0; s < SIZES; s++) {
    ht_matrix *a = pattern_matrix(ctx, p, sizes[s], 12, SPREAD);
    ht_precond *m = make(ctx, name, options, a);
    random_vector(13, a->n, r);
    apply(m, r, z);
    for (int64_t i = 0; i < a->n; i++) {
      long double sum = r[i];
      for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum -= (long double)a->values[k] * z[a->columns[k]];
      left[i] = (double)sum;
    }
    if (!(scaled_norm(a, left) <= relative_bound(a) * scaled_norm(a, r)))
      fail_msg("%s on %s, n %lld: residual %g of %g", name, pattern_names[p], (long long)a->n, scaled_norm(a, left), scaled_norm(a, r));
    ht_precond_destroy(m);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

static void exact_without_dropped_fill(void **state) {
  (void)state;
  assert_solves("jacobi", (ht_precond_options){0}, PATTERN_DIAGONAL);
  assert_solves("block-jacobi", (ht_precond_options){0}, PATTERN_DIAGONAL);
  assert_solves("block-jacobi", (ht_precond_options){.precond_block = 3}, PATTERN_BLOCK3);
  assert_solves("block-jacobi", (ht_precond_options){.precond_block = 6}, PATTERN_BLOCK3);
  assert_solves("ic0", (ht_precond_options){0}, PATTERN_DIAGONAL);
  assert_solves("ic0", (ht_precond_options){0}, PATTERN_TRIDIAGONAL);
  assert_solves("ic0", (ht_precond_options){0}, PATTERN_BLOCK3);
  assert_solves("ic0", (ht_precond_options){0}, PATTERN_ARROW);
}

static void block_is_the_unknowns_per_node(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  ht_matrix *a = pattern_matrix(ctx, PATTERN_BLOCK3, 65, 1, SPREAD);
  ht_precond_options options = {.precond = HT_PRECOND_BLOCK_JACOBI};
  ht_precond *by_node, *by_option;
  where w = {"block-jacobi", "block 3", 65};
  assert_int_equal(ht_precond_create(ctx, cpu(ctx), &options, a, 3, &by_node), HT_OK);
  options.precond_block = 3;
  assert_int_equal(ht_precond_create(ctx, cpu(ctx), &options, a, 2, &by_option), HT_OK);
  same_bits(&w, by_node, by_option, "three unknowns a node are not blocks of three");
  ht_precond_destroy(by_node);
  ht_precond_destroy(by_option);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* ---- matrices that break a factorisation ---- */

static void assert_positive(ht_precond *m) {
  double r[16], z[16];
  for (uint64_t seed = 1; seed < 20; seed++) {
    random_vector(seed, m->n, r);
    apply(m, r, z);
    assert_true(dot(m->n, r, z) > 0);
  }
}

/* Kershaw 1978: positive definite, and the incomplete factorisation meets a negative pivot. */
static void ic0_shifts_on_breakdown(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double kershaw[16] = {3, -2, 0, 2, -2, 3, -2, 0, 0, -2, 3, -2, 2, 0, -2, 3};
  ht_matrix *a = full_matrix(ctx, 4, kershaw);
  ht_precond *m = make(ctx, "ic0", (ht_precond_options){0}, a);
  assert_non_null(strstr(m->note, "shifted by"));
  assert_non_null(strstr(m->note, "breakdown"));
  assert_positive(m);
  ht_precond_destroy(m);
  m = make(ctx, "ic0", (ht_precond_options){.ic_shift = 2}, a);
  assert_non_null(strstr(m->note, "as asked"));
  assert_positive(m);
  ht_precond_destroy(m);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* The middle row is dense: every row behind it needs it, and none may walk it from end to end. */
static void ic0_of_a_dense_row_takes_linear_time(void **state) {
  (void)state;
  enum { N = 200000, DENSE = N / 2 };
  ht_context *ctx = plain_context();
  int64_t *start, k = 0;
  int32_t *columns;
  double *values;
  ht_matrix *a;
  assert_int_equal(ht_allocate(ctx, N + 1, sizeof *start, &start), HT_OK);
  assert_int_equal(ht_allocate(ctx, 3 * N, sizeof *columns, &columns), HT_OK);
  assert_int_equal(ht_allocate(ctx, 3 * N, sizeof *values, &values), HT_OK);
  for (int64_t i = 0; i < N; i++) {
    start[i] = k;
    for (int64_t j = i == DENSE ? 0 : i < DENSE ? i : DENSE; j < N; j = i == DENSE ? j + 1 : j < DENSE ? DENSE : j < i ? i : N) {
      columns[k] = (int32_t)j;
      values[k++] = i != j ? 1 : i == DENSE ? 2.0 * N : 2;
    }
  }
  start[N] = k;
  assert_int_equal(ht_matrix_adopt(ctx, N, start, columns, values, "dense row", &a), HT_OK);
  clock_t begin = clock();
  ht_precond *m = make(ctx, "ic0", (ht_precond_options){0}, a);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  if (seconds > 4) fail_msg("%.1f s", seconds); /* N^2 / 4 products take four times as long; without them it is a tenth of a second */
  ht_precond_destroy(m);
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* CG itself finds out that such a matrix is not positive definite; the preconditioner must be. */
static void indefinite_blocks_still_give_a_positive_preconditioner(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double couplings[] = {2, 1e3, 1e150};
  for (int c = 0; c < 3; c++) {
    double t = couplings[c];
    const double full[9] = {1, t, 0, t, 1, 0, 0, 0, 1};
    ht_matrix *a = full_matrix(ctx, 3, full);
    ht_precond *m = make(ctx, "block-jacobi", (ht_precond_options){0}, a);
    assert_non_null(strstr(m->note, "1 of 1"));
    assert_positive(m);
    ht_precond_destroy(m);
    m = make(ctx, "ic0", (ht_precond_options){0}, a);
    assert_positive(m);
    ht_precond_destroy(m);
    ht_matrix_destroy(a);
  }
  ht_context_destroy(ctx);
}

static void extreme_scales_stay_finite(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double full[9] = {1e300, 0.1, 0, 0.1, 1e-300, 1e-301, 0, 1e-301, 1e-300};
  ht_matrix *a = full_matrix(ctx, 3, full);
  double r[3] = {1e300, 1e-300, -1e-300}, z[3];
  for (int row = 0; ht_precond_at(row); row++) {
    ht_precond *m = make_row(ctx, row, a);
    apply(m, r, z);
    for (int i = 0; i < 3; i++) assert_true(isfinite(z[i]) && z[i] != 0);
    ht_precond_destroy(m);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

/* ---- errors ---- */

/* Every preconditioner but the identity divides by the diagonal. */
static void bad_diagonals_are_named(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double bad[] = {0, -3, 1e-310};
  for (int b = 0; b < 3; b++)
    for (int row = 0; ht_precond_at(row); row++) {
      const double full[9] = {2, 0, 1, 0, bad[b], 1, 1, 1, 2};
      ht_matrix *a = full_matrix(ctx, 3, full);
      ht_precond_options options = {.precond = row};
      ht_precond *m;
      ht_status status = ht_precond_create(ctx, cpu(ctx), &options, a, 1, &m);
      if (row == HT_PRECOND_NONE) {
        assert_int_equal(status, HT_OK);
        ht_precond_destroy(m);
      } else {
        assert_int_equal(status, HT_BAD_MATRIX);
        assert_null(m);
        assert_non_null(strstr(ht_context_error(ctx), "(2,2)"));
      }
      ht_matrix_destroy(a);
    }
  ht_context_destroy(ctx);
}

static void refused_updates_change_nothing(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double good_values[9] = {2, 0, 1, 0, 3, 1, 1, 1, 2}, bad_values[9] = {2, 0, 1, 0, -1, 1, 1, 1, 2};
  ht_matrix *good = full_matrix(ctx, 3, good_values), *bad = full_matrix(ctx, 3, bad_values);
  ht_matrix *other = pattern_matrix(ctx, PATTERN_DIAGONAL, 3, 1, 0);
  where w = {"", "refused update", 3};
  for (int row = 0; ht_precond_at(row); row++) {
    ht_precond *m = make_row(ctx, row, good), *fresh = make_row(ctx, row, good);
    w.name = ht_precond_at(row)->name;
    assert_int_equal(m->update(m, other), HT_BAD_ARGUMENT);
    same_bits(&w, m, fresh, "an update with another pattern changed it");
    if (row != HT_PRECOND_NONE) {
      assert_int_equal(m->update(m, bad), HT_BAD_MATRIX);
      same_bits(&w, m, fresh, "an update with a bad diagonal changed it");
    }
    ht_precond_destroy(m);
    ht_precond_destroy(fresh);
  }
  ht_matrix_destroy(good);
  ht_matrix_destroy(bad);
  ht_matrix_destroy(other);
  ht_context_destroy(ctx);
}

static void a_diagonal_alone_is_enough(void **state) {
  (void)state;
  ht_context *ctx = plain_context();
  const double diagonal[4] = {2, -1, 0, 8}, r[4] = {2, 3, 4, 4}, expected[4] = {1, 3, 4, 0.5};
  double z[4];
  ht_precond *m;
  assert_int_equal(ht_precond_create_diagonal(ctx, cpu(ctx), 4, diagonal, &m), HT_OK);
  apply(m, r, z);
  assert_memory_equal(z, expected, sizeof z);
  ht_precond_destroy(m);
  assert_int_equal(ht_precond_create_diagonal(ctx, cpu(ctx), 4, NULL, &m), HT_OK);
  assert_string_equal(m->name, "none");
  apply(m, r, z);
  assert_memory_equal(z, r, sizeof z);
  ht_precond_destroy(m);
  ht_context_destroy(ctx);
}

/* The option's words and list.def are written apart; they must agree. */
static void option_words_are_the_list(void **state) {
  (void)state;
  char words[256] = "";
  for (int row = 0; ht_precond_at(row); row++)
    snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", row ? "|" : "", ht_precond_at(row)->name);
  for (int i = 0; i < ht_option_count(); i++)
    if (!strcmp(ht_option_at(i)->name, "precond")) {
      assert_string_equal(ht_option_at(i)->choices, words);
      return;
    }
  fail_msg("there is no option precond");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(symmetric_positive_linear),
      cmocka_unit_test(threads_do_not_change_bits),
      cmocka_unit_test(update_equals_rebuild),
      cmocka_unit_test(memory_may_end_anywhere),
      cmocka_unit_test(exact_without_dropped_fill),
      cmocka_unit_test(block_is_the_unknowns_per_node),
      cmocka_unit_test(ic0_of_a_dense_row_takes_linear_time),
      cmocka_unit_test(ic0_shifts_on_breakdown),
      cmocka_unit_test(indefinite_blocks_still_give_a_positive_preconditioner),
      cmocka_unit_test(extreme_scales_stay_finite),
      cmocka_unit_test(bad_diagonals_are_named),
      cmocka_unit_test(refused_updates_change_nothing),
      cmocka_unit_test(a_diagonal_alone_is_enough),
      cmocka_unit_test(option_words_are_the_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
