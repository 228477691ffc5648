/* A learner's host side: what its files share. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_LEARNER_H
#define HT_BACKEND_CUDA_LEARNER_H
#include "backend/cuda/cuda.h"
#include "backend/cuda/learner_view.h"

typedef struct ht_learner_launches {
  ht_launch act, vectors; /* the network's kernel, and those over vectors */
  ht_launch small;        /* or all of them in one; grid 0: the matrix is too large for it */
} ht_learner_launches;

/* The solves of one matrix, to learn from and to judge by. */
typedef struct ht_learner_matrix {
  ht_learner_group group, judged;
  ht_learner_launches launches, judged_launches;
  CUgraphExec judge; /* some iterations; NULL until it is first needed */
  ht_learner_control control;
  double *fallen; /* of the reward time, on the device; NULL before learner_set_saving */
} ht_learner_matrix;

struct ht_learner {
  ht_context *ctx;
  ht_cuda *cuda;
  ht_learner_settings settings;
  int matrices;
  ht_learner_matrix *matrix;
  ht_learner_batch batch;
  ht_learner_weights w;
  float *deployed, *value;             /* weights that are judged; a transition's and lane's values */
  int64_t units;                       /* of 32 rows in a minibatch */
  CUgraphExec collect, update;         /* collect: NULL where all matrices are small */
  int64_t collect_steps, update_parts; /* in one replay */
  int unbegun;                         /* some lanes have not begun their first episode */
  /* pinned */
  ht_learner_scalars *scalars;
  ht_learner_solve *solve;
  ht_learner_control *control;
  float *staged; /* HT_LEARNER_STORED */
};

/* learner_data.c: what goes to the device at first. */
ht_status ht_learner_make_matrix(ht_learner *learner, int number, const ht_learner_system *system);
ht_status ht_learner_make_batch(ht_learner *learner);
ht_status ht_learner_make_weights(ht_learner *learner);
/* Launches of an iteration of one group. */
ht_status ht_learner_iteration(ht_learner *learner, ht_learner_matrix *matrix, int judged);

#endif
