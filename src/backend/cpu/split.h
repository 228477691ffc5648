/* Products of single tiles of the split storage, for the product and the fused engine. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_SPLIT_H
#define HT_BACKEND_CPU_SPLIT_H
#include "backend/backend.h"

/* y[t->row ..] = A^_level x for the tile's rows, padding included (added to y when t->accumulate). */
typedef void (*ht_cpu_tile_fn)(const ht_split_view *a, const ht_tile *t, const double *x, double *y);

/* The kernel for a tile read at `level`, which is lowered or raised by ht_tile_level, in the instruction set in use. */
ht_cpu_tile_fn ht_cpu_split_kernel(const ht_split_view *a, const ht_tile *t, ht_level level);
void ht_cpu_split_multiply(ht_context *ctx, const ht_split_view *a, const uint8_t *tile_level, const double *x, double *y);

/* One table an instruction set: by encoding, level, block - 1. */
typedef struct ht_cpu_split_kernels {
  ht_cpu_tile_fn multiply[HT_ENCODINGS][HT_LEVELS][3];
} ht_cpu_split_kernels;
extern const ht_cpu_split_kernels ht_cpu_split_portable, ht_cpu_split_avx2, ht_cpu_split_avx512;

#endif
