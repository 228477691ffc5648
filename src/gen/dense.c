/* Dense matrices, stored as full CSR: hilbert, spd, kernel. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "gen/gen.h"
#include "gen/random.h"

enum { STREAM_REFLECTION = 51, STREAM_POINT = 52 };

/* ---- Hilbert ---- */
#define HILBERT(X)                                                                                                                         \
  X(INTEGER, size, 10, 1, 46340, AT_PREPARE, NULL, "unknowns")                                                                             \
  X(REAL, shift, 0, 0, 1e15, AT_PREPARE, NULL, "added to the diagonal")
HT_OPTION_STRUCT(hilbert_parameters, HILBERT);

static int64_t hilbert_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const hilbert_parameters *o = self;
  for (int64_t j = 0; j < o->size && columns; j++) {
    columns[j] = (int32_t)j;
    values[j] = 1 / (double)(i + j + 1) + (i == j ? o->shift : 0);
  }
  return o->size;
}

static ht_status make_hilbert(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  return ht_gen_build(ctx, ((const hilbert_parameters *)parameters)->size, hilbert_row, parameters, source, matrix);
}

/* ---- A given condition number ---- */
#define SPD(X)                                                                                                                             \
  X(INTEGER, size, 500, 1, 46340, AT_PREPARE, NULL, "unknowns")                                                                            \
  X(REAL, condition, 1e6, 1, 1e14, AT_PREPARE, NULL, "largest over smallest eigenvalue; the largest is 1")                                 \
  X(CHOICE, spectrum, 0, 0, 2, AT_PREPARE, "geometric|arithmetic|outlier", "eigenvalues in between; outlier: all are 1 but the smallest")  \
  X(INTEGER, reflections, 3, 1, 1000, AT_PREPARE, NULL, "Householder reflections that Q is made of")                                       \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(spd_parameters, SPD);

typedef struct full {
  int64_t n;
  double *a;
} full;

static double eigenvalue(const spd_parameters *o, int64_t i) {
  double t = o->size > 1 ? (double)i / (double)(o->size - 1) : 0, least = 1 / o->condition;
  if (o->spectrum == 0) return pow(o->condition, -t);
  return o->spectrum == 1 ? 1 - t * (1 - least) : i == o->size - 1 && i > 0 ? least : 1;
}

/* A <- H A H with H = I - 2 v v' / v'v: with p = 2 A v / v'v and w = p - (v'p / v'v) v, A - v w' - w v'. */
static void reflect(ht_context *ctx, const full *m, const double *v, double *w) {
  int threads = ctx->threads;
  int64_t n = m->n;
  double vv = 0, vp = 0;
  for (int64_t i = 0; i < n; i++) vv += v[i] * v[i];
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += m->a[i * n + j] * v[j];
    w[i] = 2 * sum / vv;
  }
  for (int64_t i = 0; i < n; i++) vp += v[i] * w[i];
  for (int64_t i = 0; i < n; i++) w[i] -= vp / vv * v[i];
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) m->a[i * n + j] -= v[i] * w[j] + w[i] * v[j]; /* symmetric to the bit */
}

static int64_t full_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const full *m = self;
  for (int64_t j = 0; j < m->n && columns; j++) {
    columns[j] = (int32_t)j;
    values[j] = m->a[i * m->n + j];
  }
  return m->n;
}

static ht_status fill_spd(ht_context *ctx, const spd_parameters *o, const full *m) {
  double *v;
  int64_t n = m->n;
  HT_TRY(ctx, ht_allocate(ctx, 2 * n, sizeof *v, &v));
  for (int64_t i = 0; i < n; i++) m->a[i * n + i] = eigenvalue(o, i);
  for (int64_t k = 0; k < o->reflections; k++) {
    for (int64_t i = 0; i < n; i++) v[i] = ht_gen_normal((uint64_t)o->seed, STREAM_REFLECTION, (uint64_t)(k * n + i));
    reflect(ctx, m, v, v + n);
  }
  ht_release(ctx, v);
  return HT_OK;
}

static ht_status make_spd(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const spd_parameters *o = parameters;
  full m = {.n = o->size};
  HT_TRY(ctx, ht_allocate_zeroed(ctx, m.n * m.n, sizeof *m.a, &m.a));
  ht_status status = fill_spd(ctx, o, &m);
  if (status == HT_OK) status = ht_gen_build(ctx, m.n, full_row, &m, source, matrix);
  ht_release(ctx, m.a);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- Gaussian process ---- */
#define KERNEL(X)                                                                                                                          \
  X(CHOICE, kernel, 1, 0, 3, AT_PREPARE, "matern12|matern32|matern52|rbf", "covariance")                                                   \
  X(INTEGER, size, 500, 1, 46340, AT_PREPARE, NULL, "points")                                                                              \
  X(INTEGER, dimension, 2, 1, 10, AT_PREPARE, NULL, "of the unit cube the points lie in")                                                  \
  X(REAL, length, 0.2, 1e-6, 1e6, AT_PREPARE, NULL, "correlation length")                                                                  \
  X(REAL, nugget, 1e-4, 1e-12, 1e6, AT_PREPARE, NULL, "noise variance, added to the diagonal")                                             \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(kernel_parameters, KERNEL);

typedef struct process {
  const kernel_parameters *o;
  double *x; /* `dimension` a point */
} process;

static double covariance(int kernel, double r) {
  double s = sqrt(3) * r, t = sqrt(5) * r;
  switch (kernel) {
  case 0: return exp(-r);
  case 1: return (1 + s) * exp(-s);
  case 2: return (1 + t + t * t / 3) * exp(-t);
  default: return exp(-0.5 * r * r);
  }
}

static int64_t kernel_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const process *p = self;
  int64_t d = p->o->dimension;
  for (int64_t j = 0; j < p->o->size && columns; j++) {
    double distance2 = 0;
    for (int64_t c = 0; c < d; c++) {
      double difference = p->x[i * d + c] - p->x[j * d + c];
      distance2 += difference * difference;
    }
    columns[j] = (int32_t)j;
    values[j] = covariance(p->o->kernel, sqrt(distance2) / p->o->length) + (i == j ? p->o->nugget : 0);
  }
  return p->o->size;
}

static ht_status make_kernel(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const kernel_parameters *o = parameters;
  process p = {.o = o};
  HT_TRY(ctx, ht_allocate(ctx, o->size * o->dimension, sizeof *p.x, &p.x));
  for (int64_t k = 0; k < o->size * o->dimension; k++) p.x[k] = ht_gen_uniform((uint64_t)o->seed, STREAM_POINT, (uint64_t)k);
  ht_status status = ht_gen_build(ctx, o->size, kernel_row, &p, source, matrix);
  ht_release(ctx, p.x);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static const ht_option_row hilbert_rows[] = {
#define HT_OPTION_OWNER hilbert_parameters
    HILBERT(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row spd_rows[] = {
#define HT_OPTION_OWNER spd_parameters
    SPD(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row kernel_rows[] = {
#define HT_OPTION_OWNER kernel_parameters
    KERNEL(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

const ht_gen_kind ht_gen_hilbert = {.name = "hilbert",
                                    .summary = "Hilbert matrix, dense",
                                    .formula = "a_ij = 1 / (i + j - 1) + shift delta_ij, i and j from 1.",
                                    .spd = "The Gram matrix of 1, x, x^2, ... on (0, 1). Its condition grows like e^(3.5 n): rounded to "
                                           "FP64 it is safely positive definite up "
                                           "to n = 11 without a shift; beyond that it is a test of outcomes, not a solvable system.",
                                    HT_GEN_ROWS(hilbert_rows),
                                    .fields = sizeof(hilbert_parameters),
                                    .generate = make_hilbert};
const ht_gen_kind ht_gen_spd = {
    .name = "spd",
    .summary = "dense, with a given condition number",
    .formula =
        "A = Q D Q', Q a product of `reflections` Householder reflections I - 2 v v' / v'v with normal v; D's eigenvalues go from 1 to "
        "1/condition: geometric condition^(-t), arithmetic 1 - t (1 - 1/condition), t = 0 .. 1, or outlier.",
    .spd =
        "Similar to D, which is positive; rounding moves eigenvalues by a few units in the 16th digit of the largest, so condition numbers "
        "near 1e14 are met only roughly.",
    HT_GEN_ROWS(spd_rows),
    .fields = sizeof(spd_parameters),
    .generate = make_spd};
const ht_gen_kind ht_gen_kernel = {
    .name = "kernel",
    .summary = "covariance of a Gaussian process plus noise, dense",
    .formula =
        "a_ij = c(|x_i - x_j| / length) + nugget delta_ij, points at random in the unit cube. matern12: e^-r; matern32: (1 + s) e^-s, s = "
        "sqrt(3) r; matern52: (1 + t + t^2/3) e^-t, t = sqrt(5) r; rbf: e^(-r^2/2).",
    .spd = "These functions have positive Fourier transforms, so the covariance is positive semidefinite (Bochner); the nugget is added.",
    HT_GEN_ROWS(kernel_rows),
    .fields = sizeof(kernel_parameters),
    .generate = make_kernel};
