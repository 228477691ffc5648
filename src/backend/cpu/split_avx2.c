/* Products of the split storage for AVX2. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/simd_avx2.h"
#include "backend/cpu/split.tmpl.h"

const ht_cpu_split_kernels ht_cpu_split_avx2 = HT_CPU_SPLIT_TABLE;
