/* The solver as an environment: conjugate gradients on one matrix, whose products are read at a level a column block. Vectors are in
 * solver order and the caller's scale, padded with zeros to whole column blocks. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_ENVIRONMENT_H
#define HT_TRAIN_ENVIRONMENT_H
#include "op/operator.h"
#include "train/options.h"

typedef struct ht_course ht_course;

typedef struct ht_environment {
  ht_context *ctx;
  const ht_backend *backend;
  const ht_matrix *matrix; /* borrowed */
  ht_matrix averaged;      /* the operator's, where the matrix is symmetric but for rounding */
  ht_operator *op;         /* NULL on a device */
  const ht_matrix *symmetric;
  const ht_train_options *options; /* borrowed */
  int64_t n, padded, blocks;
  double *scale;                  /* of the split storage: s_i in solver order; NULL with tilecsc */
  double *bytes;                  /* of a product, HT_LEVELS numbers a tile of the split storage */
  double bytes_vectors, bytes_64; /* an iteration's, and a product's in FP64 */
  /* the FP64 solve that others are compared with */
  int64_t iterations_64;
  double true_64; /* its true residual by ||b|| */
} ht_environment;

/* One solve on the way. */
struct ht_course {
  const ht_environment *environment;
  double *memory, *b, *x, *r, *p, *q, *scaled_p, *scaled_q, *work; /* b, work: the caller's order */
  uint8_t *level, *tile_level;
  int64_t iteration;
  double norm_0, norm_r, rr;
  double reference;          /* ||r|| at the last replacement */
  int lowest;                /* ht_level since then */
  int over, reached, broken; /* broken: a value that is not finite, or p'Ap <= 0 */
  double read;               /* bytes of the matrix, by the last step's product */
  int replaced;              /* the last step put the true residual in the place of the recurrence's */
};

/* on_device: products are made elsewhere, in the storage tilecsc; only residuals are made here. */
ht_status ht_environment_create(ht_context *ctx, const ht_matrix *matrix, const ht_train_options *options, int on_device,
                                ht_environment **environment);
void ht_environment_destroy(ht_environment *environment); /* NULL is allowed */
/* The FP64 solve that others are compared with. HT_BAD_MATRIX where it does not reach the tolerance: there is nothing to compare with then.
 */
ht_status ht_environment_solve(ht_environment *environment);
/* The same from a solve that was made elsewhere. course: its iterate; reached, broken, residual: as it ended. */
ht_status ht_environment_refer_to(ht_environment *environment, ht_course *course, double residual);
/* What a product reads with all blocks at a level. */
double ht_environment_bytes(const ht_environment *environment, ht_level level);
/* Bytes of so many iterations, by those of one in FP64; count: tiles over the iterations, read at each level. Tile-CSC alone. */
double ht_environment_share(const ht_environment *environment, const int64_t count[HT_LEVELS], int64_t iterations);

/* The right-hand side of that number, in the caller's order: A*1, or random entries. */
void ht_right_side(const ht_matrix *matrix, const ht_train_options *options, uint64_t number, double *b);

/* A course with room for the largest of the environments. */
ht_status ht_course_create(ht_context *ctx, int count, ht_environment *const *environment, ht_course *course);
void ht_course_release(ht_context *ctx, ht_course *course);
/* Begin a solve; `number` chooses the right-hand side where it is random. */
void ht_course_begin(const ht_environment *environment, uint64_t number, ht_course *course);
/* b of a solve, which the course then belongs to. */
void ht_course_right_side(const ht_environment *environment, uint64_t number, ht_course *course);
/* One iteration with the levels in course->level; returns the bytes that it moves, by those in FP64. `most` iterations end it. */
double ht_course_step(ht_course *course, int64_t most);
/* ||b - A x|| / ||b|| in FP64 with the matrix as given; infinite where it is not finite. */
double ht_course_true_residual(ht_course *course);

#endif
