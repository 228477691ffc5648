/* The vector vocabulary of the split kernels in plain C: eight lanes in an array. The other simd_*.h give the same names.
 *
 *   ht_vec             eight doubles, one a lane
 *   vec_fixed_LEVEL    integer significands of eight FIXED values, in units of the 32-bit level: the kernel multiplies by 2^(-31-e)
 *   vec_float_LEVEL    eight FLOAT values
 *   vec_raw_64         eight RAW values
 *   vec_load_B         components of eight consecutive nodes of B unknowns, one vector a component
 *   vec_gather_B       the same for eight nodes at 16-bit indices from x
 *   vec_store_B        eight consecutive nodes
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_SIMD_PORTABLE_H
#define HT_BACKEND_CPU_SIMD_PORTABLE_H
#include "backend/backend.h"
#include "base/convert.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES for (int l = 0; l < HT_LANES; l++)

typedef struct ht_vec {
  double v[HT_LANES];
} ht_vec;

INLINE ht_vec vec_zero(void) { return (ht_vec){{0}}; }
INLINE ht_vec vec_set(double a) {
  ht_vec r;
  LANES r.v[l] = a;
  return r;
}
INLINE ht_vec vec_add(ht_vec a, ht_vec b) {
  LANES a.v[l] += b.v[l];
  return a;
}
INLINE ht_vec vec_mul(ht_vec a, ht_vec b) {
  LANES a.v[l] *= b.v[l];
  return a;
}
INLINE ht_vec vec_fma(ht_vec a, ht_vec b, ht_vec c) {
  LANES c.v[l] += a.v[l] * b.v[l];
  return c;
}

INLINE ht_vec vec_fixed_16(const int16_t *head) {
  ht_vec r;
  LANES r.v[l] = 65536.0 * head[l];
  return r;
}
INLINE ht_vec vec_fixed_32(const int16_t *head, const int16_t *mid) {
  ht_vec r;
  LANES r.v[l] = (double)(head[l] * 65536 + mid[l]);
  return r;
}
/* Exact: the whole significand has at most 53 bits, by construction of the encoding. */
INLINE ht_vec vec_fixed_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ht_vec r;
  LANES r.v[l] = (double)(head[l] * 65536 + mid[l]) + 0x1p-32 * (double)tail[l];
  return r;
}
INLINE ht_vec vec_float_16(const int16_t *head) {
  ht_vec r;
  LANES r.v[l] = (double)ht_from_bits32((uint32_t)(uint16_t)head[l] << 16);
  return r;
}
INLINE float float_32(int16_t head, int16_t mid) { return ht_from_bits32(((uint32_t)(uint16_t)head << 16) + (uint32_t)(int32_t)mid); }
INLINE ht_vec vec_float_32(const int16_t *head, const int16_t *mid) {
  ht_vec r;
  LANES r.v[l] = (double)float_32(head[l], mid[l]);
  return r;
}
INLINE ht_vec vec_float_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ht_vec r;
  LANES r.v[l] = ht_from_bits64(ht_bits64((double)float_32(head[l], mid[l])) + (uint64_t)(int64_t)tail[l]);
  return r;
}
INLINE ht_vec vec_raw_64(const int16_t *head, const int16_t *mid, const int32_t *tail) {
  ht_vec r;
  LANES r.v[l] = ht_from_bits64((uint64_t)(uint16_t)head[l] << 48 | (uint64_t)(uint16_t)mid[l] << 32 | (uint32_t)tail[l]);
  return r;
}

INLINE void load_nodes(const double *x, ht_vec *out, int block) {
  for (int c = 0; c < block; c++) LANES out[c].v[l] = x[l * block + c];
}
INLINE void gather_nodes(const double *x, const uint16_t *index, ht_vec *out, int block) {
  for (int c = 0; c < block; c++) LANES out[c].v[l] = x[(int64_t)index[l] * block + c];
}
INLINE void store_nodes(double *y, const ht_vec *in, int block) {
  for (int c = 0; c < block; c++) LANES y[l * block + c] = in[c].v[l];
}
INLINE void vec_load_1(const double *x, ht_vec *out) { load_nodes(x, out, 1); }
INLINE void vec_load_2(const double *x, ht_vec *out) { load_nodes(x, out, 2); }
INLINE void vec_load_3(const double *x, ht_vec *out) { load_nodes(x, out, 3); }
INLINE void vec_gather_1(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 1); }
INLINE void vec_gather_2(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 2); }
INLINE void vec_gather_3(const double *x, const uint16_t *index, ht_vec *out) { gather_nodes(x, index, out, 3); }
INLINE void vec_store_1(double *y, const ht_vec *in) { store_nodes(y, in, 1); }
INLINE void vec_store_2(double *y, const ht_vec *in) { store_nodes(y, in, 2); }
INLINE void vec_store_3(double *y, const ht_vec *in) { store_nodes(y, in, 3); }

#endif
