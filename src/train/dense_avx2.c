/* The dense product in AVX2. SPDX-License-Identifier: BSD-3-Clause */
#define HT_DENSE_NAME ht_dense_multiply_avx2
#include "train/dense.tmpl.h"
