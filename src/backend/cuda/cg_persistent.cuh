// The persistent engine: one block a multiprocessor, one patch of rows a block, one grid barrier an iteration. A block keeps its part of
// r and s in registers, of p and as much of the matrix as fits in shared memory; of its neighbours' rows it reads those that its own touch,
// its halo. CG in predict-and-recompute form (Chen and Carson 2020): rows publish M r, M s and p before the barrier, and whoever needs the
// next p of a neighbour makes it from them after the barrier, when alpha and beta are known.
//
// The barrier is a counter; the sums of the blocks are read by all after it, and added in the same order by all. So all blocks agree on
// every scalar, and the bits do not depend on timing. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/product.cuh"

namespace ht {

enum { MOST_THREADS = 1024, MOST_BLOCKS = 160, SUMS_PADDED = 8 };

// How the block's shared memory is used.
template <int LEVEL> struct cache {
  static constexpr int value_bytes = LEVEL == LEVEL_64 ? 16 : LEVEL == LEVEL_32 ? 8 : 4; // two a lane
  static constexpr int group_bytes = (value_bytes + 4) * HT_WARP + 8;
  double *p;       // own rows, then the halo
  uint8_t *values; // decoded doubles, 32-bit sums of head and mid, or heads
  uint32_t *indices;
  double *scales; // a group each
  int groups;     // that are kept: the patch's first ones

  __device__ cache(uint8_t *memory, int columns, int kept) : groups(kept) {
    p = (double *)memory;
    scales = p + ((columns + 1) & ~1);
    values = (uint8_t *)(scales + ((kept + 1) & ~1));
    indices = (uint32_t *)(values + (int64_t)kept * value_bytes * HT_WARP);
  }
};

struct shared_vector {
  const double *at;
  __device__ double operator()(int, uint32_t index) const { return at[index]; }
};

// Keep a group in shared memory. At 16 bits the blocks keep FIXED groups alone (`kept` ends before the first other one).
template <int LEVEL> __device__ inline void keep(const ht_store_view &a, const cache<LEVEL> &c, int64_t first, int j, int lane) {
  ht_group_info info = a.info[first + j];
  loaded v;
  load(v, a, first + j, lane, LEVEL);
  int encoding = encoding_of(info);
  double scale = scale_of(info, LEVEL);
  if (LEVEL == LEVEL_64) {
    pair d = decode(v, encoding, LEVEL_64);
    ((double2 *)c.values)[j * HT_WARP + lane] = {d.first * scale, d.second * scale};
  } else if (LEVEL == LEVEL_32) {
    ((int2 *)c.values)[j * HT_WARP + lane] = {join_first(encoding, v.head, v.mid), join_second(encoding, v.head, v.mid)};
  } else {
    ((uint32_t *)c.values)[j * HT_WARP + lane] = v.head;
  }
  c.indices[j * HT_WARP + lane] = v.index;
  if (lane == 0) c.scales[j] = encoding == HT_GROUP_FLOAT ? 0 : scale; // 0: the values are FP32 bits
}

template <int LEVEL> __device__ inline double multiply_kept(const cache<LEVEL> &c, int begin, int end, int lane) {
  double sum = 0;
#pragma unroll 4
  for (int j = begin; j < end; j++) {
    uint32_t index = c.indices[j * HT_WARP + lane];
    double p0 = c.p[index & 0xffffu], p1 = c.p[index >> 16];
    if (LEVEL == LEVEL_64) {
      double2 v = ((const double2 *)c.values)[j * HT_WARP + lane];
      sum = fma(v.y, p1, fma(v.x, p0, sum));
    } else if (LEVEL == LEVEL_32) {
      int2 v = ((const int2 *)c.values)[j * HT_WARP + lane];
      double scale = c.scales[j], f0 = scale ? (double)v.x : (double)__int_as_float(v.x),
             f1 = scale ? (double)v.y : (double)__int_as_float(v.y);
      sum = fma(scale ? scale : 1, fma(f1, p1, f0 * p0), sum);
    } else {
      uint32_t v = ((const uint32_t *)c.values)[j * HT_WARP + lane];
      sum = fma(c.scales[j], fma((double)signed_second(v), p1, (double)signed_first(v) * p0), sum);
    }
  }
  return sum;
}

// Off-diagonal part of the slice's product, in the first lane of each row.
template <int LEVEL>
__device__ inline double multiply_patch_slice(const ht_store_view &a, const cache<LEVEL> &c, int64_t first, const ht_slice_info &s,
                                              int lane) {
  int begin = (int)(s.group - first), end = begin + s.groups, kept = min(max(c.groups, begin), end);
  double sum = multiply_kept(c, begin, kept, lane);
  for (int j = kept; j < end; j += HT_WARP) {
    int count = min(HT_WARP, end - j);
    uint32_t packed = 0;
    if (lane < count) {
      ht_group_info mine = stream(a.info + first + j + lane);
      packed = pack(mine, level_of(mine, LEVEL));
    }
    sum += multiply_groups<PATCH_BATCH>(a, first + j, count, lane, 0, packed, shared_vector{c.p});
  }
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

// ---- sums and barrier ----

// Eight sums over the warp at once: lane l gets value l / 4 (its bits 4, 3, 2), in 9 exchanges instead of 40.
__device__ inline double transpose_sum(double v[SUMS_PADDED], int lane) {
#pragma unroll
  for (int width = 16, count = 4; count > 0; width >>= 1, count >>= 1) {
    bool high = lane & width;
#pragma unroll
    for (int k = 0; k < count; k++) {
      double keep = high ? v[k + count] : v[k], give = high ? v[k] : v[k + count];
      v[k] = keep + __shfl_xor_sync(~0u, give, width);
    }
  }
  v[0] += __shfl_xor_sync(~0u, v[0], 2);
  return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

__device__ inline void arrive_and_wait(uint32_t *counter, uint32_t target) {
  uint32_t seen;
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  while (seen < target);
}

struct exchange_row {
  double z, ms, p;
};

__device__ inline exchange_row read_row(const double *from) {
  exchange_row v;
  asm volatile("ld.global.cg.v2.f64 {%0, %1}, [%2];" : "=d"(v.z), "=d"(v.ms) : "l"(from) : "memory");
  asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(v.p) : "l"(from + 2) : "memory");
  return v;
}

__device__ inline void write_row(double *to, double z, double ms, double p) {
  asm volatile("st.global.cg.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(z), "d"(ms) : "memory");
  asm volatile("st.global.cg.f64 [%0], %1;" ::"l"(to + 2), "d"(p) : "memory");
}

struct block_state {
  double warp[SUMS_PADDED][MOST_THREADS / 32];
  ht_cuda_cg_scalars scalars;
};

// The block's sums to `part`, and the barrier. All that the block published before is seen by who passes.
__device__ inline void reduce_and_wait(block_state &shared, double v[SUMS_PADDED], double *part, uint32_t *counter, uint32_t target) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  double mine = transpose_sum(v, lane);
  if ((lane & 3) == 0) shared.warp[lane / 4][warp] = mine;
  __syncthreads();
  if (warp == 0) {
    double w[SUMS_PADDED];
#pragma unroll
    for (int k = 0; k < SUMS_PADDED; k++) w[k] = k < HT_SUMS && lane < warps ? shared.warp[k][lane] : 0;
    double sum = transpose_sum(w, lane);
    if ((lane & 3) == 0 && lane / 4 < HT_SUMS) __stcg(&part[lane / 4 * MOST_BLOCKS + blockIdx.x], sum);
    __syncwarp();
    if (lane == 0) arrive_and_wait(counter, target);
  }
  __syncthreads();
}

// The step from the sums of all blocks, after the barrier, by one warp: divisions by every thread would take longer than the wait.
__device__ inline void take_step(const ht_cuda_cg_vectors &v, ht_cuda_cg_scalars &state, const double *part) {
  int lane = threadIdx.x & 31;
  double sum[SUMS_PADDED];
#pragma unroll
  for (int k = 0; k < SUMS_PADDED; k++) {
    sum[k] = 0;
    if (k >= HT_SUMS) continue;
    double got[MOST_BLOCKS / 32];
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS / 32; i++) got[i] = lane + 32 * i < gridDim.x ? __ldcg(&part[k * MOST_BLOCKS + lane + 32 * i]) : 0;
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS / 32; i++) sum[k] += got[i];
  }
  double mine = transpose_sum(sum, lane), total[HT_SUMS];
#pragma unroll
  for (int k = 0; k < HT_SUMS; k++) total[k] = __shfl_sync(~0u, mine, 4 * k);
  if (lane) return;
  int event = step(state, total);
  if (blockIdx.x == 0) record(v, state);
  state.event = event;
  if (event == CONTINUE) state.iteration++;
}

// ---- the engine ----

struct row_constants {
  double m, w, d;
};

template <int LEVEL> __device__ inline row_constants constants_of(const ht_store_view &a, const ht_cuda_cg_vectors &v, int64_t row) {
  double w = scale_squared(a.exponent[row]);
  return {v.inverse_diagonal ? (double)v.inverse_diagonal[row] : w, w, diagonal_at(a, row, LEVEL)};
}

enum { HELD_HALO = 2 }; // halo entries a thread asks for before it knows alpha and beta

template <int ROWS, int LEVEL> __device__ void run_persistent(const ht_store_view &a, const ht_cuda_cg_vectors &v, int kept) {
  constexpr bool hold_x = ROWS <= 4, hold_constants = ROWS <= 2;
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ block_state shared;
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int64_t patch = blockIdx.x, first_row = patch * a.patch_rows;
  int first_slice = a.patch_slice[patch], slices = a.patch_slice[patch + 1] - first_slice;
  int halo_begin = a.halo_start[patch], halo = a.halo_start[patch + 1] - halo_begin;
  int64_t first_group = a.slice[first_slice].group;
  int groups = (int)(a.slice[first_slice + slices].group - first_group);
  cache<LEVEL> c(memory, (int)a.patch_rows + halo, min(kept, groups));
  if (LEVEL == LEVEL_16) // of the kept groups only those before the first that is not FIXED
    for (int k = 0; k < slices; k++)
      if (a.slice[first_slice + k].floats) {
        c.groups = min(c.groups, (int)(a.slice[first_slice + k].group - first_group));
        break;
      }
  for (int j = warp; j < c.groups; j += warps) keep(a, c, first_group, j, lane);

  if (threadIdx.x == 0) shared.scalars = *v.scalars;
  double x[ROWS], r[ROWS], s[ROWS];
  row_constants held[ROWS];
  int row[ROWS]; // in the patch; -1: none
  bool publish[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    int slice = warp + k * warps;
    row[k] = -1;
    x[k] = r[k] = s[k] = 0;
    publish[k] = false;
    if (slice >= slices) continue;
    ht_slice_info info = a.slice[first_slice + slice];
    if (lane & (1 << info.lanes_log2) - 1) continue;
    int64_t i = info.row + (lane >> info.lanes_log2);
    row[k] = (int)(i - first_row);
    if (hold_x) x[k] = v.x[i];
    r[k] = v.r[i];
    s[k] = v.s[i];
    c.p[row[k]] = v.p[i];
    publish[k] = a.boundary[i];
    row_constants constants = constants_of<LEVEL>(a, v, i);
    if (hold_constants) held[k] = constants;
    if (publish[k]) write_row(v.exchange[0] + 4 * i, constants.m * r[k], constants.m * s[k], v.p[i]);
  }
  uint32_t target = gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0) arrive_and_wait(v.barrier, target);
  __syncthreads();

  for (int parity = 0;; parity ^= 1) {
    // The halo's rows are asked for at once; the sums of the iteration before arrive meanwhile.
    exchange_row far[HELD_HALO];
#pragma unroll
    for (int k = 0; k < HELD_HALO; k++) {
      int h = threadIdx.x + k * blockDim.x;
      if (h < halo) far[k] = read_row(v.exchange[parity] + 4 * (int64_t)__ldg(a.halo + halo_begin + h));
    }
    if (target > gridDim.x) { // not before the first iteration, whose step the host gave
      if (warp == 0) take_step(v, shared.scalars, v.sums + (parity ^ 1) * SUMS_PADDED * MOST_BLOCKS);
      __syncthreads();
      if (shared.scalars.event != CONTINUE) break;
    }
    double alpha = shared.scalars.alpha, beta = shared.scalars.beta, sums[SUMS_PADDED] = {};
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      if (row[k] < 0) continue;
      int64_t i = first_row + row[k];
      row_constants constants = hold_constants ? held[k] : constants_of<LEVEL>(a, v, i);
      double p = c.p[row[k]];
      if (hold_x)
        x[k] = fma(alpha, p, x[k]);
      else
        v.x[i] = fma(alpha, p, v.x[i]);
      r[k] = fma(-alpha, s[k], r[k]);
      double z = constants.m * r[k];
      sums[RZ] = fma(r[k], z, sums[RZ]);
      sums[RR] = fma(constants.w * r[k], r[k], sums[RR]);
      c.p[row[k]] = fma(beta, p, z);
    }
#pragma unroll
    for (int k = 0; k < HELD_HALO; k++) {
      int h = threadIdx.x + k * blockDim.x;
      if (h < halo) c.p[a.patch_rows + h] = fma(beta, far[k].p, fma(-alpha, far[k].ms, far[k].z));
    }
    for (int h = threadIdx.x + HELD_HALO * blockDim.x; h < halo; h += blockDim.x) {
      exchange_row q = read_row(v.exchange[parity] + 4 * (int64_t)__ldg(a.halo + halo_begin + h));
      c.p[a.patch_rows + h] = fma(beta, q.p, fma(-alpha, q.ms, q.z));
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      int slice = warp + k * warps;
      if (slice >= slices) continue;
      double sum = multiply_patch_slice<LEVEL>(a, c, first_group, a.slice[first_slice + slice], lane);
      if (row[k] < 0) continue;
      int64_t i = first_row + row[k];
      row_constants constants = hold_constants ? held[k] : constants_of<LEVEL>(a, v, i);
      double p = c.p[row[k]];
      s[k] = fma(constants.d, p, sum);
      double ms = constants.m * s[k];
      sums[PAP] = fma(p, s[k], sums[PAP]);
      sums[RMS] = fma(r[k], ms, sums[RMS]);
      sums[SMS] = fma(s[k], ms, sums[SMS]);
      if (publish[k]) write_row(v.exchange[parity ^ 1] + 4 * i, constants.m * r[k], ms, p);
    }
    target += gridDim.x;
    reduce_and_wait(shared, sums, v.sums + parity * SUMS_PADDED * MOST_BLOCKS, v.barrier, target);
  }

#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    if (row[k] < 0) continue;
    int64_t i = first_row + row[k];
    if (hold_x) v.x[i] = x[k];
    v.r[i] = r[k];
    v.s[i] = s[k];
    v.p[i] = c.p[row[k]];
  }
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) *v.scalars = shared.scalars;
    tell(v, shared.scalars);
  }
}

} // namespace ht

#define HT_PERSISTENT(rows, bits, level)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(1024, 1)                                                                                    \
      ht_cg_persistent_##rows##_##bits(ht_store_view a, ht_cuda_cg_vectors v, int kept) {                                                  \
    ht::run_persistent<rows, level>(a, v, kept);                                                                                           \
  }
