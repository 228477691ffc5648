/* halftone train: a policy learned from solves. SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "input.h"
#include "io/output.h"
#include "json.h"
#include "output.h"
#include "signals.h"
#include "text.h"

typedef struct training {
  ht_context *ctx;
  const cli_args *args;
  ht_trainer *trainer;
  ht_matrix **matrix; /* as many as words */
  ht_train_report report;
} training;

/* ---- input ---- */

/* --save may be the state that was resumed: the training goes on. */
static int check_apart(const cli_args *args) {
  const cli_file output[] = {
      {"-o", args_value(args, "-o")}, {"--history", args_value(args, "--history")}, {"--save", args_value(args, "--save")}};
  for (int i = 0; i < args->word_count; i++)
    if (output_check_apart(3, output, 1, &(cli_file){"a matrix", args->words[i]})) return CLI_BAD;
  return output_check_apart(2, output, 1, &(cli_file){"--resume", args_value(args, "--resume")});
}

static int check_arguments(ht_context *ctx, const cli_args *args) {
  const char *state = args_value(args, "--resume");
  static const char *const outputs[] = {"-o", "--save", "--history"};
  if (args->word_count < 1) return cli_bad("train needs a matrix file; the form is: halftone train %s", args->command->synopsis);
  if (!args_value(args, "-o")) return cli_bad("train needs a file to write the policy to; add -o P.safetensors");
  int to_standard = args_value(args, "--json") != NULL;
  for (int i = 0; i < 3; i++) {
    const char *path = args_value(args, outputs[i]);
    if (output_check(ctx, path)) return CLI_BAD;
    to_standard += path && !strcmp(path, "-");
  }
  if (to_standard > 1) return cli_bad("only one of -o, --save, --history and --json can go to standard output");
  int from_standard = state && !strcmp(state, "-");
  for (int i = 0; i < args->word_count; i++) from_standard += !strcmp(args->words[i], "-");
  if (from_standard > 1) return cli_bad("only one of the matrices and --resume can be read from standard input");
  return check_apart(args);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int are_same(const ht_matrix *a, const ht_matrix *b) {
  const int64_t *start[2], n = ht_matrix_rows(a), nnz = ht_matrix_nonzeros(a);
  const int32_t *columns[2];
  const double *values[2];
  if (n != ht_matrix_rows(b) || nnz != ht_matrix_nonzeros(b)) return 0;
  ht_matrix_csr(a, &start[0], &columns[0], &values[0]);
  ht_matrix_csr(b, &start[1], &columns[1], &values[1]);
  return !memcmp(start[0], start[1], (size_t)(n + 1) * sizeof *start[0]) &&
         !memcmp(columns[0], columns[1], (size_t)nnz * sizeof *columns[0]) &&
         !memcmp(values[0], values[1], (size_t)nnz * sizeof *values[0]);
}

/* Twice the same, be it in another file, would only count twice. */
static int add_matrix(training *t, int i) {
  const char *const *words = t->args->words;
  ht_status status = ht_matrix_read(t->ctx, words[i], &t->matrix[i]);
  for (int k = 0; k < i && status == HT_OK; k++)
    if (are_same(t->matrix[k], t->matrix[i])) return cli_bad("%s and %s hold the same matrix; give each matrix once", words[k], words[i]);
  if (status == HT_OK) status = ht_trainer_add_matrix(t->trainer, t->matrix[i], base_name(words[i]));
  return status == HT_OK ? 0 : cli_failed(t->ctx, status);
}

static int set_up(training *t) {
  ht_status status = ht_trainer_create(t->ctx, &t->trainer);
  for (int i = 0; i < t->args->pair_count && status == HT_OK; i++)
    status = ht_trainer_set_option(t->trainer, t->args->pairs[i].name, t->args->pairs[i].value);
  int result = status == HT_OK ? 0 : cli_failed(t->ctx, status);
  for (int i = 0; i < t->args->word_count && !result; i++) result = add_matrix(t, i);
  return result;
}

static int resume(const training *t) {
  const char *path = args_value(t->args, "--resume");
  int64_t size;
  if (!path) return 0;
  void *bytes = input_read("the state to resume", path, &size);
  if (!bytes) return CLI_BAD;
  ht_status status = ht_trainer_resume(t->trainer, bytes, size);
  free(bytes);
  if (status == HT_BAD_FORMAT) return cli_bad("%s: %s", path, ht_context_error(t->ctx)); /* else it is not about the file */
  return status == HT_OK ? 0 : cli_failed(t->ctx, status);
}

/* ---- progress ---- */

enum { LINE = 110 };

typedef struct progress_line {
  double shown_s;
  int begun;
  ht_train_phase phase;
} progress_line;

static void print_progress(char line[LINE], const ht_train_progress *now) {
  static const char *const doing[] = {
      [HT_TRAIN_PREPARES] = "making the first solves", [HT_TRAIN_JUDGES] = "judging what was learned", [HT_TRAIN_COMPETES] = "competing"};
  char best[16] = "-"; /* not known before many episodes */
  if (!isnan(now->best_return)) snprintf(best, sizeof best, "%.3f", now->best_return);
  if (now->phase == HT_TRAIN_LEARNS && isnan(now->mean_return))
    snprintf(line, LINE, "the first of %s is under way %7.1f s", text_number_of(now->episodes_asked, "episode").text, now->elapsed_s);
  else if (now->phase == HT_TRAIN_LEARNS)
    snprintf(line, LINE, "episode %7lld of %lld  return %8.3f (best %8s)  %6.0f iterations  traffic %5.3f %7.1f s",
             (long long)now->episodes, (long long)now->episodes_asked, now->mean_return, best, now->mean_iterations, now->traffic,
             now->elapsed_s);
  else if (now->phase == HT_TRAIN_PREPARES)
    snprintf(line, LINE, "%s", doing[now->phase]);
  else
    snprintf(line, LINE, "%.32s  %s: %.32s made %7.1f s", text_number_of(now->episodes, "episode").text, doing[now->phase],
             text_number_of(now->solves, "solve").text, now->elapsed_s);
}

/* Now and then, and where another phase begins. */
static int on_progress(void *user, const ht_train_progress *now) {
  static const double SECONDS_BETWEEN = 0.2;
  progress_line *p = user;
  char line[LINE];
  if (p->begun && now->phase == p->phase && now->elapsed_s - p->shown_s < SECONDS_BETWEEN) return 0;
  p->begun = 1;
  p->phase = now->phase;
  p->shown_s = now->elapsed_s;
  print_progress(line, now);
  fprintf(stderr, "\r%-*s", LINE, line);
  fflush(stderr);
  return 0;
}

/* ---- output ---- */

static int write_bytes(ht_context *ctx, const char *path, const void *bytes, int64_t size) {
  ht_output output;
  ht_status status = ht_output_open(ctx, path, &output);
  if (status != HT_OK) return cli_failed(ctx, status);
  status = ht_output_write(&output, bytes, (size_t)size);
  if (status == HT_OK) status = ht_output_commit(&output);
  ht_output_abandon(&output);
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}

static int write_history(const training *t, const char *path) {
  cli_output output;
  const double *returns;
  const int64_t *iterations;
  int64_t count = ht_trainer_history(t->trainer, &returns, &iterations);
  if (!path) return 0;
  if (output_open(&output, path)) return CLI_BAD;
  fputs("episode,return,iterations\n", output.file);
  for (int64_t k = 0; k < count; k++) fprintf(output.file, "%lld,%.17g,%lld\n", (long long)k + 1, returns[k], (long long)iterations[k]);
  return output_close(t->ctx, &output);
}

/* Such a policy's actions say when it looks again. */
static int is_for_whole_matrices(const training *t) {
  char state[16];
  return ht_trainer_get_option(t->trainer, "state", state, sizeof state) == HT_OK && !strcmp(state, "features");
}

static int is_by_time(const training *t) {
  char reward[16];
  return ht_trainer_get_option(t->trainer, "reward", reward, sizeof reward) == HT_OK && !strcmp(reward, "time");
}

/* What a solve is to be asked for that is as those of the training. */
static const char *options_of_solves(const training *t) {
  char format[16];
  if (is_for_whole_matrices(t) || ht_trainer_get_option(t->trainer, "format", format, sizeof format) != HT_OK) return "";
  int tiles = !strcmp(format, "tilecsc") || (!strcmp(format, "auto") && !is_by_time(t));
  return tiles ? " --precond none --format tilecsc" : " --precond none";
}

/* What the runs before took is not known. */
static void show_times(const ht_train_report *r) {
  line(stdout, "time", "%s%s: %s preparing, %s solving, %s learning, %s judging, %s of it for the competition, on %s",
       text_seconds(r->time_s).text, r->episodes_before ? " in this run" : "", text_seconds(r->time_prepare_s).text,
       text_seconds(r->time_rollout_s).text, text_seconds(r->time_update_s).text, text_seconds(r->time_judge_s).text,
       text_seconds(r->time_contest_s).text, r->backend);
}

static void show_course(const training *t) {
  const ht_train_report *r = &t->report;
  char asked[32], before[96] = "";
  int more = ht_trainer_get_option(t->trainer, "episodes", asked, sizeof asked) == HT_OK && r->episodes > atoll(asked);
  if (r->episodes_before) snprintf(before, sizeof before, ", %s of them before this run", text_count(r->episodes_before).text);
  line(stdout, "training", "%s after %s%s: %s, %s", r->outcome, text_number_of(r->episodes, "episode").text, before,
       text_number_of(r->transitions, "transition").text, text_number_of(r->updates, "update").text);
  if (more && r->episodes > r->episodes_before)
    line(stdout, NULL, "%s asked for; all that end in the last update are learned from", text_number_of(atoll(asked), "episode").text);
  show_times(r);
  if (isnan(r->return_first)) return; /* no episode was done */
  if (isnan(r->return_best))          /* too few episodes for a judgement but the first */
    line(stdout, "return", "%.3f at first, %.3f at last", r->return_first, r->return_last);
  else
    line(stdout, "return", "%.3f at first, %.3f at last, %.3f at best", r->return_first, r->return_last, r->return_best);
}

/* Of solves with what was learned. */
static void show_verdict(const training *t) {
  const ht_train_report *r = &t->report;
  int whole = is_for_whole_matrices(t);
  if (whole)
    line(stdout, "policy", "one action for the whole matrix");
  else
    line(stdout, "policy", "%s, a decision %s, which delays %s of the rises in precision", text_number_of(r->tiles, "tile").text,
         text_every(r->interval, "iteration").text, text_share(r->delayed).text);
  line(stdout, "precision", "%s FP64, %s FP32, %s 16 bits", text_share(r->share_f64).text, text_share(r->share_f32).text,
       text_share(r->share_16).text);
  line(stdout, "iterations", "%s in %s, and %s in FP64", text_count(r->iterations).text, text_number_of(r->solves, "solve").text,
       text_count(r->iterations_f64).text);
  line(stdout, "residual", "%s true%s, and %s in FP64; the tolerance is missed in %s of %s%s", text_residual(r->residual_true).text,
       r->solves > 1 ? " at most" : "", text_residual(r->residual_true_f64).text, text_count(r->missed).text,
       text_number_of(r->solves, "solve").text,
       whole           ? ""
       : is_by_time(t) ? " by the recursive residual"
                       : " by the recursive residual, which this reward goes by");
  line(stdout, "traffic", is_by_time(t) ? "%.3f of FP64's modelled time" : "%.3f of FP64's bytes", r->traffic);
  if (r->chosen[0]) line(stdout, "chosen", "%s: %s", r->chosen, r->contest);
}

static void show(const training *t) {
  const char *policy = args_value(t->args, "-o"), *state = args_value(t->args, "--save");
  show_course(t);
  if (t->report.judged)
    show_verdict(t);
  else
    line(stdout, "judged", "no: it was interrupted; the file holds the best network so far%s%s", state ? ", and --resume " : "",
         state ? state : "");
  if (!t->report.judged && state) line(stdout, NULL, "goes on, or with no more --episodes than there were judges it");
  if (strcmp(policy, "-") != 0) printf("\nhalftone solve %s --policy learned:%s%s\n", t->args->words[0], policy, options_of_solves(t));
}

static void write_json(const training *t) {
  char object[8192], text[300];
  cli_json json;
  json_begin(&json, stdout);
  json_open(&json, "trained_on", '[');
  for (int i = 0; i < t->args->word_count; i++) json_text(&json, NULL, t->args->words[i]);
  json_close(&json, ']');
  ht_train_report_json(&t->report, object, sizeof object);
  json_members(&json, object);
  json_open(&json, "options", '{');
  for (int i = 0; ht_train_option_at(i); i++) {
    const ht_option_info *info = ht_train_option_at(i);
    if (ht_trainer_get_option(t->trainer, info->name, text, sizeof text) != HT_OK) continue;
    if (info->type == HT_OPTION_CHOICE || info->type == HT_OPTION_TEXT)
      json_text(&json, info->name, text);
    else
      json_number(&json, info->name, text);
  }
  json_close(&json, '}');
  json_finish(&json);
}

/* Files first, the screen last. */
static int write_results(const training *t) {
  const void *bytes;
  int64_t size;
  const char *policy = args_value(t->args, "-o"), *state = args_value(t->args, "--save"), *history = args_value(t->args, "--history");
  ht_status status = ht_trainer_policy(t->trainer, &bytes, &size);
  if (status != HT_OK) return cli_failed(t->ctx, status);
  if (write_bytes(t->ctx, policy, bytes, size)) return CLI_BAD;
  if (state) {
    status = ht_trainer_state(t->trainer, &bytes, &size);
    if (status != HT_OK) return cli_failed(t->ctx, status);
    if (write_bytes(t->ctx, state, bytes, size)) return CLI_BAD;
  }
  if (write_history(t, history)) return CLI_BAD;
  int taken = !strcmp(policy, "-") || (state && !strcmp(state, "-")) || (history && !strcmp(history, "-"));
  if (args_value(t->args, "--json"))
    write_json(t);
  else if (!args_value(t->args, "--quiet") && !taken)
    show(t);
  return strcmp(t->report.outcome, "interrupted") ? 0 : CLI_NOT_SOLVED;
}

static int train(training *t) {
  progress_line progress = {0};
  int result = set_up(t);
  if (!result) result = resume(t);
  if (result) return result;
  if (!args_value(t->args, "--quiet") && isatty(STDERR_FILENO)) ht_trainer_set_progress(t->trainer, on_progress, &progress);
  signals_ask(1);
  ht_status status = ht_trainer_run(t->trainer, &t->report);
  signals_ask(0);
  if (progress.begun) fprintf(stderr, "\r%*s\r", LINE, "");
  return status == HT_OK ? write_results(t) : cli_failed(t->ctx, status);
}

int train_command(ht_context *ctx, const cli_args *args) {
  training t = {.ctx = ctx, .args = args};
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  int result = check_arguments(ctx, args);
  if (!result) result = args_set_threads(ctx, args);
  if (!result) {
    t.matrix = calloc((size_t)args->word_count, sizeof *t.matrix);
    result = t.matrix ? train(&t) : cli_bad("memory is exhausted");
  }
  ht_trainer_destroy(t.trainer);
  for (int i = 0; t.matrix && i < args->word_count; i++) ht_matrix_destroy(t.matrix[i]);
  free(t.matrix);
  return result;
}
