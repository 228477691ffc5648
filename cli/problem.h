/* What is to be solved: the matrix, the right-hand sides, the starting vectors, and the solution where it is known.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_PROBLEM_H
#define HALFTONE_CLI_PROBLEM_H
#include "args.h"

typedef struct cli_problem {
  ht_context *ctx;
  const char *path;
  ht_matrix *matrix;
  int64_t n;
  int columns;
  double *b, *x;      /* n x columns each */
  double *known;      /* the solution where b is A times it (one column), or NULL */
  const char *origin; /* what b is, for people */
  double time_read_s;
} cli_problem;

/* Read everything that -b and -x0 (or NULL) name. 0, or an exit status after the sentence. Release in both cases. */
int problem_read(ht_context *ctx, const char *path, const char *b, const char *x0, cli_problem *problem);
void problem_release(cli_problem *problem);
/* ||x - x*|| / ||x*||, or NaN where x* is not known. */
double problem_error(const cli_problem *problem);
double seconds_now(void);

#endif
