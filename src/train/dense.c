/* Which of the dense products runs. SPDX-License-Identifier: BSD-3-Clause */
#include "train/dense.h"

void ht_dense_multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row,
                       float *c, int64_t c_row) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    ht_dense_multiply_avx2(m, n, k, a, a_row, a_step, b, b_row, c, c_row);
    return;
  }
#endif
  ht_dense_multiply_portable(m, n, k, a, a_row, a_step, b, b_row, c, c_row);
}
