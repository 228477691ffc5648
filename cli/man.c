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

static void config_section(FILE *file) {
  heading(file, "SH", "CONFIG FILES");
  paragraph(
      file,
      "A file for --config has a line `name = value` for each option of the solver, without the dashes; flags are yes or no, # begins a "
      "comment, and empty lines are skipped:");
  fputs(".nf\nrtol = 1e\\-8\nprecond = jacobi   # the default\nguard = yes\n.fi\n", file);
}

/* Words of the screen that are not plain English. */
static void screen_section(FILE *file) {
  heading(file, "SH", "WORDS OF THE SCREEN");
  item(file, "engine",
       "the CG loop: textbook (any matrix storage and preconditioner), fused (the CPU's, one sweep an iteration), persistent, "
       "streaming and paper (a GPU's)");
  item(file, "precision",
       "what the policy reads the matrix at; fixed:bf16 names the 16-bit level, which in the split storage is not the number format bf16 "
       "but 16 "
       "bits of fixed point with an exponent for eight values: `exact at 16 bits` means exact in these");
  item(file, "guard", "what stands behind low precision: it certifies, replaces residuals, raises levels and goes back");
  item(file, "replacements", "times that the guard put the true residual in the place of the loop's own");
  item(file, "restores", "times that the guard went back to an earlier iterate");
  item(
      file, "left to FP64",
      "levels below FP64, but those of auto and learned, may spend a quarter of the iteration limit, and more of it while the residual is "
      "on course for the goal; then the guard reads the matrix at FP64 for the rest, so that a limit that is enough for FP64 is enough for "
      "such a policy, but where it is hardly so");
  item(file, "residual", "true: ||b - A x||, computed in FP64 from the matrix as given; recursive: what the loop carries along");
  item(file, "backward error", "||r|| / (||A|| ||x|| + ||b||) in the maximum norm: about 1e-16 is as good as FP64 allows");
  item(file, "iterations, products", "with several right-hand sides the sums over all of them");
}

static void report_item(FILE *file, const ht_report_info *info) {
  char text[300];
  snprintf(text, sizeof text, "%s%s%s%s", info->help, *info->unit ? " [" : "", info->unit, *info->unit ? "]" : "");
  item(file, info->name, text);
}

static void json_section(FILE *file) {
  heading(file, "SH", "JSON");
  paragraph(file,
            "What --json and --report write is one object: matrix, right_side, the keys below, options (every option of the solver), "
            "per_column (with "
            "several right-hand sides the same keys for each) and trace (with --trace). What is not known is null, or -1 for a count.");
  for (int i = 0; i < ht_report_count(); i++) report_item(file, ht_report_at(i));
  paragraph(file, "The object of `halftone train --json` has trained_on, options (every option of the training, as it was settled) and:");
  for (int i = 0; i < ht_train_report_count(); i++) report_item(file, ht_train_report_at(i));
  paragraph(file, "The object of `halftone info A.mtx --json` has matrix, rows_by_bandwidth and:");
  for (int i = 0; i < ht_facts_count(); i++) item(file, ht_facts_at(i)->name, ht_facts_at(i)->help);
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
  paragraph(
      file,
      "The same names serve in C (ht_options_set), in config files (name = value) and in the report. The default is in brackets. An option "
      "that has an effect only with others is refused without them; one of a config file that the command line leaves without is told.");
  listed_options(file, "solve");
  heading(file, "SH", "OPTIONS OF THE TRAINING");
  paragraph(file, "The same names serve in C (ht_trainer_set_option). The default is in brackets.");
  listed_options(file, "train");
  config_section(file);
  screen_section(file);
  json_section(file);
  heading(file, "SH", "ENVIRONMENT");
  item(file, "OMP_NUM_THREADS", "the threads where --threads does not say; of a list the first number, and what is no number is ignored");
  heading(file, "SH", "EXIT STATUS");
  item(file, "0", "solved: the true residual meets the tolerance");
  item(file, "1", "not converged; the report's outcome says why");
  item(file, "2", "bad usage or bad input; one sentence on standard error, and no output file");
  item(file, "3", "an internal check failed: please report it");
  item(file, "130",
       "ended by a second interrupt; the first ends a solve with the best iterate, a training with what it has learned, and status 1");
  heading(file, "SH", "EXAMPLE");
  fputs(".nf\nhalftone gen stencil3d \\-\\-size 40 \\-\\-coefficients lognormal \\-o A.mtx\nhalftone solve A.mtx \\-b random:1 \\-o "
        "x.mtx\n.fi\n",
        file);
}
