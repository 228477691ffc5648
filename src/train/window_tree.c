/* What a network makes of all that solves can become. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "train/dense.h"
#include "train/window.h"

/* Gains count twice more where they are losses against the best that a solve could have begun with, FP64 among it: a policy for all
 * matrices is not to lose on some what it gains on others. */
static double worth(double gain, double best) {
  static const double REGRET = 2;
  return gain + REGRET * fmin(gain - best, 0);
}

static double best_of(const ht_window *r, const ht_tree *tree) {
  double best = 0;
  for (int a = 0; tree->looks && a < r->actions; a++) best = fmax(best, tree->gain[0][a]);
  return best;
}

/* The trees one after the other, those to learn from or those to judge by. */
static const ht_tree *next_tree(const ht_window *r, int learned_from, int *at) {
  while (*at < r->cases * HT_WINDOW_RIGHT_SIDES) {
    int number = *at % HT_WINDOW_RIGHT_SIDES;
    const ht_tree *tree = &r->worker[*at / HT_WINDOW_RIGHT_SIDES].tree[number];
    ++*at;
    if (tree->made && (number > 0) == learned_from) return tree;
  }
  return NULL;
}

/* ---- what is seen ---- */

/* Another size of the cache, where it may be any: 1 to 30 times as many bytes stream. And noise, so that what is learned are no matrices.
 */
static void see(const ht_window *r, const ht_tree *tree, int look, uint64_t seed, uint64_t counter, float *row) {
  static const double NOISE = 0.2, DECADES = 1.5, UNIT = 4;
  memcpy(row, tree->state[look], sizeof tree->state[look]);
  if (!seed) return;
  if (r->any) row[HT_FEATURE_streamed] = (float)(DECADES * (ht_random_uniform(seed, counter) + 1) / 2 / UNIT);
  for (int i = 0; i < HT_FEATURES; i++) row[i] += (float)(NOISE * ht_random_uniform(seed ^ 1, counter * HT_FEATURES + (uint64_t)i));
}

/* All looks of the trees, one a row. Seed 0: as they were. */
static int64_t pass(ht_window *r, const ht_packed *packed, int learned_from, uint64_t seed) {
  int width = packed->layer[0].in, at = 0;
  int64_t rows = 0;
  for (const ht_tree *tree; (tree = next_tree(r, learned_from, &at));)
    for (int look = 0; look < tree->looks; look++, rows++)
      see(r, tree, look, seed, (uint64_t)rows, r->forward.activation[0] + rows * width);
  ht_packed_forward(packed, rows, &r->forward);
  return rows;
}

/* ---- the gradient ---- */

static int likeliest(int actions, const float *y) {
  int best = 0;
  for (int a = 1; a < actions; a++)
    if (y[a] > y[best]) best = a;
  return best;
}

/* How far the outputs at a tree's looks are from what the actions are worth there, as a gradient. Going on is worth what the network makes
 * of it: what the likeliest action at the next look is worth, and so on (Longstaff and Schwartz 2001). Returns what it makes of the tree.
 */
static double tree_gradient(const ht_window *r, const ht_tree *tree, int width, const float *y, float *dy, double *error) {
  static const double MOST = 0.5; /* of a worth either way: a plate that takes three times as long is no more of a lesson */
  double best = best_of(r, tree), later = fmax(worth(0, best), -MOST);
  for (int look = tree->looks - 1; look >= 0; look--) {
    double value[HT_NETWORK_MOST_ACTIONS];
    for (int a = 0; a < r->actions; a++) {
      value[a] = a == r->begins_with ? later : fmin(fmax(worth(tree->gain[look][a], best), -MOST), MOST);
      double miss = (double)y[look * width + a] - value[a];
      *error += miss * miss;
      dy[look * width + a] = (float)(2 * miss / (double)r->learned_rows);
    }
    later = value[likeliest(r->actions, y + look * width)];
  }
  return later;
}

double ht_window_gradient(ht_window *r, ht_ppo *ppo, uint64_t seed, double *error) {
  const ht_packed *packed = &ppo->packed;
  int width = packed->layer[HT_PACKED_LAYERS - 1].out, at = 0;
  int64_t size = ht_packed_gradient_size(packed), rows = pass(r, packed, 1, seed), padded = ht_dense_padded(rows, HT_DENSE_ROWS), row = 0;
  const float *y = r->forward.activation[HT_PACKED_LAYERS];
  float *dy = r->backward.activation[HT_PACKED_LAYERS];
  double sum = 0;
  *error = 0;
  memset(r->sums, 0, (size_t)size * sizeof *r->sums);
  memset(dy, 0, (size_t)(padded * width) * sizeof *dy);
  for (const ht_tree *tree; (tree = next_tree(r, 1, &at)); row += tree->looks)
    sum += tree->earned + tree_gradient(r, tree, width, y + row * width, dy + row * width, error);
  ht_packed_backward(packed, rows, &r->forward, &r->backward, r->sums);
  ht_packed_flatten(packed, r->sums, ppo->gradient);
  *error /= (double)rows;
  return sum / r->trees;
}

/* ---- judging ---- */

double ht_window_worth(ht_window *r, const ht_packed *packed) {
  int width = packed->layer[HT_PACKED_LAYERS - 1].out, at = 0, trees = 0;
  int64_t row = 0;
  double sum = 0;
  pass(r, packed, 0, 0);
  for (const ht_tree *tree; (tree = next_tree(r, 0, &at)); row += tree->looks, trees++) {
    double gain = 0;
    for (int look = 0, action = r->begins_with; look < tree->looks && action == r->begins_with; look++) {
      action = likeliest(r->actions, r->forward.activation[HT_PACKED_LAYERS] + (row + look) * width);
      if (action != r->begins_with) gain = tree->gain[look][action];
    }
    sum += tree->earned + worth(gain, best_of(r, tree));
  }
  return sum / trees;
}
