/* Taking a device, telling what there is, and giving it back with the context. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/words.h"

enum { LEAST_CAPABILITY = 80, HOST_SCALARS = 64 };

/* Of the device taken last: the table's function has no context. */
static _Atomic int64_t l2_in_use;

int64_t ht_cuda_cache_bytes(void) { return l2_in_use; }

static int attribute(const ht_cuda_driver *driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return driver->cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static int capability(const ht_cuda_driver *driver, CUdevice device) {
  return 10 * attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

/* ---- which one ---- */

/* The caller's current context, if it has one, and that context's device. */
static CUcontext current_context(const ht_cuda_driver *driver, CUdevice *device) {
  CUcontext context = NULL;
  if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context) return NULL;
  return driver->cuCtxGetDevice(device) == CUDA_SUCCESS ? context : NULL;
}

/* `wanted` is "" (the current context's device, else the first) or a number of at most four digits. */
static ht_status choose(ht_context *ctx, const ht_cuda_driver *driver, const char *wanted, int *ordinal) {
  size_t digits = strspn(wanted, "0123456789");
  int count = 0;
  CUdevice device;
  *ordinal = 0;
  if (driver->cuDeviceGetCount(&count) != CUDA_SUCCESS || !count)
    HT_FAIL(ctx, HT_UNSUPPORTED, "the NVIDIA driver sees no GPU (is CUDA_VISIBLE_DEVICES empty?); use the cpu backend");
  if (!digits && current_context(driver, &device))
    for (int i = 0; i < count; i++) {
      CUdevice other;
      if (driver->cuDeviceGet(&other, i) == CUDA_SUCCESS && other == device) *ordinal = i;
    }
  for (size_t i = 0; i < digits; i++) *ordinal = 10 * *ordinal + (wanted[i] - '0');
  HT_CHECK(ctx, *ordinal < count, HT_UNSUPPORTED, "there is no GPU number %d: the driver sees %d, numbered from 0", *ordinal, count);
  return HT_OK;
}

static ht_status read_facts(ht_cuda *cuda) {
  const ht_cuda_driver *driver = cuda->driver;
  HT_TRY(cuda->ctx, ht_cuda_check(cuda, driver->cuDeviceGet(&cuda->device, cuda->ordinal), "finding the GPU"));
  HT_TRY(cuda->ctx, ht_cuda_check(cuda, driver->cuDeviceGetName(cuda->name, sizeof cuda->name, cuda->device), "naming the GPU"));
  cuda->sms = attribute(driver, cuda->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  cuda->l2_bytes = attribute(driver, cuda->device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  cuda->shared_block_bytes = attribute(driver, cuda->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  cuda->capability = capability(driver, cuda->device);
  HT_CHECK(cuda->ctx, cuda->capability >= LEAST_CAPABILITY, HT_UNSUPPORTED,
           "GPU %d (%s) has compute capability %d.%d, and %d.%d is the least that works; use the cpu backend", cuda->ordinal, cuda->name,
           cuda->capability / 10, cuda->capability % 10, LEAST_CAPABILITY / 10, LEAST_CAPABILITY % 10);
  return HT_OK;
}

/* The caller's context where it is on this device, so that its memory and ours are one; else the primary one, as the CUDA runtime. */
static ht_status take_context(ht_cuda *cuda) {
  CUdevice device;
  CUcontext current = current_context(cuda->driver, &device);
  if (current && device == cuda->device) {
    cuda->context = current;
    return HT_OK;
  }
  CUresult result = cuda->driver->cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
  HT_CHECK(cuda->ctx, result != CUDA_ERROR_DEVICE_UNAVAILABLE && result != CUDA_ERROR_DEVICE_NOT_LICENSED, HT_UNSUPPORTED,
           "GPU %d (%s) is used by another process that does not share it (compute mode exclusive or prohibited); use the cpu backend",
           cuda->ordinal, cuda->name);
  HT_CHECK(cuda->ctx, result != CUDA_ERROR_OUT_OF_MEMORY, HT_UNSUPPORTED,
           "GPU %d (%s) has not enough free memory to start on; free some, or use the cpu backend", cuda->ordinal, cuda->name);
  HT_TRY(cuda->ctx, ht_cuda_check(cuda, result, "starting on the GPU"));
  cuda->primary = 1;
  return HT_OK;
}

/* ---- open ---- */

static void release_device(void *device) {
  ht_cuda *cuda = device;
  const ht_cuda_driver *driver = cuda->driver;
  if (cuda->context) { /* results do not matter here: a lost device has nothing left to free */
    int entered = ht_cuda_enter(cuda);
    if (cuda->stream) driver->cuStreamSynchronize(cuda->stream);
    ht_cuda_release(cuda, cuda->sums);
    ht_cuda_release_spares(cuda);
    ht_cuda_release_host(cuda, cuda->host);
    ht_cuda_release_host(cuda, cuda->told);
    ht_cuda_release_staging(cuda);
    for (int i = 0; i < HT_KERNELS; i++)
      if (cuda->library[i]) driver->cuLibraryUnload(cuda->library[i]);
    if (cuda->copies) driver->cuStreamDestroy(cuda->copies);
    if (cuda->own) driver->cuStreamDestroy(cuda->own);
    ht_cuda_leave(cuda, entered);
    if (cuda->primary) driver->cuDevicePrimaryCtxRelease(cuda->device);
  }
  ht_release(cuda->ctx, cuda);
}

static ht_status start(ht_cuda *cuda) {
  HT_TRY(cuda->ctx, read_facts(cuda));
  HT_TRY(cuda->ctx, take_context(cuda));
  int entered = ht_cuda_enter(cuda);
  /* a stream that waits for the default one: what the caller put into its arrays there is seen */
  CUresult result = cuda->driver->cuStreamCreate(&cuda->own, CU_STREAM_DEFAULT);
  cuda->stream = cuda->own;
  ht_cuda_leave(cuda, entered);
  HT_CHECK(cuda->ctx, result != CUDA_ERROR_OUT_OF_MEMORY, HT_UNSUPPORTED,
           "GPU %d (%s) has not enough free memory to start on; free some, or use the cpu backend", cuda->ordinal, cuda->name);
  HT_TRY(cuda->ctx, ht_cuda_check(cuda, result, "creating a stream"));
  HT_TRY(cuda->ctx, ht_cuda_allocate(cuda, (HT_REDUCTIONS_MOST * HT_CUDA_SUMS + 1) * (int64_t)sizeof(double), &cuda->sums));
  HT_TRY(cuda->ctx, ht_cuda_allocate_host(cuda, HOST_SCALARS * (int64_t)sizeof(double), &cuda->host));
  return HT_OK;
}

ht_status ht_cuda_open(ht_context *ctx, const char *device) {
  const ht_cuda_driver *driver;
  ht_cuda *cuda = ht_cuda_of(ctx);
  int ordinal;
  HT_TRY(ctx, ht_cuda_driver_find(ctx, &driver));
  if (cuda && !*device) return ht_cuda_failed(ctx);
  HT_TRY(ctx, choose(ctx, driver, device, &ordinal));
  if (cuda) {
    HT_CHECK(ctx, cuda->ordinal == ordinal, HT_UNSUPPORTED, "this context works on GPU %d already: GPU %d needs a context of its own",
             cuda->ordinal, ordinal);
    return ht_cuda_failed(ctx);
  }
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *cuda, &cuda));
  *cuda = (ht_cuda){.ctx = ctx, .driver = driver, .ordinal = ordinal};
  if (start(cuda) != HT_OK) { /* whatever the reason: this device cannot be used now */
    release_device(cuda);
    return ctx->status = HT_UNSUPPORTED;
  }
  ctx->device = cuda;
  ctx->device_release = release_device;
  l2_in_use = cuda->l2_bytes;
  ht_log(ctx, HT_LOG_DEBUG, "cuda: GPU %d, %s, in %s", ordinal, cuda->name, cuda->primary ? "its primary context" : "the caller's context");
  return HT_OK;
}

ht_status ht_cuda_failed(ht_context *ctx) {
  ht_cuda *cuda = ht_cuda_of(ctx);
  HT_CHECK(ctx, cuda->status == HT_OK, cuda->status, "%s", cuda->error);
  return HT_OK;
}

/* ---- the caller's stream ---- */

/* A stream's context, and that context's device. */
static ht_status find_stream(ht_context *ctx, const ht_cuda_driver *driver, CUstream stream, CUcontext *context, CUdevice *device) {
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  HT_CHECK(
      ctx, stream != CU_STREAM_LEGACY, HT_BAD_ARGUMENT,
      "the legacy default stream needs not be given: with NULL, work goes to a stream of its own, and that and the default stream wait "
      "for each other");
  CUresult result = driver->cuStreamGetCtx(stream, context);
  if (result == CUDA_SUCCESS) result = driver->cuCtxPushCurrent(*context);
  if (result == CUDA_SUCCESS) {
    CUcontext popped;
    result = driver->cuCtxGetDevice(device);
    if (result == CUDA_SUCCESS) result = driver->cuStreamIsCapturing(stream, &capturing);
    driver->cuCtxPopCurrent(&popped);
  }
  HT_CHECK(ctx, result == CUDA_SUCCESS, HT_BAD_ARGUMENT, "the driver does not know the stream (error %d); give one that is alive, or NULL",
           (int)result);
  HT_CHECK(ctx, capturing == CU_STREAM_CAPTURE_STATUS_NONE, HT_BAD_ARGUMENT,
           "the stream is being captured into a graph, and a solve, which waits for results, cannot be; end the capture first");
  return HT_OK;
}

/* A context that has no device yet takes the stream's. */
static ht_status open_for_stream(ht_context *ctx, const ht_cuda_driver *driver, CUcontext context) {
  CUcontext popped;
  HT_CHECK(ctx, driver->cuCtxPushCurrent(context) == CUDA_SUCCESS, HT_UNSUPPORTED, "the stream's CUDA context cannot be used any more");
  ht_status status = ht_cuda_open(ctx, "");
  driver->cuCtxPopCurrent(&popped);
  return status;
}

ht_status ht_cuda_set_stream(ht_context *ctx, void *given) {
  const ht_cuda_driver *driver;
  CUstream stream = given;
  CUcontext context = NULL;
  CUdevice device = 0;
  HT_TRY(ctx, ht_cuda_driver_find(ctx, &driver));
  if (stream) HT_TRY(ctx, find_stream(ctx, driver, stream, &context, &device));
  if (!ctx->device) HT_TRY(ctx, open_for_stream(ctx, driver, context));
  ht_cuda *cuda = ht_cuda_of(ctx);
  HT_CHECK(ctx, !stream || device == cuda->device, HT_BAD_ARGUMENT,
           "the stream belongs to another GPU than number %d (%s), on which this context works; give one of that, or use another context",
           cuda->ordinal, cuda->name);
  HT_CHECK(ctx, !stream || context == cuda->context, HT_BAD_ARGUMENT,
           "the stream belongs to another CUDA context of GPU %d (%s) than the one this context works in; give the stream before anything "
           "else uses the GPU",
           cuda->ordinal, cuda->name);
  HT_TRY(ctx, ht_cuda_synchronize(cuda)); /* what was begun on the old one comes first */
  cuda->stream = stream ? stream : cuda->own;
  return HT_OK;
}

/* ---- what there is ---- */

/* As NVIDIA numbers it: the first word of the kernel module's text that is digits and dots; "" where that cannot be read. */
static void read_release(char *release, size_t size) {
  char text[256] = "", *rest = NULL;
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  *release = 0;
  if (!file) return;
  if (!fgets(text, sizeof text, file)) *text = 0;
  fclose(file);
  for (char *word = strtok_r(text, " \t\n", &rest); word && !*release; word = strtok_r(NULL, " \t\n", &rest))
    if (strchr(word, '.') && !word[strspn(word, "0123456789.")]) snprintf(release, size, "%s ", word);
}

void ht_cuda_about(ht_context *ctx, char *text, size_t size) {
  const ht_cuda_driver *driver;
  char release[64];
  int count = 0;
  if (ht_cuda_driver_find(ctx, &driver) != HT_OK) {
    ht_print_words(text, size, "compiled in for " HT_CUDA_TARGETS "; %s", ctx->error);
    ht_context_clear_error(ctx);
    return;
  }
  if (driver->cuDeviceGetCount(&count) != CUDA_SUCCESS) count = 0;
  read_release(release, sizeof release);
  snprintf(text, size, "compiled in for " HT_CUDA_TARGETS "; driver %sfor CUDA %d.%d; %s", release, driver->version / 1000,
           driver->version % 1000 / 10, ht_number_of(count, "GPU").text);
  for (int i = 0; i < count; i++) {
    size_t bytes = 0;
    char name[128] = "";
    CUdevice device;
    if (driver->cuDeviceGet(&device, i) != CUDA_SUCCESS || driver->cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS ||
        driver->cuDeviceTotalMem(&bytes, device) != CUDA_SUCCESS)
      continue;
    int level = capability(driver, device);
    ht_add_words(text, size, "; %d: %s, %.1f GiB, %d multiprocessors, capability %d.%d", i, name, (double)bytes / 1073741824.0,
                 attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), level / 10, level % 10);
  }
}
