/* Values of one tile: encodings, and what is lost at the lower levels. Plain C that compilers vectorise, compiled once for any
 * processor and once for AVX2, with the same bits from both. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_values.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/convert.h"

enum { MOST_EXPONENT = 255 };

/* Four lanes, in whatever registers the processor has, and eight of 16 bits. */
typedef double v4 __attribute__((vector_size(32)));
typedef double v2 __attribute__((vector_size(16)));
typedef int64_t i4 __attribute__((vector_size(32)));
typedef int32_t s4 __attribute__((vector_size(16)));
typedef int16_t h8 __attribute__((vector_size(16)));
typedef uint16_t u8 __attribute__((vector_size(16)));

static inline double power_of_two(int e) { return ht_from_bits64((uint64_t)(1023 + e) << 52); }

/* ---- scaling ---- */

static inline int64_t scaled_by(const ht_scaling *by, int64_t group, int lane) {
  return group < by->runs ? by->index[group] + lane : by->index[by->runs + (group - by->runs) * HT_LANES + lane];
}

/* Whether all can be scaled by powers of two without leaving the normal range. */
static inline int is_far_from_ends(const ht_scaling *by, int64_t count, const double *values) {
  const i4 magnitude = (i4){0} + INT64_MAX, least = (i4){0} + ((int64_t)(by->reach + 1) << 52);
  const i4 most = (i4){0} + (((int64_t)(2047 - by->reach) << 52) - 1);
  i4 outside = {0};
  for (int64_t k = 0; k < count; k += 4) {
    i4 bits;
    memcpy(&bits, values + k, sizeof bits);
    bits &= magnitude;
    outside |= (bits > most) | ((bits < least) & (bits != 0));
  }
  return !(outside[0] | outside[1] | outside[2] | outside[3]);
}

static int scale_slowly(const ht_scaling *by, int64_t groups, double *values) {
  int lossy = 0;
  for (int64_t g = 0; g < groups; g++)
    for (int l = 0; l < HT_LANES; l++, values++)
      *values = ht_scale_down(*values, by->own_exponent[l] + by->exponent[scaled_by(by, g, l)], by->reach, &lossy);
  return lossy;
}

static inline void load_four(const double *from, v4 *to) { memcpy(to, from, sizeof *to); }

/* Adding 0 makes -0 a 0, as encodings expect. */
static inline void scale_four(double *values, const v4 *own, const v4 *other) {
  v4 v;
  load_four(values, &v);
  v = v * *own * *other + 0.0;
  memcpy(values, &v, sizeof v);
}

static int scale(const ht_scaling *by, int64_t groups, double *values) {
  const double *other = by->other;
  const uint16_t *index = by->index;
  v4 own[2], low, high;
  if (!is_far_from_ends(by, groups * HT_LANES, values)) return scale_slowly(by, groups, values);
  for (int half = 0; half < 2; half++) load_four(by->own + 4 * half, &own[half]);
  for (int64_t g = 0; g < groups; g++, values += HT_LANES) {
    if (g < by->runs) {
      load_four(other + *index, &low);
      load_four(other + *index + 4, &high);
      index++;
    } else {
      low = (v4){other[index[0]], other[index[1]], other[index[2]], other[index[3]]};
      high = (v4){other[index[4]], other[index[5]], other[index[6]], other[index[7]]};
      index += HT_LANES;
    }
    scale_four(values, &own[0], &low);
    scale_four(values + 4, &own[1], &high);
  }
  return 0;
}

/* ---- FIXED ---- */

/* Exponent that brings the group's largest magnitude below 1 - 2^-15, so that no head overflows; -1 when it is above that. */
static inline int group_exponent(const double *value, int count) {
  const i4 magnitude = (i4){0} + INT64_MAX; /* all bits but the sign: they compare as the numbers do */
  i4 largest = {0};
  for (int k = 0; k < count; k += 4) {
    i4 bits;
    memcpy(&bits, value + k, sizeof bits);
    bits &= magnitude;
    i4 more = bits > largest;
    largest = (bits & more) | (largest & ~more);
  }
  int64_t low = largest[0] > largest[1] ? largest[0] : largest[1], high = largest[2] > largest[3] ? largest[2] : largest[3];
  uint64_t bits = (uint64_t)(low > high ? low : high);
  if (bits == 0) return 0;
  int e = 1022 - (int)(bits >> 52);                      /* |v| 2^e is in [1/2, 1); 1023 and up for subnormal numbers */
  if ((bits & 0xfffffffffffffu) > 0xfffc000000000u) e--; /* above 1 - 2^-15 */
  return e < 0 ? -1 : e > MOST_EXPONENT ? MOST_EXPONENT : e;
}

/* What the values of a tile have shown so far, by lane. */
typedef struct seen_lanes {
  i4 inexact;
  s4 high, tail;
} seen_lanes;

/* The upper 32 and the lower 32 bits of four values as signed integers. Adding and subtracting 1.5 * 2^52 rounds to an integer;
 * where the rest rounds up to a whole unit it becomes the most negative number instead, and the unit is carried. */
static inline void split_four(const double *value, double up, s4 *high, s4 *tail, seen_lanes *seen) {
  v4 v;
  memcpy(&v, value, sizeof v);
  const v4 round = (v4){0} + 0x1.8p52, one = (v4){0} + 1;
  v4 scaled = v * up, upper = (scaled + round) - round, rest = (scaled - upper) * 0x1p32, low = (rest + round) - round;
  seen->inexact |= low != rest;
  v4 carry = (v4)((low == 0x1p31) & (i4)one);
  *high = __builtin_convertvector(upper + carry, s4);
  *tail = __builtin_convertvector(low - carry * 0x1p32, s4);
  seen->high |= *high;
  seen->tail |= *tail;
}

/* Three signed parts of eight values: mid is the low word of the upper half as it stands, head the high word rounded. */
static inline void encode_eight(const double *value, double up, int16_t *head, int16_t *mid, int32_t *tail, seen_lanes *seen) {
  s4 high[2], low[2];
  split_four(value, up, &high[0], &low[0], seen);
  split_four(value + 4, up, &high[1], &low[1], seen);
  h8 mids = __builtin_shufflevector((h8)high[0], (h8)high[1], 0, 2, 4, 6, 8, 10, 12, 14);
  h8 heads = __builtin_shufflevector((h8)(high[0] + 0x8000), (h8)(high[1] + 0x8000), 1, 3, 5, 7, 9, 11, 13, 15);
  memcpy(head, &heads, sizeof heads);
  memcpy(mid, &mids, sizeof mids);
  memcpy(tail, low, sizeof low);
}

static double decode_fixed(int e, int16_t head, int16_t mid, int32_t tail) {
  return (double)(((int64_t)head * 65536 + mid) * 4294967296 + tail) * power_of_two(-63 - e);
}

/* Put what a group's parts do not hold on the exception list; returns 0 when the list is full. */
static int add_exceptions(ht_split_owner *s, ht_tile *t, int64_t g, const ht_group *group, const double *v, int64_t most) {
  int block = s->base.view.block, size = block * block * HT_LANES;
  int64_t at = g * size;
  for (int k = 0; k < size; k++) {
    double rest = v[k] - decode_fixed(s->exponent[g], s->head[at + k], s->mid[at + k], s->tail[at + k]);
    if (rest == 0) continue;
    if (t->exceptions >= most) return 0;
    int lane = k % HT_LANES, j = k / HT_LANES % block, i = k / HT_LANES / block;
    s->exception[t->exception + t->exceptions++] =
        (ht_exception){.row = (int32_t)((group->node + (int64_t)lane) * block + i - t->row),
                       .column = (int32_t)(ht_group_column(&s->base.view, t, group, lane) * block + j),
                       .value = rest};
  }
  return 1;
}

static int encode_fixed(ht_split_owner *s, ht_tile *t, int64_t first, const ht_group *group, int64_t count, const double *values,
                        int64_t most, ht_bits_seen *seen) {
  int size = s->base.view.block * s->base.view.block * HT_LANES;
  seen_lanes all = {{0}, {0}, {0}};
  for (int64_t k = 0; k < count; k++, values += size) {
    int64_t g = t->group + first + k, at = g * size;
    int e = group_exponent(values, size);
    if (e < 0) return 0;
    s->exponent[g] = (uint8_t)e;
    all.inexact = (i4){0};
    double up = power_of_two(31 + e);
    for (int j = 0; j < size; j += HT_LANES) encode_eight(values + j, up, s->head + at + j, s->mid + at + j, s->tail + at + j, &all);
    if ((all.inexact[0] | all.inexact[1] | all.inexact[2] | all.inexact[3]) && !add_exceptions(s, t, g, &group[k], values, most)) return 0;
  }
  for (int l = 0; l < 4; l++) {
    seen->mid |= all.high[l] & 0xffff;
    seen->tail |= all.tail[l];
  }
  return 1;
}

/* ---- FLOAT and RAW ---- */

static int encode_float(ht_split_owner *s, int64_t at, int64_t count, const double *v, ht_bits_seen *seen) {
  for (int64_t k = 0; k < count; k++) {
    float f = (float)v[k];
    uint32_t bits = ht_bits32(f), head = (bits + 0x8000u) >> 16;
    if (v[k] != 0 && !(fabsf(f) >= FLT_MIN && (head & 0x7f80u) != 0x7f80u)) return 0;
    s->head[at + k] = (int16_t)(uint16_t)head;
    s->mid[at + k] = (int16_t)(uint16_t)(bits - (head << 16));
    s->tail[at + k] = (int32_t)(uint32_t)(ht_bits64(v[k]) - ht_bits64((double)f));
    seen->mid |= s->mid[at + k];
    seen->tail |= s->tail[at + k];
  }
  return 1;
}

static void encode_raw(ht_split_owner *s, int64_t at, int64_t count, const double *v, ht_bits_seen *seen) {
  for (int64_t k = 0; k < count; k++) {
    uint64_t bits = ht_bits64(v[k]);
    s->head[at + k] = (int16_t)(uint16_t)(bits >> 48);
    s->mid[at + k] = (int16_t)(uint16_t)(bits >> 32);
    s->tail[at + k] = (int32_t)(uint32_t)bits;
  }
  seen->tail = -1; /* no lower level */
}

static int encode_groups(ht_split_owner *s, ht_tile *t, int64_t first, const ht_group *group, int64_t count, const double *values,
                         int64_t most, ht_bits_seen *seen) {
  int64_t size = (int64_t)s->base.view.block * s->base.view.block * HT_LANES, at = (t->group + first) * size;
  if (t->encoding == HT_FIXED) return encode_fixed(s, t, first, group, count, values, most, seen);
  memset(s->exponent + t->group + first, 0, (size_t)count);
  if (t->encoding == HT_FLOAT) return encode_float(s, at, count * size, values, seen);
  encode_raw(s, at, count * size, values, seen);
  return 1;
}

/* ---- what is lost ---- */

/* What 16 and 32 bits lose of eight values. */
typedef struct lost {
  v4 at16[2], at32[2];
} lost;

/* The lower parts are what is lost; exceptions come on top, elsewhere. */
static inline void lose_fixed(const ht_split_owner *s, int64_t at, int e, lost *out) {
  const double unit = power_of_two(-63 - e);
  h8 mid;
  s4 tail[2];
  memcpy(&mid, s->mid + at, sizeof mid);
  memcpy(tail, s->tail + at, sizeof tail);
  s4 wide[2] = {(s4)__builtin_shufflevector(mid, mid, 0, 0, 1, 1, 2, 2, 3, 3) >> 16,
                (s4)__builtin_shufflevector(mid, mid, 4, 4, 5, 5, 6, 6, 7, 7) >> 16};
  for (int half = 0; half < 2; half++) {
    out->at32[half] = unit * __builtin_convertvector(tail[half], v4);
    out->at16[half] = unit * 0x1p32 * __builtin_convertvector(wide[half], v4) + out->at32[half];
  }
}

static inline void lose_float(const ht_split_owner *s, int64_t at, lost *out) {
  double at16[HT_LANES], at32[HT_LANES];
  for (int l = 0; l < HT_LANES; l++) {
    uint32_t head = (uint32_t)(uint16_t)s->head[at + l] << 16;
    double v32 = (double)ht_from_bits32(head + (uint32_t)(int32_t)s->mid[at + l]);
    double v = ht_from_bits64(ht_bits64(v32) + (uint64_t)(int64_t)s->tail[at + l]);
    at16[l] = v - (double)ht_from_bits32(head);
    at32[l] = v - v32;
  }
  memcpy(out->at16, at16, sizeof at16);
  memcpy(out->at32, at32, sizeof at32);
}

/* Sums of one slice's rows, by level, row and column in the node (i * block + j) and lane: what the level loses of the row times s over
 * the columns of component j, and of the node's own entry. */
typedef struct row_loss {
  double sum[HT_LEVEL_64][9][HT_LANES], own[HT_LEVEL_64][9][HT_LANES];
} row_loss;

/* Where the sums of a tile go: a pair, of 16 and of 32 bits, for each column from the chunk's first on. */
typedef struct sums {
  const double *inverse; /* from the first column of all; NULL when uniform */
  double *pair;
  int64_t low;
} sums;

static inline void add_two(double *sum, v2 term) {
  v2 v;
  memcpy(&v, sum, sizeof v);
  v += term;
  memcpy(sum, &v, sizeof v);
}

static inline void add_four(double *sum, const v4 *term) {
  v4 v;
  memcpy(&v, sum, sizeof v);
  v += *term;
  memcpy(sum, &v, sizeof v);
}

/* Times s, whose bits come from those of 1 / s. */
static inline void multiply_four(v4 *v, const v4 *inverse) { *v *= (v4)((((i4){0} + 2046) << 52) - (i4)*inverse); }

/* Eight consecutive columns. */
static inline void add_run(const lost *loss, const sums *to, int64_t column, row_loss *row) {
  double *pair = to->pair + 2 * (column - to->low);
  for (int half = 0; half < 2; half++) {
    v4 at16 = loss->at16[half], at32 = loss->at32[half], square16 = at16 * at16, square32 = at32 * at32, inverse;
    v4 low = __builtin_shufflevector(square16, square32, 0, 4, 1, 5), high = __builtin_shufflevector(square16, square32, 2, 6, 3, 7);
    add_four(pair + 8 * half, &low);
    add_four(pair + 8 * half + 4, &high);
    if (to->inverse) {
      memcpy(&inverse, to->inverse + column + 4 * half, sizeof inverse);
      multiply_four(&at16, &inverse);
      multiply_four(&at32, &inverse);
    }
    add_four(row->sum[HT_LEVEL_16][0] + 4 * half, &at16);
    add_four(row->sum[HT_LEVEL_32][0] + 4 * half, &at32);
  }
}

/* Any columns, `index` from `first` on. */
static inline void add_gather(const lost *loss, const sums *to, int64_t first, const uint16_t *index, row_loss *row) {
  double *pair = to->pair + 2 * (first - to->low);
  for (int half = 0; half < 2; half++, index += 4) {
    v4 at16 = loss->at16[half], at32 = loss->at32[half], square16 = at16 * at16, square32 = at32 * at32;
    v4 even = __builtin_shufflevector(square16, square32, 0, 4, 2, 6), odd = __builtin_shufflevector(square16, square32, 1, 5, 3, 7);
    add_two(pair + 2 * index[0], __builtin_shufflevector(even, even, 0, 1));
    add_two(pair + 2 * index[1], __builtin_shufflevector(odd, odd, 0, 1));
    add_two(pair + 2 * index[2], __builtin_shufflevector(even, even, 2, 3));
    add_two(pair + 2 * index[3], __builtin_shufflevector(odd, odd, 2, 3));
    if (to->inverse) {
      const double *from = to->inverse + first;
      v4 inverse = {from[index[0]], from[index[1]], from[index[2]], from[index[3]]};
      multiply_four(&at16, &inverse);
      multiply_four(&at32, &inverse);
    }
    add_four(row->sum[HT_LEVEL_16][0] + 4 * half, &at16);
    add_four(row->sum[HT_LEVEL_32][0] + 4 * half, &at32);
  }
}

/* Entry k of any nodes. What is lost of a node's own entries waits for its correction; a lane without an entry adds 0. */
static inline void add_any(const lost *loss, const sums *to, const int64_t *node, int64_t first_node, row_loss *row, const int block,
                           int k) {
  for (int l = 0; l < HT_LANES; l++) {
    int64_t column = node[l] * block + k % block;
    double at[HT_LEVEL_64] = {loss->at16[l / 4][l % 4], loss->at32[l / 4][l % 4]};
    double scale = to->inverse ? ht_from_bits64((2046ull << 52) - ht_bits64(to->inverse[column])) : 1;
    for (int level = 0; level < HT_LEVEL_64; level++) {
      row->sum[level][k][l] += at[level] * scale;
      if (node[l] == first_node + l)
        row->own[level][k][l] += at[level];
      else
        to->pair[2 * (column - to->low) + level] += at[level] * at[level];
    }
  }
}

static inline void lose(const ht_split_owner *s, const ht_tile *t, int64_t g, int64_t at, lost *loss) {
  if (t->encoding == HT_FIXED)
    lose_fixed(s, at, s->exponent[g], loss);
  else
    lose_float(s, at, loss);
}

static inline void measure_any(const ht_split_owner *s, const ht_tile *t, const ht_group *group, int64_t g, const sums *to, row_loss *row,
                               const int block) {
  int64_t at = g * block * block * HT_LANES, node[HT_LANES];
  for (int l = 0; l < HT_LANES; l++) node[l] = ht_group_column(&s->base.view, t, group, l);
  for (int k = 0; k < block * block; k++, at += HT_LANES) {
    lost loss;
    lose(s, t, g, at, &loss);
    add_any(&loss, to, node, group->node, row, block, k);
  }
}

/* Whether a lane of the gather group has its node's own entry. */
static inline int has_own(const uint16_t *index, int64_t own) {
  const u8 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  u8 column;
  int64_t equal[2];
  memcpy(&column, index, sizeof column);
  h8 same = column == lanes + (uint16_t)own;
  memcpy(equal, &same, sizeof equal);
  return (equal[0] | equal[1]) != 0;
}

/* Without node blocks most groups hold none of the nodes' own entries. */
static inline void measure_group(const ht_split_owner *s, const ht_tile *t, const ht_group *group, int64_t g, const sums *to, row_loss *row,
                                 const int block) {
  const uint16_t *index = s->index + group->index;
  int64_t own = group->node - t->window; /* index of lane 0's own entry; may stand outside of the window */
  lost loss;
  if (block > 1 || (group->gather ? has_own(index, own) : *index == own)) {
    measure_any(s, t, group, g, to, row, block);
    return;
  }
  lose(s, t, g, g * HT_LANES, &loss);
  if (group->gather)
    add_gather(&loss, to, t->window, index, row);
  else
    add_run(&loss, to, t->window + *index, row);
}

/* Numbers of a slice, none above 1, as 16-bit integers of one exponent, which is returned. */
static inline uint8_t keep_fixed(const double *value, int64_t count, int16_t *kept) {
  double largest = 0;
  for (int64_t k = 0; k < count; k++) largest = fmax(largest, fabs(value[k]));
  int e = 0; /* largest <= 2^e <= 1 */
  if (largest > 0) frexp(largest, &e);
  int exponent = e > 0 ? 0 : e < -UINT8_MAX ? UINT8_MAX : -e;
  const double units = ldexp(1, 15 + exponent);
  for (int64_t k = 0; k < count; k++) kept[k] = (int16_t)fmin(rint(value[k] * units), INT16_MAX);
  return (uint8_t)exponent;
}

/* Corrections of a slice's nodes, and with them the loss of their own entries. A correction above 1 is more than the diagonal that it
 * corrects (couplings to far weaker neighbours): it is left out, and the column error shows what the level then loses. */
static inline void finish_slice(const ht_split_owner *s, const ht_tile *t, int64_t slice, const sums *to, const row_loss *loss,
                                const int block) {
  int64_t first = t->row + slice * HT_LANES * block, size = block * block * HT_LANES, at = t->delta + slice * size;
  for (int level = 0; level < HT_LEVEL_64; level++) {
    double delta[9 * HT_LANES];
    for (int k = 0; k < size; k++) {
      double sum = loss->sum[level][k / HT_LANES][k % HT_LANES];
      if (to->inverse) sum *= to->inverse[first + k % HT_LANES * block + k / HT_LANES % block];
      delta[k] = fabs(sum) <= 1 ? sum : 0;
    }
    int16_t *kept = s->delta[level] + at;
    uint8_t exponent = s->delta_exponent[level][t->slice + slice] = keep_fixed(delta, size, kept);
    const double unit = ldexp(1, -15 - exponent);
    for (int k = 0; k < size; k++) {
      double rest = loss->own[level][k / HT_LANES][k % HT_LANES] - unit * kept[k];
      to->pair[2 * (first + k % HT_LANES * block + k / HT_LANES % block - to->low) + level] += rest * rest;
    }
  }
}

static inline void measure_tile(const ht_split_owner *s, const ht_tile *t, const ht_group *group, const sums *to, const int block) {
  int64_t g = 0;
  for (int64_t k = 0; k < t->slices; k++) {
    const ht_slice *slice = &s->slice[t->slice + k];
    row_loss loss;
    for (int level = 0; level < HT_LEVEL_64; level++)
      for (int j = 0; j < block * block; j++)
        for (int l = 0; l < HT_LANES; l++) loss.sum[level][j][l] = loss.own[level][j][l] = 0;
    for (int64_t end = g + slice->runs + slice->gathers; g < end; g++) measure_group(s, t, &group[g], t->group + g, to, &loss, block);
    finish_slice(s, t, k, to, &loss, block);
  }
}

static void measure(ht_split_owner *s, const ht_tile *t, const ht_group *group, const double *inverse, double *error2, int64_t low) {
  sums to = {inverse, error2, low};
  if (t->encoding == HT_RAW || t->exact == HT_LEVEL_16) {
    for (int level = 0; level < HT_LEVEL_64; level++) {
      memset(s->delta[level] + t->delta, 0, (size_t)(t[1].delta - t->delta) * sizeof *s->delta[level]);
      memset(s->delta_exponent[level] + t->slice, 0, (size_t)t->slices);
    }
    return;
  }
  if (s->base.view.block == 1) measure_tile(s, t, group, &to, 1);
  if (s->base.view.block == 2) measure_tile(s, t, group, &to, 2);
  if (s->base.view.block == 3) measure_tile(s, t, group, &to, 3);
  for (const ht_exception *x = s->exception + t->exception; x < s->exception + t->exception + t->exceptions; x++)
    for (int level = 0; level < HT_LEVEL_64; level++) error2[2 * (x->column - low) + level] += x->value * x->value;
}
