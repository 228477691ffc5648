/* Sums of counts by all threads. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_SUM_H
#define HT_BASE_SUM_H
#include <stdint.h>

/* Turn counts into offsets: start[k + 1] holds count k, and becomes the sum of the counts 0 to k; start[0] becomes 0. */
void ht_sum_counts(int64_t *start, int64_t count, int threads);

#endif
