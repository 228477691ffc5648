// The product of a warp's slices, whose values come through a ring in shared memory that the copy engine fills: what hides memory's latency
// is on its way there, and the registers are free for what is gathered from the vector. From compute capability 9.0 on.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/bulk.cuh"
#include "backend/cuda/product.cuh"

namespace ht {

// What one warp has: STAGES of up to UNITS units each, all of one slice. A stage holds tails, heads, mids and indices, as far as there are
// any.
template <int MODE_, bool INDEXED_, int UNITS_, int STAGES_, int GROUPS_> struct ring_shape {
  static constexpr int MODE = MODE_, UNITS = UNITS_, STAGES = STAGES_;
  static constexpr bool INDEXED = INDEXED_;    // most slices are by indices, which come through the ring; else most are by offsets
  static constexpr int GROUPS = GROUPS_;       // gathered for at once
  static constexpr int WORDS = HT_WARP * 4;    // of a unit's heads, mids or indices, bytes
  static constexpr int VALUES = WORDS << MODE; // of a unit, bytes
  static constexpr int HEAD = MODE == LEVEL_64 ? UNITS * 2 * WORDS : 0, MID = HEAD + UNITS * WORDS, INDEX = UNITS * VALUES;
  static constexpr int STAGE = INDEX + (INDEXED ? UNITS * WORDS : 0), BARRIERS = STAGES * STAGE;
  static constexpr int BYTES = HT_RING_BYTES(MODE, INDEXED, UNITS, STAGES);
  static_assert(BARRIERS + 8 * STAGES <= BYTES, "as the host reserves");
};

// Kept in a register, and not made again from what it came from.
__device__ inline uint32_t kept(uint32_t v) {
  asm("" : "+r"(v));
  return v;
}

template <class SHAPE> struct matrix_ring {
  static constexpr uint32_t NONE = ~0u;

  const ht_store_view &a;
  uint32_t address;
  // what is asked for next: units of a slice, and the description of the one after it
  uint32_t unit, index;
  int left;
  slice_turns ahead;
  ht_slice_info next;
  // the stage that is read
  int stage;
  uint32_t parity;

  __device__ matrix_ring(const ht_store_view &a, uint32_t address, const slice_turns &turns)
      : a(a), address(kept(address)), unit(0), index(0), left(0), ahead(turns), stage(0), parity(0) {
    if (elected())
      for (int k = 0; k < SHAPE::STAGES; k++) barrier_init(barrier(k));
    barrier_fence();
    __syncwarp();
    next = slice_at(a, ahead.slice());
    for (int k = 0; k < SHAPE::STAGES; k++) {
      ask();
      turn();
    }
    parity = 0;
  }
  __device__ uint32_t barrier(int k) const { return address + SHAPE::BARRIERS + 8 * k; }
  __device__ uint32_t memory() const { return address + stage * SHAPE::STAGE; }
  __device__ void turn() {
    stage++;
    if (stage == SHAPE::STAGES) stage = 0, parity ^= 1;
  }
  static __device__ int units_of_stage(int left) { return left <= SHAPE::UNITS ? left : SHAPE::UNITS & ~1; } // no group in two
  __device__ void copy(int units) const {
    uint32_t to = memory(), done = barrier(stage);
    int64_t word = (int64_t)unit * HT_WARP;
    bool indices = SHAPE::INDEXED && index != NONE;
    barrier_expect(done, units * (SHAPE::VALUES + (indices ? SHAPE::WORDS : 0)));
    if (indices) bulk_copy(to + SHAPE::INDEX, a.index + (int64_t)index * HT_WARP, units * SHAPE::WORDS, done);
    bulk_copy(to + SHAPE::HEAD, a.head + word, units * SHAPE::WORDS, done);
    if (SHAPE::MODE >= LEVEL_32) bulk_copy(to + SHAPE::MID, a.mid + word, units * SHAPE::WORDS, done);
    if (SHAPE::MODE == LEVEL_64) bulk_copy(to, a.tail + word, units * 2 * SHAPE::WORDS, done);
  }
  // The present stage's next units, as far as there are any.
  __device__ void ask() {
    while (left == 0 && ahead.more()) {
      unit = next.unit, left = next.units;
      if (SHAPE::INDEXED) index = next.by_offset ? NONE : next.index;
      ahead.advance();
      next = slice_at(a, ahead.slice());
    }
    if (left == 0) return;
    int units = units_of_stage(left);
    if (elected()) copy(units);
    unit += units;
    left -= units;
    if (SHAPE::INDEXED && index != NONE) index += units;
  }
  __device__ void wait() const { barrier_wait(barrier(stage), parity); }
  // Before a warp that has read nothing ends: what is on its way must arrive.
  __device__ void drain(slice_turns turns) {
    int stages = 0;
    for (; stages < SHAPE::STAGES && turns.more(); turns.advance())
      for (int rest = slice_at(a, turns.slice()).units; stages < SHAPE::STAGES && rest; stages++) rest -= units_of_stage(rest);
    for (; stages > 0; stages--, turn()) wait();
  }
  // The present stage has been read by all lanes.
  __device__ void pass() {
    __syncwarp();
    ask();
    turn();
  }
};

// What a warp knows of 32 units of a slice: a lane has one unit's. The arrays are longer than needed by as many.
struct units_known {
  int from; // unit of the slice
  uint32_t info;
  int base;

  template <bool BASES> __device__ static units_known of(const ht_store_view &a, const ht_slice_info &s, int from, int lane) {
    units_known k = {from, __ldg((const uint16_t *)(a.info + s.unit) + (from + lane)), 0};
    if (BASES && !s.by_offset) k.base = __ldg(a.base + s.index + (from + lane));
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

// What a lane's entries of a group, which begins at `unit` of the slice, meet in the vector. By offsets:
template <class Number> struct ring_offsets {
  const Number *p;
  const int4 *lists;
  uint32_t list; // the lane's
  int lead, lanes_log2, part;

  __device__ ring_offsets(const ht_store_view &a, const ht_slice_info &s, const Number *p, int lane)
      : p(p), lists((const int4 *)a.offset), lead(lead_of(a, s.row + (lane >> s.lanes_log2))), lanes_log2(s.lanes_log2),
        part(lane & (1 << s.lanes_log2) - 1) {
    list = s.index + part;
  }
  template <int UNITS> __device__ void gather(const units_known &, int unit, uint32_t, int, Number *x) const {
    const int4 *group = lists + (list + (unit / 2 << lanes_log2));
    if (UNITS == 2) {
      int4 four = __ldg(group);
      x[0] = __ldg(p + (lead + four.x)), x[1] = __ldg(p + (lead + four.y));
      x[2] = __ldg(p + (lead + four.z)), x[3] = __ldg(p + (lead + four.w));
    } else {
      int2 two = __ldg((const int2 *)group - part);
      x[0] = __ldg(p + (lead + two.x)), x[1] = __ldg(p + (lead + two.y));
    }
  }
};

// By indices, which are in the ring or in memory.
template <bool RING, class Number> struct ring_indices {
  const Number *p;
  const uint32_t *index; // of the slice

  __device__ ring_indices(const ht_store_view &a, const ht_slice_info &s, const Number *p, int)
      : p(p), index(a.index + (int64_t)s.index * HT_WARP) {}
  // from: the group's indices in the ring
  template <int UNITS> __device__ void gather(const units_known &known, int unit, uint32_t from, int lane, Number *x) const {
    uint32_t v[2];
    int base = known.base_of(unit);
    if (!RING)
      for (int j = 0; j < UNITS; j++) v[j] = __ldg(index + unit * HT_WARP + UNITS * lane + j);
    else if (UNITS == 2)
      load_shared(v[0], v[1], from + 8 * lane);
    else
      load_shared(v[0], from + 4 * lane);
#pragma unroll
    for (int j = 0; j < UNITS; j++)
      x[2 * j] = __ldg(p + (base + (int)(v[j] & 0xffffu))), x[2 * j + 1] = __ldg(p + (base + (int)(v[j] >> 16)));
  }
};

// A lane's words of the group that begins at unit `at` of a stage.
template <class SHAPE, int UNITS> __device__ inline void read_group(loaded &v, uint32_t stage, int at, int lane) {
  uint32_t words = stage + at * SHAPE::WORDS + UNITS * 4 * lane, tails = stage + 2 * at * SHAPE::WORDS + UNITS * 8 * lane;
  if (UNITS == 2) {
    load_shared(v.head[0], v.head[1], words + SHAPE::HEAD);
    if (SHAPE::MODE >= LEVEL_32) load_shared(v.mid[0], v.mid[1], words + SHAPE::MID);
    if (SHAPE::MODE == LEVEL_64) load_shared(v.tail[0], v.tail[1], tails);
  } else {
    load_shared(v.head[0], words + SHAPE::HEAD);
    if (SHAPE::MODE >= LEVEL_32) load_shared(v.mid[0], words + SHAPE::MID);
    if (SHAPE::MODE == LEVEL_64) load_shared(v.tail[0].x, v.tail[0].y, tails);
  }
}

// What of a slice is in the present stage.
struct in_stage {
  uint32_t memory;
  int64_t first; // unit of the slice
  int at, unit;  // of the stage, of the slice
  int lane;
};

// As add_group, with what has come and what was gathered.
template <class SHAPE, bool ENCODED, bool SHORT, int UNITS, class Number>
__device__ inline double add_read_group(const ht_store_view &a, const units_known &known, const in_stage &here, int ahead, const Number *x,
                                        double sum) {
  constexpr int MODE = SHAPE::MODE;
  ht_group_info info = known.info_of(here.unit + ahead);
  int level = MODE;
  loaded v;
  read_group<SHAPE, UNITS>(v, here.memory, here.at + ahead, here.lane);
  if (ENCODED && MODE != LEVEL_64 && encoding_of(info) != HT_GROUP_FIXED) {
    level = encoding_of(info) == HT_GROUP_RAW ? (int)LEVEL_64 : (int)LEVEL_32;
    load<UNITS>(v, a, here.first + here.unit + ahead, here.lane, level, MODE);
  }
  double part = sum_of_products < MODE == LEVEL_16 && !ENCODED && SHORT,
         UNITS > (v, x, ENCODED ? encoding_of(info) : (int)HT_GROUP_FIXED, level);
  return fma(ENCODED ? scale_of(info, level) : fixed_scale(info, level), part, sum);
}

// So many groups of two units, and perhaps one of one, all of whose gathers are on their way at once.
template <class SHAPE, bool ENCODED, bool SHORT, int WHOLE, int HALF, class Number, class Columns>
__device__ inline double add_batch(const ht_store_view &a, const Columns &columns, const units_known &known, const in_stage &here,
                                   double sum) {
  Number x[4 * WHOLE + 2 * HALF];
  uint32_t indices = here.memory + SHAPE::INDEX + here.at * SHAPE::WORDS;
#pragma unroll
  for (int g = 0; g < WHOLE; g++)
    columns.template gather<2>(known, here.unit + 2 * g, indices + 2 * g * SHAPE::WORDS, here.lane, x + 4 * g);
  if (HALF) columns.template gather<1>(known, here.unit + 2 * WHOLE, indices + 2 * WHOLE * SHAPE::WORDS, here.lane, x + 4 * WHOLE);
#pragma unroll
  for (int g = 0; g < WHOLE; g++) sum = add_read_group<SHAPE, ENCODED, SHORT, 2>(a, known, here, 2 * g, x + 4 * g, sum);
  if (HALF) sum = add_read_group<SHAPE, ENCODED, SHORT, 1>(a, known, here, 2 * WHOLE, x + 4 * WHOLE, sum);
  return sum;
}

// So many units, by batches of at most G groups, the last with the half one.
template <class SHAPE, bool ENCODED, bool SHORT, int G, class Number, class Columns>
__device__ inline double add_stage(const ht_store_view &a, const Columns &columns, const units_known &known, in_stage here, int units,
                                   double sum) {
  for (; units > 2 * G + 1; units -= 2 * G, here.at += 2 * G, here.unit += 2 * G)
    sum = add_batch<SHAPE, ENCODED, SHORT, G, 0, Number>(a, columns, known, here, sum);
  if (units == 2 * G + 1) return add_batch<SHAPE, ENCODED, SHORT, G, 1, Number>(a, columns, known, here, sum);
  if (units == 2 * G) return add_batch<SHAPE, ENCODED, SHORT, G, 0, Number>(a, columns, known, here, sum);
  if constexpr (G > 1) return add_stage<SHAPE, ENCODED, SHORT, G - 1, Number>(a, columns, known, here, units, sum);
  return units ? add_batch<SHAPE, ENCODED, SHORT, 0, 1, Number>(a, columns, known, here, sum) : sum;
}

// The same, a group after the other, whatever its encoding.
template <class SHAPE, class Number, class Columns>
__device__ inline double add_stage_by_group(const ht_store_view &a, const Columns &columns, const units_known &known, in_stage here,
                                            int units, double sum) {
  for (; units >= 2; units -= 2, here.at += 2, here.unit += 2)
    sum = add_batch<SHAPE, true, false, 1, 0, Number>(a, columns, known, here, sum);
  return units ? add_batch<SHAPE, true, false, 0, 1, Number>(a, columns, known, here, sum) : sum;
}

template <bool INDEXED, class Number> struct usual_columns;
template <class Number> struct usual_columns<true, Number> { typedef ring_indices<true, Number> type; };
template <class Number> struct usual_columns<false, Number> { typedef ring_offsets<Number> type; };

// The present stage's units of a slice, by its form. usual: the columns of the form that the kernel is for; the other one takes fewer
// registers than time.
template <class SHAPE, bool SHORT, class Columns, class Number>
__device__ inline double add_units_of_stage(const ht_store_view &a, const ht_slice_info &s, const Columns &usual, const units_known &known,
                                            const in_stage &here, int units, const Number *p, double sum) {
  if (s.by_offset == !SHAPE::INDEXED) {
    if (s.encoding == HT_GROUP_FIXED) return add_stage<SHAPE, false, SHORT, SHAPE::GROUPS, Number>(a, usual, known, here, units, sum);
    if (SHAPE::MODE == LEVEL_64) return add_stage<SHAPE, true, SHORT, SHAPE::GROUPS, Number>(a, usual, known, here, units, sum);
    return add_stage_by_group<SHAPE, Number>(a, usual, known, here, units, sum); // what a group lacks takes registers
  }
  if (s.by_offset) return add_stage_by_group<SHAPE, Number>(a, ring_offsets<Number>(a, s, p, here.lane), known, here, units, sum);
  units_known bases = units_known::of<true>(a, s, here.unit, here.lane);
  return add_stage_by_group<SHAPE, Number>(a, ring_indices<SHAPE::INDEXED, Number>(a, s, p, here.lane), bases, here, units, sum);
}

// Off-diagonal part of the product of a slice, in the first lane of each row; `known` are its first units.
template <class SHAPE, bool SHORT, class Number>
__device__ inline double multiply_ring_slice(const ht_store_view &a, const ht_slice_info &s, matrix_ring<SHAPE> &ring, units_known known,
                                             int lane, const Number *p) {
  typename usual_columns<SHAPE::INDEXED, Number>::type usual(a, s, p, lane);
  double sum = 0;
  for (int unit = 0, units; unit < s.units; unit += units) {
    units = ring.units_of_stage(s.units - unit);
    if (unit + units > known.from + HT_WARP) known = units_known::of<SHAPE::INDEXED>(a, s, unit, lane);
    ring.wait();
    sum = add_units_of_stage<SHAPE, SHORT>(a, s, usual, known, {ring.memory(), s.unit, 0, unit, lane}, units, p, sum);
    ring.pass();
  }
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

} // namespace ht
