/* A diagonal that the caller gave, or the identity: for operators that have no matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "precond/precond.h"

typedef struct {
  ht_precond base;
  const ht_backend *backend;
  double *inverse;
} diagonal_precond;

static void apply(ht_precond *self, const double *r, double *z) {
  diagonal_precond *d = (diagonal_precond *)self;
  d->backend->scale_by(self->ctx, self->n, d->inverse, r, z);
}

static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  (void)matrix;
  HT_FAIL(self->ctx, HT_UNSUPPORTED, "a preconditioner made from a diagonal has no matrix to update from");
}

static void destroy(ht_precond *self) {
  ht_release(self->ctx, ((diagonal_precond *)self)->inverse);
  ht_release(self->ctx, self);
}

ht_status ht_precond_create_diagonal(ht_context *ctx, int64_t n, const double *diagonal, ht_precond **precond) {
  ht_status status;
  diagonal_precond *self;
  *precond = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_precond){
      .ctx = ctx, .name = diagonal ? "jacobi" : "none", .n = n, .bytes = 8 * n, .apply = apply, .update = update, .destroy = destroy};
  HT_TRY_GOTO(ctx, status, ht_backend_find(ctx, "cpu", &self->backend), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *self->inverse, &self->inverse), fail);
  for (int64_t i = 0; i < n; i++) self->inverse[i] = diagonal && diagonal[i] > 0 ? 1 / diagonal[i] : 1;
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
