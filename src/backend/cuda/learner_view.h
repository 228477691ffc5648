/* A learner's data on the device, as its kernels see it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_LEARNER_VIEW_H
#define HT_BACKEND_CUDA_LEARNER_VIEW_H
#include <stdint.h>
#include "backend/learning.h"

enum {
  HT_LEARNER_WIDTH = HT_LEARNER_MOST_UNITS, /* inputs, and units of both layers: fewer units are filled up with zeros, which stay zeros */
  HT_LEARNER_ACTIONS = 3,                   /* and one head more for the value */
  HT_LEARNER_HEADS = HT_LEARNER_ACTIONS + 1,
  HT_LEARNER_ROWS = HT_LEARNER_MOST_TILES, /* tiles that a block takes through the network at a time, and most of a transition */
  HT_LEARNER_PITCH = 36,                   /* floats from one unit's activations to the next one's: free of bank conflicts by 4 and by 1 */
  HT_LEARNER_THREADS = 128,                /* of the kernels that use the network */
  HT_LEARNER_MOST_LANES = 256,             /* of one matrix */
  HT_LEARNER_VALUES = 4, /* numbers from one matrix value to the next: rounded to each level, and one that fills 32 bytes */
  HT_LEARNER_LOSSES = 4,
  HT_LEARNER_NORMS = 1024,
  HT_LEARNER_MOST_SIDES = 16
};

/* What ht_learner_act does: sample an action for every tile and write down those that are learned from; write down their values alone; or
 * take the likeliest actions. */
enum { HT_LEARNER_SAMPLE, HT_LEARNER_PEEK, HT_LEARNER_LIKELIEST };

/* The weights' order on the device, and that of their gradients: inputs by outputs, but for the heads. Behind them a copy of the second
 * layer, outputs by inputs, for the way back. */
enum {
  HT_LEARNER_W1 = 0,
  HT_LEARNER_W2 = HT_LEARNER_W1 + HT_LEARNER_WIDTH * HT_LEARNER_WIDTH,
  HT_LEARNER_HEAD = HT_LEARNER_W2 + HT_LEARNER_WIDTH * HT_LEARNER_WIDTH, /* outputs by inputs */
  HT_LEARNER_B1 = HT_LEARNER_HEAD + HT_LEARNER_HEADS * HT_LEARNER_WIDTH,
  HT_LEARNER_B2 = HT_LEARNER_B1 + HT_LEARNER_WIDTH,
  HT_LEARNER_B3 = HT_LEARNER_B2 + HT_LEARNER_WIDTH,
  HT_LEARNER_WEIGHTS = HT_LEARNER_B3 + HT_LEARNER_HEADS,
  HT_LEARNER_BACK = HT_LEARNER_WEIGHTS,
  HT_LEARNER_STORED = HT_LEARNER_BACK + HT_LEARNER_WIDTH * HT_LEARNER_WIDTH
};

/* One solve. */
typedef struct ht_learner_solve {
  int64_t episode, iteration;
  double total, norm_0, norm_r, norm_before, rr, alpha, beta; /* norm_before: the step */
  int64_t share[3], rises[HT_LEARNING_RISES], replacements;   /* of a judged one */
  int32_t count[3];                                           /* tiles at each level now */
  int32_t over, broken, reached;
  /* where residuals are made true, or only asked for */
  double reference;       /* ||r|| at the last replacement */
  double best, progress;  /* lowest ||r||, and how far that is */
  double true_residual;   /* by ||b||, where the solve is over and it was asked for */
  int32_t lowest;         /* ht_level since the last replacement */
  int32_t wants;          /* HT_LEARNER_NOTHING, ... */
  int32_t replaced;       /* in this iteration */
  int32_t written, begun; /* transitions of this update, and those before the episode */
  int32_t rests;          /* until the next update */
} ht_learner_solve;

/* What a step wants before it can end: b - A x in the residual's place, or only its norm. */
enum { HT_LEARNER_NOTHING, HT_LEARNER_REPLACEMENT, HT_LEARNER_NORM };

/* What the host says between two replays. */
typedef struct ht_learner_control {
  int64_t step, steps;     /* taken, and to take until the update */
  int64_t most_iterations; /* of an episode */
  int64_t interval;        /* between two decisions */
  int32_t resting;         /* solves */
  int32_t wanted;          /* some step wants a residual */
} ht_learner_control;

/* The solves of one matrix. Vectors and levels: entry i of solve k is at i * lanes + k; behind the n-th there are zeros up to a whole tile.
 */
typedef struct ht_learner_group {
  int64_t n, tiles;
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;      /* HT_LEARNER_VALUES an entry */
  const double *right_sides; /* NULL: random */
  int64_t parts;             /* 0: none */
  const int32_t *part, *touched;
  const int64_t *touch_start;
  const ht_learner_side *side; /* the reward time, of each right-hand side; NULL: that of the paper */
  double drop[3];
  double *x, *r, *p, *q; /* x: NULL where nobody looks at it */
  uint8_t *level, *part_level;
  double *norms; /* of a judged solve: ||r|| after iteration k at (k - 1) % HT_LEARNER_NORMS */
  ht_learner_solve *solve;
  ht_learner_control *control;
  double *sums;      /* a block's and solve's */
  uint32_t *arrived; /* blocks that have left their sums */
  double rtol, tile_cost;
  uint64_t seed;
  int32_t lanes, first, stride, all_lanes; /* solve k is lane first + k * stride of all */
  int32_t judged;                          /* the likeliest actions instead of sampled ones, and nothing is written down */
  int32_t sides, replaces;
} ht_learner_group;

/* The transitions of an update, as in ht_ppo_batch; behind value_row's last one, a row a lane more. */
typedef struct ht_learner_batch {
  int64_t transitions, steps, most_rows;
  int32_t *rows;
  float *advantage, *target, *state, *log_probability, *reward, *value_row;
  uint8_t *action, *last;
  ht_episode *finished; /* lane * steps + ... */
  int32_t *finished_count;
  int32_t lanes;
} ht_learner_batch;

/* An update on its way. */
typedef struct ht_learner_scalars {
  uint64_t seed; /* of the order */
  int64_t part, parts;
  int64_t steps;    /* of Adam */
  double deviation; /* of the advantages, before they were standardised */
  ht_ppo_loss loss;
  ht_adam adam;
  int32_t stands; /* the gradient is no number, or there is no part left */
  uint32_t arrived;
} ht_learner_scalars;

typedef struct ht_learner_weights {
  float *weights, *first, *second, *gradient; /* weights: HT_LEARNER_STORED */
  float *partial;                             /* gradients, a unit of rows each */
  double *norm2;                              /* a block of the sum each */
  double *losses;                             /* policy, value, entropy and clipped, a unit each */
  uint32_t *order;                            /* of the transitions, an epoch each */
  ht_learner_scalars *scalars;
  ht_ppo_settings settings;
} ht_learner_weights;

#endif
