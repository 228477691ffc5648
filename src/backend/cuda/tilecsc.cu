// Product with the Tile-CSC storage, as the EvoCG paper does it (section 3.3): a block takes a row block; its warps take the row block's
// tiles in turn, one warp a tile, lane i the tile's columns i and i + 32. Each warp adds to sums of its own in shared memory. The storage
// is in the order in which the lanes read it (backend.h), so that loads are coalesced and lanes that read together meet in different rows,
// but where a mark says otherwise: those add up what they have for a row first. The warps' sums are added in the order of the warps. All
// orders are fixed, so that the bits are always the same. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_step.cuh"

namespace {

constexpr int COLUMNS = 64, WARP = 32, HALVES = COLUMNS / WARP;
constexpr unsigned ALL = ~0u, ROW = 0x7fff, MEETS = 0x8000, MEETS_PAIR = 0x80008000;

struct Bf16 {
  static constexpr int AHEAD = 3;
  using Value = uint16_t;
  using Pair = uint32_t;
  static __device__ Pair single(Value v) { return v; }
  static __device__ double2 widen(Pair v) { return {__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u)}; }
};

struct Fp32 {
  static constexpr int AHEAD = 2;
  using Value = float;
  using Pair = float2;
  static __device__ Pair single(Value v) { return {v, 0}; }
  static __device__ double2 widen(Pair v) { return {v.x, v.y}; }
};

struct Fp64 {
  static constexpr int AHEAD = 1;
  using Value = double;
  using Pair = double2;
  static __device__ Pair single(Value v) { return {v, 0}; }
  static __device__ double2 widen(Pair v) { return v; }
};

// One entry of each lane. `sum` is an address in shared memory; in PTX, because the compiler else finds it anew each time.
__device__ inline void add(unsigned sum, unsigned row, double value, double factor) {
  double old;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(old) : "r"(sum + row * 8) : "memory");
  asm volatile("st.shared.f64 [%0], %1;" : : "r"(sum + row * 8), "d"(fma(value, factor, old)) : "memory");
  __syncwarp();
}

// The same where lanes meet in a row: one after the other. Row `none` is of no one.
__device__ inline void add_in_turn(unsigned sum, unsigned row, unsigned none, double value, double factor) {
  unsigned below = (1u << threadIdx.x % WARP) - 1, same = __match_any_sync(ALL, row);
  int turn = row == none ? -1 : __popc(same & below), last = __reduce_max_sync(ALL, turn);
#pragma unroll 1
  for (int now = 0; now <= last; now++) add(sum, turn == now ? row : none, value, factor);
}

// What the lanes read together: up to two entries of each column of 0 to 31, and of 32 to 63.
template <class Format> struct step {
  typename Format::Pair value[HALVES];
  unsigned row[HALVES];
};

template <class Format>
__device__ inline void add_step(unsigned sum, unsigned none, const step<Format> &s, const double (&factor)[HALVES]) {
  if (!__any_sync(ALL, (s.row[0] | s.row[1]) & MEETS_PAIR)) {
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      double2 v = Format::widen(s.value[h]);
      add(sum, s.row[h] & ROW, v.x, factor[h]);
      add(sum, s.row[h] >> 16, v.y, factor[h]);
    }
    return;
  }
#pragma unroll 1
  for (int k = 0; k < 2 * HALVES; k++) { // once in the code: it is seldom needed
    unsigned row = s.row[0];
    double2 v = Format::widen(s.value[0]);
    double f = factor[0];
    if (k / 2) row = s.row[1], v = Format::widen(s.value[1]), f = factor[1];
    if (k % 2) row >>= 16, v.x = v.y;
    if (__any_sync(ALL, row & MEETS))
      add_in_turn(sum, row & ROW, none, v.x, f);
    else
      add(sum, row & ROW, v.x, f);
  }
}

// A tile's entries in their order. A lane without one gets 0 in row `none`, whose sum is of no interest.
template <class Format> struct cursor {
  const typename Format::Value *value;
  const uint16_t *row;
  unsigned none, below; // below: the lanes before this one
  int at, left[HALVES]; // in pairs: of the tile, and of this lane's columns
  // The entries that are over in columns of odd length.
  __device__ void take_odd(step<Format> &s, unsigned counts) {
    int first = 0;
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      bool there = counts >> 16 * h & 1;
      unsigned all = __ballot_sync(ALL, there);
      int mine = first + __popc(all & below);
      first += __popc(all);
      s.row[h] = none << 16 | (there ? __ldg(row + mine) : none);
      s.value[h] = Format::single(there ? __ldg(value + mine) : typename Format::Value{0});
    }
    at = (first + 1) / 2;
  }
  __device__ void take(step<Format> &s, bool some) { // some: a lane has one
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      s.row[h] = none << 16 | none;
      s.value[h] = {};
    }
    if (!some) return;
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      bool there = left[h]-- > 0;
      unsigned all = __ballot_sync(ALL, there);
      int mine = at + __popc(all & below);
      at += __popc(all);
      if (!there) continue;
      s.row[h] = __ldg((const unsigned *)row + mine);
      s.value[h] = __ldg((const typename Format::Pair *)value + mine);
    }
  }
};

template <class Format>
__device__ inline void add_tile(const typename Format::Value *value, const uint16_t *row, unsigned counts, const double (&factor)[HALVES],
                                unsigned sum, unsigned none) {
  constexpr int AHEAD = Format::AHEAD;
  asm("" : "+l"(value), "+l"(row)); // kept: else they are made anew in each step
  cursor<Format> next = {value, row, none, (1u << threadIdx.x % WARP) - 1, 0, {(int)(counts >> 1 & 0x7fff), (int)(counts >> 17)}};
  int steps = 1 + __reduce_max_sync(ALL, max(next.left[0], next.left[1]));
  step<Format> ring[AHEAD + 1]; // the first is added while the others are on their way
  next.take_odd(ring[0], counts);
  bool odd = next.at > 0;
#pragma unroll
  for (int k = 1; k <= AHEAD; k++) next.take(ring[k], k < steps);
#pragma unroll 1
  for (int k = 0; k < steps; k += AHEAD + 1) {
#pragma unroll
    for (int j = 0; j <= AHEAD; j++) {
      if (k + j >= steps) break;
      if (j || k || odd) add_step(sum, none, ring[j], factor);
      next.take(ring[j], k + j + AHEAD + 1 < steps);
    }
  }
}

// What a warp needs of a tile before its entries, asked for one tile ahead, and of its column two: the level hangs on it.
struct head {
  int64_t entry;
  int column, column_after, level;
  unsigned counts;
  __device__ void take_column(const ht_cuda_tiles &a, int t, int end) {
    if (t < end) column_after = __ldg(a.tile_column + t);
  }
  // t, whose column is known, and the column of `after`.
  __device__ void take(const ht_cuda_tiles &a, const uint8_t *levels, int t, int after, int end) {
    if (t >= end) return;
    column = column_after;
    entry = __ldg(a.tile_entry + t);
    counts = __ldg(a.column_count + int64_t{t} * WARP + threadIdx.x % WARP);
    if (levels) level = levels[column];
    take_column(a, after, end);
  }
};

__device__ inline void take_factors(const ht_cuda_tiles &a, const head &h, const double *x, bool scaled, double (&factor)[HALVES]) {
#pragma unroll
  for (int k = 0; k < HALVES; k++) {
    int64_t j = int64_t{h.column} * COLUMNS + k * WARP + threadIdx.x % WARP;
    factor[k] = 0;
    if (!(k ? h.counts >> 16 : h.counts & 0xffff)) continue; // x ends inside the last column block
    factor[k] = scaled ? x[j] * ht::power_of_two(a.exponent[j]) : x[j];
  }
}

// The block's sum of what its threads have. `sums` is used again.
__device__ inline void leave_product(double product, int warps, double *sums, double *products) {
  product = ht::warp_sum(product);
  __syncthreads();
  if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = product;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < warps; w++) product += sums[w];
  products[blockIdx.x] = product;
}

} // namespace

// scalars: of a solve, whose events end the work and whose levels hold; or NULL. products: x'y of each row block; or NULL.
extern "C" __global__ void __launch_bounds__(256, 4)
    ht_tilecsc_multiply(const __grid_constant__ ht_cuda_tiles a, const uint8_t *level, const ht_cuda_cg_scalars *scalars,
                        const double *__restrict__ x, double *__restrict__ y, double *products) {
  extern __shared__ double sums[]; // rows_per_block a warp, and one that is of no interest
  if (scalars && scalars->event != ht::CONTINUE) return;
  int uniform = scalars ? scalars->uniform : level ? -1 : ht::LEVEL_64;
  // Shuffled, so that the compiler knows it to be the same in all lanes.
  int rows = a.rows_per_block, warps = blockDim.x / WARP, warp = __shfl_sync(ALL, threadIdx.x / WARP, 0);
  double *own = sums + warp * (rows + 1);
  unsigned sum = static_cast<unsigned>(__cvta_generic_to_shared(own));
  asm volatile("mov.u32 %0, %0;" : "+r"(sum)); // kept
  int end = a.tile_row_start[blockIdx.x + 1], t = a.tile_row_start[blockIdx.x] + warp;
  const uint8_t *levels = uniform >= 0 ? nullptr : level;
  head next;
  next.level = uniform;
  next.take_column(a, t, end);
  for (int i = threadIdx.x % WARP; i <= rows; i += WARP) own[i] = 0;
  __syncwarp();
  next.take(a, levels, t, t + warps, end);
  for (; t < end; t += warps) {
    head now = next;
    next.take(a, levels, t + warps, t + 2 * warps, end);
    double factor[HALVES];
    take_factors(a, now, x, now.level != ht::LEVEL_64, factor);
    switch (now.level) {
    case ht::LEVEL_16: add_tile<Bf16>(a.value_bf16 + now.entry, a.row_index + now.entry, now.counts, factor, sum, rows); break;
    case ht::LEVEL_32: add_tile<Fp32>(a.value_f32 + now.entry, a.row_index + now.entry, now.counts, factor, sum, rows); break;
    default: add_tile<Fp64>(a.value_f64 + now.entry, a.row_index + now.entry, now.counts, factor, sum, rows); break;
    }
  }
  __syncthreads();
  int64_t first = blockIdx.x * int64_t{rows};
  int there = a.n - first < rows ? static_cast<int>(a.n - first) : rows;
  double product = 0;
  for (int i = threadIdx.x; i < there; i += blockDim.x) {
    double total = sums[i];
    for (int w = 1; w < warps; w++) total += sums[w * (rows + 1) + i];
    y[first + i] = total;
    if (products) product = fma(total, x[first + i], product);
  }
  if (products) leave_product(product, warps, sums, products);
}
