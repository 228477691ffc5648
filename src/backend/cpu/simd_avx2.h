/* The vector vocabulary of the split kernels for AVX2 with FMA; simd_portable.h says what the names mean.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_SIMD_AVX2_H
#define HT_BACKEND_CPU_SIMD_AVX2_H
#include <immintrin.h>
#include "backend/backend.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct ht_vec {
  __m256d lo, hi;
} ht_vec;
typedef struct ints {
  __m128i lo, hi; /* eight 32-bit integers */
} ints;

INLINE ht_vec vec_zero(void) { return (ht_vec){_mm256_setzero_pd(), _mm256_setzero_pd()}; }
INLINE ht_vec vec_set(double a) { return (ht_vec){_mm256_set1_pd(a), _mm256_set1_pd(a)}; }
INLINE ht_vec vec_add(ht_vec a, ht_vec b) { return (ht_vec){_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
INLINE ht_vec vec_mul(ht_vec a, ht_vec b) { return (ht_vec){_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)}; }
INLINE ht_vec vec_fma(ht_vec a, ht_vec b, ht_vec c) {
  return (ht_vec){_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}

INLINE __m128i load_words(const int16_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
INLINE __m128i load_ints(const int32_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
INLINE ints join_words(__m128i high, __m128i low) { return (ints){_mm_unpacklo_epi16(low, high), _mm_unpackhi_epi16(low, high)}; }

/* head << 16, and (head << 16) + mid: interleaving is cheaper than widening each; a negative mid borrows one from head. */
INLINE ints words_16(const int16_t *head) { return join_words(load_words(head), _mm_setzero_si128()); }
INLINE ints words_32(const int16_t *head, const int16_t *mid) {
  __m128i m = load_words(mid);
  return join_words(_mm_add_epi16(load_words(head), _mm_srai_epi16(m, 15)), m);
}
INLINE ht_vec to_doubles(ints i) { return (ht_vec){_mm256_cvtepi32_pd(i.lo), _mm256_cvtepi32_pd(i.hi)}; }
INLINE ht_vec floats_to_doubles(ints i) {
  return (ht_vec){_mm256_cvtps_pd(_mm_castsi128_ps(i.lo)), _mm256_cvtps_pd(_mm_castsi128_ps(i.hi))};
}

INLINE ht_vec vec_fixed_16(const int16_t *head) { return to_doubles(words_16(head)); }
INLINE ht_vec vec_fixed_32(const int16_t *head, const int16_t *mid) { return to_doubles(words_32(head, mid)); }
INLINE ht_vec vec_fixed_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ht_vec low = to_doubles((ints){load_ints(tail), load_ints(tail + 4)});
  return vec_fma(low, vec_set(0x1p-32), vec_fixed_32(head, mid));
}
INLINE ht_vec vec_float_16(const int16_t *head) { return floats_to_doubles(words_16(head)); }
INLINE ht_vec vec_float_32(const int16_t *head, const int16_t *mid) { return floats_to_doubles(words_32(head, mid)); }
INLINE __m256d add_bits(__m256d v, const int32_t *tail) {
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(v), _mm256_cvtepi32_epi64(load_ints(tail))));
}
INLINE ht_vec vec_float_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ht_vec f = vec_float_32(head, mid);
  return (ht_vec){add_bits(f.lo, tail), add_bits(f.hi, tail + 4)};
}
INLINE __m256d join_bits(__m128i high, __m128i low) {
  return _mm256_castsi256_pd(_mm256_set_m128i(_mm_unpackhi_epi32(low, high), _mm_unpacklo_epi32(low, high)));
}
INLINE ht_vec vec_raw_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ints high = join_words(load_words(head), load_words(mid));
  return (ht_vec){join_bits(high.lo, load_ints(tail)), join_bits(high.hi, load_ints(tail + 4))};
}

INLINE void vec_load_1(const double *x, ht_vec *out) { out[0] = (ht_vec){_mm256_loadu_pd(x), _mm256_loadu_pd(x + 4)}; }
INLINE void vec_store_1(double *y, const ht_vec *in) {
  _mm256_storeu_pd(y, in->lo);
  _mm256_storeu_pd(y + 4, in->hi);
}

/* Four nodes of two or three unknowns: components from consecutive memory, and back. */
INLINE void load4_2(const double *x, __m256d *c0, __m256d *c1) {
  __m256d a = _mm256_loadu_pd(x), b = _mm256_loadu_pd(x + 4);
  __m256d even = _mm256_permute2f128_pd(a, b, 0x20), odd = _mm256_permute2f128_pd(a, b, 0x31);
  *c0 = _mm256_unpacklo_pd(even, odd);
  *c1 = _mm256_unpackhi_pd(even, odd);
}
INLINE void store4_2(double *y, __m256d c0, __m256d c1) {
  __m256d even = _mm256_unpacklo_pd(c0, c1), odd = _mm256_unpackhi_pd(c0, c1);
  _mm256_storeu_pd(y, _mm256_permute2f128_pd(even, odd, 0x20));
  _mm256_storeu_pd(y + 4, _mm256_permute2f128_pd(even, odd, 0x31));
}
INLINE void load4_3(const double *x, __m256d *c0, __m256d *c1, __m256d *c2) {
  __m256d a = _mm256_loadu_pd(x), b = _mm256_loadu_pd(x + 4), c = _mm256_loadu_pd(x + 8);
  __m256d p = _mm256_blend_pd(a, b, 12), q = _mm256_permute2f128_pd(a, c, 0x21), r = _mm256_blend_pd(b, c, 12);
  *c0 = _mm256_shuffle_pd(p, q, 10);
  *c1 = _mm256_shuffle_pd(p, r, 5);
  *c2 = _mm256_shuffle_pd(q, r, 10);
}
INLINE void store4_3(double *y, __m256d c0, __m256d c1, __m256d c2) {
  __m256d p = _mm256_unpacklo_pd(c0, c1), q = _mm256_shuffle_pd(c2, c0, 10), r = _mm256_unpackhi_pd(c1, c2);
  _mm256_storeu_pd(y, _mm256_permute2f128_pd(p, q, 0x20));
  _mm256_storeu_pd(y + 4, _mm256_blend_pd(r, p, 12));
  _mm256_storeu_pd(y + 8, _mm256_permute2f128_pd(q, r, 0x31));
}
INLINE void vec_load_2(const double *x, ht_vec *out) {
  load4_2(x, &out[0].lo, &out[1].lo);
  load4_2(x + 8, &out[0].hi, &out[1].hi);
}
INLINE void vec_store_2(double *y, const ht_vec *in) {
  store4_2(y, in[0].lo, in[1].lo);
  store4_2(y + 8, in[0].hi, in[1].hi);
}
INLINE void vec_load_3(const double *x, ht_vec *out) {
  load4_3(x, &out[0].lo, &out[1].lo, &out[2].lo);
  load4_3(x + 12, &out[0].hi, &out[1].hi, &out[2].hi);
}
INLINE void vec_store_3(double *y, const ht_vec *in) {
  store4_3(y, in[0].lo, in[1].lo, in[2].lo);
  store4_3(y + 12, in[0].hi, in[1].hi, in[2].hi);
}

/* Gathers by loads and inserts: the gather instruction is slower on the processors measured (docs/decisions/0001). */
INLINE __m256d gather4(const double *a, const double *b, const double *c, const double *d) {
  __m128d low = _mm_loadh_pd(_mm_load_sd(a), b), high = _mm_loadh_pd(_mm_load_sd(c), d);
  return _mm256_set_m128d(high, low);
}
INLINE void vec_gather_1(const double *x, const uint16_t *i, ht_vec *out) {
  out->lo = gather4(x + i[0], x + i[1], x + i[2], x + i[3]);
  out->hi = gather4(x + i[4], x + i[5], x + i[6], x + i[7]);
}
INLINE void gather4_2(const double *a, const double *b, const double *c, const double *d, __m256d *c0, __m256d *c1) {
  __m256d even = _mm256_set_m128d(_mm_loadu_pd(c), _mm_loadu_pd(a)), odd = _mm256_set_m128d(_mm_loadu_pd(d), _mm_loadu_pd(b));
  *c0 = _mm256_unpacklo_pd(even, odd);
  *c1 = _mm256_unpackhi_pd(even, odd);
}
INLINE const double *node(const double *x, uint16_t i, int block) { return x + (size_t)i * (size_t)block; }
INLINE void vec_gather_2(const double *x, const uint16_t *i, ht_vec *out) {
  gather4_2(node(x, i[0], 2), node(x, i[1], 2), node(x, i[2], 2), node(x, i[3], 2), &out[0].lo, &out[1].lo);
  gather4_2(node(x, i[4], 2), node(x, i[5], 2), node(x, i[6], 2), node(x, i[7], 2), &out[0].hi, &out[1].hi);
}
INLINE void vec_gather_3(const double *x, const uint16_t *i, ht_vec *out) {
  const double *n[HT_LANES];
  for (int l = 0; l < HT_LANES; l++) n[l] = node(x, i[l], 3);
  gather4_2(n[0], n[1], n[2], n[3], &out[0].lo, &out[1].lo);
  gather4_2(n[4], n[5], n[6], n[7], &out[0].hi, &out[1].hi);
  out[2].lo = gather4(n[0] + 2, n[1] + 2, n[2] + 2, n[3] + 2);
  out[2].hi = gather4(n[4] + 2, n[5] + 2, n[6] + 2, n[7] + 2);
}

#endif
