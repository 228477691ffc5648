/* Which instruction set the CPU kernels use. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_ISA_H
#define HT_BACKEND_CPU_ISA_H
#include "base/context.h"

typedef enum ht_cpu_isa { HT_CPU_PORTABLE, HT_CPU_AVX2, HT_CPU_AVX512, HT_CPU_ISAS } ht_cpu_isa;

ht_cpu_isa ht_cpu_isa_in_use(void);
const char *ht_cpu_isa_name(void);
/* Force one for the whole process; "auto" is the best this processor has. */
ht_status ht_cpu_set_isa(ht_context *ctx, const char *name);

#endif
