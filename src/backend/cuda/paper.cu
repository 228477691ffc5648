// The EvoCG paper's fused step (section 3.4): textbook CG (Hestenes and Stiefel 1952) around the product s = A p, in one cooperative
// kernel. The product leaves p's of each row block, so that one grid-wide synchronisation does where the paper has two. x takes its step
// with the turn of the direction, for which p is read anyway. Sums are taken in a fixed order. SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include "backend/cuda/cg_step.cuh"

using namespace ht;
namespace cg = cooperative_groups;

namespace {

enum { THREADS = 512, WARPS = THREADS / 32, HELD = 2 }; // column blocks that a warp keeps in registers from one phase to the next
// What each block leaves in `sums`, gridDim.x numbers each.
enum { S_RR, S_RZ, S_BYTES, S_PP = S_BYTES + 3 };

// Sums over the block of N values a thread, in all threads.
template <int N> __device__ inline void block_sums(double (&v)[N], double (*shared)[WARPS]) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = warp_sum(v[k]);
  __syncthreads(); // the sums before have been read
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < N; k++) shared[k][threadIdx.x / 32] = v[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; k++) {
    v[k] = shared[k][lane % WARPS];
    for (int width = WARPS / 2; width > 0; width /= 2) v[k] += __shfl_xor_sync(~0u, v[k], width);
  }
}

// Over the grid: what each block leaves, and the sums of it.
template <int N> __device__ inline void leave_sums(double *sums, double (&v)[N], double (*shared)[WARPS]) {
  block_sums(v, shared);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < N; k++) sums[k * gridDim.x + blockIdx.x] = v[k];
}

template <int N> __device__ inline void take_sums(const double *sums, int64_t count, double (&v)[N], double (*shared)[WARPS]) {
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += THREADS)
#pragma unroll
    for (int k = 0; k < N; k++) v[k] += __ldcg(sums + k * count + i);
  block_sums(v, shared);
}

struct entries { // of a lane: two rows of a column block
  double2 p, x, r, s;
};

// The column blocks of a warp: the first HELD, then the others.
struct share {
  int64_t first, stride, blocks;
  __device__ int64_t at(int k) const { return first + k * stride; }
  __device__ bool has(int k) const { return at(k) < blocks; }
};

__device__ inline double2 inverse_at(const ht_cuda_tiles_facts &f, int64_t i) {
  return f.inverse_diagonal ? ((const double2 *)f.inverse_diagonal)[i] : double2{1, 1};
}

__device__ inline void load_residual(const ht_cuda_cg_vectors &v, int64_t i, bool first, entries &e) {
  e.r = ((const double2 *)v.r)[i];
  if (!first) e.s = ((const double2 *)v.s)[i];
}

__device__ inline void load_direction(const ht_cuda_cg_vectors &v, int64_t i, entries &e) {
  e.p = ((const double2 *)v.p)[i];
  e.x = ((const double2 *)v.x)[i];
}

// r -= alpha s. FIRST: r as it is.
template <bool FIRST>
__device__ inline void take_step(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, int64_t i, double alpha, entries &e,
                                 double (&sum)[2]) {
  double2 m = inverse_at(f, i);
  if (!FIRST) {
    e.r.x = fma(-alpha, e.s.x, e.r.x), e.r.y = fma(-alpha, e.s.y, e.r.y);
    ((double2 *)v.r)[i] = e.r;
  }
  sum[0] = fma(e.r.x, e.r.x, fma(e.r.y, e.r.y, sum[0]));
  sum[1] = fma(e.r.x, m.x * e.r.x, fma(e.r.y, m.y * e.r.y, sum[1]));
}

// What a policy wants of the direction in a block; apart from the rest, whose registers it would take.
__device__ __noinline__ void look(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, int64_t block,
                                  double2 p) {
  double norm2 = warp_sum(p.x * p.x + p.y * p.y), largest = warp_largest(fmax(fabs(p.x), fabs(p.y)));
  if (threadIdx.x & 31) return;
  if (c.decide_rule == DECIDE_HOST)
    v.block_norm2[block] = norm2, v.block_max[block] = largest;
  else if (c.decide_rule == DECIDE_RULE || c.alpha > 0)
    v.block_level[block] = (uint8_t)max(c.floor, decide(c, norm2, largest, f.error_16[block], f.error_32[block], (double)f.blocks));
}

// x += alpha p, and then p = M^-1 r + beta p.
template <bool FIRST>
__device__ inline void turn(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, int64_t block,
                            double alpha, double beta, const entries &e, bool looking) {
  int64_t i = block * 32 + (threadIdx.x & 31);
  double2 m = inverse_at(f, i), p = {m.x * e.r.x, m.y * e.r.y};
  if (!FIRST) {
    ((double2 *)v.x)[i] = {fma(alpha, e.p.x, e.x.x), fma(alpha, e.p.y, e.x.y)};
    p = {fma(beta, e.p.x, p.x), fma(beta, e.p.y, p.y)};
  }
  ((double2 *)v.p)[i] = p;
  if (looking) look(f, v, c, block, p);
}

__device__ inline int event_of(ht_cuda_cg_scalars &s) {
  if (!isfinite(s.norm_r) || !isfinite(s.rz) || !isfinite(s.beta)) return NONFINITE;
  if (s.norm_r <= s.goal) return REACHED;
  return event_of_limits(s);
}

// By one thread: records, and the scalars for the next launches. A record's step lengths are those that led to its iteration.
__device__ inline void conclude(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &s, int event, bool taken) {
  if (taken) {
    record(v, s);
    if (s.iteration >= s.decide_at && s.decide_rule != DECIDE_HOST) s.decide_at = s.iteration + s.decide_every, s.recount = 1;
  } else {
    s.iteration--;
  }
  bool replaces = event == DROPPED && s.replacing.allowed && s.replaced < HT_CG_REPLACEMENTS;
  if (replaces) event = CONTINUE, s.due = 1;
  s.event = event;
  *v.scalars = s;
  if (event == CONTINUE) v.scalars->iteration++;
}

// All that is known before p's is, of the blocks that are held: it is on its way while the sums are taken.
template <bool FIRST> __device__ inline void load(const ht_cuda_cg_vectors &v, const share &my, int lane, entries (&held)[HELD]) {
#pragma unroll
  for (int k = 0; k < HELD; k++) {
    if (!my.has(k)) continue;
    load_residual(v, my.at(k) * 32 + lane, FIRST, held[k]);
    if (!FIRST) load_direction(v, my.at(k) * 32 + lane, held[k]);
  }
}

// The residual, and this thread's part of r'r and r'M^-1 r.
template <bool FIRST>
__device__ inline void update(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const share &my, int lane, double alpha,
                              entries (&held)[HELD], double (&sum)[2]) {
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) take_step<FIRST>(f, v, my.at(k) * 32 + lane, alpha, held[k], sum);
#pragma unroll 2
  for (int64_t block = my.at(HELD); block < my.blocks; block += my.stride) {
    entries e;
    load_residual(v, block * 32 + lane, FIRST, e);
    take_step<FIRST>(f, v, block * 32 + lane, alpha, e, sum);
  }
}

// ||p||^2 of the direction that is about to change, over the grid: what a budget compares the next one's blocks with.
__device__ inline void leave_square(const ht_cuda_cg_vectors &v, const share &my, int lane, double (*shared)[WARPS]) {
  double square[1] = {0};
#pragma unroll 1
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    double2 p = ((const double2 *)v.p)[block * 32 + lane];
    square[0] = fma(p.x, p.x, fma(p.y, p.y, square[0]));
  }
  leave_sums(v.sums + S_PP * gridDim.x, square, shared);
}

__device__ inline void take_square(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c,
                                   double (*shared)[WARPS]) {
  double square[1];
  take_sums(v.sums + S_PP * gridDim.x, gridDim.x, square, shared);
  if (threadIdx.x == 0) c.mean_norm2 = square[0] / (double)f.blocks;
}

// The iterate and the new direction.
template <bool FIRST>
__device__ inline void redirect(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, const share &my,
                                int lane, double alpha, const entries (&held)[HELD]) {
  double beta = c.beta;
  bool looking = c.iteration >= c.decide_at;
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) turn<FIRST>(f, v, c, my.at(k), alpha, beta, held[k], looking);
#pragma unroll 2
  for (int64_t block = my.at(HELD); block < my.blocks; block += my.stride) {
    int64_t i = block * 32 + lane;
    entries e;
    load_residual(v, i, true, e);
    if (!FIRST) load_direction(v, i, e);
    turn<FIRST>(f, v, c, block, alpha, beta, e, looking);
  }
}

// After levels changed: the bytes that a product reads at each of them, and each tile's level to its head, where products look for it.
__device__ inline void count(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const share &my, double (*shared)[WARPS]) {
  double bytes[3] = {};
#pragma unroll 1
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    int level = v.block_level[block];
    double more = threadIdx.x & 31 ? 0 : f.bytes[level * f.blocks + block];
#pragma unroll
    for (int k = 0; k < 3; k++) bytes[k] += level == k ? more : 0;
  }
  leave_sums(v.sums + S_BYTES * gridDim.x, bytes, shared);
  for (int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x; t < f.tiles; t += gridDim.x * (int64_t)THREADS)
    f.head[t].level = v.block_level[f.head[t].column];
}

__device__ inline void take_count(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, double (*shared)[WARPS]) {
  double bytes[3];
  take_sums(v.sums + S_BYTES * gridDim.x, gridDim.x, bytes, shared);
  if (threadIdx.x) return;
  for (int k = 0; k < 3; k++) c.product_bytes[k] = bytes[k];
  c.recount = 0;
}

// What a replacement leads to, by one thread: the run goes on, or the host is to give up the level or the direction.
__device__ inline void settle(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, double norm, double change) {
  ht_cg_replacing &m = c.replacing;
  double before = m.reference;
  c.due = 0;
  c.iteration--; // of x
  v.told_replacements[c.replaced++] = {c.iteration, norm, change};
  c.event = ht_replacement_gains(norm, before) && change <= ht_replacement_bearable(norm) ? CONTINUE : DROPPED;
  double below = ht_replacement_drop(norm, change, before, m.first_drop, c.goal) * norm;
  m.reference = norm;
  c.replace_below = below > c.goal ? below : -1;
  if (isfinite(c.grow_above)) c.grow_above *= norm / before;
  *v.scalars = c;
  if (c.event == CONTINUE) v.scalars->iteration++;
}

// s is A x: b - s takes r's place. The direction stays.
__device__ __noinline__ void replace(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, const share &my, double (*shared)[WARPS]) {
  double sum[2] = {0, 0};
#pragma unroll 2
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    int64_t i = block * 32 + threadIdx.x % 32;
    double2 b = ((const double2 *)v.b)[i], s = ((const double2 *)v.s)[i], r = ((const double2 *)v.r)[i];
    s = {b.x - s.x, b.y - s.y};
    r = {s.x - r.x, s.y - r.y};
    ((double2 *)v.r)[i] = s;
    sum[0] = fma(s.x, s.x, fma(s.y, s.y, sum[0]));
    sum[1] = fma(r.x, r.x, fma(r.y, r.y, sum[1]));
  }
  leave_sums(v.sums + S_RR * gridDim.x, sum, shared);
  cg::this_grid().sync();
  if (blockIdx.x) return;
  take_sums(v.sums + S_RR * gridDim.x, gridDim.x, sum, shared);
  if (threadIdx.x == 0) settle(v, c, sqrt(sum[0]), sqrt(sum[1]));
  __syncthreads();
  if (c.event != CONTINUE) tell(v, c);
}

// FIRST: of a new residual, whose direction is M^-1 r. `c` is the block's own copy of the scalars.
template <bool FIRST> __device__ inline void step(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v) {
  __shared__ ht_cuda_cg_scalars c;
  __shared__ double shared[3][WARPS];
  cg::grid_group grid = cg::this_grid();
  let_the_next_begin();
  task task = task_of(v.scalars);
  if (task.event != CONTINUE) return;
  if (threadIdx.x == 0) c = *v.scalars;
  int lane = threadIdx.x & 31;
  share my = {(int64_t)blockIdx.x * WARPS + threadIdx.x / 32, (int64_t)gridDim.x * WARPS, f.blocks};
  if (!FIRST && task.due) {
    __syncthreads();
    replace(v, c, my, shared);
    return;
  }
  entries held[HELD];
  double alpha = 0, pap[1] = {0};
  load<FIRST>(v, my, lane, held);
  if (!FIRST) {
    take_sums(f.products, f.row_blocks, pap, shared);
    alpha = c.rz / pap[0];
  } else {
    __syncthreads();
  }
  int event = FIRST || (pap[0] > 0 && isfinite(alpha)) ? CONTINUE : isfinite(pap[0]) && !(pap[0] > 0) ? CURVATURE : NONFINITE;
  bool taken = event == CONTINUE, counting = taken && !FIRST && c.uniform < 0 && c.recount;
  if (taken) { // the same in all blocks
    double sum[2] = {0, 0};
    update<FIRST>(f, v, my, lane, alpha, held, sum);
    leave_sums(v.sums + S_RR * gridDim.x, sum, shared);
    if (counting) count(f, v, my, shared);
    bool comparing = !FIRST && c.decide_rule == DECIDE_BUDGET && c.iteration >= c.decide_at;
    if (comparing) leave_square(v, my, lane, shared);
    grid.sync();
    if (comparing) take_square(f, v, c, shared);
    take_sums(v.sums + S_RR * gridDim.x, gridDim.x, sum, shared);
    if (threadIdx.x == 0) {
      if (!FIRST) c.alpha = alpha;
      c.beta = FIRST ? 0 : sum[1] / c.rz;
      c.norm_r = sqrt(sum[0]);
      c.rz = sum[1];
    }
    __syncthreads();
    redirect<FIRST>(f, v, c, my, lane, alpha, held);
    event = event_of(c);
  }
  if (blockIdx.x) return;
  if (counting) take_count(v, c, shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (!FIRST) c.pap = pap[0];
    for (int k = 0; k < 3 && taken && !FIRST && c.uniform < 0; k++) c.level_groups[k] += c.product_bytes[k];
    conclude(v, c, event, taken);
  }
  __syncthreads();
  if (c.event != CONTINUE) tell(v, c);
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
