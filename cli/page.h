/* The page that `halftone report` writes. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_PAGE_H
#define HALFTONE_CLI_PAGE_H
#include <stdio.h>
#include "run.h"

enum { PAGE_RUNS_MOST = 12, PAGE_MAP_COLOURS = 9 };

/* One HTML document, whole in itself. The title is UTF-8. */
void page_write(FILE *file, const char *title, int runs, const cli_run *run);

/* page_charts.c */
void page_residuals(FILE *file, int runs, const cli_run *run);
void page_precision(FILE *file, const cli_run *run); /* mix and map of one run */
void page_bars(FILE *file, int runs, const cli_run *run);
/* A coloured square and what it stands for. */
void page_key(FILE *file, const char *css, const char *text);

#endif
