/* What a policy file tells of itself. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "halftone/train.h"
#include "policy/learned_file.h"
#include "policy/universal.h"

typedef void tell_fn(const ht_learned *learned, char *text, size_t size);

static void tell_kind(const ht_learned *l, char *text, size_t size) {
  snprintf(text, size, "%s",
           l->kind == HT_LEARNED_TILES ? "tiles: a level for each 64 columns" : "window: one action for the whole matrix");
}

static void tell_actions(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", l->actions); }

static void tell_chosen(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", *l->chosen ? l->chosen : "learned"); }
static void tell_contest(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", *l->contest ? l->contest : "none"); }

static void tell_interval(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%d", l->interval); }

static void tell_network(const ht_learned *l, char *text, size_t size) {
  snprintf(text, size, "%s, two layers of %s, %s", ht_number_of(l->network.inputs, "input").text,
           ht_number_of(l->network.hidden, "unit").text, ht_number_of(l->network.actions, "action").text);
}

static void tell_trained_on(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", l->trained_on); }
static void tell_reward(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", l->reward); }
static void tell_episodes(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%lld", (long long)l->episodes); }
static void tell_seed(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%llu", (unsigned long long)l->seed); }
static void tell_version(const ht_learned *l, char *text, size_t size) { snprintf(text, size, "%s", l->version); }

static const struct {
  const char *name;
  tell_fn *tell;
} lines[] = {{"kind", tell_kind},         {"chosen", tell_chosen},   {"contest", tell_contest}, {"actions", tell_actions},
             {"interval", tell_interval}, {"network", tell_network}, {"reward", tell_reward},   {"trained_on", tell_trained_on},
             {"episodes", tell_episodes}, {"seed", tell_seed},       {"version", tell_version}};
enum { LONGEST = sizeof(((ht_learned *)0)->trained_on) };

/* By the names that a solve knows it by, the policy that the library carries. */
static ht_status read_policy(ht_context *ctx, const char *path, ht_learned **learned) {
  if (strcmp(path, "learned") && strcmp(path, "learned:universal")) return ht_learned_read(ctx, path, learned);
  return ht_learned_parse(ctx, ht_universal_policy, ht_universal_policy_end - ht_universal_policy, "the library's policy", learned);
}

ht_status ht_policy_about(ht_context *ctx, const char *path, ht_about_fn tell, void *user) {
  ht_learned *learned;
  char text[LONGEST];
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, path);
  HT_NEED(ctx, tell);
  HT_TRY(ctx, read_policy(ctx, path, &learned));
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    lines[k].tell(learned, text, sizeof text);
    tell(user, lines[k].name, text);
  }
  ht_learned_release(ctx, learned);
  return HT_OK;
}
