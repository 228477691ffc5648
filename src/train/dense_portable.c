/* The dense product for every processor. SPDX-License-Identifier: BSD-3-Clause */
#define HT_DENSE_NAME ht_dense_multiply_portable
#include "train/dense.tmpl.h"
