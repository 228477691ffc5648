// The EvoCG paper's fused step (section 3.4): textbook CG (Hestenes and Stiefel 1952) around the product s = A p, in one cooperative kernel
// with two grid-wide synchronisations. Sums are taken in a fixed order. SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include "backend/cuda/cg_step.cuh"

using namespace ht;
namespace cg = cooperative_groups;

namespace {

enum { THREADS = 512, WARPS = THREADS / 32, HELD = 2 }; // column blocks that a warp keeps in registers from one phase to the next
// What each block leaves in `sums`, gridDim.x numbers each.
enum { S_PAP, S_RR, S_RZ, S_BYTES, S_COUNT = S_BYTES + 3 };

__device__ inline double block_sum(double v, double *shared) { // in all threads
  v = warp_sum(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < WARPS; w++) sum += shared[w];
  return sum;
}

__device__ inline double grid_sum(const double *sums, double *shared) { // of what the blocks left
  double v = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) v += __ldcg(sums + i);
  return block_sum(v, shared);
}

struct entries { // of one lane: two rows
  double2 p, r;
};

struct totals {
  double rr, rz, bytes[3];
};

__device__ inline double2 inverse_at(const ht_cuda_tiles_facts &f, int64_t i) {
  return f.inverse_diagonal ? ((const double2 *)f.inverse_diagonal)[i] : double2{1, 1};
}

// x += alpha p, r -= alpha s. `first`: r as it is.
template <bool FIRST>
__device__ inline void take_step(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, int64_t i, double alpha, double2 p, double2 s,
                                 double2 &r, totals &t) {
  r = ((double2 *)v.r)[i];
  if (!FIRST) {
    double2 x = ((double2 *)v.x)[i];
    x.x = fma(alpha, p.x, x.x), x.y = fma(alpha, p.y, x.y);
    r.x = fma(-alpha, s.x, r.x), r.y = fma(-alpha, s.y, r.y);
    ((double2 *)v.x)[i] = x, ((double2 *)v.r)[i] = r;
  }
  double2 m = inverse_at(f, i);
  t.rr = fma(r.x, r.x, fma(r.y, r.y, t.rr));
  t.rz = fma(r.x, m.x * r.x, fma(r.y, m.y * r.y, t.rz));
}

// p = M^-1 r + beta p, and what a policy wants of it.
template <bool FIRST>
__device__ inline void turn(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, int64_t block,
                            double beta, double2 p, double2 r, bool looking) {
  int64_t i = block * 32 + (threadIdx.x & 31);
  double2 m = inverse_at(f, i);
  p = FIRST ? double2{m.x * r.x, m.y * r.y} : double2{fma(beta, p.x, m.x * r.x), fma(beta, p.y, m.y * r.y)};
  ((double2 *)v.p)[i] = p;
  if (!looking) return;
  double norm2 = warp_sum(p.x * p.x + p.y * p.y), largest = warp_largest(fmax(fabs(p.x), fabs(p.y)));
  if (threadIdx.x & 31) return;
  if (c.decide_rule == DECIDE_HOST)
    v.block_norm2[block] = norm2, v.block_max[block] = largest;
  else if (c.decide_rule == DECIDE_RULE || c.alpha > 0)
    v.block_level[block] = (uint8_t)max(c.floor, decide(c, norm2, largest, f.error_16[block], f.error_32[block], (double)f.blocks));
}

__device__ inline int event_of(const ht_cuda_cg_scalars &s, double rr) {
  if (!isfinite(rr) || !isfinite(s.rz) || !isfinite(s.beta)) return NONFINITE;
  if (s.norm_r <= s.goal) return REACHED;
  if (s.iteration >= s.iteration_end) return LIMIT;
  if (s.norm_r <= s.replace_below) return DROPPED;
  if (s.norm_r > s.grow_above) return GREW;
  if (s.iteration >= s.decide_at && s.decide_rule == DECIDE_HOST) return DECIDE;
  if (s.iteration >= s.pause_at) return PAUSE;
  return CONTINUE;
}

// The scalars for the host and the next launches. Records of step lengths are those that led to the iteration.
__device__ inline void leave(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &s, int event) {
  if (threadIdx.x == 0) {
    s.event = event;
    ht_cuda_cg_scalars next = s;
    if (event == CONTINUE) next.iteration++;
    *v.scalars = next;
  }
  __syncthreads();
  if (event != CONTINUE) tell(v, s);
}

// FIRST: of a new residual, whose direction is M^-1 r.
template <bool FIRST> __device__ inline void step(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v) {
  __shared__ ht_cuda_cg_scalars c;
  __shared__ double shared[WARPS];
  cg::grid_group grid = cg::this_grid();
  if (v.scalars->event != CONTINUE) return;
  if (threadIdx.x == 0) c = *v.scalars;
  int lane = threadIdx.x & 31;
  int64_t mine = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, stride = (int64_t)gridDim.x * WARPS;
  // phase 0 and 1: loads and p's
  entries held[HELD];
  double2 held_s[HELD];
  double alpha = 0;
  if (!FIRST) {
    double pap = 0;
#pragma unroll
    for (int h = 0; h < HELD; h++) {
      int64_t i = (mine + h * stride) * 32 + lane;
      bool has = mine + h * stride < f.blocks;
      held[h].p = has ? ((double2 *)v.p)[i] : double2{0, 0};
      held_s[h] = has ? ((double2 *)v.s)[i] : double2{0, 0};
      pap = fma(held[h].p.x, held_s[h].x, fma(held[h].p.y, held_s[h].y, pap));
    }
    for (int64_t block = mine + HELD * stride; block < f.blocks; block += stride) {
      double2 p = ((double2 *)v.p)[block * 32 + lane], s = ((double2 *)v.s)[block * 32 + lane];
      pap = fma(p.x, s.x, fma(p.y, s.y, pap));
    }
    pap = block_sum(pap, shared);
    if (threadIdx.x == 0) v.sums[S_PAP * gridDim.x + blockIdx.x] = pap;
    grid.sync();
    pap = grid_sum(v.sums + S_PAP * gridDim.x, shared);
    alpha = c.rz / pap;
    if (!(pap > 0) || !isfinite(alpha)) { // the same in all blocks; the step is not taken
      if (threadIdx.x == 0) c.pap = pap, c.iteration--;
      __syncthreads();
      if (blockIdx.x == 0) leave(v, c, isfinite(pap) && !(pap > 0) ? CURVATURE : NONFINITE);
      return;
    }
    __syncthreads();
    if (threadIdx.x == 0) c.pap = pap, c.alpha = alpha;
  }
  // phase 2: the step, and the sums of the new residual
  totals t = {};
#pragma unroll
  for (int h = 0; h < HELD; h++)
    if (mine + h * stride < f.blocks) take_step<FIRST>(f, v, (mine + h * stride) * 32 + lane, alpha, held[h].p, held_s[h], held[h].r, t);
  for (int64_t block = mine + HELD * stride; block < f.blocks; block += stride) {
    int64_t i = block * 32 + lane;
    double2 r, p = ((double2 *)v.p)[i], s = ((double2 *)v.s)[i];
    take_step<FIRST>(f, v, i, alpha, p, s, r, t);
  }
  bool counting = !FIRST && c.uniform < 0;
  if (counting)
    for (int64_t block = mine; block < f.blocks; block += stride) {
      int level = v.block_level[block];
      if (lane) continue;
      double bytes = f.bytes[level * f.blocks + block];
      for (int k = 0; k < 3; k++) t.bytes[k] += level == k ? bytes : 0;
    }
  const double values[] = {t.rr, t.rz, t.bytes[0], t.bytes[1], t.bytes[2]};
#pragma unroll
  for (int k = 0; k < 5; k++) {
    if (k == 2 && !counting) break;
    double sum = block_sum(values[k], shared);
    if (threadIdx.x == 0) v.sums[(S_RR + k) * gridDim.x + blockIdx.x] = sum;
  }
  grid.sync();
  double rr = grid_sum(v.sums + S_RR * gridDim.x, shared), rz = grid_sum(v.sums + S_RZ * gridDim.x, shared);
  double beta = FIRST ? 0 : rz / c.rz;
  __syncthreads(); // all have read the old rz
  if (threadIdx.x == 0) {
    c.norm_r = sqrt(rr);
    c.rz = rz;
    c.beta = beta;
  }
  __syncthreads();
  // phase 3: the new direction
  bool looking = c.iteration >= c.decide_at;
#pragma unroll
  for (int h = 0; h < HELD; h++)
    if (mine + h * stride < f.blocks) turn<FIRST>(f, v, c, mine + h * stride, beta, held[h].p, held[h].r, looking);
  for (int64_t block = mine + HELD * stride; block < f.blocks; block += stride) {
    int64_t i = block * 32 + lane;
    turn<FIRST>(f, v, c, block, beta, ((double2 *)v.p)[i], ((double2 *)v.r)[i], looking);
  }
  if (blockIdx.x) return;
  for (int level = 0; level < 3 && counting; level++) {
    double bytes = grid_sum(v.sums + (S_BYTES + level) * gridDim.x, shared);
    if (threadIdx.x == 0) c.level_groups[level] += bytes;
  }
  if (threadIdx.x == 0) {
    record(v, c);
    if (looking && c.decide_rule != DECIDE_HOST) c.decide_at = c.iteration + c.decide_every;
  }
  __syncthreads();
  leave(v, c, event_of(c, rr));
}

} // namespace

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    ht_paper_start(const __grid_constant__ ht_cuda_tiles_facts f, const __grid_constant__ ht_cuda_cg_vectors v) {
  step<true>(f, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    ht_paper_step(const __grid_constant__ ht_cuda_tiles_facts f, const __grid_constant__ ht_cuda_cg_vectors v) {
  step<false>(f, v);
}
