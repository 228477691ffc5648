/* The registry of test problems. SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/words.h"
#include "gen/gen.h"

#define HT_GENERATOR(name) extern const ht_gen_kind ht_gen_##name;
#include "gen/list.def"
#undef HT_GENERATOR
static const ht_gen_kind *const kinds[] = {
#define HT_GENERATOR(name) &ht_gen_##name,
#include "gen/list.def"
#undef HT_GENERATOR
};

enum { KINDS = (int)(sizeof kinds / sizeof *kinds), MOST_PARAMETERS = 20, DEFAULT_TEXT = 40, MOST_FIELDS = 512 };

/* What the public functions show, built once: the default of each parameter as text. */
typedef struct public_parameter {
  ht_option_info info;
  char default_value[DEFAULT_TEXT];
} public_parameter;
static ht_generator_info infos[KINDS];
static public_parameter parameters[KINDS][MOST_PARAMETERS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A struct of parameters of any kind. */
typedef union fields {
  double real;
  int64_t integer;
  char bytes[MOST_FIELDS];
} fields;

static void build_public(void) {
  for (int g = 0; g < KINDS; g++) {
    const ht_gen_kind *kind = kinds[g];
    infos[g] = (ht_generator_info){kind->name, kind->summary, kind->formula, kind->spd, kind->row_count};
    for (int p = 0; p < kind->row_count && p < MOST_PARAMETERS; p++) {
      fields defaults;
      public_parameter *out = &parameters[g][p];
      ht_option_set_default(&kind->rows[p], &defaults);
      ht_option_print(&kind->rows[p], &defaults, out->default_value, sizeof out->default_value);
      out->info = kind->rows[p].info;
      out->info.default_value = out->default_value;
    }
  }
}

int ht_generator_count(void) { return KINDS; }

const ht_generator_info *ht_generator_at(int index) {
  pthread_once(&once, build_public);
  return index >= 0 && index < KINDS ? &infos[index] : NULL;
}

const ht_option_info *ht_generator_parameter(int generator, int index) {
  const ht_generator_info *info = ht_generator_at(generator);
  return info && index >= 0 && index < info->parameters ? &parameters[generator][index].info : NULL;
}

static const char *kind_name(void *user, int index) {
  (void)user;
  return kinds[index]->name;
}

static const char *parameter_name(void *user, int index) { return ((const ht_gen_kind *)user)->rows[index].info.name; }

static ht_status find_kind(ht_context *ctx, const char *name, const ht_gen_kind **kind) {
  for (int g = 0; g < KINDS; g++)
    if (!strcmp(kinds[g]->name, name)) {
      *kind = kinds[g];
      return HT_OK;
    }
  const char *nearest = ht_nearest(name, KINDS, kind_name, NULL);
  if (nearest) HT_FAIL(ctx, HT_BAD_OPTION, "there is no test problem '%s'; did you mean '%s'?", name, nearest);
  HT_FAIL(ctx, HT_BAD_OPTION, "there is no test problem '%s'; `halftone gen --list` lists them", name);
}

static ht_status find_row(ht_context *ctx, const ht_gen_kind *kind, const char *name, const ht_option_row **row) {
  for (int p = 0; p < kind->row_count; p++)
    if (!strcmp(kind->rows[p].info.name, name)) {
      *row = &kind->rows[p];
      return HT_OK;
    }
  ht_gen_kind copy = *kind;
  const char *nearest = ht_nearest(name, kind->row_count, parameter_name, &copy);
  if (nearest) HT_FAIL(ctx, HT_BAD_OPTION, "%s has no parameter '%s'; did you mean '%s'?", kind->name, name, nearest);
  HT_FAIL(ctx, HT_BAD_OPTION, "%s has no parameter '%s'; `halftone help gen %s` lists them", kind->name, name, kind->name);
}

/* "wathen nx=60 seed=2": the recipe as the matrix remembers it. */
static void describe(char *text, size_t size, const char *kind, int count, const char *const names[], const char *const values[]) {
  ht_print_words(text, size, "%s", kind);
  for (int i = 0; i < count; i++) ht_add_words(text, size, " %s=%s", names[i], values[i]);
}

/* Parameters in place of their defaults; one that has no effect with the others is refused. */
static ht_status set_parameters(ht_context *ctx, const ht_gen_kind *kind, int count, const char *const names[], const char *const values[],
                                fields *set) {
  const ht_option_row *row = NULL;
  const ht_option_table table = {kind->rows, kind->row_count, 0};
  for (int p = 0; p < kind->row_count; p++) ht_option_set_default(&kind->rows[p], set);
  for (int i = 0; i < count; i++) {
    HT_CHECK(ctx, names[i] && values[i], HT_BAD_ARGUMENT, "the name or the value of parameter %d is NULL", i);
    HT_TRY(ctx, find_row(ctx, kind, names[i], &row));
    HT_TRY(ctx, ht_option_parse(ctx, row, set, values[i]));
  }
  for (int i = 0; i < count; i++) {
    HT_TRY(ctx, find_row(ctx, kind, names[i], &row));
    HT_TRY(ctx, ht_option_check_needs(ctx, &row->info, 1, &table, set));
  }
  return HT_OK;
}

ht_status ht_generate(ht_context *ctx, const char *name, int count, const char *const names[], const char *const values[],
                      ht_matrix **matrix) {
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, name);
  HT_NEED(ctx, matrix);
  HT_CHECK(ctx, count <= 0 || (names && values), HT_BAD_ARGUMENT, "%d parameters are given, and their names or values are NULL", count);
  const ht_gen_kind *kind = NULL;
  fields set = {.bytes = {0}};
  char source[256];
  *matrix = NULL;
  HT_TRY(ctx, find_kind(ctx, name, &kind));
  HT_CHECK(ctx, kind->fields <= sizeof set && kind->row_count <= MOST_PARAMETERS, HT_INTERNAL, "%s has too many parameters", kind->name);
  HT_TRY(ctx, set_parameters(ctx, kind, count, names, values, &set));
  describe(source, sizeof source, kind->name, count, names, values);
  HT_TRY(ctx, kind->generate(ctx, &set, source, matrix));
  return HT_OK;
}
