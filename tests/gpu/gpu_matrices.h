/* Matrices for the tests of the CUDA backend: a name, and a line for the generator or a maker. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_GPU_MATRICES_H
#define HT_TEST_GPU_MATRICES_H
#include "data/matrix.h"
#include "gpu/gpu_helpers.h"
#include "support/generated.h"
#include "support/patterns.h"

typedef struct pairs {
  int64_t n, count, capacity;
  int32_t *row, *column; /* row > column */
  double *value;
} pairs;

static inline pairs pairs_for(int64_t n, int64_t capacity) {
  pairs p = {.n = n, .capacity = capacity};
  p.row = malloc((size_t)capacity * sizeof *p.row);
  p.column = malloc((size_t)capacity * sizeof *p.column);
  p.value = malloc((size_t)capacity * sizeof *p.value);
  if (!p.row || !p.column || !p.value) abort();
  return p;
}

static inline void add_pair(pairs *p, int64_t i, int64_t j, double value) {
  if (i == j) return;
  if (p->count == p->capacity) abort();
  p->row[p->count] = (int32_t)(i > j ? i : j);
  p->column[p->count] = (int32_t)(i > j ? j : i);
  p->value[p->count++] = value;
}

/* Both triangles, and a diagonal that exceeds the sum of its row's others by `excess`. Frees the pairs. */
static inline ht_matrix *dominant_matrix(ht_context *ctx, pairs *p, double excess) {
  int64_t *start = calloc((size_t)p->n + 1, sizeof *start), nnz = p->n + 2 * p->count;
  int64_t *next = malloc((size_t)(p->n + 1) * sizeof *next);
  int32_t *columns = malloc((size_t)nnz * sizeof *columns);
  double *values = malloc((size_t)nnz * sizeof *values);
  ht_matrix *matrix = NULL;
  if (!start || !next || !columns || !values) abort();
  for (int64_t i = 0; i < p->n; i++) start[i + 1] = 1;
  for (int64_t k = 0; k < p->count; k++) start[p->row[k] + 1]++, start[p->column[k] + 1]++;
  for (int64_t i = 0; i < p->n; i++) start[i + 1] += start[i];
  for (int64_t i = 0; i < p->n; i++) {
    next[i] = start[i] + 1;
    columns[start[i]] = (int32_t)i;
    values[start[i]] = excess;
  }
  for (int64_t k = 0; k < p->count; k++) {
    int32_t ends[2] = {p->row[k], p->column[k]};
    for (int e = 0; e < 2; e++) {
      columns[next[ends[e]]] = ends[1 - e];
      values[next[ends[e]]++] = p->value[k];
      values[start[ends[e]]] += fabs(p->value[k]);
    }
  }
  if (ht_matrix_create_csr(ctx, p->n, start, columns, values, HT_COPY, &matrix) != HT_OK) abort();
  free(start), free(next), free(columns), free(values);
  free(p->row), free(p->column), free(p->value);
  return matrix;
}

/* Any two unknowns may hang together: columns lie farther apart than 16 bits reach. */
static inline ht_matrix *make_wide(ht_context *ctx) {
  const int64_t n = 200000;
  pairs p = pairs_for(n, 4 * n);
  random_stream s = {5};
  for (int64_t k = 0; k < 4 * n; k++) add_pair(&p, k % n, random_below(&s, n), random_signed(&s));
  return dominant_matrix(ctx, &p, 1);
}

/* One row of 5,000 entries in a band. */
static inline ht_matrix *make_long_row(ht_context *ctx) {
  const int64_t n = 7001;
  pairs p = pairs_for(n, 2 * n + 5000);
  random_stream s = {6};
  for (int64_t i = 1; i < n; i++) add_pair(&p, i, i - 1, random_signed(&s));
  for (int64_t i = 0; i < 4999; i++) add_pair(&p, 6000, i, 1e-3 * random_signed(&s));
  return dominant_matrix(ctx, &p, 1);
}

/* Random neighbours, and magnitudes from 1 down to 2^-range: a group holds what no common exponent fits. */
static inline ht_matrix *make_magnitudes(ht_context *ctx, int range) {
  const int64_t n = 3001;
  pairs p = pairs_for(n, 6 * n);
  random_stream s = {(uint64_t)range};
  for (int64_t k = 0; k < 6 * n; k++)
    add_pair(&p, k % n, random_below(&s, n), (1 + random_unit(&s)) * ldexp(1, -(int)random_below(&s, range)));
  return dominant_matrix(ctx, &p, 0.5);
}

static inline ht_matrix *make_floats(ht_context *ctx) { return make_magnitudes(ctx, 60); }
static inline ht_matrix *make_raw(ht_context *ctx) { return make_magnitudes(ctx, 400); }

#define GPU_PATTERN(name, p, n, spread)                                                                                                    \
  static inline ht_matrix *name(ht_context *ctx) { return pattern_matrix(ctx, p, n, 12, spread); }
GPU_PATTERN(make_one, PATTERN_DIAGONAL, 1, 3)
GPU_PATTERN(make_diagonal, PATTERN_DIAGONAL, 333, 3)
GPU_PATTERN(make_63, PATTERN_RANDOM, 63, 1)
GPU_PATTERN(make_64, PATTERN_TRIDIAGONAL, 64, 1)
GPU_PATTERN(make_65, PATTERN_BANDED, 65, 1)
GPU_PATTERN(make_127, PATTERN_DENSE_ROW, 127, 1)
GPU_PATTERN(make_1000, PATTERN_RANDOM, 1000, 0)
GPU_PATTERN(make_scales, PATTERN_RANDOM, 1001, 40) /* 2^-40..2^40: 1e-12 to 1e12 */
GPU_PATTERN(make_arrow, PATTERN_ARROW, 777, 2)
GPU_PATTERN(make_block3, PATTERN_BLOCK3, 500, 2)
#undef GPU_PATTERN

typedef struct gpu_matrix {
  const char *name; /* the generator's line where `make` is NULL */
  ht_matrix *(*make)(ht_context *ctx);
  int compact; /* rows are alike and many: the store is to be as small as CSR */
} gpu_matrix;

static const gpu_matrix gpu_matrices[] = {
    {"1 x 1", make_one, 0},
    {"diagonal", make_diagonal, 0},
    {"n = 63", make_63, 0},
    {"n = 64", make_64, 0},
    {"n = 65", make_65, 0},
    {"n = 127", make_127, 0},
    {"n = 1000", make_1000, 0},
    {"stencil2d nx=4097 ny=1", NULL, 0},
    {"stencil2d size=101", NULL, 1},
    {"stencil2d size=73 coefficients=lognormal", NULL, 1},
    {"stencil2d size=90 points=9 coefficients=jumps", NULL, 1},
    {"stencil3d size=23 points=7 coefficients=lognormal sigma=3", NULL, 1},
    {"stencil3d size=21 points=27", NULL, 1},
    {"stencil3d size=19 points=27 coefficients=lognormal", NULL, 1},
    {"wathen nx=41 ny=40", NULL, 0},
    {"fem2d size=60 numbering=random", NULL, 0},
    {"fem3d size=9 numbering=random", NULL, 0},
    {"fem3d size=6 order=2 numbering=random", NULL, 0},
    {"elasticity3d size=9 coefficients=lognormal", NULL, 1},
    {"graph graph=preferential size=5000", NULL, 0},
    {"graph graph=shortcuts size=70000 sigma=1", NULL, 0},
    {"spd size=200 condition=1000", NULL, 0},
    {"neumann size=17", NULL, 0},
    {"trefethen size=3000", NULL, 0},
    {"scales from 1e-12 to 1e12", make_scales, 0},
    {"arrow", make_arrow, 0},
    {"blocks of three", make_block3, 0},
    {"a row of 5,000", make_long_row, 0},
    {"wide", make_wide, 0},
    {"magnitudes to 2^-60", make_floats, 0},
    {"magnitudes to 2^-400", make_raw, 0},
};
enum { GPU_MATRICES = sizeof gpu_matrices / sizeof *gpu_matrices };

static inline ht_matrix *gpu_matrix_make(ht_context *ctx, const gpu_matrix *m) {
  ht_matrix *a = NULL;
  if (m->make) return m->make(ctx);
  if (generate_line(ctx, m->name, &a) != HT_OK) fail_msg("%s: %s", m->name, ht_context_error(ctx));
  return a;
}

#endif
