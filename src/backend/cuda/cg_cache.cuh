// Where the persistent engine has its part of the matrix: of each slice the first units in registers, the last ones decoded in shared
// memory, and those between in global memory. Patches have no slices by offsets, so that a group's indices lie where its values do. A
// ragged unit, the last of its slice, is on the chip, where it is one like the others: there is room for all of them. At the lower levels
// one of another width than its slice is streamed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/bulk.cuh"
#include "backend/cuda/product.cuh"

namespace ht {

enum { AHEAD = 2 }; // groups that are on their way while others are multiplied

// A slice's units: `held`, then `streamed`, then `kept`.
struct __align__(16) slice_plan {
  int begin;                   // from the patch's first unit on
  uint16_t streamed, kept, at; // at: of the kept ones in shared memory
  uint16_t row;                // the first, from the patch's first on
  uint8_t held, lanes_log2, encoding;
  __device__ int row_of(int lane) const { return lane & (1 << lanes_log2) - 1 ? -1 : row + (lane >> lanes_log2); }
};

// How the block's shared memory is used.
template <int LEVEL> struct cache {
  static constexpr int value_bytes = LEVEL == LEVEL_64 ? 16 : LEVEL == LEVEL_32 ? 8 : 4; // two a lane
  double *p;                                                                             // own rows, then the halo
  uint8_t *values; // decoded doubles, 32-bit sums of head and mid, or heads
  uint32_t *indices;
  double *scales; // a unit each

  __device__ cache(uint8_t *memory, int columns, int units) {
    p = (double *)memory;
    scales = p + ((columns + 1) & ~1);
    values = (uint8_t *)(scales + ((units + 1) & ~1));
    indices = (uint32_t *)(values + (int64_t)units * value_bytes * HT_WARP);
  }
};

struct shared_vector {
  typedef double number;
  static constexpr bool short_sums = false;
  const double *at;
  __device__ double operator()(int, uint32_t index) const { return at[index]; }
};

template <int HELD> struct held_units {
  double2 value[HELD > 0 ? HELD : 1];
  uint32_t index[HELD > 0 ? HELD : 1];
};

// Shares `room` units of shared memory out to the slices in proportion to what they need, such that all that is streamed is streamed in
// whole rounds of AHEAD groups; one thread. Whether that was so. ragged: units of each slice that have to be kept.
__device__ inline bool share_out(slice_plan *plan, int slices, int room, int ragged) {
  constexpr int ROUND = 2 * AHEAD;
  int total = 0, seen = 0, used = 0, owed = 0; // owed: ragged units that are still to come
  bool whole = true;
  for (int k = 0; k < slices; k++) total += plan[k].kept, owed += plan[k].kept ? ragged : 0;
  for (int k = 0; k < slices; k++) {
    int need = plan[k].kept, kept = need, least = need ? ragged : 0;
    seen += need;
    owed -= least;
    if (total > room) {
      int fair = max((int)((long long)seen * room / total) - used, least);
      kept = need <= fair ? need : max(need - (need - fair + ROUND - 1) / ROUND * ROUND, need % ROUND);
      if (kept < least) kept = ROUND;
      if (used + kept + owed > room) kept = least;
    }
    plan[k].at = (uint16_t)used;
    plan[k].kept = (uint16_t)kept;
    plan[k].streamed += (uint16_t)(need - kept);
    used += kept;
    whole &= plan[k].streamed % ROUND == 0;
  }
  return whole;
}

// One unit into shared memory.
template <int LEVEL>
__device__ inline void keep(const cache<LEVEL> &c, const loaded &v, int j, int encoding, double scale, int to, int lane) {
  int at = to * HT_WARP + lane;
  if (LEVEL == LEVEL_64) {
    pair d = decode(v, j, encoding, LEVEL_64);
    ((double2 *)c.values)[at] = {d.first * scale, d.second * scale};
  } else if (LEVEL == LEVEL_32) {
    ((int2 *)c.values)[at] = {join_first(encoding, v.head[j], v.mid[j]), join_second(encoding, v.head[j], v.mid[j])};
  } else {
    ((uint32_t *)c.values)[at] = v.head[j];
  }
  c.indices[at] = v.index[j];
  if (lane == 0) c.scales[to] = encoding == HT_GROUP_FLOAT ? 0 : scale; // 0: the values are FP32 bits
}

// The group that holds a unit, units counted from the patch's first.
template <int LEVEL>
__device__ inline int load_group(const ht_store_view &a, int64_t first, int unit, int end, int lane, loaded &v, double &scale) {
  ht_group_info info = info_of(a, first + unit);
  if (unit + 1 < end) {
    load_index<2>(v, a, first + unit, lane);
    load<2>(v, a, first + unit, lane, LEVEL);
  } else {
    load_index<1>(v, a, first + unit, lane);
    load<1>(v, a, first + unit, lane, LEVEL);
  }
  scale = scale_of(info, LEVEL);
  return encoding_of(info);
}

template <int LEVEL>
__device__ inline void fill_kept(const ht_store_view &a, int64_t first, int64_t slice, const slice_plan &s, const cache<LEVEL> &c, int lane,
                                 int ragged) {
  bool ends = ragged && s.kept;
  int begin = s.begin + s.held + s.streamed, end = begin + s.kept - ends;
  for (int unit = begin; unit < end; unit += 2) { // whole groups stand before it
    loaded v;
    double scale;
    int encoding = load_group<LEVEL>(a, first, unit, end, lane, v, scale);
    keep(c, v, 0, encoding, scale, s.at + unit - begin, lane);
    if (unit + 1 < end) keep(c, v, 1, encoding, scale, s.at + unit + 1 - begin, lane);
  }
  if (!ends) return;
  ragged_unit last(a, slice, lane, LEVEL);
  keep(c, last.v, 0, encoding_of(last.info), scale_of(last.info, LEVEL), s.at + s.kept - 1, lane);
}

// What is not there counts as zeros.
template <int HELD>
__device__ inline void fill_held(const ht_store_view &a, int64_t first, int64_t slice, const slice_plan &s, int lane, held_units<HELD> &h) {
  int whole = s.held + s.streamed + s.kept - (int)a.ragged;
  bool ends = whole >= 0 && whole < s.held;
#pragma unroll
  for (int j = 0; j < HELD; j++) h.value[j] = {0, 0}, h.index[j] = 0;
#pragma unroll
  for (int j = 0; j < HELD; j += 2) {
    if (j >= min((int)s.held, whole)) continue;
    loaded v;
    double scale;
    int encoding = load_group<LEVEL_64>(a, first, s.begin + j, s.begin + whole, lane, v, scale);
#pragma unroll
    for (int k = 0; k < 2; k++)
      if (j + k < min((int)s.held, whole)) {
        pair d = decode(v, k, encoding, LEVEL_64);
        h.value[j + k] = {d.first * scale, d.second * scale};
        h.index[j + k] = v.index[k];
      }
  }
  if (!ends) return;
  ragged_unit last(a, slice, lane, LEVEL_64);
  pair d = last.exact();
#pragma unroll
  for (int j = 0; j < HELD; j++)
    if (j == whole) h.value[j] = {d.first, d.second}, h.index[j] = last.v.index[0];
}

template <int HELD> __device__ inline double multiply_held(const held_units<HELD> &h, int count, const double *p) {
  double sum = 0;
#pragma unroll
  for (int j = 0; j < HELD; j += 2) {
    if (j > 0 && j >= count) break;
#pragma unroll
    for (int k = j; k < j + 2; k++) {
      uint32_t index = h.index[k];
      asm volatile("" : "+r"(index)); // or it is unpacked before the loop, into more registers than there are
      sum = fma(h.value[k].y, p[index >> 16], fma(h.value[k].x, p[index & 0xffffu], sum));
    }
  }
  return sum;
}

template <int LEVEL> __device__ inline double multiply_kept(const cache<LEVEL> &c, int begin, int end, int lane, double sum) {
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

// Units of a slice, from memory, where they do not come in rounds: in few registers. RAGGED: with the ragged one where none is kept.
template <int LEVEL, bool RAGGED>
__device__ inline double multiply_streamed(const ht_store_view &a, int64_t first, int64_t slice, const slice_plan &s, int lane,
                                           const double *p, double sum) {
  bool ends = RAGGED && a.ragged && !s.kept;
  int64_t begin = first + s.begin + s.held, end = begin + s.streamed - ends;
#pragma unroll 1
  for (int64_t unit = begin; unit < end; unit += 2) {
    ht_group_info info = info_of(a, unit);
    int level = level_of(info, LEVEL);
    if (unit + 1 < end)
      sum = add_group<BY_GROUP, true, 2>(a, unit, lane, patch_indices{}, info, level, shared_vector{p}, sum, nullptr);
    else
      sum = add_group<BY_GROUP, true, 1>(a, unit, lane, patch_indices{}, info, level, shared_vector{p}, sum, nullptr);
  }
  if (ends) sum = add_ragged(a, slice, lane, LEVEL, shared_vector{p}, sum);
  return sum;
}

// The streamed groups of a warp's slices, one after the other, again and again: AHEAD of them are always on their way, also while the block
// waits for others. BOTH_WAYS: every second time the slices are taken backwards, so that those that were read last are found in L2.
template <int LEVEL, bool BOTH_WAYS> struct ahead {
  loaded v[AHEAD];
  ht_group_info info[AHEAD];
  int slice, unit, end; // of the next; slice -1: there is none
  int step;             // to the slice after it

  __device__ void enter(const slice_plan *plan) {
    unit = plan[slice].begin + plan[slice].held;
    end = unit + plan[slice].streamed;
  }
  __device__ void next_slice(const slice_plan *plan, int slices) {
    do {
      slice += step;
      if (BOTH_WAYS && (slice < 0 || slice >= slices)) step = -step, slice += step;
      if (!BOTH_WAYS && slice >= slices) slice = threadIdx.x / 32;
      enter(plan);
    } while (unit == end);
  }
  __device__ void fetch(int n, const ht_store_view &a, int64_t first, const slice_plan *plan, int slices) {
    load_index<2>(v[n], a, first + unit, threadIdx.x & 31);
    load<2>(v[n], a, first + unit, threadIdx.x & 31, LEVEL);
    info[n] = info_of(a, first + unit);
    unit += 2;
    if (unit == end) next_slice(plan, slices);
  }
  __device__ void begin(const ht_store_view &a, int64_t first, const slice_plan *plan, int slices, bool backwards) {
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, last = -1;
    bool any = false;
    for (int k = warp; k < slices; k += warps) any |= plan[k].streamed > 0, last = k;
    slice = -1;
    if (!any) return;
    slice = backwards ? last : warp;
    step = backwards ? -warps : warps;
    enter(plan);
    if (unit == end) next_slice(plan, slices);
#pragma unroll
    for (int n = 0; n < AHEAD; n++) fetch(n, a, first, plan, slices);
  }
  // The rest of the next slice to L2: the block is about to wait, and memory has nothing else to do.
  __device__ void prefetch(const ht_store_view &a, int64_t first) const {
    int lane = threadIdx.x & 31;
    if (slice < 0 || lane > 3) return;
    const void *array = lane == 0 ? a.index : lane == 1 ? a.head : lane == 2 ? a.mid : (const void *)a.tail;
    int bytes = HT_WARP * (int)(lane == 3 ? sizeof *a.tail : sizeof *a.head); // a unit
    const char *from = (const char *)array + (first + unit) * bytes;
    bulk_prefetch(from, (uint32_t)((end - unit) * bytes));
  }
  __device__ double multiply(const slice_plan &s, const ht_store_view &a, int64_t first, const slice_plan *plan, int slices,
                             const double *p, double sum) {
    for (int k = 0; k < s.streamed; k += 2 * AHEAD) {
#pragma unroll
      for (int n = 0; n < AHEAD; n++) {
        double x[4] = {p[v[n].index[0] & 0xffffu], p[v[n].index[0] >> 16], p[v[n].index[1] & 0xffffu], p[v[n].index[1] >> 16]};
        double part = sum_of_products<false, 2>(v[n], x, HT_GROUP_FIXED, LEVEL);
        sum = fma(fixed_scale(info[n], LEVEL), part, sum);
        fetch(n, a, first, plan, slices);
      }
    }
    return sum;
  }
};

} // namespace ht
