/* Values of one tile: encodings, and what is lost at the lower levels. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_values.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/convert.h"

enum { EXCEPTION_SHARE = 64, MOST_EXPONENT = 255, MOST_GROUP = 9 * HT_LANES };

static inline double power_of_two(int e) { return ht_from_bits64((uint64_t)(1023 + e) << 52); }

/* ---- FIXED ---- */

/* Exponent that brings the group's largest magnitude below 1 - 2^-15, so that no head overflows; -1 when it is above that. */
static int group_exponent(const double *v, int count) {
  uint64_t most = 0;
  for (int k = 0; k < count; k++) {
    uint64_t magnitude = ht_bits64(v[k]) & 0x7fffffffffffffffu;
    if (magnitude > most) most = magnitude;
  }
  if (most == 0) return 0;
  int e = 1022 - (int)(most >> 52);                      /* |v| 2^e is in [1/2, 1); 1023 and up for subnormal numbers */
  if ((most & 0xfffffffffffffu) > 0xfffc000000000u) e--; /* above 1 - 2^-15 */
  return e < 0 ? -1 : e > MOST_EXPONENT ? MOST_EXPONENT : e;
}

typedef struct seen_bits {
  int32_t mid, tail; /* any bit set so far */
} seen_bits;

/* Three signed digits of each value; returns whether a value is not exact. */
static int encode_fixed_group(const double *v, int count, int e, int16_t *head, int16_t *mid, int32_t *tail, seen_bits *seen) {
  double up = power_of_two(63 + e);
  int inexact = 0;
  int32_t mids = 0, tails = 0;
  for (int k = 0; k < count; k++) {
    double scaled = v[k] * up;
    int64_t all = llrint(scaled);
    inexact |= (double)all != scaled;
    int32_t low = (int32_t)(uint32_t)(uint64_t)all;
    int64_t high = (all - low) >> 32;
    int16_t middle = (int16_t)(uint16_t)(uint64_t)high;
    head[k] = (int16_t)((high - middle) >> 16);
    mid[k] = middle;
    tail[k] = low;
    mids |= middle;
    tails |= low;
  }
  seen->mid |= mids;
  seen->tail |= tails;
  return inexact;
}

static double decode_fixed(int e, int16_t head, int16_t mid, int32_t tail) {
  return (double)(((int64_t)head * 65536 + mid) * 4294967296 + tail) * power_of_two(-63 - e);
}

/* Put what group g does not hold on the exception list; returns 0 when the list is full. */
static int add_exceptions(ht_split_owner *s, ht_tile *t, const ht_tile_values *v, int64_t g) {
  int block = s->base.view.block, size = block * block * HT_LANES;
  const ht_group *group = &v->group[g];
  int64_t at = (t->group + g) * size;
  for (int k = 0; k < size; k++) {
    double value = v->value[g * size + k];
    double rest = value - decode_fixed(s->exponent[t->group + g], s->head[at + k], s->mid[at + k], s->tail[at + k]);
    if (rest == 0) continue;
    if (t->exceptions >= v->nonzeros / EXCEPTION_SHARE) return 0;
    int lane = k % HT_LANES, j = k / HT_LANES % block, i = k / HT_LANES / block;
    s->exception[t->exception + t->exceptions++] =
        (ht_exception){.row = (int32_t)((group->node + (int64_t)lane) * block + i - t->row),
                       .column = (int32_t)(ht_group_column(&s->base.view, t, group, lane) * block + j),
                       .value = rest};
  }
  return 1;
}

static int encode_fixed(ht_split_owner *s, ht_tile *t, const ht_tile_values *v) {
  int size = s->base.view.block * s->base.view.block * HT_LANES;
  seen_bits seen = {0, 0};
  t->exceptions = 0;
  for (int64_t g = 0; g < t->groups; g++) {
    int e = group_exponent(v->value + g * size, size);
    if (e < 0) return 0;
    int64_t at = (t->group + g) * size;
    s->exponent[t->group + g] = (uint8_t)e;
    if (encode_fixed_group(v->value + g * size, size, e, s->head + at, s->mid + at, s->tail + at, &seen) && !add_exceptions(s, t, v, g))
      return 0;
  }
  t->encoding = HT_FIXED;
  t->exact = seen.tail || t->exceptions ? HT_LEVEL_64 : seen.mid ? HT_LEVEL_32 : HT_LEVEL_16;
  return 1;
}

/* ---- FLOAT and RAW ---- */

static int encode_float(ht_split_owner *s, ht_tile *t, const ht_tile_values *v) {
  int size = s->base.view.block * s->base.view.block * HT_LANES;
  seen_bits seen = {0, 0};
  int64_t at = t->group * size;
  t->exceptions = 0;
  for (int64_t k = 0; k < t->groups * size; k++) {
    float f = (float)v->value[k];
    uint32_t bits = ht_bits32(f), head = (bits + 0x8000u) >> 16;
    if (v->value[k] != 0 && !(fabsf(f) >= FLT_MIN && (head & 0x7f80u) != 0x7f80u)) return 0;
    s->head[at + k] = (int16_t)(uint16_t)head;
    s->mid[at + k] = (int16_t)(uint16_t)(bits - (head << 16));
    s->tail[at + k] = (int32_t)(uint32_t)(ht_bits64(v->value[k]) - ht_bits64((double)f));
    seen.mid |= s->mid[at + k];
    seen.tail |= s->tail[at + k];
  }
  memset(s->exponent + t->group, 0, (size_t)t->groups);
  t->encoding = HT_FLOAT;
  t->exact = seen.tail ? HT_LEVEL_64 : seen.mid ? HT_LEVEL_32 : HT_LEVEL_16;
  return 1;
}

static void encode_raw(ht_split_owner *s, ht_tile *t, const ht_tile_values *v) {
  int size = s->base.view.block * s->base.view.block * HT_LANES;
  int64_t at = t->group * size;
  for (int64_t k = 0; k < t->groups * size; k++) {
    uint64_t bits = ht_bits64(v->value[k]);
    s->head[at + k] = (int16_t)(uint16_t)(bits >> 48);
    s->mid[at + k] = (int16_t)(uint16_t)(bits >> 32);
    s->tail[at + k] = (int32_t)(uint32_t)bits;
  }
  memset(s->exponent + t->group, 0, (size_t)t->groups);
  t->encoding = HT_RAW;
  t->exact = HT_LEVEL_64;
  t->exceptions = 0;
}

void ht_encode_tile(ht_split_owner *s, ht_tile *t, const ht_tile_values *v) {
  t->nonzeros = v->nonzeros;
  if (!encode_fixed(s, t, v) && !encode_float(s, t, v)) encode_raw(s, t, v);
}

/* ---- what is lost ---- */

/* What 16 and 32 bits lose of eight values. */
typedef struct lost {
  double at16[HT_LANES], at32[HT_LANES];
} lost;

static inline void lose_fixed(const ht_split_owner *s, int64_t at, int e, const double *v, lost *out) {
  double unit16 = power_of_two(-15 - e), unit32 = power_of_two(-31 - e);
  const int16_t *head = s->head + at, *mid = s->mid + at;
  for (int l = 0; l < HT_LANES; l++) {
    out->at16[l] = v[l] - unit16 * head[l];
    out->at32[l] = v[l] - unit32 * (head[l] * 65536 + mid[l]);
  }
}

static inline void lose_float(const ht_split_owner *s, int64_t at, const double *v, lost *out) {
  for (int l = 0; l < HT_LANES; l++) {
    uint32_t head = (uint32_t)(uint16_t)s->head[at + l] << 16;
    out->at16[l] = v[l] - (double)ht_from_bits32(head);
    out->at32[l] = v[l] - (double)ht_from_bits32(head + (uint32_t)(int32_t)s->mid[at + l]);
  }
}

/* Sums of one slice's rows, by row in the node and lane: what 16 bits lose of the row times s_j, and of the diagonal entry. */
typedef struct row_loss {
  double sum[3][HT_LANES], diagonal[3][HT_LANES];
} row_loss;

/* Where the sums of a tile go: from the first column of the chunk. */
typedef struct sums {
  const double *scale; /* from the first column of all; NULL when uniform */
  double *error16, *error32;
  int64_t low;
} sums;

/* Eight consecutive columns, none of them the diagonal: the common case, in a form that compilers vectorise. */
static inline void add_run(const lost *loss, const sums *to, int64_t column, double *restrict row) {
  double *restrict error16 = to->error16 + column - to->low, *restrict error32 = to->error32 + column - to->low;
  const double *restrict scale = to->scale ? to->scale + column : NULL;
  for (int l = 0; l < HT_LANES; l++) {
    error16[l] += loss->at16[l] * loss->at16[l];
    error32[l] += loss->at32[l] * loss->at32[l];
  }
  if (scale)
    for (int l = 0; l < HT_LANES; l++) row[l] += loss->at16[l] * scale[l];
  else
    for (int l = 0; l < HT_LANES; l++) row[l] += loss->at16[l];
}

/* Any columns. The diagonal's share of 16 bits waits for its correction; a lane without an entry adds 0. */
static inline void add_any(const lost *loss, const sums *to, const int64_t *column, int64_t first_row, int64_t row_step, double *row,
                           double *diagonal) {
  for (int l = 0; l < HT_LANES; l++) {
    row[l] += to->scale ? loss->at16[l] * to->scale[column[l]] : loss->at16[l];
    to->error32[column[l] - to->low] += loss->at32[l] * loss->at32[l];
    if (column[l] == first_row + l * row_step)
      diagonal[l] += loss->at16[l];
    else
      to->error16[column[l] - to->low] += loss->at16[l] * loss->at16[l];
  }
}

static inline void measure_group(const ht_split_owner *s, const ht_tile *t, const ht_tile_values *v, int64_t g, const sums *to,
                                 row_loss *row, const int block) {
  const ht_split_view *view = &s->base.view;
  const ht_group *group = &v->group[g];
  const double *value = v->value + g * block * block * HT_LANES;
  int64_t at = (t->group + g) * block * block * HT_LANES, node[HT_LANES];
  for (int l = 0; l < HT_LANES; l++) node[l] = ht_group_column(view, t, group, l);
  for (int i = 0; i < block; i++)
    for (int j = 0; j < block; j++, at += HT_LANES, value += HT_LANES) {
      lost loss;
      if (t->encoding == HT_FIXED)
        lose_fixed(s, at, s->exponent[t->group + g], value, &loss);
      else
        lose_float(s, at, value, &loss);
      if (block == 1 && !group->gather && node[0] != group->node) {
        add_run(&loss, to, node[0], row->sum[0]);
        continue;
      }
      int64_t column[HT_LANES];
      for (int l = 0; l < HT_LANES; l++) column[l] = node[l] * block + j;
      add_any(&loss, to, column, (int64_t)group->node * block + i, block, row->sum[i], row->diagonal[i]);
    }
}

/* Corrections of a slice's rows, and with them the loss of the diagonal. A correction above 1 is more than the diagonal that it
 * corrects (couplings to far weaker neighbours): it is left out, and the column error shows what the level then loses. */
static void finish_slice(const ht_split_owner *s, const ht_tile *t, int64_t node, const sums *to, const row_loss *loss) {
  int block = s->base.view.block;
  for (int l = 0; l < HT_LANES; l++)
    for (int i = 0; i < block; i++) {
      int64_t row = (node + l) * block + i;
      double delta = to->scale ? loss->sum[i][l] / to->scale[row] : loss->sum[i][l];
      float stored = fabs(delta) <= 1 ? (float)delta : 0;
      double rest = loss->diagonal[i][l] - (double)stored;
      s->delta16[t->delta + row - t->row] = stored;
      to->error16[row - to->low] += rest * rest;
    }
}

static inline void measure_tile(const ht_split_owner *s, const ht_tile *t, const ht_tile_values *v, const sums *to, const int block) {
  int64_t g = 0, node = t->row / block;
  for (const ht_slice *slice = s->slice + t->slice; slice < s->slice + t->slice + t->slices; slice++, node += HT_LANES) {
    row_loss loss;
    memset(&loss, 0, sizeof loss);
    for (int64_t end = g + slice->runs + slice->gathers; g < end; g++) measure_group(s, t, v, g, to, &loss, block);
    finish_slice(s, t, node, to, &loss);
  }
}

void ht_measure_tile(ht_split_owner *s, const ht_tile *t, const ht_tile_values *v, const double *scale, double *const *error2,
                     int64_t low) {
  sums to = {scale, error2[HT_LEVEL_16], error2[HT_LEVEL_32], low};
  if (t->encoding == HT_RAW || t->exact == HT_LEVEL_16) {
    memset(s->delta16 + t->delta, 0, (size_t)t->rows * sizeof *s->delta16);
    return;
  }
  if (s->base.view.block == 1) measure_tile(s, t, v, &to, 1);
  if (s->base.view.block == 2) measure_tile(s, t, v, &to, 2);
  if (s->base.view.block == 3) measure_tile(s, t, v, &to, 3);
}
