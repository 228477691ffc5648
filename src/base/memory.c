/* Aligned allocation through the context's allocator. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "base/context.h"

enum { ALIGNMENT = 64 };

/* `memory` is the address of some pointer, of whatever type: it is written as bytes.
 * The block's start is kept just below the aligned address, so that any allocator serves. */
ht_status ht_allocate(ht_context *ctx, int64_t count, size_t size, void *memory) {
  memcpy(memory, &(void *){NULL}, sizeof(void *));
  HT_CHECK(ctx, count >= 0, HT_NO_MEMORY, "a count overflowed: %lld entries of %zu bytes were asked for", (long long)count, size);
  HT_CHECK(ctx, size == 0 || (uint64_t)count < (UINT64_MAX >> 1) / size, HT_NO_MEMORY,
           "%lld entries of %zu bytes do not fit in the address space", (long long)count, size);
  size_t bytes = (size_t)count * size;
  char *block = ctx->allocator.allocate(ctx->allocator.user, bytes + 2 * ALIGNMENT);
  HT_CHECK(ctx, block, HT_NO_MEMORY, "memory is exhausted: %.1f MiB more were needed", (double)bytes / 1048576.0);
  char *aligned = block + ALIGNMENT + sizeof(void *) - 1;
  aligned -= (uintptr_t)aligned % ALIGNMENT;
  ((void **)(void *)aligned)[-1] = block;
  memcpy(memory, &aligned, sizeof aligned);
  return HT_OK;
}

ht_status ht_allocate_zeroed(ht_context *ctx, int64_t count, size_t size, void *memory) {
  HT_TRY(ctx, ht_allocate(ctx, count, size, memory));
  void *allocated;
  memcpy(&allocated, memory, sizeof allocated);
  memset(allocated, 0, (size_t)count * size);
  return HT_OK;
}

void ht_release(ht_context *ctx, void *memory) {
  if (memory) ctx->allocator.release(ctx->allocator.user, ((void **)memory)[-1]);
}
