/* Learned policies: what their files name, and how they decide. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/learned.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/words.h"
#include "policy/features.h"
#include "policy/learned_file.h"
#include "policy/policy.h"
#include "policy/universal.h"

/* ---- actions ---- */

int ht_learned_inputs(ht_learned_kind kind) { return kind == HT_LEARNED_TILES ? (int)HT_COLUMN_BLOCK : (int)HT_FEATURES; }

const char *ht_learned_usual_actions(ht_learned_kind kind) {
  return kind == HT_LEARNED_TILES ? "f64,f32,16" : "f64,f32,16,budget:0.03,budget:0.1";
}

/* A number of `length` characters, all of them, above 0 and at most `most`; else 0. */
static double parse_number(const char *text, size_t length, double most) {
  char number[32];
  double value;
  if (!length || length >= sizeof number) return 0;
  memcpy(number, text, length);
  number[length] = 0;
  return ht_parse_real(number, &value) && value > 0 && value <= most ? value : 0;
}

static int parse_action(const char *word, size_t length, ht_learned_action *action) {
  static const char *const levels[HT_LEVELS] = {"16", "f32", "f64"};
  static const char budget[] = "budget", rule[] = "rule";
  const char *at = memchr(word, '@', length);
  size_t first = at ? (size_t)(at - word) : length;
  const char *colon = memchr(word, ':', first);
  size_t name = colon ? (size_t)(colon - word) : first;
  double number = colon ? parse_number(colon + 1, first - name - 1, 1) : 0, window = 0;
  *action = (ht_learned_action){.level = HT_LEVEL_64};
  if (at) {
    window = parse_number(at + 1, length - first - 1, HT_LEARNED_MOST_INTERVAL);
    action->window = (int)window;
    if (!action->window || action->window != window) return 0;
  }
  if (colon && !(number > 0)) return 0;
  if (name == sizeof rule - 1 && !strncmp(word, rule, name)) {
    action->rule = 1;
    return !colon;
  }
  if (name == sizeof budget - 1 && !strncmp(word, budget, name)) {
    action->theta = number;
    return number > 0;
  }
  action->drop = number;
  for (int level = 0; level < HT_LEVELS; level++)
    if (strlen(levels[level]) == name && !strncmp(word, levels[level], name)) {
      action->level = (ht_level)level;
      return level < HT_LEVEL_64 || !colon;
    }
  return 0;
}

int ht_learned_actions(ht_learned_kind kind, const char *list, ht_learned_action *action) {
  int count = 0;
  if (kind == HT_LEARNED_TILES && strcmp(list, ht_learned_usual_actions(kind))) return 0;
  for (const char *at = list; at;) {
    size_t length = strcspn(at, ",");
    if (count == HT_NETWORK_MOST_ACTIONS || !parse_action(at, length, &action[count++])) return 0;
    at = at[length] ? at + length + 1 : NULL;
  }
  return count;
}

int ht_learned_begins_with(int actions, const ht_learned_action *action) {
  for (int a = 0; a < actions; a++)
    if (action[a].rule) return a;
  return 0;
}

const char *ht_learned_chosen(const ht_learned *l) { return *l->chosen && strcmp(l->chosen, "learned") != 0 ? l->chosen : NULL; }

void ht_learned_release(ht_context *ctx, ht_learned *learned) {
  if (!learned) return;
  ht_release(ctx, learned->network.weights);
  ht_release(ctx, learned);
}

/* ---- decisions ---- */

/* The likeliest action; of equals the first, which is the most precise of f64, f32, 16. */
static int likeliest(const float *logits, int actions) {
  int best = 0;
  for (int a = 1; a < actions; a++)
    if (logits[a] > logits[best]) best = a;
  return best;
}

enum { CHUNK = 16 }; /* blocks that one thread looks at together */

/* The paper's state: the 64 entries of p by max(||p_b||, delta), which takes out their size. */
static void decide_chunk(const ht_policy *self, const ht_policy_view *view, int64_t first, int64_t count, uint8_t *level) {
  static const double DELTA = 1e-30;
  float state[CHUNK * HT_COLUMN_BLOCK] = {0}, logits[CHUNK * HT_NETWORK_MOST_ACTIONS];
  for (int64_t b = 0; b < count; b++) {
    const double *p = view->direction + (first + b) * HT_COLUMN_BLOCK;
    double norm = fmax(sqrt(view->direction_norm2[first + b]), DELTA);
    for (int i = 0; i < HT_COLUMN_BLOCK; i++) state[b * HT_COLUMN_BLOCK + i] = (float)(p[i] / norm);
  }
  const ht_network *net = &self->learned->network;
  ht_network_forward(net, count, state, logits, NULL);
  for (int64_t b = 0; b < count; b++) level[first + b] = (uint8_t)self->action[likeliest(logits + b * net->actions, net->actions)].level;
}

static void decide_tiles(const ht_policy *self, const ht_policy_view *view, uint8_t *level) {
  int64_t chunks = (view->blocks + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) num_threads(self->threads) if (chunks > 1)
  for (int64_t c = 0; c < chunks; c++) {
    int64_t left = view->blocks - c * CHUNK;
    decide_chunk(self, view, c * CHUNK, left < CHUNK ? left : CHUNK, level);
  }
}

int ht_policy_likeliest(const ht_network *net, const float *features) {
  float logits[HT_NETWORK_MOST_ACTIONS];
  ht_network_forward(net, 1, features, logits, NULL);
  return likeliest(logits, net->actions);
}

int ht_policy_choose_action(const ht_policy *self, const ht_policy_look *look) {
  return self->choose ? self->choose(self->choose_user, look) : ht_policy_likeliest(&self->learned->network, look->feature);
}

/* ---- policies ---- */

/* "learned:" and the file's name without its folder and ending. */
static void name_after(const char *path, char *name, size_t size) {
  static const char ending[] = ".safetensors";
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  size_t length = strlen(base), cut = sizeof ending - 1;
  if (length > cut && !strcmp(base + length - cut, ending)) length -= cut;
  snprintf(name, size, "learned:%.*s", (int)length, base);
}

/* What it was trained on, a list with commas: the one name, or how many. A list that fills its place was cut, by versions without dots. */
static void tell_training(const ht_learned *l, char *text, size_t size) {
  int commas = 0, dots = ht_is_cut(l->trained_on), cut = dots || strlen(l->trained_on) + 1 == sizeof l->trained_on;
  for (const char *at = l->trained_on; *at; at++) commas += *at == ',';
  if (!commas)
    ht_print_words(text, size, "%s", l->trained_on);
  else
    snprintf(text, size, "%s%s", cut ? "at least " : "", ht_number_of(commas + !dots, "matrix").text);
}

static ht_status add_rule(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_policy *policy, char *why) {
  HT_TRY(ctx, ht_allocate(ctx, 1, sizeof *policy->by_rule, &policy->by_rule));
  *policy->by_rule = ht_policy_by_rule(options, facts, why);
  return HT_OK;
}

/* The policy takes `l`, also where it fails. */
static ht_status put_to_use(ht_context *ctx, ht_learned *l, const ht_policy_options *options, const ht_policy_facts *facts,
                            ht_policy *policy, char *why) {
  char training[104], tail[208], by_rule[HT_REPORT_TEXT] = "";
  *policy = (ht_policy){.start = HT_LEVEL_64,
                        .replaces = 1,
                        .eta = options->budget_eta,
                        .learned = l,
                        .by_network = 1,
                        .interval = l->interval,
                        .threads = ctx->threads};
  ht_status status = ht_allocate(ctx, HT_NETWORK_MOST_ACTIONS, sizeof *policy->action, &policy->action);
  if (status == HT_OK && l->kind == HT_LEARNED_WINDOW) status = add_rule(ctx, options, facts, policy, by_rule);
  if (status != HT_OK) {
    ht_policy_release(ctx, policy);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  policy->begins_with = ht_learned_begins_with(ht_learned_actions(l->kind, l->actions, policy->action), policy->action);
  ht_network_round(&l->network);
  policy->window = l->kind == HT_LEARNED_WINDOW;
  policy->sees_direction = !policy->window;
  policy->decide = policy->window ? NULL : decide_tiles;
  tell_training(l, training, sizeof training);
  int leaves_rule = policy->window && policy->action[policy->begins_with].rule;
  if (policy->window)
    ht_print_words(tail, sizeof tail, "; when to leave it a network says, learned in %s on %s", ht_number_of(l->episodes, "episode").text,
                   training);
  else
    ht_print_words(tail, sizeof tail, ", made for a look every %s, learned in %s on %s",
                   l->interval == 1 ? "iteration" : ht_number_of(l->interval, "iteration").text, ht_number_of(l->episodes, "episode").text,
                   training);
  ht_print_words(why, HT_REPORT_TEXT - strlen(tail), "%s",
                 !policy->window ? "a level for each 64 columns"
                 : leaves_rule   ? by_rule
                                 : "fixed:f64");
  strcat(why, tail);
  return HT_OK;
}

ht_status ht_policy_create_learned(ht_context *ctx, const char *path, ht_learned *learned, const ht_policy_options *options,
                                   const ht_policy_facts *facts, ht_policy *policy, char *why) {
  HT_TRY(ctx, put_to_use(ctx, learned, options, facts, policy, why));
  name_after(path, policy->name, sizeof policy->name);
  return HT_OK;
}

ht_status ht_policy_create_universal(ht_context *ctx, const ht_policy_options *options, const ht_policy_facts *facts, ht_policy *policy,
                                     char *why) {
  ht_learned *l;
  HT_TRY(ctx, ht_learned_parse(ctx, ht_universal_policy, ht_universal_policy_end - ht_universal_policy, "the library's policy", &l));
  HT_TRY(ctx, put_to_use(ctx, l, options, facts, policy, why));
  snprintf(policy->name, sizeof policy->name, "learned:universal");
  return HT_OK;
}

ht_status ht_policy_create_chosen(ht_context *ctx, const ht_policy_chooser *chooser, const ht_policy_options *options,
                                  const ht_policy_facts *facts, ht_policy *policy) {
  char why[HT_REPORT_TEXT];
  *policy = (ht_policy){.name = "in training",
                        .start = HT_LEVEL_64,
                        .replaces = 1,
                        .eta = options->budget_eta,
                        .by_network = 1,
                        .window = 1,
                        .interval = chooser->interval,
                        .choose = chooser->choose,
                        .choose_user = chooser->user};
  HT_TRY(ctx, ht_allocate(ctx, HT_NETWORK_MOST_ACTIONS, sizeof *policy->action, &policy->action));
  ht_status status = add_rule(ctx, options, facts, policy, why);
  int known = status == HT_OK ? ht_learned_actions(HT_LEARNED_WINDOW, chooser->actions, policy->action) : 0;
  policy->begins_with = ht_learned_begins_with(known, policy->action);
  if (status == HT_OK && chooser->deployed) ht_policy_settle(policy, facts);
  if (known) return HT_OK;
  ht_policy_release(ctx, policy);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  HT_FAIL(ctx, HT_BAD_OPTION, "expected actions like '%s', found '%s': %s", ht_learned_usual_actions(HT_LEARNED_WINDOW), chooser->actions,
          HT_LEARNED_ACTIONS_FORM);
}

void ht_policy_release(ht_context *ctx, ht_policy *policy) {
  ht_learned_release(ctx, policy->learned);
  ht_release(ctx, policy->action);
  ht_release(ctx, policy->by_rule);
  policy->learned = NULL;
  policy->by_rule = NULL;
  policy->action = NULL;
}
