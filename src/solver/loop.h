/* The CG loops behind one face: the textbook loop (any operator, any preconditioner), the fused loop on ht_split_view, and the engine
 * of a backend's own store. A loop works on ht_cg_state and stops at events; what to do about an event is the guard's business.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_LOOP_H
#define HT_SOLVER_LOOP_H
#include "op/operator.h"
#include "precond/precond.h"

typedef struct ht_loop ht_loop;

/* What each kind of loop does its own way. */
typedef struct ht_loop_calls {
  ht_cg_event (*run)(ht_loop *loop);
  /* Move a vector of n entries, in the backend's memory, between the caller's order and scale and the loop's. */
  void (*set_iterate)(ht_loop *loop, const double *x);
  void (*get_iterate)(const ht_loop *loop, double *x);
  void (*set_residual)(ht_loop *loop, const double *r);
  void (*get_residual)(const ht_loop *loop, double *r);
  double (*direction_square)(const ht_loop *loop); /* p'p in the loop's scale */
  void (*levels_changed)(ht_loop *loop);
  int (*set_right_side)(ht_loop *loop, const double *b); /* returns whether the loop replaces the residual by itself; NULL: never */
  void (*get_best)(const ht_loop *loop, double *x);      /* its best iterate at those; NULL where there are none */
} ht_loop_calls;

struct ht_loop {
  const ht_loop_calls *calls;
  ht_context *ctx;
  const char *name; /* "textbook", "fused"; of a device's engine: "persistent", "streaming", "paper" */
  ht_operator *op;
  ht_precond *precond;
  ht_cg_plan *plan;  /* fused only */
  ht_engine *engine; /* of a store, or the paper's: it keeps the vectors */
  int scaled;        /* the vectors are in an order and scale of the solver's own, where ||A|| is about 1 */
  int decides;       /* it can follow a rule of ht_decide_rule by itself */
  double *diagonal;  /* fused only: the preconditioner */
  ht_cg_state state;
  uint8_t *block_level;          /* one ht_level a column block: the policy's; NULL where the operator has no levels */
  uint8_t *tile_level;           /* fused only: derived from block_level */
  double *direction;             /* textbook only: the direction in host memory, where the backend's own is out of its reach */
  double sweep_bytes[HT_LEVELS]; /* fused only: matrix bytes that a product reads at each level, with the present levels */
  double vector_bytes;           /* moved in an iteration */
};

/* The operator and preconditioner are borrowed. `capacity` entries of history are kept. */
ht_status ht_loop_create_textbook(ht_context *ctx, ht_operator *op, ht_precond *precond, int64_t capacity, ht_loop **loop);
/* op->split must be there. diagonal: that of A in the caller's order for Jacobi, NULL for no preconditioner. */
ht_status ht_loop_create_fused(ht_context *ctx, ht_operator *op, const double *diagonal, int64_t capacity, ht_loop **loop);
/* op->store must be there, or op->tiles and a backend with the paper's engine, which takes no blocks. */
ht_status ht_loop_create_engine(ht_context *ctx, ht_operator *op, const ht_engine_precond *precond, int64_t capacity, ht_loop **loop);
void ht_loop_destroy(ht_loop *loop); /* NULL is allowed */

/* From now on the loop leaves the direction itself too where it leaves its block norms. An engine must have engine_get_direction. */
ht_status ht_loop_keep_direction(ht_loop *loop);

/* p'p of a loop whose vectors are in its state. */
double ht_loop_direction_square(const ht_loop *loop);

/* Shared by all: records and levels, and vectors of that length unless it is 0. */
ht_status ht_loop_allocate(ht_context *ctx, ht_operator *op, int64_t length, int64_t capacity, ht_loop **loop);

#endif
