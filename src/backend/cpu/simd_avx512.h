/* The vector vocabulary of the split kernels for AVX-512 (F, BW, DQ, VL); simd_portable.h says what the names mean.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_SIMD_AVX512_H
#define HT_BACKEND_CPU_SIMD_AVX512_H
#include <immintrin.h>
#include "backend/backend.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m512d ht_vec;

INLINE ht_vec vec_zero(void) { return _mm512_setzero_pd(); }
INLINE ht_vec vec_set(double a) { return _mm512_set1_pd(a); }
INLINE ht_vec vec_add(ht_vec a, ht_vec b) { return _mm512_add_pd(a, b); }
INLINE ht_vec vec_mul(ht_vec a, ht_vec b) { return _mm512_mul_pd(a, b); }
INLINE ht_vec vec_fma(ht_vec a, ht_vec b, ht_vec c) { return _mm512_fmadd_pd(a, b, c); }

INLINE __m256i widen(const int16_t *p) { return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)); }
INLINE __m256i load_ints(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
INLINE __m256i words_16(const int16_t *head) { return _mm256_slli_epi32(widen(head), 16); }
INLINE __m256i words_32(const int16_t *head, const int16_t *mid) { return _mm256_add_epi32(words_16(head), widen(mid)); }

INLINE ht_vec vec_fixed_16(const int16_t *head) { return _mm512_cvtepi32_pd(words_16(head)); }
INLINE ht_vec vec_fixed_32(const int16_t *head, const int16_t *mid) { return _mm512_cvtepi32_pd(words_32(head, mid)); }
INLINE ht_vec vec_fixed_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  return vec_fma(_mm512_cvtepi32_pd(load_ints(tail)), vec_set(0x1p-32), vec_fixed_32(head, mid));
}
INLINE ht_vec vec_float_16(const int16_t *head) { return _mm512_cvtps_pd(_mm256_castsi256_ps(words_16(head))); }
INLINE ht_vec vec_float_32(const int16_t *head, const int16_t *mid) { return _mm512_cvtps_pd(_mm256_castsi256_ps(words_32(head, mid))); }
INLINE ht_vec vec_float_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  __m512i bits = _mm512_castpd_si512(vec_float_32(head, mid));
  return _mm512_castsi512_pd(_mm512_add_epi64(bits, _mm512_cvtepi32_epi64(load_ints(tail))));
}
INLINE ht_vec vec_raw_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  __m256i low_words = _mm256_and_si256(widen(mid), _mm256_set1_epi32(0xffff));
  __m512i high = _mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm256_or_si256(words_16(head), low_words)), 32);
  return _mm512_castsi512_pd(_mm512_or_si512(high, _mm512_cvtepu32_epi64(load_ints(tail))));
}

INLINE __m256i stride(int block) { return _mm256_mullo_epi32(_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), _mm256_set1_epi32(block)); }
INLINE void store_nodes(double *y, const ht_vec *in, int block) {
  for (int c = 0; c < block; c++) _mm512_i32scatter_pd(y + c, stride(block), in[c], 8);
}
INLINE void gather_nodes(const double *x, const uint16_t *index, ht_vec *out, int block) {
  __m256i i = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)index));
  if (block > 1) i = _mm256_mullo_epi32(i, _mm256_set1_epi32(block));
  for (int c = 0; c < block; c++) out[c] = _mm512_i32gather_pd(i, x + c, 8);
}
INLINE void vec_load_1(const double *x, ht_vec *out) { out[0] = _mm512_loadu_pd(x); }
INLINE void vec_load_2(const double *x, ht_vec *out) {
  __m512d a = _mm512_loadu_pd(x), b = _mm512_loadu_pd(x + 8);
  out[0] = _mm512_permutex2var_pd(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b);
  out[1] = _mm512_permutex2var_pd(a, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), b);
}
/* Component k of node l stands at 3 l + k: the first two vectors give lanes up to place 15, the third the rest. */
INLINE void vec_load_3(const double *x, ht_vec *out) {
  __m512d a = _mm512_loadu_pd(x), b = _mm512_loadu_pd(x + 8), c = _mm512_loadu_pd(x + 16);
  __m512d p = _mm512_permutex2var_pd(a, _mm512_set_epi64(0, 0, 15, 12, 9, 6, 3, 0), b);
  __m512d q = _mm512_permutex2var_pd(a, _mm512_set_epi64(0, 0, 0, 13, 10, 7, 4, 1), b);
  __m512d r = _mm512_permutex2var_pd(a, _mm512_set_epi64(0, 0, 0, 14, 11, 8, 5, 2), b);
  out[0] = _mm512_permutex2var_pd(p, _mm512_set_epi64(13, 10, 5, 4, 3, 2, 1, 0), c);
  out[1] = _mm512_permutex2var_pd(q, _mm512_set_epi64(14, 11, 8, 4, 3, 2, 1, 0), c);
  out[2] = _mm512_permutex2var_pd(r, _mm512_set_epi64(15, 12, 9, 4, 3, 2, 1, 0), c);
}
INLINE void vec_gather_1(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 1); }
INLINE void vec_gather_2(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 2); }
INLINE void vec_gather_3(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 3); }
INLINE void vec_store_1(double *y, const ht_vec *in) { _mm512_storeu_pd(y, in[0]); }
INLINE void vec_store_2(double *y, const ht_vec *in) { store_nodes(y, in, 2); }
INLINE void vec_store_3(double *y, const ht_vec *in) { store_nodes(y, in, 3); }

#endif
