/* The dense product for one instruction set; HT_DENSE_NAME is the function. SPDX-License-Identifier: BSD-3-Clause */
#include "train/dense.h"

typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));

/* 4 x 16 sums in registers: enough of them side by side to hide the latency of an addition. */
static inline void block(int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row, float *c, int64_t c_row) {
  lanes sum[HT_DENSE_ROWS][2];
  for (int i = 0; i < HT_DENSE_ROWS; i++)
    for (int h = 0; h < 2; h++) sum[i][h] = *(const lanes *)(c + i * c_row + 8 * h);
  for (int64_t j = 0; j < k; j++) {
    lanes b0 = *(const lanes *)(b + j * b_row), b1 = *(const lanes *)(b + j * b_row + 8);
    for (int i = 0; i < HT_DENSE_ROWS; i++) {
      float factor = a[i * a_row + j * a_step];
      sum[i][0] += b0 * factor;
      sum[i][1] += b1 * factor;
    }
  }
  for (int i = 0; i < HT_DENSE_ROWS; i++)
    for (int h = 0; h < 2; h++) *(lanes *)(c + i * c_row + 8 * h) = sum[i][h];
}

void HT_DENSE_NAME(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row, float *c,
                   int64_t c_row) {
  for (int64_t j = 0; j < n; j += HT_DENSE_COLUMNS)
    for (int64_t i = 0; i < m; i += HT_DENSE_ROWS) block(k, a + i * a_row, a_row, a_step, b + j, b_row, c + i * c_row + j, c_row);
}
