/* The manual page, in troff, from the same lists. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "help.h"

/* Text with what troff would take for itself escaped. */
static void put(FILE *file, const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", file);
  for (; *text; text++) {
    if (*text == '\\')
      fputs("\\e", file);
    else if (*text == '-')
      fputs("\\-", file);
    else
      fputc(*text, file);
  }
}

static void heading(FILE *file, const char *kind, const char *text) { fprintf(file, ".%s \"%s\"\n", kind, text); }

static void item(FILE *file, const char *left, const char *text) {
  fputs(".TP\n.B ", file);
  put(file, left);
  fputc('\n', file);
  put(file, text);
  fputc('\n', file);
}

static void paragraph(FILE *file, const char *text) {
  fputs(".PP\n", file);
  put(file, text);
  fputc('\n', file);
}

static void command_section(FILE *file, const cli_command *command) {
  char left[200], text[600];
  fprintf(file, ".SS halftone %s\n.B halftone %s ", command->name, command->name);
  put(file, command->synopsis);
  fputc('\n', file);
  snprintf(text, sizeof text, "%s. %s", command->summary, command->text);
  paragraph(file, text);
  for (const cli_option *o = command->options; o->name; o++) {
    snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    item(file, left, o->help);
  }
}

static void listed_options(FILE *file, const char *command) {
  char left[200], text[600];
  int index = 0;
  for (const ht_option_info *info; (info = help_next_listed_option(cli_find_command(command), &index));) {
    help_option(info, left, sizeof left, text, sizeof text);
    item(file, left, text);
  }
}

void help_manual_page(FILE *file) {
  fprintf(file, ".TH HALFTONE 1 \"\" \"halftone %s\" \"User Commands\"\n", ht_version());
  heading(file, "SH", "NAME");
  fputs("halftone \\- solve symmetric positive definite systems in mixed precision\n", file);
  heading(file, "SH", "SYNOPSIS");
  for (const cli_command *c = cli_commands; c->name; c++) {
    fprintf(file, ".B halftone %s ", c->name);
    put(file, c->synopsis);
    fputs("\n.br\n", file);
  }
  heading(file, "SH", "COMMANDS");
  for (const cli_command *c = cli_commands; c->name; c++) command_section(file, c);
  heading(file, "SH", "OPTIONS OF THE SOLVER");
  paragraph(file,
            "The same names serve in C (ht_options_set), in config files (name = value) and in the report. The default is in brackets.");
  listed_options(file, "solve");
  heading(file, "SH", "OPTIONS OF THE TRAINING");
  paragraph(file, "The same names serve in C (ht_trainer_set_option). The default is in brackets.");
  listed_options(file, "train");
  heading(file, "SH", "EXIT STATUS");
  item(file, "0", "solved: the true residual meets the tolerance");
  item(file, "1", "not converged; the report's outcome says why");
  item(file, "2", "bad usage or bad input; one sentence on standard error, and no output file");
  item(file, "3", "an internal check failed: please report it");
  item(file, "130", "ended by a second interrupt; the first ends the solve with the best iterate and status 1");
  heading(file, "SH", "EXAMPLE");
  fputs(".nf\nhalftone gen wathen \\-\\-nx 60 \\-\\-ny 60 \\-o A.mtx\nhalftone solve A.mtx \\-\\-json \\-o x.mtx\n.fi\n", file);
}
