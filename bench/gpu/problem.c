/* SPDX-License-Identifier: BSD-3-Clause */
#include "problem.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int in_list(const char *text, const char *words) {
  size_t length = strlen(text);
  for (const char *w = words; *w; w += strcspn(w, ",")) {
    w += *w == ',';
    if (strcspn(w, ",") == length && !strncmp(w, text, length)) return 1;
  }
  return 0;
}

static int copy_text(char *to, size_t size, const char *text) { return snprintf(to, size, "%s", text) < (int)size ? 0 : -1; }

int problems_add(problem_list *list, const char *name, const char *class, const char *recipe) {
  problem *more = realloc(list->items, ((size_t)list->count + 1) * sizeof *more);
  if (!more) return -1;
  list->items = more;
  problem *p = &more[list->count];
  copy_text(p->name, sizeof p->name, name); /* a long name is cut: it is for the eye */
  errno = EINVAL;
  if (copy_text(p->class, sizeof p->class, class) || copy_text(p->recipe, sizeof p->recipe, recipe)) return -1;
  list->count++;
  return 0;
}

/* Cut a line at its tabs; empty fields stay. */
static int split_tabs(char *line, char **fields, int most) {
  int count = 0;
  for (char *next = line; next && count < most; count++) {
    fields[count] = next;
    next = strchr(next, '\t');
    if (next) *next++ = 0;
  }
  return count;
}

int problems_read_suite(problem_list *list, const char *path, const char *classes, const char *only) {
  enum { NAME, RECIPE, SEED, CLASS, FIELDS };
  char line[2048], *fields[FIELDS];
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  int bad = 0;
  while (!bad && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\r\n")] = 0;
    if (line[0] == '#' || split_tabs(line, fields, FIELDS) < FIELDS || !strcmp(fields[NAME], "name")) continue;
    if ((classes && !in_list(fields[CLASS], classes)) || (only && !in_list(fields[NAME], only))) continue;
    bad = problems_add(list, fields[NAME], fields[CLASS], fields[RECIPE]);
  }
  if (ferror(f)) bad = -1;
  fclose(f);
  return bad;
}

static int is_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f) fclose(f);
  return f != NULL;
}

ht_status problem_make(ht_context *ctx, const problem *p, ht_matrix **matrix) {
  enum { MOST = 32 };
  const char *names[MOST], *values[MOST];
  char text[sizeof p->recipe], *rest = NULL;
  int count = 0;
  if (is_file(p->recipe)) return ht_matrix_read(ctx, p->recipe, matrix);
  memcpy(text, p->recipe, sizeof text);
  const char *kind = strtok_r(text, " ", &rest), *name;
  *matrix = NULL;
  while (kind && (name = strtok_r(NULL, " ", &rest))) {
    const char *value = strtok_r(NULL, " ", &rest);
    if (strncmp(name, "--", 2) || !value || count == MOST) return HT_BAD_ARGUMENT;
    names[count] = name + 2;
    values[count++] = value;
  }
  return kind ? ht_generate(ctx, kind, count, names, values, matrix) : HT_BAD_ARGUMENT;
}
