/* Host memory on its way to the device: through two pinned buffers that stay with the device. A copy from pageable memory is the driver's
 * own staging by one thread, at a tenth of the bus's speed. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/cuda/cuda.h"

enum {
  SMALL = 64 << 10, /* bytes that the driver takes in at once */
  LEAST = 256 << 10,
  PIECE = 128 << 10, /* that a thread copies */
  PARALLEL_FROM = 1 << 20
};

static ht_status wait_for(ht_cuda *cuda, CUevent event) {
  if (!event) return HT_OK;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuEventSynchronize(event);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "waiting for a copy");
}

static ht_status grow(ht_cuda *cuda, int64_t bytes) {
  int64_t half = LEAST;
  while (half < bytes) half *= 2;
  for (int k = 0; k < 2; k++) HT_TRY(cuda->ctx, wait_for(cuda, cuda->staging.passed[k])); /* nothing reads the old ones */
  ht_cuda_release_host(cuda, cuda->staging.memory);
  cuda->staging.memory = NULL;
  cuda->staging.half = 0;
  HT_TRY(cuda->ctx, ht_cuda_allocate_host(cuda, 2 * half, &cuda->staging.memory));
  cuda->staging.half = half;
  return HT_OK;
}

ht_status ht_cuda_stage(ht_cuda *cuda, int64_t bytes, void *memory) {
  char **to = memory;
  *to = NULL;
  HT_CHECK(cuda->ctx, cuda->status == HT_OK, cuda->status, "%s", cuda->error);
  if (bytes > cuda->staging.half) HT_TRY(cuda->ctx, grow(cuda, bytes));
  cuda->staging.turn ^= 1;
  HT_TRY(cuda->ctx, wait_for(cuda, cuda->staging.passed[cuda->staging.turn]));
  *to = cuda->staging.memory + cuda->staging.turn * cuda->staging.half;
  return HT_OK;
}

ht_status ht_cuda_staged(ht_cuda *cuda, CUstream stream) { return ht_cuda_mark(cuda, stream, &cuda->staging.passed[cuda->staging.turn]); }

void ht_cuda_copy_on_host(const ht_cuda *cuda, int64_t bytes, const void *from, void *to) {
  int threads = cuda->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (bytes > PARALLEL_FROM)
  for (int64_t at = 0; at < bytes; at += PIECE)
    memcpy((char *)to + at, (const char *)from + at, (size_t)(bytes - at < PIECE ? bytes - at : PIECE));
}

ht_status ht_cuda_send(ht_cuda *cuda, int64_t bytes, const void *from, void *to) {
  if (bytes <= SMALL) return ht_cuda_copy_async(cuda, bytes, from, to);
  for (int64_t at = 0; at < bytes; at += HT_STAGING_BYTES) {
    int64_t part = bytes - at < HT_STAGING_BYTES ? bytes - at : HT_STAGING_BYTES;
    void *staged;
    HT_TRY(cuda->ctx, ht_cuda_stage(cuda, part, &staged));
    if (staged) ht_cuda_copy_on_host(cuda, part, (const char *)from + at, staged); /* an error came before otherwise */
    HT_TRY(cuda->ctx, ht_cuda_copy_async(cuda, part, staged, (char *)to + at));
    HT_TRY(cuda->ctx, ht_cuda_staged(cuda, cuda->stream));
  }
  return HT_OK;
}

void ht_cuda_release_staging(ht_cuda *cuda) {
  ht_cuda_release_host(cuda, cuda->staging.memory);
  for (int k = 0; k < 2; k++)
    if (cuda->staging.passed[k]) cuda->driver->cuEventDestroy(cuda->staging.passed[k]);
}
