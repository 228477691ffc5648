/* Reading reports back. SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MOST = 2000000, GROUPS_MOST = 65536 };

static int damaged(const cli_run *run, const char *what) {
  return cli_bad("%s is not a report that `halftone solve --report` wrote: %s", run->path, what);
}

static int exhausted(const cli_run *run) { return cli_bad("memory is exhausted: %s cannot be read", run->path); }

/* ---- the report's own fields ---- */

static int read_outcome(const char *name, ht_outcome *outcome) {
  for (int k = 0; k <= HT_NOT_RUN; k++) {
    *outcome = (ht_outcome)k;
    if (!strcmp(ht_outcome_name(*outcome), name)) return 1;
  }
  return 0;
}

/* A field that is missing, or null, is not known. 0 when it is of another type. */
static int read_field(const json_t *value, const ht_report_info *info, void *field) {
  if (!value || json_is_null(value)) return info->type != HT_REPORT_IS_OUTCOME;
  switch (info->type) {
  case HT_REPORT_IS_REAL: *(double *)field = json_number_value(value); return json_is_number(value);
  case HT_REPORT_IS_INTEGER: *(int64_t *)field = json_integer_value(value); return json_is_integer(value);
  case HT_REPORT_IS_STRING:
    if (json_is_string(value)) snprintf(field, HT_REPORT_TEXT, "%s", json_string_value(value));
    return json_is_string(value);
  case HT_REPORT_IS_OUTCOME: return json_is_string(value) && read_outcome(json_string_value(value), field);
  }
  return 0;
}

static int read_fields(cli_run *run) {
  char what[120];
  ht_report_clear(&run->report);
  for (int i = 0; i < ht_report_count(); i++) {
    const ht_report_info *info = ht_report_at(i);
    if (read_field(json_object_get(run->root, info->name), info, (char *)&run->report + info->offset)) continue;
    snprintf(what, sizeof what, "its field '%s' is missing or of the wrong kind", info->name);
    return damaged(run, what);
  }
  run->matrix = json_string_value(json_object_get(run->root, "matrix"));
  if (!run->matrix) return damaged(run, "its field 'matrix' is missing or of the wrong kind");
  return 0;
}

/* ---- the trace ---- */

static const json_t *list_of(const json_t *trace, const char *name) {
  const json_t *list = json_object_get(trace, name);
  return json_is_array(list) && json_array_size(list) <= ENTRIES_MOST ? list : NULL;
}

static double *new_reals(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

/* [[x, y], ...] with x ascending; y may be null. */
static int read_pairs(cli_run *run, const json_t *list, int64_t *count, double **x, double **y) {
  if (!list) return damaged(run, "a list of its trace is missing, or too long");
  int64_t size = (int64_t)json_array_size(list);
  *x = new_reals(size);
  *y = new_reals(size);
  if (!*x || !*y) return exhausted(run);
  for (int64_t k = 0; k < size; k++) {
    const json_t *pair = json_array_get(list, (size_t)k), *first = json_array_get(pair, 0), *second = json_array_get(pair, 1);
    if (!json_is_number(first) || !second || (!json_is_number(second) && !json_is_null(second)))
      return damaged(run, "a pair of its trace is not two numbers");
    (*x)[k] = json_number_value(first);
    (*y)[k] = json_is_null(second) ? NAN : json_number_value(second);
    if (!((*x)[k] >= (k ? (*x)[k - 1] : 0))) return damaged(run, "the iterations of its trace do not ascend");
  }
  *count = size;
  return 0;
}

static int read_residuals(cli_run *run, const json_t *list) {
  if (!list) return damaged(run, "its trace has no list 'true_residuals'");
  int64_t size = (int64_t)json_array_size(list);
  run->residual_at = new_reals(size);
  run->residual = new_reals(size);
  run->residual_why = calloc((size_t)size + 1, sizeof *run->residual_why);
  if (!run->residual_at || !run->residual || !run->residual_why) return exhausted(run);
  for (int64_t k = 0; k < size; k++) {
    const json_t *entry = json_array_get(list, (size_t)k), *at = json_object_get(entry, "iteration"),
                 *residual = json_object_get(entry, "residual");
    run->residual_why[k] = json_string_value(json_object_get(entry, "why"));
    if (!json_is_number(at) || !residual || !run->residual_why[k]) return damaged(run, "a true residual of its trace is not whole");
    run->residual_at[k] = json_number_value(at);
    run->residual[k] = json_is_number(residual) ? json_number_value(residual) : NAN;
  }
  run->residuals = size;
  return 0;
}

/* [[groups, blocks at 16, at 32, at 64], ...] for all groups. */
static int read_groups(cli_run *run, const json_t *list, double *count) {
  int64_t group = 0;
  for (size_t k = 0; k < json_array_size(list); k++) {
    const json_t *entry = json_array_get(list, k);
    json_int_t length = json_integer_value(json_array_get(entry, 0));
    double blocks[RUN_LEVELS], sum = 0;
    for (int level = 0; level < RUN_LEVELS; level++) {
      blocks[level] = json_number_value(json_array_get(entry, (size_t)level + 1));
      if (!(blocks[level] >= 0)) return damaged(run, "a group of its trace has a negative number of blocks");
      sum += blocks[level];
    }
    if (length < 1 || length > run->groups - group || !(sum >= 1)) return damaged(run, "the groups of its trace do not add up");
    for (json_int_t j = 0; j < length; j++, group++) memcpy(count + group * RUN_LEVELS, blocks, sizeof blocks);
  }
  return group == run->groups ? 0 : damaged(run, "the groups of its trace do not add up");
}

static int read_levels(cli_run *run, const json_t *list) {
  if (!list || json_array_size(list) > 100000) return damaged(run, "its trace has no list 'levels'");
  int64_t size = (int64_t)json_array_size(list);
  run->change_at = new_reals(size);
  run->count = new_reals(size * run->groups * RUN_LEVELS);
  if (!run->change_at || !run->count) return exhausted(run);
  for (int64_t k = 0; k < size; k++) {
    const json_t *entry = json_array_get(list, (size_t)k), *at = json_object_get(entry, "iteration");
    if (!json_is_number(at)) return damaged(run, "a change of levels in its trace has no iteration");
    run->change_at[k] = json_number_value(at);
    if (!(run->change_at[k] >= (k ? run->change_at[k - 1] : 0))) return damaged(run, "the iterations of its trace do not ascend");
    if (read_groups(run, json_object_get(entry, "groups"), run->count + k * run->groups * RUN_LEVELS)) return CLI_BAD;
  }
  run->changes = size;
  return 0;
}

static int read_trace(cli_run *run) {
  const json_t *trace = json_object_get(run->root, "trace");
  if (!trace) return 0;
  const json_t *blocks = json_object_get(trace, "blocks"), *groups = json_object_get(trace, "groups");
  if (!json_is_integer(blocks) || !json_is_integer(groups)) return damaged(run, "its trace does not say how many blocks there are");
  run->blocks = json_integer_value(blocks);
  run->groups = json_integer_value(groups);
  if (run->groups < 0 || run->groups > GROUPS_MOST || run->blocks < run->groups || (run->groups == 0) != (run->blocks == 0))
    return damaged(run, "the numbers of blocks and groups in its trace do not fit");
  run->levels_at_run_ends = json_is_true(json_object_get(trace, "levels_known_at_run_ends_only"));
  if (read_levels(run, list_of(trace, "levels")) || read_residuals(run, list_of(trace, "true_residuals")) ||
      read_pairs(run, list_of(trace, "times"), &run->times, &run->time_at, &run->time) ||
      read_pairs(run, list_of(trace, "history"), &run->history, &run->history_at, &run->history_residual))
    return CLI_BAD;
  run->has_trace = 1;
  return 0;
}

/* ---- a run ---- */

enum { MATRIX_LETTERS = 24, POLICY_LETTERS = 20 };

/* Bytes of the first `most` characters of UTF-8, among the first `length` bytes. */
static int first_characters(const char *text, int length, int most) {
  int used = 0;
  for (; used < length && most > 0; most--) do
      used++;
    while (used < length && (text[used] & 0xc0) == 0x80);
  return used;
}

/* The file's name without folder and ending, and the policy, of a learned one its file's name. */
static void make_label(cli_run *run) {
  const char *policy = run->report.policy, *file = strrchr(policy, '/'), *slash = strrchr(run->matrix, '/');
  const char *name = slash ? slash + 1 : run->matrix, *kind = file ? file + 1 : policy;
  int stem = (int)strcspn(name, "."), word = (int)strcspn(kind, ".");
  if (stem == 0) stem = (int)strlen(name);
  snprintf(run->label, sizeof run->label, "%.*s, %s%.*s", first_characters(name, stem, MATRIX_LETTERS), name, file ? "learned:" : "",
           first_characters(kind, word, POLICY_LETTERS), kind);
}

/* jansson takes memory that ends for damage of the text, or drops a letter and goes on. */
static int memory_ended;

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes);
  memory_ended |= !memory;
  return memory;
}

int run_read(cli_run *run, const char *path) {
  json_error_t error;
  *run = (cli_run){.path = path};
  if (!*path) return cli_bad("the name of a report is empty");
  FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  if (!file) return cli_bad("%s cannot be opened: %s", path, strerror(errno));
  json_set_alloc_funcs(allocate, free);
  run->root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
  if (file != stdin) fclose(file);
  if (memory_ended) return exhausted(run);
  if (!run->root) return cli_bad("%s is not JSON: line %d, column %d: %s", path, error.line, error.column, error.text);
  if (!json_is_object(run->root)) return damaged(run, "it is not one JSON object");
  if (read_fields(run) || read_trace(run)) return CLI_BAD;
  make_label(run);
  return 0;
}

void run_release(cli_run *run) {
  void *memory[] = {run->change_at, run->count, run->residual_at, run->residual,        run->residual_why,
                    run->time_at,   run->time,  run->history_at,  run->history_residual};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) free(memory[k]);
  json_decref(run->root);
}

double run_last_iteration(const cli_run *run) {
  double last = run->history ? run->history_at[run->history - 1] : (double)run->report.iterations;
  return last > 1 ? last : 1;
}

/* The number of entries that are at most `value`, in a list that ascends. */
static int64_t count_up_to(const double *list, int64_t count, double value) {
  int64_t low = 0, high = count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (list[middle] <= value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

double run_time_at(const cli_run *run, double iteration) {
  int64_t after = count_up_to(run->time_at, run->times, iteration);
  if (run->times == 0) return NAN;
  if (after == 0) return run->time[0];
  if (after == run->times) return run->time[after - 1];
  double from = run->time_at[after - 1], to = run->time_at[after];
  return run->time[after - 1] + (run->time[after] - run->time[after - 1]) * (iteration - from) / (to - from);
}

int64_t run_change_at(const cli_run *run, double iteration) { return count_up_to(run->change_at, run->changes, iteration) - 1; }
