/* CSR products on arrays in the device's memory. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"

enum { THREADS = 256, MOST_WIDTH = 32, MOST_BLOCKS = 1 << 20 };

/* Lanes a row: about two entries each at the mean row length. It follows from the pattern alone, so that the bits do too. */
static int width_for(const ht_csr_view *a) {
  int width = 1;
  while (width < MOST_WIDTH && 2 * width * a->n < a->nnz) width *= 2;
  return width;
}

static ht_launch launch_for(const ht_csr_view *a, int width) {
  int64_t rows_a_block = THREADS / width, blocks = (a->n + rows_a_block - 1) / rows_a_block;
  return (ht_launch){.grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), .block = THREADS};
}

void ht_cuda_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y) {
  ht_csr_view v = *a;
  int width = width_for(a);
  if (v.n <= 0) return;
  ht_cuda_launch(ht_cuda_of(ctx), HT_KERNEL_csr_multiply, launch_for(a, width),
                 HT_ARGS(&v.n, &v.row_start, &v.columns, &v.values, &x, &y, &width));
}

void ht_cuda_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r) {
  ht_csr_view v = *a;
  int width = width_for(a);
  if (v.n <= 0) return;
  ht_cuda_launch(ht_cuda_of(ctx), HT_KERNEL_csr_residual, launch_for(a, width),
                 HT_ARGS(&v.n, &v.row_start, &v.columns, &v.values, &x, &b, &r, &width));
}
