// The product of a slice with a vector: one warp, and as few registers as can be, because what hides the latency of memory here is the
// number of warps. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/decode.cuh"

namespace ht {

// How a product reads its groups: all at one level, or each as its own exactness and the column blocks say.
enum { BY_GROUP = 3 };
enum { SPAN_LOOKED_AT = 8 }; // column blocks of a group; one that spans more is read whole while levels differ

// Streams are read once an iteration: they need no place in L1.
__device__ inline uint32_t stream(const uint32_t *from) {
  uint32_t v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}
__device__ inline uint2 stream(const uint2 *from) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  return v;
}
__device__ inline uint4 stream(const uint4 *from) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}

// What all lanes of a warp have, so that the compiler knows: it keeps such values, and what follows from them, once a warp, and branches on
// them without care for lanes that go apart.
template <class T> __device__ inline T uniform(T v) { return __shfl_sync(~0u, v, 0); }

__device__ inline ht_slice_info slice_at(const ht_store_view &a, int64_t slice) {
  union {
    uint4 bits;
    ht_slice_info info;
  } v;
  static_assert(sizeof v.info == sizeof v.bits, "one load");
  v.bits = __ldg((const uint4 *)(a.slice + slice));
  return v.info;
}

enum { SLICES_OF_A_RUN = 64 }; // about

// A warp's slices. All blocks work within one part of the matrix at a time, whose part of the vector stays in L2; there each has a run of
// slices, which its warps take in turn: what a slice reads of the vector, the next ones find in L1.
struct slice_turns {
  static constexpr int WARPS = 8; // of a block
  int slices, run;
  int at, end; // end: of the present run

  __device__ slice_turns(int64_t all) : slices((int)all) {
    int blocks = (int)gridDim.x, parts = max(1, slices / (blocks * SLICES_OF_A_RUN));
    run = uniform((slices + parts * blocks - 1) / (parts * blocks));
    at = (int)blockIdx.x * run + uniform((int)threadIdx.x / HT_WARP);
    end = (int)blockIdx.x * run + run;
    settle();
  }
  __device__ void settle() {
    while (at >= end && at < slices) at += ((int)gridDim.x - 1) * run, end += (int)gridDim.x * run;
  }
  __device__ bool more() const { return at < slices; }
  __device__ int slice() const { return min(at, slices - 1); }
  __device__ void advance() {
    at += WARPS;
    settle();
  }
};

__device__ inline ht_group_info info_of(const ht_store_view &a, int64_t unit) {
  union {
    uint16_t bits;
    ht_group_info info;
  } v;
  static_assert(sizeof v.info == sizeof v.bits, "one load");
  v.bits = __ldg((const uint16_t *)(a.info + unit));
  return v.info;
}

// Units at each level that a warp has read, for the bytes; an array with a changing index would not stay in registers.
struct units_read {
  int at_16, at_32, at_64;
  __device__ void count(int level, int units) {
    at_16 += level == LEVEL_16 ? units : 0;
    at_32 += level == LEVEL_32 ? units : 0;
    at_64 += level == LEVEL_64 ? units : 0;
  }
};

// A lane's part of a group of UNITS units as it is loaded; which parts depends on its level, which is the same for the whole warp.
struct loaded {
  uint32_t index[2], head[2], mid[2];
  uint2 tail[2];
};

template <int UNITS> __device__ inline void load_index(loaded &v, const ht_store_view &a, int64_t unit, int lane) {
  int64_t at = unit * HT_WARP + UNITS * lane;
  if (UNITS == 2) {
    uint2 index = stream((const uint2 *)(a.index + at));
    v.index[0] = index.x, v.index[1] = index.y;
  } else {
    v.index[0] = stream(a.index + at);
  }
}

template <int UNITS> __device__ inline void load_head(loaded &v, const ht_store_view &a, int64_t at) {
  if (UNITS == 2) {
    uint2 head = stream((const uint2 *)(a.head + at));
    v.head[0] = head.x, v.head[1] = head.y;
  } else {
    v.head[0] = stream(a.head + at);
  }
}

template <int UNITS> __device__ inline void load_mid(loaded &v, const ht_store_view &a, int64_t at) {
  if (UNITS == 2) {
    uint2 mid = stream((const uint2 *)(a.mid + at));
    v.mid[0] = mid.x, v.mid[1] = mid.y;
  } else {
    v.mid[0] = stream(a.mid + at);
  }
}

template <int UNITS> __device__ inline void load_tail(loaded &v, const ht_store_view &a, int64_t at) {
  if (UNITS == 2) {
    uint4 tail = stream((const uint4 *)(a.tail + at));
    v.tail[0] = {tail.x, tail.y}, v.tail[1] = {tail.z, tail.w};
  } else {
    v.tail[0] = stream((const uint2 *)(a.tail + at));
  }
}

// Of the values, what `level` needs and `have` does not.
template <int UNITS> __device__ inline void load(loaded &v, const ht_store_view &a, int64_t unit, int lane, int level, int have = -1) {
  int64_t at = unit * HT_WARP + UNITS * lane;
  if (have < LEVEL_16) load_head<UNITS>(v, a, at);
  if (have < LEVEL_32 && level >= LEVEL_32) load_mid<UNITS>(v, a, at);
  if (have < LEVEL_64 && level == LEVEL_64) load_tail<UNITS>(v, a, at);
}

// The two values of unit j.
__device__ inline pair decode(const loaded &v, int j, int encoding, int level) {
  if (level == LEVEL_16) return {(double)signed_first(v.head[j]), (double)signed_second(v.head[j])};
  int first = join_first(encoding, v.head[j], v.mid[j]), second = join_second(encoding, v.head[j], v.mid[j]);
  if (level == LEVEL_32) return {decode_32(encoding, first), decode_32(encoding, second)};
  return {decode_64(encoding, first, v.tail[j].x), decode_64(encoding, second, v.tail[j].y)};
}

struct indices;
struct patch_indices;

// A vector in global memory that does not change while the kernel runs. SHORT: its products with 16-bit values may be summed in FP32.
template <class Number, bool SHORT = false> struct global_vector {
  typedef Number number;
  typedef ht::indices indices;
  static constexpr bool short_sums = SHORT, in_patch = false;
  const Number *__restrict__ at;
  __device__ Number operator()(int base, uint32_t index) const { return __ldg(at + (base + (int)index)); }
};

__device__ inline int halo_row(const ht_store_view &a, int at) { return a.halo_16 ? (int)__ldg(a.halo_16 + at) : __ldg(a.halo + at); }

// The same where columns are a patch's: its own rows, then its halo. slice: the one that is multiplied.
struct patch_vector {
  typedef double number;
  typedef patch_indices indices;
  static constexpr bool short_sums = false, in_patch = true;
  const ht_store_view &a;
  const double *__restrict__ at;
  int64_t slice, own;
  int rows, halo;
  __device__ patch_vector(const ht_store_view &a, int64_t slice, int64_t row, const double *at)
      : a(a), at(at), slice(slice), rows((int)a.patch_rows) {
    int64_t patch = row / a.patch_rows;
    halo = a.halo_start[patch];
    own = patch * a.patch_rows;
  }
  __device__ double operator()(int, uint32_t index) const {
    int row = (int)own + (int)index, far = halo + ((int)index - rows);
    if ((int)index >= rows) row = a.halo_16 ? (int)__ldg(a.halo_16 + far) : __ldg(a.halo + far);
    return __ldg(at + row);
  }
};

// The sum of a lane's products in a group, not yet scaled. 16-bit integers times FP32 numbers are summed in FP32: what that loses, 2^-24 of
// each product, is little against what the values have lost.
template <bool SHORT, int UNITS, class Number>
__device__ inline double sum_of_products(const loaded &v, const Number *x, int encoding, int level) {
  if constexpr (SHORT) {
    float part = 0;
#pragma unroll
    for (int j = 0; j < UNITS; j++) {
      part = fmaf((float)signed_first(v.head[j]), x[2 * j], part);
      part = fmaf((float)signed_second(v.head[j]), x[2 * j + 1], part);
    }
    return part;
  } else {
    double part = 0;
#pragma unroll
    for (int j = 0; j < UNITS; j++) {
      pair value = decode(v, j, encoding, level);
      part = j ? fma(value.first, (double)x[2 * j], part) : value.first * (double)x[0];
      part = fma(value.second, (double)x[2 * j + 1], part);
    }
    return part;
  }
}

// Where the columns of a group are found. By indices:
struct indices {
  int64_t shift; // from a unit to the one of its indices
  __device__ explicit indices(const ht_slice_info &s) : shift((int64_t)s.index - (int64_t)s.unit) {}

  // An entry's column is base + index.
  template <int UNITS> __device__ int fetch(const ht_store_view &a, int64_t unit, int lane, uint32_t *index) const {
    loaded v;
    int base = __ldg(a.base + unit + shift);
    load_index<UNITS>(v, a, unit + shift, lane);
#pragma unroll
    for (int j = 0; j < UNITS; j++) index[2 * j] = v.index[j] & 0xffffu, index[2 * j + 1] = v.index[j] >> 16;
    return base;
  }
  // The highest level that the group's column blocks ask for.
  __device__ int asked(const ht_store_view &a, const ht_group_info &g, int64_t unit, bool, int, const uint8_t *block_level) const {
    if (g.span > SPAN_LOOKED_AT) return LEVEL_64;
    int64_t first = __ldg(a.base + unit + shift) / 64, last = min(first + g.span, a.blocks);
    int level = LEVEL_16;
    for (int64_t b = first; b < last; b++) level = max(level, (int)__ldg(block_level + b));
    return level;
  }
};

// The same with patches, where no group has a base, and indices lie where values do.
struct patch_indices {
  patch_indices() = default;
  __device__ explicit patch_indices(const ht_slice_info &) {}

  template <int UNITS> __device__ int fetch(const ht_store_view &a, int64_t unit, int lane, uint32_t *index) const {
    loaded v;
    load_index<UNITS>(v, a, unit, lane);
#pragma unroll
    for (int j = 0; j < UNITS; j++) index[2 * j] = v.index[j] & 0xffffu, index[2 * j + 1] = v.index[j] >> 16;
    return 0;
  }
  // Column blocks are not known.
  __device__ int asked(const ht_store_view &, const ht_group_info &, int64_t, bool, int, const uint8_t *) const { return LEVEL_64; }
};

__device__ inline int lead_of(const ht_store_view &a, int row) { return a.node == 1 ? row : row - row % a.node; }

// By offsets, which are the same for all rows of the slice.
struct offsets {
  int64_t unit;     // of the slice
  const int4 *list; // of the slice's, four a lane and whole group
  int lead, lanes_log2, part;

  __device__ offsets(const ht_store_view &a, const ht_slice_info &s, int lane)
      : unit(s.unit), list((const int4 *)a.offset + s.index), lanes_log2(s.lanes_log2) {
    lead = lead_of(a, s.row + (lane >> lanes_log2));
    part = lane & (1 << lanes_log2) - 1;
  }
  template <int UNITS> __device__ int fetch(const ht_store_view &, int64_t at, int, uint32_t *index) const {
    const int4 *group = list + ((int)(at - unit) / 2 << lanes_log2);
    if (UNITS == 2) {
      int4 four = __ldg(group + part);
      index[0] = (uint32_t)four.x, index[1] = (uint32_t)four.y, index[2] = (uint32_t)four.z, index[3] = (uint32_t)four.w;
    } else {
      int2 two = __ldg((const int2 *)group + part);
      index[0] = (uint32_t)two.x, index[1] = (uint32_t)two.y;
    }
    return lead;
  }
  __device__ int asked(const ht_store_view &a, const ht_group_info &, int64_t at, bool whole, int lane, const uint8_t *block_level) const {
    uint32_t index[HT_GROUP_ENTRIES];
    int level = LEVEL_16;
    if (whole)
      fetch<2>(a, at, lane, index);
    else
      fetch<1>(a, at, lane, index);
    for (int k = 0; k < (whole ? 4 : 2); k++) level = max(level, (int)__ldg(block_level + (lead + (int)index[k]) / 64));
    return __reduce_max_sync(~0u, level);
  }
};

// Where a lane's first or second entry of a slice's ragged unit lies.
struct ragged_place {
  int64_t at;
  bool is_there;

  __device__ ragged_place(const ht_store_view &a, int64_t slice, int lane, bool second) {
    ht_lanes has = a.has[slice];
    uint32_t lanes = second ? has.second : has.first;
    at = 2 * HT_WARP * a.units + a.slice[slice].index + (second ? __popc(has.first) : 0) + __popc(lanes & (1u << lane) - 1);
    is_there = lanes >> lane & 1;
  }
  template <class Number> __device__ uint32_t of(const Number *numbers) const { return is_there ? numbers[at] : 0; }
};

// A slice's ragged unit, as if it were one like the others; what is not there is 0.
struct ragged_unit {
  ht_group_info info;
  loaded v;

  ragged_unit() = default;
  __device__ ragged_unit(const ht_store_view &a, int64_t slice, int lane, int level) {
    ragged_place first(a, slice, lane, false), second(a, slice, lane, true);
    auto both = [&](const uint32_t *from) { return first.of((const uint16_t *)from) | second.of((const uint16_t *)from) << 16; };
    v.index[0] = both(a.index);
    v.head[0] = both(a.head);
    if (level >= LEVEL_32) v.mid[0] = both(a.mid);
    if (level == LEVEL_64) v.tail[0] = {first.of((const uint32_t *)a.tail), second.of((const uint32_t *)a.tail)};
    info = info_of(a, a.units + slice);
  }
  // Its two values, where all of them is loaded.
  __device__ pair exact() const {
    pair d = decode(v, 0, encoding_of(info), LEVEL_64);
    double scale = scale_of(info, LEVEL_64);
    return {d.first * scale, d.second * scale};
  }
};

// What it adds to the lane's sum where `asked` is wanted: an entry after the other, in few registers.
template <class Vector>
__device__ inline double add_ragged(const ht_store_view &a, int64_t slice, int lane, int asked, const Vector &p, double sum) {
  ht_group_info info = info_of(a, a.units + slice);
  int level = level_of(info, asked);
#pragma unroll 1
  for (int k = 0; k < 2; k++) {
    ragged_place place(a, slice, lane, k);
    if (!place.is_there) continue;
    loaded v;
    v.head[0] = ((const uint16_t *)a.head)[place.at];
    if (level >= LEVEL_32) v.mid[0] = ((const uint16_t *)a.mid)[place.at];
    if (level == LEVEL_64) v.tail[0].x = ((const uint32_t *)a.tail)[place.at];
    double value = decode(v, 0, encoding_of(info), level).first;
    sum = fma(scale_of(info, level) * value, p(0, ((const uint16_t *)a.index)[place.at]), sum);
  }
  return sum;
}

// One group. MODE is the level it is read at, or BY_GROUP; ENCODED: it may be other than FIXED.
template <int MODE, bool ENCODED, int UNITS, class Columns, class Vector>
__device__ inline double add_group(const ht_store_view &a, int64_t unit, int lane, const Columns &columns, ht_group_info info, int level,
                                   const Vector &p, double sum, units_read *read) {
  loaded v;
  uint32_t index[2 * UNITS];
  int base = columns.template fetch<UNITS>(a, unit, lane, index);
  load<UNITS>(v, a, unit, lane, level); // MODE's level does not wait for the group's description
  if (MODE == BY_GROUP && read) read->count(level, UNITS);
  if (MODE != BY_GROUP && ENCODED && encoding_of(info) != HT_GROUP_FIXED) {
    level = max(MODE, encoding_of(info) == HT_GROUP_RAW ? (int)LEVEL_64 : (int)LEVEL_32);
    load<UNITS>(v, a, unit, lane, level, MODE);
  }
  typename Vector::number x[2 * UNITS];
#pragma unroll
  for (int k = 0; k < 2 * UNITS; k++) x[k] = p(base, index[k]);
  double part = sum_of_products < MODE == LEVEL_16 && !ENCODED && Vector::short_sums,
         UNITS > (v, x, ENCODED ? encoding_of(info) : (int)HT_GROUP_FIXED, level);
  return fma(ENCODED ? scale_of(info, level) : fixed_scale(info, level), part, sum);
}

template <int MODE, class Columns>
__device__ inline int group_level(const ht_store_view &a, const ht_group_info &info, const Columns &columns, int64_t unit, bool whole,
                                  int lane, const uint8_t *levels, int uniform) {
  return MODE == BY_GROUP ? level_of(info, levels ? columns.asked(a, info, unit, whole, lane, levels) : uniform) : MODE;
}

// Sum over the lane's entries of the units begin..end-1; begin is a group's. By group, a group's description is had one group ahead,
// because its loads wait for it.
template <int MODE, bool ENCODED, int UNROLL = 2, class Columns, class Vector>
__device__ inline double add_units(const ht_store_view &a, int64_t begin, int64_t end, int lane, const Columns &columns,
                                   const uint8_t *levels, int uniform, const Vector &p, units_read *read) {
  constexpr bool AHEAD = MODE == BY_GROUP;
  double sum = 0;
  int64_t unit = begin;
  ht_group_info info = {};
  int level = MODE;
  if (AHEAD && begin < end) {
    info = info_of(a, begin);
    level = group_level<MODE>(a, info, columns, begin, begin + 2 <= end, lane, levels, uniform);
  }
#pragma unroll UNROLL
  for (; unit + 2 <= end; unit += 2) {
    int64_t after = min(unit + 2, end - 1);
    ht_group_info next = info_of(a, AHEAD ? after : unit);
    int next_level = group_level<MODE>(a, next, columns, after, after + 2 <= end, lane, levels, uniform);
    sum = add_group<MODE, ENCODED, 2>(a, unit, lane, columns, AHEAD ? info : next, level, p, sum, read);
    if (AHEAD) info = next, level = next_level;
  }
  if (unit < end) sum = add_group<MODE, ENCODED, 1>(a, unit, lane, columns, AHEAD ? info : info_of(a, unit), level, p, sum, read);
  return sum;
}

template <int MODE, int UNROLL, class Columns, class Vector>
__device__ inline double multiply_units(const ht_store_view &a, const ht_slice_info &s, int lane, const Columns &columns,
                                        const uint8_t *levels, int uniform, const Vector &p, units_read *read) {
  int64_t begin = s.unit, end = begin + s.units;
  if (s.encoding == HT_GROUP_FIXED) return add_units<MODE, false, UNROLL>(a, begin, end, lane, columns, levels, uniform, p, read);
  return add_units<MODE, true, UNROLL>(a, begin, end, lane, columns, levels, uniform, p, read);
}

// What `product` makes of a slice's columns, by whatever they are found.
template <class Vector, class Product>
__device__ inline auto with_columns(const ht_store_view &a, const ht_slice_info &s, int lane, const Product &product) {
  return s.by_offset ? product(offsets(a, s, lane)) : product(typename Vector::indices(s));
}

// Off-diagonal part of the product of a slice, in the first lane of each row. BY_GROUP: levels NULL means that `uniform` is asked for.
template <int MODE, int UNROLL = MODE == LEVEL_32 ? 4 : 2, class Vector>
__device__ inline double multiply_slice(const ht_store_view &a, const ht_slice_info &s, int lane, const uint8_t *levels, int uniform,
                                        const Vector &p, units_read *read) {
  double sum = with_columns<Vector>(
      a, s, lane, [&](const auto &columns) { return multiply_units<MODE, UNROLL>(a, s, lane, columns, levels, uniform, p, read); });
  if constexpr (Vector::in_patch)
    if (a.ragged) sum = add_ragged(a, p.slice, lane, levels ? (int)LEVEL_64 : uniform, p, sum);
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

// All rows, a warp a slice: product(slice, lane, vector) is the first lane's of each, and finish(row, product) is called there.
template <class Product, class Finish>
__device__ inline void each_row(const ht_store_view &a, const double *x, const Product &product, const Finish &finish) {
  int lane = threadIdx.x & 31, warps = blockDim.x / 32;
  for (int64_t slice = (int64_t)blockIdx.x * warps + threadIdx.x / 32; slice < a.slices; slice += (int64_t)gridDim.x * warps) {
    ht_slice_info s = a.slice[slice];
    auto sum = a.patches ? product(s, lane, patch_vector(a, slice, s.row, x)) : product(s, lane, global_vector<double>{x});
    if ((lane & (1 << s.lanes_log2) - 1) == 0) finish(s.row + (lane >> s.lanes_log2), sum);
  }
}

// The diagonal's part at a level.
__device__ inline double diagonal_at(const ht_store_view &a, int64_t row, int level) {
  if (level == LEVEL_16) return a.diagonal_16[row];
  return level == LEVEL_32 ? diagonal_32(a, row) : diagonal_exact(a, row);
}
__device__ inline double from_bf16(uint16_t bits) { return (double)__uint_as_float((uint32_t)bits << 16); }

// The same with patches.
__device__ inline double patch_diagonal_at(const ht_store_view &a, int64_t row, int level) {
  if (level == LEVEL_16) return join_diagonal<0>(a.diagonal[row], 0) + from_bf16(a.rest_16[row]);
  return level == LEVEL_32 ? diagonal_32(a, row) : diagonal_exact(a, row);
}

} // namespace ht
