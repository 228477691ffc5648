// The product of a warp's slices, whose values come through a ring in shared memory that the copy engine fills: memory's latency is hidden by
// what is on its way there, not by the number of warps, and the registers are free for what is gathered from the vector. From compute
// capability 9.0 on. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/bulk.cuh"
#include "backend/cuda/product.cuh"

namespace ht {

// What one warp has: STAGES of UNITS units each. A unit is 32 lanes' two entries.
template <int MODE_, bool INDEXED_, int UNITS_, int STAGES_, int GROUPS_> struct ring_shape {
  static constexpr int MODE = MODE_, UNITS = UNITS_, STAGES = STAGES_, GROUPS = GROUPS_; // GROUPS: gathered for at once
  static constexpr bool INDEXED = INDEXED_;                                             // indices come through the ring, too
  static constexpr int ALL = UNITS * STAGES;
  static constexpr int HEAD = MODE == LEVEL_64 ? ALL * 256 : 0, MID = HEAD + ALL * 128, INDEX = MID + (MODE >= LEVEL_32 ? ALL * 128 : 0),
                       BYTES = INDEX + (INDEXED ? ALL * 128 : 0); // places in a warp's memory; tails come first
};

// A warp's jobs: EACH slices in a row. All blocks work within one part of the matrix at a time, whose part of the vector stays in L2; there
// each has a run of slices, whose jobs its warps take in turn: what a slice reads of the vector, the next ones find in L1.
struct jobs {
  int slices, each, run, per_run, stride, warps;
  int base, within;

  __device__ jobs(int64_t all, int each, int run, int warps)
      : slices((int)all), each(each), run(run), per_run((run + each - 1) / each), stride((int)gridDim.x * run), warps(warps) {
    base = (int)blockIdx.x * run;
    within = (int)threadIdx.x / 32;
    settle();
  }
  __device__ void settle() {
    while (within >= per_run) within -= per_run, base += stride;
  }
  __device__ bool more() const { return first() < slices; }
  __device__ int first() const { return base + within * each; }
  __device__ int end() const { return min(min(first() + each, base + run), slices); }
  __device__ void advance() {
    within += warps;
    settle();
  }
};

// The units of a job.
struct job_units {
  uint32_t unit, end, index; // index: of the first one
  bool by_offset;
};

__device__ inline ht_slice_info slice_at(const ht_store_view &a, int64_t slice) {
  union {
    uint4 bits;
    ht_slice_info info;
  } v;
  static_assert(sizeof v.info == sizeof v.bits, "one load");
  v.bits = __ldg((const uint4 *)(a.slice + slice));
  return v.info;
}

template <class SHAPE> struct matrix_ring {
  const ht_store_view &a;
  unsigned char *memory;
  uint32_t address, barriers;
  // what is asked for
  jobs ahead;
  job_units present, next;
  int fill; // stage
  // what is read; in units of the present job
  int stage, ready, freed, done, place; // place: in the ring, of unit `done`
  uint32_t parities;

  __device__ matrix_ring(const ht_store_view &a, unsigned char *memory, uint32_t barriers, const jobs &mine)
      : a(a), memory(memory), address(shared_address(memory)), barriers(barriers), ahead(mine), fill(0), stage(0), ready(0), freed(0),
        done(0), place(0), parities(0) {
    if ((threadIdx.x & 31) == 0)
      for (int k = 0; k < SHAPE::STAGES; k++) barrier_init(barriers + 8 * k);
    barrier_fence();
    __syncwarp();
    look();
    take();
    for (int k = 0; k < SHAPE::STAGES; k++) ask();
  }
  // The units of the job that `ahead` stands at.
  __device__ void look() {
    next = {0, 0, 0, true};
    if (!ahead.more()) return;
    ht_slice_info s = slice_at(a, ahead.first());
    next = {s.unit, __ldg(&a.slice[ahead.end()].unit), s.index, (bool)s.by_offset};
  }
  __device__ void take() {
    do {
      present = next;
      if (!ahead.more()) return;
      ahead.advance();
      look();
    } while (present.unit == present.end);
  }
  // A stage's next units, as far as there are any.
  __device__ void ask() {
    if (present.unit == present.end) take();
    int units = min((int)(present.end - present.unit), SHAPE::UNITS);
    if (units > 0 && (threadIdx.x & 31) == 0) {
      uint32_t barrier = barriers + 8 * fill, to = address + fill * SHAPE::UNITS * 128;
      bool indices = SHAPE::INDEXED && !present.by_offset;
      barrier_expect(barrier, units * (128 + (SHAPE::MODE >= LEVEL_32 ? 128 : 0) + (SHAPE::MODE == LEVEL_64 ? 256 : 0) + (indices ? 128 : 0)));
      int64_t word = (int64_t)present.unit * HT_WARP;
      if (indices) bulk_copy(to + SHAPE::INDEX, a.index + (int64_t)present.index * HT_WARP, units * 128, barrier);
      bulk_copy(to + SHAPE::HEAD, a.head + word, units * 128, barrier);
      if (SHAPE::MODE >= LEVEL_32) bulk_copy(to + SHAPE::MID, a.mid + word, units * 128, barrier);
      if (SHAPE::MODE == LEVEL_64) bulk_copy(address + fill * SHAPE::UNITS * 256, a.tail + word, units * 256, barrier);
    }
    present.unit += units;
    present.index += units;
    fill = fill + 1 == SHAPE::STAGES ? 0 : fill + 1;
  }
  // Until so many units from `done` on are there.
  __device__ void wait(int units) {
    while (ready < done + units) {
      barrier_wait(barriers + 8 * stage, parities >> stage & 1);
      parities ^= 1u << stage;
      stage = stage + 1 == SHAPE::STAGES ? 0 : stage + 1;
      ready += SHAPE::UNITS;
    }
  }
  // So many have been read.
  __device__ void release(int units) {
    done += units;
    place = place + units >= SHAPE::ALL ? place + units - SHAPE::ALL : place + units;
    while (done - freed >= SHAPE::UNITS) free_stage();
  }
  __device__ void free_stage() {
    __syncwarp();
    ask();
    freed += SHAPE::UNITS;
  }
  // The next job begins with a stage of its own.
  __device__ void end_job() {
    if (done > freed) free_stage();
    done = ready = freed = 0;
    place = fill * SHAPE::UNITS;
  }
  // A lane's words of the group that begins so many units behind `done`.
  template <int COUNT> __device__ void read(loaded &v, int unit, int lane) const {
    uint32_t word = (uint32_t)(place + unit) * 32 + COUNT * lane;
    word = min(word, word - SHAPE::ALL * 32);
    const unsigned char *at = memory + 4 * word;
    if (COUNT == 2) {
      uint2 head = *(const uint2 *)(at + SHAPE::HEAD);
      v.head[0] = head.x, v.head[1] = head.y;
      if (SHAPE::MODE >= LEVEL_32) {
        uint2 mid = *(const uint2 *)(at + SHAPE::MID);
        v.mid[0] = mid.x, v.mid[1] = mid.y;
      }
      if (SHAPE::MODE == LEVEL_64) {
        uint4 tail = *(const uint4 *)(memory + 8 * word);
        v.tail[0] = {tail.x, tail.y}, v.tail[1] = {tail.z, tail.w};
      }
    } else {
      v.head[0] = *(const uint32_t *)(at + SHAPE::HEAD);
      if (SHAPE::MODE >= LEVEL_32) v.mid[0] = *(const uint32_t *)(at + SHAPE::MID);
      if (SHAPE::MODE == LEVEL_64) v.tail[0] = *(const uint2 *)(memory + 8 * word);
    }
  }
  template <int COUNT> __device__ void read_index(uint32_t *index, int unit, int lane) const {
    uint32_t word = (uint32_t)(place + unit) * 32 + COUNT * lane;
    word = min(word, word - SHAPE::ALL * 32);
    const unsigned char *at = memory + 4 * word + SHAPE::INDEX;
    if (COUNT == 2) {
      uint2 v = *(const uint2 *)at;
      index[0] = v.x & 0xffffu, index[1] = v.x >> 16, index[2] = v.y & 0xffffu, index[3] = v.y >> 16;
    } else {
      uint32_t v = *(const uint32_t *)at;
      index[0] = v & 0xffffu, index[1] = v >> 16;
    }
  }
};

// What a warp knows of the next 32 units of a slice: a lane has one unit's.
struct units_known {
  int from; // unit of the slice
  uint32_t info;
  int base;

  template <bool BASES> __device__ static units_known of(const ht_store_view &a, const ht_slice_info &s, int from, int lane) {
    int64_t unit = min((int64_t)s.unit + from + lane, a.units - 1);
    units_known k = {from, __ldg((const uint16_t *)(a.info + unit)), 0};
    if (BASES && !s.by_offset) k.base = __ldg(a.base + min((int64_t)s.index + from + lane, a.index_units - 1));
    return k;
  }
  __device__ ht_group_info info_of(int unit) const {
    union {
      uint16_t bits;
      ht_group_info info;
    } v;
    v.bits = (uint16_t)__shfl_sync(~0u, info, unit - from);
    return v.info;
  }
  __device__ int base_of(int unit) const { return __shfl_sync(~0u, base, unit - from); }
};

// Where a lane finds its part of the vector: columns by offsets from its row's lead, or by indices from the group's base.
template <class SHAPE, bool BY_OFFSET> struct ring_columns;
template <class SHAPE> struct ring_columns<SHAPE, true> {
  const int4 *list;
  int lead, lanes_log2;
  __device__ ring_columns(const ht_store_view &a, const ht_slice_info &s, int lane)
      : list((const int4 *)a.offset + s.index + (lane & (1 << s.lanes_log2) - 1)), lead(lead_of(a, s.row + (lane >> s.lanes_log2))),
        lanes_log2(s.lanes_log2) {}
  template <int COUNT, class Number>
  __device__ void gather(const matrix_ring<SHAPE> &, const units_known &, const Number *p, int unit, int, int lane, Number *x) const {
    const int4 *group = list + (unit / 2 << lanes_log2);
    const Number *at = p + lead;
    if (COUNT == 2) {
      int4 four = __ldg(group);
      x[0] = __ldg(at + four.x), x[1] = __ldg(at + four.y), x[2] = __ldg(at + four.z), x[3] = __ldg(at + four.w);
    } else {
      int part = lane & (1 << lanes_log2) - 1;
      int2 two = __ldg((const int2 *)(group - part) + part);
      x[0] = __ldg(at + two.x), x[1] = __ldg(at + two.y);
    }
  }
};
template <class SHAPE> struct ring_columns<SHAPE, false> {
  const uint32_t *index;
  __device__ ring_columns(const ht_store_view &a, const ht_slice_info &s, int) : index(a.index + (int64_t)s.index * HT_WARP) {}
  // ahead: units of the slice from the ring's place on
  template <int COUNT, class Number>
  __device__ void gather(const matrix_ring<SHAPE> &ring, const units_known &known, const Number *p, int unit, int ahead, int lane,
                         Number *x) const {
    uint32_t at[2 * COUNT];
    if (SHAPE::INDEXED) {
      ring.template read_index<COUNT>(at, ahead, lane);
    } else {
      loaded v;
      const uint32_t *from = index + unit * HT_WARP + COUNT * lane;
      v.index[0] = from[0];
      if (COUNT == 2) v.index[1] = from[1];
#pragma unroll
      for (int j = 0; j < COUNT; j++) at[2 * j] = v.index[j] & 0xffffu, at[2 * j + 1] = v.index[j] >> 16;
    }
    const Number *first = p + known.base_of(unit);
#pragma unroll
    for (int k = 0; k < 2 * COUNT; k++) x[k] = __ldg(first + at[k]);
  }
};

// A group's sum: as add_group, with what has come.
template <class SHAPE, bool ENCODED, bool SHORT, int COUNT, class Number>
__device__ inline double add_ring_group(const ht_store_view &a, const matrix_ring<SHAPE> &ring, const units_known &known, int64_t first,
                                        int unit, int ahead, int lane, const Number *x, double sum) {
  constexpr int MODE = SHAPE::MODE;
  loaded v;
  int level = MODE;
  ht_group_info info = known.info_of(unit);
  ring.template read<COUNT>(v, ahead, lane);
  if (ENCODED && MODE != LEVEL_64 && encoding_of(info) != HT_GROUP_FIXED) {
    level = max(MODE, encoding_of(info) == HT_GROUP_RAW ? (int)LEVEL_64 : (int)LEVEL_32);
    load<COUNT>(v, a, first + unit, lane, level, MODE);
  }
  double part = sum_of_products < MODE == LEVEL_16 && !ENCODED && SHORT,
         COUNT > (v, x, ENCODED ? encoding_of(info) : (int)HT_GROUP_FIXED, level);
  return fma(ENCODED ? scale_of(info, level) : fixed_scale(info, level), part, sum);
}

// Off-diagonal part of the product of a slice, lane by lane. As many groups at once as SHAPE says, the last ones perhaps fewer.
template <class SHAPE, bool BY_OFFSET, bool ENCODED, bool SHORT, class Number>
__device__ inline double add_slice(const ht_store_view &a, const ht_slice_info &s, matrix_ring<SHAPE> &ring, units_known known, int lane,
                                   const Number *p) {
  constexpr int G = SHAPE::GROUPS;
  ring_columns<SHAPE, BY_OFFSET> columns(a, s, lane);
  double sum = 0;
  for (int unit = 0; unit < s.units;) {
    int left = s.units - unit, whole = min(left / 2, G);
    bool half = left == 2 * whole + 1;
    int taken = 2 * whole + half;
    Number x[4 * G + 2];
    if (unit + taken > known.from + HT_WARP) known = units_known::of<true>(a, s, unit, lane);
    if (BY_OFFSET) { // what is gathered does not wait for the ring
#pragma unroll
      for (int g = 0; g < G; g++)
        if (g < whole) columns.template gather<2>(ring, known, p, unit + 2 * g, 2 * g, lane, x + 4 * g);
      if (half) columns.template gather<1>(ring, known, p, unit + 2 * whole, 2 * whole, lane, x + 4 * G);
      ring.wait(taken);
    } else {
      ring.wait(taken);
#pragma unroll
      for (int g = 0; g < G; g++)
        if (g < whole) columns.template gather<2>(ring, known, p, unit + 2 * g, 2 * g, lane, x + 4 * g);
      if (half) columns.template gather<1>(ring, known, p, unit + 2 * whole, 2 * whole, lane, x + 4 * G);
    }
#pragma unroll
    for (int g = 0; g < G; g++)
      if (g < whole) sum = add_ring_group<SHAPE, ENCODED, SHORT, 2>(a, ring, known, s.unit, unit + 2 * g, 2 * g, lane, x + 4 * g, sum);
    if (half) sum = add_ring_group<SHAPE, ENCODED, SHORT, 1>(a, ring, known, s.unit, unit + 2 * whole, 2 * whole, lane, x + 4 * G, sum);
    ring.release(taken);
    unit += taken;
  }
  return sum;
}

template <class SHAPE, bool SHORT, class Number>
__device__ inline double multiply_ring_slice(const ht_store_view &a, const ht_slice_info &s, matrix_ring<SHAPE> &ring,
                                             const units_known &known, int lane, const Number *p) {
  double sum;
  if (s.encoding == HT_GROUP_FIXED)
    sum = s.by_offset ? add_slice<SHAPE, true, false, SHORT>(a, s, ring, known, lane, p)
                      : add_slice<SHAPE, false, false, SHORT>(a, s, ring, known, lane, p);
  else
    sum = s.by_offset ? add_slice<SHAPE, true, true, SHORT>(a, s, ring, known, lane, p)
                      : add_slice<SHAPE, false, true, SHORT>(a, s, ring, known, lane, p);
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

} // namespace ht
