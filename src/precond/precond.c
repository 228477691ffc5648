/* Preconditioners by name. SPDX-License-Identifier: BSD-3-Clause */
#include "precond/precond.h"

static const ht_precond_entry entries[] = {
#define HT_PRECOND(name, create, place) {name, create, place},
#include "precond/list.def"
#undef HT_PRECOND
};
enum { ENTRIES = sizeof entries / sizeof *entries };

const ht_precond_entry *ht_precond_at(int index) { return index >= 0 && index < ENTRIES ? &entries[index] : NULL; }

ht_status ht_precond_create(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,
                            int unknowns_per_node, ht_precond **precond) {
  *precond = NULL;
  const ht_precond_entry *entry = ht_precond_at(options->precond);
  HT_CHECK(ctx, entry, HT_INTERNAL, "the option precond has word %d, and precond/list.def has %d rows", options->precond, ENTRIES);
  HT_CHECK(ctx, entry->place == HT_PRECOND_ANYWHERE || ht_backend_is_host(ctx, backend), HT_UNSUPPORTED,
           "the preconditioner %s does not work on the %s backend%s; use --precond jacobi or --backend cpu", entry->name, backend->name,
           entry->place == HT_PRECOND_HOST_OR_ENGINE ? " outside an engine that has it" : "");
  HT_TRY(ctx, entry->create(ctx, backend, options, matrix, unknowns_per_node, precond));
  return HT_OK;
}

ht_status ht_precond_check_update(const ht_precond *p, const ht_matrix *a) {
  HT_CHECK(p->ctx, a->n == p->n && a->nnz == p->nnz, HT_BAD_ARGUMENT,
           "an update needs the same pattern: %lld rows and %lld nonzeros, and the matrix has %lld and %lld", (long long)p->n,
           (long long)p->nnz, (long long)a->n, (long long)a->nnz);
  return HT_OK;
}
