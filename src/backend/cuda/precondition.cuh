// z = M^-1 r of the engines. Where M is diagonal a row needs its own r only; else its block's, which lie in the row's column block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg.h"

namespace ht {

enum { TILE = 64 }; // HT_COLUMN_BLOCK

// M^-1 of a row where it is a number: Jacobi's, or the square of the row's scale where M = I in the caller's variables.
__device__ inline double inverse_of(const ht_cuda_cg_vectors &v, float jacobi, double scale_squared) {
  return v.inverse_diagonal ? (double)jacobi : scale_squared;
}

enum { ENTRIES = 4 }; // asked for at once: what a block lacks of a multiple of it counts as 0

// Row i of M^-1 r with inverse blocks; `tile` holds r of the row's column block.
__device__ inline double precondition_row(const ht_cuda_cg_vectors &v, int64_t i, const double *tile) {
  int block = v.block, at = (int)(i % TILE), first = at - at % block;
  const float *inverse = v.inverse_blocks + i / TILE * TILE * block + at;
  double z = 0;
  for (int j = 0; j < block; j += ENTRIES) {
    float m[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) m[k] = j + k < block ? __ldg(inverse + (j + k) * TILE) : 0;
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) z = fma((double)m[k], tile[min(first + j + k, TILE - 1)], z);
  }
  return z;
}

// The same of two vectors, whose places are `tile` and `other`.
__device__ inline double2 precondition_both(const ht_cuda_cg_vectors &v, int64_t i, const double *tile, const double *other) {
  int block = v.block, at = (int)(i % TILE), first = at - at % block;
  const float *inverse = v.inverse_blocks + i / TILE * TILE * block + at;
  double2 z = {0, 0};
  for (int j = 0; j < block; j += ENTRIES) {
    float m[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) m[k] = j + k < block ? __ldg(inverse + (j + k) * TILE) : 0;
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) {
      int from = min(first + j + k, TILE - 1);
      z.x = fma((double)m[k], tile[from], z.x);
      z.y = fma((double)m[k], other[from], z.y);
    }
  }
  return z;
}

// M^-1 r for rows 2 lane and 2 lane + 1 of a column block.
__device__ inline double2 precondition_pair(const ht_cuda_cg_vectors &v, int64_t column_block, int lane, const double *tile) {
  int block = v.block, first_x = 2 * lane - 2 * lane % block, first_y = 2 * lane + 1 - (2 * lane + 1) % block;
  const float2 *inverse = (const float2 *)(v.inverse_blocks + column_block * TILE * block) + lane;
  double2 z = {0, 0};
  for (int j = 0; j < block; j += ENTRIES) {
    float2 m[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) m[k] = j + k < block ? __ldg(inverse + (j + k) * (TILE / 2)) : float2{0, 0};
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) {
      z.x = fma((double)m[k].x, tile[min(first_x + j + k, TILE - 1)], z.x);
      z.y = fma((double)m[k].y, tile[min(first_y + j + k, TILE - 1)], z.y);
    }
  }
  return z;
}

} // namespace ht
