/* A report read back, for drawing. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_RUN_H
#define HALFTONE_CLI_RUN_H
#include <jansson.h>
#include "cli.h"

/* Levels in the order of the counts. */
enum { RUN_16, RUN_32, RUN_64, RUN_LEVELS };

typedef struct cli_run {
  const char *path;
  char label[256]; /* matrix and policy */
  json_t *root;    /* owns the texts */
  const char *matrix;
  ht_report report;
  /* Of the trace: nothing of it is there, and all counts are 0, where the solve made none. */
  int has_trace, levels_at_run_ends;
  int64_t blocks, groups;
  int64_t changes; /* of levels */
  double *change_at;
  double *count;     /* changes x groups x RUN_LEVELS */
  int64_t residuals; /* true ones */
  double *residual_at, *residual;
  const char **residual_why;
  int64_t times;
  double *time_at, *time;
  int64_t history; /* recursive residuals */
  double *history_at, *history_residual;
} cli_run;

/* 0, or CLI_BAD after the sentence. Release in both cases. */
int run_read(cli_run *run, const char *path);
void run_release(cli_run *run);
double run_last_iteration(const cli_run *run); /* at least 1: the extent of an axis */
/* When the solve reached an iteration, from the times around it; NaN where none is known. */
double run_time_at(const cli_run *run, double iteration);
/* The change of levels that holds at an iteration; -1: none. */
int64_t run_change_at(const cli_run *run, double iteration);

#endif
