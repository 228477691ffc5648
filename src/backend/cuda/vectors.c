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

/* The kernel writes the scalar into pinned memory, where the device and the host see it at one address. */
static double reduce(ht_cuda *cuda, ht_kernel kernel, int64_t n, void **args) {
  if (cuda->status != HT_OK) return NAN;
  if (n <= 0) return 0;
  ht_launch launch = {.grid = blocks_for(n, HT_CUDA_SUMS), .block = THREADS};
  if (ht_cuda_launch(cuda, kernel, launch, args) != HT_OK || ht_cuda_synchronize(cuda) != HT_OK) return NAN;
  return cuda->host[0];
}

double ht_cuda_dot(ht_context *ctx, int64_t n, const double *x, const double *y) {
  ht_cuda *cuda = ht_cuda_of(ctx);
  double *arrived = cuda->sums + HT_CUDA_SUMS;
  return reduce(cuda, HT_KERNEL_vector_dot, n, HT_ARGS(&n, &x, &y, &cuda->sums, &arrived, &cuda->host));
}

double ht_cuda_norm_inf(ht_context *ctx, int64_t n, const double *x) {
  ht_cuda *cuda = ht_cuda_of(ctx);
  double *arrived = cuda->sums + HT_CUDA_SUMS;
  return reduce(cuda, HT_KERNEL_vector_norm_inf, n, HT_ARGS(&n, &x, &cuda->sums, &arrived, &cuda->host));
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
