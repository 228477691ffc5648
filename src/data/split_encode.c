/* Values of the split storage: scaling, encodings, and what is lost at the lower levels.
 *
 * Tiles are worked on in chunks of consecutive tiles, each with its own column sums, so that the sums are taken in the same
 * order whatever the number of threads. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/convert.h"
#include "data/split_internal.h"
#include "data/split_values.h"

enum { CHUNKS = 256, FEWEST_CHUNKS = 8 };

/* Consecutive tiles and the unknowns [low, high) that their columns and rows cover. */
typedef struct chunk {
  int64_t tile, tiles, low, high;
  double *error2[HT_LEVEL_64]; /* sums of squares of what is lost, a column */
} chunk;

/* What all threads share while the values are set. */
typedef struct encoder {
  ht_split_owner *s;
  const ht_csr_view *a;
  const ht_node_graph *graph;
  const int16_t *exponent; /* of s_i, in the caller's order */
  const double *scale;     /* s_i in solver order; NULL when uniform */
  int lossy;               /* a scaled value does not give the original back: only by underflow */
} encoder;

/* One thread's tile. */
typedef struct scratch {
  ht_place place;
  ht_tile_values tile;
  uint64_t *seen; /* bit map of column blocks, clear between tiles */
} scratch;

/* ---- scaling ---- */

/* Exponent of the smallest power of two with 2^(2 e) (1 - 2^-15) >= v: keeps heads of 16 bits from overflowing. */
static int half_exponent(double v) {
  int e;
  double f = frexp(v, &e);
  if (f > 1 - 0x1p-15) e++;
  return (e + (e & 1)) / 2; /* e >> 1 rounded up; even for negative e */
}

static int16_t row_exponent(const ht_csr_view *a, int64_t i) {
  double diagonal = 0, largest = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
    double v = fabs(a->values[k]);
    if (a->columns[k] == i) diagonal = a->values[k];
    if (v > largest) largest = v;
  }
  double v = diagonal > 0 ? diagonal : largest;
  return (int16_t)(v > 0 && isfinite(v) ? half_exponent(v) : 0);
}

/* v * 2^-shift; exact unless the result is below the normal range. */
static inline double scale_down(double v, int shift, int *lossy) {
  uint64_t bits = ht_bits64(v);
  int e = (int)(bits >> 52 & 2047);
  if (e != 0 && (unsigned)(e - shift - 1) < 2046u) return ht_from_bits64(bits - ((uint64_t)(int64_t)shift << 52));
  if (v == 0) return 0;
  double scaled = ldexp(v, -shift);
  if (ldexp(scaled, shift) != v) *lossy = 1;
  return scaled;
}

/* ---- one tile ---- */

/* Values of one slice into their places. */
static void take_values(const encoder *w, const ht_place *place, const ht_place_frame *frame, int64_t node, ht_tile_values *v, double *to,
                        int *lossy) {
  const ht_csr_view *a = w->a;
  int block = w->graph->block;
  for (int l = 0; l < HT_LANES; l++) {
    if (place->begin[l + 1] == place->begin[l]) continue;
    int64_t old = ht_old_node(frame->order, node + l);
    for (int i = 0; i < block; i++) {
      int64_t row = old * block + i;
      const int32_t *group = place->group + place->begin[l], *columns = w->graph->columns + w->graph->start[old];
      for (int64_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
        int32_t j = 0;
        if (block > 1) {
          while (*columns * block + block <= a->columns[k]) {
            columns++;
            group++;
          }
          j = a->columns[k] - *columns * block;
        }
        if (*group >= 0) {
          v->nonzeros++;
          to[((*group * block + i) * block + j) * HT_LANES + l] =
              scale_down(a->values[k], w->exponent[row] + w->exponent[a->columns[k]], lossy);
        }
        if (block == 1) group++;
      }
    }
  }
}

/* A lane without an entry reads what another lane reads. */
static void write_index(const ht_place *place, int32_t window, uint16_t *index) {
  for (int k = 0; k < place->runs; k++) *index++ = (uint16_t)(place->run_base[k] - window);
  int filled = 0;
  for (int l = 0; l < HT_LANES && place->gathers > 0; l++)
    for (int64_t e = place->begin[l]; e < place->begin[l + 1]; e++) {
      if (place->group[e] < place->runs) continue;
      uint16_t column = (uint16_t)(place->column[e] - window);
      if (!filled)
        for (; filled < place->gathers * HT_LANES; filled++) index[filled] = column;
      index[(place->group[e] - place->runs) * HT_LANES + l] = column;
    }
}

/* Place the tile's slices, write their indices, mark the column blocks they read and gather their scaled values. */
static void fill_tile(const encoder *w, int64_t tile, scratch *my, int *lossy) {
  ht_split_owner *s = w->s;
  const ht_tile *t = &s->tile[tile];
  ht_tile_values *v = &my->tile;
  ht_place *place = &my->place;
  ht_place_frame frame = ht_split_frame(s, w->graph, &s->range[tile]);
  int64_t size = (int64_t)w->graph->block * w->graph->block * HT_LANES, group = 0, index = t->index;
  memset(v->value, 0, (size_t)(t->groups * size) * sizeof *v->value);
  v->nonzeros = 0;
  for (int64_t k = 0; k < t->slices; k++) {
    int64_t node = t->row / w->graph->block + k * HT_LANES;
    ht_place_slice(place, &frame, node);
    ht_place_mark(place, w->graph->block, my->seen);
    write_index(place, (int32_t)t->window, s->index + index);
    take_values(w, place, &frame, node, v, v->value + group * size, lossy);
    for (int g = 0; g < place->runs + place->gathers; g++, group++) {
      v->group[group] = (ht_group){.node = (int32_t)node, .gather = g >= place->runs, .index = index};
      index += g < place->runs ? 1 : HT_LANES;
    }
  }
  ht_place_list_marks(my->seen, t->window * w->graph->block, ht_split_reach(&s->base.view, &s->range[tile]), s->touched + t->touch);
}

static int encode_chunk(const encoder *w, const chunk *c, scratch *my) {
  int lossy = 0;
  for (int64_t t = c->tile; t < c->tile + c->tiles; t++) {
    ht_tile *tile = &w->s->tile[t];
    fill_tile(w, t, my, &lossy);
    ht_encode_tile(w->s, tile, &my->tile);
    ht_measure_tile(w->s, tile, &my->tile, w->scale, c->error2, c->low);
    if (!w->s->base.exactness_flags) tile->exact = HT_LEVEL_64;
  }
  return lossy;
}

/* ---- chunks ---- */

static int64_t lay_chunks(const ht_split_owner *s, int64_t count, chunk *chunks) {
  const ht_split_view *view = &s->base.view;
  int64_t covered = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t begin = view->tiles * k / count, end = view->tiles * (k + 1) / count;
    chunk c = {.tile = begin, .tiles = end - begin, .low = s->tile[begin].row};
    for (int64_t t = begin; t < end; t++) {
      int64_t low = s->tile[t].window * view->block, high = ht_split_reach(view, &s->range[t]);
      if (high < s->tile[t].row + s->tile[t].rows) high = s->tile[t].row + s->tile[t].rows;
      if (low < c.low) c.low = low;
      if (high > c.high) c.high = high;
    }
    covered += c.high - c.low;
    chunks[k] = c;
  }
  return covered;
}

/* As many as are useful for threads, fewer where each would cover most columns. Depends on the matrix alone. */
static int64_t choose_chunks(const ht_split_owner *s, chunk *chunks) {
  int64_t count = s->base.view.tiles < CHUNKS ? s->base.view.tiles : CHUNKS;
  while (lay_chunks(s, count, chunks) > 4 * s->base.view.padded && count > FEWEST_CHUNKS) count = (count + 1) / 2;
  return count;
}

/* Largest column error of each block at one level. */
static void reduce_errors(const ht_split_owner *s, const chunk *chunks, int64_t count, int level) {
  const ht_split_view *view = &s->base.view;
  int threads = s->base.ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (view->padded > 20000)
  for (int64_t b = 0; b < view->blocks; b++) {
    double sum[HT_COLUMN_BLOCK] = {0}, largest = 0;
    int64_t first = b * HT_COLUMN_BLOCK;
    for (int64_t k = 0; k < count; k++)
      for (int i = 0; i < HT_COLUMN_BLOCK; i++)
        if (first + i >= chunks[k].low && first + i < chunks[k].high) sum[i] += chunks[k].error2[level][first + i - chunks[k].low];
    for (int i = 0; i < HT_COLUMN_BLOCK; i++)
      if (sum[i] > largest) largest = sum[i];
    s->column_error[level][b] = (float)sqrt(largest);
  }
}

/* ---- all tiles ---- */

static void encode_tiles(encoder *w, const chunk *chunks, int64_t count, scratch *all) {
  int threads = w->s->base.ctx->threads, lossy = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : lossy)
  for (int64_t k = 0; k < count; k++) {
    for (int level = 0; level < HT_LEVEL_64; level++)
      memset(chunks[k].error2[level], 0, (size_t)(chunks[k].high - chunks[k].low) * sizeof(double));
    lossy |= encode_chunk(w, &chunks[k], &all[omp_get_thread_num()]);
  }
  w->lossy = lossy;
  for (int level = 0; level < HT_LEVEL_64; level++) reduce_errors(w->s, chunks, count, level);
}

/* Lay the chunks and give them their sums, which lie in *sums. */
static ht_status create_chunks(ht_split_owner *s, chunk *chunks, int64_t *count, double **sums) {
  int64_t total = 0;
  *count = choose_chunks(s, chunks);
  for (int64_t k = 0; k < *count; k++) total += chunks[k].high - chunks[k].low;
  HT_TRY(s->base.ctx, ht_allocate(s->base.ctx, total * HT_LEVEL_64, sizeof **sums, sums));
  double *next = *sums;
  for (int64_t k = 0; k < *count; k++)
    for (int level = 0; level < HT_LEVEL_64; level++, next += chunks[k].high - chunks[k].low) chunks[k].error2[level] = next;
  return HT_OK;
}

static ht_status create_scratch(const encoder *w, scratch *all, int threads) {
  ht_context *ctx = w->s->base.ctx;
  const ht_split_view *view = &w->s->base.view;
  int64_t groups = 0, words = view->padded / HT_COLUMN_BLOCK / 64 + 1, size = (int64_t)view->block * view->block * HT_LANES;
  for (int64_t t = 0; t < view->tiles; t++)
    if (view->tile[t].groups > groups) groups = view->tile[t].groups;
  for (int k = 0; k < threads; k++) {
    HT_TRY(ctx, ht_place_create(ctx, w->s->capacity, &all[k].place));
    HT_TRY(ctx, ht_allocate(ctx, groups * size, sizeof(double), &all[k].tile.value));
    HT_TRY(ctx, ht_allocate(ctx, groups, sizeof(ht_group), &all[k].tile.group));
    HT_TRY(ctx, ht_allocate_zeroed(ctx, words, sizeof(uint64_t), &all[k].seen));
  }
  return HT_OK;
}

static void release_scratch(ht_context *ctx, scratch *all, int threads) {
  for (int k = 0; all && k < threads; k++) {
    ht_place_release(ctx, &all[k].place);
    ht_release(ctx, all[k].tile.value);
    ht_release(ctx, all[k].tile.group);
    ht_release(ctx, all[k].seen);
  }
  ht_release(ctx, all);
}

/* Exponents of s_i in the caller's order, and in solver order into the view (NULL there when all are the same). */
static void set_scale(const encoder *w, const int16_t *exponent, double *scale) {
  ht_split_owner *s = w->s;
  ht_split_view *view = &s->base.view;
  int threads = s->base.ctx->threads, differs = 0, block = view->block;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : differs) if (view->n > 20000)
  for (int64_t i = 0; i < view->n; i++) {
    int64_t old = ht_old_node(s->base.node_order, i / block) * block + i % block;
    s->scale_exponent[i] = exponent[old];
    scale[i] = ldexp(1.0, exponent[old]);
    differs |= exponent[old] != exponent[0];
  }
  for (int64_t i = view->n; i < view->padded; i++) {
    s->scale_exponent[i] = view->n > 0 ? exponent[0] : 0;
    scale[i] = 1;
  }
  view->uniform_exponent = view->n > 0 ? exponent[0] : 0;
  view->scale_exponent = differs ? s->scale_exponent : NULL;
}

static void encode_scaled(encoder *w, int16_t *exponent, double *scale, const chunk *chunks, int64_t count, scratch *all) {
  int threads = w->s->base.ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (w->a->nnz > 20000)
  for (int64_t i = 0; i < w->a->n; i++) exponent[i] = row_exponent(w->a, i);
  for (int pass = 0; pass < 2; pass++) {
    set_scale(w, exponent, scale);
    w->exponent = exponent;
    w->scale = w->s->base.view.scale_exponent ? scale : NULL;
    encode_tiles(w, chunks, count, all);
    if (!w->lossy) break;
    memset(exponent, 0, (size_t)w->a->n * sizeof *exponent); /* bits fell below the range: as it is, then */
  }
}

/* Everything is allocated before the first value is written: when memory ends the old values are still whole. */
ht_status ht_split_encode(ht_split_owner *s, const ht_csr_view *a, const ht_node_graph *graph) {
  ht_context *ctx = s->base.ctx;
  encoder w = {.s = s, .a = a, .graph = graph};
  int threads = ctx->threads;
  int16_t *exponent = NULL;
  double *scale = NULL, *sums = NULL;
  scratch *all;
  chunk chunks[CHUNKS];
  int64_t count;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, threads, sizeof *all, &all), done);
  HT_TRY_GOTO(ctx, status, create_scratch(&w, all, threads), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof *exponent, &exponent), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, s->base.view.padded, sizeof *scale, &scale), done);
  HT_TRY_GOTO(ctx, status, create_chunks(s, chunks, &count, &sums), done);
  encode_scaled(&w, exponent, scale, chunks, count, all);
done:
  release_scratch(ctx, all, threads);
  ht_release(ctx, exponent);
  ht_release(ctx, scale);
  ht_release(ctx, sums);
  return status;
}
