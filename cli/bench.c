/* halftone bench: the same system under several policies, taking turns. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "problem.h"
#include "solve.h"
#include "text.h"

enum { MOST_POLICIES = 16, MOST_REPEATS = 1000, SAMPLES = 5 };

typedef struct contender {
  char policy[256];
  ht_report report;              /* of the last solve */
  double *setup, *solve, *total; /* one a round */
  double *ratio, *ratio_solve;   /* the first contender's total, or solve, in the same round over this one's */
} contender;

typedef struct contest {
  const cli_problem *problem;
  ht_options *options;
  contender *contenders;
  int count, rounds;
} contest;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the samples. */
static double median(double *samples, int count) {
  qsort(samples, (size_t)count, sizeof *samples, compare);
  return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

static ht_status solve_once(ht_context *ctx, const contest *c, contender *one, int round) {
  const cli_problem *p = c->problem;
  ht_solver *solver = NULL;
  ht_status status = ht_options_set(c->options, "policy", one->policy);
  if (status == HT_OK) status = ht_solver_create(ctx, c->options, &solver);
  if (status == HT_OK) status = ht_solver_set_matrix(solver, p->matrix);
  memset(p->x, 0, sizeof *p->x * (size_t)p->n * (size_t)p->columns);
  double begin = seconds_now();
  if (status == HT_OK) status = ht_solver_prepare(solver);
  double middle = seconds_now();
  if (status == HT_OK) status = ht_solver_solve(solver, p->columns, p->b, p->x, &one->report);
  double end = seconds_now();
  ht_solver_destroy(solver);
  if (status == HT_OK) one->report.error_known = problem_error(p);
  one->setup[round] = middle - begin;
  one->solve[round] = end - middle;
  one->total[round] = end - begin;
  one->ratio[round] = c->contenders[0].total[round] / one->total[round];
  one->ratio_solve[round] = c->contenders[0].solve[round] / one->solve[round];
  return status;
}

static ht_status run(ht_context *ctx, const contest *c) {
  for (int round = 0; round < c->rounds; round++)
    for (int i = 0; i < c->count; i++) {
      ht_status status = solve_once(ctx, c, &c->contenders[i], round);
      if (status != HT_OK) return status;
    }
  return HT_OK;
}

static void show_table(const contest *c) {
  const cli_problem *p = c->problem;
  printf("%s: %s, %s; medians of %s\n", p->path, text_number_of(p->n, "row").text,
         text_number_of(ht_matrix_nonzeros(p->matrix), "nonzero").text, text_number_of(c->rounds, "interleaved round").text);
  if (p->columns > 1) printf("iterations and times of %s together\n", text_number_of(p->columns, "right-hand side").text);
  putchar('\n');
  printf("%-12s %10s %10s %10s %10s  %-24s %10s  %s\n", "policy", "iterations", "set-up", "solve", "total", "speed-up [least, most]",
         "true res.", "outcome");
  for (int i = 0; i < c->count; i++) {
    contender *one = &c->contenders[i];
    char ratio[48];
    double middle = median(one->ratio, c->rounds);
    snprintf(ratio, sizeof ratio, "%.2f [%.2f, %.2f]", middle, one->ratio[0], one->ratio[c->rounds - 1]);
    printf("%-12s %10s %10s %10s %10s  %-24s %10s  %s\n", one->report.policy, text_count(one->report.iterations).text,
           text_seconds(median(one->setup, c->rounds)).text, text_seconds(median(one->solve, c->rounds)).text,
           text_seconds(median(one->total, c->rounds)).text, ratio, text_residual(one->report.residual_true).text,
           ht_outcome_name(one->report.outcome));
  }
}

static void write_samples(cli_json *json, const char *key, double *samples, int count) {
  json_open(json, key, '{');
  json_real(json, "median", median(samples, count));
  json_real(json, "least", samples[0]);
  json_real(json, "most", samples[count - 1]);
  json_close(json, '}');
}

static void write_json(const contest *c) {
  cli_json json;
  json_begin(&json, stdout);
  json_text(&json, "matrix", c->problem->path);
  json_integer(&json, "rounds", c->rounds);
  json_open(&json, "policies", '[');
  for (int i = 0; i < c->count; i++) {
    contender *one = &c->contenders[i];
    json_open(&json, NULL, '{');
    write_samples(&json, "setup_s", one->setup, c->rounds);
    write_samples(&json, "solve_s", one->solve, c->rounds);
    write_samples(&json, "total_s", one->total, c->rounds);
    write_samples(&json, "speedup", one->ratio, c->rounds);
    write_samples(&json, "speedup_solve", one->ratio_solve, c->rounds);
    solve_write_report(&json, &one->report);
    json_close(&json, '}');
  }
  json_close(&json, ']');
  solve_write_options(&json, c->options);
  json_finish(&json);
}

/* "fixed:f64,auto" into contenders: how many, or -1 after the sentence. */
static int split_policies(const char *list, contender *contenders) {
  int count = 0;
  for (const char *at = list;; at++) {
    size_t n = strcspn(at, ",");
    if (!n || n >= sizeof contenders->policy) return cli_bad("--policy takes names with commas between them, and was given '%s'", list), -1;
    if (count == MOST_POLICIES) return cli_bad("--policy takes at most %d names", MOST_POLICIES), -1;
    memcpy(contenders[count].policy, at, n);
    contenders[count++].policy[n] = 0;
    at += n;
    if (!*at) return count;
  }
}

static int run_contest(ht_context *ctx, const cli_args *args, contest *c) {
  double *samples = calloc((size_t)c->count * (size_t)c->rounds * SAMPLES, sizeof *samples);
  if (!samples) return cli_bad("memory is exhausted");
  for (int i = 0; i < c->count; i++) {
    double *at = samples + (size_t)i * (size_t)c->rounds * SAMPLES;
    contender *one = &c->contenders[i];
    one->setup = at, one->solve = at + c->rounds, one->total = at + 2 * c->rounds, one->ratio = at + 3 * c->rounds;
    one->ratio_solve = at + 4 * c->rounds;
  }
  ht_status status = run(ctx, c);
  int result = CLI_SOLVED;
  if (status != HT_OK)
    result = cli_failed(ctx, status);
  else if (args_value(args, "--json"))
    write_json(c);
  else
    show_table(c);
  for (int i = 0; i < c->count && result == CLI_SOLVED; i++)
    if (c->contenders[i].report.outcome != HT_CONVERGED) result = CLI_NOT_SOLVED;
  free(samples);
  return result;
}

int bench_command(ht_context *ctx, const cli_args *args) {
  contender contenders[MOST_POLICIES];
  const char *names[MOST_POLICIES];
  cli_problem problem = {0};
  contest c = {.problem = &problem, .contenders = contenders, .rounds = 7};
  const char *policies = args_value(args, "--policy");
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  if (args->word_count < 1) return cli_bad("bench needs a matrix file; the form is: halftone bench %s", args->command->synopsis);
  if (args_whole_number(args, "--repeat", 1, MOST_REPEATS, &c.rounds)) return CLI_BAD;
  c.count = split_policies(policies ? policies : "fixed:f64,auto", contenders);
  if (c.count < 0) return CLI_BAD;
  for (int i = 0; i < c.count; i++) names[i] = contenders[i].policy;
  int result = args_solver_options(ctx, args, c.count, names, &c.options);
  if (!result && args_option_is_on(c.options, "trace"))
    result = cli_bad("bench keeps no trace: leave --trace out, or record one solve with `halftone solve`");
  if (!result) result = problem_read(ctx, args->words[0], args_value(args, "-b"), NULL, &problem);
  if (!result) result = run_contest(ctx, args, &c);
  problem_release(&problem);
  ht_options_destroy(c.options);
  return result;
}
