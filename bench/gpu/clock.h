/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_CLOCK_H
#define BENCH_GPU_CLOCK_H
#include <time.h>

static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
#endif
