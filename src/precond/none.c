/* No preconditioner: M = I. The smallest example of one. SPDX-License-Identifier: BSD-3-Clause */
#include "precond/precond.h"

static void apply(ht_precond *self, const double *r, double *z) { self->backend->copy(self->ctx, self->n, r, z); }

static ht_status update(ht_precond *self, const ht_matrix *matrix) { return ht_precond_check_update(self, matrix); }

static void destroy(ht_precond *self) { ht_release(self->ctx, self); }

ht_status ht_precond_create_none(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,
                                 int unknowns_per_node, ht_precond **precond) {
  (void)options, (void)unknowns_per_node;
  ht_precond *self;
  HT_TRY(ctx, ht_allocate(ctx, 1, sizeof *self, &self));
  *self = (ht_precond){.ctx = ctx,
                       .backend = backend,
                       .name = "none",
                       .n = matrix->n,
                       .nnz = matrix->nnz,
                       .apply = apply,
                       .update = update,
                       .destroy = destroy};
  *precond = self;
  return HT_OK;
}
