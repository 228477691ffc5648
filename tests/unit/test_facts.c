/* Matrix facts: counted by hand on small matrices, eigenvalues against LAPACK. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "data/matrix.h"
#include "halftone/halftone.h"
#include "solver/lanczos.h"
#include "solver/tridiagonal.h"
#ifdef HT_TEST_LAPACKE
#include <lapacke.h>
#endif

enum { MOST = 130 };

static int make_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int free_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

/* A dense matrix with NaN for "not stored". */
static ht_status from_dense(ht_context *ctx, int64_t n, const double *dense, ht_matrix **a) {
  int64_t *row_start, k = 0;
  int32_t *columns;
  double *values;
  *a = NULL;
  HT_TRY(ctx, ht_allocate(ctx, n + 1, sizeof *row_start, &row_start));
  HT_TRY(ctx, ht_allocate(ctx, n * n, sizeof *columns, &columns));
  HT_TRY(ctx, ht_allocate(ctx, n * n, sizeof *values, &values));
  row_start[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++)
      if (!isnan(dense[i * n + j])) {
        columns[k] = (int32_t)j;
        values[k++] = dense[i * n + j];
      }
    row_start[i + 1] = k;
  }
  return ht_matrix_adopt(ctx, n, row_start, columns, values, "test", a);
}

static ht_facts facts_of(ht_context *ctx, int64_t n, const double *dense) {
  ht_matrix *a;
  ht_facts f;
  assert_int_equal(from_dense(ctx, n, dense, &a), HT_OK);
  assert_int_equal(ht_matrix_facts(a, 60, &f), HT_OK);
  ht_matrix_destroy(a);
  return f;
}

static void counts_are_those_of_the_matrix(void **state) {
  /* 1 + 2^-10 needs 11 bits, 1 + 2^-20 needs 21, 0.1 all of them; 2^100 is beyond f16. */
  const double third = 0.1, f16 = 1 + 0x1p-10, f32 = 1 + 0x1p-20;
  const double dense[] = {4, f16, NAN, NAN, f16, 0x1p100, f32, NAN, NAN, f32, 5, third, NAN, NAN, third, 0.5};
  ht_facts f = facts_of(*state, 4, dense);
  assert_int_equal(f.n, 4);
  assert_int_equal(f.nnz, 10);
  assert_int_equal(f.explicit_zeros, 0);
  assert_int_equal(f.empty_rows, 0);
  assert_int_equal(f.row_min, 2);
  assert_int_equal(f.row_max, 3);
  assert_true(f.row_mean == 2.5);
  assert_int_equal(f.bandwidth, 1);
  assert_int_equal(f.rows_by_bandwidth[1], 4);
  assert_int_equal(f.exact_bf16, 4);     /* the diagonal */
  assert_int_equal(f.exact_f16, 3 + 2);  /* without 2^100, with 1 + 2^-10 */
  assert_int_equal(f.exact_f32, 10 - 2); /* all but 0.1 */
  assert_true(f.value_min == third && f.value_max == 0x1p100);
  assert_true(f.diagonal_min == 0.5 && f.diagonal_max == 0x1p100);
  assert_int_equal(f.dominant_rows, 4);
  assert_int_equal(f.strictly_dominant_rows, 4);
  assert_int_equal(f.looks_spd, 1);
  assert_string_equal(f.symmetry, "symmetric");
  assert_int_equal(f.unmatched, 0);
  assert_int_equal(f.bytes_csr_f64, 10 * 12 + 5 * 8);
  assert_int_equal(f.bytes_csr_f32, 10 * 8 + 5 * 8);
}

static void expect_not_spd(ht_context *ctx, int64_t n, const double *dense, const char *words) {
  ht_facts f = facts_of(ctx, n, dense);
  if (f.looks_spd != 0 || !strstr(f.reason, words)) fail_msg("expected '%s', found %lld: '%s'", words, (long long)f.looks_spd, f.reason);
}

static void what_is_not_positive_definite_is_told_with_the_reason(void **state) {
  const double unsymmetric[] = {4, 1, NAN, 1.5, 4, NAN, NAN, NAN, 4};
  const double one_sided[] = {4, 1, NAN, 4};
  const double zero[] = {1, 2, 2, 0}, missing[] = {1, 2, 2, NAN}, negative[] = {-1, 0.5, 0.5, 3};
  const double minor[] = {1, 1.5, 1.5, 2}, exchange[] = {0, 1, 1, 0};
  const double indefinite[] = {1, 0.9, 0.9, 0.9, 1, -0.9, 0.9, -0.9, 1};
  const double singular[] = {1, 1, 1, 1}, neumann[] = {1, -1, NAN, -1, 2, -1, NAN, -1, 1};
  const double empty_row[] = {1, NAN, NAN, NAN};
  expect_not_spd(*state, 3, unsymmetric, "(1,2) and (2,1), counted from 1, differ by 0.5");
  expect_not_spd(*state, 2, one_sided, "not symmetric");
  expect_not_spd(*state, 2, zero, "the first is (2,2)");
  expect_not_spd(*state, 2, missing, "the first is (2,2)");
  expect_not_spd(*state, 2, negative, "the first is (1,1)");
  expect_not_spd(*state, 2, minor, "(2,1), counted from 1, is too large");
  expect_not_spd(*state, 2, exchange, "2 diagonal entries");
  expect_not_spd(*state, 3, indefinite, "below 0");
  expect_not_spd(*state, 2, singular, "singular");
  expect_not_spd(*state, 3, neumann, "the constant vector is a null vector");
  expect_not_spd(*state, 2, empty_row, "the first is (2,2)");
  assert_int_equal(facts_of(*state, 2, one_sided).unmatched, 1);
  assert_int_equal(facts_of(*state, 2, empty_row).empty_rows, 1);
}

static void any_magnitude_is_measured(void **state) {
  const double sizes[] = {1e-300, 1, 1e300};
  for (int k = 0; k < 3; k++) {
    double s = sizes[k], dense[] = {2 * s, -s, NAN, -s, 2 * s, -s, NAN, -s, 2 * s}; /* eigenvalues 2 s, (2 +- sqrt 2) s */
    ht_facts f = facts_of(*state, 3, dense);
    assert_true(fabs(f.eigenvalue_max / s - 2 - sqrt(2)) <= 64 * DBL_EPSILON);
    assert_true(fabs(f.eigenvalue_min / s - 2 + sqrt(2)) <= 64 * DBL_EPSILON);
    assert_true(fabs(f.scaled_eigenvalue_max - 1 - sqrt(0.5)) <= 64 * DBL_EPSILON);
    assert_int_equal(f.lanczos_steps, 3);
    assert_int_equal(f.looks_spd, 1);
  }
}

static void one_by_one(void **state) {
  double value = 7;
  ht_facts f = facts_of(*state, 1, &value);
  assert_true(f.eigenvalue_min == 7 && f.eigenvalue_max == 7 && f.condition_estimate == 1);
  assert_int_equal(f.looks_spd, 1);
  assert_int_equal(f.rows_by_bandwidth[0], 1);
}

static void json_holds_every_field(void **state) {
  double value = 7;
  ht_facts f = facts_of(*state, 1, &value);
  char text[8192], key[64];
  assert_true(ht_facts_json(&f, text, sizeof text) < sizeof text);
  for (int i = 0; i < ht_facts_count(); i++) {
    snprintf(key, sizeof key, "\"%s\": ", ht_facts_at(i)->name);
    assert_non_null(strstr(text, key));
  }
  assert_null(ht_facts_at(-1));
  assert_null(ht_facts_at(ht_facts_count()));
}

static void the_wathen_matrix_keeps_its_bounds(void **state) {
  const char *names[] = {"nx", "ny"}, *values[] = {"7", "5"};
  ht_matrix *a;
  ht_facts f;
  assert_int_equal(ht_generate(*state, "wathen", 2, names, values, &a), HT_OK);
  assert_int_equal(ht_matrix_facts(a, 200, &f), HT_OK);
  assert_true(f.scaled_eigenvalue_min >= 0.25 * (1 - 1e-12) && f.scaled_eigenvalue_max <= 4.5 * (1 + 1e-12)); /* Wathen 1987 */
  assert_true(f.scaled_eigenvalue_max > 4.4 && f.scaled_eigenvalue_min < 0.3);
  ht_matrix_destroy(a);
}

static void a_request_to_stop_is_obeyed(void **state) {
  const double dense[] = {2, 1, 1, 2};
  ht_matrix *a;
  ht_facts f;
  assert_int_equal(from_dense(*state, 2, dense, &a), HT_OK);
  ht_context_request_stop(*state);
  assert_int_equal(ht_matrix_facts(a, 60, &f), HT_INTERRUPTED);
  ht_context_clear_stop(*state);
  assert_int_equal(ht_matrix_facts(a, -1, &f), HT_BAD_ARGUMENT);
  assert_int_equal(ht_matrix_facts(a, 0, &f), HT_OK);
  assert_true(isnan(f.eigenvalue_min) && f.lanczos_steps == 0 && f.looks_spd == 1);
  ht_matrix_destroy(a);
}

static void the_build_is_described(void **state) {
  char text[1024];
  const char *name;
  for (int i = 0; i < ht_about_count(); i++) {
    assert_int_equal(ht_about_at(*state, i, &name, text, sizeof text), HT_OK);
    assert_true(strlen(name) > 0 && strlen(text) > 0);
    if (!strcmp(name, "version")) assert_string_equal(text, ht_version());
    char again[1024];
    assert_int_equal(ht_about_at(*state, i, &name, again, sizeof again), HT_OK);
    assert_string_equal(again, text); /* asking changes nothing, the instruction set in use included */
    assert_string_equal(ht_context_error(*state), "");
  }
  assert_int_equal(ht_about_at(*state, ht_about_count(), &name, text, sizeof text), HT_BAD_ARGUMENT);
}

/* ---- memory ---- */

typedef struct ration {
  int left, live;
} ration;
static void *allocate(void *user, size_t bytes) {
  ration *r = user;
  if (r->left-- <= 0) return NULL;
  r->live++;
  return malloc(bytes);
}
static void release(void *user, void *memory) {
  ((ration *)user)->live--;
  free(memory);
}

static void every_failing_allocation_is_reported_and_nothing_leaks(void **state) {
  const double dense[] = {2, 1, 1, 2};
  (void)state;
  for (int allowed = 0;; allowed++) {
    ration r = {1000, 0};
    ht_allocator allocator = {allocate, release, &r};
    ht_context *ctx;
    ht_matrix *a;
    ht_facts f;
    assert_int_equal(ht_context_create_with(&allocator, &ctx), HT_OK);
    assert_int_equal(from_dense(ctx, 2, dense, &a), HT_OK);
    r.left = allowed;
    ht_status status = ht_matrix_facts(a, 60, &f);
    ht_matrix_destroy(a);
    ht_context_destroy(ctx);
    assert_int_equal(r.live, 0);
    if (status == HT_OK) {
      assert_true(allowed > 0);
      return;
    }
    assert_int_equal(status, HT_NO_MEMORY);
  }
}

/* ---- against LAPACK ---- */
#ifdef HT_TEST_LAPACKE

static uint64_t seed = 1;
static double random_value(void) { /* in (-1, 1) */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)seed * 0x1p-63;
}

static const int sizes[] = {1, 2, 3, 17, 63, 64, 65, 130};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void tridiagonal_extremes_are_those_of_lapack(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++)
    for (int kind = 0; kind < 4; kind++) {
      int n = sizes[s];
      double d[MOST], e[MOST], w[MOST], o[MOST], low, high, scale = kind == 3 ? 1e150 : 1;
      for (int i = 0; i < n; i++) {
        d[i] = w[i] = random_value() * scale;
        e[i] = o[i] = (kind == 1 ? 0 : kind == 2 ? (i % 2) * random_value() : random_value()) * scale; /* also decoupled blocks */
      }
      assert_int_equal(LAPACKE_dsterf(n, w, o), 0);
      ht_tridiagonal_extremes(n, d, e, 0, &low, &high);
      double bound = 4 * n * DBL_EPSILON * fmax(fabs(w[0]), fabs(w[n - 1]));
      assert_true(fabs(low - w[0]) <= bound);
      assert_true(fabs(high - w[n - 1]) <= bound);
    }
  double low, high, positive[] = {2, 2e-8, 1}, zero[] = {0, 0}, infinite[] = {1, INFINITY};
  ht_tridiagonal_extremes(3, positive, zero, 1e-6, &low, &high);
  assert_true(fabs(low - 2e-8) <= 1e-6 * 2e-8 && fabs(high - 2) <= 1e-6 * 2);
  ht_tridiagonal_extremes(2, infinite, zero, 0, &low, &high);
  assert_true(isnan(low) && isnan(high));
  ht_tridiagonal_extremes(0, NULL, NULL, 0, &low, &high);
  assert_true(isnan(low) && isnan(high));
}

/* With as many steps as rows the Ritz values are the extreme eigenvalues; with fewer they lie within the spectrum. */
static void lanczos_extremes_are_those_of_lapack(void **state) {
  static double dense[MOST * MOST], copy[MOST * MOST];
  double w[MOST];
  for (int s = 0; s < SIZES; s++) {
    int n = sizes[s];
    for (int i = 0; i < n; i++)
      for (int j = 0; j <= i; j++) dense[i * n + j] = dense[j * n + i] = random_value();
    memcpy(copy, dense, sizeof dense);
    assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', n, copy, n, w), 0);
    ht_matrix *a;
    assert_int_equal(from_dense(*state, n, dense, &a), HT_OK);
    ht_csr_view view = ht_matrix_view(a);
    double norm = fmax(fabs(w[0]), fabs(w[n - 1])), bound = 4 * n * DBL_EPSILON * norm;
    for (int steps = 1; steps <= n; steps += steps < 6 ? 1 : 31) {
      ht_lanczos found;
      assert_int_equal(ht_lanczos_extremes(*state, &view, NULL, steps, &found), HT_OK);
      assert_int_equal(found.steps, steps);
      assert_true(found.smallest >= w[0] - bound && found.largest <= w[n - 1] + bound);
    }
    ht_lanczos found;
    assert_int_equal(ht_lanczos_extremes(*state, &view, NULL, n, &found), HT_OK);
    assert_true(fabs(found.smallest - w[0]) <= bound && fabs(found.largest - w[n - 1]) <= bound);
    ht_matrix_destroy(a);
  }
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(counts_are_those_of_the_matrix, make_context, free_context),
      cmocka_unit_test_setup_teardown(what_is_not_positive_definite_is_told_with_the_reason, make_context, free_context),
      cmocka_unit_test_setup_teardown(any_magnitude_is_measured, make_context, free_context),
      cmocka_unit_test_setup_teardown(one_by_one, make_context, free_context),
      cmocka_unit_test_setup_teardown(json_holds_every_field, make_context, free_context),
      cmocka_unit_test_setup_teardown(the_wathen_matrix_keeps_its_bounds, make_context, free_context),
      cmocka_unit_test_setup_teardown(a_request_to_stop_is_obeyed, make_context, free_context),
      cmocka_unit_test_setup_teardown(the_build_is_described, make_context, free_context),
      cmocka_unit_test(every_failing_allocation_is_reported_and_nothing_leaks),
#ifdef HT_TEST_LAPACKE
      cmocka_unit_test(tridiagonal_extremes_are_those_of_lapack),
      cmocka_unit_test_setup_teardown(lanczos_extremes_are_those_of_lapack, make_context, free_context),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
