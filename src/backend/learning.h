/* Learning a precision policy by proximal policy optimisation (Schulman et al. 2017): the formulas and plain data that the host's training
 * (src/train) and a device's kernels share. Every function here is the only place of its formula. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_LEARNING_H
#define HT_BACKEND_LEARNING_H
#include <math.h>
#include <stdint.h>
#include "base/random.h"

enum { HT_LEARNING_RISES = 11 }; /* the longest interval between two decisions is 2 to one less */

typedef struct ht_ppo_settings {
  double clip, value_weight, entropy_weight, learning_rate, gradient_clip;
  int64_t epochs, minibatch; /* transitions */
  double own_cost;           /* of a tile at FP64, where each tile's advantage has its own cost instead of the mean; 0: the mean */
  int32_t summed;            /* a transition's policy loss is the sum over its tiles, not the mean; its entropy is the mean either way */
} ht_ppo_settings;

typedef struct ht_ppo_loss {
  double total, policy, value, entropy; /* total = policy + value_weight * value - entropy_weight * entropy */
  double clipped;                       /* share of the tiles */
} ht_ppo_loss;

/* What an episode came to. */
typedef struct ht_episode {
  int64_t number, iterations;
  double total; /* of the rewards, not discounted */
} ht_episode;

/* ---- actions ---- */

/* The paper's 0, 1, 2: FP64, FP32, 16 bits, as an ht_level. */
static HT_KERNELS_TOO inline int ht_learning_level(int action) { return 2 - action; }

/* The number that decides about a tile: uniform in [0, 1). */
static HT_KERNELS_TOO inline double ht_learning_draw(uint64_t seed, int64_t episode, int64_t iteration, int64_t tile, int64_t tiles) {
  return (ht_random_uniform(ht_random_bits(seed, (uint64_t)episode), (uint64_t)(iteration * tiles + tile)) + 1) / 2;
}

/* The same for all tiles of an episode, to its end: what a level does shows in the solve as a whole, and late, and could be told of neither
 * a tile nor an iteration that takes it alone. number: of the episode, among those on its matrix. Multiples of the golden ratio spread
 * evenly over [0, 1), however few episodes there are. */
static HT_KERNELS_TOO inline double ht_learning_shared_draw(uint64_t seed, int64_t number) {
  const double golden = 0.6180339887498949, u = golden * (double)number + ht_learning_draw(seed, 0, 0, 0, 1);
  return u - floor(u);
}

static HT_KERNELS_TOO inline int ht_learning_sample(int actions, const float *log_probability, double u) {
  double sum = 0;
  for (int a = 0; a < actions - 1; a++) {
    sum += exp((double)log_probability[a]);
    if (u < sum) return a;
  }
  return actions - 1;
}

/* The tiles that are learned from: all, or one out of each of `most` equal ranges: two neighbours may meet in the tile that they share. */
static HT_KERNELS_TOO inline int64_t ht_learning_pick(uint64_t seed, int64_t episode, int64_t iteration, int64_t index, int64_t most,
                                                      int64_t tiles) {
  if (tiles <= most) return index;
  double u = ht_learning_draw(seed ^ 0x70e1, episode, iteration, index, most);
  int64_t tile = (int64_t)(((double)index + u) * (double)tiles / (double)most);
  return tile < tiles ? tile : tiles - 1;
}

/* Entry i of an episode's right-hand side where it is random. */
static HT_KERNELS_TOO inline double ht_learning_right_side(uint64_t seed, int64_t episode, int64_t i) {
  return ht_random_uniform(ht_random_bits(seed, (uint64_t)episode), (uint64_t)i);
}

/* Of so many right-hand sides that of an episode with this number, among those on its matrix; the first is there to judge by. */
static HT_KERNELS_TOO inline int ht_learning_side(int sides, int64_t number) { return sides == 1 ? 0 : 1 + (int)(number % (sides - 1)); }

/* ---- reward ---- */

static HT_KERNELS_TOO inline double ht_learning_clamp(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

/* The weight of C(a), and what an action costs by FP64. */
#define HT_LEARNING_COST 0.2
static HT_KERNELS_TOO inline double ht_learning_action_cost(int action) { return action == 0 ? 1 : action == 1 ? 0.5 : 0.25; }

/* Equation 11 of the EvoCG paper. count: tiles at each level; tile_cost: C(a) of one at FP64, which the paper does not tell. A breakdown
 * costs what reaching the end would have brought; a residual that jumps is bounded, so that no episode is worth more than the others
 * together. */
static HT_KERNELS_TOO inline double ht_learning_reward(double before, double after, const int32_t count[3], int64_t tiles, int broken,
                                                       int reached, double tile_cost) {
  const double progress = 10, cost = HT_LEARNING_COST * tile_cost, reward_reached = 30, most_decay = 10;
  double sum = 0.25 * count[0] + 0.5 * count[1] + count[2];
  if (broken) return -reward_reached;
  double decay = after > 0 ? log(before / after) : most_decay;
  return progress * ht_learning_clamp(decay, -most_decay, most_decay) - cost * sum / (double)tiles + (reached ? reward_reached : 0);
}

/* Iterations that FP64 takes to this residual, by ||b||: between two of them in proportion to the logarithm. fallen: its lowest residual
 * up to each of its iterations, 0 to `iterations`. */
static HT_KERNELS_TOO inline double ht_learning_progress(const double *fallen, int64_t iterations, double residual) {
  int64_t low = 0, high = iterations; /* fallen[low] > residual >= fallen[high] */
  if (!(residual < fallen[0])) return 0;
  if (residual <= fallen[high]) return (double)high;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (fallen[middle] > residual)
      low = middle;
    else
      high = middle;
  }
  return (double)low + log(fallen[low] / residual) / log(fallen[low] / fallen[high]);
}

/* What the parts of a solve cost, by FP64's solve of the same system. */
typedef struct ht_learning_prices {
  double iteration[3]; /* with all tiles at a level */
  double exact, look;  /* a residual recomputed; a look of the network */
} ht_learning_prices;

/* The reward `time` of an iteration: progress, in iterations of FP64, less cost, both as shares of FP64's solve. */
static HT_KERNELS_TOO inline double ht_learning_saving(const ht_learning_prices *prices, double progress, int64_t iterations_64,
                                                       const int32_t count[3], int64_t tiles, int replaced) {
  double cost = replaced ? prices->exact : 0;
  for (int level = 0; level < 3; level++) cost += (double)count[level] / (double)tiles * prices->iteration[level];
  return progress / (double)iterations_64 - cost;
}

/* What an end without certified answer costs more: what is missing counts twice. */
static HT_KERNELS_TOO inline double ht_learning_missed(double progress, int64_t iterations_64) {
  return 2 * (1 - progress / (double)iterations_64);
}

/* Generalised advantage estimate (Schulman et al. 2016): a transition's, from the one after it. goes_on: gamma, or 0 at an episode's end.
 */
static HT_KERNELS_TOO inline double ht_learning_advantage(double reward, double value, double next_value, double next_advantage,
                                                          double goes_on, double lambda) {
  return reward + goes_on * next_value - value + goes_on * lambda * next_advantage;
}

/* A tile's advantage: the transition's, with its own cost in the place of the mean of those that are learned from. deviation: of the
 * advantages before they were standardised. */
static HT_KERNELS_TOO inline float ht_learning_tile_advantage(const ht_ppo_settings *settings, float advantage, const uint8_t *actions,
                                                              int64_t tiles, int64_t tile, double deviation) {
  double mean = 0;
  if (!(settings->own_cost > 0)) return advantage;
  for (int64_t k = 0; k < tiles; k++) mean += ht_learning_action_cost(actions[k]) / (double)tiles;
  return advantage + (float)(settings->own_cost * (mean - ht_learning_action_cost(actions[tile])) / deviation);
}

/* ---- loss ---- */

/* Log-probabilities of `actions` logits, in place; returns their entropy. */
static HT_KERNELS_TOO inline float ht_learning_log_softmax(int actions, float *logits) {
  float largest = logits[0], sum = 0, entropy = 0;
  for (int a = 1; a < actions; a++) largest = logits[a] > largest ? logits[a] : largest;
  for (int a = 0; a < actions; a++) sum += expf(logits[a] - largest);
  float shift = largest + logf(sum);
  for (int a = 0; a < actions; a++) {
    logits[a] -= shift;
    entropy -= expf(logits[a]) * logits[a];
  }
  return entropy;
}

/* Loss of one tile's action, of weight `share` and one of `tiles` in its transition, and its gradient over the logits, which become
 * log-probabilities:
 *   -min(ratio A, clip(ratio) A) - entropy_weight H. */
static HT_KERNELS_TOO inline void ht_learning_tile_loss(const ht_ppo_settings *settings, int actions, float advantage, int action,
                                                        float old, float share, int64_t tiles, float *logits, float *gradient,
                                                        ht_ppo_loss *loss) {
  float clip = (float)settings->clip, entropy_weight = (float)settings->entropy_weight,
        part = settings->summed ? share * (float)tiles : share; /* the policy's */
  float entropy = ht_learning_log_softmax(actions, logits), ratio = expf(logits[action] - old);
  float bounded = ratio < 1 - clip ? 1 - clip : ratio > 1 + clip ? 1 + clip : ratio;
  int free = ratio * advantage <= bounded * advantage;
  float slope = free ? -part * advantage * ratio : 0; /* over the action's log-probability */
  for (int a = 0; a < actions; a++) {
    float probability = expf(logits[a]);
    gradient[a] = slope * ((float)(a == action) - probability) + entropy_weight * share * probability * (logits[a] + entropy);
  }
  loss->policy -= (double)(part * (free ? ratio : bounded) * advantage);
  loss->entropy += (double)(share * entropy);
  loss->clipped += bounded != ratio ? (double)share : 0;
}

/* ---- Adam (Kingma and Ba 2015) ---- */

/* cut: what a gradient is multiplied by, so that its norm is at most gradient_clip. */
typedef struct ht_adam {
  double cut, rate, epsilon;
} ht_adam;

/* Of step number `steps`, counted from 1. */
static HT_KERNELS_TOO inline ht_adam ht_learning_adam(const ht_ppo_settings *settings, double norm, int64_t steps) {
  const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, root = sqrt(1 - pow(beta2, (double)steps));
  ht_adam adam = {norm > settings->gradient_clip ? settings->gradient_clip / norm : 1,
                  settings->learning_rate * root / (1 - pow(beta1, (double)steps)), epsilon * root};
  return adam;
}

static HT_KERNELS_TOO inline void ht_learning_adam_step(const ht_adam *adam, float gradient, float *first, float *second, float *weight) {
  const double beta1 = 0.9, beta2 = 0.999;
  double g = adam->cut * (double)gradient;
  double m = beta1 * (double)*first + (1 - beta1) * g, v = beta2 * (double)*second + (1 - beta2) * g * g;
  *first = (float)m;
  *second = (float)v;
  *weight -= (float)(adam->rate * m / (sqrt(v) + adam->epsilon));
}

/* ---- A learner: training on a device (backend.h: learner_create) ---- */

typedef struct ht_learner ht_learner;

enum { HT_LEARNER_MOST_UNITS = 64, HT_LEARNER_MOST_TILES = 32 }; /* a layer; of a transition, that are learned from */

/* A matrix and its right-hand sides; the order of the unknowns is the solves'. */
typedef struct ht_learner_system {
  int64_t n;
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;      /* three an entry: as it is read at each level */
  const double *right_sides; /* of n numbers each, one after the other; NULL: random ones, another in each episode */
  int sides;
  /* Where entries are read together, at the highest level that one of their column blocks asks for: parts. NULL: each at the level of its
   * column block. */
  int64_t parts;
  const int32_t *part;        /* of each entry */
  const int64_t *touch_start; /* of each part, and the end */
  const int32_t *touched;     /* column blocks */
} ht_learner_system;

typedef struct ht_learner_settings {
  ht_ppo_settings ppo;
  int hidden;        /* units a layer */
  int lanes;         /* solves side by side: a multiple of the number of matrices; lane k solves with matrix k modulo that */
  int64_t steps;     /* transitions a lane and update: number lane * steps + step */
  int64_t most_rows; /* tiles of a transition that are learned from */
  uint64_t seed;
  double rtol, gamma, gae_lambda, tile_cost;
  /* The reward time, of whole episodes (learner_set_saving), in the place of equation 11 */
  int saves;
  int replaces;   /* residuals are made true, and */
  double drop[3]; /* how far ||r|| may fall until then, by the lowest level that was read; saves alone */
} ht_learner_settings;

/* One right-hand side, as FP64 solves with it, and prices by that solve. */
typedef struct ht_learner_side {
  const double *fallen; /* ht_learning_progress */
  int64_t iterations;
  ht_learning_prices prices;
} ht_learner_side;

/* One solve on the way, between two transitions. Vectors: host memory, entries of the matrix's n unknowns; the iterate is nobody's business
 * here: where rewards look at it, no solve is on its way between two updates. */
typedef struct ht_learner_lane {
  int64_t episode, iteration; /* episode: -1 before the first */
  double total, norm_0, norm_r, rr;
  int over;
  double *r, *p;
} ht_learner_lane;

/* A solve with the likeliest actions under these weights, or all in FP64 where there are none. */
typedef struct ht_learner_trial {
  const float *weights; /* as ht_network has them; NULL: FP64 */
  int64_t interval;     /* between two decisions */
  int64_t most_iterations;
  int side;      /* the right-hand side's number; where they are random, the episode's */
  double *x;     /* receives the iterate, n numbers */
  double *norms; /* receives ||r|| after each iteration, the first `room`; NULL: nobody asks */
  int64_t room;
} ht_learner_trial;

typedef struct ht_learner_judgement {
  int64_t iterations, count[3]; /* count: tiles over the iterations, read at each level */
  int64_t rises[HT_LEARNING_RISES];
  int64_t replacements;
  double norm_0, norm_r; /* the recurrence's */
  int reached, broken;
  int lowest; /* ht_level that was read since the last replacement */
} ht_learner_judgement;

#endif
