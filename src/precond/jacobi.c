/* Jacobi: M is the diagonal of A. SPDX-License-Identifier: BSD-3-Clause */
#include "data/diagonal.h"
#include "precond/precond.h"

typedef struct {
  ht_precond base;
  const ht_backend *backend;
  double *inverse;
} jacobi;

static void apply(ht_precond *self, const double *r, double *z) {
  jacobi *j = (jacobi *)self;
  j->backend->scale_by(self->ctx, self->n, j->inverse, r, z);
}

/* Checks first, so that a refused update leaves the old values in place. */
static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  double *inverse = ((jacobi *)self)->inverse;
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_matrix_check_diagonal(self->ctx, matrix));
  ht_matrix_diagonal(matrix, inverse);
  for (int64_t i = 0; i < self->n; i++) inverse[i] = 1 / inverse[i];
  return HT_OK;
}

static void destroy(ht_precond *self) {
  ht_release(self->ctx, ((jacobi *)self)->inverse);
  ht_release(self->ctx, self);
}

static ht_status create(ht_context *ctx, const char *name, int64_t n, jacobi **precond) {
  ht_status status;
  jacobi *self;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_precond){.ctx = ctx, .name = name, .n = n, .bytes = n * 8, .apply = apply, .update = update, .destroy = destroy};
  HT_TRY_GOTO(ctx, status, ht_backend_find(ctx, "cpu", &self->backend), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *self->inverse, &self->inverse), fail);
  *precond = self;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}

ht_status ht_precond_create_jacobi(ht_context *ctx, const ht_precond_options *options, const ht_matrix *matrix, int unknowns_per_node,
                                   ht_precond **precond) {
  (void)options, (void)unknowns_per_node;
  ht_status status;
  jacobi *self;
  HT_TRY(ctx, create(ctx, "jacobi", matrix->n, &self));
  self->base.nnz = matrix->nnz;
  HT_TRY_GOTO(ctx, status, update(&self->base, matrix), fail);
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}

ht_status ht_precond_create_diagonal(ht_context *ctx, int64_t n, const double *diagonal, ht_precond **precond) {
  jacobi *self;
  *precond = NULL;
  HT_TRY(ctx, create(ctx, diagonal ? "jacobi" : "none", n, &self));
  self->base.update = NULL;
  for (int64_t i = 0; i < n; i++) self->inverse[i] = diagonal && diagonal[i] > 0 ? 1 / diagonal[i] : 1;
  *precond = &self->base;
  return HT_OK;
}
