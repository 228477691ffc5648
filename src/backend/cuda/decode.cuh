// Decoding of the store's values. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/view.h"

namespace ht {

enum { LEVEL_16, LEVEL_32, LEVEL_64 }; // ht_level

struct pair {
  double first, second;
};

__device__ inline double power_of_two(int exponent) { return __hiloint2double((1023 + exponent) << 20, 0); }

// The low and the high half of two packed 16-bit numbers, as the high half of a 32-bit one.
__device__ inline int high_first(uint32_t v) { return (int)(v << 16); }
__device__ inline int high_second(uint32_t v) { return (int)(v & 0xffff0000u); }
__device__ inline int signed_first(uint32_t v) { return (int)(int16_t)(v & 0xffffu); }
__device__ inline int signed_second(uint32_t v) { return (int)v >> 16; }

__device__ inline int encoding_of(const ht_group_info &g) { return g.encoding; }

// What a group is read at when `asked` is wanted.
__device__ inline int level_of(const ht_group_info &g, int asked) {
  int level = min(asked, (int)g.exact);
  if (encoding_of(g) == HT_GROUP_FLOAT) level = max(level, (int)LEVEL_32);
  return encoding_of(g) == HT_GROUP_RAW ? (int)LEVEL_64 : level;
}

// FIXED values are to be multiplied by this; the others stand for themselves.
__device__ inline double fixed_scale(const ht_group_info &g, int level) {
  int bits = level == LEVEL_64 ? 63 : level == LEVEL_32 ? 31 : 15;
  return power_of_two(HT_EXPONENT_BIAS - (int)g.exponent - bits);
}
__device__ inline double scale_of(const ht_group_info &g, int level) {
  return encoding_of(g) == HT_GROUP_FIXED ? fixed_scale(g, level) : 1;
}

__device__ inline double decode_64(int encoding, int high, uint32_t tail) {
  if (encoding == HT_GROUP_FIXED) return (double)(((long long)high << 32) + (long long)(int)tail);
  if (encoding == HT_GROUP_RAW) return __hiloint2double(high, (int)tail);
  return __longlong_as_double(__double_as_longlong((double)__int_as_float(high)) + (long long)(int)tail);
}

__device__ inline double decode_32(int encoding, int high) {
  return encoding == HT_GROUP_FIXED ? (double)high : (double)__int_as_float(high);
}

// RAW keeps bits, the others rounded remainders.
__device__ inline int join_first(int encoding, uint32_t head, uint32_t mid) {
  return encoding == HT_GROUP_RAW ? high_first(head) | (int)(mid & 0xffffu) : high_first(head) + signed_first(mid);
}
__device__ inline int join_second(int encoding, uint32_t head, uint32_t mid) {
  return encoding == HT_GROUP_RAW ? high_second(head) | (int)(mid >> 16) : high_second(head) + signed_second(mid);
}

// The caller's number of a row; -1 in the padding.
__device__ inline int callers_row(const ht_store_view &a, int64_t row) {
  return !a.order_16 ? a.order[row] : a.order_16[row] == HT_NO_ROW_16 ? -1 : a.order_16[row];
}

__device__ inline int scale_exponent(const ht_store_view &a, int64_t i) { return a.patches ? a.scale[i] >> 1 : a.exponent[i]; }

// The diagonal's shared bits with so many more.
template <int BITS> __device__ inline double join_diagonal(int high, int low) {
  return (double)((long long)high * (1ll << BITS) + low) * power_of_two(-HT_DIAGONAL_BITS - BITS);
}

// The diagonal, and what 32 bits have in its place: FP32 would lose more than all other entries do.
__device__ inline double diagonal_exact(const ht_store_view &a, int64_t i) {
  return join_diagonal<HT_TAIL_BITS>(a.diagonal[i], a.diagonal_tail[i]);
}
__device__ inline double diagonal_32(const ht_store_view &a, int64_t i) {
  return join_diagonal<HT_MID_BITS>(a.diagonal[i], a.diagonal_mid[i]);
}

} // namespace ht
