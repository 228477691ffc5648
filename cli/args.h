/* A command's arguments, taken apart. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_ARGS_H
#define HALFTONE_CLI_ARGS_H
#include "cli.h"

/* An option that is handed on by name: a solver's or a generator's. */
typedef struct cli_pair {
  const char *name, *value;
} cli_pair;

struct cli_args {
  const cli_command *command;
  const char **words; /* what is not an option, in order */
  int word_count;
  const char **values; /* of the command's own options, by their index; NULL when not given */
  cli_pair *pairs;     /* the others, in order */
  int pair_count;
};

/* Take argv apart for `command`. On failure the sentence has been printed and CLI_BAD is returned; 0 otherwise.
 * args_release in both cases. The texts point into argv. */
int args_parse(cli_args *args, const cli_command *command, int argc, char **argv);
void args_release(cli_args *args);

/* The value of one of the command's own options, by its name with dashes; NULL when not given. A flag gives "". */
const char *args_value(const cli_args *args, const char *name);

/* The library's list of options that the command takes beside its own: NULL behind the last. */
const ht_option_info *args_listed_option(const cli_command *command, int index);

/* Options for a solver from the config file (when given) and then the command line. The sentence is in the context. */
ht_status args_solver_options(ht_context *ctx, const cli_args *args, ht_options **options);
/* One option's value as a number. */
/* What --threads says to the context, for a command that has it as an option of its own: 0, or CLI_BAD after the sentence. */
int args_set_threads(ht_context *ctx, const cli_args *args);
double args_option_number(const ht_options *options, const char *name);

#endif
