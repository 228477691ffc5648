/* halftone report: runs as a page for a browser. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "base/fields.h"
#include "output.h"
#include "page.h"
#include "text.h"

/* A title from the command line may hold any bytes: what is not UTF-8 is replaced, as in the reports. */
static json_t *clean_text(const char *text) {
  size_t size = ht_json_string(text, NULL, 0) + 1;
  char *quoted = malloc(size);
  if (!quoted) return NULL;
  ht_json_string(text, quoted, size);
  json_t *clean = json_loads(quoted, JSON_DECODE_ANY, NULL);
  free(quoted);
  return clean;
}

/* Runs of the same matrix and policy are told apart by a number. */
static void number_labels(int runs, cli_run *run) {
  for (int i = runs - 1; i > 0; i--) {
    int same = 0;
    for (int j = 0; j < i; j++) same += !strcmp(run[i].label, run[j].label);
    size_t used = strlen(run[i].label);
    if (same) snprintf(run[i].label + used, sizeof run[i].label - used, " (%d)", same + 1);
  }
}

static int write_page(ht_context *ctx, const char *path, const char *title, int runs, cli_run *run) {
  cli_output output;
  json_t *clean = clean_text(title);
  if (!clean || output_open(&output, path)) {
    json_decref(clean);
    return clean ? CLI_BAD : cli_bad("memory is exhausted: %s cannot be written", path);
  }
  number_labels(runs, run);
  page_write(output.file, json_string_value(clean), runs, run);
  json_decref(clean);
  return output_close(ctx, &output);
}

int report_command(ht_context *ctx, const cli_args *args) {
  cli_run run[PAGE_RUNS_MOST] = {0};
  const char *path = args_value(args, "-o"), *title = args_value(args, "--title");
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  if (args->word_count < 1) return cli_bad("report needs a report file; the form is: halftone report %s", args->command->synopsis);
  if (!path) return cli_bad("report needs -o and a file to write; the form is: halftone report %s", args->command->synopsis);
  int result = output_check(ctx, path), runs = 0;
  for (int i = 0; !result && i < args->word_count; i++)
    result = output_check_apart(1, &(cli_file){"-o", path}, 1, &(cli_file){"a report", args->words[i]});
  for (; !result && runs < args->word_count; runs++) result = run_read(&run[runs], args->words[runs]);
  if (!result) result = write_page(ctx, path, title ? title : "halftone report", runs, run);
  for (int i = 0; i < runs; i++) run_release(&run[i]);
  if (!result && strcmp(path, "-") != 0 && !args_value(args, "--quiet")) printf("%s: %s\n", path, text_number_of(runs, "run").text);
  return result;
}
