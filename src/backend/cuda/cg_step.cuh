// The scalars of an iteration, as in the CPU's fused engine (backend/cpu/cg.c): predict-and-recompute CG (Chen and Carson 2020), in
// which one reduction gives all sums. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg.h"
#include "backend/cuda/decode.cuh"

namespace ht {

enum event { CONTINUE, REACHED, LIMIT, DECIDE, CURVATURE, NONFINITE, DROPPED, GREW, PAUSE }; // ht_cg_event
enum decide_rule { DECIDE_HOST, DECIDE_RULE, DECIDE_BUDGET, DECIDE_LEARNED };                // ht_decide_rule
enum sums { RZ, PAP, RMS, SMS, RR };                                                         // HT_SUMS of them

// alpha, and beta from the rz that is predicted for the next residual; the two divisions do not wait for each other.
struct step_lengths {
  double alpha, beta, predicted;
};

__device__ inline double predicted_rz(const double *sum, double alpha) { return fma(alpha, fma(alpha, sum[SMS], -2 * sum[RMS]), sum[RZ]); }

__device__ inline step_lengths lengths_of(const double *sum) {
  double alpha = sum[RZ] / sum[PAP], inverse = 1 / sum[RZ], predicted = predicted_rz(sum, alpha);
  return {alpha, predicted > 0 ? predicted * inverse : 0, predicted};
}

// At replace_below, where a network chooses unseen: what it has chosen since the last time is told to the rules for replacement. Returns
// whether nothing is due by them.
__device__ inline bool follow(ht_cuda_cg_scalars &s) {
  ht_cg_replacing &m = s.replacing;
  if (!m.follows) return false;
  ht_replacing_follow(&m, s.lowest);
  s.lowest_before = min(s.lowest_before, s.lowest);
  s.lowest = LEVEL_64;
  if (ht_replacing_is_due(&m, s.norm_r)) return false;
  m.watched = s.norm_r;
  s.replace_below = ht_replacing_below(&m, s.goal);
  return true;
}

// What a product of the paper's engine is to do, in reads that do not wait for each other.
struct task {
  int event, due, looks, recount;
  uint32_t chosen; // at the last look
};

__device__ inline task task_of(const ht_cuda_cg_scalars *s, const uint32_t *chosen) {
  constexpr size_t first = offsetof(ht_cuda_cg_scalars, event);
  static_assert(offsetof(ht_cuda_cg_scalars, due) == first + 4 && offsetof(ht_cuda_cg_scalars, looks) == first + 8 &&
                    offsetof(ht_cuda_cg_scalars, recount) == first + 12 && first % 8 == 0,
                "they are read together");
  int2 one = *(const int2 *)&s->event, two = *(const int2 *)&s->looks;
  uint2 both = *(const uint2 *)chosen;
  return {one.x, one.y, two.x, two.y, two.x & 1 ? both.y : both.x};
}

// ---- what the paper's engine has chosen (ht_cuda_cg_vectors.chosen) ----

__device__ inline uint32_t chosen_bits(int level, int before) { return 1u << level | (level != before ? HT_CHOSEN_CHANGED : 0); }

__device__ inline int lowest_of(uint32_t chosen) { return __ffs(chosen) - 1; }

// The level that all blocks have, or -1.
__device__ inline int uniform_of(uint32_t chosen) {
  uint32_t levels = chosen & ~HT_CHOSEN_CHANGED;
  return levels & levels - 1 ? -1 : lowest_of(levels);
}

// Whether an iteration without fault is one that the host asked to stop at.
__device__ inline int event_of_limits(ht_cuda_cg_scalars &s) {
  if (s.iteration >= s.iteration_end) return LIMIT;
  if (s.norm_r <= s.replace_below && !follow(s)) return DROPPED;
  if (s.norm_r > s.grow_above) return GREW;
  if (s.iteration >= s.decide_at && s.decide_rule == DECIDE_HOST) return DECIDE;
  if (s.iteration >= s.pause_at) return PAUSE;
  return CONTINUE;
}

// Step lengths from the sums, and what happened. rz of the next residual is predicted for beta, and recomputed in the next sweep.
__device__ inline int step(ht_cuda_cg_scalars &s, const double *sum) {
  double rz = sum[RZ], rr = sum[RR], pap = sum[PAP];
  s.norm_r = sqrt(rr);
  s.rz = rz;
  s.pap = pap;
  if (!isfinite(rr) || !isfinite(rz)) return NONFINITE;
  if (s.norm_r <= s.goal) return REACHED;
  if (!isfinite(pap)) return NONFINITE;
  if (pap <= 0) return CURVATURE;
  double alpha = lengths_of(sum).alpha, beta = lengths_of(sum).beta;
  s.alpha = alpha;
  s.beta = beta;
  if (!isfinite(alpha) || !isfinite(beta)) return NONFINITE;
  return event_of_limits(s);
}

__device__ inline void record(const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &s) {
  if (s.iteration >= s.capacity) return;
  v.history[s.iteration] = s.norm_r;
  v.alphas[s.iteration] = s.alpha;
  v.betas[s.iteration] = s.beta;
}

// An event, to the host, by all threads of a block that has seen the last record.
__device__ inline void tell(const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &s) {
  int64_t end = min(min(s.iteration + 1, s.capacity), s.first + HT_CUDA_TOLD);
  const double *records[] = {v.history, v.alphas, v.betas};
#pragma unroll
  for (int k = 0; k < 3; k++)
    for (int64_t i = s.first + threadIdx.x; i < end; i += blockDim.x) v.told_records[k * HT_CUDA_TOLD + i - s.first] = records[k][i];
  if (threadIdx.x == 0) *v.told = s;
  __threadfence_system();
}

// A direction so far below the mean is one that has not been reached yet, as in policy/policy.c: by the next look it may be as large.
__device__ inline double norm2_until_next_look(const ht_cuda_cg_scalars &c, double norm2) {
  constexpr double REACHED = 1e-4;
  return norm2 < REACHED * c.mean_norm2 ? c.mean_norm2 : norm2;
}

// The rule of EvoCG section 4.7, and the error budget of policy/policy.c with the calibration of the look before, and the mean of the
// direction before.
__device__ inline int decide(const ht_cuda_cg_scalars &c, double norm2, double largest, double e16, double e32, double blocks) {
  if (c.decide_rule == DECIDE_RULE) return largest < 1e-11 ? LEVEL_16 : largest < 1e-10 ? LEVEL_32 : LEVEL_64;
  double budget = fmin(c.theta * c.target, c.eta * c.norm_r) / c.alpha, share = budget * budget / blocks;
  double p2 = norm2_until_next_look(c, norm2);
  return c.calibration_16 * e16 * e16 * p2 <= share ? LEVEL_16 : c.calibration_32 * e32 * e32 * p2 <= share ? LEVEL_32 : LEVEL_64;
}

// s_i^2: exponents stay far from the ends of the range, as the store checks.
__device__ inline double scale_squared(int16_t exponent) { return __hiloint2double((1023 + 2 * exponent) << 20, 0); }

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

// Sums over the warp, all lanes get the result; a fixed order.
__device__ inline double warp_sum(double v) {
  for (int width = 16; width > 0; width >>= 1) v += __shfl_xor_sync(~0u, v, width);
  return v;
}
__device__ inline double warp_largest(double v) {
  for (int width = 16; width > 0; width >>= 1) v = fmax(v, __shfl_xor_sync(~0u, v, width));
  return v;
}

} // namespace ht
