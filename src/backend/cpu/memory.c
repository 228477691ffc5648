/* Memory of the CPU backend: the host's own. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/cpu/cpu.h"

ht_status ht_cpu_open(ht_context *ctx, const char *device) {
  HT_CHECK(ctx, !*device, HT_BAD_OPTION, "the cpu backend has no devices to choose from, and '%s' was asked for; use --backend cpu",
           device);
  return HT_OK;
}

ht_status ht_cpu_failed(ht_context *ctx) {
  (void)ctx;
  return HT_OK;
}

ht_status ht_cpu_memory_create(ht_context *ctx, int64_t bytes, void *memory) {
  HT_TRY(ctx, ht_allocate_zeroed(ctx, bytes, 1, memory));
  return HT_OK;
}

ht_status ht_cpu_transfer(ht_context *ctx, int64_t bytes, const void *from, void *to) {
  (void)ctx;
  memcpy(to, from, (size_t)bytes);
  return HT_OK;
}

int ht_cpu_reaches(ht_context *ctx, const void *memory) {
  (void)ctx, (void)memory;
  return 1;
}
