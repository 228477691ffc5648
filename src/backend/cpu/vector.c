/* Vector operations. Sums run over fixed chunks, chunk sums are added in order: the bits do not depend on the threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "backend/cpu/cpu.h"

enum { CHUNK = 4096, PARALLEL_FROM = 20000, SUMS = 512 };

typedef double chunk_sum(int64_t n, const double *x, const double *y);

static double dot_chunk(int64_t n, const double *x, const double *y) {
  double sum[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++) sum[k] += x[i + k] * y[i + k];
  for (; i < n; i++) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double distance_chunk(int64_t n, const double *x, const double *y) {
  double sum[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++) sum[k] += (x[i + k] - y[i + k]) * (x[i + k] - y[i + k]);
  for (; i < n; i++) sum[0] += (x[i] - y[i]) * (x[i] - y[i]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Chunks are taken in groups of SUMS, so that the partial sums need no allocation. */
static double sum_of_chunks(ht_context *ctx, int64_t n, chunk_sum *of_chunk, const double *x, const double *y) {
  int threads = ctx->threads;
  int64_t chunks = (n + CHUNK - 1) / CHUNK;
  double total = 0, part[SUMS];
  for (int64_t first = 0; first < chunks; first += SUMS) {
    int64_t count = chunks - first < SUMS ? chunks - first : SUMS;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
    for (int64_t c = 0; c < count; c++) {
      int64_t begin = (first + c) * CHUNK, length = n - begin < CHUNK ? n - begin : CHUNK;
      part[c] = of_chunk(length, x + begin, y + begin);
    }
    for (int64_t c = 0; c < count; c++) total += part[c];
  }
  return total;
}

double ht_cpu_dot(ht_context *ctx, int64_t n, const double *x, const double *y) { return sum_of_chunks(ctx, n, dot_chunk, x, y); }

void ht_cpu_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

void ht_cpu_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) y[i] = x[i] + b * y[i];
}

void ht_cpu_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) y[i] = d[i] * x[i];
}

void ht_cpu_copy(ht_context *ctx, int64_t n, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

void ht_cpu_shift(ht_context *ctx, int64_t n, int exponent, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) y[i] = ldexp(x[i], exponent);
}

/* Comparisons lose a NaN: it is looked for apart. */
double ht_cpu_norm_inf(ht_context *ctx, int64_t n, const double *x) {
  int threads = ctx->threads;
  double largest = 0;
  int nan = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : largest) reduction(| : nan) if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; i++) {
    double size = fabs(x[i]);
    largest = size > largest ? size : largest;
    nan |= x[i] != x[i];
  }
  return nan ? NAN : largest;
}

void ht_cpu_reduce(ht_context *ctx, int64_t n, int count, ht_reduction *reductions) {
  for (ht_reduction *r = reductions; r < reductions + count; r++)
    r->result = r->kind == HT_NORM_INF ? ht_cpu_norm_inf(ctx, n, r->x)
                : r->kind == HT_DOT    ? ht_cpu_dot(ctx, n, r->x, r->y)
                                       : sum_of_chunks(ctx, n, distance_chunk, r->x, r->y);
}
