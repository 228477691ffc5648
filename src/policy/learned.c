/* Learned policies. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/learned.h"
#include <string.h>
#include "base/number.h"
#include "policy/features.h"

int ht_learned_inputs(ht_learned_kind kind) { return kind == HT_LEARNED_TILES ? (int)HT_COLUMN_BLOCK : (int)HT_FEATURES; }

const char *ht_learned_usual_actions(ht_learned_kind kind) {
  return kind == HT_LEARNED_TILES ? "f64,f32,16" : "f64,f32,16,budget:0.03,budget:0.1";
}

static int parse_action(const char *word, size_t length, ht_learned_action *action) {
  static const char *const levels[HT_LEVELS] = {"16", "f32", "f64"};
  static const char budget[] = "budget:";
  char number[32], *end;
  *action = (ht_learned_action){.level = HT_LEVEL_64};
  for (int level = 0; level < HT_LEVELS; level++)
    if (strlen(levels[level]) == length && !strncmp(word, levels[level], length)) {
      action->level = (ht_level)level;
      return 1;
    }
  size_t prefix = sizeof budget - 1;
  if (length <= prefix || length - prefix >= sizeof number || strncmp(word, budget, prefix)) return 0;
  memcpy(number, word + prefix, length - prefix);
  number[length - prefix] = 0;
  action->theta = ht_parse_real(number, &end);
  return !*end && action->theta > 0 && action->theta <= 1;
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

void ht_learned_release(ht_context *ctx, ht_learned *learned) {
  if (!learned) return;
  ht_release(ctx, learned->network.weights);
  ht_release(ctx, learned);
}
