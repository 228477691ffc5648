/* Products of the split storage for AVX-512. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/simd_avx512.h"
#include "backend/cpu/split.tmpl.h"

const ht_cpu_split_kernels ht_cpu_split_avx512 = HT_CPU_SPLIT_TABLE;
