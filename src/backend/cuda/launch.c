/* The gate that every launch passes, and what becomes of the driver's errors. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"
#include <stdio.h>

enum {
  FREE_SHARED = 48 << 10,           /* dynamic shared bytes that need no permission */
  EARLY_DRIVER = 12030,             /* the first that takes early launches into a graph */
  EARLY_COOPERATIVE_DRIVER = 13000, /* and cooperative ones, as far as was tried */
};

/* Fatbins, one a .cu file, that the build put into this library. */
#define HT_KERNEL(file, name) extern const unsigned char ht_cuda_image_##file[];
#include "backend/cuda/kernels.def"
#undef HT_KERNEL

static const struct {
  const char *name;
  const unsigned char *image;
} kernels[HT_KERNELS] = {
#define HT_KERNEL(file, name) {"ht_" #name, ht_cuda_image_##file},
#include "backend/cuda/kernels.def"
#undef HT_KERNEL
};

int ht_cuda_enter(ht_cuda *cuda) {
  CUcontext current = NULL;
  if (cuda->driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == cuda->context) return 0;
  return cuda->driver->cuCtxPushCurrent(cuda->context) == CUDA_SUCCESS;
}

void ht_cuda_leave(ht_cuda *cuda, int entered) {
  CUcontext ours;
  if (entered) cuda->driver->cuCtxPopCurrent(&ours);
}

ht_status ht_cuda_check(ht_cuda *cuda, CUresult result, const char *what) {
  if (cuda->status != HT_OK) return cuda->status;
  if (result == CUDA_SUCCESS) return HT_OK;
  const char *name = NULL, *text = NULL;
  if (cuda->driver->cuGetErrorName(result, &name) != CUDA_SUCCESS) name = NULL;
  if (cuda->driver->cuGetErrorString(result, &text) != CUDA_SUCCESS) text = NULL;
  snprintf(cuda->error, sizeof cuda->error, "%s failed on GPU %d (%s): %s (%s); start again, or use the cpu backend", what, cuda->ordinal,
           cuda->name, text ? text : "an error without a text", name ? name : "unknown");
  cuda->status = HT_DEVICE;
  HT_FAIL(cuda->ctx, cuda->status, "%s", cuda->error);
}

ht_status ht_cuda_synchronize(ht_cuda *cuda) {
  if (cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuStreamSynchronize(cuda->stream);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "work");
}

/* ---- order between streams ---- */

ht_status ht_cuda_mark(ht_cuda *cuda, CUstream stream, CUevent *event) {
  if (cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = *event ? CUDA_SUCCESS : cuda->driver->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) result = cuda->driver->cuEventRecord(*event, stream);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "marking a place in a stream");
}

ht_status ht_cuda_wait(ht_cuda *cuda, CUevent event, CUstream stream) {
  if (cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuStreamWaitEvent(stream, event, 0);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "having a stream wait");
}

ht_status ht_cuda_copies(ht_cuda *cuda) {
  if (cuda->copies || cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuStreamCreate(&cuda->copies, CU_STREAM_NON_BLOCKING);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, "creating a stream");
}

/* ---- kernels ---- */

/* The library of the kernel's file stands with the first kernel of that file. */
static CUresult load(ht_cuda *cuda, ht_kernel kernel) {
  int first = 0;
  CUkernel found;
  while (kernels[first].image != kernels[kernel].image) first++;
  CUresult result = CUDA_SUCCESS;
  if (!cuda->library[first])
    result = cuda->driver->cuLibraryLoadData(&cuda->library[first], kernels[first].image, NULL, NULL, 0, NULL, NULL, 0);
  if (result != CUDA_SUCCESS) {
    cuda->library[first] = NULL;
    return result;
  }
  result = cuda->driver->cuLibraryGetKernel(&found, cuda->library[first], kernels[kernel].name);
  return result == CUDA_SUCCESS ? cuda->driver->cuKernelGetFunction(&cuda->function[kernel], found) : result;
}

/* Loaded, and allowed that much dynamic shared memory. */
static CUresult make_ready(ht_cuda *cuda, ht_kernel kernel, unsigned shared_bytes) {
  CUresult result = cuda->function[kernel] ? CUDA_SUCCESS : load(cuda, kernel);
  if (result != CUDA_SUCCESS || shared_bytes <= FREE_SHARED || shared_bytes <= cuda->shared_limit[kernel]) return result;
  result = cuda->driver->cuFuncSetAttribute(cuda->function[kernel], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes);
  if (result == CUDA_SUCCESS) cuda->shared_limit[kernel] = shared_bytes;
  return result;
}

static CUresult launch_ready(ht_cuda *cuda, ht_kernel kernel, ht_launch launch, void **args) {
  int first = launch.cooperative ? EARLY_COOPERATIVE_DRIVER : EARLY_DRIVER;
  int early = launch.early && cuda->capability >= 90 && cuda->driver->version >= first;
  CUlaunchAttribute attributes[2];
  unsigned count = 0;
  if (launch.cooperative) attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
  if (early)
    attributes[count++] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1};
  CUlaunchConfig config = {.gridDimX = launch.grid,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = launch.block,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = launch.shared_bytes,
                           .hStream = cuda->stream,
                           .attrs = attributes,
                           .numAttrs = count};
  return cuda->driver->cuLaunchKernelEx(&config, cuda->function[kernel], args, NULL);
}

ht_status ht_cuda_launch(ht_cuda *cuda, ht_kernel kernel, ht_launch launch, void **args) {
  if (cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = make_ready(cuda, kernel, launch.shared_bytes);
  if (result == CUDA_SUCCESS) result = launch_ready(cuda, kernel, launch, args);
  ht_cuda_leave(cuda, entered);
  ht_log(cuda->ctx, HT_LOG_DEBUG, "cuda: %s, %u blocks of %u threads, %u bytes shared%s", kernels[kernel].name, launch.grid, launch.block,
         launch.shared_bytes, launch.cooperative ? ", cooperative" : "");
  if (result == CUDA_SUCCESS) return HT_OK;
  char what[128];
  snprintf(what, sizeof what, "launching %s (%u blocks of %u threads, %u bytes shared)", kernels[kernel].name, launch.grid, launch.block,
           launch.shared_bytes);
  return ht_cuda_check(cuda, result, what);
}

ht_status ht_cuda_resident_blocks(ht_cuda *cuda, ht_kernel kernel, unsigned block, unsigned shared_bytes, int *blocks) {
  *blocks = 0;
  if (cuda->status != HT_OK) return cuda->status;
  char what[128];
  int each = 0, entered = ht_cuda_enter(cuda);
  CUresult result = make_ready(cuda, kernel, shared_bytes);
  if (result == CUDA_SUCCESS)
    result = cuda->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, cuda->function[kernel], (int)block, shared_bytes);
  ht_cuda_leave(cuda, entered);
  *blocks = each * cuda->sms;
  snprintf(what, sizeof what, "asking how many blocks of %s fit", kernels[kernel].name);
  return ht_cuda_check(cuda, result, what);
}

/* ---- graphs ---- */

/* Captured on our own stream: the caller's is left in peace, and a graph runs on any. */
ht_status ht_cuda_capture(ht_cuda *cuda, void (*enqueue)(void *user), void *user, const char *what, CUgraphExec *graph) {
  const ht_cuda_driver *driver = cuda->driver;
  CUstream stream = cuda->stream;
  CUgraph captured = NULL;
  *graph = NULL;
  HT_TRY(cuda->ctx, ht_cuda_synchronize(cuda));
  cuda->stream = cuda->own;
  int entered = ht_cuda_enter(cuda);
  CUresult result = driver->cuStreamBeginCapture(cuda->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (result == CUDA_SUCCESS) enqueue(user);
  if (result == CUDA_SUCCESS) result = driver->cuStreamEndCapture(cuda->stream, &captured);
  if (result == CUDA_SUCCESS) result = driver->cuGraphInstantiateWithFlags(graph, captured, 0);
  if (captured) driver->cuGraphDestroy(captured);
  ht_cuda_leave(cuda, entered);
  cuda->stream = stream;
  return ht_cuda_check(cuda, result, what);
}

ht_status ht_cuda_replay(ht_cuda *cuda, CUgraphExec graph, const char *what) {
  if (cuda->status != HT_OK) return cuda->status;
  int entered = ht_cuda_enter(cuda);
  CUresult result = cuda->driver->cuGraphLaunch(graph, cuda->stream);
  ht_cuda_leave(cuda, entered);
  return ht_cuda_check(cuda, result, what);
}
