/* Preconditioners by name, and what they share: the diagonal and its checks. SPDX-License-Identifier: BSD-3-Clause */
#include "precond/precond.h"
#include <math.h>

static const ht_precond_entry entries[] = {
#define HT_PRECOND(name, create) {name, create},
#include "precond/list.def"
#undef HT_PRECOND
};
enum { ENTRIES = sizeof entries / sizeof *entries };

const ht_precond_entry *ht_precond_at(int index) { return index >= 0 && index < ENTRIES ? &entries[index] : NULL; }

ht_status ht_precond_create(ht_context *ctx, const ht_precond_options *options, const ht_matrix *matrix, int unknowns_per_node,
                            ht_precond **precond) {
  *precond = NULL;
  const ht_precond_entry *entry = ht_precond_at(options->precond);
  HT_CHECK(ctx, entry, HT_INTERNAL, "the option precond has word %d, and precond/list.def has %d rows", options->precond, ENTRIES);
  HT_TRY(ctx, entry->create(ctx, options, matrix, unknowns_per_node, precond));
  return HT_OK;
}

/* Columns ascend within a row, so the search may stop at the diagonal. */
static double diagonal_of(const ht_matrix *a, int64_t i) {
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1] && a->columns[k] <= i; k++)
    if (a->columns[k] == i) return a->values[k];
  return 0;
}

void ht_precond_diagonal(const ht_matrix *a, double *diagonal) {
  for (int64_t i = 0; i < a->n; i++) diagonal[i] = diagonal_of(a, i);
}

int64_t ht_precond_bad_diagonal(const ht_matrix *a, double *value) {
  for (int64_t i = 0; i < a->n; i++) {
    double d = diagonal_of(a, i);
    if (d > 0) continue;
    *value = d;
    return i;
  }
  return -1;
}

ht_status ht_precond_check_diagonal(ht_context *ctx, const ht_matrix *a) {
  double value = 0;
  int64_t row = ht_precond_bad_diagonal(a, &value);
  HT_CHECK(ctx, row < 0, HT_BAD_MATRIX,
           "a positive definite matrix has a positive diagonal, and entry (%lld,%lld), counted from 1, is %g; check the matrix",
           (long long)row + 1, (long long)row + 1, value);
  for (int64_t i = 0; i < a->n; i++) {
    double d = diagonal_of(a, i);
    HT_CHECK(ctx, isfinite(1 / d), HT_BAD_MATRIX,
             "diagonal entry (%lld,%lld), counted from 1, is %g, and its reciprocal overflows; multiply the system by a power of two",
             (long long)i + 1, (long long)i + 1, d);
  }
  return HT_OK;
}

ht_status ht_precond_check_update(const ht_precond *p, const ht_matrix *a) {
  HT_CHECK(p->ctx, a->n == p->n && a->nnz == p->nnz, HT_BAD_ARGUMENT,
           "an update needs the same pattern: %lld rows and %lld nonzeros, and the matrix has %lld and %lld", (long long)p->n,
           (long long)p->nnz, (long long)a->n, (long long)a->nnz);
  return HT_OK;
}
