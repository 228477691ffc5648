/* Preconditioners: M^-1 for symmetric positive definite M. One file and one row in list.def each.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_PRECOND_PRECOND_H
#define HT_PRECOND_PRECOND_H
#include "backend/backend.h"
#include "data/matrix.h"
#include "precond/options.h"

typedef struct ht_precond ht_precond;
struct ht_precond {
  ht_context *ctx;
  const ht_backend *backend;
  const char *name;
  int64_t n, nnz, bytes; /* nnz of the matrix it was built for: an update needs the same pattern */
  /* z = M^-1 r in the caller's order, both in the backend's memory; linear, symmetric, positive, deterministic. */
  void (*apply)(ht_precond *self, const double *r, double *z);
  /* New values on the same pattern; on error the old ones stay. NULL where there is no matrix behind it. */
  ht_status (*update)(ht_precond *self, const ht_matrix *matrix);
  void (*destroy)(ht_precond *self);
  /* What happened while building, for the report ("ic0, shifted by 1e-3 after 3 breakdowns"), or "". */
  char note[160];
};

typedef ht_status (*ht_precond_create_fn)(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options,
                                          const ht_matrix *matrix, int unknowns_per_node, ht_precond **precond);
/* One row of list.def. */
typedef enum ht_precond_place { HT_PRECOND_ANYWHERE, HT_PRECOND_HOST, HT_PRECOND_HOST_OR_ENGINE } ht_precond_place;
typedef struct ht_precond_entry {
  const char *name;
  ht_precond_create_fn create;
  ht_precond_place place;
} ht_precond_entry;
const ht_precond_entry *ht_precond_at(int index); /* NULL past the end */

/* Make the one that options->precond names; precond/list.def is the only list. unknowns_per_node: 1 when not known.
 * HT_BAD_MATRIX when the matrix does not allow it (a diagonal entry that is not positive: the sentence names the row), HT_UNSUPPORTED
 * when the backend does not. */
ht_status ht_precond_create(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,
                            int unknowns_per_node, ht_precond **precond);
/* Jacobi from a diagonal alone (copied), for the caller's operators; NULL gives M = I, and an entry that is not positive takes 1. */
ht_status ht_precond_create_diagonal(ht_context *ctx, const ht_backend *backend, int64_t n, const double *diagonal, ht_precond **precond);
/* Jacobi for an engine that takes the diagonal itself: the diagonal is checked, and nothing stored or ever applied. */
ht_status ht_precond_create_engine_jacobi(ht_context *ctx, const ht_backend *backend, const ht_matrix *matrix, ht_precond **precond);
/* Unknowns a block of block-Jacobi: what is asked for, else the unknowns a node where there are several, else a default. */
int64_t ht_precond_block(const ht_precond_options *options, int64_t n, int unknowns_per_node);
/* What an engine needs of the one that ht_precond_create_block_jacobi made; borrowed from it. */
void ht_block_jacobi_view(const ht_precond *precond, ht_engine_precond *view);
static inline void ht_precond_destroy(ht_precond *p) {
  if (p) p->destroy(p);
}

/* HT_BAD_ARGUMENT when the matrix cannot hold new values for a preconditioner built on n rows and nnz nonzeros. */
ht_status ht_precond_check_update(const ht_precond *p, const ht_matrix *matrix);

#define HT_PRECOND(name, create, place)                                                                                                    \
  ht_status create(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options, const ht_matrix *matrix,                 \
                   int unknowns_per_node, ht_precond **precond);
#include "precond/list.def"
#undef HT_PRECOND

#endif
