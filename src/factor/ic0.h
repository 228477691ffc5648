/* Incomplete Cholesky with zero fill. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_FACTOR_IC0_H
#define HT_FACTOR_IC0_H
#include "data/matrix.h"

/* L L' ~ D^-1/2 A D^-1/2 + shift I, with D the diagonal of A and L on the pattern of A's lower triangle. */
typedef struct ht_ic0 ht_ic0;

/* The shift starts at `shift`; each time a pivot is not positive it grows (to 1e-3, then twofold) and the factorisation
 * starts again (Manteuffel 1980). Uses the lower triangle only. Errors: HT_BAD_MATRIX (a diagonal entry that is not
 * positive, an entry beyond anything a positive definite matrix has), HT_NO_MEMORY, HT_INTERRUPTED. */
ht_status ht_ic0_create(ht_context *ctx, const ht_matrix *matrix, double shift, ht_ic0 **factor);
/* New values on the same pattern; on error the old factor stays, but after HT_INTERRUPTED there is none to solve with. */
ht_status ht_ic0_update(ht_ic0 *factor, const ht_matrix *matrix);
void ht_ic0_destroy(ht_ic0 *factor); /* NULL is allowed */

/* z = D^-1/2 L'^-1 L^-1 D^-1/2 r. Deterministic for any number of threads. Uses a workspace inside the factor. */
void ht_ic0_solve(ht_ic0 *factor, const double *r, double *z);

typedef struct ht_ic0_facts {
  double shift;     /* in use */
  int breakdowns;   /* factorisations given up before it */
  int64_t levels;   /* level sets of the triangular solves */
  int64_t bytes;    /* of both triangles, indices included */
  int64_t nonzeros; /* of L, diagonal included */
} ht_ic0_facts;
ht_ic0_facts ht_ic0_describe(const ht_ic0 *factor);

#endif
