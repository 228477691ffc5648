/* Matrices from the caller's arrays, and new values. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "data/diagonal.h"
#include "support/patterns.h"

static int open_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static void test_copy_sorts_and_sums(void **state) {
  static const int64_t start[] = {0, 3, 4};
  static const int32_t columns[] = {1, 0, 1, 1};
  static const double values[] = {1, 4, 2, 5};
  ht_matrix *a;
  assert_int_equal(ht_matrix_create_csr(*state, 2, start, columns, values, HT_COPY, &a), HT_OK);
  const int64_t *s;
  const int32_t *c;
  const double *v;
  ht_matrix_csr(a, &s, &c, &v);
  assert_int_equal(ht_matrix_nonzeros(a), 3);
  assert_true(c[0] == 0 && c[1] == 1 && c[2] == 1 && v[0] == 4 && v[1] == 3 && v[2] == 5 && s[1] == 2 && s[2] == 3);
  assert_int_equal(a->duplicates, 1);
  assert_int_equal(ht_matrix_symmetry(a), HT_UNSYMMETRIC);
  ht_matrix_destroy(a);
}

/* One row of every length in random order, some columns twice: sorted, and equal ones summed in the order given. */
static void test_rows_of_every_length(void **state) {
  enum { N = 100, LONGEST = 120 };
  uint32_t random = 1;
  for (int length = 1; length <= LONGEST; length++) {
    int64_t start[N + 1] = {0};
    int32_t columns[LONGEST], present[N] = {0};
    double values[LONGEST], sum[N] = {0};
    for (int i = 0; i < N; i++) start[i + 1] = length;
    for (int k = 0; k < length; k++) {
      random = random * 1664525u + 1013904223u;
      columns[k] = (int32_t)(random >> 8) % N;
      values[k] = 1 + 1e-16 * (double)(random >> 8);
      sum[columns[k]] += values[k];
      present[columns[k]] = 1;
    }
    ht_matrix *a;
    const int32_t *c;
    const double *v;
    int64_t at = 0;
    assert_int_equal(ht_matrix_create_csr(*state, N, start, columns, values, HT_COPY, &a), HT_OK);
    ht_matrix_csr(a, NULL, &c, &v);
    for (int32_t j = 0; j < N; j++) {
      if (!present[j]) continue;
      assert_true(at < ht_matrix_nonzeros(a) && c[at] == j && v[at] == sum[j]);
      at++;
    }
    assert_int_equal(at, ht_matrix_nonzeros(a));
    assert_int_equal(a->duplicates, length - at);
    ht_matrix_destroy(a);
  }
}

static void test_borrow_leaves_the_arrays_alone(void **state) {
  int64_t start[] = {0, 2, 4};
  int32_t columns[] = {0, 1, 0, 1};
  double values[] = {4, 1, 1, 5}, other[] = {1, 2, 2, 3};
  ht_matrix *a;
  assert_int_equal(ht_matrix_create_csr(*state, 2, start, columns, values, HT_BORROW, &a), HT_OK);
  const double *v;
  ht_matrix_csr(a, NULL, NULL, &v);
  assert_ptr_equal(v, values);
  uint64_t version = a->version;
  assert_int_equal(ht_matrix_set_values(a, other), HT_OK);
  assert_true(values[0] == 4 && values[1] == 1);
  assert_true(a->version != version);
  ht_matrix_csr(a, NULL, NULL, &v);
  assert_memory_equal(v, other, sizeof other);
  assert_int_equal(ht_matrix_set_values(a, values), HT_OK);
  ht_matrix_destroy(a);
}

static void test_new_values_measure_symmetry(void **state) {
  static const int64_t start[] = {0, 2, 4};
  static const int32_t columns[] = {0, 1, 0, 1};
  double symmetric[] = {4, 1, 1, 5}, not_symmetric[] = {4, 1, 2, 5}, not_finite[] = {4, 1, NAN, 5};
  ht_matrix *a;
  assert_int_equal(ht_matrix_create_csr(*state, 2, start, columns, symmetric, HT_COPY, &a), HT_OK);
  assert_int_equal(ht_matrix_symmetry(a), HT_SYMMETRIC);
  assert_int_equal(ht_matrix_set_values(a, not_symmetric), HT_OK);
  assert_int_equal(ht_matrix_symmetry(a), HT_UNSYMMETRIC);
  assert_true(a->asymmetry == 1 && a->asymmetric_row == 0 && a->asymmetric_column == 1);
  assert_int_equal(ht_matrix_set_values(a, not_finite), HT_BAD_MATRIX);
  assert_int_equal(ht_matrix_set_values(a, symmetric), HT_OK);
  assert_int_equal(ht_matrix_symmetry(a), HT_SYMMETRIC);
  assert_true(a->asymmetry == 0 && a->asymmetric_row == -1);
  ht_matrix_destroy(a);
}

/* Found while symmetry is measured, and anew with new values; a row without a diagonal entry has 0 there. */
static void test_diagonal_and_norm(void **state) {
  static const int64_t start[] = {0, 2, 4, 5};
  static const int32_t columns[] = {0, 2, 1, 2, 0};
  static const double values[] = {4, -3, 2, 0.5, -3}, other[] = {1, 2, -8, 1, 2}, small[] = {1, 0, 0, 0, 0};
  ht_matrix *a;
  double diagonal[3];
  assert_int_equal(ht_matrix_create_csr(*state, 3, start, columns, values, HT_BORROW, &a), HT_OK);
  assert_true(a->diagonal && a->diagonal[0] == 4 && a->diagonal[1] == 2 && a->diagonal[2] == 0 && a->norm_inf == 7);
  assert_int_equal(ht_matrix_set_values(a, other), HT_OK);
  ht_matrix_diagonal(a, diagonal);
  assert_true(diagonal[0] == 1 && diagonal[1] == -8 && diagonal[2] == 0 && ht_matrix_norm_inf(a) == 9);
  a->norm_inf = 0; /* where they are not known they are looked for */
  double *known = a->diagonal;
  a->diagonal = NULL;
  memset(diagonal, 0, sizeof diagonal);
  ht_matrix_diagonal(a, diagonal);
  assert_true(diagonal[0] == 1 && diagonal[1] == -8 && diagonal[2] == 0 && ht_matrix_norm_inf(a) == 9);
  a->diagonal = known;
  assert_int_equal(ht_matrix_set_values(a, small), HT_OK);
  assert_true(a->diagonal[1] == 0 && ht_matrix_norm_inf(a) == 1);
  ht_matrix_destroy(a);
}

static void test_refused(void **state) {
  static const int64_t start[] = {0, 2, 4}, falling[] = {0, 3, 2}, late[] = {1, 2, 4};
  static const int32_t columns[] = {0, 1, 0, 1}, negative[] = {0, -1, 0, 1}, beyond[] = {0, 1, 0, 2}, unsorted[] = {1, 0, 0, 1};
  static const double values[] = {4, 1, 1, 5}, infinite[] = {4, 1, 1, INFINITY};
  const struct {
    int64_t n;
    const int64_t *start;
    const int32_t *columns;
    const double *values;
    ht_copy_mode mode;
    ht_status status;
    const char *words;
  } cases[] = {
      {0, start, columns, values, HT_COPY, HT_BAD_MATRIX, "at least one row"},
      {3000000000, start, columns, values, HT_COPY, HT_UNSUPPORTED, "32-bit"},
      {2, NULL, columns, values, HT_COPY, HT_BAD_ARGUMENT, "NULL"},
      {2, falling, columns, values, HT_COPY, HT_BAD_ARGUMENT, "row_start[2] is 2 after 3"},
      {2, late, columns, values, HT_COPY, HT_BAD_ARGUMENT, "row_start[0]"},
      {2, start, negative, values, HT_COPY, HT_BAD_MATRIX, "row 0, counted from 0: column -1"},
      {2, start, beyond, values, HT_BORROW, HT_BAD_MATRIX, "row 1, counted from 0: column 2"},
      {2, start, columns, infinite, HT_COPY, HT_BAD_MATRIX, "row 1, column 1, counted from 0:"},
      {2, start, unsorted, values, HT_BORROW, HT_BAD_MATRIX, "must ascend"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_matrix *a;
    ht_status status = ht_matrix_create_csr(*state, cases[i].n, cases[i].start, cases[i].columns, cases[i].values, cases[i].mode, &a);
    assert_null(a);
    if (status != cases[i].status || !strstr(ht_context_error(*state), cases[i].words))
      fail_msg("case %zu: %s: %s", i, ht_status_name(status), ht_context_error(*state));
  }
}

/* The measure against its definition, entry by entry, whatever the number of threads. */
static void test_symmetry_against_definition(void **state) {
  enum { N = 400 };
  static double dense[N][N];
  random_stream s = {5};
  int64_t count = 0;
  int32_t *rows, *columns;
  double *values;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      dense[i][j] = random_below(&s, 3) ? random_signed(&s) : 0;
      count += dense[i][j] != 0;
    }
  double largest = 0;
  int row = -1, column = -1;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      if (dense[i][j] != 0 && fabs(dense[i][j] - dense[j][i]) > largest) {
        largest = fabs(dense[i][j] - dense[j][i]);
        row = i;
        column = j;
      }
  for (int threads = 1; threads <= 5; threads += 2) {
    ht_matrix *a;
    assert_int_equal(ht_context_set_threads(*state, threads), HT_OK);
    assert_int_equal(ht_allocate(*state, count, sizeof *rows, &rows), HT_OK);
    assert_int_equal(ht_allocate(*state, count, sizeof *columns, &columns), HT_OK);
    assert_int_equal(ht_allocate(*state, count, sizeof *values, &values), HT_OK);
    int64_t k = 0;
    for (int j = 0; j < N; j++)
      for (int i = 0; i < N; i++)
        if (dense[i][j] != 0) {
          rows[k] = i;
          columns[k] = j;
          values[k++] = dense[i][j];
        }
    assert_int_equal(ht_matrix_from_entries(*state, N, count, rows, columns, values, 0, "test", &a), HT_OK);
    assert_true(a->symmetry == HT_UNSYMMETRIC && a->asymmetry == largest && a->asymmetric_row == row && a->asymmetric_column == column);
    ht_matrix_destroy(a);
  }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {
      TEST(test_copy_sorts_and_sums),         TEST(test_rows_of_every_length), TEST(test_borrow_leaves_the_arrays_alone),
      TEST(test_new_values_measure_symmetry), TEST(test_diagonal_and_norm),    TEST(test_refused),
      TEST(test_symmetry_against_definition)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
