/* The plain FP64 operator over the caller's CSR: the reference every other format is held against.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "op/operator.h"

typedef struct {
  ht_operator base;
  const ht_matrix *matrix; /* borrowed */
} csr_operator;

ht_status ht_operator_check_update(const ht_operator *op, const ht_matrix *matrix) {
  HT_CHECK(op->ctx, matrix->n == op->n && matrix->nnz == op->nnz, HT_BAD_ARGUMENT,
           "an update needs the same pattern: %lld rows and %lld nonzeros, and the matrix has %lld and %lld", (long long)op->n,
           (long long)op->nnz, (long long)matrix->n, (long long)matrix->nnz);
  return HT_OK;
}

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  (void)block_level;
  ht_csr_view view = ht_matrix_view(((csr_operator *)self)->matrix);
  self->backend->csr_multiply(self->ctx, &view, x, y);
  if (bytes_level) bytes_level[HT_LEVEL_64] += (double)self->bytes;
  return HT_OK;
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  HT_TRY(self->ctx, ht_operator_check_update(self, matrix));
  ((csr_operator *)self)->matrix = matrix;
  return HT_OK;
}

static void destroy(ht_operator *self) { ht_release(self->ctx, self); }

ht_status ht_operator_create_csr(ht_context *ctx, const ht_matrix *matrix, ht_operator **op) {
  *op = NULL;
  const ht_backend *backend;
  HT_TRY(ctx, ht_backend_find(ctx, "cpu", &backend));
  csr_operator *self;
  HT_TRY(ctx, ht_allocate(ctx, 1, sizeof *self, &self));
  *self = (csr_operator){.base = {.ctx = ctx,
                                  .backend = backend,
                                  .format = "csr",
                                  .n = matrix->n,
                                  .nnz = matrix->nnz,
                                  .bytes = matrix->nnz * 12 + (matrix->n + 1) * 8,
                                  .apply = apply,
                                  .update = update,
                                  .destroy = destroy},
                         .matrix = matrix};
  *op = &self->base;
  return HT_OK;
}
