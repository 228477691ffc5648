/* What the loops share. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/loop.h"
#include <string.h>

ht_status ht_loop_allocate(ht_context *ctx, ht_operator *op, int64_t length, int64_t capacity, ht_loop **out) {
  ht_loop *loop;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *loop, &loop));
  loop->ctx = ctx;
  loop->op = op;
  ht_cg_state *s = &loop->state;
  s->n = length;
  s->capacity = capacity;
  double **vectors[] = {&s->x, &s->r, &s->p, &s->s};
  for (size_t k = 0; length > 0 && k < sizeof vectors / sizeof *vectors; k++)
    HT_TRY_GOTO(ctx, status, op->backend->memory_create(ctx, length * (int64_t)sizeof(double), vectors[k]), fail);
  double **records[] = {&s->history, &s->alphas, &s->betas};
  for (size_t k = 0; k < sizeof records / sizeof *records; k++)
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, capacity, sizeof(double), records[k]), fail);
  if (op->blocks > 0) {
    HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, op->blocks, sizeof(double), &s->block_norm2), fail);
    HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, op->blocks, sizeof(double), &s->block_max), fail);
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, op->blocks, 1, &loop->block_level), fail);
    memset(loop->block_level, HT_LEVEL_64, (size_t)op->blocks);
  }
  *out = loop;
  return HT_OK;
fail:
  ht_loop_destroy(loop);
  return status;
}

void ht_loop_destroy(ht_loop *loop) {
  if (!loop) return;
  ht_cg_state *s = &loop->state;
  const ht_backend *backend = loop->op->backend;
  if (loop->plan) backend->cg_release(loop->plan);
  if (loop->engine) backend->engine_release(loop->engine);
  void *vectors[] = {s->x, s->r, s->p, s->s, s->z};
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) backend->memory_release(loop->ctx, vectors[k]);
  void *memory[] = {s->history,         s->alphas,         s->betas,         s->block_norm2, s->block_max,
                    s->block_direction, loop->block_level, loop->tile_level, loop->diagonal, loop->direction};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(loop->ctx, memory[k]);
  ht_release(loop->ctx, loop);
}

ht_status ht_loop_keep_direction(ht_loop *loop) {
  HT_TRY(loop->ctx, ht_allocate_zeroed(loop->ctx, loop->op->blocks * HT_COLUMN_BLOCK, sizeof(double), &loop->state.block_direction));
  return HT_OK;
}

double ht_loop_direction_square(const ht_loop *loop) {
  return loop->op->backend->dot(loop->ctx, loop->state.n, loop->state.p, loop->state.p);
}
