/* Vectors from words and files, and back. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/random.h"
#include "support/texts.h"

#define ARRAY "%%MatrixMarket matrix array real general\n"

static int open_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static void test_words(void **state) {
  ht_matrix *a;
  double x[2], y[2], z[2];
  assert_int_equal(read_text(*state, SYMMETRIC "2 2 3\n1 1 4\n2 1 -1\n2 2 5\n", &a), HT_OK);
  assert_int_equal(ht_vector_read(*state, "ones", NULL, 2, x), HT_OK);
  assert_true(x[0] == 1 && x[1] == 1);
  assert_int_equal(ht_vector_read(*state, "A*ones", a, 2, x), HT_OK);
  assert_true(x[0] == 3 && x[1] == 4);
  assert_int_equal(ht_vector_read(*state, "random:7", NULL, 2, x), HT_OK);
  assert_int_equal(ht_vector_read(*state, "A*random:7", a, 2, y), HT_OK);
  assert_int_equal(ht_matrix_multiply(a, x, z), HT_OK);
  assert_memory_equal(y, z, sizeof y);
  assert_int_equal(ht_vector_read(*state, "random:8", NULL, 2, y), HT_OK);
  assert_true(x[0] != y[0] && x[1] != y[1]);
  assert_int_equal(ht_vector_read(*state, "A*ones", NULL, 2, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "A*ones", a, 3, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "A*twos", a, 2, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "random:", NULL, 2, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "random:-1", NULL, 2, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "random:1.5", NULL, 2, x), HT_BAD_VECTOR);
  assert_int_equal(ht_vector_read(*state, "no/such/file.mtx", NULL, 2, x), HT_BAD_FILE);
  ht_matrix_destroy(a);
}

/* The documented generator: SplitMix64's own first outputs for seed 0 fix mix() and the increment; and uniform's moments. */
static void test_random_numbers(void **state) {
  (void)state;
  assert_true(ht_random_mix(0x9e3779b97f4a7c15u) == 0xe220a8397b1dcdafu);
  assert_true(ht_random_mix(2 * 0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
  double mean = 0, square = 0;
  int64_t n = 100000;
  for (int64_t i = 0; i < n; i++) {
    double v = ht_random_uniform(1, (uint64_t)i);
    assert_true(v >= -1 && v < 1);
    mean += v / (double)n;
    square += v * v / (double)n;
  }
  /* Five standard deviations: sqrt(1/3/n) of the mean, sqrt(4/45/n) of the square. */
  assert_true(fabs(mean) < 5 * sqrt(1. / 3 / (double)n));
  assert_true(fabs(square - 1. / 3) < 5 * sqrt(4. / 45 / (double)n));
}

static const struct {
  const char *text;
  int64_t n;
  int columns;
  double values[6];
} good[] = {
    {ARRAY "3 1\n1\n2\n3\n", 3, 1, {1, 2, 3}},
    {ARRAY "1 3\n1\n2\n3\n", 3, 1, {1, 2, 3}},
    {ARRAY "3 2\n1\n2\n3\n4\n5\n6\n", 3, 2, {1, 2, 3, 4, 5, 6}},
    {"%%MatrixMarket matrix array integer general\n1 1\n-7\n", 1, 1, {-7}},
    {GENERAL "3 1 2\n3 1 5\n1 1 4\n", 3, 1, {4, 0, 5}},
    {GENERAL "1 3 2\n1 3 5\n1 1 4\n", 3, 1, {4, 0, 5}},
    {GENERAL "2 2 3\n2 1 5\n1 2 4\n2 1 1\n", 2, 2, {0, 6, 4, 0}},
    {"%%MatrixMarket matrix coordinate pattern general\n3 1 1\n2 1\n", 3, 1, {0, 1, 0}},
};

static void test_texts(void **state) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    int columns;
    double *values;
    if (read_vector_bytes(*state, good[i].text, strlen(good[i].text), good[i].n, &columns, &values) != HT_OK)
      fail_msg("%s: %s", good[i].text, ht_context_error(*state));
    assert_int_equal(columns, good[i].columns);
    assert_memory_equal(values, good[i].values, (size_t)(good[i].n * columns) * sizeof(double));
    ht_vector_free(*state, values);
  }
}

static const struct {
  const char *text;
  int64_t n;
  ht_status status;
  const char *words;
} bad[] = {
    {ARRAY "3 1\n1\n2\n3\n", 4, HT_BAD_VECTOR, "text:2: a vector of length 4 is expected, and the file holds 3 x 1"},
    {ARRAY "3 0\n", 3, HT_BAD_VECTOR, "empty"},
    {ARRAY "3 1\n1\n2\n", 3, HT_BAD_FORMAT, "2 of the 3"},
    {ARRAY "3 1\n1\n2\n3\n4\n", 3, HT_BAD_FORMAT, "text:6: more entries"},
    {ARRAY "3 1\n1\nnan\n3\n", 3, HT_BAD_VECTOR, "text:4: the value nan is not finite"},
    {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", 2, HT_BAD_VECTOR, "general"},
    {GENERAL "3 2000000000 1\n1 1 1\n", 3, HT_BAD_VECTOR, "most vectors are empty"},
    {GENERAL "2 1 2\n1 1 1e308\n1 1 1e308\n", 2, HT_BAD_VECTOR, "row 1, column 1, counted from 1, overflows"},
    {"%%MatrixMarket vector coordinate real general\n4 1\n1 1\n", 4, HT_UNSUPPORTED, "vector"},
};

static void test_bad_texts(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int columns;
    double *values;
    ht_status status = read_vector_bytes(*state, bad[i].text, strlen(bad[i].text), bad[i].n, &columns, &values);
    assert_null(values);
    if (status != bad[i].status || !strstr(ht_context_error(*state), bad[i].words))
      fail_msg("case %zu: %s: %s", i, ht_status_name(status), ht_context_error(*state));
  }
}

static void test_round_trip(void **state) {
  static const char *const paths[] = {"test_vector.mtx", "test_vector.mtx.gz", "test_vector.npy"};
  int64_t n = 70001;
  double *x = malloc(2 * (size_t)n * sizeof *x), *y;
  for (int64_t i = 0; i < 2 * n; i++) x[i] = ht_random_uniform(3, (uint64_t)i) * pow(10, (double)(i % 600 - 300));
  for (int i = 0; i < 6; i++) {
    int columns = 1 + i % 2, found;
    assert_int_equal(ht_vector_write(*state, paths[i / 2], n, columns, x), HT_OK);
    assert_int_equal(ht_vector_read_block(*state, paths[i / 2], NULL, n, &found, &y), HT_OK);
    assert_int_equal(found, columns);
    assert_memory_equal(x, y, (size_t)(n * columns) * sizeof *x);
    ht_vector_free(*state, y);
    if (columns == 2) { /* one is asked for, two are there */
      double *one = malloc((size_t)n * sizeof *one);
      assert_int_equal(ht_vector_read(*state, paths[i / 2], NULL, n, one), HT_BAD_VECTOR);
      free(one);
    }
    unlink(paths[i / 2]);
  }
  x[5] = NAN;
  assert_int_equal(ht_vector_write(*state, "test_vector.mtx", n, 1, x), HT_BAD_VECTOR);
  assert_int_equal(access("test_vector.mtx", F_OK), -1);
  assert_int_equal(ht_vector_write(*state, "test_vector.npz", n, 1, x), HT_UNSUPPORTED);
  free(x);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(test_words), TEST(test_random_numbers), TEST(test_texts), TEST(test_bad_texts),
                                     TEST(test_round_trip)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
