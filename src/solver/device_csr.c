/* New values that a device has. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "solver/solver_internal.h"

static ht_status check_device_csr(ht_solver *s, const ht_csr_view *a) {
  const void *arrays[] = {a->row_start, a->columns, a->values};
  HT_CHECK(s->ctx, s->op && s->loop, HT_BAD_MATRIX, "the matrix is not one that can be solved with: %s", s->refusal);
  HT_CHECK(s->ctx, s->op->store && s->loop->engine && s->op->backend->engine_renew && strcmp(s->precond->name, "block-jacobi") != 0,
           HT_UNSUPPORTED, "a CSR on a device needs an engine of that device with --precond none or jacobi, and has %s, %s and %s",
           s->op->backend->name, s->loop->name, s->precond->name);
  HT_CHECK(s->ctx, s->symmetric == s->matrix, HT_UNSUPPORTED,
           "the matrix is symmetric but for rounding, and a CSR on a device is not averaged; use ht_matrix_set_values");
  for (int k = 0; k < 3; k++)
    HT_CHECK(s->ctx, s->backend->reaches(s->ctx, arrays[k]), HT_BAD_ARGUMENT,
             "the arrays of a CSR on a device must lie in the memory of the GPU that the solver works on");
  return HT_OK;
}

static ht_status judge(const ht_solver *s, const ht_csr_facts *f) {
  HT_CHECK(s->ctx, !f->not_finite, HT_BAD_MATRIX, "%lld values on the device are not finite", (long long)f->not_finite);
  HT_CHECK(s->ctx, !f->other, HT_BAD_ARGUMENT, "the CSR on the device has not the matrix's pattern: %lld rows or entries differ",
           (long long)f->other);
  HT_CHECK(s->ctx, !f->unsymmetric, HT_BAD_MATRIX, "%lld entries of the CSR on the device differ from their partners",
           (long long)f->unsymmetric);
  HT_CHECK(s->ctx, !f->not_positive, HT_BAD_MATRIX, "%lld diagonal entries of the CSR on the device are not positive",
           (long long)f->not_positive);
  HT_CHECK(s->ctx, !f->wrong, HT_BAD_ARGUMENT,
           "%lld entries of the CSR on the device are not in the matrix's pattern, or leave the range of FP64 when they are scaled",
           (long long)f->wrong);
  return HT_OK;
}

/* What prepare finds out about values. */
static ht_status take_device_csr(ht_solver *s, const ht_csr_view *a) {
  ht_csr_facts facts;
  int same;
  HT_TRY(s->ctx, ht_operator_take(s->op, a, &facts));
  HT_TRY(s->ctx, judge(s, &facts));
  HT_TRY(s->ctx, s->op->backend->engine_renew(s->loop->engine, &same));
  if (!same) {
    ht_solver_forget_loop(s);
    HT_TRY(s->ctx, ht_solver_make_loop(s));
  }
  s->null_space = (ht_null_space){.first_empty = -1, .constant = facts.zero_sums};
  s->guard.certifier.norm_inf = facts.norm_inf;
  s->facts = ht_solver_facts_of(s);
  s->facts.diagonal_range = facts.diagonal_most / facts.diagonal_least;
  ht_policy_release(s->ctx, &s->guard.asked);
  HT_TRY(s->ctx, ht_solver_make_policy(s));
  return s->backend->failed(s->ctx);
}

ht_status ht_solver_set_device_csr(ht_solver *s, const int64_t *row_start, const int32_t *columns, const double *values) {
  HT_NEED(NULL, s);
  HT_CHECK(s->ctx, s->matrix && row_start && columns && values, HT_BAD_ARGUMENT,
           "a CSR on a device needs its three arrays, and a solver that has a matrix with its pattern");
  if (!s->prepared || s->version != s->matrix->version) HT_TRY(s->ctx, ht_solver_prepare(s));
  const ht_csr_view a = {s->n, s->matrix->nnz, row_start, columns, values};
  HT_TRY(s->ctx, check_device_csr(s, &a));
  double start = ht_seconds();
  int threads = ht_solver_limit_threads(s);
  ht_laps_begin(s->ctx);
  ht_status status = take_device_csr(s, &a);
  ht_laps_tell(s->ctx);
  s->ctx->threads = threads;
  if (status != HT_OK) { /* the next solve begins with the matrix's own values */
    ht_solver_forget(s);
    return ht_trace(s->ctx, status, __func__, __FILE__, __LINE__);
  }
  s->time_setup_s = ht_seconds() - start;
  return HT_OK;
}
