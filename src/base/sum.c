/* Sums of counts by all threads. SPDX-License-Identifier: BSD-3-Clause */
#include "base/sum.h"

enum { TOGETHER = 4096 /* counts that one thread adds up */, PARALLEL_FROM = 20000 };

static int64_t end_of(int64_t begin, int64_t count) { return begin + TOGETHER < count ? begin + TOGETHER : count; }

void ht_sum_counts(int64_t *start, int64_t count, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count > PARALLEL_FROM)
  for (int64_t begin = 0; begin < count; begin += TOGETHER) { /* each from zero on */
    int64_t sum = 0, end = end_of(begin, count);
    for (int64_t i = begin; i < end; i++) start[i + 1] = sum += start[i + 1];
  }
  start[0] = 0;
  for (int64_t begin = TOGETHER; begin < count; begin += TOGETHER) start[end_of(begin, count)] += start[begin];
#pragma omp parallel for schedule(static) num_threads(threads) if (count > PARALLEL_FROM)
  for (int64_t begin = TOGETHER; begin < count; begin += TOGETHER) /* what stands before; the last of each has it */
    for (int64_t i = begin + 1, end = end_of(begin, count); i < end; i++) start[i] += start[begin];
}
