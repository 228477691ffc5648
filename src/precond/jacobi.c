/* Jacobi: M is the diagonal of A. SPDX-License-Identifier: BSD-3-Clause */
#include "data/diagonal.h"
#include "precond/precond.h"

enum { PARALLEL_FROM = 20000 };

typedef struct {
  ht_precond base;
  double *inverse; /* in the backend's memory */
  double *host;    /* where it is computed: `inverse` itself where the host can touch it */
  int handed_over; /* when it is first applied: a backend's engine has its own */
} jacobi;

/* A copy that fails is the device's error, which whoever waits for the result asks for. */
static void apply(ht_precond *self, const double *r, double *z) {
  jacobi *j = (jacobi *)self;
  if (!j->handed_over && j->host != j->inverse && self->backend->upload(self->ctx, self->bytes, j->host, j->inverse) != HT_OK) return;
  j->handed_over = 1;
  self->backend->scale_by(self->ctx, self->n, j->inverse, r, z);
}

/* Checks first, so that a refused update leaves the old values in place. */
static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  jacobi *j = (jacobi *)self;
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_matrix_check_diagonal(self->ctx, matrix));
  ht_matrix_diagonal(matrix, j->host);
#pragma omp parallel for schedule(static) num_threads(self->ctx->threads) if (self->n > PARALLEL_FROM)
  for (int64_t i = 0; i < self->n; i++) j->host[i] = 1 / j->host[i];
  j->handed_over = 0;
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
  *precond = NULL;
  HT_TRY(ctx, create(ctx, backend, diagonal ? "jacobi" : "none", n, &self));
  self->base.update = NULL;
  for (int64_t i = 0; i < n; i++) self->host[i] = diagonal && diagonal[i] > 0 ? 1 / diagonal[i] : 1;
  *precond = &self->base;
  return HT_OK;
}

/* ---- applied by an engine ---- */

static ht_status check_only(ht_precond *self, const ht_matrix *matrix) {
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_matrix_check_diagonal(self->ctx, matrix));
  return HT_OK;
}

static void release(ht_precond *self) { ht_release(self->ctx, self); }

ht_status ht_precond_create_engine_jacobi(ht_context *ctx, const ht_backend *backend, const ht_matrix *matrix, ht_precond **precond) {
  *precond = NULL;
  HT_TRY(ctx, ht_matrix_check_diagonal(ctx, matrix));
  HT_TRY(ctx, ht_allocate(ctx, 1, sizeof **precond, precond));
  **precond = (ht_precond){
      .ctx = ctx, .backend = backend, .name = "jacobi", .n = matrix->n, .nnz = matrix->nnz, .update = check_only, .destroy = release};
  return HT_OK;
}
