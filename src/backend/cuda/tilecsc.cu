// Product with the Tile-CSC storage, as the EvoCG paper does it (section 3.3): a block takes a row block; its warps take the row block's
// tiles in turn, one warp a tile, lane i the tile's columns i and i + 32. Each warp adds to sums of its own in shared memory: lanes that
// meet in a row do so in the order of their numbers, and the warps' sums are added in the order of theirs, so that the bits are always
// the same. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_step.cuh"

namespace {

constexpr int COLUMNS = 64, WARP = 32;

struct Bf16 {
  static constexpr bool scaled = true;
  using Pair = ushort2;
  static __device__ double2 widen(Pair v) { return {__uint_as_float(unsigned{v.x} << 16), __uint_as_float(unsigned{v.y} << 16)}; }
};

struct Fp32 {
  static constexpr bool scaled = true;
  using Pair = float2;
  static __device__ double2 widen(Pair v) { return {v.x, v.y}; }
};

struct Fp64 {
  static constexpr bool scaled = false;
  using Pair = double2;
  static __device__ double2 widen(Pair v) { return v; }
};

// Of all lanes of a warp at once. Row `rows` is padding.
__device__ inline void add(double *sum, int rows, int row, double term) {
  unsigned below = (1u << threadIdx.x % WARP) - 1, same = __match_any_sync(~0u, row);
  int turn = row < rows ? __popc(same & below) : -1, last = __reduce_max_sync(~0u, turn);
  for (int now = 0; now <= last; now++) {
    if (turn == now) sum[row] += term;
    __syncwarp();
  }
}

// Columns are padded to even length with entries in row `rows`: two entries a step, aligned. Each lane begins elsewhere in its column: in
// a dense tile lanes then meet different rows.
template <class Format>
__device__ inline void add_tile(const typename Format::Pair *__restrict__ pairs, const ushort2 *__restrict__ row_pairs,
                                const uint32_t *__restrict__ start, const double *__restrict__ scale, const double *x, int rows,
                                double *sum) {
  for (int c = threadIdx.x % WARP; c < COLUMNS; c += WARP) {
    int first = start[c] / 2, count = start[c + 1] / 2 - first, steps = __reduce_max_sync(~0u, count);
    if (!steps) continue;
    double factor = 0; // x ends inside the last column block: there is nothing to read for an empty column
    if (count) factor = Format::scaled ? x[c] * scale[c] : x[c];
    int k = count ? c % count : 0;
    const ushort2 none = {(unsigned short)rows, (unsigned short)rows};
    ushort2 next_row = count ? row_pairs[first + k] : none;
    typename Format::Pair next = {};
    if (count) next = pairs[first + k];
    for (int step = 0; step < steps; step++) {
      ushort2 row = next_row;
      double2 value = Format::widen(next);
      k = k + 1 == count ? 0 : k + 1;
      next_row = none;
      if (step + 1 < count) {
        next_row = row_pairs[first + k];
        next = pairs[first + k];
      }
      add(sum, rows, row.x, value.x * factor);
      add(sum, rows, row.y, value.y * factor);
    }
  }
}

template <class Pair, class Value> __device__ const Pair *pairs_from(const Value *stream, int64_t entry) {
  return reinterpret_cast<const Pair *>(stream + entry);
}

} // namespace

// scalars: of a solve, whose events end the work and whose levels hold; or NULL.
extern "C" __global__ void __launch_bounds__(256, 4)
    ht_tilecsc_multiply(int64_t n, int rows_per_block, const int64_t *tile_row_start, const int32_t *tile_column, const int64_t *tile_entry,
                        const uint32_t *column_start, const uint16_t *row_index, const double *scale, const double *value_f64,
                        const float *value_f32, const uint16_t *value_bf16, const uint8_t *level, const ht_cuda_cg_scalars *scalars,
                        const double *x, double *y) {
  extern __shared__ double sums[]; // rows_per_block a warp
  if (scalars && scalars->event != ht::CONTINUE) return;
  int uniform = scalars ? scalars->uniform : level ? -1 : ht::LEVEL_64;
  int warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
  double *sum = sums + warp * rows_per_block;
  for (int i = threadIdx.x % WARP; i < rows_per_block; i += WARP) sum[i] = 0;
  __syncwarp();
  int64_t end = tile_row_start[blockIdx.x + 1];
  for (int64_t t = tile_row_start[blockIdx.x] + warp; t < end; t += warps) {
    int64_t column = tile_column[t], entry = tile_entry[t];
    const ushort2 *row_pairs = pairs_from<ushort2>(row_index, entry);
    const uint32_t *start = column_start + t * (COLUMNS + 1);
    const double *tile_scale = scale + column * COLUMNS, *tile_x = x + column * COLUMNS;
    switch (uniform >= 0 ? uniform : level[column]) {
    case ht::LEVEL_16:
      add_tile<Bf16>(pairs_from<ushort2>(value_bf16, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum);
      break;
    case ht::LEVEL_32:
      add_tile<Fp32>(pairs_from<float2>(value_f32, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum);
      break;
    default: add_tile<Fp64>(pairs_from<double2>(value_f64, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum); break;
    }
  }
  __syncthreads();
  int64_t first = blockIdx.x * int64_t{rows_per_block};
  int rows = n - first < rows_per_block ? static_cast<int>(n - first) : rows_per_block;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    double total = sums[i];
    for (int w = 1; w < warps; w++) total += sums[w * rows_per_block + i];
    y[first + i] = total;
  }
}
