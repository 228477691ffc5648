// Product with the Tile-CSC storage, as the EvoCG paper does it (section 3.3): a block takes a row block; its warps take the row block's
// tiles in turn, one warp a tile. Each warp adds to sums of its own in shared memory, where it keeps the tile's part of x, too. The storage
// is in the order in which the lanes read it (backend/tiles.h): loads are coalesced and lanes that read together meet in different rows,
// but where a mark says otherwise: those add one after the other. The warps' sums are added in the order of the warps. All orders are
// fixed, so that the bits are always the same. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_step.cuh"

namespace {

constexpr int COLUMNS = 64, WARP = 32, HALVES = COLUMNS / WARP;
constexpr unsigned ALL = ~0u, ROW = HT_TILECSC_INTERLEAVED_ROWS - 1, MEETS = HT_TILECSC_MEETS, MEETS_PAIR = MEETS | MEETS << 16;

struct Bf16 {
  static constexpr int RING = 4; // pairs of a lane that are on their way
  using Pair = uint32_t;
  static __device__ double2 widen(Pair v) { return {__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u)}; }
};

struct Fp32 {
  static constexpr int RING = 4;
  using Pair = float2;
  static __device__ double2 widen(Pair v) { return {v.x, v.y}; }
};

struct Fp64 {
  static constexpr int RING = 3;
  using Pair = double2;
  static __device__ double2 widen(Pair v) { return v; }
};

// A warp's part of shared memory, as addresses there: the compiler else finds them anew each time.
struct own {
  unsigned sum, x;
};

// One entry of each lane that has one. A read that stands before a write in the code is made before it.
__device__ inline void add(own at, unsigned index, double value, bool there) {
  double old, x;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at.x + (index >> HT_TILECSC_COLUMN_SHIFT) * 8) : "memory");
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(old) : "r"(at.sum + (index & ROW) * 8) : "memory");
  old = fma(value, x, old);
  if (there) asm volatile("st.shared.f64 [%0], %1;" : : "r"(at.sum + (index & ROW) * 8), "d"(old) : "memory");
  __syncwarp();
}

// The same where lanes meet in a row, which are neighbours then: their products are added up first, in `doublings` rounds. The first of
// them adds the sum.
__device__ inline void add_runs(own at, unsigned index, double value, bool there, int doublings) {
  unsigned lane = threadIdx.x % WARP, row = there ? index & ROW : MEETS | lane; // a lane without an entry meets no other
  double x;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at.x + (index >> HT_TILECSC_COLUMN_SHIFT) * 8) : "memory");
  double sum = value * x;
  bool first = __shfl_up_sync(ALL, row, 1) != row || lane == 0;
#pragma unroll 1
  for (unsigned width = 1; width < 1u << doublings; width *= 2) {
    unsigned other = __shfl_down_sync(ALL, row, width);
    double more = __shfl_down_sync(ALL, sum, width);
    if (other == row && lane + width < WARP) sum += more;
  }
  double old = 0;
  if (there && first) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(old) : "r"(at.sum + row * 8) : "memory");
    asm volatile("st.shared.f64 [%0], %1;" : : "r"(at.sum + row * 8), "d"(old + sum) : "memory");
  }
  __syncwarp();
}

// Two entries of each lane, which are of one row; all lanes have them.
__device__ inline void add_twins(own at, unsigned index, double2 value) {
  double old, x, y;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(old) : "r"(at.sum + (index & ROW) * 8) : "memory");
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at.x + (index >> HT_TILECSC_COLUMN_SHIFT & COLUMNS - 1) * 8) : "memory");
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(y) : "r"(at.x + (index >> 16 + HT_TILECSC_COLUMN_SHIFT) * 8) : "memory");
  old = fma(value.y, y, fma(value.x, x, old));
  asm volatile("st.shared.f64 [%0], %1;" : : "r"(at.sum + (index & ROW) * 8), "d"(old) : "memory");
  __syncwarp();
}

// Two entries of a lane.
template <class Format, bool STREAMED> struct step {
  typename Format::Pair value;
  unsigned index;
  __device__ double2 widen() const { return Format::widen(value); }
  __device__ void take(const typename Format::Pair *values, const unsigned *indices, bool there) {
    index = 0, value = {};
    if (!there) return;
    if (STREAMED)
      index = __ldcs(indices), value = __ldcs(values);
    else
      index = __ldg(indices), value = __ldg(values);
  }
};

template <class Step> __device__ inline void add_step(own at, const Step &s, bool there, int doublings) {
  double2 v = s.widen();
  if (!doublings || !__any_sync(ALL, s.index & MEETS_PAIR)) {
    add(at, s.index & 0xffff, v.x, there);
    add(at, s.index >> 16, v.y, there);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < 2; k++) { // once in the code: it is seldom needed
    unsigned index = k ? s.index >> 16 : s.index & 0xffff;
    double value = k ? v.y : v.x;
    if (__any_sync(ALL, index & MEETS))
      add_runs(at, index, value, there, doublings);
    else
      add(at, index, value, there);
  }
}

template <class Format, bool STREAMED>
__device__ inline void add_tile(const void *values, const uint16_t *indices, const ht_tile_head &tile, own at) {
  constexpr int RING = Format::RING;
  using Pair = typename Format::Pair;
  int lane = threadIdx.x % WARP, left = (int)tile.pairs - lane; // > 0: this lane has a pair
  int single = (int)tile.pairs - tile.twins * WARP;             // pairs that are of two rows, the last ones
  const Pair *value = (const Pair *)values + tile.pair + lane;
  const unsigned *index = (const unsigned *)indices + tile.pair + lane;
  step<Format, STREAMED> ring[RING];
#pragma unroll
  for (int j = 0; j < RING; j++) ring[j].take(value + j * WARP, index + j * WARP, left > j * WARP);
#pragma unroll 1
  for (int pairs = (int)tile.pairs; pairs > 0; pairs -= RING * WARP, left -= RING * WARP) {
    value += RING * WARP, index += RING * WARP;
#pragma unroll
    for (int j = 0; j < RING; j++) {
      if (pairs <= j * WARP) break; // the same in all lanes
      if (pairs - j * WARP > single)
        add_twins(at, ring[j].index, ring[j].widen());
      else
        add_step(at, ring[j], left > j * WARP, tile.meets);
      ring[j].take(value + j * WARP, index + j * WARP, left > (RING + j) * WARP);
    }
  }
}

// What a tile is read at: the solve's one level, or the block's, which the heads have where they are up to date.
struct levels {
  int uniform;        // or -1
  const uint8_t *own; // NULL: the heads have them
  __device__ bool stand_in_heads() const { return uniform < 0 && !own; }
  __device__ int of(const ht_tile_head &tile) const { return uniform >= 0 ? uniform : own ? own[tile.column] : tile.level; }
};

// Of a solve's product.
__device__ inline levels levels_of(const uint8_t *level, const ht::task &task) {
  if (task.due) return {ht::LEVEL_64, nullptr};
  return {ht::uniform_of(task.chosen), task.recount && task.chosen & HT_CHOSEN_CHANGED ? level : nullptr};
}

__device__ inline ht_tile_head head_of(const ht_cuda_tiles &a, int t) {
  uint4 v = __ldcg((const uint4 *)a.head + t); // another kernel may write its level
  return {v.x, v.y, (int)v.z, (uint8_t)v.w, (uint8_t)(v.w >> 8), (uint16_t)(v.w >> 16)};
}

// Where the caller has unknown i of the tiles.
template <bool ORDERED> __device__ inline int64_t place_of(const ht_cuda_tiles &a, int64_t i) { return ORDERED ? __ldg(a.order + i) : i; }

// What a warp needs of a tile before its entries, asked for one tile ahead, and its head two ahead: the rest hangs on it.
template <bool ORDERED> struct prepared {
  ht_tile_head tile;
  int level;
  double x[HALVES];
  int exponent[HALVES];
  __device__ int64_t column(int k) const { return int64_t{tile.column} * COLUMNS + k * WARP + threadIdx.x % WARP; }
  __device__ void take_x(const ht_cuda_tiles &a, const double *vector) {
#pragma unroll
    for (int k = 0; k < HALVES; k++) x[k] = column(k) < a.n ? vector[place_of<ORDERED>(a, column(k))] : 0;
  }
  __device__ void take_exponents(const ht_cuda_tiles &a) {
#pragma unroll
    for (int k = 0; k < HALVES; k++) exponent[k] = a.exponent[column(k)];
  }
  __device__ void prepare(const ht_cuda_tiles &a, const levels &asked, const ht_tile_head &head, const double *vector) {
    tile = head, level = asked.of(head);
    take_x(a, vector);
    if (level < ht::LEVEL_64) take_exponents(a);
  }
  __device__ void keep_x(own at) const {
#pragma unroll
    for (int k = 0; k < HALVES; k++) {
      double scaled = level < ht::LEVEL_64 ? x[k] * ht::power_of_two(exponent[k]) : x[k];
      asm volatile("st.shared.f64 [%0], %1;" : : "r"(at.x + (k * WARP + threadIdx.x % WARP) * 8), "d"(scaled) : "memory");
    }
    __syncwarp();
  }
};

template <bool STREAMED> __device__ inline void add_prepared(const ht_cuda_tiles &a, const ht_tile_head &tile, int level, own at) {
  switch (level) {
  case ht::LEVEL_16: add_tile<Bf16, STREAMED>(a.value_bf16, a.index, tile, at); break;
  case ht::LEVEL_32: add_tile<Fp32, STREAMED>(a.value_f32, a.index, tile, at); break;
  default: add_tile<Fp64, STREAMED>(a.value_f64, a.index, tile, at); break;
  }
}

// What a row takes besides the warps' sums: x there, and what the diagonal makes up for below FP64.
struct own_entry {
  double x;
  float lack; // by the column's scale
  int exponent;
  __device__ double made_up() const { return lack == 0 ? 0 : (double)lack * (x * ht::power_of_two(exponent)); }
};

template <bool ORDERED>
__device__ inline own_entry entry_of(const ht_cuda_tiles &a, int uniform, const uint8_t *level, int64_t i, const double *x) {
  own_entry own = {x[place_of<ORDERED>(a, i)], 0, 0};
  int at = uniform >= 0 ? uniform : level[i / COLUMNS];
  if (!a.lack[ht::LEVEL_16] || at == ht::LEVEL_64) return own;
  own.lack = (at == ht::LEVEL_16 ? a.lack[ht::LEVEL_16] : a.lack[ht::LEVEL_32])[i];
  own.exponent = a.exponent[i];
  return own;
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

// scalars: of a solve, whose events end the work and which may want A iterate at FP64, and what it has `chosen`; or NULL. products: x'y of
// each row block; or NULL. ORDERED: x and y are in another order than the tiles. STREAMED: the cache does not hold all that an
// iteration reads; then it is to keep the vectors, and not the matrix.
template <bool ORDERED, bool STREAMED>
__device__ inline void multiply(const ht_cuda_tiles &a, const uint8_t *level, const ht_cuda_cg_scalars *scalars, const uint32_t *chosen,
                                const double *x, const double *iterate, double *y, double *products) {
  extern __shared__ double shared[]; // each warp's sums of rows_per_block rows, and then each warp's part of x
  // Shuffled, so that the compiler knows it to be the same in all lanes.
  int rows = a.rows_per_block, warps = blockDim.x / WARP, warp = __shfl_sync(ALL, threadIdx.x / WARP, 0);
  int end = (int)a.tile_row_start[blockIdx.x + 1], t = (int)a.tile_row_start[blockIdx.x] + warp;
  double *sums = shared + warp * rows;
  for (int i = threadIdx.x % WARP; i < rows; i += WARP) sums[i] = 0;
  unsigned first = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  own at = {first + warp * rows * 8, first + (warps * rows + warp * COLUMNS) * 8};
  asm volatile("mov.u32 %0, %0;" : "+r"(at.sum)); // kept
  asm volatile("mov.u32 %0, %0;" : "+r"(at.x));
  ht_tile_head head = {}, after = {}; // all but their levels stay
  if (t < end) head = head_of(a, t);
  if (t + warps < end) after = head_of(a, t + warps);
  prepared<ORDERED> next;
  next.tile = head;
  if (t < end) next.take_exponents(a);
  ht::wait_for_the_one_before();
  ht::let_the_next_begin();
  levels asked = {level ? -1 : ht::LEVEL_64, level};
  if (t < end) next.take_x(a, x); // before it is known whether that is asked for
  if (scalars) {
    ht::task task = ht::task_of(scalars, chosen);
    if (task.event != ht::CONTINUE) return;
    asked = levels_of(level, task);
    if (task.due) x = iterate;
    if (asked.stand_in_heads() && t < end) next.tile = head_of(a, t);
    if (asked.stand_in_heads() && t + warps < end) after = head_of(a, t + warps);
    if (task.due && t < end) next.take_x(a, x);
  }
  next.level = asked.of(next.tile);
  for (; t < end; t += warps) {
    ht_tile_head tile = next.tile;
    int now = next.level;
    next.keep_x(at);
    if (t + warps < end) next.prepare(a, asked, after, x);
    if (t + 2 * warps < end) after = head_of(a, t + 2 * warps);
    add_prepared<STREAMED>(a, tile, now, at);
  }
  int64_t row = blockIdx.x * int64_t{rows};
  int there = a.n - row < rows ? static_cast<int>(a.n - row) : rows;
  own_entry own = {}; // asked for before it is needed
  if (threadIdx.x < there) own = entry_of<ORDERED>(a, asked.uniform, level, row + threadIdx.x, x);
  __syncthreads();
  double product = 0;
  for (int i = threadIdx.x; i < there; i += blockDim.x) {
    own_entry now = own;
    if (i + blockDim.x < there) own = entry_of<ORDERED>(a, asked.uniform, level, row + i + blockDim.x, x);
    double total = shared[i];
    for (int w = 1; w < warps; w++) total += shared[w * rows + i];
    total += now.made_up();
    y[place_of<ORDERED>(a, row + i)] = total;
    product = fma(total, now.x, product);
  }
  if (products) leave_product(product, warps, shared, products);
}

} // namespace

#define MULTIPLY(name, ordered, streamed)                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256, 4)                                                                                     \
      name(const __grid_constant__ ht_cuda_tiles a, const uint8_t *level, const ht_cuda_cg_scalars *scalars, const uint32_t *chosen,       \
           const double *x, const double *iterate, double *y, double *products) {                                                          \
    multiply<ordered, streamed>(a, level, scalars, chosen, x, iterate, y, products);                                                       \
  }
MULTIPLY(ht_tilecsc_multiply, false, false)
MULTIPLY(ht_tilecsc_multiply_streamed, false, true)
MULTIPLY(ht_tilecsc_multiply_ordered, true, true)
