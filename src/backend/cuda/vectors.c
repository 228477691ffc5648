/* Vector operations: launches, and scalars that come back through pinned memory. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"
#include <math.h>

enum { THREADS = 256, ELEMENTS = 4, MOST_BLOCKS = 1 << 16 }; /* ELEMENTS: that a thread takes before another block is started */

static unsigned blocks_for(int64_t n, int64_t most) {
  int64_t blocks = (n + THREADS * ELEMENTS - 1) / (THREADS * ELEMENTS);
  return (unsigned)(blocks < most ? blocks : most);
}

static void each_element(ht_cuda *cuda, ht_kernel kernel, int64_t n, void **args) {
  if (n <= 0) return;
  ht_launch launch = {.grid = blocks_for(n, MOST_BLOCKS), .block = THREADS};
  ht_cuda_launch(cuda, kernel, launch, args); /* a failure stays with the device: `failed` tells it */
}

_Static_assert((int)HT_CUDA_REDUCTIONS == (int)HT_REDUCTIONS_MOST, "the table's reductions fit the kernel's argument");

/* The kernel writes the results into pinned memory, where the device and the host see them at one address. */
void ht_cuda_reduce(ht_context *ctx, int64_t n, int count, ht_reduction *reductions) {
  ht_cuda *cuda = ht_cuda_of(ctx);
  double *arrived = cuda->sums + HT_CUDA_REDUCTIONS * HT_CUDA_SUMS;
  ht_cuda_reductions all = {.count = count};
  for (int k = 0; k < count; k++) {
    all.kind[k] = (int32_t)reductions[k].kind;
    all.x[k] = reductions[k].x;
    all.y[k] = reductions[k].kind == HT_NORM_INF ? reductions[k].x : reductions[k].y;
    cuda->host[k] = 0;
  }
  ht_launch launch = {.grid = blocks_for(n, HT_CUDA_SUMS), .block = THREADS};
  ht_status status = cuda->status;
  if (status == HT_OK && n > 0)
    status = ht_cuda_launch(cuda, HT_KERNEL_vector_reduce, launch, HT_ARGS(&n, &all, &cuda->sums, &arrived, &cuda->host));
  if (status == HT_OK && n > 0) status = ht_cuda_synchronize(cuda);
  for (int k = 0; k < count; k++) reductions[k].result = status == HT_OK ? cuda->host[k] : NAN;
}

double ht_cuda_dot(ht_context *ctx, int64_t n, const double *x, const double *y) {
  ht_reduction sum = {HT_DOT, x, y, 0};
  ht_cuda_reduce(ctx, n, 1, &sum);
  return sum.result;
}

double ht_cuda_norm_inf(ht_context *ctx, int64_t n, const double *x) {
  ht_reduction largest = {HT_NORM_INF, x, NULL, 0};
  ht_cuda_reduce(ctx, n, 1, &largest);
  return largest.result;
}

void ht_cuda_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y) {
  each_element(ht_cuda_of(ctx), HT_KERNEL_vector_axpy, n, HT_ARGS(&n, &a, &x, &y));
}

void ht_cuda_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y) {
  each_element(ht_cuda_of(ctx), HT_KERNEL_vector_xpby, n, HT_ARGS(&n, &x, &b, &y));
}

void ht_cuda_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y) {
  each_element(ht_cuda_of(ctx), HT_KERNEL_vector_scale_by, n, HT_ARGS(&n, &d, &x, &y));
}

void ht_cuda_shift(ht_context *ctx, int64_t n, int exponent, const double *x, double *y) {
  each_element(ht_cuda_of(ctx), HT_KERNEL_vector_shift, n, HT_ARGS(&n, &exponent, &x, &y));
}

void ht_cuda_copy_vector(ht_context *ctx, int64_t n, const double *x, double *y) {
  ht_cuda_copy_async(ht_cuda_of(ctx), n * (int64_t)sizeof *x, x, y);
}
