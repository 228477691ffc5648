/* Reading and writing Matrix Market. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include "support/patterns.h"
#include "support/texts.h"

static warning_log warnings;

static int open_context(void **state) {
  warnings.warnings = 0;
  if (ht_context_create((ht_context **)state) != HT_OK) return 1;
  ht_context_set_log(*state, count_warning, &warnings, HT_LOG_WARNING);
  return 0;
}

static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static double at(const ht_matrix *a, int64_t i, int64_t j) {
  ht_csr_view view = ht_matrix_view(a);
  int64_t k = ht_matrix_find(&view, i - 1, (int32_t)(j - 1));
  return k < 0 ? 0 : a->values[k];
}

static ht_matrix *must_read(ht_context *ctx, const char *text) {
  ht_matrix *a;
  if (read_text(ctx, text, &a) != HT_OK) fail_msg("%s: %s", text, ht_context_error(ctx));
  return a;
}

/* Texts that are all [4 -1; -1 4], symmetric. */
static void test_same_matrix(void **state) {
  static const char *const texts[] = {
      SYMMETRIC "2 2 3\n1 1 4\n2 1 -1\n2 2 4\n",
      SYMMETRIC "2 2 3\n1 1 4\n1 2 -1\n2 2 4",                                          /* upper triangle, no final newline */
      SYMMETRIC "2 2 3\r\n1 1 4\r\n2 1 -1\r\n2 2 4\r\n",                                /* CRLF */
      "%%MatrixMarket matrix coordinate real symmetric\r2 2 3\r1 1 4\r2 1 -1\r2 2 4\r", /* CR */
      "\xef\xbb\xbf" SYMMETRIC "2 2 3\n1 1 4\n2 1 -1\n2 2 4\n",                         /* byte-order mark */
      "%%MATRIXMARKET\tMATRIX  Coordinate REAL symmetric  \n% c\n\n  %\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n",
      SYMMETRIC "%\n\n%%\n \n\t2\t2 3 \n% here too\n  1\t1   4.0e0 \n\n2 1 -1D+00\n% and here\n2 2 4.\n\n\n",
      "%%MatrixMarket matrix coordinate double symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n",
      "%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n",
      GENERAL "2 2 4\n2 2 4\n1 2 -1\n2 1 -1\n1 1 4\n",
      "%%MatrixMarket matrix array real general\n2 2\n4\n-1\n-1\n4\n",
      "%%MatrixMarket matrix array integer symmetric\n%\n2 2\n4\n\n-1\n4\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ht_matrix *a = must_read(*state, texts[i]);
    assert_int_equal(ht_matrix_rows(a), 2);
    assert_int_equal(ht_matrix_nonzeros(a), 4);
    assert_int_equal(ht_matrix_symmetry(a), HT_SYMMETRIC);
    if (at(a, 1, 1) != 4 || at(a, 1, 2) != -1 || at(a, 2, 1) != -1 || at(a, 2, 2) != 4) fail_msg("text %zu", i);
    ht_matrix_destroy(a);
  }
  assert_int_equal(warnings.warnings, 0);
}

/* A text, the status it must get, and words of the sentence. */
static const struct {
  const char *text;
  ht_status status;
  const char *words;
} refused[] = {
    {"", HT_BAD_FORMAT, "text:1: the file is empty"},
    {"\n", HT_BAD_FORMAT, "text:1: the first line must start with"},
    {"3 3 3\n1 1 1\n", HT_BAD_FORMAT, "text:1: the banner is missing"},
    {"hello", HT_BAD_FORMAT, "no Matrix Market file"},
    {"%%MatrixMarket\n", HT_BAD_FORMAT, "the object must be"},
    {"%%MatrixMarket vector array real general\n", HT_UNSUPPORTED, "vector"},
    {"%%MatrixMarket matrix coordinate complex hermitian\n", HT_UNSUPPORTED, "complex"},
    {"%%MatrixMarket matrix coordinate real hermitian\n", HT_UNSUPPORTED, "hermitian"},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n", HT_UNSUPPORTED, "skew-symmetric"},
    {"%%MatrixMarket matrix coordinate real symmetric extra\n", HT_BAD_FORMAT, "must end after"},
    {"%%MatrixMarket matrix coordinate quaternion symmetric\n", HT_BAD_FORMAT, "quaternion"},
    {"%%MatrixMarket matrix array pattern general\n2 2\n", HT_BAD_FORMAT, "pattern"},
    {SYMMETRIC, HT_BAD_FORMAT, "text:2: the file ends before the size line"},
    {SYMMETRIC "1 1 1 1\n1 1 1\n", HT_BAD_FORMAT, "text:2: the size line holds more"},
    {SYMMETRIC "1 1\n1 1 1\n", HT_BAD_FORMAT, "text:2: the size line must be"},
    {SYMMETRIC "-1 -1 1\n1 1 1\n", HT_BAD_FORMAT, "text:2: the size line must be"},
    {SYMMETRIC "100 100 460 1 0\n1 1 1\n", HT_UNSUPPORTED, "Lis"},
    {SYMMETRIC "0 0 0\n", HT_BAD_MATRIX, "text:2: the matrix is empty"},
    {GENERAL "2 3 1\n1 1 1\n", HT_BAD_MATRIX, "text:2: the matrix must be square"},
    {SYMMETRIC "2 3 1\n1 1 1\n", HT_BAD_MATRIX, "text:2: a symmetric matrix must be square"},
    {SYMMETRIC "3000000000 3000000000 1\n1 1 1\n", HT_UNSUPPORTED, "32-bit"},
    {SYMMETRIC "99999999999999999999 99999999999999999999 1\n1 1 1\n", HT_UNSUPPORTED, "32-bit"},
    {SYMMETRIC "3 3 3000000000\n1 1 1\n", HT_BAD_FORMAT, "too short"},
    {SYMMETRIC "3 3 99999999999999999999\n1 1 1\n", HT_BAD_FORMAT, "too short"},
    {SYMMETRIC "2147483647 2147483647 2\n1 1 1\n2 2 1\n", HT_BAD_MATRIX, "singular"},
    {"%%MatrixMarket matrix array real general\n2147483647 2147483647\n1\n", HT_BAD_FORMAT, "too short"},
    {SYMMETRIC "2 2 2\n0 1 1\n2 2 1\n", HT_BAD_FORMAT, "text:3: row index 0 is not within 1 to 2"},
    {SYMMETRIC "2 2 2\n1 1 1\n2 3 1\n", HT_BAD_FORMAT, "text:4: column index 3 is not within 1 to 2"},
    {SYMMETRIC "2 2 2\n1 1 1\n\n%\n-2 2 1\n", HT_BAD_FORMAT, "text:6: row index -2"},
    {SYMMETRIC "2 2 1\n99999999999999999999999 1 1\n", HT_BAD_FORMAT, "text:3: row index 9999"},
    {SYMMETRIC "2 2 1\n1.0 1 1\n", HT_BAD_FORMAT, "text:3: a row index is expected, and '1.0' is found"},
    {SYMMETRIC "2 2 1\n1 one 1\n", HT_BAD_FORMAT, "text:3: a column index is expected, and 'one' is found"},
    {SYMMETRIC "2 2 1\n1\n", HT_BAD_FORMAT, "text:3: the column index is missing"},
    {SYMMETRIC "2 2 2\n1 1\n2 2\n", HT_BAD_FORMAT, "text:3: the value is missing"},
    {SYMMETRIC "2 2 1\n1 1 one\n", HT_BAD_FORMAT, "text:3: a number is expected, and 'one' is found"},
    {SYMMETRIC "2 2 1\n1 1 1,5\n", HT_BAD_FORMAT, "text:3: a number is expected, and '1,5' is found"},
    {SYMMETRIC "2 2 1\n1 1 1 2\n", HT_BAD_FORMAT, "text:3: the line must end after the value, and '2' follows"},
    {SYMMETRIC "2 2 1\n1 1 nan\n", HT_BAD_MATRIX, "text:3: the value nan is not finite"},
    {SYMMETRIC "2 2 1\n1 1 -Infinity\n", HT_BAD_MATRIX, "text:3: the value -Infinity is not finite"},
    {SYMMETRIC "2 2 1\n1 1 1E9999\n", HT_BAD_MATRIX, "text:3: the value 1E9999 is too large"},
    {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", HT_BAD_FORMAT, "text:3: the banner says integer"},
    {"%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n", HT_BAD_FORMAT, "text:3: a pattern has two numbers"},
    {SYMMETRIC "2 2 3\n1 1 1\n2 2 1\n", HT_BAD_FORMAT, "text:4: the file ends after 2 of the 3"},
    {SYMMETRIC "2 2 1\n1 1 1\n%\n\n2 2 1\n", HT_BAD_FORMAT, "text:6: more entries than the 1 that line 2 declares"},
    {GENERAL "1 1 2\n1 1 1e308\n1 1 1e308\n", HT_BAD_MATRIX, "row 1, column 1, counted from 1, overflows"},
    {SYMMETRIC "3 3 4\n2 1 5\n1 2 5\n3 1 7\n1 1 1\n", HT_BAD_MATRIX, "in one only"},
    {SYMMETRIC "2 2 2\n2 1 5\n1 2 6\n", HT_BAD_MATRIX, "different values"},
    {"PK\3\4 this is not really a zip archive of any kind", HT_BAD_FORMAT, "zip archive is damaged"},
    {"\x93NUMPY", HT_BAD_FORMAT, "NumPy array"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", HT_BAD_FORMAT, "git lfs pull"},
    {"MATLAB 5.0 MAT-file, Platform", HT_BAD_FORMAT, "MATLAB"},
    {"title\n 1 2 3\nRSA   3 3\n", HT_UNSUPPORTED, "Harwell-Boeing"},
};

static void test_refused(void **state) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    ht_matrix *a;
    ht_status status = read_text(*state, refused[i].text, &a);
    const char *sentence = ht_context_error(*state);
    assert_null(a);
    if (status != refused[i].status || !strstr(sentence, refused[i].words) || strchr(sentence, '\n'))
      fail_msg("case %zu: %s: %s", i, ht_status_name(status), sentence);
  }
}

static void test_duplicates(void **state) {
  ht_matrix *a = must_read(*state, SYMMETRIC "2 2 5\n1 1 4\n2 1 -1\n2 2 4\n2 1 -0.5\n2 2 1\n");
  assert_true(at(a, 1, 2) == -1.5 && at(a, 2, 1) == -1.5 && at(a, 2, 2) == 5);
  assert_int_equal(a->duplicates, 2);
  assert_int_equal(warnings.warnings, 1);
  assert_non_null(strstr(warnings.last, "2 duplicate entries were summed"));
  ht_matrix_destroy(a);
}

static void test_triangles(void **state) {
  ht_matrix *a = must_read(*state, SYMMETRIC "3 3 5\n1 1 4\n2 1 -1\n2 2 4\n2 3 -2\n3 3 4\n"); /* some in each */
  assert_int_equal(ht_matrix_nonzeros(a), 7);
  assert_true(at(a, 1, 2) == -1 && at(a, 2, 1) == -1 && at(a, 2, 3) == -2 && at(a, 3, 2) == -2);
  assert_int_equal(ht_matrix_symmetry(a), HT_SYMMETRIC);
  assert_int_equal(warnings.warnings, 0);
  ht_matrix_destroy(a);
  a = must_read(*state, SYMMETRIC "2 2 4\n1 1 4\n2 1 -1\n1 2 -1\n2 2 4\n"); /* each twice: not doubled */
  assert_true(at(a, 1, 2) == -1 && at(a, 2, 1) == -1 && ht_matrix_nonzeros(a) == 4);
  assert_int_equal(warnings.warnings, 1);
  ht_matrix_destroy(a);
}

static void test_symmetry(void **state) {
  static const struct {
    const char *text;
    ht_symmetry symmetry;
    int64_t row, column;
  } cases[] = {
      {GENERAL "2 2 4\n1 1 4\n1 2 -1\n2 1 -1\n2 2 4\n", HT_SYMMETRIC, -1, -1},
      {GENERAL "2 2 4\n1 1 4\n1 2 -1.0000000000000002\n2 1 -1\n2 2 4\n", HT_NEARLY_SYMMETRIC, 0, 1},
      {GENERAL "2 2 4\n1 1 4\n1 2 -1.000000000001\n2 1 -1\n2 2 4\n", HT_UNSYMMETRIC, 0, 1},
      {GENERAL "2 2 3\n1 1 4\n2 1 -1\n2 2 4\n", HT_UNSYMMETRIC, 1, 0},                     /* no partner */
      {GENERAL "2 2 3\n1 1 4\n2 1 0\n2 2 4\n", HT_SYMMETRIC, -1, -1},                      /* a zero needs none */
      {GENERAL "2 2 4\n1 1 4\n1 2 1e-16\n2 1 -1e-17\n2 2 4\n", HT_NEARLY_SYMMETRIC, 0, 1}, /* cancelled in assembly */
      {GENERAL "2 2 3\n1 1 4\n2 1 1e-16\n2 2 4\n", HT_NEARLY_SYMMETRIC, 1, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_matrix *a = must_read(*state, cases[i].text);
    double averaged[4];
    if (a->symmetry != cases[i].symmetry || a->asymmetric_row != cases[i].row || a->asymmetric_column != cases[i].column)
      fail_msg("case %zu: %d (%lld,%lld)", i, a->symmetry, (long long)a->asymmetric_row, (long long)a->asymmetric_column);
    if (a->symmetry == HT_NEARLY_SYMMETRIC) {
      ht_matrix_averaged_values(a, averaged);
      if (a->nnz == 4) assert_true(averaged[1] == averaged[2] && averaged[1] == (at(a, 1, 2) + at(a, 2, 1)) / 2);
      if (a->nnz == 3) assert_true(averaged[1] == 0);
    }
    ht_matrix_destroy(a);
  }
}

/* ---- larger ones ---- */

static int same(const ht_matrix *a, const ht_matrix *b) {
  return a->n == b->n && a->nnz == b->nnz && a->symmetry == b->symmetry &&
         !memcmp(a->row_start, b->row_start, (size_t)(a->n + 1) * sizeof *a->row_start) &&
         !memcmp(a->columns, b->columns, (size_t)a->nnz * sizeof *a->columns) &&
         !memcmp(a->values, b->values, (size_t)a->nnz * sizeof *a->values);
}

/* n x n, `entries` random ones, few of them twice; comments and blank lines among them. */
static char *random_text(int64_t n, int64_t entries, int symmetric, uint64_t seed) {
  random_stream s = {seed};
  char *text = malloc((size_t)entries * 64 + 200), *p = text;
  p += sprintf(p, "%s%lld %lld %lld\n", symmetric ? SYMMETRIC : GENERAL, (long long)n, (long long)n, (long long)entries);
  for (int64_t k = 0; k < entries; k++) {
    int64_t i = random_below(&s, n), j = random_below(&s, n);
    if (symmetric && j > i) j = i;
    p += sprintf(p, "%lld %lld %.17g\n", (long long)i + 1, (long long)j + 1, random_signed(&s));
    if (random_below(&s, 1000) == 0) p += sprintf(p, "%% comment\n\n");
  }
  return text;
}

static void test_threads_do_not_matter(void **state) {
  ht_context *ctx = *state;
  for (int symmetric = 0; symmetric < 2; symmetric++) {
    char *text = random_text(700, 120000, symmetric, 3);
    ht_matrix *reference = NULL, *a;
    for (int threads = 1; threads <= 7; threads += 2) {
      assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
      a = must_read(ctx, text);
      if (reference && !same(a, reference)) fail_msg("%d threads", threads);
      if (threads == 1)
        reference = a;
      else
        ht_matrix_destroy(a);
    }
    assert_true(reference->duplicates > 0);
    ht_matrix_destroy(reference);
    free(text);
  }
}

/* Against the plainest way: add every entry into a dense array, in order. */
static void test_against_dense(void **state) {
  static const int64_t sizes[] = {1, 2, 63, 64, 65, 100};
  for (size_t t = 0; t < 2 * sizeof sizes / sizeof *sizes; t++) {
    int64_t n = sizes[t / 2], entries = 9 * n, i, j;
    int symmetric = t % 2;
    char *text = random_text(n, entries, symmetric, t);
    double *dense = calloc((size_t)(n * n), sizeof *dense), value;
    for (char *line = strchr(strchr(text, '\n') + 1, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
      long long row, column;
      if (*line == '\n' || sscanf(line, "%lld %lld %lf", &row, &column, &value) != 3) continue;
      dense[(row - 1) * n + column - 1] += value;
      if (symmetric && row != column) dense[(column - 1) * n + row - 1] += value;
    }
    ht_matrix *a = must_read(*state, text);
    int64_t nonzeros = 0;
    for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) {
        nonzeros += dense[i * n + j] != 0;
        if (at(a, i + 1, j + 1) != dense[i * n + j])
          fail_msg("n %lld: (%lld,%lld) %.17g %.17g", (long long)n, (long long)i, (long long)j, at(a, i + 1, j + 1), dense[i * n + j]);
      }
    assert_int_equal(a->nnz, nonzeros);
    ht_matrix_destroy(a);
    free(dense);
    free(text);
  }
}

/* A dense row in random order goes through the long sort. */
static void test_long_row(void **state) {
  int64_t n = 5000;
  char *text = malloc(200000), *p = text;
  p += sprintf(p, "%s%lld %lld %lld\n", GENERAL, (long long)n, (long long)n, (long long)n + 1);
  for (int64_t k = 0; k < n; k++) p += sprintf(p, "7 %lld %lld\n", (long long)(k * 1237 % n) + 1, (long long)(k * 1237 % n));
  sprintf(p, "7 11 0.5\n");
  ht_matrix *a = must_read(*state, text);
  assert_int_equal(a->nnz, n);
  for (int64_t j = 0; j < n; j++) assert_true(a->columns[j] == j && a->values[j] == (double)j + (j == 10 ? .5 : 0));
  ht_matrix_destroy(a);
  free(text);
}

static void test_round_trip(void **state) {
  static const char *const paths[] = {"test_mtx.mtx", "test_mtx.mtx.gz", "test_mtx.npz"};
  ht_context *ctx = *state;
  for (int kind = 0; kind < 3; kind++) {
    char *text = random_text(300, kind == 2 ? 90000 : 20000, kind > 0, 5);
    ht_matrix *a = must_read(ctx, text), *b;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
      size_t size[2];
      char *bytes[2];
      for (int threads = 1; threads <= 3; threads += 2) {
        assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
        assert_int_equal(ht_matrix_write(a, paths[i]), HT_OK);
        bytes[threads / 2] = slurp(paths[i], &size[threads / 2]);
      }
      assert_true(size[0] == size[1] && !memcmp(bytes[0], bytes[1], size[0]));
      assert_int_equal(ht_matrix_read(ctx, paths[i], &b), HT_OK);
      if (!same(a, b)) fail_msg("%s, kind %d", paths[i], kind);
      ht_matrix_destroy(b);
      free(bytes[0]);
      free(bytes[1]);
      assert_int_equal(unlink(paths[i]), 0);
    }
    ht_matrix_destroy(a);
    free(text);
  }
}

static void test_gzip_members_and_damage(void **state) {
  ht_matrix *a;
  gzFile f = gzopen("test_mtx.gz", "wb");
  gzputs(f, SYMMETRIC "2 2 3\n1 1 4\n2 ");
  gzclose(f);
  f = gzopen("test_mtx.gz", "ab");
  gzputs(f, "1 -1\n2 2 4\n");
  gzclose(f);
  size_t size;
  char *bytes = slurp("test_mtx.gz", &size);
  unlink("test_mtx.gz");
  assert_int_equal(read_bytes(*state, bytes, size, &a), HT_OK);
  assert_true(at(a, 1, 2) == -1);
  ht_matrix_destroy(a);
  for (size_t length = 2; length < size; length++) { /* the end of the first member is a clean end, but of too few entries */
    assert_int_equal(read_bytes(*state, bytes, length, &a), HT_BAD_FORMAT);
    assert_null(a);
  }
  bytes[size - 6] ^= 1; /* the checksum */
  assert_int_equal(read_bytes(*state, bytes, size, &a), HT_BAD_FORMAT);
  free(bytes);
}

/* Cut at every byte, a text is refused; only the line end after the last entry, and digits of it, may go unnoticed. */
static void test_truncation(void **state) {
  const char *text = SYMMETRIC "% c\n3 3 4\n1 1 4.5e0\n2 1 -1\n2 2 4\n3 3 40\n";
  for (size_t length = 0; length < strlen(text) - 2; length++) {
    ht_matrix *a;
    ht_status status = read_bytes(*state, text, length, &a);
    if (status != HT_BAD_FORMAT || a) fail_msg("%zu bytes: %s", length, ht_status_name(status));
  }
}

/* Any bytes: a matrix or a sentence. */
static void test_mutations(void **state) {
  static const char bytes[] = "0123456789 \n\r\t%.-+eEdD\0nN";
  char *original = random_text(9, 30, 1, 11);
  size_t size = strlen(original);
  random_stream s = {7};
  for (int i = 0; i < 20000; i++) {
    char *text = malloc(size);
    memcpy(text, original, size);
    for (int64_t k = random_below(&s, 3); k >= 0; k--) text[random_below(&s, (int64_t)size)] = bytes[random_below(&s, sizeof bytes)];
    ht_matrix *a;
    ht_status status = read_bytes(*state, text, size, &a);
    if ((status == HT_OK) != (a != NULL)) fail_msg("%.*s", (int)size, text);
    if (status != HT_OK) assert_true(*ht_context_error(*state));
    ht_matrix_destroy(a);
    free(text);
  }
  free(original);
}

static void test_output_is_whole_or_absent(void **state) {
  ht_context *ctx = *state;
  ht_matrix *a = must_read(ctx, SYMMETRIC "1 1 1\n1 1 3\n");
  size_t size;
  assert_int_equal(ht_matrix_write(a, "no/such/folder.mtx"), HT_BAD_FILE);
  assert_int_equal(ht_matrix_write(a, "x.txt"), HT_UNSUPPORTED);
  assert_int_equal(ht_matrix_write(a, "."), HT_UNSUPPORTED);
  if (access("/dev/full", W_OK) == 0) assert_int_equal(ht_matrix_write(a, "/dev/full"), HT_BAD_FILE);
  if (access("/dev/null", W_OK) == 0) assert_int_equal(ht_matrix_write(a, "/dev/null"), HT_OK);
  struct stat about;
  assert_true(stat("/dev/null", &about) == 0 && S_ISCHR(about.st_mode)); /* not replaced by a file */
  /* An old file keeps its mode, and a link its target. */
  FILE *f = fopen("test_old.mtx", "w");
  fputs("old", f);
  fclose(f);
  assert_int_equal(chmod("test_old.mtx", 0640), 0);
  unlink("test_link.mtx");
  assert_int_equal(symlink("test_old.mtx", "test_link.mtx"), 0);
  assert_int_equal(ht_matrix_write(a, "test_link.mtx"), HT_OK);
  assert_true(lstat("test_link.mtx", &about) == 0 && S_ISLNK(about.st_mode));
  assert_true(stat("test_old.mtx", &about) == 0 && (about.st_mode & 0777) == 0640);
  char *text = slurp("test_old.mtx", &size);
  assert_string_equal(text, SYMMETRIC "1 1 1\n1 1 3\n");
  free(text);
  unlink("test_link.mtx");
  unlink("test_old.mtx");
  ht_matrix_destroy(a);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {
      TEST(test_same_matrix),
      TEST(test_refused),
      TEST(test_duplicates),
      TEST(test_triangles),
      TEST(test_symmetry),
      TEST(test_long_row),
      TEST(test_threads_do_not_matter),
      TEST(test_against_dense),
      TEST(test_round_trip),
      TEST(test_truncation),
      TEST(test_gzip_members_and_damage),
      TEST(test_mutations),
      TEST(test_output_is_whole_or_absent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
