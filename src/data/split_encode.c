/* Values of the split storage: scaling, encodings, and what is lost at the lower levels.
 *
 * Tiles are worked on in chunks of consecutive tiles. A chunk's column sums are its own, and are added to the common ones in the
 * order of the chunks, so that they are the same bits whatever the number of threads. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/convert.h"
#include "data/split_internal.h"
#include "data/split_sums.h"
#include "data/split_values.h"

enum { MOST_CHUNKS = 256, FEWEST_CHUNKS = 8 };

/* Consecutive tiles and the unknowns [low, high) that their columns and rows cover. */
typedef struct chunk {
  int64_t tile, tiles, low, high;
} chunk;

/* What all threads share while the values are set. */
typedef struct encoder {
  ht_split_owner *s;
  const ht_csr_view *a;
  const ht_split_codec *codec;
  const ht_node_graph *graph, *solver_graph;
  const int16_t *exponent; /* of s_i, in solver order */
  double *scale;           /* s_i in solver order; NULL when uniform */
  ht_sums error2;          /* of squares of what the levels lose, a column */
  chunk chunks[MOST_CHUNKS];
  int64_t count;
  int reach; /* twice the largest |exponent|, at most 1022 */
  int lossy; /* a scaled value does not give the original back: only by underflow */
} encoder;

/* What one thread needs. */
typedef struct scratch {
  ht_place place;
  ht_group *group; /* of a tile */
  double *value;   /* of a slice: scaled, in the order of the storage, not yet encoded */
} scratch;

/* ---- scaling ---- */

/* Exponent of the smallest power of two with 2^(2 e) (1 - 2^-15) >= v: keeps heads of 16 bits from overflowing. */
static int half_exponent(double v) {
  int e;
  double f = frexp(v, &e);
  if (f > 1 - 0x1p-15) e++;
  return (e + (e & 1)) / 2; /* e >> 1 rounded up; even for negative e */
}

static double largest_entry(const ht_csr_view *a, int64_t i) {
  double largest = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) largest = fmax(largest, fabs(a->values[k]));
  return largest;
}

/* By the diagonal entry; the largest entry stands in for one that is not positive. */
static int16_t row_exponent(const ht_csr_view *a, int64_t i) {
  double v = ht_csr_diagonal(a, i);
  if (!(v > 0)) v = largest_entry(a, i);
  return (int16_t)(v > 0 && isfinite(v) ? half_exponent(v) : 0);
}

/* v * 2^-shift; exact unless the result is below the normal range. `reach`: no |shift| is larger. */
static inline double scale_down(double v, int shift, int reach, int *lossy) {
  uint64_t bits = ht_bits64(v);
  unsigned e = (unsigned)(bits >> 52 & 2047);
  if (e - 1u - (unsigned)reach < 2046u - 2u * (unsigned)reach) return ht_from_bits64(bits - ((uint64_t)(int64_t)shift << 52));
  if (v == 0) return 0;
  double scaled = ldexp(v, -shift);
  if (ldexp(scaled, shift) != v) *lossy = 1;
  return scaled;
}

/* ---- one tile ---- */

/* The rows that lane l of the next slice will read stand anywhere when the order is not natural. Always inline: gcc takes a
 * function that only prefetches for one without effect, and drops its calls. */
static inline __attribute__((always_inline)) void prefetch_next(const encoder *w, int64_t node, int64_t block) {
  const int32_t *order = w->s->base.node_order;
  if (!order || node + 2 * HT_LANES >= w->graph->nodes) return;
  int64_t far = order[node + 2 * HT_LANES], near = order[node + HT_LANES];
  __builtin_prefetch(w->a->row_start + far * block);
  for (int64_t k = w->a->row_start[near * block]; k < w->a->row_start[near * block + 1]; k += 8) __builtin_prefetch(w->a->values + k);
  if (block > 1) __builtin_prefetch(w->a->columns + w->a->row_start[near * block]);
}

/* Where the values of one lane of a slice go, and what they are divided by. */
typedef struct lane_target {
  const int32_t *group, *column; /* of the node's entries */
  const int16_t *exponent;       /* of the columns, as `column` counts them */
  double *to;                    /* the lane's place in group 0 */
  int reach;
} lane_target;

/* One row of a matrix without node blocks; returns the number of values taken. Kept out of line: inside its callers the loop
 * would run out of registers. */
static __attribute__((noinline)) int64_t take_row(const double *values, int64_t count, int own_exponent, const lane_target *lane,
                                                  int *lossy) {
  const int32_t *group = lane->group, *column = lane->column;
  const int16_t *exponent = lane->exponent;
  int64_t taken = 0;
  double *to = lane->to;
  int reach = lane->reach, bad = 0;
  for (int64_t k = 0; k < count; k++) {
    if (group[k] < 0) continue;
    to[(int64_t)group[k] * HT_LANES] = scale_down(values[k], own_exponent + exponent[column[k]], reach, &bad);
    taken++;
  }
  *lossy |= bad;
  return taken;
}

/* One row of a node: its entries are some of those of the node's columns. */
static inline int64_t take_node_row(const double *values, const int32_t *columns, int64_t count, const int32_t *node_columns,
                                    int own_exponent, const lane_target *lane, int *lossy, const int block) {
  int64_t p = 0, taken = 0;
  for (int64_t k = 0; k < count; k++) {
    while (node_columns[p] * block + block <= columns[k]) p++;
    int64_t j = columns[k] - node_columns[p] * block;
    if (lane->group[p] < 0) continue;
    lane->to[((int64_t)lane->group[p] * block * block + j) * HT_LANES] =
        scale_down(values[k], own_exponent + lane->exponent[(int64_t)lane->column[p] * block + j], lane->reach, lossy);
    taken++;
  }
  return taken;
}

/* Values of one slice into their places; returns their number. Entry k of a node stands for the caller's column
 * graph->columns[k] and the solver's solver_graph->columns[k]. */
static inline int64_t take_values(const encoder *w, const ht_place *place, double *to, int *lossy, const int block) {
  const ht_csr_view *a = w->a;
  const int16_t *exponent = w->exponent + place->node * block;
  const ht_placement *p = place->now;
  int64_t taken = 0;
  for (int l = 0; l < HT_LANES && place->node + l < w->graph->nodes; l++) {
    int64_t old = ht_old_node(w->s->base.node_order, place->node + l);
    prefetch_next(w, place->node + l, block);
    for (int64_t i = 0; i < block; i++) {
      int64_t begin = a->row_start[old * block + i], count = a->row_start[old * block + i + 1] - begin;
      int own = exponent[l * block + i];
      lane_target lane = {p->group + p->begin[l], p->column + p->begin[l], exponent, to + i * block * HT_LANES + l, w->reach};
      if (block == 1)
        taken += take_row(a->values + begin, count, own, &lane, lossy);
      else
        taken +=
            take_node_row(a->values + begin, a->columns + begin, count, w->graph->columns + w->graph->start[old], own, &lane, lossy, block);
    }
  }
  return taken;
}

/* A lane without an entry reads what another lane reads. */
static void write_index(const ht_place *place, int64_t window, uint16_t *index) {
  const ht_placement *p = place->now;
  int64_t base = place->node - window;
  for (int k = 0; k < p->runs; k++) *index++ = (uint16_t)(base + p->run_column[k]);
  int filled = 0;
  for (int l = 0; l < HT_LANES && p->gathers > 0; l++)
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      if (p->group[e] < p->runs) continue;
      uint16_t column = (uint16_t)(base + p->column[e]);
      if (!filled)
        for (; filled < p->gathers * HT_LANES; filled++) index[filled] = column;
      index[(p->group[e] - p->runs) * HT_LANES + l] = column;
    }
}

/* Place one slice, again unless that was kept, write its indices and take its values; returns the true nonzeros. */
static int64_t fill_slice(const encoder *w, const ht_tile *t, const ht_place_frame *frame, int64_t slice, int64_t index, ht_group *group,
                          scratch *my, int *lossy) {
  int64_t block = w->graph->block, node = t->row / block + slice * HT_LANES;
  ht_place *place = &my->place;
  const ht_slice *placed = &w->s->slice[t->slice + slice];
  if (w->s->has_groups && w->s->has_groups[t->slice + slice])
    ht_place_recall(place, frame, node, placed, w->s->group + w->solver_graph->start[node]);
  else
    ht_place_slice(place, frame, node);
  write_index(place, t->window, w->s->index + index);
  int64_t runs = place->now->runs, groups = runs + place->now->gathers;
  if (place->now->entries < groups * HT_LANES || block > 1) /* else every place gets a value */
    memset(my->value, 0, (size_t)(groups * block * block * HT_LANES) * sizeof *my->value);
  for (int64_t g = 0; g < groups; g++) {
    group[g] = (ht_group){.node = (int32_t)node, .gather = g >= runs, .index = index};
    index += g < runs ? 1 : HT_LANES;
  }
  if (block == 1) return take_values(w, place, my->value, lossy, 1);
  if (block == 2) return take_values(w, place, my->value, lossy, 2);
  return take_values(w, place, my->value, lossy, 3);
}

/* All slices in the tile's encoding; returns 0 as soon as one does not fit it. */
static int try_encoding(const encoder *w, int64_t tile, scratch *my, int *lossy) {
  ht_split_owner *s = w->s;
  ht_tile *t = &s->tile[tile];
  ht_place_frame frame = ht_split_frame(s, w->solver_graph, tile);
  ht_bits_seen seen = {0, 0};
  int64_t group = 0, index = t->index, most = t[1].exception - t->exception, nonzeros = 0;
  t->exceptions = 0;
  for (int64_t k = 0; k < t->slices; k++) {
    const ht_slice *slice = &s->slice[t->slice + k];
    int64_t groups = slice->runs + slice->gathers;
    nonzeros += fill_slice(w, t, &frame, k, index, my->group + group, my, lossy);
    if (!w->codec->encode_groups(s, t, group, my->group + group, groups, my->value, most, &seen)) return 0;
    group += groups;
    index += slice->runs + HT_LANES * slice->gathers;
  }
  t->nonzeros = nonzeros;
  t->exact = seen.tail || t->exceptions ? HT_LEVEL_64 : seen.mid ? HT_LEVEL_32 : HT_LEVEL_16;
  return 1;
}

static int encode_chunk(const encoder *w, const chunk *c, double *const *error2, scratch *my) {
  int lossy = 0;
  for (int64_t k = c->tile; k < c->tile + c->tiles; k++) {
    ht_tile *t = &w->s->tile[k];
    for (t->encoding = HT_FIXED; !try_encoding(w, k, my, &lossy);) t->encoding++;
    w->codec->measure(w->s, t, my->group, w->scale, error2, c->low);
    if (!w->s->base.exactness_flags) t->exact = HT_LEVEL_64;
  }
  return lossy;
}

/* ---- chunks ---- */

/* Cut the tiles into `count` chunks; returns how many columns they cover together. */
static int64_t lay_chunks(encoder *w, int64_t count) {
  const ht_split_view *view = &w->s->base.view;
  int64_t covered = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t begin = view->tiles * k / count, end = view->tiles * (k + 1) / count;
    chunk c = {.tile = begin, .tiles = end - begin, .low = view->tile[begin].row};
    for (int64_t t = begin; t < end; t++) {
      int64_t low = view->tile[t].window * view->block, high = ht_split_reach(view, &w->s->range[t]);
      int64_t last_row = view->tile[t].row + view->tile[t].rows;
      if (high < last_row) high = last_row;
      if (low < c.low) c.low = low;
      if (high > c.high) c.high = high;
    }
    covered += c.high - c.low;
    w->chunks[k] = c;
  }
  w->count = count;
  return covered;
}

/* Enough for many threads, but fewer where each would cover most columns. Depends on the matrix alone. */
static void choose_chunks(encoder *w) {
  int64_t tiles = w->s->base.view.tiles, count = tiles < MOST_CHUNKS ? tiles : MOST_CHUNKS;
  while (lay_chunks(w, count) > 3 * w->s->base.view.padded && count > FEWEST_CHUNKS) count = (count + 1) / 2;
}

static int64_t widest_chunk(const encoder *w) {
  int64_t widest = 0;
  for (int64_t k = 0; k < w->count; k++)
    if (w->chunks[k].high - w->chunks[k].low > widest) widest = w->chunks[k].high - w->chunks[k].low;
  return widest;
}

static void encode_all(encoder *w, scratch *all) {
  int threads = w->s->base.ctx->threads, lossy = 0;
  ht_sums_reset(w->s->base.ctx, &w->error2);
#pragma omp parallel num_threads(threads) reduction(| : lossy)
  {
    double *error2[HT_LEVEL_64];
    for (int64_t k; (k = ht_sums_begin(&w->error2, error2)) < w->count;) {
      const chunk *c = &w->chunks[k];
      lossy |= encode_chunk(w, c, error2, &all[omp_get_thread_num()]);
      ht_sums_end(&w->error2, k, (ht_sums_range){c->low, c->high - c->low});
    }
  }
  w->lossy = lossy;
}

/* Largest column error of each block. A tile may be read at 32 bits because of another block: where delta16 mends nearly all that 16
 * bits lose, as in a node without neighbours, the larger error of 32 bits stands for both. */
static void set_column_errors(const encoder *w) {
  const ht_split_view *view = &w->s->base.view;
  int threads = w->s->base.ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (view->padded > 20000)
  for (int64_t b = 0; b < view->blocks; b++)
    for (int level = 0; level < HT_LEVEL_64; level++) {
      double largest = 0;
      for (int64_t i = b * HT_COLUMN_BLOCK; i < (b + 1) * HT_COLUMN_BLOCK; i++)
        if (w->error2.total[level][i] > largest) largest = w->error2.total[level][i];
      w->s->column_error[level][b] = (float)sqrt(largest);
    }
  for (int64_t b = 0; b < view->blocks; b++)
    w->s->column_error[HT_LEVEL_16][b] = fmaxf(w->s->column_error[HT_LEVEL_16][b], w->s->column_error[HT_LEVEL_32][b]);
}

/* ---- all tiles ---- */

static ht_status create_scratch(const encoder *w, scratch *all, int threads) {
  ht_context *ctx = w->s->base.ctx;
  const ht_split_view *view = &w->s->base.view;
  int64_t groups = 0, longest = 0, size = (int64_t)view->block * view->block * HT_LANES;
  for (int64_t t = 0; t < view->tiles; t++)
    if (view->tile[t].groups > groups) groups = view->tile[t].groups;
  for (int64_t k = 0; k < view->slices; k++)
    if (view->slice[k].runs + view->slice[k].gathers > longest) longest = view->slice[k].runs + view->slice[k].gathers;
  for (int k = 0; k < threads; k++) {
    HT_TRY(ctx, ht_place_create(ctx, w->s->capacity, &all[k].place));
    HT_TRY(ctx, ht_allocate(ctx, longest * size, sizeof(double), &all[k].value));
    HT_TRY(ctx, ht_allocate(ctx, groups, sizeof(ht_group), &all[k].group));
  }
  return HT_OK;
}

static void release_scratch(ht_context *ctx, scratch *all, int threads) {
  for (int k = 0; all && k < threads; k++) {
    ht_place_release(ctx, &all[k].place);
    ht_release(ctx, all[k].value);
    ht_release(ctx, all[k].group);
  }
  ht_release(ctx, all);
}

/* Exponents of s_i, all 0 when `plain`: found row by row in the caller's order, put into solver order. */
static void set_scale(encoder *w, int16_t *callers, double *scale, int plain) {
  ht_split_owner *s = w->s;
  ht_split_view *view = &s->base.view;
  int64_t block = view->block;
  int threads = s->base.ctx->threads, differs = 0, largest = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (view->n > 20000)
  for (int64_t i = 0; i < view->n; i++) callers[i] = plain ? 0 : row_exponent(w->a, i);
#pragma omp parallel for schedule(static) num_threads(threads) if (view->n > 20000)
  for (int64_t node = 0; node < view->n / block; node++)
    for (int64_t i = 0; i < block; i++) s->scale_exponent[node * block + i] = callers[ht_old_node(s->base.node_order, node) * block + i];
  for (int64_t i = view->n; i < view->padded; i++) s->scale_exponent[i] = view->n > 0 ? s->scale_exponent[0] : 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : differs) reduction(max : largest) if (view->n > 20000)
  for (int64_t i = 0; i < view->padded; i++) {
    differs |= s->scale_exponent[i] ^ s->scale_exponent[0];
    if (abs(s->scale_exponent[i]) > largest) largest = abs(s->scale_exponent[i]);
    scale[i] = ht_from_bits64((uint64_t)(1023 + s->scale_exponent[i]) << 52); /* exponents are far from the ends of the range */
  }
  view->uniform_exponent = view->n > 0 ? s->scale_exponent[0] : 0;
  view->scale_exponent = differs ? s->scale_exponent : NULL;
  w->exponent = s->scale_exponent;
  w->reach = largest < 511 ? 2 * largest : 1022;
  w->scale = differs ? scale : NULL;
}

ht_status ht_split_encode(ht_split_owner *s, const ht_csr_view *a, const ht_node_graph *graph, const ht_node_graph *solver_graph) {
  ht_context *ctx = s->base.ctx;
  encoder w = {.s = s, .a = a, .codec = ht_split_codec_best(), .graph = graph, .solver_graph = solver_graph};
  int threads = ctx->threads;
  int64_t padded = s->base.view.padded;
  double *scale = NULL;
  int16_t *exponent = NULL;
  scratch *all;
  ht_status status;
  choose_chunks(&w);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, threads, sizeof *all, &all), done);
  HT_TRY_GOTO(ctx, status, create_scratch(&w, all, threads), done);
  HT_TRY_GOTO(ctx, status, ht_sums_create(ctx, padded, widest_chunk(&w), &w.error2), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, padded, sizeof *scale, &scale), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof *exponent, &exponent), done);
  for (int plain = 0; plain < 2; plain++) {
    set_scale(&w, exponent, scale, plain);
    encode_all(&w, all);
    if (!w.lossy) break; /* else bits fell below the range of double: once more, without scaling */
  }
  set_column_errors(&w);
done:
  release_scratch(ctx, all, threads);
  ht_sums_release(ctx, &w.error2);
  ht_release(ctx, scale);
  ht_release(ctx, exponent);
  return status;
}
