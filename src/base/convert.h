/* Conversions between double and the storage formats, correctly rounded (nearest, ties to even) from double in one step.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_CONVERT_H
#define HT_BASE_CONVERT_H
#include <stdint.h>
#include <string.h>

static inline uint64_t ht_bits64(double v) {
  uint64_t b;
  memcpy(&b, &v, sizeof b);
  return b;
}
static inline double ht_from_bits64(uint64_t b) {
  double v;
  memcpy(&v, &b, sizeof v);
  return v;
}
static inline uint32_t ht_bits32(float v) {
  uint32_t b;
  memcpy(&b, &v, sizeof b);
  return b;
}
static inline float ht_from_bits32(uint32_t b) {
  float v;
  memcpy(&v, &b, sizeof v);
  return v;
}

/* Round a double to a 16-bit format with `mbits` stored significand bits and exponents emin..emax, in integer arithmetic:
 * going through float first would round twice. */
static inline uint16_t ht_round_to_16(double v, int mbits, int emin, int emax) {
  uint64_t b = ht_bits64(v), magnitude = b & 0x7fffffffffffffffu;
  uint16_t sign = (uint16_t)(b >> 48 & 0x8000u), infinity = (uint16_t)(((uint32_t)(emax - emin + 2)) << mbits);
  if (magnitude > 0x7ff0000000000000u) return (uint16_t)(sign | infinity | 1u << (mbits - 1)); /* NaN, quiet */
  if (magnitude == 0x7ff0000000000000u) return sign | infinity;
  int e = (int)(magnitude >> 52) - 1023;
  if (e > emax) return sign | infinity;
  if (e < emin - mbits - 1) return sign;                           /* below half of the smallest subnormal */
  uint64_t m = (magnitude & 0xfffffffffffffu) | 0x10000000000000u; /* double subnormals are far below any emin used here */
  int shift = 52 - mbits + (e < emin ? emin - e : 0);
  uint64_t kept = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) kept++;
  /* For a normal result `kept` still holds the hidden bit, which adds 1 to the exponent field; a carry does so again. */
  return (uint16_t)(sign | ((e < emin ? 0 : (uint32_t)(e - emin) << mbits) + (uint32_t)kept));
}

static inline uint16_t ht_store_f16(double v) { return ht_round_to_16(v, 10, -14, 15); }
static inline uint16_t ht_store_bf16(double v) { return ht_round_to_16(v, 7, -126, 127); }
static inline float ht_store_f32(double v) { return (float)v; }
static inline double ht_store_f64(double v) { return v; }

static inline double ht_load_bf16(uint16_t h) { return (double)ht_from_bits32((uint32_t)h << 16); }
static inline double ht_load_f32(float v) { return (double)v; }
static inline double ht_load_f64(double v) { return v; }
static inline double ht_load_f16(uint16_t h) {
  uint64_t sign = (uint64_t)(h & 0x8000u) << 48;
  uint32_t e = h >> 10 & 31u, m = h & 1023u;
  if (e == 31) return ht_from_bits64(sign | 0x7ff0000000000000u | (uint64_t)m << 42);
  double v = e ? ht_from_bits64((uint64_t)(e + 1008) << 52 | (uint64_t)m << 42) : (double)m * 0x1p-24;
  return ht_from_bits64(sign | ht_bits64(v));
}

#endif
