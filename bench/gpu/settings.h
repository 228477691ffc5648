/* What bench_gpu_cg was asked for. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_SETTINGS_H
#define BENCH_GPU_SETTINGS_H
#include "problem.h"

enum { MOST_POLICIES = 12, MOST_OPTIONS = 16, MOST_PAIRS = 101, MOST_PROGRAMS = 8 };

typedef struct settings {
  const char *suite, *classes, *only, *rhs, *precond, *engine, *backend, *vectors, *out, *commit;
  const char *policies[MOST_POLICIES];
  const char *options[MOST_OPTIONS]; /* NAME=VALUE, for all of ours */
  struct {
    const char *name, *command;
  } programs[MOST_PROGRAMS]; /* peers that are programs of their own */
  int policy_count, option_count, program_count, pairs, peers;
  long long max_iterations;
  double seconds, total_seconds;
} settings;

extern const char SETTINGS_HELP[];
/* The matrices that are asked for go to `list`. -1: it was said what is wrong. */
int settings_parse(int argc, char **argv, settings *set, problem_list *list);
#endif
