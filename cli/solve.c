/* halftone solve. SPDX-License-Identifier: BSD-3-Clause */
#include "solve.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "json.h"
#include "output.h"
#include "progress.h"
#include "show.h"
#include "signals.h"
#include "trace.h"

static int check_arguments(ht_context *ctx, const cli_args *args, const ht_options *options) {
  if (args->word_count < 1) return cli_bad("solve needs a matrix file; the form is: halftone solve %s", args->command->synopsis);
  static const char *const outputs[] = {"-o", "--history", "--report"};
  int to_standard = args_value(args, "--json") != NULL;
  for (int i = 0; i < 3; i++) {
    const char *path = args_value(args, outputs[i]);
    if (output_check(ctx, path)) return CLI_BAD;
    to_standard += path && !strcmp(path, "-");
  }
  if (to_standard > 1) return cli_bad("only one of -o, --history, --report and --json can go to standard output");
  int written = args_value(args, "--report") || args_value(args, "--json");
  if (args_option_is_on(options, "trace") && !written) return args_in_vain("--trace", "--report R.json or --json");
  if (output_check_ending(args_value(args, "-o"), VECTOR_ENDINGS)) return CLI_BAD;
  /* -x0 is not among the inputs: a solve may go on from its own solution */
  const cli_file output[] = {
      {"-o", args_value(args, "-o")}, {"--history", args_value(args, "--history")}, {"--report", args_value(args, "--report")}};
  const cli_file input[] = {{"the matrix", args->words[0]}, {"-b", args_value(args, "-b")}, {"--config", args_value(args, "--config")}};
  if (output_check_apart(3, output, 3, input)) return CLI_BAD;
  return output_check_apart(2, output + 1, 1, &(cli_file){"-x0", args_value(args, "-x0")});
}

static ht_status run_solver(const cli_problem *problem, ht_solver *solver, ht_report *report, int quiet, double rtol) {
  cli_progress progress;
  ht_status status = ht_solver_set_matrix(solver, problem->matrix);
  if (status == HT_OK) status = ht_solver_prepare(solver);
  if (status != HT_OK) return status;
  progress_begin(&progress, quiet ? NULL : solver, rtol);
  signals_ask(1);
  status = ht_solver_solve(solver, problem->columns, problem->b, problem->x, report);
  signals_ask(0);
  progress_end(&progress);
  return status;
}

/* Nothing when no iteration ran: there is no history then. */
static int64_t find_history(const ht_solver *solver, const ht_report *report, const double **residual) {
  return report->iterations > 0 ? ht_solver_history(solver, residual) : 0;
}

static int write_history(ht_context *ctx, const char *path, const ht_solver *solver, const ht_report *report) {
  cli_output output;
  const double *residual = NULL;
  int64_t count = find_history(solver, report, &residual);
  if (!path) return 0;
  if (output_open(&output, path)) return CLI_BAD;
  fputs("iteration,residual_recursive\n", output.file);
  for (int64_t i = 0; i < count; i++) fprintf(output.file, "%lld,%.17g\n", (long long)i, residual[i]);
  return output_close(ctx, &output);
}

void solve_write_options(cli_json *json, const ht_options *options) {
  char text[300];
  json_open(json, "options", '{');
  for (int i = 0; i < ht_option_count(); i++) {
    const ht_option_info *info = ht_option_at(i);
    if (ht_options_get(options, info->name, text, sizeof text) != HT_OK) continue;
    if (info->type == HT_OPTION_REAL || info->type == HT_OPTION_INTEGER)
      json_number(json, info->name, text);
    else if (info->type == HT_OPTION_FLAG)
      json_flag(json, info->name, !strcmp(text, "yes"));
    else
      json_text(json, info->name, text);
  }
  json_close(json, '}');
}

void solve_write_report(cli_json *json, const ht_report *report) {
  char object[24576]; /* the longest report: each text at its full length, escaped */
  ht_report_json(report, object, sizeof object);
  json_members(json, object);
}

/* With several right-hand sides the report speaks of all together; here each has its own. */
static void write_columns(cli_json *json, const ht_solver *solver, int columns) {
  json_open(json, "per_column", '[');
  for (int k = 0; k < columns; k++) {
    json_open(json, NULL, '{');
    solve_write_report(json, ht_solver_column_report(solver, k));
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void write_json(FILE *file, const cli_problem *problem, const ht_options *options, const ht_solver *solver,
                       const ht_report *report) {
  cli_json json;
  json_begin(&json, file);
  json_text(&json, "matrix", problem->path);
  json_text(&json, "right_side", problem->origin);
  solve_write_report(&json, report);
  solve_write_options(&json, options);
  if (problem->columns > 1) write_columns(&json, solver, problem->columns);
  trace_write(&json, solver);
  json_finish(&json);
}

static int write_report(ht_context *ctx, const char *path, const cli_problem *problem, const ht_options *options, const ht_solver *solver,
                        const ht_report *report) {
  cli_output output;
  if (!path) return 0;
  if (output_open(&output, path)) return CLI_BAD;
  write_json(output.file, problem, options, solver, report);
  return output_close(ctx, &output);
}

static int is_finite(const cli_problem *p) {
  for (int64_t i = 0; i < p->n * p->columns; i++)
    if (!isfinite(p->x[i])) return 0;
  return 1;
}

/* Is there an iterate worth a file? A system refused before the first iteration has none. */
static int has_iterate(const cli_problem *p, const ht_report *report) {
  return (report->outcome == HT_CONVERGED || report->iterations > 0) && is_finite(p);
}

/* Files first, the screen last: a reader that closes the pipe early loses no file.
 */
static int write_results(ht_context *ctx, const cli_args *args, const cli_problem *problem, const ht_options *options,
                         const ht_solver *solver, const ht_report *report) {
  int json = args_value(args, "--json") != NULL;
  const char *x = args_value(args, "-o"), *history_path = args_value(args, "--history"), *report_path = args_value(args, "--report");
  ht_context_clear_stop(ctx); /* what an interrupted solve leaves is still written */
  if (x && has_iterate(problem, report)) {
    ht_status status = ht_vector_write(ctx, x, problem->n, problem->columns, problem->x);
    if (status != HT_OK) return cli_failed(ctx, status);
  } else if (x && report->iterations > 0)
    cli_bad("%s was not written: the solution has entries that are not finite", x);
  if (write_history(ctx, history_path, solver, report) || write_report(ctx, report_path, problem, options, solver, report)) return CLI_BAD;
  int screen = !json && !args_value(args, "--quiet") && !(x && !strcmp(x, "-")) && !(history_path && !strcmp(history_path, "-")) &&
               !(report_path && !strcmp(report_path, "-"));
  if (json) write_json(stdout, problem, options, solver, report);
  if (screen) {
    const double *history = NULL;
    int64_t count = find_history(solver, report, &history);
    show_solve(stdout, problem, report, history, count);
  }
  if (output_flush_standard()) return CLI_BAD;
  if (report->outcome == HT_CONVERGED) return CLI_SOLVED;
  if (!screen) { /* the verdict is on the screen, or here */
    char verdict[600];
    show_verdict(verdict, sizeof verdict, report);
    cli_bad("%s", verdict);
  }
  return CLI_NOT_SOLVED;
}

static int solve_problem(ht_context *ctx, const cli_args *args, const ht_options *options, cli_problem *problem) {
  ht_solver *solver = NULL;
  ht_report report;
  int quiet = args_value(args, "--quiet") != NULL, result;
  ht_report_clear(&report);
  ht_status status = ht_solver_create(ctx, options, &solver);
  if (status == HT_OK) status = run_solver(problem, solver, &report, quiet, args_option_number(options, "rtol"));
  if (status == HT_OK) {
    report.time_read_s = problem->time_read_s;
    if (has_iterate(problem, &report)) report.error_known = problem_error(problem);
    result = write_results(ctx, args, problem, options, solver, &report);
  } else
    result = cli_failed(ctx, status);
  ht_solver_destroy(solver);
  return result;
}

int solve_command(ht_context *ctx, const cli_args *args) {
  ht_options *options = NULL;
  cli_problem problem = {0};
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  int result = args_solver_options(ctx, args, 0, NULL, &options);
  if (!result) result = check_arguments(ctx, args, options);
  if (!result) result = problem_read(ctx, args->words[0], args_value(args, "-b"), args_value(args, "-x0"), &problem);
  if (!result) result = solve_problem(ctx, args, options, &problem);
  problem_release(&problem);
  ht_options_destroy(options);
  return result;
}
