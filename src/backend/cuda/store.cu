// Building the store from rows of the CSR, and its product. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/product.cuh"
#include <limits.h>

using namespace ht;

namespace {

enum { WARPS = 8, NONE = 0x7fffffff, FARTHEST = 65535 };
constexpr double KEPT = 0.125; // of a diagonal entry: what A times ones may be where constants are kept

__device__ inline int exponent_of(double v) { return (int)(__double2hiint(v) >> 20 & 2047) - 1023; }

// Walks the off-diagonal entries of a row that belong to one of its lanes, or all of them.
struct walker {
  const ht_store_view &a;
  const ht_rows_view &rows;
  int64_t row;     // in solver order
  int64_t at, end; // into rows.columns
  int lanes, lane; // of the row
  int number;      // of the entry at `at`, the diagonal not counted
  int whole;       // entries of a row before its ragged ones
  int own;         // first row of the patch
  int halo, halo_end;

  __device__ walker(const ht_store_view &a, const ht_rows_view &rows, const ht_slice_info &s, int warp_lane, bool whole_row)
      : a(a), rows(rows) {
    row = s.row + (warp_lane >> s.lanes_log2);
    lanes = whole_row ? 1 : 1 << s.lanes_log2;
    lane = warp_lane & (lanes - 1);
    int64_t local = row - a.slice[rows.first_slice].row;
    at = rows.start[local] - rows.start[0];
    end = rows.start[local + 1] - rows.start[0];
    number = 0;
    whole = a.ragged ? 2 * lanes * s.units : INT_MAX;
    int64_t patch = a.patches ? row / a.patch_rows : 0;
    own = (int)(patch * a.patch_rows);
    halo = a.patches ? a.halo_start[patch] : 0;
    halo_end = a.patches ? a.halo_start[patch + 1] : 0;
    settle();
  }
  __device__ bool is_mine() const { return ((number < whole ? number >> 1 : number) & lanes - 1) == lane; }
  __device__ bool is_diagonal() const { return rows.columns[at] == row; }
  // To the next entry that is this lane's, from `at` on.
  __device__ void settle() {
    while (at < end) {
      if (!is_diagonal()) {
        if (is_mine()) return;
        number++;
      }
      at++;
    }
  }
  __device__ void advance() {
    number++;
    at++;
    settle();
  }
  // Whether that number, which column() gave, is the column's: a patch may have been made for another pattern.
  __device__ bool is_listed(int c) const {
    return !a.patches || (c < a.patch_rows                     ? own + c
                          : halo + c - a.patch_rows < halo_end ? halo_row(a, (int)(halo + c - a.patch_rows))
                                                               : -1) == rows.columns[at];
  }
  // The column's number in the store: in solver order, or in the patch's list.
  __device__ int column() const {
    if (at >= end) return NONE;
    int c = rows.columns[at];
    if (!a.patches) return c;
    if (c >= own && c < own + a.patch_rows) return c - own;
    int low = halo, high = halo_end - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (halo_row(a, middle) < c)
        low = middle + 1;
      else
        high = middle;
    }
    return (int)a.patch_rows + low - halo;
  }
};

__device__ inline int warp_min(int v) { return __reduce_min_sync(~0u, v); }
__device__ inline int warp_max(int v) { return __reduce_max_sync(~0u, v); }

// Sum over the lanes of a row, in its first lane.
__device__ inline double row_sum(double v, int lanes_log2) {
  for (int width = 1 << lanes_log2 >> 1; width > 0; width >>= 1) v += __shfl_down_sync(~0u, v, width);
  return v;
}

struct entry {
  int column; // in the store, NONE when there is none
  int global; // in solver order
  double value;
};

__device__ inline entry entry_at(const walker &w, int column) {
  int global = w.rows.columns[w.at];
  return {column, global, w.rows.values ? scalbn(w.rows.values[w.at], -(scale_exponent(w.a, w.row) + scale_exponent(w.a, global))) : 0};
}

// Up to `most` entries of each lane for the next group, whose first column is returned; NONE when the slice is through.
__device__ inline int next_group(walker &w, entry taken[HT_GROUP_ENTRIES], int most, const ht_store_view &a) {
  int base = warp_min(w.column());
  if (a.patches && base != NONE) base = 0;
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) {
    int c = w.column();
    taken[k] = {NONE, 0, 0};
    if (k >= most || c == NONE || c < base || c - base > FARTHEST) continue;
    taken[k] = entry_at(w, c);
    w.advance();
  }
  return base;
}

// The offset of the next slot, the smallest that a row of the slice has; NONE when the slice is through. *mine: the lane's row has it.
__device__ inline int next_offset(const walker &w, bool *mine) {
  int column = w.column(), offset = column == NONE ? NONE : column - lead_of(w.a, (int)w.row), next = warp_min(offset);
  *mine = offset == next && column != NONE;
  return next;
}

// As next_group, for a slice by offsets: each of the row's lanes in turn gets so many slots; `list` takes the offsets, or is NULL. A slot
// that is left over repeats the last offset.
__device__ inline void next_slots(walker &w, entry taken[HT_GROUP_ENTRIES], int each, int lane, int lanes, int &last, int32_t *list) {
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) taken[k] = {NONE, 0, 0};
  for (int k = 0; k < each * lanes; k++) {
    bool mine;
    int offset = next_offset(w, &mine);
    if (offset == NONE) offset = last;
    last = offset;
    if (list && (threadIdx.x & 31) == 0) list[k] = offset;
    if (!mine) continue;
    if (k / each == lane) taken[k % each] = entry_at(w, w.column());
    w.advance();
  }
}

// The number of slots that the slice needs by offsets and their hash, or 0 where that takes more bytes than indices do: eight a slot
// against ten an entry of the longest row, at 64 bits. Every lane's column must exist, whether its row has an entry there or not.
__device__ inline int count_slots(const ht_store_view &a, const ht_rows_view &rows, const ht_slice_info &s, uint64_t *hash) {
  walker w(a, rows, s, threadIdx.x & 31, true);
  int lead = lead_of(a, (int)w.row), slots = 0, most = warp_max((int)min((int64_t)INT_MAX / 8, w.end - w.at)) * 5 / 4;
  uint64_t h = 0xcbf29ce484222325ull; // FNV-1a by words
  while (true) {
    bool mine;
    int offset = next_offset(w, &mine);
    if (offset == NONE) break;
    if (++slots > most || !__all_sync(~0u, lead + (int64_t)offset >= 0 && lead + (int64_t)offset < a.padded)) return 0;
    h = (h ^ (uint32_t)offset) * 0x100000001b3ull;
    h ^= h >> 32;
    if (mine) w.advance();
  }
  *hash = h ? h : 1;
  return slots;
}

} // namespace

namespace {

// The entries of a row of up to WIDTH * MOST by their columns' places, which are distinct: each goes to the number of those below it. All
// are read before one is written, so that `from` may be where they go.
template <int WIDTH, int MOST>
__device__ inline void sort_row(const ht_store_view &a, const ht_rows_view &rows, const int32_t *from, int64_t begin, int length) {
  int lane = threadIdx.x & WIDTH - 1, place[MOST], rank[MOST];
  double value[MOST];
  for (int k = 0; k < MOST; k++) {
    int e = lane + WIDTH * k;
    place[k] = e < length ? rows.position[from[begin + e]] : INT_MAX;
    if (rows.values) value[k] = e < length ? rows.values[begin + e] : 0;
    rank[k] = 0;
  }
  for (int j = 0; j < MOST; j++)
    for (int other = 0; other < WIDTH; other++) {
      int p = __shfl_sync(~0u, place[j], other, WIDTH);
      for (int k = 0; k < MOST; k++) rank[k] += p < place[k];
    }
  __syncwarp();
  for (int k = 0; k < MOST; k++) {
    if (lane + WIDTH * k >= length) continue;
    const_cast<int32_t *>(rows.columns)[begin + rank[k]] = place[k];
    if (rows.values) const_cast<double *>(rows.values)[begin + rank[k]] = value[k];
  }
}

} // namespace

// `count` rows, their columns in the caller's numbers: in solver order, and ascending there, into rows.columns, and rows.values, if it is
// there, along with them. from: the columns of the first row, which may be rows.columns. Longer rows than HT_SORTED_MOST ascend already.
// Four rows a warp, side by side where all of them are short.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_sort(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_rows_view rows, int64_t count, const int32_t *from) {
  enum { ROWS = 4, SHORT = 32 / ROWS };
  int lane = threadIdx.x & 31;
  for (int64_t first = ROWS * ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32); first < count; first += ROWS * (int64_t)gridDim.x * WARPS) {
    int64_t row = min(first + lane / SHORT, count - 1), begin = rows.start[row] - rows.start[0];
    int length = first + lane / SHORT < count ? (int)(rows.start[row + 1] - rows.start[0] - begin) : 0;
    if (warp_max(length) <= SHORT) {
      sort_row<SHORT, 1>(a, rows, from, begin, length);
      continue;
    }
    for (int k = 0; k < ROWS; k++) {
      int own = __shfl_sync(~0u, length, k * SHORT);
      int64_t at = __shfl_sync(~0u, begin, k * SHORT);
      if (own <= 32)
        sort_row<32, 1>(a, rows, from, at, own);
      else if (own <= 96)
        sort_row<32, 3>(a, rows, from, at, own);
      else if (own <= HT_SORTED_MOST)
        sort_row<32, HT_SORTED_MOST / 32>(a, rows, from, at, own);
      else
        for (int e = lane; e < own; e += 32) const_cast<int32_t *>(rows.columns)[at + e] = rows.position[from[at + e]];
    }
  }
}

namespace {

// With patches, where a column's number has 16 bits.
__device__ inline ht_slice_count count_in_patch(const ht_store_view &a, const ht_rows_view &rows, const ht_slice_info &s) {
  int lane = threadIdx.x & 31, lanes = 1 << s.lanes_log2, entries = 0;
  for (walker w(a, rows, s, lane, false); w.at < w.end; w.advance()) entries++;
  for (int width = lanes >> 1; width > 0; width >>= 1) entries += __shfl_xor_sync(~0u, entries, width);
  int steps = warp_max((entries + lanes - 1) / lanes); // of an entry a lane
  if (!a.ragged) return {0, (uint32_t)(steps + 1) / 2, 0};
  int units = max(steps - 1, 0) / 2, rest = max(entries - 2 * lanes * units, 0);
  return {0, (uint32_t)units, __reduce_add_sync(~0u, lane & lanes - 1 ? 0u : (uint32_t)rest)};
}

} // namespace

// Whether a slice is stored by offsets, and its units.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_count(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_rows_view rows, ht_slice_count *counts) {
  int64_t slice = rows.first_slice + (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  if (slice >= rows.first_slice + rows.slices) return;
  ht_slice_info s = a.slice[slice];
  if (a.patches) {
    ht_slice_count count = count_in_patch(a, rows, s);
    if ((threadIdx.x & 31) == 0) counts[slice] = count;
    return;
  }
  uint64_t hash = 0;
  int slots = count_slots(a, rows, s, &hash);
  if (slots) {
    int a_unit = 2 << s.lanes_log2;
    if ((threadIdx.x & 31) == 0) counts[slice] = {hash, (uint32_t)((slots + a_unit - 1) / a_unit), 0};
    return;
  }
  walker w(a, rows, s, threadIdx.x & 31, false);
  entry taken[HT_GROUP_ENTRIES];
  uint32_t count = 0;
  bool whole = true;
  while (next_group(w, taken, HT_GROUP_ENTRIES, a) != NONE) {
    whole = __any_sync(~0u, taken[2].column != NONE || taken[3].column != NONE);
    count += 2;
  }
  if ((threadIdx.x & 31) == 0) counts[slice] = {0, count - !whole, 0};
}

namespace {

struct segments {
  uint32_t head, mid, tail; // 16, 16 and 32 bits
  double at_16, at_32;      // what the lower levels give
};

// v = m 2^-(63+e) with m the 64-bit sum of the segments, each the rounded remainder of the one before.
__device__ inline segments encode_fixed(double v, int e) {
  long long m = (long long)scalbn(v, 63 + e), rest;
  int head = (int)((m + (1ll << 47)) >> 48);
  rest = m - ((long long)head << 48);
  int mid = (int)((rest + (1ll << 31)) >> 32);
  if (mid == 32768) { // a tie that would not fit
    head++;
    rest -= 1ll << 48;
    mid = -32768;
  }
  int tail = (int)(rest - ((long long)mid << 32));
  return {(uint32_t)head & 0xffffu, (uint32_t)mid & 0xffffu, (uint32_t)tail, scalbn((double)head, -15 - e),
          scalbn((double)(head * 65536 + mid), -31 - e)};
}

__device__ inline segments encode_float(double v) {
  float f = (float)v;
  uint32_t bits = __float_as_uint(f), head = (bits + 0x8000u) >> 16, mid = bits - (head << 16);
  long long tail = __double_as_longlong(v) - __double_as_longlong((double)f);
  return {head & 0xffffu, mid & 0xffffu, (uint32_t)(int)tail, (double)f, (double)f};
}

__device__ inline segments encode_raw(double v) {
  uint32_t high = (uint32_t)__double2hiint(v);
  return {high >> 16, high & 0xffffu, (uint32_t)__double2loint(v), v, v};
}

__device__ inline segments encode(double v, int encoding, int e) {
  return encoding == HT_GROUP_FIXED ? encode_fixed(v, e) : encoding == HT_GROUP_FLOAT ? encode_float(v) : encode_raw(v);
}

// The exponent that makes every value of the group at most 1 - 2^-14, so that rounding to 16 bits cannot overflow.
__device__ inline int group_exponent(const entry taken[HT_GROUP_ENTRIES]) {
  int most = -2000;
  for (int k = 0; k < HT_GROUP_ENTRIES; k++)
    if (taken[k].value != 0) {
      int x = exponent_of(taken[k].value) + 1;
      most = max(most, scalbn(fabs(taken[k].value), -x) > 1 - 0x1p-14 ? x + 1 : x);
    }
  most = warp_max(most);
  return most == -2000 ? 0 : -most;
}

__device__ inline int choose_encoding(const entry taken[HT_GROUP_ENTRIES], int e) {
  bool fixed = e >= -HT_EXPONENT_BIAS && e <= HT_EXPONENT_MOST, normal = true;
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) {
    double v = taken[k].value, whole = fixed ? scalbn(v, 63 + e) : 0, size = fabs(v);
    fixed = fixed && whole == rint(whole);
    normal = normal && (size == 0 || (size >= 0x1p-126 && size < 0x1p127));
  }
  return __all_sync(~0u, fixed) ? HT_GROUP_FIXED : __all_sync(~0u, normal) ? HT_GROUP_FLOAT : HT_GROUP_RAW;
}

// What a warp learns about its slice.
struct learned {
  double error_16, error_32; // of the lane's row: squares
  double delta_16, delta_32; // of the lane's row: A less the level, times ones; at 32 bits in the row's own unknown of each node
  double constant;           // of the lane's row: A times ones, without the diagonal, in units of the scaled row
  int exact_16, exact_32;    // of the lane's entries
  int read[3];               // of the slice's groups, what is read when this level is asked for, in entries of 16 bits
  int encoding;              // the highest
};

__device__ inline int exact_level(const segments s[HT_GROUP_ENTRIES]) {
  uint32_t mid = 0, tail = 0;
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) mid |= s[k].mid, tail |= s[k].tail;
  return __any_sync(~0u, tail != 0) ? LEVEL_64 : __any_sync(~0u, mid != 0) ? LEVEL_32 : LEVEL_16;
}

__device__ inline void write_indices(const ht_store_view &a, int64_t unit, bool whole, int lane, int base,
                                     const entry taken[HT_GROUP_ENTRIES]) {
  if (lane == 0 && a.base) a.base[unit] = base == NONE ? 0 : base; // NONE: no entry, as under a pattern of narrower rows
  for (int j = 0; j < (whole ? 2 : 1); j++) {
    uint32_t index[2];
    for (int k = 0; k < 2; k++) index[k] = taken[2 * j + k].column == NONE ? 0 : (uint32_t)(taken[2 * j + k].column - base);
    a.index[unit * HT_WARP + (whole ? 2 * lane + j : lane)] = index[0] | index[1] << 16;
  }
}

__device__ inline void write_values(const ht_store_view &a, int64_t unit, bool whole, int lane, const segments s[HT_GROUP_ENTRIES]) {
  for (int j = 0; j < (whole ? 2 : 1); j++) {
    int64_t at = unit * HT_WARP + (whole ? 2 * lane + j : lane);
    const segments &first = s[2 * j], &second = s[2 * j + 1];
    a.head[at] = first.head | second.head << 16;
    a.mid[at] = first.mid | second.mid << 16;
    a.tail[at] = (int64_t)((uint64_t)first.tail | (uint64_t)second.tail << 32);
  }
}

// A slice's ragged entries. More than there were when the pattern was met are not stored, which verify tells.
__device__ inline void write_ragged(const ht_store_view &a, int64_t slice, int lane, const entry taken[HT_GROUP_ENTRIES],
                                    const segments s[HT_GROUP_ENTRIES]) {
  ht_lanes has = {__ballot_sync(~0u, taken[0].column != NONE), __ballot_sync(~0u, taken[1].column != NONE)};
  if (__popc(has.first) + __popc(has.second) > a.slice[slice + 1].index - a.slice[slice].index) has = {0, 0};
  if (lane == 0) a.has[slice] = has;
  __syncwarp();
  for (int k = 0; k < 2; k++) {
    ragged_place place(a, slice, lane, k);
    if (!place.is_there) continue;
    ((uint16_t *)a.index)[place.at] = (uint16_t)taken[k].column;
    ((uint16_t *)a.head)[place.at] = (uint16_t)s[k].head;
    ((uint16_t *)a.mid)[place.at] = (uint16_t)s[k].mid;
    ((uint32_t *)a.tail)[place.at] = s[k].tail;
  }
}

// Whether they stand for the same component, where a node has several unknowns: consecutive ones as the caller numbers them.
__device__ inline bool same_unknown(const ht_store_view &a, int64_t row, int64_t column) {
  return a.node == 1 || callers_row(a, row) % a.node == callers_row(a, column) % a.node;
}

// The values of a group, and how they are described.
__device__ inline ht_group_info encode_group(const ht_store_view &a, const walker &w, int base, const entry taken[HT_GROUP_ENTRIES],
                                             int exactness_flags, segments s[HT_GROUP_ENTRIES], learned &l) {
  int e = group_exponent(taken), encoding = choose_encoding(taken, e);
  int last = base;
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) {
    s[k] = encode(taken[k].value, encoding, e);
    if (taken[k].column != NONE) last = max(last, taken[k].column);
  }
  last = warp_max(last);
  int exact = encoding == HT_GROUP_RAW ? LEVEL_64 : exact_level(s);
  if (encoding == HT_GROUP_FLOAT) exact = max(exact, (int)LEVEL_32);
  for (int k = 0; k < HT_GROUP_ENTRIES; k++) {
    if (taken[k].column == NONE) continue;
    double low = taken[k].value - s[k].at_16, middle = taken[k].value - s[k].at_32;
    l.error_16 += low * low;
    l.error_32 += middle * middle;
    int shift = scale_exponent(a, taken[k].global) - scale_exponent(a, w.row);
    l.delta_16 += scalbn(low, shift);
    if (same_unknown(a, w.row, taken[k].global)) l.delta_32 += scalbn(middle, shift);
    l.constant += scalbn(taken[k].value, shift);
    l.exact_16 += exact == LEVEL_16;
    l.exact_32 += exact <= LEVEL_32;
  }
  if (!exactness_flags) exact = LEVEL_64;
  l.encoding = max(l.encoding, encoding);
  int span = last / 64 - base / 64 + 1;
  return {(uint8_t)(encoding == HT_GROUP_FIXED ? e + HT_EXPONENT_BIAS : 0), (uint8_t)encoding, (uint8_t)exact,
          (uint8_t)min(span, (int)HT_SPAN_MOST)};
}

__device__ inline void describe(const ht_store_view &a, int64_t at, ht_group_info info, int entries, learned &l) {
  a.info[at] = info;
  for (int asked = LEVEL_16; asked <= LEVEL_64; asked++) l.read[asked] += entries << level_of(info, asked);
}

__device__ inline void fill_group(const ht_store_view &a, const walker &w, int64_t unit, bool whole, int lane, int base,
                                  const entry taken[HT_GROUP_ENTRIES], int exactness_flags, learned &l) {
  segments s[HT_GROUP_ENTRIES];
  ht_group_info info = encode_group(a, w, base, taken, exactness_flags, s, l);
  write_values(a, unit, whole, lane, s);
  if (lane == 0) describe(a, unit, info, whole ? 4 * HT_WARP : 2 * HT_WARP, l);
}

__device__ inline void fill_ragged(const ht_store_view &a, walker &w, int64_t slice, int lane, int exactness_flags, learned &l) {
  entry taken[HT_GROUP_ENTRIES];
  segments s[HT_GROUP_ENTRIES];
  next_group(w, taken, 2, a);
  ht_group_info info = encode_group(a, w, 0, taken, exactness_flags, s, l);
  write_ragged(a, slice, lane, taken, s);
  if (lane == 0) describe(a, a.units + slice, info, (int)(a.slice[slice + 1].index - a.slice[slice].index), l);
}

__device__ inline uint16_t to_bf16(double x) { return (uint16_t)((__float_as_uint((float)x) + 0x8000u) >> 16); }

// The diagonal d with what is added to it at 16 and at 32 bits.
__device__ inline void write_diagonals(const ht_store_view &a, int64_t row, double d, double delta_16, double delta_32) {
  double at_32 = d + delta_32;
  int high = __double2int_rn(scalbn(at_32, HT_DIAGONAL_BITS));
  double shared = join_diagonal<0>(high, 0);
  a.diagonal[row] = high;
  a.diagonal_mid[row] = (int16_t)min(__double2int_rn(scalbn(at_32 - shared, HT_DIAGONAL_BITS + HT_MID_BITS)), 32767);
  a.diagonal_tail[row] = __double2int_rn(scalbn(d - shared, HT_DIAGONAL_BITS + HT_TAIL_BITS));
  if (a.patches)
    a.rest_16[row] = to_bf16(d + delta_16 - shared);
  else
    a.diagonal_16[row] = (float)(d + delta_16);
}

// What a level is to add to the diagonal: where scales differ widely it would drown it, or lead beyond the reach of the tail.
__device__ inline double bounded(double delta, double most) { return fabs(delta) <= most ? delta : 0; }

// The diagonal of the lane's row and the row's errors, the largest of which stay in `error`; counts what is exact.
__device__ inline void finish_row(const ht_store_view &a, int64_t row, const double *diagonal, learned &l, int error[2]) {
  double d = diagonal[row];
  write_diagonals(a, row, d, bounded(l.delta_16, 1), bounded(l.delta_32, 0x1p-23));
  double off_16 = (a.patches ? patch_diagonal_at(a, row, LEVEL_16) : diagonal_at(a, row, LEVEL_16)) - d;
  double off_32 = (a.patches ? patch_diagonal_at(a, row, LEVEL_32) : diagonal_at(a, row, LEVEL_32)) - d;
  double e32 = l.error_32 + off_32 * off_32, e16 = fmax(l.error_16 + off_16 * off_16, e32);
  error[0] = __float_as_int(__double2float_ru(sqrt(e16)));
  error[1] = __float_as_int(__double2float_ru(sqrt(e32)));
  atomicMax((int *)&a.error_16[row / 64], error[0]);
  atomicMax((int *)&a.error_32[row / 64], error[1]);
  l.exact_16 += (double)(float)d == d;
  l.exact_32 += off_32 == 0;
}

} // namespace

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_fill(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_rows_view rows, const double *diagonal,
                  int exactness_flags, ht_slice_info *slices, unsigned long long *counts) {
  __shared__ unsigned int sums[HT_COUNT_WRONG]; // and behind them the largest errors
  int lane = threadIdx.x & 31;
  int64_t slice = rows.first_slice + (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  if (threadIdx.x < HT_COUNT_WRONG) sums[threadIdx.x] = 0;
  __syncthreads();
  if (slice < rows.first_slice + rows.slices) {
    ht_slice_info s = a.slice[slice];
    walker w(a, rows, s, lane, s.by_offset);
    learned l = {};
    entry taken[HT_GROUP_ENTRIES];
    int lanes = 1 << s.lanes_log2, last_offset = 0;
    int32_t *list = s.owner ? a.offset + 4 * (int64_t)s.index : nullptr;
    for (int64_t begin = s.unit, unit = begin, end = begin + s.units; unit < end; unit += 2) {
      bool whole = unit + 1 < end;
      int base = 0;
      if (s.by_offset) {
        next_slots(w, taken, whole ? 4 : 2, lane & lanes - 1, lanes, last_offset, list ? list + 2 * (unit - begin) * lanes : nullptr);
      } else {
        base = next_group(w, taken, whole ? 4 : 2, a);
        write_indices(a, a.patches ? unit : s.index + unit - begin, whole, lane, base, taken);
      }
      fill_group(a, w, unit, whole, lane, base, taken, exactness_flags, l);
    }
    if (a.ragged) fill_ragged(a, w, slice, lane, exactness_flags, l);
    l.error_16 = row_sum(l.error_16, s.lanes_log2);
    l.error_32 = row_sum(l.error_32, s.lanes_log2);
    l.delta_16 = row_sum(l.delta_16, s.lanes_log2);
    l.delta_32 = row_sum(l.delta_32, s.lanes_log2);
    l.constant = row_sum(l.constant, s.lanes_log2);
    bool keeps = false;
    int error[2] = {0, 0};
    if ((lane & (1 << s.lanes_log2) - 1) == 0 && callers_row(a, w.row) >= 0) {
      finish_row(a, w.row, diagonal, l, error);
      keeps = fabs(diagonal[w.row] + l.constant) <= KEPT * diagonal[w.row];
    }
    if (lane == 0) slices[slice].encoding = (uint8_t)l.encoding;
    atomicAdd(&sums[HT_COUNT_EXACT_16], (unsigned)l.exact_16);
    atomicAdd(&sums[HT_COUNT_EXACT_32], (unsigned)l.exact_32);
    atomicAdd(&sums[HT_COUNT_CONSTANT], (unsigned)keeps);
    for (int k = 0; k < 3 && lane == 0; k++) atomicAdd(&sums[HT_COUNT_READ + k], (unsigned)l.read[k]);
    for (int k = 0; k < 2; k++) atomicMax(&sums[HT_COUNT_ERROR_16 + k], (unsigned)warp_max(error[k]));
  }
  __syncthreads();
  if (threadIdx.x >= HT_COUNT_WRONG || !sums[threadIdx.x]) return;
  if (threadIdx.x < HT_COUNT_FILL)
    atomicAdd(&counts[threadIdx.x], (unsigned long long)sums[threadIdx.x]);
  else
    atomicMax(&counts[threadIdx.x], (unsigned long long)sums[threadIdx.x]);
}

namespace {

struct decoded {
  double value[HT_GROUP_ENTRIES];
  uint32_t index[HT_GROUP_ENTRIES];
  int base;
};

template <int UNITS, class Columns>
__device__ inline void decode_group(const ht_store_view &a, int64_t unit, int lane, const Columns &columns, decoded &d) {
  ht_group_info info = a.info[unit];
  loaded v;
  load<UNITS>(v, a, unit, lane, LEVEL_64);
  d.base = columns.template fetch<UNITS>(a, unit, lane, d.index);
  for (int j = 0; j < UNITS; j++) {
    pair both = decode(v, j, encoding_of(info), LEVEL_64);
    d.value[2 * j] = both.first * scale_of(info, LEVEL_64), d.value[2 * j + 1] = both.second * scale_of(info, LEVEL_64);
  }
}

template <class Columns>
__device__ inline decoded decode_group(const ht_store_view &a, int64_t unit, bool whole, int lane, const Columns &columns) {
  decoded d;
  if (whole)
    decode_group<2>(a, unit, lane, columns, d);
  else
    decode_group<1>(a, unit, lane, columns, d);
  return d;
}

// From the value that the walker stands at.
__device__ inline bool differs(const walker &w, double value) {
  return scalbn(value, scale_exponent(w.a, w.row) + scale_exponent(w.a, w.rows.columns[w.at])) != w.rows.values[w.at];
}

// Of so many decoded entries of the lane, those that are wrong.
__device__ inline unsigned verify_entries(walker &w, const decoded &d, int count) {
  unsigned bad = 0;
  for (int k = 0; k < count; k++) {
    int c = w.column();
    if (c != NONE && c >= d.base && c - d.base <= FARTHEST) {
      bad += differs(w, d.value[k]) || (uint32_t)(c - d.base) != d.index[k] || !w.is_listed(c);
      w.advance();
    } else
      bad += d.value[k] != 0;
  }
  return bad;
}

template <class Columns> __device__ inline unsigned verify_by_index(walker &w, int64_t unit, bool whole, int lane, const Columns &columns) {
  return verify_entries(w, decode_group(w.a, unit, whole, lane, columns), whole ? 4 : 2);
}

__device__ inline unsigned verify_ragged(walker &w, int64_t slice, int lane) {
  ragged_unit u(w.a, slice, lane, LEVEL_64);
  return verify_entries(w, {{u.exact().first, u.exact().second}, {u.v.index[0] & 0xffffu, u.v.index[0] >> 16}, 0}, 2);
}

__device__ inline unsigned verify_by_offset(walker &w, int64_t unit, bool whole, int lane, const offsets &columns) {
  decoded d = decode_group(w.a, unit, whole, lane, columns);
  int each = whole ? 4 : 2, lanes = 1 << columns.lanes_log2;
  const int32_t *list = (const int32_t *)columns.list + 2 * (unit - columns.unit) * lanes;
  unsigned bad = 0;
  for (int k = 0; k < each * lanes; k++) {
    int c = w.column();
    bool there = c != NONE && c - columns.lead == list[k];
    if (k / each == columns.part)
      bad += d.index[k % each] != (uint32_t)list[k] || (there ? differs(w, d.value[k % each]) : d.value[k % each] != 0);
    if (there) w.advance();
  }
  return bad;
}

} // namespace

// Whether every value comes back to the bit: counts the entries that do not.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_verify(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_rows_view rows, const double *diagonal,
                    unsigned long long *wrong) {
  int lane = threadIdx.x & 31;
  int64_t slice = rows.first_slice + (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  if (slice >= rows.first_slice + rows.slices) return;
  ht_slice_info s = a.slice[slice];
  walker w(a, rows, s, lane, s.by_offset);
  unsigned bad = 0;
  for (int64_t begin = s.unit, unit = begin, end = begin + s.units; unit < end; unit += 2)
    bad += s.by_offset ? verify_by_offset(w, unit, unit + 1 < end, lane, offsets(a, s, lane))
           : a.patches ? verify_by_index(w, unit, unit + 1 < end, lane, patch_indices())
                       : verify_by_index(w, unit, unit + 1 < end, lane, indices(s));
  if (a.ragged) bad += verify_ragged(w, slice, lane);
  bad += w.at < w.end;
  if ((lane & (1 << s.lanes_log2) - 1) == 0 && callers_row(a, w.row) >= 0) bad += diagonal_exact(a, w.row) != diagonal[w.row];
  if (bad) atomicAdd(wrong, (unsigned long long)bad);
}

// Scales: |a^_ii| in [1/2, 2), but for 0, which keeps its own. given: the diagonal in the caller's order.
extern "C" __global__ void ht_store_scale(const __grid_constant__ ht_store_view a, const double *given, int16_t *scale, double *diagonal,
                                          unsigned long long *counts) {
  int most = 0, bad = 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded; i += (int64_t)gridDim.x * blockDim.x) {
    double d = callers_row(a, i) < 0 ? 0 : given[callers_row(a, i)];
    int x = 0, e;
    if (d != 0 && isfinite(d)) frexp(d, &x);
    e = x >= 0 ? x / 2 : -((1 - x) / 2);
    scale[i] = (int16_t)(a.patches ? 2 * e | scale[i] & 1 : e);
    diagonal[i] = scalbn(d, -2 * e);
    if (callers_row(a, i) >= 0) most = max(most, e + HT_EXPONENT_RANGE);
    if (abs(e) > HT_SCALE_MOST) bad = max(bad, (int)(a.padded - i));
  }
  most = warp_max(most), bad = warp_max(bad);
  if (threadIdx.x & 31) return;
  if (most) atomicMax(&counts[HT_COUNT_EXPONENT], (unsigned long long)most);
  if (bad) atomicMax(&counts[HT_COUNT_BAD], (unsigned long long)bad);
}

// Jacobi's inverse: entries in [1/2, 2], so that FP32 is a preconditioner as good as any. An empty row takes 1.
extern "C" __global__ void ht_store_invert(int64_t padded, const double *diagonal, float *inverse) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < padded; i += (int64_t)gridDim.x * blockDim.x)
    inverse[i] = diagonal[i] > 0 ? (float)(1 / diagonal[i]) : 1;
}

// to = S^sign from, into solver order (padding 0), and back to the caller's.
extern "C" __global__ void ht_store_gather(const __grid_constant__ ht_store_view a, int sign, const double *from, double *to) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded; i += (int64_t)gridDim.x * blockDim.x)
    to[i] = callers_row(a, i) < 0 ? 0 : scalbn(from[callers_row(a, i)], sign * scale_exponent(a, i));
}
extern "C" __global__ void ht_store_scatter(const __grid_constant__ ht_store_view a, int sign, const double *from, double *to) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded; i += (int64_t)gridDim.x * blockDim.x)
    if (callers_row(a, i) >= 0) to[callers_row(a, i)] = scalbn(from[i], sign * scale_exponent(a, i));
}

// y^ = A^ x^ in solver order. A patch reads all its columns at the level of the slice's own rows: column blocks are not known there.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_multiply(const __grid_constant__ ht_store_view a, const uint8_t *block_level, const double *x, double *y) {
  auto level_of_row = [&](int row) { return block_level ? (int)block_level[row / 64] : (int)LEVEL_64; };
  each_row(
      a, x,
      [&](const ht_slice_info &s, int lane, const auto &vector) {
        return vector.in_patch ? multiply_slice<BY_GROUP>(a, s, lane, nullptr, level_of_row(s.row), vector, nullptr)
                               : multiply_slice<BY_GROUP>(a, s, lane, block_level, LEVEL_64, vector, nullptr);
      },
      [&](int row, double sum) {
        int level = level_of_row(row);
        y[row] = sum + (a.patches ? patch_diagonal_at(a, row, level) : diagonal_at(a, row, level)) * x[row];
      });
}
