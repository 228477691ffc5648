// The EvoCG paper's fused step (section 3.4): textbook CG (Hestenes and Stiefel 1952) around the product s = A p, in one cooperative
// kernel. The product leaves p's of each row block, so that one grid-wide synchronisation does where the paper has two. x takes its step
// while blocks wait for each other. A learned policy looks at the new direction in the same kernel. Sums are taken in a fixed order. Who
// includes this says how many threads a block has: HT_STEP_THREADS. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cooperative_groups.h>
#include "backend/cuda/network.cuh"
#include "backend/cuda/sums.cuh"

using namespace ht;
namespace cg = cooperative_groups;

namespace {

enum { THREADS = HT_STEP_THREADS, WARPS = THREADS / 32 };
enum { HELD = 4 }; // column blocks that a warp keeps in registers from one phase to the next
// What each block leaves in `sums`, gridDim.x numbers each.
enum { S_RZ, S_RR, S_BYTES, S_PP = S_BYTES + 3 };

// Each warp's sums, two and two.
using parts = double2 (*)[2];

// Sums over the block of up to four values a thread, in all threads.
template <int N> __device__ inline void block_sums(double (&v)[N], parts shared) {
  int lane = threadIdx.x & 31;
  double2 mine = warp_sums(v, lane);
  __syncthreads(); // the sums before have been read
  if (lane < 2) shared[threadIdx.x / 32][lane] = mine;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = lane < WARPS ? ((const double *)shared[lane])[k] : 0;
  mine = warp_sums(v, lane);
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = __shfl_sync(~0u, k & 1 ? mine.y : mine.x, k / 2);
}

// Over the grid: what each block leaves, and the sums of it.
template <int N> __device__ inline void leave_sums(double *sums, double (&v)[N], parts shared) {
  block_sums(v, shared);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < N; k++) sums[k * gridDim.x + blockIdx.x] = v[k];
}

template <int N> __device__ inline void take_sums(const double *sums, int64_t count, double (&v)[N], parts shared) {
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

// From the L2 cache: this multiprocessor's own may be from before the kernel that wrote it.
__device__ inline double2 load_pair(const double *v, int64_t i) { return __ldcg((const double2 *)v + i); }

__device__ inline void load_direction(const ht_cuda_cg_vectors &v, int64_t i, entries &e) {
  e.p = load_pair(v.p, i);
  e.x = load_pair(v.x, i);
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
  sum[0] = fma(e.r.x, m.x * e.r.x, fma(e.r.y, m.y * e.r.y, sum[0]));
  sum[1] = fma(e.r.x, e.r.x, fma(e.r.y, e.r.y, sum[1]));
}

// What a policy wants of the direction in a block; apart from the rest, whose registers it would take. `found` gets what it chooses.
__device__ __noinline__ void look(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, int64_t block,
                                  double2 p, uint32_t *found) {
  double norm2 = warp_sum(p.x * p.x + p.y * p.y), largest = warp_largest(fmax(fabs(p.x), fabs(p.y)));
  if (threadIdx.x & 31) return;
  if (c.decide_rule == DECIDE_HOST) {
    v.block_norm2[block] = norm2, v.block_max[block] = largest;
    return;
  }
  int level = v.block_level[block], before = level;
  if (c.decide_rule == DECIDE_RULE || c.alpha > 0)
    level = max(c.floor, decide(c, norm2, largest, f.error_16[block], f.error_32[block], (double)f.blocks));
  v.block_level[block] = (uint8_t)level;
  atomicOr(found, chosen_bits(level, before));
}

// A network's choice for each column block of this thread block, to a warp two times the eight that stand together.
__device__ __noinline__ void look_by_network(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const network_in_shared &network,
                                             int floor, uint32_t *found) {
  constexpr int HALF = HT_NETWORK_TILES / 2;
  static_assert(WARPS % HALF == 0, "column blocks of a thread block stand together in as many as it has warps");
  int64_t stride = (int64_t)gridDim.x * WARPS;
  auto at = [&](int k) { return blockIdx.x * WARPS + k * HALF / WARPS * stride + k * HALF % WARPS; };
  uint32_t chosen = 0;
  for (int k = threadIdx.x / 32 * 2; at(k) < f.blocks; k += 2 * WARPS)
    chosen |= decide_tile(network, at(k), at(k + 1), f.blocks, v.p, nullptr, v.block_level, floor);
  chosen = __reduce_or_sync(~0u, chosen);
  if (chosen && threadIdx.x % 32 == 0) atomicOr(found, chosen);
}

// x += alpha p.
__device__ inline void take_iterate(const ht_cuda_cg_vectors &v, int64_t i, double alpha, const entries &e) {
  ((double2 *)v.x)[i] = {fma(alpha, e.p.x, e.x.x), fma(alpha, e.p.y, e.x.y)};
}

// p = M^-1 r + beta p.
template <bool FIRST>
__device__ inline void turn(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, int64_t block,
                            double beta, const entries &e, uint32_t *found) {
  int64_t i = block * 32 + (threadIdx.x & 31);
  double2 m = inverse_at(f, i), p = {m.x * e.r.x, m.y * e.r.y};
  if (!FIRST) p = {fma(beta, e.p.x, p.x), fma(beta, e.p.y, p.y)};
  ((double2 *)v.p)[i] = p;
  if (found) look(f, v, c, block, p, found);
}

__device__ inline int event_of(ht_cuda_cg_scalars &s) {
  if (!isfinite(s.norm_r) || !isfinite(s.rz) || !isfinite(s.beta)) return NONFINITE;
  if (s.norm_r <= s.goal) return REACHED;
  const ht_cg_replacing &m = s.replacing;
  if (m.follows && m.allowed) s.grow_above = s.now < LEVEL_64 ? ht_replacing_grown(&m) : INFINITY;
  int event = event_of_limits(s);
  if (event == DROPPED && m.allowed && s.replaced < HT_CG_REPLACEMENTS) event = CONTINUE, s.due = 1;
  return event;
}

// By one thread: records, and the scalars for the next launches. A record's step lengths are those that led to its iteration.
template <bool FIRST> __device__ inline void conclude(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &s, bool taken, bool looked) {
  if (taken) record(v, s);
  if (taken && !FIRST) s.recount = 0;
  if (looked) s.looks++, s.recount = 1, s.decide_at = s.iteration + s.decide_every;
  if (!taken) s.iteration--;
  if (s.event == CONTINUE) s.iteration++;
}

enum { SCALAR_WORDS = sizeof(ht_cuda_cg_scalars) / 8 };
static_assert(sizeof(ht_cuda_cg_scalars) % 8 == 0 && SCALAR_WORDS <= THREADS, "a word a thread");

// By a warp.
__device__ inline void leave_scalars(const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &s) {
  __syncwarp();
  for (int i = threadIdx.x; i < SCALAR_WORDS; i += 32) ((unsigned long long *)v.scalars)[i] = ((const unsigned long long *)&s)[i];
}

// All that the product does not change, of the blocks that are held: it is on its way while the product ends, and while sums are taken.
template <bool FIRST> __device__ inline void load(const ht_cuda_cg_vectors &v, const share &my, int lane, entries (&held)[HELD]) {
#pragma unroll
  for (int k = 0; k < HELD; k++) {
    if (!my.has(k)) continue;
    held[k].r = load_pair(v.r, my.at(k) * 32 + lane);
    if (!FIRST) load_direction(v, my.at(k) * 32 + lane, held[k]);
  }
}

__device__ inline void load_product(const ht_cuda_cg_vectors &v, const share &my, int lane, entries (&held)[HELD]) {
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) held[k].s = load_pair(v.s, my.at(k) * 32 + lane);
}

// The residual, and this thread's part of r'M^-1 r and r'r.
template <bool FIRST>
__device__ inline void update(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const share &my, int lane, double alpha,
                              entries (&held)[HELD], double (&sum)[2]) {
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) take_step<FIRST>(f, v, my.at(k) * 32 + lane, alpha, held[k], sum);
#pragma unroll 2
  for (int64_t block = my.at(HELD); block < my.blocks; block += my.stride) {
    entries e;
    e.r = load_pair(v.r, block * 32 + lane);
    if (!FIRST) e.s = load_pair(v.s, block * 32 + lane);
    take_step<FIRST>(f, v, block * 32 + lane, alpha, e, sum);
  }
}

// ||p||^2 of the direction that is about to change, over the grid: what a budget compares the next one's blocks with.
__device__ inline void leave_square(const ht_cuda_cg_vectors &v, const share &my, int lane, parts shared) {
  double square[1] = {0};
#pragma unroll 1
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    double2 p = ((const double2 *)v.p)[block * 32 + lane];
    square[0] = fma(p.x, p.x, fma(p.y, p.y, square[0]));
  }
  leave_sums(v.sums + S_PP * gridDim.x, square, shared);
}

__device__ inline void take_square(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, parts shared) {
  double square[1];
  take_sums(v.sums + S_PP * gridDim.x, gridDim.x, square, shared);
  if (threadIdx.x == 0) c.mean_norm2 = square[0] / (double)f.blocks;
}

// The iterate of the blocks that are held.
__device__ inline void move_held(const ht_cuda_cg_vectors &v, const share &my, int lane, double alpha, const entries (&held)[HELD]) {
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) take_iterate(v, my.at(k) * 32 + lane, alpha, held[k]);
}

// The new direction, and the iterate of the others.
template <bool FIRST>
__device__ inline void redirect(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const ht_cuda_cg_scalars &c, const share &my,
                                int lane, double alpha, const entries (&held)[HELD], uint32_t *found) {
  double beta = c.beta;
#pragma unroll
  for (int k = 0; k < HELD; k++)
    if (my.has(k)) turn<FIRST>(f, v, c, my.at(k), beta, held[k], found);
#pragma unroll 2
  for (int64_t block = my.at(HELD); block < my.blocks; block += my.stride) {
    int64_t i = block * 32 + lane;
    entries e;
    e.r = ((const double2 *)v.r)[i]; // as this thread has written it
    if (!FIRST) load_direction(v, i, e);
    if (!FIRST) take_iterate(v, i, alpha, e);
    turn<FIRST>(f, v, c, block, beta, e, found);
  }
}

// After levels changed, and not to one throughout: the bytes that a product reads at each of them, and each tile's level to its head,
// where products look for it, unless a look in this step is about to change it.
__device__ inline void count(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const share &my, bool looking, parts shared) {
  double bytes[3] = {};
#pragma unroll 1
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    int level = v.block_level[block];
    double more = threadIdx.x & 31 ? 0 : f.bytes[level * f.blocks + block];
#pragma unroll
    for (int k = 0; k < 3; k++) bytes[k] += level == k ? more : 0;
  }
  leave_sums(v.sums + S_BYTES * gridDim.x, bytes, shared);
  if (looking) return;
  for (int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x; t < f.tiles; t += gridDim.x * (int64_t)THREADS)
    f.head[t].level = v.block_level[f.head[t].column];
}

__device__ inline void take_count(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, parts shared) {
  double bytes[3];
  take_sums(v.sums + S_BYTES * gridDim.x, gridDim.x, bytes, shared);
  if (threadIdx.x) return;
  for (int k = 0; k < 3; k++) c.product_bytes[k] = bytes[k];
}

// Of the product that was made.
__device__ inline void add_bytes(const ht_cuda_tiles_facts &f, ht_cuda_cg_scalars &c, int uniform) {
#pragma unroll
  for (int k = 0; k < 3; k++) c.level_groups[k] += uniform < 0 ? c.product_bytes[k] : uniform == k ? f.whole[k] : 0;
}

// What a replacement leads to, by one thread: the run goes on, or the host is to give up the level or the direction.
__device__ inline void settle(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, double norm, double change) {
  c.due = 0;
  c.iteration--; // of x
  v.told_replacements[c.replaced++] = {c.iteration, norm, change, c.replacing.reference};
  c.event = ht_replacing_settle(&c.replacing, norm, change, c.now, c.goal) ? CONTINUE : DROPPED;
  c.replace_below = ht_replacing_below(&c.replacing, c.goal);
  if (isfinite(c.grow_above)) c.grow_above = ht_replacing_grown(&c.replacing);
  *v.scalars = c;
  if (c.event == CONTINUE) v.scalars->iteration++;
}

__device__ inline void keep_iterate(const ht_cuda_cg_vectors &v, const share &my) {
  for (int64_t block = my.first; block < my.blocks; block += my.stride)
    ((double2 *)v.best)[block * 32 + threadIdx.x % 32] = load_pair(v.x, block * 32 + threadIdx.x % 32);
}

// s is A x: b - s takes r's place. The direction stays.
__device__ __noinline__ void replace(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &c, const share &my, parts shared) {
  double sum[2] = {0, 0};
#pragma unroll 2
  for (int64_t block = my.first; block < my.blocks; block += my.stride) {
    int64_t i = block * 32 + threadIdx.x % 32;
    double2 b = ((const double2 *)v.b)[i], s = load_pair(v.s, i), r = load_pair(v.r, i);
    s = {b.x - s.x, b.y - s.y};
    r = {s.x - r.x, s.y - r.y};
    ((double2 *)v.r)[i] = s;
    sum[0] = fma(s.x, s.x, fma(s.y, s.y, sum[0]));
    sum[1] = fma(r.x, r.x, fma(r.y, r.y, sum[1]));
  }
  leave_sums(v.sums + S_RZ * gridDim.x, sum, shared);
  cg::this_grid().sync();
  take_sums(v.sums + S_RZ * gridDim.x, gridDim.x, sum, shared);
  double norm = sqrt(sum[0]);
  if (norm < c.replacing.best) keep_iterate(v, my);
  if (blockIdx.x) return;
  __syncthreads(); // all have compared
  if (threadIdx.x == 0) {
    c.replacing.best = fmin(c.replacing.best, norm);
    settle(v, c, norm, sqrt(sum[1]));
  }
  __syncthreads();
  if (c.event != CONTINUE) tell(v, c);
}

// A step in shared memory.
struct step_state {
  ht_cuda_cg_scalars c; // the block's own copy
  double2 sums[WARPS][2];
  uint32_t chosen; // at the last look: a product has been read so
  uint32_t found;  // at this one
};

// Before the product has ended: what it does not change.
__device__ inline void begin(const ht_cuda_cg_vectors &v, step_state &shared) {
  if (threadIdx.x < SCALAR_WORDS)
    ((unsigned long long *)&shared.c)[threadIdx.x] = __ldcg((const unsigned long long *)v.scalars + threadIdx.x);
  uint2 chosen = threadIdx.x ? uint2{} : __ldcg((const uint2 *)v.chosen);
  __syncthreads();
  if (threadIdx.x) return;
  ht_cuda_cg_scalars &c = shared.c;
  shared.chosen = c.looks & 1 ? chosen.y : chosen.x;
  shared.found = 0;
  if (c.due) return;
  c.now = lowest_of(shared.chosen);
  if (c.recount) c.lowest = min(c.lowest, c.now);
}

// The scalars from the sums over the grid, by one thread.
template <bool FIRST> __device__ inline void take_scalars(ht_cuda_cg_scalars &c, double alpha, const double (&sum)[2]) {
  if (!FIRST) c.alpha = alpha;
  c.beta = FIRST ? 0 : sum[0] / c.rz;
  c.norm_r = sqrt(sum[1]);
  c.rz = sum[0];
}

// What a step finds to do; the same in all blocks.
struct course {
  bool looking, by_rule, by_network; // looking: at the new direction, whoever asks
  bool taken, counting, looked;
  int event;
  double alpha, pap;
};

template <bool FIRST> __device__ inline course course_of(const ht_cuda_cg_scalars &c) {
  bool looking = c.iteration >= c.decide_at, learned = c.decide_rule == DECIDE_LEARNED;
  return {looking, looking && !learned, !FIRST && looking && learned};
}

// What a network chooses of the new direction, unless something happened. Returns whether it did.
__device__ inline bool choose(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, step_state &shared,
                              const network_in_shared &network) {
  __syncthreads(); // the direction of this block's rows is there
  if (threadIdx.x == 0) shared.c.event = event_of(shared.c);
  __syncthreads();
  if (shared.c.event != CONTINUE) return false;
  look_by_network(f, v, network, shared.c.floor, &shared.found);
  return true;
}

// alpha, and whether the step can be taken.
template <bool FIRST> __device__ inline void find_length(const ht_cuda_tiles_facts &f, step_state &shared, course &now) {
  double pap[1] = {0};
  if (!FIRST) take_sums(f.products, f.row_blocks, pap, shared.sums);
  now.pap = pap[0];
  now.alpha = FIRST ? 0 : shared.c.rz / pap[0];
  now.event = FIRST || (pap[0] > 0 && isfinite(now.alpha)) ? CONTINUE : isfinite(pap[0]) && !(pap[0] > 0) ? CURVATURE : NONFINITE;
  now.taken = now.event == CONTINUE;
  bool changed = shared.c.recount && shared.chosen & HT_CHOSEN_CHANGED;
  now.counting = !FIRST && now.taken && changed && uniform_of(shared.chosen) < 0;
}

template <bool FIRST>
__device__ inline void advance(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, const share &my, step_state &shared,
                               const network_in_shared &network, entries (&held)[HELD], course &now) {
  ht_cuda_cg_scalars &c = shared.c;
  int lane = threadIdx.x & 31;
  double sum[2] = {0, 0};
  uint32_t *next = v.chosen + (c.looks + 1 & 1);
  bool comparing = !FIRST && c.decide_rule == DECIDE_BUDGET && now.looking;
  update<FIRST>(f, v, my, lane, now.alpha, held, sum);
  if (now.counting) count(f, v, my, now.looking, shared.sums);
  if (comparing) leave_square(v, my, lane, shared.sums);
  if (now.looking && blockIdx.x == 0 && threadIdx.x == 0) *next = now.counting ? HT_CHOSEN_CHANGED : 0; // heads that were not written
  leave_sums(v.sums + S_RZ * gridDim.x, sum, shared.sums);
  cg::grid_group grid = cg::this_grid();
  auto token = grid.barrier_arrive();
  if (!FIRST) move_held(v, my, lane, now.alpha, held); // while the others arrive
  grid.barrier_wait(std::move(token));
  if (comparing) take_square(f, v, c, shared.sums);
  take_sums(v.sums + S_RZ * gridDim.x, gridDim.x, sum, shared.sums);
  if (threadIdx.x == 0) take_scalars<FIRST>(c, now.alpha, sum);
  __syncthreads();
  redirect<FIRST>(f, v, c, my, lane, now.alpha, held, now.by_rule ? &shared.found : nullptr);
  now.looked = now.by_network ? choose(f, v, shared, network) : now.looking && c.decide_rule != DECIDE_HOST;
  __syncthreads();
  if (now.looked && threadIdx.x == 0) atomicOr(next, shared.found);
}

// By the first block: what others are to know of the step.
template <bool FIRST>
__device__ inline void report(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v, step_state &shared, const course &now) {
  ht_cuda_cg_scalars &c = shared.c;
  if (now.counting) take_count(v, c, shared.sums);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (!FIRST) c.pap = now.pap;
    if (!FIRST && now.taken) add_bytes(f, c, uniform_of(shared.chosen));
    if (!now.taken) c.event = now.event;
    if (now.taken && !now.by_network) c.event = event_of(c);
    conclude<FIRST>(v, c, now.taken, now.looked);
  }
  if (threadIdx.x < 32) leave_scalars(v, c);
  __syncthreads();
  if (c.event != CONTINUE) tell(v, c);
}

// FIRST: of a new residual, whose direction is M^-1 r.
template <bool FIRST> __device__ inline void step(const ht_cuda_tiles_facts &f, const ht_cuda_cg_vectors &v) {
  extern __shared__ uint4 dynamic[]; // a network, where there is one
  __shared__ step_state shared;
  network_in_shared &network = *(network_in_shared *)dynamic;
  int lane = threadIdx.x & 31;
  share my = {(int64_t)blockIdx.x * WARPS + threadIdx.x / 32, (int64_t)gridDim.x * WARPS, f.blocks};
  let_the_next_begin();
  begin(v, shared);
  __syncthreads();
  course now = course_of<FIRST>(shared.c);
  if (now.by_network) load_network(f.network, network);
  entries held[HELD];
  load<FIRST>(v, my, lane, held);
  wait_for_the_one_before();
  if (shared.c.event != CONTINUE) return;
  if (!FIRST && shared.c.due) {
    replace(v, shared.c, my, shared.sums);
    return;
  }
  if (!FIRST) load_product(v, my, lane, held);
  find_length<FIRST>(f, shared, now);
  if (now.taken) advance<FIRST>(f, v, my, shared, network, held, now);
  if (blockIdx.x == 0) report<FIRST>(f, v, shared, now);
}

} // namespace

#define HT_PAPER_STEP(name)                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                                 \
      ht_##name##_start(const __grid_constant__ ht_cuda_tiles_facts f, const __grid_constant__ ht_cuda_cg_vectors v) {                     \
    step<true>(f, v);                                                                                                                      \
  }                                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                                 \
      ht_##name##_step(const __grid_constant__ ht_cuda_tiles_facts f, const __grid_constant__ ht_cuda_cg_vectors v) {                      \
    step<false>(f, v);                                                                                                                     \
  }
