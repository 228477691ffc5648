/* Parsing, checking and printing one option; nearest names. SPDX-License-Identifier: BSD-3-Clause */
#include "base/option_table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/context.h"
#include "base/number.h"
#include "base/words.h"

/* Levenshtein distance, for names up to 63 characters. */
static int levenshtein(const char *a, const char *b) {
  int row[64];
  size_t n = strlen(b);
  if (strlen(a) > 63 || n > 62) return 99;
  for (size_t j = 0; j <= n; j++) row[j] = (int)j;
  for (size_t i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= n; j++) {
      int above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = above;
      row[j] = best;
    }
  }
  return row[n];
}

/* A name inside the other, as of a word that was cut short, is near. */
static int distance(const char *a, const char *b) {
  enum { LEAST_PART = 4 };
  int part = (strlen(a) >= LEAST_PART && strstr(b, a)) || (strlen(b) >= LEAST_PART && strstr(a, b));
  int edits = levenshtein(a, b);
  return part && edits > 1 ? 1 : edits;
}

/* Near: two letters and a quarter of the shorter name are changed at most, and something stays. */
const char *ht_nearest(const char *name, int count, const char *(*candidate)(void *user, int index), void *user) {
  const char *best = NULL;
  int least = 99;
  if (!name || !candidate) return NULL;
  for (int i = 0; i < count; i++) {
    int d = distance(name, candidate(user, i));
    if (d < least) {
      least = d;
      best = candidate(user, i);
    }
  }
  if (!best) return NULL;
  int length = (int)strlen(name), other = (int)strlen(best), shorter = length < other ? length : other;
  int something_stays = least < shorter || (least == 1 && length + other > 2);
  return something_stays && least <= 2 + shorter / 4 ? best : NULL;
}

/* Index of `word` in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *word) {
  size_t length = strlen(word);
  int index = 0;
  for (const char *at = choices; at; index++) {
    size_t n = strcspn(at, "|");
    if (n == length && !strncmp(at, word, n)) return index;
    at = at[n] ? at + n + 1 : NULL;
  }
  return -1;
}

static ht_status parse_number(ht_context *ctx, const ht_option_row *row, const char *text, double *value) {
  HT_CHECK(ctx, ht_parse_real(text, value) && isfinite(*value), HT_BAD_OPTION, "%s takes a number, and was given '%s'", row->info.name,
           text);
  int whole = row->info.type == HT_OPTION_INTEGER;
  HT_CHECK(ctx, !whole || *value == floor(*value), HT_BAD_OPTION, "%s takes a whole number, and was given '%s'", row->info.name, text);
  HT_CHECK(ctx, *value >= row->info.low && *value <= row->info.high, HT_BAD_OPTION,
           whole ? "%s must be between %.0f and %.0f, and is %s" : "%s must be between %g and %g, and is %s", row->info.name, row->info.low,
           row->info.high, text);
  return HT_OK;
}

ht_status ht_option_parse(ht_context *ctx, const ht_option_row *row, void *fields, const char *text) {
  void *field = (char *)fields + row->offset;
  double number = 0;
  switch (row->info.type) {
  case HT_OPTION_REAL:
    HT_TRY(ctx, parse_number(ctx, row, text, &number));
    *(double *)field = number;
    return HT_OK;
  case HT_OPTION_INTEGER:
    HT_TRY(ctx, parse_number(ctx, row, text, &number));
    *(int64_t *)field = (int64_t)number;
    return HT_OK;
  case HT_OPTION_FLAG: {
    int index = find_choice("0|1|no|yes|false|true|off|on", text);
    HT_CHECK(ctx, index >= 0, HT_BAD_OPTION, "%s is yes or no, and was given '%s'", row->info.name, text);
    *(int *)field = index & 1;
    return HT_OK;
  }
  case HT_OPTION_CHOICE: {
    int index = find_choice(row->info.choices, text);
    HT_CHECK(ctx, index >= 0, HT_BAD_OPTION, "%s is one of %s, and was given '%s'", row->info.name, row->info.choices, text);
    *(int *)field = index;
    return HT_OK;
  }
  case HT_OPTION_TEXT:
    HT_CHECK(ctx, strlen(text) < HT_OPTION_TEXT_SIZE, HT_BAD_OPTION, "%s takes at most %d characters", row->info.name,
             HT_OPTION_TEXT_SIZE - 1);
    strcpy(field, text);
    return HT_OK;
  }
  HT_FAIL(ctx, HT_INTERNAL, "option %s has no type", row->info.name);
}

void ht_option_print(const ht_option_row *row, const void *fields, char *text, size_t size) {
  const void *field = (const char *)fields + row->offset;
  switch (row->info.type) {
  case HT_OPTION_REAL: ht_print_real_shortest(*(const double *)field, text, size); return;
  case HT_OPTION_INTEGER: snprintf(text, size, "%lld", (long long)*(const int64_t *)field); return;
  case HT_OPTION_FLAG: snprintf(text, size, "%s", *(const int *)field ? "yes" : "no"); return;
  case HT_OPTION_CHOICE: {
    const char *at = row->info.choices;
    for (int i = *(const int *)field; i > 0; i--) at += strcspn(at, "|") + 1;
    snprintf(text, size, "%.*s", (int)strcspn(at, "|"), at);
    return;
  }
  case HT_OPTION_TEXT: snprintf(text, size, "%s", (const char *)field); return;
  }
}

void ht_option_set_default(const ht_option_row *row, void *fields) {
  void *field = (char *)fields + row->offset;
  switch (row->info.type) {
  case HT_OPTION_REAL: *(double *)field = row->default_number; return;
  case HT_OPTION_INTEGER: *(int64_t *)field = (int64_t)row->default_number; return;
  case HT_OPTION_FLAG:
  case HT_OPTION_CHOICE: *(int *)field = (int)row->default_number; return;
  case HT_OPTION_TEXT: snprintf(field, HT_OPTION_TEXT_SIZE, "%s", row->info.choices); return;
  }
}

/* ---- what options need ---- */

/* `value` among "a|b|c*", of `length` characters. */
static int is_among(const char *values, size_t length, const char *value) {
  for (const char *at = values; at < values + length;) {
    size_t n = strcspn(at, "| ");
    int prefix = n && at[n - 1] == '*';
    if (prefix ? !strncmp(at, value, n - 1) : strlen(value) == n && !strncmp(at, value, n)) return 1;
    at += n + 1;
  }
  return 0;
}

/* The value of the option whose name begins there, as text. */
static void look_up(int count, const ht_option_table *tables, const void *options, const char *name, size_t length, char *text,
                    size_t size) {
  *text = 0;
  for (const ht_option_table *t = tables; t < tables + count; t++)
    for (const ht_option_row *row = t->rows; row < t->rows + t->count; row++)
      if (strlen(row->info.name) == length && !strncmp(row->info.name, name, length))
        ht_option_print(row, (const char *)options + t->offset, text, size);
}

static int are_met(const char *needs, int count, const ht_option_table *tables, const void *options) {
  char value[HT_OPTION_TEXT_SIZE];
  int met = 0;
  for (const char *at = needs; *at; at += *at == ' ') {
    size_t length = strcspn(at, " "), before = strcspn(at, "=");
    if (*at == '&' && !met) return 0;
    met &= *at != '&';
    if (*at != '&' && !met) {
      look_up(count, tables, options, at, before, value, sizeof value);
      met = is_among(at + before + 1, length - before - 1, value);
    }
    at += length;
  }
  return met;
}

/* What it says of the option itself is no advice. */
void ht_option_needs_text(const ht_option_info *info, char *text, size_t size) {
  const char *between = "--";
  if (size) *text = 0;
  for (const char *at = info && info->needs && size > 8 ? info->needs : ""; *at; at += *at == ' ') {
    size_t length = strcspn(at, " "), before = strcspn(at, "="), shown = length - (at[length - 1] == '*');
    if (*at == '&') {
      between = ", and --";
    } else if (!info->name || strlen(info->name) != before || strncmp(info->name, at, before) != 0) {
      ht_add_words(text, size, "%s%.*s %.*s", between, (int)before, at, (int)(shown - before - 1), at + before + 1);
      between = " or --";
    }
    at += length;
  }
}

ht_status ht_option_check_needs(ht_context *ctx, const ht_option_info *info, int count, const ht_option_table *tables,
                                const void *options) {
  char needs[HT_OPTION_TEXT_SIZE];
  if (!info->needs || are_met(info->needs, count, tables, options)) return HT_OK;
  ht_option_needs_text(info, needs, sizeof needs);
  HT_FAIL(ctx, HT_BAD_OPTION, "--%s has an effect only with %s; give that, or leave --%s out", info->name, needs, info->name);
}
