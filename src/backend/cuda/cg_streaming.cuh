// What the streaming engine's kernels share: their sums, and how an iteration ends. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/sums.cuh"

namespace ht {

enum { THREADS = 256, WARPS = THREADS / 32, SAMPLE = 32 /* of so many slices a product measures the errors of one */ };
constexpr double LEAST_BETA = 0.01; // of a step that is put off
// What each block leaves in `sums`, an array of `stride` entries each.
enum {
  S_RZ,
  S_RR,
  S_PP,
  S_PREDICTED_16,
  S_PREDICTED_32,
  S_PAP,
  S_RMS,
  S_SMS,
  S_ERROR_16,
  S_ERROR_32,
  S_LEVEL_16,
  S_LEVEL_32,
  S_LEVEL_64,
  S_COUNT
};

// The block's sums of the first `count` of COUNT values a thread, to its places in the arrays that begin at `sums`; by the first warp.
template <int COUNT> __device__ inline void leave_block_sums(const double (&values)[COUNT], int count, double *sums, int stride) {
  __shared__ double2 shared[WARPS][(COUNT + 1) / 2];
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  double2 mine = warp_sums(values, lane);
  if (lane < (COUNT + 1) / 2) shared[warp][lane] = mine;
  __syncthreads();
  if (threadIdx.x >= count) return;
  double sum = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) sum += ((const double *)shared[w])[lane];
  sums[lane * stride + blockIdx.x] = sum;
}

// Conclusions of the iteration, by one thread; `total` as in the enum above.
__device__ inline void conclude(const ht_store_view &a, const ht_cuda_cg_vectors &v, const double *total, ht_cuda_cg_scalars &s) {
  const double sum[HT_SUMS] = {total[S_RZ], total[S_PAP], total[S_RMS], total[S_SMS], total[S_RR]};
  int64_t looked = s.iteration >= s.decide_at;
  /* The update of this iteration made up for what was owed, or put its own step off: then it is owed from now on. */
  s.owed = !s.owed && s.later;
  s.owed_alpha = s.alpha;
  s.owed_beta = s.beta;
  int event = step(s, sum);
  s.later = !v.inverse_blocks && !s.owed && (event == CONTINUE || event == PAUSE) && s.beta >= LEAST_BETA; // a pause changes no bit
  record(v, s);
  for (int k = 0; k < 3; k++) s.level_groups[k] += total[S_LEVEL_16 + k];
  if (s.decide_rule == DECIDE_BUDGET) s.mean_norm2 = total[S_PP] / (double)a.blocks;
  if (looked && s.decide_rule == DECIDE_BUDGET) {
    if (total[S_PREDICTED_16] > 0) s.calibration_16 = SAMPLE * total[S_ERROR_16] / total[S_PREDICTED_16];
    if (total[S_PREDICTED_32] > 0) s.calibration_32 = SAMPLE * total[S_ERROR_32] / total[S_PREDICTED_32];
  }
  if (looked && s.decide_rule != DECIDE_HOST) s.decide_at = s.iteration + s.decide_every;
  s.finished = 0;
  s.event = event;
  if (event == CONTINUE) s.iteration++;
}

// Blocks of the kernels before the one that draws the conclusions, and the sums that they have left.
struct before {
  int update_blocks, multiply_blocks, count;
};

// The sum of a number a block, by a warp. As many loads as blocks are usual do not wait for each other.
__device__ inline double sum_of_blocks(const double *sums, int blocks, int lane) {
  constexpr int AT_ONCE = 18;
  double sum = 0;
  for (int begin = lane; begin - lane < blocks; begin += 32 * AT_ONCE) {
    double part[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) part[k] = begin + 32 * k < blocks ? __ldcg(&sums[begin + 32 * k]) : 0;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) sum += part[k];
  }
  return warp_sum(sum);
}

// The scalars lie in shared memory for that: what one thread has of its own is copied word by word, and what is addressed by a variable
// to its stack.
__device__ inline void finish(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  constexpr int WORDS = sizeof(ht_cuda_cg_scalars) / sizeof(int2);
  static_assert(sizeof(ht_cuda_cg_scalars) % sizeof(int2) == 0 && WORDS <= THREADS, "a word a thread");
  __shared__ double total[S_COUNT];
  __shared__ ht_cuda_cg_scalars s;
  __threadfence();
  if (threadIdx.x < WORDS) ((int2 *)&s)[threadIdx.x] = __ldcg((const int2 *)v.scalars + threadIdx.x);
  int lane = threadIdx.x & 31;
  for (int k = threadIdx.x / 32; k < S_COUNT; k += WARPS) {
    int blocks = k >= b.count ? 0 : k < S_PAP ? b.update_blocks : k == S_RMS || k == S_SMS ? gridDim.x : b.multiply_blocks;
    double sum = sum_of_blocks(&v.sums[k * stride], blocks, lane);
    if (lane == 0) total[k] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) conclude(a, v, total, s);
  __syncthreads();
  if (threadIdx.x < WORDS) ((int2 *)v.scalars)[threadIdx.x] = ((const int2 *)&s)[threadIdx.x];
  if (s.event != CONTINUE) tell(v, s);
}

// The last block to be through draws the conclusions; its first warp has left its sums.
__device__ inline void leave(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  __shared__ bool last;
  __syncwarp();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&v.scalars->finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) finish(a, v, stride, b);
}

} // namespace ht
