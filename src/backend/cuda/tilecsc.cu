// Product with the Tile-CSC storage, as the EvoCG paper does it (section 3.3): a block takes a row block and keeps its sums in shared
// memory; its warps take the row block's tiles in turn, one warp a tile, lane i the tile's columns i and i + 32. Sums are added by
// shared-memory atomics in any order: this baseline alone does not give the same bits twice. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

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

// Columns are padded to even length with entries in row `rows`: two entries a step, aligned.
template <class Format>
__device__ void add_tile(const typename Format::Pair *pairs, const ushort2 *row_pairs, const uint32_t *start, const double *scale,
                         const double *x, int rows, double *sum) {
  for (int c = threadIdx.x % WARP; c < COLUMNS; c += WARP) {
    uint32_t k = start[c] / 2, end = start[c + 1] / 2;
    if (k == end) continue; // x ends inside the last column block: there is nothing to read for an empty column
    double factor = Format::scaled ? x[c] * scale[c] : x[c];
    for (; k < end; k++) {
      ushort2 row = row_pairs[k];
      double2 value = Format::widen(pairs[k]);
      atomicAdd(sum + row.x, value.x * factor);
      if (row.y < rows) atomicAdd(sum + row.y, value.y * factor); // only the second of a pair can be padding
    }
  }
}

template <class Pair, class Value> __device__ const Pair *pairs_from(const Value *stream, int64_t entry) {
  return reinterpret_cast<const Pair *>(stream + entry);
}

} // namespace

extern "C" __global__ void ht_tilecsc_multiply(int64_t n, int rows_per_block, const int64_t *tile_row_start, const int32_t *tile_column,
                                               const int64_t *tile_entry, const uint32_t *column_start, const uint16_t *row_index,
                                               const double *scale, const double *value_f64, const float *value_f32,
                                               const uint16_t *value_bf16, const uint8_t *level, const double *x, double *y) {
  extern __shared__ double sum[];
  int64_t first = blockIdx.x * int64_t{rows_per_block};
  int rows = n - first < rows_per_block ? static_cast<int>(n - first) : rows_per_block;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) sum[i] = 0;
  __syncthreads();
  int64_t end = tile_row_start[blockIdx.x + 1];
  for (int64_t t = tile_row_start[blockIdx.x] + threadIdx.x / WARP; t < end; t += blockDim.x / WARP) {
    int64_t column = tile_column[t], entry = tile_entry[t];
    const ushort2 *row_pairs = pairs_from<ushort2>(row_index, entry);
    const uint32_t *start = column_start + t * (COLUMNS + 1);
    const double *tile_scale = scale + t * COLUMNS, *tile_x = x + column * COLUMNS;
    switch (level ? level[column] : 2) { // ht_level
    case 0: add_tile<Bf16>(pairs_from<ushort2>(value_bf16, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum); break;
    case 1: add_tile<Fp32>(pairs_from<float2>(value_f32, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum); break;
    default: add_tile<Fp64>(pairs_from<double2>(value_f64, entry), row_pairs, start, tile_scale, tile_x, rows_per_block, sum); break;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows; i += blockDim.x) y[first + i] = sum[i];
}
