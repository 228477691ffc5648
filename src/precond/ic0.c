/* Incomplete Cholesky with zero fill, shifted where it breaks down. SPDX-License-Identifier: BSD-3-Clause */
#include "factor/ic0.h"
#include <stdio.h>
#include "base/number.h"
#include "precond/precond.h"

typedef struct {
  ht_precond base;
  ht_ic0 *factor;
} ic0;

static void apply(ht_precond *self, const double *r, double *z) { ht_ic0_solve(((ic0 *)self)->factor, r, z); }

static void describe(ic0 *self) {
  ht_ic0_facts facts = ht_ic0_describe(self->factor);
  self->base.bytes = facts.bytes;
  self->base.note[0] = 0;
  if (facts.breakdowns)
    snprintf(self->base.note, sizeof self->base.note, "ic0, shifted by %.3g after %s", facts.shift,
             ht_number_of(facts.breakdowns, "breakdown").text);
  else if (facts.shift > 0)
    snprintf(self->base.note, sizeof self->base.note, "ic0, shifted by %.3g as asked", facts.shift);
}

static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_ic0_update(((ic0 *)self)->factor, matrix));
  describe((ic0 *)self);
  return HT_OK;
}

static void destroy(ht_precond *self) {
  ht_ic0_destroy(((ic0 *)self)->factor);
  ht_release(self->ctx, self);
}

ht_status ht_precond_create_ic0(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,
                                int unknowns_per_node, ht_precond **precond) {
  (void)unknowns_per_node;
  ht_status status;
  ic0 *self;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->base = (ht_precond){.ctx = ctx,
                            .backend = backend,
                            .name = "ic0",
                            .n = matrix->n,
                            .nnz = matrix->nnz,
                            .apply = apply,
                            .update = update,
                            .destroy = destroy};
  HT_TRY_GOTO(ctx, status, ht_ic0_create(ctx, matrix, options->ic_shift, &self->factor), fail);
  describe(self);
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
