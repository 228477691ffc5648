// The product of a slice for the streaming engine: as few registers as can be, because what hides the latency of memory here is the number
// of warps. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/product.cuh"

namespace ht {

// How a product reads its groups: all at one level, or each as its own exactness and the column blocks say.
enum { BY_GROUP = 3 };

__device__ inline pair decode_fixed(const loaded &v, int level) {
  if (level == LEVEL_16) return {(double)signed_first(v.head), (double)signed_second(v.head)};
  int first = high_first(v.head) + signed_first(v.mid), second = high_second(v.head) + signed_second(v.mid);
  if (level == LEVEL_32) return {(double)first, (double)second};
  return {(double)(((long long)first << 32) + (long long)(int)v.tail.x), (double)(((long long)second << 32) + (long long)(int)v.tail.y)};
}

// A group that is not FIXED: rare, and kept out of the way.
__device__ __noinline__ double add_rare(const ht_store_view &a, int64_t group, int level, const double *p, double sum) {
  int lane = threadIdx.x & 31;
  ht_group_info info = a.info[group];
  loaded v;
  load(v, a, group, lane, level);
  pair value = decode(v, encoding_of(info), level);
  const double *from = p + info.base;
  return fma(value.second, from[v.index >> 16], fma(value.first, from[v.index & 0xffffu], sum));
}

__device__ inline ht_group_info info_of(const ht_store_view &a, int64_t group) {
  union {
    uint2 bits;
    ht_group_info info;
  } v;
  v.bits = __ldg((const uint2 *)(a.info + group));
  return v.info;
}

// Adds COUNT groups. What they are read at is the same for the whole warp.
template <int MODE, int COUNT>
__device__ inline double add_groups(const ht_store_view &a, int64_t group, int lane, const uint8_t *levels, int uniform,
                                    const double *__restrict__ p, double sum, groups_read &read) {
  loaded v[COUNT];
  ht_group_info info[COUNT];
  int level[COUNT];
#pragma unroll
  for (int u = 0; u < COUNT; u++) {
    if (MODE != BY_GROUP) load(v[u], a, group + u, lane, MODE);
    info[u] = info_of(a, group + u);
    level[u] = MODE;
    if (MODE != BY_GROUP) continue;
    level[u] = level_of(info[u], levels ? asked_of(info[u], levels, a.blocks) : uniform);
    load(v[u], a, group + u, lane, level[u]);
    read.count(level[u]);
  }
  double x0[COUNT], x1[COUNT];
#pragma unroll
  for (int u = 0; u < COUNT; u++) {
    const double *from = p + info[u].base;
    x0[u] = __ldg(from + (v[u].index & 0xffffu));
    x1[u] = __ldg(from + (v[u].index >> 16));
  }
#pragma unroll
  for (int u = 0; u < COUNT; u++) {
    if (encoding_of(info[u]) != HT_GROUP_FIXED) {
      sum = add_rare(a, group + u, level_of(info[u], level[u]), p, sum);
      continue;
    }
    pair value = decode_fixed(v[u], level[u]);
    sum = fma(scale_of(info[u], level[u]), fma(value.second, x1[u], value.first * x0[u]), sum);
  }
  return sum;
}

// Off-diagonal part of the slice's product, in the first lane of each row.
template <int MODE>
__device__ inline double stream_slice(const ht_store_view &a, const ht_slice_info &s, int lane, const uint8_t *levels, int uniform,
                                      const double *__restrict__ p, groups_read &read) {
  double sum = 0;
  int64_t group = s.group, end = s.group + s.groups;
  for (; group + 2 <= end; group += 2) sum = add_groups<MODE, 2>(a, group, lane, levels, uniform, p, sum, read);
  if (group < end) sum = add_groups<MODE, 1>(a, group, lane, levels, uniform, p, sum, read);
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

} // namespace ht
