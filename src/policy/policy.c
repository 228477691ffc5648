/* The policies. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/policy.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/option_table.h"
#include "base/words.h"
#include "halftone/precision.h"
#include "policy/learned_file.h"

/* Measured on two Zen 4 cores (docs/evocg-universal.md), in bytes that memory delivers in the same time. Beyond the cache bytes are all but
 * for gathers; within it decoding shows, since bytes come faster. */
static double work(const ht_policy_facts *f) {
  static const double RUN_IN_CACHE = 12, GATHER = 15, GATHER_IN_CACHE = 100, INSIDE = 0.3, OUTSIDE = 0.9;
  double streamed = f->bytes_streamed / f->cache_bytes, outside = fmin(fmax((streamed - INSIDE) / (OUTSIDE - INSIDE), 0), 1);
  double run = RUN_IN_CACHE * (1 - outside), gather = GATHER + (GATHER_IN_CACHE - GATHER) * (1 - outside);
  return run * (f->nonzeros - f->gathers) + gather * f->gathers;
}

/* Measured on an H200 (docs/decisions/0004): what an iteration takes beyond its bytes, by rows, entries and gathers. */
static double device_work(const ht_policy_facts *f) {
  static const double ROW = 60, ENTRY = 3.5, GATHER = 2;
  return ROW * f->nonzeros / f->nonzeros_per_row + ENTRY * f->nonzeros + GATHER * f->gathers;
}

/* Where all stays on the chip a device waits for other things than bytes. */
static double device_time(const ht_policy_facts *f, double matrix_bytes) {
  static const double ALL_OUTSIDE = 1.5;
  double streamed = f->bytes_streamed / f->cache_bytes, outside = fmin(fmax((streamed - 1) / (ALL_OUTSIDE - 1), 0), 1);
  return outside * matrix_bytes + (1 - outside) * f->bytes_level[HT_LEVEL_64] + f->bytes_vectors + device_work(f) + ht_policy_pause(f);
}

/* Barriers and loops take a time of their own, which counts where little is streamed: as share of the cache, so that the model, like all
 * that policies see, knows no scale. A device's launches take longer, beside what its memory delivers meanwhile. */
double ht_policy_pause(const ht_policy_facts *f) { return f->cache_bytes / (f->device ? 2 : 160); }

/* 110 us were measured, most of them the host's for the Ritz values; on the CPU the norms of the direction are added one after the other.
 */
double ht_policy_look_cost(const ht_policy_facts *f) {
  static const double DEVICE_CACHES = 10, ROW = 64, PAUSES = 4;
  return f->device ? DEVICE_CACHES * f->cache_bytes : ROW * f->nonzeros / f->nonzeros_per_row + PAUSES * ht_policy_pause(f);
}

double ht_policy_time(const ht_policy_facts *f, double matrix_bytes) {
  if (f->device) return device_time(f, matrix_bytes);
  return matrix_bytes + f->bytes_vectors + work(f) + ht_policy_pause(f);
}

double ht_policy_cost(const ht_policy_facts *f, ht_level level) {
  return ht_policy_time(f, f->bytes_level[level]) / ht_policy_time(f, f->bytes_level[HT_LEVEL_64]);
}

/* EvoCG section 4.7: thresholds on max|p| of a tile. Absolute, hence blind to the scale of the problem: a baseline. */
static void decide_rule(const ht_policy *self, const ht_policy_view *view, uint8_t *level) {
  (void)self;
  for (int64_t b = 0; b < view->blocks; b++) {
    double m = view->direction_max[b];
    level[b] = m < 1e-11 ? HT_LEVEL_16 : m < 1e-10 ? HT_LEVEL_32 : HT_LEVEL_64;
  }
}

/* What the blocks' column errors predict for the current p, against what was measured: below 1 where errors cancel, as they do
 * for a smooth p under delta16. */
static double calibrate(const ht_policy_view *view, const float *error, double measured) {
  double predicted2 = 0;
  for (int64_t b = 0; b < view->blocks; b++) predicted2 += (double)error[b] * error[b] * view->direction_norm2[b];
  return isfinite(measured) && predicted2 > 0 ? measured * measured / predicted2 : 1;
}

/* A direction so far below the others' mean is one that has not been reached yet: with b = A*1 it starts at the boundary, and crosses a
 * block an iteration. By the next look it may be as large as they are. */
static double norm2_until_next_look(const ht_policy_view *view, int64_t b, double mean2) {
  static const double REACHED = 1e-4;
  double norm2 = view->direction_norm2[b];
  return norm2 < REACHED * mean2 ? mean2 : norm2;
}

/* Inexact Krylov (Simoncini and Szyld 2003; van den Eshof and Sleijpen 2004): the residual gap is the sum of alpha E p, so a
 * product may err by B = min(theta * target, eta * ||r||) / alpha. The block J errs by its largest column error times ||p_J||,
 * calibrated by the measured whole; each of the blocks gets an equal share of B^2. */
void ht_policy_decide_budget(const ht_policy *self, const ht_policy_view *view, double theta, uint8_t *level) {
  double budget = fmin(theta * view->residual_target, self->eta * view->residual) / view->alpha;
  double share = budget * budget / (double)view->blocks, sum2 = 0;
  double c16 = calibrate(view, view->error_16, view->measured_16), c32 = calibrate(view, view->error_f32, view->measured_f32);
  for (int64_t b = 0; b < view->blocks; b++) sum2 += view->direction_norm2[b];
  for (int64_t b = 0; b < view->blocks; b++) {
    double e16 = view->error_16[b], e32 = view->error_f32[b], p2 = norm2_until_next_look(view, b, sum2 / (double)view->blocks);
    level[b] = c16 * e16 * e16 * p2 <= share ? HT_LEVEL_16 : c32 * e32 * e32 * p2 <= share ? HT_LEVEL_32 : HT_LEVEL_64;
  }
}

static void decide_budget(const ht_policy *self, const ht_policy_view *view, uint8_t *level) {
  ht_policy_decide_budget(self, view, self->theta, level);
}

/* The caller sees precisions where levels are stored. */
static void decide_user(const ht_policy *self, const ht_policy_view *view, uint8_t *level) {
  static const uint8_t precision[HT_LEVELS] = {HT_BF16, HT_F32, HT_F64};
  for (int64_t b = 0; b < view->blocks; b++) level[b] = precision[level[b]];
  int no_answer = self->user_fn(self->user, view, level);
  for (int64_t b = 0; b < view->blocks; b++)
    level[b] = no_answer || level[b] == HT_F64 ? HT_LEVEL_64 : level[b] == HT_F32 ? HT_LEVEL_32 : HT_LEVEL_16;
}

void ht_policy_create_user(ht_policy_fn fn, void *user, ht_policy *policy) {
  *policy = (ht_policy){.name = "custom", .start = HT_LEVEL_64, .decide = decide_user, .user_fn = fn, .user = user, .sees_direction = 1};
}

static ht_policy fixed(const char *name, ht_level level) {
  ht_policy p = {.start = level, .replaces = level < HT_LEVEL_64};
  snprintf(p.name, sizeof p.name, "%s", name);
  return p;
}

static ht_policy budget(const ht_policy_options *o) {
  return (ht_policy){
      .start = HT_LEVEL_64, .decide = decide_budget, .rule = HT_DECIDE_BUDGET, .theta = o->budget_theta, .eta = o->budget_eta};
}

/* From this many nonzeros a row 16-bit values pay even for half as many iterations again. */
static const double LONG_ROWS = 16;

static int is_gathered(const ht_policy_facts *f) { return f->gathers > f->nonzeros / 2; }

/* 16 bits for rows of so many nonzeros and more. Elasticity, with several unknowns a node, pays up to half for translations kept, and its
 * small eigenvalues sink below the 16-bit error (docs/decisions/0003). Where columns are gathered 16 bits save little time more than 32. */
static ht_level level_to_replace(const ht_policy_facts *f, double rows) {
  int bears_16 = f->error_16 > 0 && f->unknowns_per_node <= 1 && !is_gathered(f);
  return bears_16 && f->nonzeros_per_row >= rows ? HT_LEVEL_16 : HT_LEVEL_32;
}

/* Where all values are exact at 16 bits nothing has to be replaced. */
static ht_policy choose_exact(char *why) {
  ht_policy p = fixed("auto", HT_LEVEL_16);
  p.replaces = 0;
  snprintf(why, 256, "fixed:bf16: every value is exact in 16 bits of the split storage");
  return p;
}

/* Rows that are alike, as stencils' are, gain enough by 16 bits on a device from this many nonzeros on. */
static const double STENCIL_ROWS = 6;

/* A diagonal that ranges over so much comes of coefficients that jump or vary by orders of magnitude, and without a preconditioner the
 * condition number is at least as much. What a level has lost comes back there in eigenvectors that CG takes longest for: 16 bits take 15
 * to 30 % more iterations than FP64, 32 bits 6 to 10 %, and beyond STEEPER more than short rows save. */
static const double STEEP = 4e3, STEEPER = 1e6;

static int is_too_steep(const ht_policy_facts *f) {
  return !f->preconditioned && f->diagonal_range > STEEPER && f->nonzeros_per_row < LONG_ROWS;
}

static ht_policy choose_steep(const ht_policy_facts *f, char *why) {
  snprintf(why, 256,
           "fixed:f64: the diagonal ranges over %.0e, where lower levels cost more iterations than they save with %.1f nonzeros a row",
           f->diagonal_range, f->nonzeros_per_row);
  return fixed("auto", HT_LEVEL_64);
}

/* Plates and beams of elasticity bend: their least eigenvalues sink as the fourth power of their length, no vector that a level keeps is
 * like theirs, and CG spends most of its iterations on finding them, and as many again on what a level has lost there. At 32 bits such
 * meshes, twice as long as wide and more, take up to four times FP64's iterations, whenever residuals are replaced (docs/decisions/0003).
 */
static const double SLENDER = 1.8;

static int is_slender(const ht_policy_facts *f) { return f->slenderness > SLENDER; }

static ht_policy choose_slender(const ht_policy_facts *f, char *why) {
  snprintf(why, 256,
           "fixed:f64: %s a node of a mesh %.1f times as long as a %s of as many nodes, as plates and beams are, which lower levels cost "
           "more iterations than they save",
           ht_number_of(f->unknowns_per_node, "unknown").text, f->slenderness, f->unknowns_per_node == 3 ? "cube" : "square");
  return fixed("auto", HT_LEVEL_64);
}

/* Where thousands of iterations are needed, a few more may be more than are allowed: 32 bits, where they save enough. With a preconditioner
 * short rows are those that 16 bits save too little for. */
static ht_level level_on_device(const ht_policy_facts *f) {
  ht_level level = level_to_replace(f, f->keeps_constants ? STENCIL_ROWS : LONG_ROWS);
  int is_long = f->nonzeros_per_row >= LONG_ROWS, is_steep = f->diagonal_range > STEEP;
  if (f->preconditioned) return is_steep && !is_long ? HT_LEVEL_32 : level;
  return is_steep && is_long ? HT_LEVEL_32 : level;
}

/* Rows so short save little. With a preconditioner and a steep diagonal what they lose at the start, where the residual has not fallen yet,
 * costs up to a quarter more iterations, and next to nothing later. */
static const double FEW = 10, LATER_DROP = 1e-3;

static ht_policy start_in_fp64(const ht_policy_facts *f, ht_policy p) {
  if (!(f->preconditioned && f->nonzeros_per_row < FEW && f->diagonal_range > STEEP)) return p;
  p.later = p.start;
  p.later_drop = LATER_DROP;
  p.start = HT_LEVEL_64;
  return p;
}

/* A device with engines of its own gains by whole products at a lower level alone: reading each group at a level of its own costs it more
 * than the bytes save. Matrices that keep constants bear 16 bits far below their smallest eigenvalue, since delta16 holds their smoothest
 * vector: there no error is watched. Where a level proves too low the next one follows. */
static ht_policy choose_on_device(const ht_policy_facts *f, char *why) {
  ht_level level = level_on_device(f);
  ht_policy p = fixed("auto", level);
  p.error_start = level == HT_LEVEL_16 && !f->keeps_constants ? f->error_16 : 0;
  p = start_in_fp64(f, p);
  snprintf(why, 256, "%sfixed:%s with exact residual replacement: %.1f nonzeros a row, %s a node%s, more bytes than stay on the chip",
           p.later_drop > 0 ? "fixed:f64 until the residual has fallen by 1e3, then " : "", level == HT_LEVEL_16 ? "bf16" : "f32",
           f->nonzeros_per_row, ht_number_of(f->unknowns_per_node, "unknown").text, is_gathered(f) ? ", columns gathered" : "");
  return p;
}

/* Where values stay in cache low precision saves nothing; where tiles are exact it costs nothing; elsewhere long rows are worth 16 bits
 * and others 32, with replacement. */
static ht_policy choose(const ht_policy_options *o, const ht_policy_facts *f, char *why) {
  int in_cache = f->bytes_streamed < f->cache_bytes;
  if (!f->levels) {
    snprintf(why, 256, "fixed:f64: this storage has no lower level");
    return fixed("auto", HT_LEVEL_64);
  }
  int on_chip = f->device && 2 * f->bytes_streamed < f->cache_bytes; /* 27-point 64^3, near the L2's size, gains half by 16 exact bits */
  if (f->share_exact_16 == 1 && !on_chip) return choose_exact(why);
  if (in_cache) {
    int small = f->bytes_streamed < 1e6;
    snprintf(why, 256, "fixed:f64: an iteration's %.1f %s stay in the %.0f MiB cache, where fewer bytes save nothing",
             f->bytes_streamed / (small ? 1e3 : 1e6), small ? "kB" : "MB", f->cache_bytes / 1048576);
    return fixed("auto", HT_LEVEL_64);
  }
  if (is_too_steep(f)) return choose_steep(f, why);
  if (is_slender(f)) return choose_slender(f, why);
  if (f->device) return choose_on_device(f, why);
  ht_level level = level_to_replace(f, LONG_ROWS);
  ht_policy p = {.start = level,
                 .replaces = 1,
                 .fallback = decide_budget,
                 .fallback_rule = HT_DECIDE_BUDGET,
                 .error_start = level == HT_LEVEL_16 ? f->error_16 : f->error_32,
                 .theta = o->budget_theta,
                 .eta = o->budget_eta};
  snprintf(why, 256, "fixed:%s with exact residual replacement, budget where the matrix does not bear it: %.1f nonzeros a row, %s a node",
           level == HT_LEVEL_16 ? "bf16" : "f32", f->nonzeros_per_row, ht_number_of(f->unknowns_per_node, "unknown").text);
  return p;
}

ht_policy ht_policy_by_rule(const ht_policy_options *options, const ht_policy_facts *facts, char *why) {
  return choose(options, facts, why);
}

int ht_policy_has_choice(const ht_policy_facts *f) {
  return f->levels && !(f->share_exact_16 == 1) && f->bytes_streamed >= f->cache_bytes && !is_slender(f);
}

static const char *const names[] = {"auto", "fixed:f64", "fixed:f32", "fixed:bf16", "rule", "budget", "learned:FILE"};
enum { AUTO, F64, F32, BF16, RULE, BUDGET, LEARNED, POLICIES };

/* The policy that the library carries. */
static int is_universal(const ht_policy_options *options) {
  return !strcmp(options->policy, "learned") || !strcmp(options->policy, "learned:universal");
}

/* The path in learned:FILE, else NULL. */
static const char *learned_path(const ht_policy_options *options) {
  static const char prefix[] = "learned:";
  size_t length = sizeof prefix - 1;
  if (is_universal(options) || strncmp(options->policy, prefix, length) || !options->policy[length]) return NULL;
  return options->policy + length;
}

ht_status ht_policy_wants_tiles(ht_context *ctx, const ht_policy_options *options, ht_learned **read, int *wants) {
  const char *path = learned_path(options);
  if (path && !*read) HT_TRY(ctx, ht_learned_read(ctx, path, read));
  *wants = path && (*read)->kind == HT_LEARNED_TILES && !ht_learned_chosen(*read);
  return HT_OK;
}

void ht_policy_settle(ht_policy *p, const ht_policy_facts *facts) {
  int at_home = !p->learned || p->learned->for_device == facts->device;
  if (!p->window || (at_home && ht_policy_has_choice(facts))) return;
  p->start = p->by_rule->start;
  p->replaces = p->by_rule->replaces;
  p->fallback = p->by_rule->fallback;
  p->fallback_rule = p->by_rule->fallback_rule;
  p->error_start = p->by_rule->error_start;
  p->later = p->by_rule->later;
  p->later_drop = p->by_rule->later_drop;
  p->by_network = p->window = p->interval = 0;
}

static int find_name(const char *name) {
  int index = 0;
  while (index < LEARNED && strcmp(names[index], name)) index++;
  return index;
}

static ht_policy create_constant(int index, const ht_policy_options *options, const ht_policy_facts *facts, char *why) {
  switch (index) {
  case AUTO: return choose(options, facts, why);
  case F64: return fixed(names[index], HT_LEVEL_64);
  case F32: return fixed(names[index], HT_LEVEL_32);
  case BF16: return fixed(names[index], HT_LEVEL_16);
  case RULE: return (ht_policy){.start = HT_LEVEL_64, .decide = decide_rule, .rule = HT_DECIDE_RULE};
  default: return budget(options);
  }
}

/* What won in training takes the network's place. The file's name, and what it holds, stay with the policy. */
static void take_chosen(const ht_policy_options *options, const ht_policy_facts *facts, ht_policy *policy, char *why) {
  const ht_policy asked = *policy;
  const char *chosen = ht_learned_chosen(asked.learned);
  char reason[HT_REPORT_TEXT] = "";
  if (!chosen) return;
  *policy = create_constant(find_name(chosen), options, facts, reason);
  memcpy(policy->name, asked.name, sizeof policy->name);
  policy->learned = asked.learned;
  policy->action = asked.action;
  policy->by_rule = asked.by_rule;
  ht_print_words(why, HT_REPORT_TEXT, "%s, which was the fastest in training: %s", chosen, asked.learned->contest);
}

static ht_status create_from_file(ht_context *ctx, const char *path, const ht_policy_options *options, const ht_policy_facts *facts,
                                  ht_learned **read, ht_policy *policy, char *why) {
  ht_learned *learned = read ? *read : NULL;
  if (read) *read = NULL;
  if (!learned) HT_TRY(ctx, ht_learned_read(ctx, path, &learned));
  HT_TRY(ctx, ht_policy_create_learned(ctx, path, learned, options, facts, policy, why));
  return HT_OK;
}

static const char *name_at(void *user, int index) {
  (void)user;
  return names[index];
}

ht_status ht_policy_create(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_learned **read,
                           ht_policy *policy, char *why) {
  int index;
  const char *path = learned_path(options);
  why[0] = 0;
  if (is_universal(options)) {
    HT_TRY(ctx, ht_policy_create_universal(ctx, options, facts, policy, why));
    take_chosen(options, facts, policy, why);
    ht_policy_settle(policy, facts);
    policy->by_facts = 1;
    return HT_OK;
  }
  if (path) {
    HT_TRY(ctx, create_from_file(ctx, path, options, facts, read, policy, why));
    take_chosen(options, facts, policy, why);
    ht_policy_settle(policy, facts);
    return HT_OK;
  }
  index = find_name(options->policy);
  if (index == LEARNED) {
    const char *nearest = ht_nearest(options->policy, POLICIES, name_at, NULL);
    HT_FAIL(
        ctx, HT_BAD_OPTION,
        "there is no policy '%s'; %s%s%sthe policies are auto, fixed:f64, fixed:f32, fixed:bf16, rule, budget, learned and learned:FILE",
        options->policy, nearest ? "did you mean '" : "", nearest ? nearest : "", nearest ? "'? " : "");
  }
  *policy = create_constant(index, options, facts, why);
  snprintf(policy->name, sizeof policy->name, "%s", names[index]);
  policy->by_facts = !strcmp(names[index], "auto");
  return HT_OK;
}
