/* The features that policies of the kind window decide by. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_FEATURES_H
#define HT_POLICY_FEATURES_H
#include <stddef.h>
#include <stdint.h>

enum {
#define HT_FEATURE(name, meaning) HT_FEATURE_##name,
#include "policy/features.def"
#undef HT_FEATURE
  HT_FEATURES
};

/* What they are made of. Numbers that are not known are NaN, and their features 0. */
typedef struct ht_feature_view {
  int64_t iteration;
  double residual, residual_start, residual_goal;
  double residual_8, residual_32; /* that many iterations ago */
  double alpha, beta;
  double ritz_smallest, ritz_largest;
  double error_16, error_32; /* largest column errors, against a matrix of norm 1 */
  double exact_16, exact_32, nonzeros_per_row, bytes_streamed, cache_bytes;
  double cost_16, cost_32; /* ht_policy_cost */
  double lost_16, lost_32; /* ||(A - A_level) p||, alpha times which a product adds to the gap */
  int unknowns_per_node, device;
  double diagonal_range;                  /* largest entry by the smallest */
  double residual_16;                     /* 16 iterations ago */
  double slope;                           /* decades an iteration, of late */
  double owed;                            /* what was lost to low levels since the residual was last true, as far as looks tell */
  double again_16, again_32, again, left; /* iterations that a loss would take to fall to the goal, and that are left */
  double gap_used, gap_allowed;
  int level, floor, rule; /* ht_level */
} ht_feature_view;

/* Decades that CG's residual falls an iteration where the eigenvalues lie between these, all along. */
double ht_promised_slope(double smallest, double largest);
void ht_features_fill(const ht_feature_view *view, float feature[HT_FEATURES]);
/* All names with commas between them; returns the length it needs, as snprintf does. */
size_t ht_feature_names(char *text, size_t size);

#endif
