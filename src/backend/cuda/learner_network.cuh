// The policies' network over 32 tiles by a block of 128 threads, forwards and backwards, in FP32. A thread makes 4 x 4 numbers of a layer;
// activations lie in shared memory, a unit's 32 next to each other. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/learner_view.h"

namespace ht {

enum { WIDTH = HT_LEARNER_WIDTH, HEADS = HT_LEARNER_HEADS, ACTIONS = HT_LEARNER_ACTIONS, ROWS = HT_LEARNER_ROWS, PITCH = HT_LEARNER_PITCH };
enum { NETWORK_THREADS = HT_LEARNER_THREADS, LAYER_FLOATS = WIDTH * PITCH };

__device__ inline void multiply_add(float (&sum)[4][4], float4 rows, float4 units) { // sum[unit][row]
  const float r[4] = {rows.x, rows.y, rows.z, rows.w}, u[4] = {units.x, units.y, units.z, units.w};
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[i][j] = fmaf(r[j], u[i], sum[i][j]);
}

// This thread's 4 x 4 numbers of W x: weights[input][output], x[input][row].
__device__ inline void product(const float *weights, const float *x, float (&sum)[4][4]) {
  int unit = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * 4;
#pragma unroll 8
  for (int k = 0; k < WIDTH; k++) multiply_add(sum, *(const float4 *)(x + k * PITCH + row), *(const float4 *)(weights + k * WIDTH + unit));
}

// y = ReLU(W x + b); ends with a barrier.
__device__ inline void forward_layer(const float *weights, const float *bias, const float *x, float *y) {
  int unit = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * 4;
  float sum[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[i][j] = bias[unit + i];
  product(weights, x, sum);
#pragma unroll
  for (int i = 0; i < 4; i++)
    *(float4 *)(y + (unit + i) * PITCH + row) =
        make_float4(fmaxf(sum[i][0], 0), fmaxf(sum[i][1], 0), fmaxf(sum[i][2], 0), fmaxf(sum[i][3], 0));
  __syncthreads();
}

// Logits and value: y[head][row]; ends with a barrier.
__device__ inline void forward_heads(const float *weights, const float *x, float *y) {
  int row = threadIdx.x % ROWS, head = threadIdx.x / ROWS;
  float sum = weights[HT_LEARNER_B3 + head];
#pragma unroll 16
  for (int k = 0; k < WIDTH; k++) sum = fmaf(weights[HT_LEARNER_HEAD + head * WIDTH + k], x[k * PITCH + row], sum);
  y[head * ROWS + row] = sum;
  __syncthreads();
}

__device__ inline void forward(const float *weights, const float *x, float *h1, float *h2, float *y) {
  forward_layer(weights + HT_LEARNER_W1, weights + HT_LEARNER_B1, x, h1);
  forward_layer(weights + HT_LEARNER_W2, weights + HT_LEARNER_B2, h1, h2);
  forward_heads(weights, h2, y);
}

// The gradient over a layer's inputs where the ReLU that made them let them through: through the heads, or through the second layer. `to`
// may not be `d`; ends with a barrier.
__device__ inline void through_heads(const float *weights, const float *dy, const float *h2, float *to) {
  for (int e = threadIdx.x; e < WIDTH * ROWS; e += NETWORK_THREADS) {
    int unit = e / ROWS, row = e % ROWS;
    float sum = 0;
#pragma unroll
    for (int a = 0; a < HEADS; a++) sum = fmaf(weights[HT_LEARNER_HEAD + a * WIDTH + unit], dy[a * ROWS + row], sum);
    to[unit * PITCH + row] = h2[unit * PITCH + row] > 0 ? sum : 0;
  }
  __syncthreads();
}

__device__ inline void through_second(const float *weights, const float *d, const float *h1, float *to) {
  int unit = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * 4;
  float sum[4][4] = {};
  product(weights + HT_LEARNER_BACK, d, sum);
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) to[(unit + i) * PITCH + row + j] = h1[(unit + i) * PITCH + row + j] > 0 ? sum[i][j] : 0;
  __syncthreads();
}

// Gradient of a layer's weights, [input][output]: the sum over the rows of x[input][row] d[output][row]. A thread makes 8 x 4.
__device__ inline void weight_gradient(const float *x, const float *d, float *to) {
  int input = threadIdx.x / 16 * 8, output = threadIdx.x % 16;
  float sum[8][4] = {};
#pragma unroll 2
  for (int row = 0; row < ROWS; row += 4) {
    float4 dv[4];
#pragma unroll
    for (int j = 0; j < 4; j++) dv[j] = *(const float4 *)(d + (output + 16 * j) * PITCH + row);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float4 v = *(const float4 *)(x + (input + i) * PITCH + row);
#pragma unroll
      for (int j = 0; j < 4; j++) sum[i][j] = fmaf(v.w, dv[j].w, fmaf(v.z, dv[j].z, fmaf(v.y, dv[j].y, fmaf(v.x, dv[j].x, sum[i][j]))));
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) to[(input + i) * WIDTH + output + 16 * j] = sum[i][j];
}

// Of the biases of a ReLU layer.
__device__ inline void bias_gradient(const float *d, float *to) {
  if (threadIdx.x >= WIDTH) return;
  float sum = 0;
  for (int row = 0; row < ROWS; row += 4) {
    float4 v = *(const float4 *)(d + threadIdx.x * PITCH + row);
    sum += v.x, sum += v.y, sum += v.z, sum += v.w;
  }
  to[threadIdx.x] = sum;
}

// Of the heads' weights and biases: dy[head][row].
__device__ inline void heads_gradient(const float *dy, const float *h2, float *to) {
  for (int e = threadIdx.x; e < HEADS * WIDTH; e += NETWORK_THREADS) {
    int head = e / WIDTH, unit = e % WIDTH;
    float sum = 0;
    for (int row = 0; row < ROWS; row++) sum = fmaf(dy[head * ROWS + row], h2[unit * PITCH + row], sum);
    to[HT_LEARNER_HEAD + e] = sum;
  }
  if (threadIdx.x >= HEADS) return;
  float sum = 0;
  for (int row = 0; row < ROWS; row++) sum += dy[threadIdx.x * ROWS + row];
  to[HT_LEARNER_B3 + threadIdx.x] = sum;
}

__device__ inline void load_weights(const float *from, int count, float *to) {
  for (int i = threadIdx.x; i < count / 4; i += NETWORK_THREADS) ((float4 *)to)[i] = ((const float4 *)from)[i];
}

} // namespace ht
