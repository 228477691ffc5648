/* The device's memory, pinned host memory, and copies between all kinds. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"
#include <stdio.h>

/* Addresses of the device as the table's pointers, and back. */
static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

/* What the driver counts for it; the device's context is current. */
static int64_t size_of(ht_cuda *cuda, CUdeviceptr block) {
  CUdeviceptr base;
  size_t bytes;
  return cuda->driver->cuMemGetAddressRange(&base, &bytes, block) == CUDA_SUCCESS ? (int64_t)bytes : 0;
}

/* ---- spare blocks ----
 * Asking the driver for a block and giving it back takes 0.1 to 1 ms each, and a matrix needs a dozen. The last few that were given back,
 * 64 MiB at most, wait for the next matrix of the same size. All work is on one stream: who gets a block comes after who gave it back. */

static const int64_t SPARE_MOST = 64 << 20,
                     SPARE_LARGEST = 32 << 20; /* a larger one drives out what is worth more: its time is in its bytes */

static void release_spare(ht_cuda *cuda, int k) {
  if (!cuda->spare[k].bytes) return;
  cuda->driver->cuMemFree(cuda->spare[k].block); /* waits for what uses it */
  cuda->bytes_spare -= cuda->spare[k].bytes;
  cuda->spare[k].bytes = 0;
}

void ht_cuda_release_spares(ht_cuda *cuda) {
  int entered = ht_cuda_enter(cuda);
  for (int k = 0; k < HT_CUDA_SPARES; k++) release_spare(cuda, k);
  ht_cuda_leave(cuda, entered);
}

/* The smallest that fits and wastes no more than an eighth; 0: there is none. */
static CUdeviceptr take_spare(ht_cuda *cuda, int64_t bytes) {
  int best = -1;
  for (int k = 0; k < HT_CUDA_SPARES; k++) {
    int64_t size = cuda->spare[k].bytes;
    if (size && size >= bytes && size - size / 8 <= bytes && (best < 0 || size < cuda->spare[best].bytes)) best = k;
  }
  if (best < 0) return 0;
  cuda->bytes_spare -= cuda->spare[best].bytes;
  cuda->spare[best].bytes = 0;
  return cuda->spare[best].block;
}

/* In the place of those that were given back longest ago, until it fits. */
static void keep_spare(ht_cuda *cuda, CUdeviceptr block, int64_t bytes) {
  do {
    release_spare(cuda, cuda->next_spare);
    cuda->next_spare = (cuda->next_spare + 1) % HT_CUDA_SPARES;
  } while (cuda->bytes_spare + bytes > SPARE_MOST);
  int k = (cuda->next_spare + HT_CUDA_SPARES - 1) % HT_CUDA_SPARES;
  cuda->spare[k].block = block;
  cuda->spare[k].bytes = bytes;
  cuda->bytes_spare += bytes;
}

static CUresult find_block(ht_cuda *cuda, int64_t bytes, CUdeviceptr *block) {
  *block = take_spare(cuda, bytes);
  if (*block) return CUDA_SUCCESS;
  CUresult result = cuda->driver->cuMemAlloc(block, bytes ? (size_t)bytes : 1);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !cuda->bytes_spare) return result;
  ht_cuda_release_spares(cuda);
  return cuda->driver->cuMemAlloc(block, bytes ? (size_t)bytes : 1);
}

/* ---- blocks ---- */

ht_status ht_cuda_allocate(ht_cuda *cuda, int64_t bytes, void *memory) {
  void **to = memory;
  CUdeviceptr block = 0;
  size_t unused = 0, total = 0;
  *to = NULL;
  HT_CHECK(cuda->ctx, bytes >= 0, HT_NO_MEMORY, "more memory of the GPU is asked for than 64-bit sizes can count");
  HT_CHECK(cuda->ctx, cuda->status == HT_OK, cuda->status, "%s", cuda->error);
  int entered = ht_cuda_enter(cuda);
  CUresult result = find_block(cuda, bytes, &block);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) cuda->driver->cuMemGetInfo(&unused, &total);
  if (result == CUDA_SUCCESS) cuda->bytes_now += size_of(cuda, block);
  if (cuda->bytes_now + cuda->bytes_spare > cuda->bytes_most) cuda->bytes_most = cuda->bytes_now + cuda->bytes_spare;
  ht_cuda_leave(cuda, entered);
  HT_CHECK(cuda->ctx, result != CUDA_ERROR_OUT_OF_MEMORY, HT_NO_MEMORY,
           "GPU %d (%s) has no %lld bytes of memory: %lld of %lld are free; use a smaller problem or the cpu backend", cuda->ordinal,
           cuda->name, (long long)bytes, (long long)unused, (long long)total);
  HT_TRY(cuda->ctx, ht_cuda_check(cuda, result, "allocating memory"));
  *to = (void *)(uintptr_t)block;
  ht_status status = ht_cuda_fill(cuda, bytes, 0, *to);
  if (status != HT_OK) {
    ht_cuda_release(cuda, *to);
    *to = NULL;
  }
  return status;
}

void ht_cuda_release(ht_cuda *cuda, void *memory) {
  if (!memory) return;
  int entered = ht_cuda_enter(cuda);
  int64_t bytes = size_of(cuda, address(memory));
  cuda->bytes_now -= bytes;
  if (cuda->status == HT_OK && bytes > 0 && bytes <= SPARE_LARGEST)
    keep_spare(cuda, address(memory), bytes);
  else
    cuda->driver->cuMemFree(address(memory)); /* a lost device has nothing left to free */
  ht_cuda_leave(cuda, entered);
}

ht_status ht_cuda_allocate_parts(ht_cuda *cuda, int count, const ht_cuda_part *parts) {
  static const int64_t ALIGNMENT = 256;
  int64_t all = 0, at = 0;
  char *block;
  for (int k = 0; k < count; k++) {
    void **to = parts[k].to;
    *to = NULL;
    if (all >= 0)
      all =
          parts[k].bytes < 0 || parts[k].bytes > INT64_MAX / 2 - all ? -1 : all + (parts[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  HT_TRY(cuda->ctx, ht_cuda_allocate(cuda, all, &block));
  for (int k = 0; k < count; at += (parts[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, k++) {
    void **to = parts[k].to;
    if (parts[k].bytes > 0 || k == 0) *to = block + at;
  }
  return HT_OK;
}

ht_status ht_cuda_allocate_host(ht_cuda *cuda, int64_t bytes, void *memory) {
  void **to = memory;
  *to = NULL;
  HT_CHECK(cuda->ctx, bytes >= 0, HT_NO_MEMORY, "more pinned memory is asked for than 64-bit sizes can count");
  HT_CHECK(cuda->ctx, cuda->status == HT_OK, cuda->status, "%s", cuda->error);
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuMemHostAlloc(to, bytes ? (size_t)bytes : 1, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
  ht_cuda_leave(cuda, entered);
  if (result != CUDA_SUCCESS) *to = NULL;
  HT_CHECK(cuda->ctx, result != CUDA_ERROR_OUT_OF_MEMORY, HT_NO_MEMORY,
           "there are no %lld bytes of host memory that the GPU can reach; use a smaller problem or the cpu backend", (long long)bytes);
  return ht_cuda_check(cuda, result, "allocating pinned memory");
}

void ht_cuda_release_host(ht_cuda *cuda, void *memory) {
  if (!memory) return;
  int entered = ht_cuda_enter(cuda);
  cuda->driver->cuMemFreeHost(memory);
  ht_cuda_leave(cuda, entered);
}

ht_status ht_cuda_copy_on(ht_cuda *cuda, CUstream stream, int64_t bytes, const void *from, void *to) {
  if (cuda->status != HT_OK || bytes <= 0) return cuda->status;
  char what[64];
  int entered = ht_cuda_enter(cuda);
  /* one address space: the driver sees by the addresses what lies where */
  CUresult result = cuda->driver->cuMemcpyAsync(address(to), address(from), (size_t)bytes, stream);
  ht_cuda_leave(cuda, entered);
  snprintf(what, sizeof what, "copying %lld bytes", (long long)bytes);
  return ht_cuda_check(cuda, result, what);
}

ht_status ht_cuda_copy_async(ht_cuda *cuda, int64_t bytes, const void *from, void *to) {
  return ht_cuda_copy_on(cuda, cuda->stream, bytes, from, to);
}

ht_status ht_cuda_copy(ht_cuda *cuda, int64_t bytes, const void *from, void *to) {
  HT_TRY(cuda->ctx, ht_cuda_copy_async(cuda, bytes, from, to));
  return ht_cuda_synchronize(cuda);
}

ht_status ht_cuda_fill(ht_cuda *cuda, int64_t bytes, int byte, void *memory) {
  if (cuda->status != HT_OK || bytes <= 0) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuMemsetD8Async(address(memory), (unsigned char)byte, (size_t)bytes, cuda->stream);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "filling memory");
}

/* ---- the table's functions ---- */

ht_status ht_cuda_memory_create(ht_context *ctx, int64_t bytes, void *memory) {
  HT_TRY(ctx, ht_cuda_allocate(ht_cuda_of(ctx), bytes, memory));
  return HT_OK;
}

void ht_cuda_memory_release(ht_context *ctx, void *memory) {
  if (memory) ht_cuda_release(ht_cuda_of(ctx), memory);
}

ht_status ht_cuda_upload(ht_context *ctx, int64_t bytes, const void *from, void *to) {
  HT_TRY(ctx, ht_cuda_copy(ht_cuda_of(ctx), bytes, from, to));
  return HT_OK;
}

ht_status ht_cuda_download(ht_context *ctx, int64_t bytes, const void *from, void *to) {
  HT_TRY(ctx, ht_cuda_copy(ht_cuda_of(ctx), bytes, from, to));
  return HT_OK;
}

/* Pinned host memory could be read in place too, but over the bus at every product: it is copied like any other host memory. */
int ht_cuda_reaches(ht_context *ctx, const void *memory) {
  ht_cuda *cuda = ht_cuda_of(ctx);
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *found[] = {&type, &managed, &ordinal};
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuPointerGetAttributes(3, wanted, found, address(memory)); /* zeros for what the driver never saw */
  ht_cuda_leave(cuda, entered);
  return result == CUDA_SUCCESS && (managed || (type == CU_MEMORYTYPE_DEVICE && ordinal == (int)cuda->device));
}

int64_t ht_cuda_memory_most(ht_context *ctx) { return ht_cuda_of(ctx)->bytes_most; }
