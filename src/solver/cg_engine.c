/* The loop of a backend's own engine, on its store or on Tile-CSC: the engine keeps the vectors and runs until an event; scalars, records
 * and levels are the host's. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/loop.h"

static void set_iterate(ht_loop *loop, const double *x) { loop->op->backend->engine_set_iterate(loop->engine, x); }
static void get_iterate(const ht_loop *loop, double *x) { loop->op->backend->engine_get_iterate(loop->engine, x); }
static void set_residual(ht_loop *loop, const double *r) { loop->op->backend->engine_set_residual(loop->engine, r); }
static void get_residual(const ht_loop *loop, double *r) { loop->op->backend->engine_get_residual(loop->engine, r); }
static double direction_square(const ht_loop *loop) { return loop->op->backend->engine_direction_square(loop->engine); }

static void get_best(const ht_loop *loop, double *x) { loop->op->backend->engine_get_best(loop->engine, x); }

static int set_right_side(ht_loop *loop, const double *b) {
  const ht_backend *backend = loop->op->backend;
  return backend->engine_set_right_side && backend->engine_set_right_side(loop->engine, b);
}

static void levels_changed(ht_loop *loop) { loop->op->backend->engine_set_levels(loop->engine, loop->block_level); }

static ht_cg_event run(ht_loop *loop) {
  ht_cg_state *s = &loop->state;
  ht_cg_event event = loop->op->backend->engine_run(loop->engine, s);
  if (event == HT_CG_DECIDE && s->block_direction) loop->op->backend->engine_get_direction(loop->engine, s->block_direction);
  return event;
}

static const ht_loop_calls calls = {
    run, set_iterate, get_iterate, set_residual, get_residual, direction_square, levels_changed, set_right_side, get_best};

static ht_status create_on_store(ht_loop *loop, const ht_engine_precond *precond) {
  const ht_operator *op = loop->op;
  ht_store_info info;
  HT_TRY(loop->ctx, op->backend->engine_create(op->store, precond, loop->state.capacity, &loop->engine));
  op->backend->store_info(op->store, &info);
  loop->name = info.engine;
  loop->scaled = 1;
  loop->state.n = info.padded;
  /* 4 reads and 4 writes, where they leave the chip; block-Jacobi is read twice, and r, s once more */
  double inverse = precond->block ? 2 * 4.0 * (double)precond->block + 2 * 8 : precond->diagonal ? 2 * 4 : 0;
  loop->vector_bytes = (8 * 8.0 + inverse) * (double)info.padded;
  return HT_OK;
}

static ht_status create_on_tiles(ht_loop *loop, const double *diagonal) {
  const ht_operator *op = loop->op;
  HT_TRY(loop->ctx,
         op->backend->engine_create_on_tiles(loop->ctx, op->tiles, op->column_error, diagonal, loop->state.capacity, &loop->engine));
  loop->name = "paper";
  loop->state.n = op->n;
  loop->vector_bytes = (13 * 8.0 + (diagonal ? 16 : 0)) * (double)op->n; /* 9 reads and 4 writes, where they leave the chip */
  return HT_OK;
}

ht_status ht_loop_create_engine(ht_context *ctx, ht_operator *op, const ht_engine_precond *precond, int64_t capacity, ht_loop **out) {
  ht_loop *loop;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_loop_allocate(ctx, op, 0, capacity, &loop));
  HT_TRY_GOTO(ctx, status, op->store ? create_on_store(loop, precond) : create_on_tiles(loop, precond->diagonal), fail);
  loop->decides = 1;
  loop->state.block_level = loop->block_level;
  loop->calls = &calls;
  levels_changed(loop);
  *out = loop;
  return HT_OK;
fail:
  ht_loop_destroy(loop);
  return status;
}
