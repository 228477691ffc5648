// What the streaming engine's kernels share: their sums, and how an iteration ends. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_step.cuh"

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

// Kernels of an iteration are launched while the one before them ends (ht_launch.early), where the device can: from here on what that one
// has written is there, and
__device__ inline void wait_for_the_one_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// from here on the next one may take the place of blocks that are through.
__device__ inline void let_the_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Sum of one value a thread over the block, in thread 0.
__device__ inline double block_sum(double v, double *shared) {
  v = warp_sum(v);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (int w = 0; w < WARPS; w++) sum += shared[w];
  __syncthreads();
  return sum;
}

// Conclusions of the iteration, by one thread; `total` as in the enum above.
__device__ inline void conclude(const ht_store_view &a, const ht_cuda_cg_vectors &v, const double *total) {
  ht_cuda_cg_scalars s = *v.scalars;
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
  *v.scalars = s;
}

// Blocks of the kernels before the one that draws the conclusions, and the sums that they have left.
struct before {
  int update_blocks, multiply_blocks, count;
};

__device__ __noinline__ void finish(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  __shared__ double total[S_COUNT];
  __threadfence();
  int lane = threadIdx.x & 31;
  for (int k = threadIdx.x / 32; k < S_COUNT; k += WARPS) {
    double sum = 0;
    int blocks = k >= b.count ? 0 : k < S_PAP ? b.update_blocks : k == S_RMS || k == S_SMS ? gridDim.x : b.multiply_blocks;
    for (int i = lane; i < blocks; i += 32) sum += __ldcg(&v.sums[k * stride + i]);
    sum = warp_sum(sum);
    if (lane == 0) total[k] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) conclude(a, v, total);
  __syncthreads();
  if (v.scalars->event != CONTINUE) tell(v, *v.scalars);
}

// The last block to be through draws the conclusions.
__device__ inline void leave(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&v.scalars->finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) finish(a, v, stride, b);
}

} // namespace ht
