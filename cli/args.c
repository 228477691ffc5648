/* Taking the command line apart: --name value, --name=value, flags, words, and -- for the end of the options.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"

static int own_count(const cli_command *command) {
  int count = 0;
  while (command->options[count].name) count++;
  return count;
}

const ht_option_info *args_listed_option(const cli_command *command, int index) {
  return command->more == CLI_SOLVER_OPTIONS     ? ht_option_at(index)
         : command->more == CLI_TRAINING_OPTIONS ? ht_train_option_at(index)
                                                 : NULL;
}

/* Names for the nearest match: the command's own, then the listed ones. */
static const char *name_at(void *user, int index) {
  const cli_command *command = user;
  int own = own_count(command);
  return index < own ? command->options[index].name + strspn(command->options[index].name, "-")
                     : args_listed_option(command, index - own)->name;
}

static int unknown(const cli_command *command, const char *option) {
  int own = own_count(command), count = own;
  while (args_listed_option(command, count - own)) count++;
  const char *name = option + strspn(option, "-"), *nearest = NULL;
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
  for (int i = 0; i < count && !nearest; i++)
    if (!strcmp(name_at((void *)command, i), bare)) nearest = name_at((void *)command, i);
  if (!nearest) nearest = ht_nearest(bare, count, name_at, (void *)command);
  if (!nearest) return cli_bad("there is no option '%s'; `halftone help %s` lists them", option, command->name);
  for (int i = 0; i < own; i++)
    if (name_at((void *)command, i) == nearest)
      return cli_bad("there is no option '%s'; did you mean '%s'?", option, command->options[i].name);
  return cli_bad("there is no option '%s'; did you mean '--%s'?", option, nearest);
}

static int matches(const char *option, const char *name, const char **value) {
  size_t length = strlen(name);
  if (strncmp(option, name, length) != 0 || (option[length] && option[length] != '=')) return 0;
  *value = option[length] ? option + length + 1 : NULL;
  return 1;
}

static int missing(const cli_command *command, const char *option) {
  return cli_bad("%s needs a value after it; `halftone help %s` says which", option, command->name);
}

/* The command's own option at argv[*at]: 1 taken, 0 not one of these, -1 wrong. */
static int take_own(cli_args *args, int argc, char **argv, int *at) {
  const cli_option *options = args->command->options;
  for (int i = 0; options[i].name; i++) {
    const char *value;
    if (!matches(argv[*at], options[i].name, &value)) continue;
    if (!options[i].value) {
      if (value) return cli_bad("%s takes no value, and was given '%s'", options[i].name, value), -1;
      args->values[i] = "";
      return 1;
    }
    if (!value && ++*at < argc) value = argv[*at];
    if (!value) return missing(args->command, options[i].name), -1;
    if (args->values[i] && strcmp(args->values[i], value) != 0)
      return cli_bad("%s is given twice, as %s and %s; give it once", options[i].name, args->values[i], value), -1;
    args->values[i] = value;
    return 1;
  }
  return 0;
}

static void add_pair(cli_args *args, const char *name, const char *value) { args->pairs[args->pair_count++] = (cli_pair){name, value}; }

/* A listed option: flags stand alone (--name, --no-name), the others take a value. */
static int take_listed(cli_args *args, int argc, char **argv, int *at) {
  const char *name = argv[*at] + 2, *value;
  if (strncmp(argv[*at], "--", 2) != 0) return 0;
  const ht_option_info *info;
  for (int i = 0; (info = args_listed_option(args->command, i)); i++) {
    int flag = info->type == HT_OPTION_FLAG;
    if (flag && !strncmp(name, "no-", 3) && !strcmp(name + 3, info->name)) return add_pair(args, info->name, "no"), 1;
    if (!matches(name, info->name, &value)) continue;
    if (!value && flag) value = "yes";
    if (!value && ++*at < argc) value = argv[*at];
    if (!value) return missing(args->command, argv[*at - 1]), -1;
    add_pair(args, info->name, value);
    return 1;
  }
  return 0;
}

/* A generator's parameter: any name; the generator knows which exist. The name is cut out of --name=value in place. */
static int take_parameter(cli_args *args, int argc, char **argv, int *at) {
  char *name = argv[*at] + 2, *equals = strchr(name, '=');
  if (strncmp(argv[*at], "--", 2) != 0) return 0;
  if (equals) {
    *equals = 0;
    add_pair(args, name, equals + 1);
    return 1;
  }
  if (++*at >= argc) return missing(args->command, argv[*at - 1]), -1;
  add_pair(args, name, argv[*at]);
  return 1;
}

static int take_option(cli_args *args, int argc, char **argv, int *at) {
  int taken = take_own(args, argc, argv, at);
  if (!taken) taken = take_listed(args, argc, argv, at);
  if (!taken && args->command->more == CLI_GENERATOR_PARAMETERS) taken = take_parameter(args, argc, argv, at);
  if (!taken) unknown(args->command, argv[*at]);
  return taken > 0 ? 0 : CLI_BAD;
}

int args_parse(cli_args *args, const cli_command *command, int argc, char **argv) {
  size_t most = (size_t)argc + 1;
  *args = (cli_args){.command = command};
  args->words = calloc(most, sizeof *args->words);
  args->pairs = calloc(most, sizeof *args->pairs);
  args->values = calloc((size_t)own_count(command) + 1, sizeof *args->values);
  if (!args->words || !args->pairs || !args->values) return cli_bad("memory is exhausted");
  int options_ended = 0;
  for (int at = 0; at < argc; at++) {
    if (!options_ended && !strcmp(argv[at], "--"))
      options_ended = 1;
    else if (!options_ended && argv[at][0] == '-' && argv[at][1]) {
      if (take_option(args, argc, argv, &at)) return CLI_BAD;
    } else
      args->words[args->word_count++] = argv[at];
  }
  if (args->word_count > command->most_words)
    return cli_bad("'%s' is one word too many; the form is: halftone %s %s", args->words[command->most_words], command->name,
                   command->synopsis);
  return 0;
}

void args_release(cli_args *args) {
  free(args->words);
  free(args->pairs);
  free(args->values);
}

const char *args_value(const cli_args *args, const char *name) {
  for (int i = 0; args->command->options[i].name; i++)
    if (!strcmp(args->command->options[i].name, name)) return args->values[i];
  return NULL;
}

const char *args_listed_value(const cli_args *args, const char *name) {
  const char *value = NULL;
  for (int i = 0; i < args->pair_count; i++)
    if (!strcmp(args->pairs[i].name, name)) value = args->pairs[i].value;
  return value;
}

int args_in_vain(const char *option, const char *needs) {
  return cli_bad("%s has an effect only with %s; give that, or leave %s out", option, needs, option);
}

/* Under any of the policies, and a policy itself under each; where there are none under that of the options. */
static ht_status check_effect(ht_options *options, const char *name, int count, const char *const *policies) {
  int of_policy = !strcmp(name, "policy");
  ht_status status = count ? HT_BAD_OPTION : ht_options_check(options, name);
  for (int k = 0; k < count && (k == 0 || of_policy == (status == HT_OK)); k++) {
    status = ht_options_set(options, "policy", policies[k]);
    if (status == HT_OK) status = ht_options_check(options, name);
  }
  return status;
}

/* Of the config file's, which are those that are not at their defaults. */
static int is_told(const ht_options *options, const ht_option_info *info) {
  char value[300];
  return ht_options_get(options, info->name, value, sizeof value) == HT_OK && strcmp(value, info->default_value) != 0;
}

/* An option of the command line without effect is wrong, and so is one of the config file that has none by what the file says; where it is
 * the command line that leaves it none, that is told. `vain`: a bit for each option of the file that has none by itself. */
static int check_effects(ht_context *ctx, const cli_args *args, ht_options *options, uint64_t vain, int count,
                         const char *const *policies) {
  const char *config = args_value(args, "--config");
  for (int i = 0; i < ht_option_count(); i++) {
    const ht_option_info *info = ht_option_at(i);
    int compared = count && !strcmp(info->name, "policy"); /* bench has it as an option of its own */
    int given = args_listed_value(args, info->name) || (compared && args_value(args, "--policy"));
    if (!given && (compared || !config || !is_told(options, info))) continue;
    ht_status status = check_effect(options, info->name, count, policies);
    if (status == HT_OK) {
      ht_context_clear_error(ctx); /* some of several policies may have been without */
      continue;
    }
    if (given) return cli_failed(ctx, status);
    if (vain >> i & 1) return cli_bad("%s: %s", config, ht_context_error(ctx));
    if (!args_value(args, "--quiet")) cli_bad("%s: %s", config, ht_context_error(ctx));
    ht_context_clear_error(ctx);
  }
  return 0;
}

static ht_status read_config(ht_context *ctx, const char *config, ht_options *options, uint64_t *vain) {
  ht_status status = ht_options_read_file(options, config);
  for (int i = 0; i < ht_option_count() && status == HT_OK; i++)
    if (ht_options_check(options, ht_option_at(i)->name) != HT_OK) {
      *vain |= (uint64_t)1 << i;
      ht_context_clear_error(ctx);
    }
  return status;
}

int args_solver_options(ht_context *ctx, const cli_args *args, int count, const char *const *policies, ht_options **options) {
  const char *config = args_value(args, "--config");
  uint64_t vain = 0;
  ht_status status = ht_options_create(ctx, options);
  if (status == HT_OK && config) status = read_config(ctx, config, *options, &vain);
  for (int i = 0; i < args->pair_count && status == HT_OK; i++)
    status = ht_options_set(*options, args->pairs[i].name, args->pairs[i].value);
  if (status != HT_OK) return cli_failed(ctx, status);
  if (check_effects(ctx, args, *options, vain, count, policies)) return CLI_BAD;
  status = ht_context_set_threads(ctx, (int)args_option_number(*options, "threads"));
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}

int args_whole_number(const cli_args *args, const char *name, int low, int high, int *value) {
  const char *text = args_value(args, name);
  double number;
  if (!text) return 0;
  if (!ht_parse_real(text, &number) || number != floor(number) || !(number >= low && number <= high))
    return cli_bad("%s takes a whole number from %d to %d, and was given '%s'", name, low, high, text);
  *value = (int)number;
  return 0;
}

int args_set_threads(ht_context *ctx, const cli_args *args) {
  int threads = 0;
  if (!args_value(args, "--threads")) return 0;
  if (args_whole_number(args, "--threads", 0, 4096, &threads)) return CLI_BAD;
  ht_status status = ht_context_set_threads(ctx, threads);
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}

int args_option_is_on(const ht_options *options, const char *name) {
  char text[8];
  return ht_options_get(options, name, text, sizeof text) == HT_OK && !strcmp(text, "yes");
}

double args_option_number(const ht_options *options, const char *name) {
  char text[64] = "";
  return ht_options_get(options, name, text, sizeof text) == HT_OK ? atof(text) : 0;
}
