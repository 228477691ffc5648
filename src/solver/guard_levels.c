/* The guard's means: levels, and true residuals in the place of the loop's. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "solver/guard.h"

/* The true residual may differ from the loop's by this share before the direction is given up. */
static const double KEEP_DIRECTION = 0.1;

ht_level ht_guard_lowest_level(const ht_guard *g) {
  ht_level level = HT_LEVEL_64;
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < level) level = (ht_level)g->loop->block_level[b];
  return level;
}

static void enforce_floor(ht_guard *g) {
  for (int64_t b = 0; b < g->loop->op->blocks; b++)
    if (g->loop->block_level[b] < g->floor) g->loop->block_level[b] = (uint8_t)g->floor;
  g->loop->levels_changed(g->loop);
}

void ht_guard_start_levels(ht_guard *g) {
  if (!g->loop->op->blocks) return;
  memset(g->loop->block_level, (int)g->policy.start, (size_t)g->loop->op->blocks);
  enforce_floor(g);
}

static int64_t sum_of_levels(const ht_guard *g) {
  int64_t sum = 0;
  for (int64_t b = 0; b < g->loop->op->blocks; b++) sum += g->loop->block_level[b];
  return sum;
}

void ht_guard_consult_policy(ht_guard *g) {
  const ht_cg_state *s = &g->loop->state;
  ht_policy_view view = {.iteration = s->iteration,
                         .blocks = g->loop->op->blocks,
                         .residual = s->norm_r,
                         .residual_target = g->goal,
                         .alpha = s->alpha,
                         .direction_norm2 = s->block_norm2,
                         .direction_max = s->block_max,
                         .error_16 = g->loop->op->column_error[HT_LEVEL_16],
                         .error_f32 = g->loop->op->column_error[HT_LEVEL_32],
                         .measured_16 = sqrt(s->error2[HT_LEVEL_16]),
                         .measured_f32 = sqrt(s->error2[HT_LEVEL_32])};
  int64_t before = sum_of_levels(g);
  g->policy.decide(&g->policy, &view, g->loop->block_level);
  enforce_floor(g);
  /* A look costs a few per cent of a product: the less it changes, the longer until the next. */
  int64_t longest = 8 * g->policy_interval;
  g->interval = sum_of_levels(g) != before ? g->policy_interval : 2 * g->interval < longest ? 2 * g->interval : longest;
  g->next_look = s->iteration + g->interval;
}

/* How far the residual may fall before it is replaced. The replacement changes it by about a thousandth at 16 bits, which costs
 * CG few iterations; a longer fall costs more of them than it saves in replacements. */
double ht_guard_first_drop(ht_level level) { return level == HT_LEVEL_16 ? 0.03 : level == HT_LEVEL_32 ? 1e-6 : 0; }

static void raise_floor(ht_guard *g) {
  ht_level lowest = ht_guard_lowest_level(g);
  g->floor = lowest < HT_LEVEL_64 ? lowest + 1 : HT_LEVEL_64;
  enforce_floor(g);
  g->drop = g->policy.replaces ? ht_guard_first_drop(ht_guard_lowest_level(g)) : 0;
}

/* The level failed: over to the policy's fallback where it has one, else one level up. */
void ht_guard_give_up_level(ht_guard *g) {
  if (!g->policy.fallback) {
    raise_floor(g);
    return;
  }
  g->policy.decide = g->policy.fallback;
  g->policy.rule = g->policy.fallback_rule;
  g->policy.fallback = NULL;
  g->policy.replaces = 0;
  g->policy.start = HT_LEVEL_64;
  g->drop = 0;
  g->next_look = g->loop->state.iteration + g->interval;
  ht_guard_start_levels(g);
}

/* ---- true residuals ---- */

/* An infinite norm meets no goal, not even an infinite one. */
int ht_guard_meets_goal(const ht_guard *g, double norm) { return norm <= g->goal && isfinite(norm); }

/* x and its true residual from the loop's state; `change` is how far the loop's residual was from it. */
ht_status ht_guard_refresh(ht_guard *g, double *norm, double *change) {
  ht_loop *loop = g->loop;
  int64_t n = loop->op->n;
  loop->get_iterate(loop, g->x);
  loop->get_residual(loop, g->previous);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->x, g->b, g->residual, norm));
  g->certified = *norm;
  g->certifier.backend->axpy(g->ctx, n, -1, g->residual, g->previous);
  *change = ht_norm2(&g->certifier, g->previous);
  if (*norm < g->best_norm) {
    g->best_norm = *norm;
    g->certifier.backend->copy(g->ctx, n, g->x, g->best);
  }
  return HT_OK;
}

void ht_guard_restart(ht_guard *g) {
  g->loop->state.fresh = 1;
  if (g->segment_end < 0) g->segment_end = g->loop->state.iteration;
}

/* Put the true residual in the loop's place. The direction is kept when the change is small against it. */
void ht_guard_replace(ht_guard *g, double norm, double change) {
  g->loop->set_residual(g->loop, g->residual);
  if (!(change <= KEEP_DIRECTION * norm)) ht_guard_restart(g);
  g->reference = norm;
  g->replacements++;
}

/* Back to the best iterate known, with a fresh direction. */
ht_status ht_guard_restore(ht_guard *g) {
  double norm;
  g->loop->set_iterate(g->loop, g->best);
  HT_TRY(g->ctx, ht_certify(&g->certifier, g->best, g->b, g->residual, &norm));
  g->loop->set_residual(g->loop, g->residual);
  ht_guard_restart(g);
  g->reference = norm;
  g->restores++;
  return HT_OK;
}
