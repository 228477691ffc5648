/* Policies made by hand: random networks, and networks that always say the same. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_LEARNED_H
#define HT_TEST_LEARNED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "policy/learned_file.h"
#include "support/random.h"

/* All weights 0; NULL without memory. */
static inline ht_learned *learned_blank(ht_context *ctx, ht_learned_kind kind, int hidden, int interval) {
  ht_learned *l;
  ht_learned_action action[HT_NETWORK_MOST_ACTIONS];
  if (ht_allocate_zeroed(ctx, 1, sizeof *l, &l) != HT_OK) return NULL;
  l->kind = kind;
  l->interval = interval;
  l->network.inputs = ht_learned_inputs(kind);
  l->network.hidden = hidden;
  l->network.actions = ht_learned_actions(kind, ht_learned_usual_actions(kind), action);
  snprintf(l->state, sizeof l->state, "%s", kind == HT_LEARNED_TILES ? "paper" : "features");
  snprintf(l->reward, sizeof l->reward, "paper");
  snprintf(l->actions, sizeof l->actions, "%s", ht_learned_usual_actions(kind));
  snprintf(l->trained_on, sizeof l->trained_on, "nothing, \"by hand\" \\ \xc3\xa9");
  snprintf(l->version, sizeof l->version, "0.0.0");
  l->seed = UINT64_MAX;
  l->episodes = 1000;
  int64_t count = ht_network_size(l->network.inputs, hidden, l->network.actions);
  if (ht_allocate_zeroed(ctx, count, sizeof(float), &l->network.weights) == HT_OK) return l;
  ht_learned_release(ctx, l);
  return NULL;
}

/* Of the policy head. */
static inline float *learned_bias(const ht_learned *l) {
  int64_t i = l->network.inputs, h = l->network.hidden, a = l->network.actions;
  return l->network.weights + (i + 1) * h + (h + 1) * h + h * a;
}

/* It takes one action, whatever it sees. */
static inline ht_learned *learned_always(ht_context *ctx, ht_learned_kind kind, int action, int interval) {
  ht_learned *l = learned_blank(ctx, kind, 4, interval);
  if (l) learned_bias(l)[action] = 1;
  return l;
}

static inline ht_learned *learned_random(ht_context *ctx, ht_learned_kind kind, int hidden, int interval, uint64_t seed) {
  ht_learned *l = learned_blank(ctx, kind, hidden, interval);
  random_stream s = {seed};
  int64_t count = l ? ht_network_size(l->network.inputs, hidden, l->network.actions) : 0;
  for (int64_t k = 0; k < count; k++) l->network.weights[k] = (float)random_signed(&s);
  return l;
}

/* 0 when the file was written. */
static inline int learned_write(ht_context *ctx, const ht_learned *l, const char *path) {
  void *bytes;
  int64_t size;
  if (ht_learned_serialize(ctx, l, &bytes, &size) != HT_OK) return -1;
  FILE *file = fopen(path, "wb");
  int wrong = !file || fwrite(bytes, 1, (size_t)size, file) != (size_t)size;
  if (file) wrong |= fclose(file);
  ht_release(ctx, bytes);
  return wrong;
}

/* A random network at the path of policy, "learned:" and a template of mkstemp, which becomes the path's name. */
static inline int learned_make(ht_learned_kind kind, int hidden, int interval, uint64_t seed, char *policy) {
  char *path = policy + strlen("learned:");
  ht_context *ctx;
  int file = mkstemp(path);
  if (file < 0 || close(file) || ht_context_create(&ctx) != HT_OK) return -1;
  ht_learned *l = learned_random(ctx, kind, hidden, interval, seed);
  if (l) l->for_device = kind == HT_LEARNED_WINDOW;
  int wrong = !l || learned_write(ctx, l, path);
  ht_learned_release(ctx, l);
  ht_context_destroy(ctx);
  return wrong;
}

#endif
