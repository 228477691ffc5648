/* Product of one tile of the split storage, written once over the vocabulary of simd_*.h. Each instruction set's file includes
 * a vocabulary, then this, and exports the table. Lanes are rows (or nodes), sums are FP64 in a fixed order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/split.h"

/* 2^(-31-e): what one unit of a significand at the 32-bit level is worth in a group with exponent e. */
#define POWERS_4(v) (v), (v)*0x1p-1, (v)*0x1p-2, (v)*0x1p-3
#define POWERS_16(v) POWERS_4(v), POWERS_4((v)*0x1p-4), POWERS_4((v)*0x1p-8), POWERS_4((v)*0x1p-12)
#define POWERS_64(v) POWERS_16(v), POWERS_16((v)*0x1p-16), POWERS_16((v)*0x1p-32), POWERS_16((v)*0x1p-48)
static const double unit_of[256] = {POWERS_64(0x1p-31), POWERS_64(0x1p-95), POWERS_64(0x1p-159), POWERS_64(0x1p-223)};

/* Values to fetch ahead: the processors' own prefetchers give up at every page, and at 2 bytes a value these are many
 * (docs/decisions/0002). Addresses past the end are never read. */
enum { AHEAD = 1024 };

INLINE void fetch_ahead(const int16_t *head, const int16_t *mid, const int32_t *tail, const int level) {
  __builtin_prefetch(head + AHEAD);
  if (level >= HT_LEVEL_32) __builtin_prefetch(mid + AHEAD);
  if (level == HT_LEVEL_64) __builtin_prefetch(tail + AHEAD);
}

/* encoding, level and block are constants in every instance, so that the branches on them vanish. */
INLINE ht_vec decode(const ht_split_view *a, int64_t value, ht_vec unit, const int encoding, const int level) {
  const int16_t *head = a->head + value, *mid = a->mid + value;
  const int32_t *tail = a->tail + value;
  fetch_ahead(head, mid, tail, level);
  if (encoding == HT_FIXED)
    return vec_mul(level == HT_LEVEL_16   ? vec_fixed_16(head)
                   : level == HT_LEVEL_32 ? vec_fixed_32(head, mid)
                                          : vec_fixed_64(head, mid, tail),
                   unit);
  if (encoding == HT_RAW) return vec_raw_64(head, mid, tail);
  return level == HT_LEVEL_16 ? vec_float_16(head) : level == HT_LEVEL_32 ? vec_float_32(head, mid) : vec_float_64(head, mid, tail);
}

/* sum += the group's values times x, which holds one vector a component. */
INLINE void multiply_group(const ht_split_view *a, int64_t group, const ht_vec *x, ht_vec *sum, const int encoding, const int level,
                           const int block) {
  ht_vec unit = encoding == HT_FIXED ? vec_set(unit_of[a->exponent[group]]) : vec_zero();
  int64_t value = group * (block * block * HT_LANES);
  for (int i = 0; i < block; i++)
    for (int j = 0; j < block; j++, value += HT_LANES) sum[i] = vec_fma(decode(a, value, unit, encoding, level), x[j], sum[i]);
}

INLINE void load(const double *x, ht_vec *out, const int block) {
  if (block == 1) vec_load_1(x, out);
  if (block == 2) vec_load_2(x, out);
  if (block == 3) vec_load_3(x, out);
}

INLINE void gather(const double *x, const uint16_t *index, ht_vec *out, const int block) {
  if (block == 1) vec_gather_1(x, index, out);
  if (block == 2) vec_gather_2(x, index, out);
  if (block == 3) vec_gather_3(x, index, out);
}

INLINE void store(double *y, ht_vec *sum, int add, const int block) {
  if (add) {
    ht_vec old[3];
    load(y, old, block);
    for (int i = 0; i < block; i++) sum[i] = vec_add(sum[i], old[i]);
  }
  if (block == 1) vec_store_1(y, sum);
  if (block == 2) vec_store_2(y, sum);
  if (block == 3) vec_store_3(y, sum);
}

/* Two sums that alternate over the groups: one would wait for the latency of its own additions. */
INLINE const uint16_t *multiply_slice(const ht_split_view *a, const ht_slice *slice, int64_t group, const uint16_t *index, const double *x,
                                      ht_vec *sum, const int encoding, const int level, const int block) {
  ht_vec other[3], in[3];
  for (int i = 0; i < block; i++) sum[i] = other[i] = vec_zero();
  int k = 0;
  for (; k + 2 <= slice->runs; k += 2, group += 2, index += 2) {
    load(x + (size_t)index[0] * block, in, block);
    multiply_group(a, group, in, sum, encoding, level, block);
    load(x + (size_t)index[1] * block, in, block);
    multiply_group(a, group + 1, in, other, encoding, level, block);
  }
  if (k < slice->runs) {
    load(x + (size_t)index[0] * block, in, block);
    multiply_group(a, group++, in, sum, encoding, level, block);
    index++;
  }
  for (k = 0; k + 2 <= slice->gathers; k += 2, group += 2, index += 2 * HT_LANES) {
    gather(x, index, in, block);
    multiply_group(a, group, in, sum, encoding, level, block);
    gather(x, index + HT_LANES, in, block);
    multiply_group(a, group + 1, in, other, encoding, level, block);
  }
  if (k < slice->gathers) {
    gather(x, index, in, block);
    multiply_group(a, group, in, sum, encoding, level, block);
    index += HT_LANES;
  }
  for (int i = 0; i < block; i++) sum[i] = vec_add(sum[i], other[i]);
  return index;
}

/* y += delta x on the rows of a slice. */
INLINE void add_delta(const int16_t *delta, uint8_t exponent, const double *x, double *y, const int block) {
  ht_vec in[3], sum[3], unit = vec_set(unit_of[exponent]);
  load(x, in, block);
  load(y, sum, block);
  for (int r = 0; r < block; r++)
    for (int c = 0; c < block; c++, delta += HT_LANES) sum[r] = vec_fma(vec_mul(vec_fixed_16(delta), unit), in[c], sum[r]);
  store(y, sum, 0, block);
}

INLINE void multiply_tile(const ht_split_view *a, const ht_tile *t, const double *x, double *y, const int encoding, const int level,
                          const int block) {
  const uint16_t *index = a->index + t->index;
  const double *window = x + t->window * block;
  int64_t group = t->group;
  double *out = y + t->row;
  for (int64_t s = t->slice; s < t->slice + t->slices; s++, out += HT_LANES * block) {
    ht_vec sum[3];
    const ht_slice *slice = &a->slice[s];
    index = multiply_slice(a, slice, group, index, window, sum, encoding, level, block);
    group += slice->runs + slice->gathers;
    store(out, sum, t->accumulate, block);
  }
  if (level == HT_LEVEL_64)
    for (int64_t k = t->exception; k < t->exception + t->exceptions; k++)
      y[t->row + a->exception[k].row] += a->exception[k].value * x[a->exception[k].column];
  if (level < HT_LEVEL_64 && a->delta[level]) {
    const int16_t *delta = a->delta[level] + t->delta;
    const uint8_t *exponent = a->delta_exponent[level] + t->slice;
    for (int64_t i = t->row; i < t->row + t->rows; i += HT_LANES * block, delta += block * block * HT_LANES)
      add_delta(delta, *exponent++, x + i, y + i, block);
  }
}

#define INSTANCE(encoding, level, block)                                                                                                   \
  static void multiply_##encoding##_##level##_##block(const ht_split_view *a, const ht_tile *t, const double *x, double *y) {              \
    multiply_tile(a, t, x, y, HT_##encoding, HT_LEVEL_##level, block);                                                                     \
  }
#define INSTANCES(encoding, level)                                                                                                         \
  INSTANCE(encoding, level, 1)                                                                                                             \
  INSTANCE(encoding, level, 2)                                                                                                             \
  INSTANCE(encoding, level, 3)
INSTANCES(FIXED, 16)
INSTANCES(FIXED, 32)
INSTANCES(FIXED, 64)
INSTANCES(FLOAT, 16)
INSTANCES(FLOAT, 32)
INSTANCES(FLOAT, 64)
INSTANCES(RAW, 64)

#define BLOCKS(encoding, level)                                                                                                            \
  { multiply_##encoding##_##level##_1, multiply_##encoding##_##level##_2, multiply_##encoding##_##level##_3 }
#define HT_CPU_SPLIT_TABLE                                                                                                                 \
  {                                                                                                                                        \
    {                                                                                                                                      \
      {BLOCKS(FIXED, 16), BLOCKS(FIXED, 32), BLOCKS(FIXED, 64)}, {BLOCKS(FLOAT, 16), BLOCKS(FLOAT, 32), BLOCKS(FLOAT, 64)},                \
          {{NULL, NULL, NULL}, {NULL, NULL, NULL}, BLOCKS(RAW, 64)},                                                                       \
    }                                                                                                                                      \
  }
