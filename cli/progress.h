/* One line on a terminal that follows the solve. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_PROGRESS_H
#define HALFTONE_CLI_PROGRESS_H
#include "cli.h"

typedef struct cli_progress {
  double first, goal; /* log10 of the first residual seen, and of the tolerance */
  double shown_s;     /* when the line was last written */
  int begun;
} cli_progress;

/* Follow `solver` (or nothing: NULL) when standard error is a terminal. */
void progress_begin(cli_progress *progress, ht_solver *solver, double tolerance);
void progress_end(cli_progress *progress); /* wipe the line */

#endif
