/* The plain FP64 operator over the caller's CSR, or over a copy in the backend's memory: the reference every other format is held
 * against.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "op/operator.h"
#include "op/placed.h"

typedef struct {
  ht_operator base;
  ht_placed_csr csr;
} csr_operator;

ht_status ht_operator_check_update(const ht_operator *op, const ht_matrix *matrix) {
  HT_CHECK(op->ctx, matrix->n == op->n && matrix->nnz == op->nnz, HT_BAD_ARGUMENT,
           "an update needs the same pattern: %lld rows and %lld nonzeros, and the matrix has %lld and %lld", (long long)op->n,
           (long long)op->nnz, (long long)matrix->n, (long long)matrix->nnz);
  return HT_OK;
}

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  (void)block_level;
  self->backend->csr_multiply(self->ctx, self->csr, x, y);
  if (bytes_level) bytes_level[HT_LEVEL_64] += (double)self->bytes;
  return HT_OK;
}

/* All arrays anew: where the backend reads the host's own, they may lie elsewhere now. */
static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  const ht_csr_view view = ht_matrix_view(matrix);
  HT_TRY(self->ctx, ht_csr_place(self->ctx, self->backend, &view, &((csr_operator *)self)->csr));
  return HT_OK;
}

static void destroy(ht_operator *self) {
  ht_placed_csr_release(self->ctx, self->backend, &((csr_operator *)self)->csr);
  ht_release(self->ctx, self);
}

ht_status ht_operator_create_csr(ht_context *ctx, const ht_backend *backend, const ht_matrix *matrix, ht_operator **op) {
  const ht_csr_view view = ht_matrix_view(matrix);
  csr_operator *self;
  ht_status status;
  *op = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_operator){.ctx = ctx,
                             .backend = backend,
                             .format = "csr",
                             .n = matrix->n,
                             .nnz = matrix->nnz,
                             .bytes = matrix->nnz * 12 + (matrix->n + 1) * 8,
                             .apply = apply,
                             .update = update,
                             .destroy = destroy,
                             .csr = &self->csr.view};
  HT_TRY_GOTO(ctx, status, ht_csr_place(ctx, backend, &view, &self->csr), fail);
  *op = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
