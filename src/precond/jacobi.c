/* Jacobi: M is the diagonal of A. SPDX-License-Identifier: BSD-3-Clause */
#include "data/diagonal.h"
#include "precond/precond.h"

enum { PARALLEL_FROM = 20000 };

typedef struct {
  ht_precond base;
  double *inverse; /* in the backend's memory */
  double *host;    /* where it is computed: `inverse` itself where the host can touch it */
} jacobi;

static void apply(ht_precond *self, const double *r, double *z) {
  self->backend->scale_by(self->ctx, self->n, ((jacobi *)self)->inverse, r, z);
}

static ht_status hand_over(jacobi *j) {
  if (j->host == j->inverse) return HT_OK;
  HT_TRY(j->base.ctx, j->base.backend->upload(j->base.ctx, j->base.bytes, j->host, j->inverse));
  return HT_OK;
}

/* Checks first, so that a refused update leaves the old values in place. */
static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  jacobi *j = (jacobi *)self;
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_matrix_check_diagonal(self->ctx, matrix));
  ht_matrix_diagonal(matrix, j->host);
#pragma omp parallel for schedule(static) num_threads(self->ctx->threads) if (self->n > PARALLEL_FROM)
  for (int64_t i = 0; i < self->n; i++) j->host[i] = 1 / j->host[i];
  HT_TRY(self->ctx, hand_over(j));
  return HT_OK;
}

static void destroy(ht_precond *self) {
  jacobi *j = (jacobi *)self;
  if (j->host != j->inverse) ht_release(self->ctx, j->host);
  self->backend->memory_release(self->ctx, j->inverse);
  ht_release(self->ctx, self);
}

static ht_status create(ht_context *ctx, const ht_backend *backend, const char *name, int64_t n, jacobi **precond) {
  ht_status status;
  jacobi *self;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_precond){
      .ctx = ctx, .backend = backend, .name = name, .n = n, .bytes = n * 8, .apply = apply, .update = update, .destroy = destroy};
  HT_TRY_GOTO(ctx, status, backend->memory_create(ctx, self->base.bytes, &self->inverse), fail);
  self->host = self->inverse;
  if (!ht_backend_is_host(ctx, backend)) HT_TRY_GOTO(ctx, status, ht_allocate(ctx, n, sizeof *self->host, &self->host), fail);
  *precond = self;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}

ht_status ht_precond_create_jacobi(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,
                                   int unknowns_per_node, ht_precond **precond) {
  (void)options, (void)unknowns_per_node;
  ht_status status;
  jacobi *self;
  HT_TRY(ctx, create(ctx, backend, "jacobi", matrix->n, &self));
  self->base.nnz = matrix->nnz;
  HT_TRY_GOTO(ctx, status, update(&self->base, matrix), fail);
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}

ht_status ht_precond_create_diagonal(ht_context *ctx, const ht_backend *backend, int64_t n, const double *diagonal, ht_precond **precond) {
  jacobi *self;
  ht_status status;
  *precond = NULL;
  HT_TRY(ctx, create(ctx, backend, diagonal ? "jacobi" : "none", n, &self));
  self->base.update = NULL;
  for (int64_t i = 0; i < n; i++) self->host[i] = diagonal && diagonal[i] > 0 ? 1 / diagonal[i] : 1;
  HT_TRY_GOTO(ctx, status, hand_over(self), fail);
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
