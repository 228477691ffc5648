/* Symmetric positive definite matrices of many shapes, for contract tests. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_PATTERNS_H
#define HT_TEST_PATTERNS_H
#include <math.h>
#include <stdlib.h>
#include "data/matrix.h"
#include "support/random.h"

typedef enum {
  PATTERN_DIAGONAL,
  PATTERN_TRIDIAGONAL,
  PATTERN_BANDED,
  PATTERN_RANDOM,
  PATTERN_ARROW, /* the last row is dense: a Cholesky factor has no fill */
  PATTERN_BLOCK3,
  PATTERN_DENSE_ROW, /* a middle row is dense */
  PATTERN_THIRDS,    /* each third of the rows hangs on the third before it: few and wide level sets */
  PATTERNS
} pattern;

static const char *const pattern_names[PATTERNS] = {"diagonal", "tridiagonal", "banded",    "random",
                                                    "arrow",    "block 3",     "dense row", "thirds"};

/* Whether row i has an entry in column j < i. */
static inline int pattern_has(pattern p, int64_t n, int64_t i, int64_t j, random_stream *s) {
  double chance = random_unit(s);
  int64_t third = (n + 2) / 3;
  switch (p) {
  case PATTERN_TRIDIAGONAL: return j == i - 1;
  case PATTERN_BANDED: return i - j <= 9 && chance < 0.7;
  case PATTERN_RANDOM: return chance * (double)n < 30;
  case PATTERN_ARROW: return i == n - 1;
  case PATTERN_BLOCK3: return i / 3 == j / 3;
  case PATTERN_DENSE_ROW: return i == n / 2 || j == n / 2 || j == i - 1;
  case PATTERN_THIRDS: return i / third == j / third + 1 && chance * (double)third < 30;
  default: return 0;
  }
}

/* A matrix from its full array, zeros not stored. */
static inline ht_matrix *full_matrix(ht_context *ctx, int64_t n, const double *full) {
  int64_t nnz = 0;
  for (int64_t i = 0; i < n * n; i++) nnz += full[i] != 0;
  int64_t *row_start;
  int32_t *columns;
  double *entries;
  ht_matrix *matrix = NULL;
  int bad = ht_allocate(ctx, n + 1, sizeof *row_start, &row_start) || ht_allocate(ctx, nnz, sizeof *columns, &columns) ||
            ht_allocate(ctx, nnz, sizeof *entries, &entries);
  if (bad) abort();
  int64_t k = row_start[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++)
      if (full[i * n + j] != 0) {
        columns[k] = (int32_t)j;
        entries[k++] = full[i * n + j];
      }
    row_start[i + 1] = k;
  }
  bad = ht_matrix_adopt(ctx, n, row_start, columns, entries, "full array", &matrix);
  if (bad) abort();
  return matrix;
}

/* Positive definite for any values: D (diagonally dominant) D. Each diagonal entry is at least twice the sum of its row's
 * others, so that with a unit diagonal the eigenvalues lie in [1/2, 3/2]: error bounds need no condition number. The rows'
 * scales span 2^-spread..2^spread. */
static inline ht_matrix *pattern_matrix(ht_context *ctx, pattern p, int64_t n, uint64_t values_seed, int spread) {
  double *full = calloc((size_t)(n * n), sizeof *full), *scale = malloc((size_t)n * sizeof *scale);
  random_stream shape = {(uint64_t)p * 1000003 + (uint64_t)n}, values = {values_seed};
  if (!full || !scale) abort();
  for (int64_t i = 0; i < n; i++) {
    scale[i] = (1 + random_unit(&values)) * ldexp(1, (int)random_below(&values, 2 * spread + 1) - spread);
    for (int64_t j = 0; j < i; j++)
      if (pattern_has(p, n, i, j, &shape)) full[i * n + j] = full[j * n + i] = random_signed(&values);
  }
  for (int64_t i = 0; i < n; i++) {
    double sum = 0.25 + random_unit(&values);
    for (int64_t j = 0; j < n; j++) sum += j == i ? 0 : 2 * fabs(full[i * n + j]);
    full[i * n + i] = sum;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) full[i * n + j] *= scale[i] * scale[j];
  ht_matrix *matrix = full_matrix(ctx, n, full);
  free(full);
  free(scale);
  return matrix;
}

#endif
