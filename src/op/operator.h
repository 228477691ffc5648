/* Operators: a matrix made ready for products. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_OP_OPERATOR_H
#define HT_OP_OPERATOR_H
#include "backend/backend.h"
#include "data/matrix.h"
#include "halftone/solver.h"
#include "op/options.h"

typedef struct ht_operator ht_operator;
struct ht_operator {
  ht_context *ctx;
  const ht_backend *backend;
  const char *format; /* "csr", "tilecsc", "split", "callback" */
  int64_t n, nnz, bytes;
  /* y = A x in the caller's order, unscaled, x and y in the backend's memory. block_level: one ht_level a column block of 64 unknowns in
   * solver order, or NULL for FP64; formats without levels (blocks == 0) ignore it. Adds the matrix bytes read to bytes_level when not
   * NULL. */
  ht_status (*apply)(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level);
  /* New values on the same pattern. */
  ht_status (*update)(ht_operator *self, const ht_matrix *matrix);
  void (*destroy)(ht_operator *self);
  int64_t blocks;                         /* column blocks, 0 when there are no levels */
  const float *column_error[HT_LEVEL_64]; /* as in ht_split_view; in the caller's scale (multiply by |p|, get |A p| error) */
  const int32_t *order;                   /* solver order to caller's: order[new] = old, or NULL when natural */
  const char *ordering;                   /* "natural", "rcm", "patches"; NULL means natural */
  double time_ordering_s;
  const ht_split_view *split;   /* for the fused engine, or NULL */
  const double *diagonal;       /* with a store: of A as it is when the operator is made or updated, borrowed; NULL: it is looked for */
  int64_t engine_block;         /* with a store: unknowns that its order keeps together for the engine's block-Jacobi, or 0 */
  int unknowns_per_node;        /* unknowns that share their neighbours, 1 where that is not so; 0: not looked for */
  double slenderness;           /* of the mesh, where there are several (data/slender.h); else 0 */
  ht_store *store;              /* for the backend's own engine, or NULL: its order of the unknowns is its own, so `order` is NULL */
  const ht_tilecsc_view *tiles; /* for the paper's engine: the arrays in the backend's memory, or NULL */
  const ht_csr_view *csr;       /* A as it was given, in the backend's memory, or NULL */
};

ht_status ht_operator_create_csr(ht_context *ctx, const ht_backend *backend, const ht_matrix *matrix, ht_operator **op);
ht_status ht_operator_create_tilecsc(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options,
                                     const ht_matrix *matrix, ht_operator **op);
/* On a backend that works in the host's memory. */
ht_status ht_operator_create_split(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options, const ht_matrix *matrix,
                                   ht_operator **op);
/* On a backend with a store of its own. engine: HT_STORE_ENGINE_...; engine_block, diagonal: as in the struct. */
ht_status ht_operator_create_store(ht_context *ctx, const ht_backend *backend, const ht_operator_options *options, int engine,
                                   int64_t engine_block, const ht_matrix *matrix, const double *diagonal, ht_operator **op);
/* Around the caller's function: no values, so no bytes, no levels and no update. */
ht_status ht_operator_create_callback(ht_context *ctx, int64_t n, ht_apply_fn fn, void *user, ht_operator **op);
/* HT_BAD_ARGUMENT when the matrix cannot hold new values for this operator: other size or number of nonzeros. */
ht_status ht_operator_check_update(const ht_operator *op, const ht_matrix *matrix);
/* New values on the same pattern from a CSR in the backend's memory. A number in the facts that is not zero, or an error: the operator is
 * spoilt until its next update. */
ht_status ht_operator_take(ht_operator *op, const ht_csr_view *a, ht_csr_facts *facts);
static inline void ht_operator_destroy(ht_operator *op) {
  if (op) op->destroy(op);
}

#endif
