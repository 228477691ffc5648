/* Test problems against the files of the SuiteSparse collection's matrices, where HALFTONE_MATRICES names a folder that has
 * them (regenerated/NAME.mtx.gz); skipped with a word otherwise. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <zlib.h>
#include <cmocka.h>
#include "data/matrix.h"
#include "support/generated.h"

/* Which kind makes which file, and how many units in the last place apart (both are computed, in their own order). */
static const struct {
  const char *line, *name;
  int ulps;
} files[] = {
    {"trefethen", "Trefethen_20000", 0},
    {"torsion", "torsion1", 0},
    {"obstacle", "obstclae", 0},
    {"cvxbqp", "cvxbqp1", 0},
    {"fv", "fv1", 0},
    {"fv size=99 diagonal=3.51005", "fv2", 0},
    {"fv size=99 diagonal=3", "fv3", 0},
    {"jnlbrng", "jnlbrng1", 8},
};

static const double *find(const ht_matrix *a, long long i, long long j) {
  if (i < 0 || i >= a->n) return NULL;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
    if (a->columns[k] == j) return &a->values[k];
  return NULL;
}

/* Reads one triangle with indices from 1, as these files have it. */
static void compare(const ht_matrix *a, gzFile file, const char *name, int ulps) {
  char line[256];
  long long rows, columns, entries, i, j, seen = 0, diagonal = 0;
  double value;
  do assert_non_null(gzgets(file, line, sizeof line));
  while (line[0] == '%');
  assert_int_equal(sscanf(line, "%lld %lld %lld", &rows, &columns, &entries), 3);
  assert_int_equal(rows, a->n);
  while (gzgets(file, line, sizeof line)) {
    assert_int_equal(sscanf(line, "%lld %lld %lf", &i, &j, &value), 3);
    const double *ours = find(a, i - 1, j - 1);
    if (!ours) fail_msg("%s: (%lld, %lld) is missing", name, i, j);
    if (!(fabs(*ours - value) <= ulps * 0x1p-53 * fabs(value))) fail_msg("%s: (%lld, %lld) is %.17g, not %.17g", name, i, j, *ours, value);
    seen++;
    diagonal += i == j;
  }
  assert_int_equal(seen, entries);
  assert_int_equal(2 * seen - diagonal, a->nnz);
}

static void kinds_match_the_files(void **state) {
  (void)state;
  const char *folder = getenv("HALFTONE_MATRICES");
  ht_context *ctx;
  int compared = 0;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  for (size_t f = 0; folder && f < sizeof files / sizeof *files; f++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/regenerated/%s.mtx.gz", folder, files[f].name);
    gzFile file = gzopen(path, "r");
    if (!file) {
      print_message("%s is not there: not compared\n", path);
      continue;
    }
    ht_matrix *a;
    assert_int_equal(generate_line(ctx, files[f].line, &a), HT_OK);
    compare(a, file, files[f].name, files[f].ulps);
    ht_matrix_destroy(a);
    gzclose(file);
    compared++;
  }
  ht_context_destroy(ctx);
  if (!compared) {
    print_message("HALFTONE_MATRICES names no folder with regenerated/*.mtx.gz: skipped\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_match_the_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
