/* Products of the split storage: choice of the kernel, and the loop over the tiles. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/split.h"
#include "backend/cpu/isa.h"

static const ht_cpu_split_kernels *kernels(void) {
#if defined(__x86_64__)
  static const ht_cpu_split_kernels *const of[HT_CPU_ISAS] = {&ht_cpu_split_portable, &ht_cpu_split_avx2, &ht_cpu_split_avx512};
  return of[ht_cpu_isa_in_use()];
#else
  return &ht_cpu_split_portable;
#endif
}

ht_cpu_tile_fn ht_cpu_split_kernel(const ht_split_view *a, const ht_tile *t, ht_level level) {
  return kernels()->multiply[t->encoding][ht_tile_level(t, level)][a->block - 1];
}

/* A thread takes the tiles of a row block together, since they add to the same rows. */
void ht_cpu_split_multiply(ht_context *ctx, const ht_split_view *a, const uint8_t *tile_level, const double *x, double *y) {
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (a->groups * a->block * a->block > 4000)
  for (int64_t first = 0; first < a->tiles; first++) {
    if (a->tile[first].accumulate) continue;
    for (int64_t t = first; t < a->tiles && (t == first || a->tile[t].accumulate); t++)
      ht_cpu_split_kernel(a, &a->tile[t], (ht_level)tile_level[t])(a, &a->tile[t], x, y);
  }
}
