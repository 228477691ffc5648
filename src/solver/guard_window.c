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

/* ---- how long a loss would take to fall ---- */

/* When the residual had fallen by one decade, by two, and so on. */
static void follow_falls(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  for (; g->falls_seen <= s->iteration && g->falls_seen < s->capacity; g->falls_seen++)
    while (g->falls < HT_FALLS && s->history[g->falls_seen] <= pow(10, -(g->falls + 1)) * s->history[0])
      g->fell_at[g->falls++] = g->falls_seen;
}

enum { RECENT = 32, A_WHILE = 16 };

/* Decades that the residual fell an iteration, of late. */
static double slope(const ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  int64_t steps = s->iteration < RECENT ? s->iteration : RECENT;
  return steps ? fmax(log10(residual_before(s, steps) / s->norm_r) / (double)steps, 0) : NAN;
}

/* Iterations in which a residual of this size would fall to the goal. CG has not seen what was lost, so that a new solve would have to be
 * made of it: it falls as the residual has, plateaus and all, and as it does now beyond what was seen. */
double ht_guard_iterations_again(const ht_guard *g, double size) {
  const ht_cg_state *s = &g->loop->state;
  double decades = log10(size / g->goal), fallen = log10(residual_before(s, s->iteration) / s->norm_r);
  if (isnan(decades) || decades <= 0) return isnan(decades) ? NAN : 0;
  int whole = (int)fmin(decades, HT_FALLS);
  if (whole > g->falls || whole == HT_FALLS) return (double)s->iteration + fmax(decades - fallen, 0) / slope(g);
  double low = whole ? (double)g->fell_at[whole - 1] : 0, high = whole < g->falls ? (double)g->fell_at[whole] : (double)s->iteration;
  return low + (decades - whole) * (high - low);
}

static double iterations_left(const ht_guard *g) { return log10(g->loop->state.norm_r / g->goal) / slope(g); }

/* ||(A - A_level) p|| with the direction at hand, which nothing measures on a device. */
static double lost_at(const ht_guard *g, ht_level level) { return g->known->device ? NAN : sqrt(g->loop->state.error2[level]); }

/* What such a product adds to the gap. */
static double loss_at(const ht_guard *g, ht_level level) { return level < HT_LEVEL_64 ? g->loop->state.alpha * lost_at(g, level) : 0; }

/* Products since the last look have each lost about what one on the present direction would; what they lose adds up, as measured. */
static void follow_owed(ht_guard *g) {
  int64_t iteration = g->loop->state.iteration;
  double loss = loss_at(g, g->replacing.to_replace);
  if (isfinite(loss)) g->owed += loss * (double)(iteration - g->looked_at);
  g->looked_at = iteration;
}

/* Of what products at the level would lose from here on. */
static double again_at(const ht_guard *g, ht_level level) {
  enum { PRODUCTS = 16 };
  return ht_guard_iterations_again(g, PRODUCTS * loss_at(g, level));
}

/* What features are made of, and what the guard judges an action by. */
static void follow(ht_guard *g) {
  follow_ritz(g);
  follow_falls(g);
  follow_owed(g);
}

static void fill_features(const ht_guard *g, float feature[HT_FEATURES]) {
  const ht_cg_state *s = &g->loop->state;
  const ht_policy_facts *known = g->known;
  const ht_policy *rule = g->policy.by_rule;
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
                          .lost_16 = lost_at(g, HT_LEVEL_16),
                          .lost_32 = lost_at(g, HT_LEVEL_32),
                          .unknowns_per_node = known->unknowns_per_node,
                          .device = known->device,
                          .diagonal_range = known->diagonal_range,
                          .residual_16 = residual_before(s, 16),
                          .slope = slope(g),
                          .owed = g->owed,
                          .again_16 = again_at(g, HT_LEVEL_16),
                          .again_32 = again_at(g, HT_LEVEL_32),
                          .again = ht_guard_iterations_again(g, g->owed),
                          .left = iterations_left(g),
                          .gap_used = g->gap,
                          .gap_allowed = g->gap_borne,
                          .level = ht_guard_lowest_level(g),
                          .floor = g->floor,
                          .rule = rule->later_drop > 0 ? rule->later : rule->start};
  ht_features_fill(&view, feature);
}

/* ---- what the guard lets pass ---- */

/* On a plateau CG falls slower than the ratio of the Ritz values promises, since eigenvalues hold it up that it is still looking for. What
 * is lost there or before has to cross it again once the residual is made true. */
static int on_plateau(const ht_guard *g) {
  static const double SLOWER = 0.25;
  return g->loop->state.iteration >= RECENT && slope(g) < SLOWER * ht_promised_slope(g->ritz_smallest, g->ritz_largest);
}

/* Whether what the level loses is gone before the rest is. After a plateau what is left is hard to tell, and what was lost, however little,
 * would cross it again: the budget is for the rest, which lets nothing be lost that the goal does not bear. */
static int bears_level(const ht_guard *g, ht_level level) {
  static const double BEFORE = 0.9;
  if (ht_guard_is_exact(g, level)) return 1;
  return !g->plateaus && !(again_at(g, level) > BEFORE * iterations_left(g));
}

/* Where the level is not borne the next one is, and where none is, the budget for a while. */
static ht_learned_action clip(const ht_guard *g, ht_learned_action action) {
  static const double THETA = 0.03;
  if (action.theta > 0 || bears_level(g, action.level)) return action;
  if (action.level == HT_LEVEL_16 && bears_level(g, HT_LEVEL_32)) {
    action.level = HT_LEVEL_32;
    action.drop = 0;
    return action;
  }
  return (ht_learned_action){.level = HT_LEVEL_64, .theta = THETA, .window = A_WHILE};
}

/* Auto's level, which may have to wait until the residual has fallen. */
static ht_level level_by_rule(const ht_guard *g) {
  const ht_policy *rule = g->policy.by_rule;
  const ht_cg_state *s = &g->loop->state;
  return rule->later_drop > 0 && s->norm_r <= rule->later_drop * s->history[0] ? rule->later : rule->start;
}

/* What auto would do here: its level, and its budget where that has failed. */
static ht_learned_action follow_rule(const ht_guard *g, int window) {
  const ht_policy *rule = g->policy.by_rule;
  if (g->rule_failed && rule->fallback) return (ht_learned_action){.rule = 1, .level = HT_LEVEL_64, .theta = g->policy.theta};
  ht_level level = level_by_rule(g);
  return (ht_learned_action){.rule = 1, .level = level > g->floor ? level : g->floor, .window = window};
}

/* Iterations to the next look, at most: as many as were made. A device has to stop for it, and the first comes when it costs a hundredth of
 * what was made before. */
static int longest_window(const ht_guard *g) {
  const ht_policy_facts *f = g->known;
  double least = f->device ? 100 * ht_policy_look_cost(f) / ht_policy_time(f, f->bytes_level[HT_LEVEL_64]) : A_WHILE;
  return (int)fmin(fmax((double)g->loop->state.iteration, least), HT_LEARNED_MOST_INTERVAL);
}

/* As the guard lets it pass here. Groups at levels of their own cost a device more than their bytes save. */
static ht_learned_action adapt(const ht_guard *g, ht_learned_action action) {
  int longest = longest_window(g);
  if (!action.window) action.window = g->policy.interval;
  if (action.window > longest) action.window = longest;
  action = action.rule ? follow_rule(g, action.window) : clip(g, action);
  return action.theta > 0 && g->known->device ? (ht_learned_action){.level = HT_LEVEL_64, .window = longest} : action;
}

/* What a level has lost has to be made good whenever it is left, so that there is no way back and forth: a solve leaves what it began with
 * once, and nobody is asked any more. */
static ht_learned_action choose(ht_guard *g) {
  float feature[HT_FEATURES];
  const ht_learned_action *action = &g->policy.action[g->action];
  if (!g->has_left || (action->level < HT_LEVEL_64 && !action->rule)) follow(g);
  if (g->has_left) return *action;
  fill_features(g, feature);
  g->action = ht_policy_choose_action(&g->policy, &(ht_policy_look){.feature = feature});
  g->has_left = g->action != g->policy.begins_with;
  return g->policy.action[g->action];
}

int ht_guard_looks_at_pauses(const ht_guard *g) { return g->policy.window && g->loop->engine; }

int ht_guard_look_is_due(const ht_guard *g) { return ht_guard_looks_at_pauses(g) && g->loop->state.iteration >= g->next_look; }

void ht_guard_decide_window(ht_guard *g, const ht_policy_view *view) {
  ht_learned_action action = choose(g);
  g->plateaus |= on_plateau(g);
  action = adapt(g, action);
  int loses = g->replacing.to_replace < HT_LEVEL_64;
  g->by_rule = action.rule;
  g->by_budget = action.theta > 0;
  g->asked_drop = action.drop;
  g->asked_window = g->by_budget ? 0 : action.window; /* the budget has its own time to look */
  if (g->by_budget && !g->loop->state.fresh)
    ht_policy_decide_budget(&g->policy, view, action.theta, g->loop->block_level);
  else
    memset(g->loop->block_level, (int)action.level, (size_t)view->blocks);
  /* Whoever leaves the levels that lose has what they lost made good at once, so that CG meets it as early as can be. */
  if (loses && (g->by_budget || action.level == HT_LEVEL_64)) ht_guard_settle_later(g);
}
