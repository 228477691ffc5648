/* The one place where the components' option lists come together. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/options.h"
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/context.h"
#include "base/number.h"
#include "base/option_table.h"

static const ht_option_row solve_rows[] = {
#define HT_OPTION_OWNER ht_solve_options
    HT_SOLVE_OPTIONS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row precond_rows[] = {
#define HT_OPTION_OWNER ht_precond_options
    HT_PRECOND_OPTIONS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row policy_rows[] = {
#define HT_OPTION_OWNER ht_policy_options
    HT_POLICY_OPTIONS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row operator_rows[] = {
#define HT_OPTION_OWNER ht_operator_options
    HT_OPERATOR_OPTIONS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static const ht_option_table tables[] = {
    {solve_rows, COUNT(solve_rows), offsetof(struct ht_options, solve)},
    {precond_rows, COUNT(precond_rows), offsetof(struct ht_options, precond)},
    {policy_rows, COUNT(policy_rows), offsetof(struct ht_options, policy)},
    {operator_rows, COUNT(operator_rows), offsetof(struct ht_options, op)},
};

/* The rows as the public functions give them: dashes for underscores and the default as text. Built once. */
enum { MOST_OPTIONS = 64 };
static struct {
  ht_option_info info;
  char name[40], default_value[HT_OPTION_TEXT_SIZE];
} public_rows[MOST_OPTIONS];
static const ht_option_row *row_of[MOST_OPTIONS];
static size_t base_of[MOST_OPTIONS];
static int row_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build_public_rows(void) {
  static struct ht_options defaults;
  for (int t = 0; t < COUNT(tables); t++)
    for (int i = 0; i < tables[t].count && row_count < MOST_OPTIONS; i++) {
      const ht_option_row *row = &tables[t].rows[i];
      int k = row_count++;
      row_of[k] = row;
      base_of[k] = tables[t].offset;
      public_rows[k].info = row->info;
      snprintf(public_rows[k].name, sizeof public_rows[k].name, "%s", row->info.name);
      for (char *c = public_rows[k].name; *c; c++)
        if (*c == '_') *c = '-';
      void *fields = (char *)&defaults + tables[t].offset;
      ht_option_set_default(row, fields);
      ht_option_print(row, fields, public_rows[k].default_value, sizeof public_rows[k].default_value);
      public_rows[k].info.name = public_rows[k].name;
      public_rows[k].info.default_value = public_rows[k].default_value;
      if (row->info.type == HT_OPTION_TEXT) public_rows[k].info.choices = NULL;
    }
}

int ht_option_count(void) {
  pthread_once(&once, build_public_rows);
  return row_count;
}

const ht_option_info *ht_option_at(int index) { return index >= 0 && index < ht_option_count() ? &public_rows[index].info : NULL; }

static const char *name_at(void *user, int index) {
  (void)user;
  return public_rows[index].name;
}

static ht_status find(ht_context *ctx, const char *name, int *index) {
  for (int i = 0; i < ht_option_count(); i++)
    if (!strcmp(public_rows[i].name, name)) {
      *index = i;
      return HT_OK;
    }
  const char *nearest = ht_nearest(name, row_count, name_at, NULL);
  if (nearest) HT_FAIL(ctx, HT_BAD_OPTION, "there is no option '%s'; did you mean '%s'?", name, nearest);
  HT_FAIL(ctx, HT_BAD_OPTION, "there is no option '%s'; `halftone help solve` lists them", name);
}

void ht_options_set_defaults(ht_options *options) {
  for (int i = 0; i < ht_option_count(); i++) ht_option_set_default(row_of[i], (char *)options + base_of[i]);
}

ht_status ht_options_create(ht_context *ctx, ht_options **options) {
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, options);
  *options = NULL;
  ht_options *o;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *o, &o));
  o->ctx = ctx;
  ht_options_set_defaults(o);
  *options = o;
  return HT_OK;
}

void ht_options_destroy(ht_options *options) {
  if (options) ht_release(options->ctx, options);
}

ht_status ht_options_set(ht_options *options, const char *name, const char *value) {
  HT_NEED(NULL, options);
  HT_NEED(options->ctx, name);
  HT_NEED(options->ctx, value);
  int i = 0;
  HT_TRY(options->ctx, find(options->ctx, name, &i));
  ht_option_row row = *row_of[i];
  row.info.name = public_rows[i].name; /* messages use the name the user knows */
  HT_TRY(options->ctx, ht_option_parse(options->ctx, &row, (char *)options + base_of[i], value));
  return HT_OK;
}

ht_status ht_options_set_real(ht_options *options, const char *name, double value) {
  char text[40];
  ht_print_real(value, 17, text, sizeof text);
  return ht_options_set(options, name, text);
}

ht_status ht_options_set_integer(ht_options *options, const char *name, long long value) {
  char text[40];
  snprintf(text, sizeof text, "%lld", value);
  return ht_options_set(options, name, text);
}

ht_status ht_options_get(const ht_options *options, const char *name, char *text, size_t size) {
  HT_NEED(NULL, options);
  HT_NEED(options->ctx, name);
  HT_NEED(options->ctx, text);
  int i = 0;
  char whole[HT_OPTION_TEXT_SIZE];
  HT_TRY(options->ctx, find(options->ctx, name, &i));
  ht_option_print(row_of[i], (const char *)options + base_of[i], whole, sizeof whole);
  HT_CHECK(options->ctx, strlen(whole) < size, HT_BAD_ARGUMENT, "the value of %s takes %zu bytes, and the buffer has %zu", name,
           strlen(whole) + 1, size);
  strcpy(text, whole);
  return HT_OK;
}

ht_status ht_options_check(const ht_options *options, const char *name) {
  HT_NEED(NULL, options);
  HT_NEED(options->ctx, name);
  int i = 0;
  HT_TRY(options->ctx, find(options->ctx, name, &i));
  HT_TRY(options->ctx, ht_option_check_needs(options->ctx, &public_rows[i].info, COUNT(tables), tables, options));
  return HT_OK;
}

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t n = strlen(text);
  while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
  return text;
}

/* The next line without its end. A zero byte would hide the rest of its line, or the whole of it, from every text function. */
static ht_status read_line(ht_context *ctx, FILE *file, const char *path, int number, size_t size, char *line, int *found) {
  size_t length = 0;
  int c;
  while ((c = getc(file)) != EOF && c != '\n') {
    HT_CHECK(ctx, c, HT_BAD_FORMAT, "%s:%d: expected text, found a zero byte at character %zu; is this a config file in UTF-8?", path,
             number, length + 1);
    HT_CHECK(ctx, length + 1 < size, HT_BAD_FORMAT, "%s:%d: a line has more than %zu characters", path, number, size - 1);
    line[length++] = (char)c;
  }
  HT_CHECK(ctx, !ferror(file), HT_BAD_FILE, "%s cannot be read: %s", path, strerror(errno));
  line[length] = 0;
  *found = c != EOF || length > 0;
  return HT_OK;
}

static ht_status set_from_line(ht_options *options, const char *path, int number, char *line) {
  ht_context *ctx = options->ctx;
  line[strcspn(line, "#")] = 0;
  char *name = trim(line);
  if (!*name) return HT_OK;
  char *equals = strchr(name, '=');
  HT_CHECK(ctx, equals, HT_BAD_FORMAT, "%s:%d: expected `name = value`, found '%s'", path, number, name);
  *equals = 0;
  ht_status status = ht_options_set(options, trim(name), trim(equals + 1));
  if (status == HT_OK) return HT_OK;
  char sentence[HT_ERROR_TEXT];
  snprintf(sentence, sizeof sentence, "%s", ctx->error);
  HT_FAIL(ctx, status, "%s:%d: %s", path, number, sentence);
}

static ht_status read_lines(ht_options *options, FILE *file, const char *path) {
  char line[512];
  int found = 1;
  for (int number = 1; found; number++) {
    HT_TRY(options->ctx, read_line(options->ctx, file, path, number, sizeof line, line, &found));
    size_t mark = number == 1 && !strncmp(line, "\xef\xbb\xbf", 3) ? 3 : 0; /* that some editors put before UTF-8 text */
    memmove(line, line + mark, strlen(line + mark) + 1);
    if (found) HT_TRY(options->ctx, set_from_line(options, path, number, line));
  }
  return HT_OK;
}

ht_status ht_options_read_file(ht_options *options, const char *path) {
  HT_NEED(NULL, options);
  HT_NEED(options->ctx, path);
  HT_CHECK(options->ctx, *path, HT_BAD_FILE, "the name of the config file is empty");
  FILE *file = fopen(path, "r");
  HT_CHECK(options->ctx, file, HT_BAD_FILE, "%s cannot be opened: %s", path, strerror(errno));
  ht_status status = read_lines(options, file, path);
  fclose(file);
  if (status != HT_OK) return ht_trace(options->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}
