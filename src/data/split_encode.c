/* Values of the split storage: scaling, encodings, and what is lost at the lower levels.
 *
 * Tiles are worked on in chunks of consecutive tiles. A chunk's column sums are its own, and are added to the common ones in the
 * order of the chunks, so that they are the same bits whatever the number of threads. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/convert.h"
#include "data/split_fill.h"
#include "data/split_sums.h"

enum { MOST_CHUNKS = 256, FEWEST_CHUNKS = 8 };

/* Consecutive tiles and the unknowns [low, high) that their columns and rows cover. */
typedef struct chunk {
  int64_t tile, tiles, low, high;
} chunk;

/* What all threads share while the values are set. */
typedef struct encoder {
  ht_filling fill;
  int uniform;    /* all s_i are the same */
  ht_sums error2; /* of squares of what the levels lose, a column */
  chunk chunks[MOST_CHUNKS];
  int64_t count;
  int lossy; /* a scaled value does not give the original back: only by underflow */
} encoder;

/* What one thread needs. */
typedef struct scratch {
  ht_filled filled;
  ht_group *group; /* of a tile */
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

/* ---- tiles ---- */

/* All slices in the tile's encoding; returns 0 as soon as one does not fit it. */
static int try_encoding(const encoder *w, int64_t tile, scratch *my, int *lossy) {
  ht_split_owner *s = w->fill.s;
  ht_tile *t = &s->tile[tile];
  ht_place_frame frame = ht_split_frame(s, w->fill.solver_graph, tile);
  ht_bits_seen seen = {0, 0};
  int64_t group = 0, index = t->index, most = t[1].exception - t->exception, nonzeros = 0;
  t->exceptions = 0;
  for (int64_t k = 0; k < t->slices; k++) {
    const ht_slice *slice = &s->slice[t->slice + k];
    int64_t groups = slice->runs + slice->gathers, next = index;
    for (int64_t g = 0; g < groups; g++, next += g <= slice->runs ? 1 : HT_LANES)
      my->group[group + g] = (ht_group){(int32_t)(t->row / s->base.view.block + k * HT_LANES), g >= slice->runs, next};
    nonzeros += ht_fill_slice(&w->fill, t, &frame, k, index, &my->filled, lossy);
    if (!w->fill.codec->encode_groups(s, t, group, my->group + group, groups, my->filled.value, most, &seen)) return 0;
    group += groups;
    index = next;
  }
  t->nonzeros = nonzeros;
  t->exact = seen.tail || t->exceptions ? HT_LEVEL_64 : seen.mid ? HT_LEVEL_32 : HT_LEVEL_16;
  return 1;
}

static int encode_chunk(const encoder *w, const chunk *c, double *error2, scratch *my) {
  int lossy = 0;
  ht_split_owner *s = w->fill.s;
  for (int64_t k = c->tile; k < c->tile + c->tiles; k++) {
    ht_tile *t = &s->tile[k];
    for (t->encoding = HT_FIXED; !try_encoding(w, k, my, &lossy);) t->encoding++;
    w->fill.codec->measure(s, t, my->group, w->uniform ? NULL : w->fill.inverse, error2, c->low);
    if (!s->base.exactness_flags) t->exact = HT_LEVEL_64;
  }
  return lossy;
}

/* ---- chunks ---- */

/* Cut the tiles into `count` chunks; returns how many columns they cover together. */
static int64_t lay_chunks(encoder *w, int64_t count) {
  const ht_split_view *view = &w->fill.s->base.view;
  int64_t covered = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t begin = view->tiles * k / count, end = view->tiles * (k + 1) / count;
    chunk c = {.tile = begin, .tiles = end - begin, .low = view->tile[begin].row};
    for (int64_t t = begin; t < end; t++) {
      int64_t low = view->tile[t].window * view->block, high = ht_split_reach(view, &w->fill.s->range[t]);
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
  int64_t tiles = w->fill.s->base.view.tiles, count = tiles < MOST_CHUNKS ? tiles : MOST_CHUNKS;
  while (lay_chunks(w, count) > 3 * w->fill.s->base.view.padded && count > FEWEST_CHUNKS) count = (count + 1) / 2;
}

static int64_t widest_chunk(const encoder *w) {
  int64_t widest = 0;
  for (int64_t k = 0; k < w->count; k++)
    if (w->chunks[k].high - w->chunks[k].low > widest) widest = w->chunks[k].high - w->chunks[k].low;
  return widest;
}

static void encode_all(encoder *w, scratch *all) {
  int threads = w->fill.s->base.ctx->threads, lossy = 0;
  ht_sums_reset(w->fill.s->base.ctx, &w->error2);
#pragma omp parallel num_threads(threads) reduction(| : lossy)
  {
    double *error2;
    for (int64_t k; (k = ht_sums_begin(&w->error2, &error2)) < w->count;) {
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
  const ht_split_view *view = &w->fill.s->base.view;
  int threads = w->fill.s->base.ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (view->padded > 20000)
  for (int64_t b = 0; b < view->blocks; b++)
    for (int level = 0; level < HT_LEVEL_64; level++) {
      double largest = 0;
      for (int64_t i = b * HT_COLUMN_BLOCK; i < (b + 1) * HT_COLUMN_BLOCK; i++)
        if (w->error2.total[i * HT_LEVEL_64 + level] > largest) largest = w->error2.total[i * HT_LEVEL_64 + level];
      w->fill.s->column_error[level][b] = (float)sqrt(largest);
    }
  for (int64_t b = 0; b < view->blocks; b++)
    w->fill.s->column_error[HT_LEVEL_16][b] = fmaxf(w->fill.s->column_error[HT_LEVEL_16][b], w->fill.s->column_error[HT_LEVEL_32][b]);
}

/* ---- all tiles ---- */

static ht_status create_scratch(const encoder *w, scratch *all, int threads) {
  const ht_split_owner *s = w->fill.s;
  ht_context *ctx = s->base.ctx;
  const ht_split_view *view = &s->base.view;
  int64_t groups = 0, longest = 0;
  for (int64_t t = 0; t < view->tiles; t++)
    if (view->tile[t].groups > groups) groups = view->tile[t].groups;
  for (int64_t k = 0; k < view->slices; k++)
    if (view->slice[k].runs + view->slice[k].gathers > longest) longest = view->slice[k].runs + view->slice[k].gathers;
  for (int k = 0; k < threads; k++) {
    HT_TRY(ctx, ht_fill_create(ctx, s, longest, &all[k].filled));
    HT_TRY(ctx, ht_allocate(ctx, groups, sizeof(ht_group), &all[k].group));
  }
  return HT_OK;
}

static void release_scratch(ht_context *ctx, scratch *all, int threads) {
  for (int k = 0; all && k < threads; k++) {
    ht_fill_release(ctx, &all[k].filled);
    ht_release(ctx, all[k].group);
  }
  ht_release(ctx, all);
}

/* Exponents of s_i, all 0 when `plain`: found row by row in the caller's order, put into solver order. */
static void set_scale(encoder *w, int16_t *callers, double *inverse, int plain) {
  ht_split_owner *s = w->fill.s;
  ht_split_view *view = &s->base.view;
  int64_t block = view->block;
  int threads = s->base.ctx->threads, differs = 0, largest = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (view->n > 20000)
  for (int64_t i = 0; i < view->n; i++) callers[i] = plain ? 0 : row_exponent(w->fill.a, i);
#pragma omp parallel for schedule(static) num_threads(threads) if (view->n > 20000)
  for (int64_t node = 0; node < view->n / block; node++)
    for (int64_t i = 0; i < block; i++) s->scale_exponent[node * block + i] = callers[ht_old_node(s->base.node_order, node) * block + i];
  for (int64_t i = view->n; i < view->padded; i++) s->scale_exponent[i] = view->n > 0 ? s->scale_exponent[0] : 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : differs) reduction(max : largest) if (view->n > 20000)
  for (int64_t i = 0; i < view->padded; i++) {
    differs |= s->scale_exponent[i] ^ s->scale_exponent[0];
    if (abs(s->scale_exponent[i]) > largest) largest = abs(s->scale_exponent[i]);
    inverse[i] = ht_from_bits64((uint64_t)(1023 - s->scale_exponent[i]) << 52); /* exponents are far from the ends of the range */
  }
  view->uniform_exponent = view->n > 0 ? s->scale_exponent[0] : 0;
  view->scale_exponent = differs ? s->scale_exponent : NULL;
  w->uniform = !differs;
  w->fill.exponent = s->scale_exponent;
  w->fill.inverse = inverse;
  w->fill.reach = largest < 511 ? 2 * largest : 1022;
}

ht_status ht_split_encode(ht_split_owner *s, const ht_csr_view *a, const ht_node_graph *graph, const ht_node_graph *solver_graph) {
  ht_context *ctx = s->base.ctx;
  encoder w = {.fill = {.s = s, .a = a, .graph = graph, .solver_graph = solver_graph, .codec = ht_split_codec_best()}};
  int threads = ctx->threads;
  int64_t padded = s->base.view.padded;
  double *inverse = NULL;
  int16_t *exponent = NULL;
  scratch *all;
  ht_status status;
  choose_chunks(&w);
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, threads, sizeof *all, &all), done);
  HT_TRY_GOTO(ctx, status, create_scratch(&w, all, threads), done);
  HT_TRY_GOTO(ctx, status, ht_sums_create(ctx, padded, widest_chunk(&w), &w.error2), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, padded, sizeof *inverse, &inverse), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof *exponent, &exponent), done);
  for (int plain = 0; plain < 2; plain++) {
    set_scale(&w, exponent, inverse, plain);
    encode_all(&w, all);
    if (!w.lossy) break; /* else bits fell below the range of double: once more, without scaling */
  }
  set_column_errors(&w);
done:
  release_scratch(ctx, all, threads);
  ht_sums_release(ctx, &w.error2);
  ht_release(ctx, inverse);
  ht_release(ctx, exponent);
  return status;
}
