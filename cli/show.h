/* The one screen after a solve. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_SHOW_H
#define HALFTONE_CLI_SHOW_H
#include <stdio.h>
#include "problem.h"

void show_solve(FILE *file, const cli_problem *problem, const ht_report *report, const double *history, int64_t history_count);
/* The verdict in one plain sentence, without a full stop. */
void show_verdict(char *text, size_t size, const ht_report *report);
/* Residuals over the iterations on a log scale; nothing when there is too little to see. The note stands beside it. */
void plot_convergence(FILE *file, const double *history, int64_t count, double tolerance, const char *note);

#endif
