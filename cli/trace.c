/* The trace of a solve as JSON. SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"
#include <math.h>
#include <string.h>

enum { HISTORY_MOST = 10000 };

static void write_number(FILE *file, const char *format, double value) {
  if (isfinite(value))
    fprintf(file, format, value);
  else
    fputs("null", file);
}

static int64_t next_kept(int64_t i, int64_t every, int64_t count) {
  if (i + every < count) return i + every;
  return i < count - 1 ? count - 1 : count;
}

/* Every k-th entry of the history and the last one, as pairs. */
static void write_history(cli_json *json, const ht_solver *solver) {
  const double *residual;
  int64_t count = ht_solver_history(solver, &residual), every = count / HISTORY_MOST + 1;
  json_integer(json, "history_every", every);
  json_key(json, "history");
  fputc('[', json->file);
  for (int64_t i = 0; i < count; i = next_kept(i, every, count)) {
    fprintf(json->file, "%s[%lld,", i ? "," : "", (long long)i);
    write_number(json->file, "%.9g", residual[i]);
    fputc(']', json->file);
  }
  fputc(']', json->file);
}

/* Neighbouring groups with the same numbers are one entry: [groups, blocks at 16 bits, at 32, at 64]. */
static void write_groups(FILE *file, const int32_t *blocks, int64_t groups) {
  for (int64_t g = 0, next; g < groups; g = next) {
    const int32_t *here = blocks + 3 * g;
    for (next = g + 1; next < groups && !memcmp(here, blocks + 3 * next, 3 * sizeof *here);) next++;
    fprintf(file, "%s[%lld,%d,%d,%d]", g ? "," : "", (long long)(next - g), here[0], here[1], here[2]);
  }
}

static void write_levels(cli_json *json, const ht_solve_trace *trace) {
  json_integer(json, "levels_seen", trace->changes_seen);
  json_open(json, "levels", '[');
  for (int64_t k = 0; k < trace->changes; k++) {
    const ht_trace_change *c = &trace->change[k];
    json_key(json, NULL);
    fprintf(json->file, "{\"iteration\": %lld, \"why\": \"%s\", \"groups\": [", (long long)c->iteration, ht_trace_why_name(c->why));
    write_groups(json->file, c->blocks, trace->groups);
    fputs("]}", json->file);
  }
  json_close(json, ']');
}

static void write_residuals(cli_json *json, const ht_solve_trace *trace) {
  json_integer(json, "true_residuals_seen", trace->residuals_seen);
  json_open(json, "true_residuals", '[');
  for (int64_t k = 0; k < trace->residuals; k++) {
    const ht_trace_residual *r = &trace->residual[k];
    json_key(json, NULL);
    fprintf(json->file, "{\"iteration\": %lld, \"residual\": ", (long long)r->iteration);
    write_number(json->file, "%.17g", r->residual_true);
    fprintf(json->file, ", \"why\": \"%s\"}", ht_trace_why_name(r->why));
  }
  json_close(json, ']');
}

static void write_times(cli_json *json, const ht_solve_trace *trace) {
  json_integer(json, "times_seen", trace->times_seen);
  json_key(json, "times");
  fputc('[', json->file);
  for (int64_t k = 0; k < trace->times; k++)
    fprintf(json->file, "%s[%lld,%.9g]", k ? "," : "", (long long)trace->time[k].iteration, trace->time[k].elapsed_s);
  fputc(']', json->file);
}

void trace_write(cli_json *json, const ht_solver *solver) {
  const ht_solve_trace *trace = ht_solver_trace(solver);
  if (!trace) return;
  json_open(json, "trace", '{');
  json_integer(json, "blocks", trace->blocks);
  json_integer(json, "groups", trace->groups);
  json_integer(json, "blocks_per_group", trace->blocks_per_group);
  json_flag(json, "levels_known_at_run_ends_only", trace->at_run_ends);
  write_levels(json, trace);
  write_residuals(json, trace);
  write_times(json, trace);
  write_history(json, solver);
  json_close(json, '}');
}
