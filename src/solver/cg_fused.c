/* The fused loop: the backend's CG engine on the split storage. Its vectors are in the solver's order and scaled,
 * x^ = S x and r^ = S^-1 r with S a diagonal of powers of two, so that moving them in and out is exact.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "base/convert.h"
#include "data/split.h"
#include "solver/loop.h"

static inline int64_t caller_index(const ht_loop *loop, int64_t i) { return loop->op->order ? loop->op->order[i] : i; }

/* s_i (sign = 1) or 1/s_i (sign = -1), made from its exponent. */
static inline double scale(const ht_split_view *a, int64_t i, int sign) {
  return ht_from_bits64((uint64_t)(1023 + sign * ht_split_exponent(a, i)) << 52);
}

static void move_in(ht_loop *loop, const double *from, double *to, int sign) {
  const ht_split_view *a = loop->op->split;
  int threads = loop->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->n > 20000)
  for (int64_t i = 0; i < a->n; i++) to[i] = from[caller_index(loop, i)] * scale(a, i, sign);
}

static void move_out(const ht_loop *loop, const double *from, double *to, int sign) {
  const ht_split_view *a = loop->op->split;
  int threads = loop->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->n > 20000)
  for (int64_t i = 0; i < a->n; i++) to[caller_index(loop, i)] = from[i] * scale(a, i, sign);
}

static void set_iterate(ht_loop *loop, const double *x) { move_in(loop, x, loop->state.x, 1); }
static void get_iterate(const ht_loop *loop, double *x) { move_out(loop, loop->state.x, x, -1); }
static void set_residual(ht_loop *loop, const double *r) { move_in(loop, r, loop->state.r, -1); }
static void get_residual(const ht_loop *loop, double *r) { move_out(loop, loop->state.r, r, 1); }

static void levels_changed(ht_loop *loop) {
  const ht_split_view *a = loop->op->split;
  ht_split_tile_levels(a, loop->block_level, loop->tile_level);
  memset(loop->sweep_bytes, 0, sizeof loop->sweep_bytes);
  for (int64_t t = 0; t < a->tiles; t++) {
    ht_level level = ht_tile_level(&a->tile[t], (ht_level)loop->tile_level[t]);
    loop->sweep_bytes[level] += (double)ht_split_tile_bytes(a, &a->tile[t], level);
  }
}

static ht_cg_event run(ht_loop *loop) {
  ht_cg_state *s = &loop->state;
  int64_t before = s->fresh ? s->iteration - 1 : s->iteration;
  if (s->fresh) { /* the first step multiplies both by zero */
    memset(s->p, 0, (size_t)s->n * sizeof(double));
    memset(s->s, 0, (size_t)s->n * sizeof(double));
  }
  ht_cg_event event = loop->op->backend->cg_run(loop->plan, loop->op->split, s);
  for (int level = 0; level < HT_LEVELS; level++) s->bytes_level[level] += (double)(s->iteration - before) * loop->sweep_bytes[level];
  return event;
}

/* M^-1 on the scaled matrix: s_i^2 / a_ii. An empty row has no diagonal and takes 1. */
static ht_status scale_diagonal(ht_loop *loop, const double *diagonal) {
  const ht_split_view *a = loop->op->split;
  HT_TRY(loop->ctx, ht_allocate_zeroed(loop->ctx, a->padded, sizeof *loop->diagonal, &loop->diagonal));
  for (int64_t i = 0; i < a->n; i++) {
    double s = scale(a, i, 1), d = diagonal[caller_index(loop, i)];
    loop->diagonal[i] = d > 0 ? s / d * s : 1;
  }
  loop->state.inverse_diagonal = loop->diagonal;
  return HT_OK;
}

static const ht_loop_calls calls = {run,  set_iterate, get_iterate, set_residual, get_residual, ht_loop_direction_square, levels_changed,
                                    NULL, NULL};

ht_status ht_loop_create_fused(ht_context *ctx, ht_operator *op, const double *diagonal, int64_t capacity, ht_loop **out) {
  ht_loop *loop;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_loop_allocate(ctx, op, op->split->padded, capacity, &loop));
  loop->name = "fused";
  loop->scaled = 1;
  if (diagonal) HT_TRY_GOTO(ctx, status, scale_diagonal(loop, diagonal), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, op->split->tiles, 1, &loop->tile_level), fail);
  HT_TRY_GOTO(ctx, status, op->backend->cg_prepare(ctx, op->split, &loop->plan), fail);
  loop->state.tile_level = loop->tile_level;
  loop->vector_bytes = (8 * 8.0 + (diagonal ? 8 : 0) + (op->split->scale_exponent ? 2 : 0)) * (double)op->split->padded;
  loop->calls = &calls;
  levels_changed(loop);
  *out = loop;
  return HT_OK;
fail:
  ht_loop_destroy(loop);
  return status;
}
