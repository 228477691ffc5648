/* Small dense products for the networks' training. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_DENSE_H
#define HT_TRAIN_DENSE_H
#include <stdint.h>

enum { HT_DENSE_ROWS = 4, HT_DENSE_COLUMNS = 16 }; /* what m and n below are multiples of */

static inline int64_t ht_dense_padded(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

/* C += A B, with A(i, k) = a[i * a_row + k * a_step], B and C row by row. Each sum runs over ascending k, multiplied and added apart:
 * the bits are the same on every instruction set. */
typedef void ht_dense_fn(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row,
                         float *c, int64_t c_row);
ht_dense_fn ht_dense_multiply;
ht_dense_fn ht_dense_multiply_portable, ht_dense_multiply_avx2;

#endif
