/* Options of training, from the one list. SPDX-License-Identifier: BSD-3-Clause */
#include "train/options.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/context.h"
#include "base/option_table.h"
#include "halftone/train.h"

static const ht_option_row rows[] = {
#define HT_OPTION_OWNER ht_train_options
    HT_TRAIN_OPTIONS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
enum { COUNT = sizeof rows / sizeof *rows };
static const ht_option_table table = {rows, COUNT, 0};

/* The rows as the public functions give them: dashes for underscores and the default as text. Built once. */
static struct {
  ht_option_info info;
  char name[40], default_value[HT_OPTION_TEXT_SIZE];
} public_rows[COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build(void) {
  static ht_train_options defaults;
  ht_train_options_set_defaults(&defaults);
  for (int i = 0; i < COUNT; i++) {
    public_rows[i].info = rows[i].info;
    snprintf(public_rows[i].name, sizeof public_rows[i].name, "%s", rows[i].info.name);
    for (char *c = public_rows[i].name; *c; c++)
      if (*c == '_') *c = '-';
    ht_option_print(&rows[i], &defaults, public_rows[i].default_value, sizeof public_rows[i].default_value);
    public_rows[i].info.name = public_rows[i].name;
    public_rows[i].info.default_value = public_rows[i].default_value;
    if (rows[i].info.type == HT_OPTION_TEXT) public_rows[i].info.choices = NULL;
  }
}

int ht_train_option_count(void) { return COUNT; }

const ht_option_info *ht_train_option_at(int index) {
  pthread_once(&once, build);
  return index >= 0 && index < COUNT ? &public_rows[index].info : NULL;
}

void ht_train_options_set_defaults(ht_train_options *options) {
  for (int i = 0; i < COUNT; i++) ht_option_set_default(&rows[i], options);
}

static const char *name_at(void *user, int index) {
  (void)user;
  return ht_train_option_at(index)->name;
}

_Static_assert(COUNT <= 64, "ht_train_options_set notes each option in a bit of 64");

ht_status ht_train_options_set(ht_context *ctx, ht_train_options *options, const char *name, const char *value, uint64_t *given) {
  int i = 0;
  while (i < COUNT && strcmp(ht_train_option_at(i)->name, name)) i++;
  if (i == COUNT) {
    const char *nearest = ht_nearest(name, COUNT, name_at, NULL);
    HT_FAIL(ctx, HT_BAD_OPTION, "there is no option '%s' of training%s%s%s; `halftone help train` lists them", name,
            nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  }
  ht_option_row row = rows[i];
  row.info.name = public_rows[i].name; /* messages use the name the user knows */
  HT_TRY(ctx, ht_option_parse(ctx, &row, options, value));
  *given |= (uint64_t)1 << i;
  return HT_OK;
}

void ht_train_options_settle(ht_train_options *o) {
  if (o->reward == HT_REWARD_AUTO) o->reward = HT_REWARD_TIME;
  int paper = o->reward == HT_REWARD_PAPER;
  if (o->rhs == HT_RIGHT_SIDE_AUTO) o->rhs = paper ? HT_RIGHT_SIDE_ONES : HT_RIGHT_SIDE_RANDOM;
  if (o->format == HT_TRAIN_AUTO) o->format = paper ? HT_TRAIN_TILECSC : HT_TRAIN_SPLIT;
  if (o->replace == HT_REPLACE_AUTO) o->replace = paper ? HT_REPLACE_NO : HT_REPLACE_YES;
  if (o->learning_rate == 0) o->learning_rate = paper ? 1e-4 : o->state == HT_STATE_FEATURES ? 2e-3 : 3e-4;
  if (o->gamma < 0) o->gamma = paper ? 0.99 : 1;
  if (o->gae_lambda < 0) o->gae_lambda = paper ? 0.95 : 0.9;
  if (o->compete == HT_COMPETE_AUTO)
    o->compete = o->reward == HT_REWARD_TIME && o->replace == HT_REPLACE_YES ? HT_COMPETE_YES : HT_COMPETE_NO;
  if (o->entropy_weight < 0) o->entropy_weight = paper ? 0.02 : 0.002;
}

ht_status ht_train_options_check(ht_context *ctx, const ht_train_options *o, uint64_t given) {
  HT_CHECK(ctx, o->state != HT_STATE_FEATURES || o->reward == HT_REWARD_TIME, HT_BAD_OPTION,
           "the state features is trained with the reward time; use --reward auto");
  for (int i = 0; i < COUNT; i++)
    if (given >> i & 1) HT_TRY(ctx, ht_option_check_needs(ctx, ht_train_option_at(i), 1, &table, o));
  return HT_OK;
}

void ht_train_options_print(const ht_train_options *options, int index, char text[HT_OPTION_TEXT_SIZE]) {
  ht_option_print(&rows[index], options, text, HT_OPTION_TEXT_SIZE);
}
