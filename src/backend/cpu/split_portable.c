/* Products of the split storage for any processor. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/simd_portable.h"
#include "backend/cpu/split.tmpl.h"

const ht_cpu_split_kernels ht_cpu_split_portable = HT_CPU_SPLIT_TABLE;
