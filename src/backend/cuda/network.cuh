// A learned policy's decision for each column block (EvoCG section 3.4): the whole network by tensor cores, from FP16 weights in shared
// memory, with FP32 sums. A warp decides for 16 blocks at a time; between layers nothing leaves its registers, because the lanes that get a
// product's sums are those that need them as the next one's inputs. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/network.h"

namespace ht {

enum { STEPS = HT_NETWORK_STEPS, GROUPS = HT_NETWORK_GROUPS };
constexpr double LEAST_NORM = 1e-30; // delta of the paper

struct inputs { // of one lane: rows lane / 4 and lane / 4 + 8, in each step of 16 the entries 2 (lane % 4), the next, and both plus 8
  uint32_t of[STEPS][4];
};

__device__ inline uint32_t pack(float a, float b) {
  constexpr float most = 65504;
  half2 h = __floats2half2_rn(fminf(a, most), fminf(b, most));
  return *reinterpret_cast<uint32_t *>(&h);
}

// sums += inputs * weights: 16 rows by 8 units.
__device__ inline void multiply(float sum[4], const uint32_t a[4], uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

__device__ inline void group_of(float sum[4], const inputs &in, const uint2 *weights, const float *bias, int lane) {
  float2 b = *(const float2 *)(bias + 2 * (lane & 3));
  sum[0] = sum[2] = b.x, sum[1] = sum[3] = b.y;
#pragma unroll
  for (int k = 0; k < STEPS; k++) multiply(sum, in.of[k], weights[k * 32 + lane]);
}

__device__ inline void layer(inputs &in, const uint2 *weights, const float *bias, int lane) {
  inputs out;
#pragma unroll
  for (int g = 0; g < GROUPS; g++) {
    float sum[4];
    group_of(sum, in, weights + g * STEPS * 32, bias + g * HT_NETWORK_COLUMNS, lane);
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k] = fmaxf(sum[k], 0);
    out.of[g / 2][g % 2 * 2] = pack(sum[0], sum[1]);
    out.of[g / 2][g % 2 * 2 + 1] = pack(sum[2], sum[3]);
  }
  in = out;
}

// Two neighbouring entries of the direction in the caller's scale.
__device__ inline double2 pair_at(const double *p, const int16_t *exponent, int64_t i) {
  double2 v = *(const double2 *)(p + i);
  if (!exponent) return v;
  short2 e = *(const short2 *)(exponent + i);
  return {v.x * power_of_two(-e.x), v.y * power_of_two(-e.y)};
}

// One block's entries, a quarter of them in each of four lanes, over their norm: into half of the registers of `in`.
__device__ inline void load_row(inputs &in, int half, const double *p, const int16_t *exponent, int64_t block, bool there, int lane) {
  double2 v[STEPS][2];
  double square = 0;
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      v[k][j] = there ? pair_at(p, exponent, block * HT_NETWORK_WIDTH + k * HT_NETWORK_STEP + j * 8 + 2 * (lane & 3)) : double2{0, 0};
      square = fma(v[k][j].x, v[k][j].x, fma(v[k][j].y, v[k][j].y, square));
    }
  for (int width = 1; width < 4; width *= 2) square += __shfl_xor_sync(~0u, square, width);
  double scale = 1 / fmax(sqrt(square), LEAST_NORM);
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int j = 0; j < 2; j++) in.of[k][2 * j + half] = pack((float)(v[k][j].x * scale), (float)(v[k][j].y * scale));
}

// The largest of three, the first of equals: actions are FP64, FP32 and 16 bits.
__device__ inline int level_of_action(float f64, float f32, float f16) {
  return f64 >= f32 && f64 >= f16 ? LEVEL_64 : f32 >= f16 ? LEVEL_32 : LEVEL_16;
}

// A network where a thread block keeps it.
struct network_in_shared {
  uint4 weights[HT_NETWORK_FRAGMENTS * 32 / 2];
  float biases[HT_NETWORK_BIASES];
};
static_assert(sizeof(network_in_shared) == HT_NETWORK_SHARED, "as the host asks for it");

__device__ inline void load_network(const ht_cuda_network &network, network_in_shared &to) {
  for (int i = threadIdx.x; i < HT_NETWORK_FRAGMENTS * 32 / 2; i += blockDim.x) to.weights[i] = ((const uint4 *)network.weights)[i];
  for (int i = threadIdx.x; i < HT_NETWORK_BIASES; i += blockDim.x) to.biases[i] = network.biases[i];
}

// A warp's decisions for eight column blocks from `first` on and eight from `second` on, to their levels. Returns what this lane has chosen
// (chosen_bits).
__device__ inline uint32_t decide_tile(const network_in_shared &network, int64_t first, int64_t second, int64_t blocks, const double *p,
                                       const int16_t *exponent, uint8_t *block_level, int floor) {
  constexpr int LAYER = GROUPS * STEPS * 32;
  const uint2 *weights = (const uint2 *)network.weights;
  int lane = threadIdx.x & 31;
  inputs in;
  int64_t row[2] = {first + lane / 4, second + lane / 4};
  load_row(in, 0, p, exponent, row[0], row[0] < blocks, lane);
  load_row(in, 1, p, exponent, row[1], row[1] < blocks, lane);
  layer(in, weights, network.biases, lane);
  layer(in, weights + LAYER, network.biases + HT_NETWORK_WIDTH, lane);
  float logit[4];
  group_of(logit, in, weights + 2 * LAYER, network.biases + 2 * HT_NETWORK_WIDTH, lane);
  uint32_t chosen = 0;
  for (int k = 0; k < 2; k++) { // lanes 4 r and 4 r + 1 hold the three of row r
    float third = __shfl_down_sync(~0u, logit[2 * k], 1);
    if (lane % 4 || row[k] >= blocks) continue;
    int level = max(floor, level_of_action(logit[2 * k], logit[2 * k + 1], third));
    chosen |= chosen_bits(level, block_level[row[k]]);
    block_level[row[k]] = (uint8_t)level;
  }
  return chosen;
}

} // namespace ht
