/* Preconditioners: M^-1 for symmetric positive definite M. One file and one row in list.def each.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_PRECOND_PRECOND_H
#define HT_PRECOND_PRECOND_H
#include "data/matrix.h"
#include "precond/options.h"

typedef struct ht_precond ht_precond;
struct ht_precond {
  ht_context *ctx;
  const char *name;
  int64_t n, bytes;
  /* z = M^-1 r in the caller's order; linear, symmetric, positive, deterministic. */
  void (*apply)(ht_precond *self, const double *r, double *z);
  /* New values on the same pattern. */
  ht_status (*update)(ht_precond *self, const ht_matrix *matrix);
  void (*destroy)(ht_precond *self);
  /* What happened while building, for the report ("ic0, shifted by 1e-3 after 3 breakdowns"), or "". */
  char note[160];
};

typedef ht_status (*ht_precond_create_fn)(ht_context *ctx, const ht_precond_options *options, const ht_matrix *matrix,
                                          int unknowns_per_node, ht_precond **precond);
/* Make the one that options->precond names; precond/list.def is the only list. HT_BAD_MATRIX when the matrix does not allow
 * it (a diagonal entry that is not positive: the sentence names the row). */
ht_status ht_precond_create(ht_context *ctx, const ht_precond_options *options, const ht_matrix *matrix, int unknowns_per_node,
                            ht_precond **precond);
static inline void ht_precond_destroy(ht_precond *p) {
  if (p) p->destroy(p);
}

#endif
