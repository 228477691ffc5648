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

/* Options for a solver from the config file (when given) and then the command line: 0, or a status of the command after the sentence. An
 * option without effect is wrong, but for one of the config file that the command line leaves without: that is told. With `policies`, the
 * `count` that bench compares, it has an effect where it has one under any of them. */
int args_solver_options(ht_context *ctx, const cli_args *args, int count, const char *const *policies, ht_options **options);
/* What one of the command's own options says, where it is given: 0, or CLI_BAD after the sentence. */
int args_whole_number(const cli_args *args, const char *name, int low, int high, int *value);
/* What --threads says to the context, for a command that has it as an option of its own: 0, or CLI_BAD after the sentence. */
int args_set_threads(ht_context *ctx, const cli_args *args);
/* The last value of a listed option on the command line; NULL when not given. */
const char *args_listed_value(const cli_args *args, const char *name);
/* CLI_BAD after the sentence: the option, with its dashes, has an effect only with something else that is not there. */
int args_in_vain(const char *option, const char *needs);
/* One option's value as a number, and whether a flag is set. */
int args_option_is_on(const ht_options *options, const char *name);
double args_option_number(const ht_options *options, const char *name);

#endif
