/* What the benchmark programs share: the context, the clock, and problems from one line of text. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BENCH_PROGRAM_H
#define HT_BENCH_PROGRAM_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "halftone/halftone.h"
#include "support/generated.h"

static ht_context *ctx;

static clockid_t the_clock = CLOCK_MONOTONIC;

static inline double now(void) {
  struct timespec t;
  clock_gettime(the_clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void require(ht_status status) {
  if (status == HT_OK) return;
  fprintf(stderr, "%s\n", ht_context_error(ctx));
  exit(3);
}

static inline int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the times. */
static inline double median(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, ascending);
  return times[count / 2];
}

/* KIND PARAMETER=VALUE ... */
static inline ht_matrix *generate(const char *recipe) {
  ht_matrix *matrix;
  require(generate_line(ctx, recipe, &matrix));
  return matrix;
}

#endif
