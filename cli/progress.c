/* The progress line: iteration, residual, a bar from the first residual to the tolerance on a log scale, time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 32, LINE = 78 };
static const double SECONDS_BETWEEN = 0.1;

static int on_progress(void *user, const ht_progress *now) {
  cli_progress *p = user;
  char bar[BAR + 1];
  if (p->begun && now->elapsed_s - p->shown_s < SECONDS_BETWEEN) return 0;
  double residual = log10(fmax(now->residual_recursive, 1e-300));
  if (!p->begun) p->first = residual;
  p->begun = 1;
  p->shown_s = now->elapsed_s;
  double share = p->first > p->goal ? (p->first - residual) / (p->first - p->goal) : 0;
  int full = share > 0 ? (int)fmin(BAR, share * BAR) : 0; /* also for NaN */
  for (int i = 0; i < BAR; i++) bar[i] = i < full ? '#' : '.';
  bar[BAR] = 0;
  fprintf(stderr, "\r%10lld iterations  %9.2e  [%s] %8.1f s", (long long)now->iteration, now->residual_recursive, bar, now->elapsed_s);
  fflush(stderr);
  return 0;
}

void progress_begin(cli_progress *progress, ht_solver *solver, double tolerance) {
  *progress = (cli_progress){.goal = log10(fmax(tolerance, 1e-300))};
  if (solver && isatty(STDERR_FILENO)) ht_solver_set_progress(solver, on_progress, progress);
}

void progress_end(cli_progress *progress) {
  if (progress->begun) fprintf(stderr, "\r%*s\r", LINE, "");
}
