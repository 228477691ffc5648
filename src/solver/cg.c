/* The textbook loop: preconditioned conjugate gradients (Hestenes and Stiefel 1952; Saad 2003, algorithm 9.1) for every
 * operator, preconditioner and backend. Vectors are in the caller's order. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "solver/loop.h"

/* Norms of the direction by column block, for the policy: blocks are in the operator's order. */
static ht_status block_statistics(ht_loop *loop) {
  ht_cg_state *s = &loop->state;
  const int32_t *order = loop->op->order;
  const double *p = s->p;
  if (loop->direction) {
    HT_TRY(loop->ctx, loop->op->backend->download(loop->ctx, s->n * (int64_t)sizeof *p, s->p, loop->direction));
    p = loop->direction;
  }
  for (int64_t b = 0; b < loop->op->blocks; b++) {
    double norm2 = 0, largest = 0;
    int64_t end = (b + 1) * HT_COLUMN_BLOCK < s->n ? (b + 1) * HT_COLUMN_BLOCK : s->n;
    for (int64_t i = b * HT_COLUMN_BLOCK; i < end; i++) {
      double v = p[order ? order[i] : i];
      norm2 += v * v;
      largest = fmax(largest, fabs(v));
      if (s->block_direction) s->block_direction[i] = v;
    }
    s->block_norm2[b] = norm2;
    s->block_max[b] = largest;
  }
  return HT_OK;
}

static void record(ht_cg_state *s) {
  if (s->iteration >= s->capacity) return;
  s->history[s->iteration] = s->norm_r;
  if (s->iteration > 0) s->betas[s->iteration - 1] = s->beta;
}

static ht_cg_event after_product(const ht_cg_state *s) {
  if (!isfinite(s->pap)) return HT_CG_NONFINITE;
  if (s->pap <= 0) return HT_CG_CURVATURE;
  if (s->iteration >= s->iteration_end) return HT_CG_LIMIT;
  if (s->norm_r <= s->replace_below) return HT_CG_DROPPED;
  if (s->norm_r > s->grow_above) return HT_CG_GREW;
  if (s->iteration >= s->decide_at) return HT_CG_DECIDE;
  if (s->iteration >= s->pause_at) return HT_CG_PAUSE;
  return HT_CG_CONTINUE;
}

static ht_cg_event run(ht_loop *loop) {
  ht_context *ctx = loop->ctx;
  ht_cg_state *s = &loop->state;
  ht_operator *A = loop->op;
  ht_precond *M = loop->precond;
  const ht_backend *v = A->backend;
  for (ht_cg_event event = HT_CG_CONTINUE;;) {
    if (!s->fresh) {
      v->axpy(ctx, s->n, s->alpha, s->p, s->x);  /* x += alpha p */
      v->axpy(ctx, s->n, -s->alpha, s->s, s->r); /* r -= alpha A p */
      s->iteration++;
    }
    M->apply(M, s->r, s->z);
    double rz = v->dot(ctx, s->n, s->r, s->z);
    s->beta = s->fresh ? 0 : rz / s->rz;
    s->rz = rz;
    s->fresh = 0;
    s->norm_r = sqrt(v->dot(ctx, s->n, s->r, s->r));
    record(s);
    if (!isfinite(s->norm_r) || !isfinite(rz) || !isfinite(s->beta)) return HT_CG_NONFINITE;
    if (s->norm_r <= s->goal) return HT_CG_REACHED;
    v->xpby(ctx, s->n, s->z, s->beta, s->p); /* p = M^-1 r + beta p */
    if (s->iteration >= s->decide_at && A->blocks && block_statistics(loop) != HT_OK) return HT_CG_FAILED;
    if (A->apply(A, loop->block_level, s->p, s->s, s->bytes_level) != HT_OK) return HT_CG_FAILED;
    s->pap = v->dot(ctx, s->n, s->p, s->s);
    event = after_product(s);
    s->alpha = s->rz / s->pap;
    if (s->iteration < s->capacity) s->alphas[s->iteration] = s->alpha;
    if (event != HT_CG_CONTINUE) return event;
  }
}

static void set_iterate(ht_loop *loop, const double *x) { loop->op->backend->copy(loop->ctx, loop->state.n, x, loop->state.x); }
static void get_iterate(const ht_loop *loop, double *x) { loop->op->backend->copy(loop->ctx, loop->state.n, loop->state.x, x); }
static void set_residual(ht_loop *loop, const double *r) { loop->op->backend->copy(loop->ctx, loop->state.n, r, loop->state.r); }
static void get_residual(const ht_loop *loop, double *r) { loop->op->backend->copy(loop->ctx, loop->state.n, loop->state.r, r); }
static void levels_changed(ht_loop *loop) { (void)loop; }

static const ht_loop_calls calls = {run,  set_iterate, get_iterate, set_residual, get_residual, ht_loop_direction_square, levels_changed,
                                    NULL, NULL};

ht_status ht_loop_create_textbook(ht_context *ctx, ht_operator *op, ht_precond *precond, int64_t capacity, ht_loop **out) {
  ht_loop *loop;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_loop_allocate(ctx, op, op->n, capacity, &loop));
  HT_TRY_GOTO(ctx, status, op->backend->memory_create(ctx, op->n * (int64_t)sizeof(double), &loop->state.z), fail);
  if (op->blocks && !ht_backend_is_host(ctx, op->backend))
    HT_TRY_GOTO(ctx, status, ht_allocate(ctx, op->n, sizeof(double), &loop->direction), fail);
  loop->name = "textbook";
  loop->precond = precond;
  loop->vector_bytes = 15 * 8.0 * (double)op->n; /* x r p s z: 11 reads and 4 writes in the calls above */
  loop->calls = &calls;
  *out = loop;
  return HT_OK;
fail:
  ht_loop_destroy(loop);
  return status;
}
