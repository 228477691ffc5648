/* What the reduction kernel is given, as its argument. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_REDUCE_H
#define HT_BACKEND_CUDA_REDUCE_H
#include <stdint.h>

enum { HT_CUDA_REDUCTIONS = 8, HT_CUDA_SUMS = 1024 }; /* most at once; most blocks: the same on every device, so that the bits are */

typedef struct ht_cuda_reductions {
  int32_t count, kind[HT_CUDA_REDUCTIONS]; /* ht_reduction_kind */
  const double *x[HT_CUDA_REDUCTIONS], *y[HT_CUDA_REDUCTIONS];
} ht_cuda_reductions;

#endif
