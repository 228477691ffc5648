/* Which instruction set the CPU kernels use. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/isa.h"
#include <stdatomic.h>
#include <string.h>

static const char *const names[HT_CPU_ISAS] = {"portable", "avx2", "avx512"};

static int available(ht_cpu_isa isa) {
#if defined(__x86_64__)
  /* clang cannot ask for F16C; every processor with AVX2 has it. */
  if (isa == HT_CPU_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == HT_CPU_AVX512)
    return available(HT_CPU_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return isa == HT_CPU_PORTABLE;
}

static ht_cpu_isa best(void) { return available(HT_CPU_AVX512) ? HT_CPU_AVX512 : available(HT_CPU_AVX2) ? HT_CPU_AVX2 : HT_CPU_PORTABLE; }

static atomic_int in_use = -1; /* not yet chosen */

ht_cpu_isa ht_cpu_isa_in_use(void) {
  int isa = atomic_load_explicit(&in_use, memory_order_relaxed);
  if (isa < 0) {
    isa = best();
    atomic_store_explicit(&in_use, isa, memory_order_relaxed);
  }
  return (ht_cpu_isa)isa;
}

const char *ht_cpu_isa_name(void) { return names[ht_cpu_isa_in_use()]; }

ht_status ht_cpu_set_isa(ht_context *ctx, const char *name) {
  int isa = 0;
  if (!strcmp(name, "auto")) {
    isa = best();
  } else {
    while (isa < HT_CPU_ISAS && strcmp(name, names[isa])) isa++;
    HT_CHECK(ctx, isa < HT_CPU_ISAS, HT_BAD_OPTION, "the instruction sets are auto, avx512, avx2, portable, and '%s' was asked for", name);
    HT_CHECK(ctx, available((ht_cpu_isa)isa), HT_UNSUPPORTED, "this processor has no %s; use isa = auto", name);
  }
  atomic_store_explicit(&in_use, isa, memory_order_relaxed);
  return HT_OK;
}
