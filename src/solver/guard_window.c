/* Policies of the kind window: what they see, and what their actions do. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "policy/features.h"
#include "solver/guard.h"

/* Finding the Ritz values takes time in proportion to the iterations made: again after an eighth more of them. */
static void follow_ritz(ht_guard *g) {
  int64_t steps = g->segment_end >= 0 ? g->segment_end : g->loop->state.iteration;
  if (steps < 2 || (g->ritz_steps > 0 && steps < g->ritz_steps + g->ritz_steps / 8 + 1)) return;
  g->ritz_steps = steps;
  ht_guard_ritz_extremes(g, &g->ritz_smallest, &g->ritz_largest);
}

/* ||r|| of the loop so many iterations ago; NaN where it was not recorded. */
static double residual_before(const ht_cg_state *s, int64_t iterations) {
  int64_t at = s->iteration - iterations;
  return at >= 0 && at < s->capacity ? s->history[at] : NAN;
}

static void fill_features(ht_guard *g, float feature[HT_FEATURES]) {
  const ht_cg_state *s = &g->loop->state;
  const ht_policy_facts *known = g->known;
  follow_ritz(g);
  ht_feature_view view = {.iteration = s->iteration,
                          .residual = s->norm_r,
                          .residual_start = residual_before(s, s->iteration),
                          .residual_goal = g->goal,
                          .residual_8 = residual_before(s, 8),
                          .residual_32 = residual_before(s, 32),
                          .alpha = s->alpha,
                          .beta = s->beta,
                          .ritz_smallest = g->ritz_smallest,
                          .ritz_largest = g->ritz_largest,
                          .error_16 = known->error_16,
                          .error_32 = known->error_32,
                          .exact_16 = known->share_exact_16,
                          .exact_32 = known->share_exact_32,
                          .nonzeros_per_row = known->nonzeros_per_row,
                          .bytes_streamed = known->bytes_streamed,
                          .cache_bytes = known->cache_bytes,
                          .cost_16 = ht_policy_cost(known, HT_LEVEL_16),
                          .cost_32 = ht_policy_cost(known, HT_LEVEL_32),
                          .lost_16 = sqrt(s->error2[HT_LEVEL_16]),
                          .lost_32 = sqrt(s->error2[HT_LEVEL_32]),
                          .unknowns_per_node = known->unknowns_per_node,
                          .device = known->device,
                          .gap_used = g->gap,
                          .gap_allowed = g->gap_borne,
                          .level = ht_guard_lowest_level(g),
                          .floor = g->floor};
  ht_features_fill(&view, feature);
}

/* A replacement brings back, as something that CG has not seen, what a level has lost since the one before, and CG reduces it as slowly as
 * it did at first: on a plateau that may take as long as the whole solve. So nothing is lost before the residual has fallen by a decade,
 * nor where the level's error is no longer small enough against the smallest Ritz value. The limits part the families of
 * bench/evocg/train_universal.txt that bear a level from those that do not. */
static int bears_level(const ht_guard *g, ht_level level) {
  static const double FALLEN = 0.1, MOST[HT_LEVEL_64] = {0.04, 2e-6};
  const double error[] = {g->known->error_16, g->known->error_32}, exact[] = {g->known->share_exact_16, g->known->share_exact_32};
  const ht_cg_state *s = &g->loop->state;
  if (level == HT_LEVEL_64 || exact[level] == 1) return 1;
  return s->norm_r <= FALLEN * residual_before(s, s->iteration) && error[level] * g->ritz_largest <= MOST[level] * g->ritz_smallest;
}

/* What the guard lets pass of an action: where the level is not borne the next one is, and where none is, the budget for a while. */
static ht_learned_action clip(const ht_guard *g, ht_learned_action action) {
  static const double THETA = 0.03;
  enum { A_WHILE = 16 };
  if (action.theta > 0 || bears_level(g, action.level)) return action;
  if (action.level == HT_LEVEL_16 && bears_level(g, HT_LEVEL_32)) {
    action.level = HT_LEVEL_32;
    action.drop = 0;
    return action;
  }
  return (ht_learned_action){.level = HT_LEVEL_64, .theta = THETA, .window = A_WHILE};
}

void ht_guard_decide_window(ht_guard *g, const ht_policy_view *view) {
  float feature[HT_FEATURES];
  fill_features(g, feature);
  const ht_policy_look look = {.feature = feature,
                               .iteration = g->loop->state.iteration,
                               .exact_products = g->certifier.products,
                               .residual = g->loop->state.norm_r,
                               .bytes = g->loop->state.bytes_level};
  ht_learned_action action = clip(g, ht_policy_choose_action(&g->policy, &look));
  g->by_budget = action.theta > 0;
  g->asked_drop = action.drop;
  g->asked_window = action.window;
  if (g->by_budget)
    ht_policy_decide_budget(&g->policy, view, action.theta, g->loop->block_level);
  else
    memset(g->loop->block_level, (int)action.level, (size_t)view->blocks);
}
