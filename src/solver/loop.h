/* The two CG loops behind one face: the textbook loop (any operator, any preconditioner) and the backend's fused engine.
 * A loop works on ht_cg_state and stops at events; what to do about an event is the guard's business.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_LOOP_H
#define HT_SOLVER_LOOP_H
#include "op/operator.h"
#include "precond/precond.h"

typedef struct ht_loop ht_loop;
struct ht_loop {
  ht_context *ctx;
  const char *name; /* "textbook", "fused" */
  ht_operator *op;
  ht_precond *precond;
  ht_cg_plan *plan; /* fused only */
  double *diagonal; /* fused only: the preconditioner */
  ht_cg_state state;
  uint8_t *block_level;          /* one ht_level a column block: the policy's; NULL where the operator has no levels */
  uint8_t *tile_level;           /* fused only: derived from block_level */
  double sweep_bytes[HT_LEVELS]; /* fused only: matrix bytes that a product reads at each level, with the present tile levels */
  double vector_bytes;           /* moved in an iteration */
  ht_cg_event (*run)(ht_loop *loop);
  /* Move a vector of n entries between the caller's order and scale and the loop's. */
  void (*set_iterate)(ht_loop *loop, const double *x);
  void (*get_iterate)(const ht_loop *loop, double *x);
  void (*set_residual)(ht_loop *loop, const double *r);
  void (*get_residual)(const ht_loop *loop, double *r);
  void (*levels_changed)(ht_loop *loop);
};

/* The operator and preconditioner are borrowed. `capacity` entries of history are kept. */
ht_status ht_loop_create_textbook(ht_context *ctx, ht_operator *op, ht_precond *precond, int64_t capacity, ht_loop **loop);
/* op->split must be there. diagonal: that of A in the caller's order for Jacobi, NULL for no preconditioner. */
ht_status ht_loop_create_fused(ht_context *ctx, ht_operator *op, const double *diagonal, int64_t capacity, ht_loop **loop);
void ht_loop_destroy(ht_loop *loop); /* NULL is allowed */

/* Shared by the two: vectors, records and levels. */
ht_status ht_loop_allocate(ht_context *ctx, ht_operator *op, int64_t length, int64_t capacity, ht_loop **loop);

#endif
