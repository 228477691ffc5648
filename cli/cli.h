/* What the files of the command share: exit statuses, commands and their arguments. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_H
#define HALFTONE_CLI_H
#include "halftone/halftone.h"

/* Exit statuses that scripts rely on. */
enum { CLI_SOLVED = 0, CLI_NOT_SOLVED = 1, CLI_BAD = 2, CLI_INTERNAL = 3, CLI_KILLED = 130 };

typedef struct cli_args cli_args;

/* One option that belongs to a command itself; the solver's and the training's come from the library's lists. */
typedef struct cli_option {
  const char *name;  /* with its dashes */
  const char *value; /* what its value is called in the help; NULL for a flag */
  const char *help;
} cli_option;

/* Which options a command takes beside its own. */
typedef enum cli_more { CLI_NO_MORE, CLI_SOLVER_OPTIONS, CLI_GENERATOR_PARAMETERS, CLI_TRAINING_OPTIONS } cli_more;

typedef struct cli_command {
  const char *name, *synopsis, *summary, *text;
  const cli_option *options; /* the last has no name */
  cli_more more;
  int most_words; /* file names and the like */
  int (*run)(ht_context *ctx, const cli_args *args);
} cli_command;

/* All commands in the order of the help; the last has no name. */
extern const cli_command cli_commands[];
const cli_command *cli_find_command(const char *name);
int cli_unknown_command(const char *word); /* the sentence, with the nearest name; returns CLI_BAD */

/* One sentence on standard error, after `halftone: `. Returns CLI_BAD. */
int cli_bad(const char *format, ...) HT_PRINTF(1, 2);
/* For what is written: no output is better than one with holes. Ends the program where memory is exhausted. */
void *cli_allocate(size_t bytes);
/* The sentence that the context keeps, and the exit status for it. */
int cli_failed(ht_context *ctx, ht_status status);
/* Print the trail below each error, and the library's informative messages. */
void cli_set_verbose(ht_context *ctx);

int solve_command(ht_context *ctx, const cli_args *args);
int info_command(ht_context *ctx, const cli_args *args);
int gen_command(ht_context *ctx, const cli_args *args);
int convert_command(ht_context *ctx, const cli_args *args);
int bench_command(ht_context *ctx, const cli_args *args);
int report_command(ht_context *ctx, const cli_args *args);
int train_command(ht_context *ctx, const cli_args *args);
int help_command(ht_context *ctx, const cli_args *args);
int version_command(ht_context *ctx, const cli_args *args);

#endif
