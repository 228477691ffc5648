/* Help for people, from the lists. SPDX-License-Identifier: BSD-3-Clause */
#include "help.h"
#include <string.h>
#include "args.h"

enum { TEXT_WIDTH = 100, OPTION_WIDTH = 26 };

/* Print words from column `at`, with new lines indented by `indent`. */
static void wrap(FILE *file, const char *text, int at, int indent) {
  for (int first = 1; *text; first = 0) {
    int n = (int)strcspn(text, " "), starts_line = !first && at + 1 + n > TEXT_WIDTH;
    if (starts_line) {
      fprintf(file, "\n%*s", indent, "");
      at = indent;
    }
    at += fprintf(file, "%s%.*s", first || starts_line ? "" : " ", n, text);
    text += n + (text[n] == ' ');
  }
  fputc('\n', file);
}

static void entry(FILE *file, const char *left, const char *text) {
  int n = fprintf(file, "  %s", left);
  if (n > OPTION_WIDTH - 2) {
    fprintf(file, "\n%*s", OPTION_WIDTH, "");
    n = OPTION_WIDTH;
  }
  n += fprintf(file, "%*s", n < OPTION_WIDTH ? OPTION_WIDTH - n : 0, "");
  wrap(file, text, n, OPTION_WIDTH);
}

void help_usage(FILE *file) {
  fputs("halftone: solve symmetric positive definite systems in mixed precision\n\ncommands:\n", file);
  for (const cli_command *c = cli_commands; c->name; c++) entry(file, c->name, c->summary);
  fputs("\n`halftone help COMMAND` tells more. To begin:\n"
        "  halftone gen stencil3d --size 40 --coefficients lognormal -o A.mtx\n  halftone solve A.mtx -b random:1\n"
        "exit status: 0 solved, 1 not converged, 2 bad usage or input, 3 internal error\n",
        file);
}

void help_option(const ht_option_info *info, char *left, size_t left_size, char *text, size_t text_size) {
  static const char *const value[] = {" X", " N", "", "", " TEXT"};
  if (info->type == HT_OPTION_FLAG)
    snprintf(left, left_size, "--[no-]%s", info->name);
  else if (info->type == HT_OPTION_CHOICE)
    snprintf(left, left_size, "--%s %s", info->name, info->choices);
  else
    snprintf(left, left_size, "--%s%s", info->name, value[info->type]);
  char needs[200];
  ht_option_needs_text(info, needs, sizeof needs);
  snprintf(text, text_size, "%s%s%s%s [%s]", info->help, *needs ? " (with " : "", needs, *needs ? ")" : "", info->default_value);
}

static int is_own(const cli_command *command, const char *name) {
  for (const cli_option *o = command->options; o->name; o++)
    if (!strncmp(o->name, "--", 2) && !strcmp(o->name + 2, name)) return 1;
  return 0;
}

const ht_option_info *help_next_listed_option(const cli_command *command, int *index) {
  for (const ht_option_info *info; (info = args_listed_option(command, *index));) {
    ++*index;
    if (!is_own(command, info->name)) return info;
  }
  return NULL;
}

void help_on_command(FILE *file, const cli_command *command) {
  char left[200], text[600];
  fprintf(file, "halftone %s %s\n\n%s. ", command->name, command->synopsis, command->summary);
  wrap(file, command->text, (int)strlen(command->summary) + 2, 0);
  if (command->options->name) fputs("\noptions:\n", file);
  for (const cli_option *o = command->options; o->name; o++) {
    snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    entry(file, left, o->help);
  }
  int index = 0;
  const ht_option_info *info = help_next_listed_option(command, &index);
  if (info) fprintf(file, "\noptions of the %s, with their defaults:\n", command->more == CLI_SOLVER_OPTIONS ? "solver" : "training");
  for (; info; info = help_next_listed_option(command, &index)) {
    help_option(info, left, sizeof left, text, sizeof text);
    entry(file, left, text);
  }
}

void help_generators(FILE *file) {
  for (int i = 0; i < ht_generator_count(); i++) entry(file, ht_generator_at(i)->name, ht_generator_at(i)->summary);
}

static const char *generator_at(void *user, int index) {
  (void)user;
  return ht_generator_at(index)->name;
}

static int help_on_generator(FILE *file, const char *kind) {
  char left[200], text[600];
  int g = 0;
  while (g < ht_generator_count() && strcmp(ht_generator_at(g)->name, kind) != 0) g++;
  if (g == ht_generator_count()) {
    const char *nearest = ht_nearest(kind, g, generator_at, NULL);
    if (nearest) return cli_bad("there is no kind '%s'; did you mean '%s'?", kind, nearest);
    return cli_bad("there is no kind '%s'; `halftone gen --list` lists them", kind);
  }
  const ht_generator_info *info = ht_generator_at(g);
  fprintf(file, "halftone gen %s [--parameter value ...] -o A.mtx\n\n", info->name);
  wrap(file, info->summary, 0, 0);
  entry(file, "entries", info->formula);
  entry(file, "positive definite", info->spd);
  if (info->parameters) fputs("\nparameters, with their defaults:\n", file);
  for (int i = 0; i < info->parameters; i++) {
    help_option(ht_generator_parameter(g, i), left, sizeof left, text, sizeof text);
    entry(file, left, text);
  }
  return 0;
}

int help_command(ht_context *ctx, const cli_args *args) {
  (void)ctx;
  if (args_value(args, "--man")) {
    if (args->word_count) return cli_bad("--man prints the whole manual page; leave '%s' out, or --man", args->words[0]);
    help_manual_page(stdout);
    return 0;
  }
  if (!args->word_count) {
    help_usage(stdout);
    return 0;
  }
  const cli_command *command = cli_find_command(args->words[0]);
  if (!command) return cli_unknown_command(args->words[0]);
  int with_kind = command->more == CLI_GENERATOR_PARAMETERS && args->word_count > 1;
  if (args->word_count > 1 && !with_kind) return cli_bad("%s has no kinds; the form is: halftone help %s", command->name, command->name);
  if (with_kind) return help_on_generator(stdout, args->words[1]);
  help_on_command(stdout, command);
  return 0;
}

int version_command(ht_context *ctx, const cli_args *args) {
  (void)ctx;
  (void)args;
  printf("halftone %s\n", ht_version());
  return 0;
}
