/* halftone: the command. Finds the subcommand, sets up the context, and turns what happened into an exit status.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "args.h"
#include "help.h"
#include "io/output.h"
#include "output.h"
#include "signals.h"

int cli_bad(const char *format, ...) {
  va_list args;
  fputs("halftone: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  return CLI_BAD;
}

static int verbose;

/* A message that comes again, as in the rounds of bench, is shown once. */
static void on_log(void *user, ht_log_level level, const char *message) {
  static const char *const prefix[] = {"", "warning: ", "", "debug: "};
  static char last[512];
  (void)user;
  if (!strncmp(last, message, sizeof last - 1)) return;
  snprintf(last, sizeof last, "%s", message);
  fprintf(stderr, "halftone: %s%s\n", prefix[level], message);
}

void cli_set_verbose(ht_context *ctx) {
  verbose = 1;
  ht_context_set_log(ctx, on_log, NULL, HT_LOG_INFO);
}

/* A library under us that ends the process, as OpenMP does where no thread can be started, does so with a status that means another thing
 * here. It has written why. */
static int ending;

static void on_exit_from_below(void) {
  if (ending) return;
  ht_output_unlink();
  cli_bad("a library gave up; where threads or memory are scarce, --threads 1 needs the least");
  _exit(CLI_BAD);
}

void *cli_allocate(size_t bytes) {
  void *memory = malloc(bytes);
  if (!memory) {
    ending = 1;
    exit(cli_bad("memory is exhausted"));
  }
  return memory;
}

int cli_failed(ht_context *ctx, ht_status status) {
  const char *sentence = ht_context_error(ctx);
  cli_bad("%s", *sentence ? sentence : ht_status_text(status));
  if (verbose) fputs(ht_context_trail(ctx), stderr);
  return status == HT_INTERNAL ? CLI_INTERNAL : status == HT_INTERRUPTED ? CLI_NOT_SOLVED : CLI_BAD;
}

const cli_command *cli_find_command(const char *name) {
  for (const cli_command *c = cli_commands; c->name; c++)
    if (!strcmp(c->name, name)) return c;
  return NULL;
}

static const char *command_at(void *user, int index) {
  (void)user;
  return cli_commands[index].name;
}

int cli_unknown_command(const char *word) {
  struct stat status;
  int count = 0;
  while (cli_commands[count].name) count++;
  if (stat(word, &status) == 0) return cli_bad("a command comes before a file; did you mean `halftone solve %s`?", word);
  const char *nearest = ht_nearest(word, count, command_at, NULL);
  if (nearest) return cli_bad("there is no command '%s'; did you mean '%s'?", word, nearest);
  return cli_bad("there is no command '%s'; `halftone help` lists them", word);
}

static int asks_for_help(int argc, char **argv) {
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return 1;
  return 0;
}

static int run_command(const cli_command *command, int argc, char **argv) {
  cli_args args;
  ht_context *ctx;
  int status = args_parse(&args, command, argc, argv);
  if (!status && ht_context_create(&ctx) == HT_OK) {
    ht_context_set_log(ctx, on_log, NULL, args_value(&args, "--quiet") ? HT_LOG_ERROR : HT_LOG_WARNING);
    signals_watch(ctx);
    status = command->run(ctx, &args);
    ht_context_destroy(ctx);
  } else if (!status)
    status = cli_bad("memory is exhausted");
  args_release(&args);
  return status;
}

/* Words of older habit that stand for a command. */
static const char *meaning_of(const char *word) {
  if (!strcmp(word, "--help") || !strcmp(word, "-h")) return "help";
  if (!strcmp(word, "--version") || !strcmp(word, "-V")) return "version";
  return word;
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    help_usage(stderr);
    return CLI_BAD;
  }
  const cli_command *command = cli_find_command(meaning_of(argv[1]));
  if (!command) return cli_unknown_command(argv[1]);
  int status = 0;
  if (asks_for_help(argc - 2, argv + 2))
    help_on_command(stdout, command);
  else
    status = run_command(command, argc - 2, argv + 2);
  if (status <= CLI_NOT_SOLVED && output_flush_standard()) return CLI_BAD;
  return status;
}

int main(int argc, char **argv) {
  output_reserve_standard();
  atexit(on_exit_from_below);
  int status = run(argc, argv);
  ending = 1;
  return status;
}
