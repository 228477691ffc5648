/* The features that policies of the kind window decide by. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/features.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[HT_FEATURES] = {
#define HT_FEATURE(name, meaning) #name,
#include "policy/features.def"
#undef HT_FEATURE
};

enum { LEVEL_STEPS = 2 };        /* from 16 bits to FP64 */
static const double BOUND = 2.5; /* of every feature */

static float bounded(double value) { return isnan(value) ? 0 : (float)fmin(fmax(value, -BOUND), BOUND); }

/* Of a ratio, by `unit`: 0 where either is unknown, the bound where one is 0. */
static float decades(double above, double below, double unit) {
  if (isnan(above) || isnan(below)) return 0;
  if (!(above > 0)) return bounded(-BOUND);
  if (!(below > 0)) return bounded(BOUND);
  return bounded((log10(above) - log10(below)) / unit);
}

double ht_promised_slope(double smallest, double largest) { return 2 * log10(exp(1)) * sqrt(smallest / largest); }

/* Below 1 on a plateau. */
static float pace(const ht_feature_view *v) {
  enum { RECENT = 16 };
  double recent = log10(v->residual_16 / v->residual) / RECENT, mean = log10(v->residual_start / v->residual) / (double)v->iteration;
  return mean > 0 ? bounded(recent / mean) : 0;
}

void ht_features_fill(const ht_feature_view *v, float f[HT_FEATURES]) {
  f[HT_FEATURE_fallen] = decades(v->residual_start, v->residual, 10);
  f[HT_FEATURE_remaining] = decades(v->residual, v->residual_goal, 10);
  f[HT_FEATURE_slope_8] = decades(v->residual_8, v->residual, 1);
  f[HT_FEATURE_slope_32] = decades(v->residual_32, v->residual, 4);
  f[HT_FEATURE_step] = decades(v->alpha * v->ritz_largest, 1, 4);
  f[HT_FEATURE_beta] = bounded(v->beta / (1 + v->beta));
  f[HT_FEATURE_condition] = decades(v->ritz_largest, v->ritz_smallest, 8);
  f[HT_FEATURE_error_16] = decades(v->error_16 * v->ritz_largest, v->ritz_smallest, 8);
  f[HT_FEATURE_error_32] = decades(v->error_32 * v->ritz_largest, v->ritz_smallest, 8);
  f[HT_FEATURE_exact_16] = bounded(v->exact_16);
  f[HT_FEATURE_exact_32] = bounded(v->exact_32);
  f[HT_FEATURE_row] = decades(v->nonzeros_per_row, 1, 2);
  f[HT_FEATURE_cost_16] = bounded(v->cost_16);
  f[HT_FEATURE_cost_32] = bounded(v->cost_32);
  f[HT_FEATURE_loss_16] = decades(v->alpha * v->lost_16, v->residual, 8);
  f[HT_FEATURE_loss_32] = decades(v->alpha * v->lost_32, v->residual, 8);
  f[HT_FEATURE_streamed] = decades(v->bytes_streamed, v->cache_bytes, 4);
  f[HT_FEATURE_node] = bounded(v->unknowns_per_node / 3.0);
  f[HT_FEATURE_device] = bounded(v->device);
  f[HT_FEATURE_spread] = decades(v->diagonal_range, 1, 8);
  f[HT_FEATURE_pace] = pace(v);
  f[HT_FEATURE_rate] = decades(v->slope, ht_promised_slope(v->ritz_smallest, v->ritz_largest), 2);
  f[HT_FEATURE_again_16] = decades(v->again_16, v->left, 1);
  f[HT_FEATURE_again_32] = decades(v->again_32, v->left, 1);
  f[HT_FEATURE_owed] = decades(v->owed, v->residual, 8);
  f[HT_FEATURE_again] = decades(v->again, v->left, 1);
  f[HT_FEATURE_gap] = decades(v->gap_used, v->gap_allowed, 8);
  f[HT_FEATURE_level] = bounded((double)v->level / LEVEL_STEPS);
  f[HT_FEATURE_floor] = bounded((double)v->floor / LEVEL_STEPS);
  f[HT_FEATURE_rule] = bounded((double)v->rule / LEVEL_STEPS);
  f[HT_FEATURE_iterations] = decades((double)v->iteration + 1, 1, 4);
}

size_t ht_feature_names(char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < HT_FEATURES; i++) {
    size_t comma = i > 0, length = comma + strlen(names[i]);
    if (used + length < size) snprintf(text + used, size - used, "%s%s", comma ? "," : "", names[i]);
    used += length;
  }
  return used;
}
