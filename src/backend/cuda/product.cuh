// The product of a slice with a vector: one warp. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/decode.cuh"

namespace ht {

enum { STREAM_BATCH = 4, PATCH_BATCH = 4 }; // groups whose loads are in flight together

// Streams are read once an iteration: they need no place in L1.
__device__ inline uint32_t stream(const uint32_t *from) {
  uint32_t v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}
__device__ inline uint2 stream(const int64_t *from) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  return v;
}
__device__ inline ht_group_info stream(const ht_group_info *from) {
  union {
    uint2 bits;
    ht_group_info info;
  } v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.bits.x), "=r"(v.bits.y) : "l"(from));
  return v.info;
}

// The highest level that the group's column blocks ask for.
__device__ inline int asked_of(const ht_group_info &g, const uint8_t *block_level, int64_t blocks) {
  int64_t first = g.base / 64, last = min(first + g.span, blocks);
  int level = LEVEL_16;
  for (int64_t b = first; b < last && level < LEVEL_64; b++) level = max(level, (int)block_level[b]);
  return level;
}

// What the lanes share about a group, in one word: the level it is read at, its encoding and its exponent.
__device__ inline uint32_t pack(const ht_group_info &g, int level) {
  return (uint32_t)level | (uint32_t)encoding_of(g) << 8 | (uint32_t)g.exponent << 16;
}

// Numbers of groups, for the bytes; an array with a changing index would not stay in registers.
struct groups_read {
  int at_16, at_32, at_64;
  __device__ void count(int level) {
    at_16 += level == LEVEL_16;
    at_32 += level == LEVEL_32;
    at_64 += level == LEVEL_64;
  }
  __device__ void add(const groups_read &other) {
    at_16 += other.at_16;
    at_32 += other.at_32;
    at_64 += other.at_64;
  }
};

// A group as it is loaded; which parts depends on its level, which is the same for the whole warp.
struct loaded {
  uint32_t index, head, mid;
  uint2 tail;
};

__device__ inline void load(loaded &v, const ht_store_view &a, int64_t group, int lane, int level) {
  int64_t at = group * HT_WARP + lane;
  v.index = stream(a.index + at);
  v.head = stream(a.head + at);
  if (level >= LEVEL_32) v.mid = stream(a.mid + at);
  if (level == LEVEL_64) v.tail = stream(a.tail + at);
}

__device__ inline pair decode(const loaded &v, int encoding, int level) {
  if (level == LEVEL_16) return {(double)signed_first(v.head), (double)signed_second(v.head)};
  int first = join_first(encoding, v.head, v.mid), second = join_second(encoding, v.head, v.mid);
  if (level == LEVEL_32) return {decode_32(encoding, first), decode_32(encoding, second)};
  return {decode_64(encoding, first, v.tail.x), decode_64(encoding, second, v.tail.y)};
}

__device__ inline double scale_of_packed(uint32_t packed) {
  if ((packed >> 8 & 255) != HT_GROUP_FIXED) return 1;
  int level = packed & 255, bits = level == LEVEL_64 ? 63 : level == LEVEL_32 ? 31 : 15;
  return power_of_two(HT_EXPONENT_BIAS - (int)(packed >> 16) - bits);
}

// Sum over the lane's entries of the groups first..first+count-1 (count <= 32), whose shares the lanes hold in (base, packed).
template <int BATCH, class Vector>
__device__ inline double multiply_groups(const ht_store_view &a, int64_t first, int count, int lane, int base, uint32_t packed,
                                         const Vector &p) {
  double sum = 0;
  for (int j = 0; j < count; j += BATCH) {
    loaded v[BATCH];
    uint32_t about[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      about[u] = __shfl_sync(~0u, packed, j + u & 31);
      if (j + u < count) load(v[u], a, first + j + u, lane, about[u] & 255);
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      int start = __shfl_sync(~0u, base, j + u & 31);
      if (j + u >= count) break;
      pair value = decode(v[u], about[u] >> 8 & 255, about[u] & 255);
      double part = value.first * p(start, v[u].index & 0xffffu);
      part = fma(value.second, p(start, v[u].index >> 16), part);
      sum = fma(scale_of_packed(about[u]), part, sum);
    }
  }
  return sum;
}

// Off-diagonal part of the product of a slice, in every lane that owns a row (the first of the row's lanes). block_level NULL: `asked`.
template <class Vector>
__device__ inline double multiply_slice(const ht_store_view &a, const ht_slice_info &s, int lane, const uint8_t *block_level, int asked,
                                        const Vector &p, groups_read *read) {
  double sum = 0;
  for (int first = 0; first < s.groups; first += HT_WARP) {
    int count = min(HT_WARP, s.groups - first), base = 0;
    uint32_t packed = 0;
    if (lane < count) {
      ht_group_info mine = stream(a.info + s.group + first + lane);
      int level = level_of(mine, block_level ? asked_of(mine, block_level, a.blocks) : asked);
      base = mine.base;
      packed = pack(mine, level);
      if (read) read->count(level);
    }
    sum += multiply_groups<STREAM_BATCH>(a, s.group + first, count, lane, base, packed, p);
  }
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

// A vector in global memory that does not change while the kernel runs.
struct global_vector {
  const double *__restrict__ at;
  __device__ double operator()(int base, uint32_t index) const { return __ldg(at + base + (int64_t)index); }
};

// The diagonal's part at a level.
__device__ inline double diagonal_at(const ht_store_view &a, int64_t row, int level) {
  return level == LEVEL_16 ? (double)a.diagonal_16[row] : level == LEVEL_32 ? (double)a.diagonal[row] : diagonal_exact(a, row);
}

} // namespace ht
