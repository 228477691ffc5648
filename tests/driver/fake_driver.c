/* A libcuda.so.1 without a GPU: it answers as HT_FAKE_CUDA says, "device" memory is the host's, and kernels do nothing. Two devices.
 * It shows what becomes of a driver's refusals on machines that have no driver. SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEVICES = 2, DEPTH = 8 };
static const size_t most_bytes = (size_t)1 << 34;

static uintptr_t handles[2 * DEVICES]; /* addresses that stand for contexts: of each device the primary one, then the caller's */
static CUcontext stack[DEPTH];
static struct {
  CUcontext context;
  int work; /* calls that came to it */
} streams[] = {
    {NULL, 0}, {(CUcontext)&handles[0], 0}, {(CUcontext)&handles[1], 0}, {(CUcontext)&handles[DEVICES], 0}, {(CUcontext)&handles[0], 0}};
enum { CAPTURING = 4, STREAMS = sizeof streams / sizeof *streams };
static int depth, lost;

/* What must be given back: read by the test. */
int fake_cuda_alive, fake_cuda_retained;
int fake_cuda_depth(void) { return depth; }
/* Called for each launch, in the kernel's place. */
void (*fake_cuda_launched)(const char *kernel, void **args);
/* Stream 0 is what cuStreamCreate gives; the others are the caller's: on device 0, on device 1, in another context of device 0, and one
 * that is being captured. */
void *fake_cuda_stream(int number) { return &streams[number]; }
int fake_cuda_work(int number) { return streams[number].work; }

static int mode(const char *name) {
  const char *wanted = getenv("HT_FAKE_CUDA");
  return wanted && !strcmp(wanted, name);
}

/* For timings of the host's part: device memory is an address range that reads as zero, and what goes there costs nothing. */
static int timed(void) { return mode("timed"); }

static CUresult result(void) { return lost ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS; }
static CUcontext primary(CUdevice device) { return (CUcontext)&handles[device]; }

/* ---- finding functions ---- */

static CUresult unused(void) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found) {
  (void)version;
  (void)flags;
  char name[128];
  CUresult (*nothing)(void) = unused;
  if (mode("lacking") && !strcmp(symbol, "cuLaunchKernelEx")) return CUDA_ERROR_NOT_FOUND;
  snprintf(name, sizeof name, "%s_v2", symbol);
  void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(self, name);
  if (!*function) *function = dlsym(self, symbol);
  if (!*function) memcpy(function, &nothing, sizeof nothing);
  if (found) *found = CU_GET_PROC_ADDRESS_SUCCESS;
  dlclose(self);
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  *version = mode("old") ? 11080 : 12040;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) {
  (void)flags;
  if (mode("caller")) stack[depth++] = (CUcontext)&handles[DEVICES + 1];
  return mode("none") ? CUDA_ERROR_NO_DEVICE : mode("mismatch") ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  (void)error;
  *text = "FAKE_ERROR";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_LAUNCH_FAILED ? "the device fell over" : "a made-up reason";
  return CUDA_SUCCESS;
}

/* ---- devices and contexts ---- */

CUresult cuDeviceGetCount(int *count) {
  *count = DEVICES;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  snprintf(name, (size_t)length, "Fake %d", device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? (mode("weak") ? 7 : 9) : 4;
  if (!mode("h200") && !timed()) return CUDA_SUCCESS;
  if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 132;
  if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) *value = 50 << 20;
  if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) *value = 227 << 10;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  (void)device;
  *bytes = most_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  if (mode("exclusive")) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (mode("full")) return CUDA_ERROR_OUT_OF_MEMORY;
  *context = primary(device);
  fake_cuda_retained++;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  (void)device;
  fake_cuda_retained--;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = depth ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  *device = (CUdevice)((uintptr_t *)stack[depth - 1] - handles) % DEVICES;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  if (depth == DEPTH) return CUDA_ERROR_INVALID_VALUE;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[--depth];
  return CUDA_SUCCESS;
}

/* ---- memory: every call needs a current context ---- */

static void *host(CUdeviceptr address) { return (void *)(uintptr_t)address; }

static struct { /* of `timed` */
  char *begin;
  size_t used;
} range;

static int in_range(const void *memory) {
  return range.begin && (const char *)memory >= range.begin && (const char *)memory < range.begin + range.used;
}

static CUresult reserve(size_t bytes, void **memory) {
  static const size_t all = (size_t)1 << 42;
  if (!range.begin) range.begin = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range.begin == MAP_FAILED || range.used + bytes > all) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = range.begin + range.used;
  range.used += (bytes + 255) / 256 * 256;
  fake_cuda_alive++;
  return CUDA_SUCCESS;
}

static CUresult allocate(size_t bytes, void **memory) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes > most_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = malloc(bytes);
  if (!*memory) return CUDA_ERROR_OUT_OF_MEMORY;
  fake_cuda_alive++;
  return CUDA_SUCCESS;
}

static CUresult give_back(void *memory) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  if (!in_range(memory)) free(memory);
  fake_cuda_alive--;
  return CUDA_SUCCESS;
}

typedef struct block {
  CUdeviceptr address;
  size_t bytes;
} block;

/* What was allocated; of address 0, a free place. */
static block *block_at(CUdeviceptr address) {
  static block blocks[1024];
  size_t k = 0;
  while (k < sizeof blocks / sizeof *blocks && blocks[k].address != address) k++;
  if (k == sizeof blocks / sizeof *blocks) abort(); /* an address that is none of ours */
  return &blocks[k];
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  void *memory = NULL;
  CUresult allocated = mode("full_later") ? CUDA_ERROR_OUT_OF_MEMORY : timed() ? reserve(bytes, &memory) : allocate(bytes, &memory);
  *address = (CUdeviceptr)(uintptr_t)memory;
  if (allocated == CUDA_SUCCESS) *block_at(0) = (block){*address, bytes};
  return allocated;
}

CUresult cuMemGetAddressRange(CUdeviceptr *begin, size_t *bytes, CUdeviceptr address) {
  block *found = block_at(address);
  *begin = found->address;
  *bytes = found->bytes;
  return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemFree(CUdeviceptr address) {
  *block_at(address) = (block){0, 0};
  return give_back(host(address));
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  return mode("unpinned") ? CUDA_ERROR_OUT_OF_MEMORY : allocate(bytes, memory);
}

CUresult cuMemFreeHost(void *memory) { return give_back(memory); }

CUresult cuMemGetInfo(size_t *unused_bytes, size_t *total) {
  *unused_bytes = 12345;
  *total = most_bytes;
  return CUDA_SUCCESS;
}

/* Counted; 0: there is no such stream. */
static int goes_to(CUstream stream) {
  for (int k = 0; k < STREAMS; k++)
    if ((void *)stream == &streams[k]) return ++streams[k].work;
  return 0;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!depth || !goes_to(stream)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!lost && !in_range(host(to))) memmove(host(to), host(from), bytes);
  return result();
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
  if (!depth || !goes_to(stream)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!in_range(host(to))) memset(host(to), byte, bytes);
  return result();
}

/* ---- streams and kernels ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  *stream = fake_cuda_stream(0);
  fake_cuda_alive++;
  return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamDestroy(CUstream stream) {
  fake_cuda_alive -= stream != NULL;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  for (int k = 1; k < STREAMS; k++)
    if ((void *)stream == &streams[k]) return *context = streams[k].context, CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  *status = (void *)stream == &streams[CAPTURING] ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  (void)flags;
  if (!depth || !event || !goes_to(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return result();
}

CUresult cuStreamSynchronize(CUstream stream) {
  (void)stream;
  return result();
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values, unsigned count,
                           CUlibraryOption *library_options, void **library_values, unsigned library_count) {
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  if (mode("foreign")) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba}; /* of a fatbin */
  if (memcmp(code, magic, sizeof magic) != 0) return CUDA_ERROR_INVALID_IMAGE;
  *library = (CUlibrary)handles;
  fake_cuda_alive++;
  return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library) {
  fake_cuda_alive -= library != NULL;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  (void)library;
  *kernel = (CUkernel)(uintptr_t)name; /* which stays where it is */
  return strncmp(name, "ht_", 3) ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = (CUfunction)kernel;
  return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args, void **extra) {
  (void)extra;
  if (!depth || !goes_to(config->hStream)) return CUDA_ERROR_INVALID_HANDLE;
  if (mode("lost")) lost = 1;
  if (fake_cuda_launched) fake_cuda_launched((const char *)function, args);
  return mode("refused") ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared_bytes) {
  (void)function, (void)threads, (void)shared_bytes;
  *blocks = 1;
  return CUDA_SUCCESS;
}

/* ---- events and graphs: handles alone ---- */

static CUresult make_handle(void *handle) {
  memcpy(handle, &(void *){handles}, sizeof(void *));
  fake_cuda_alive++;
  return CUDA_SUCCESS;
}

static CUresult drop_handle(void *handle) {
  fake_cuda_alive -= handle != NULL;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  (void)flags;
  return make_handle(event);
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return event && goes_to(stream) ? result() : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuEventSynchronize(CUevent event) { return event ? result() : CUDA_ERROR_INVALID_HANDLE; }
CUresult cuEventDestroy(CUevent event) { return drop_handle(event); }

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode capture_mode) {
  (void)stream, (void)capture_mode;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  (void)stream;
  return make_handle(graph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  (void)graph, (void)flags;
  return make_handle(exec);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) { return drop_handle(exec); }
CUresult cuGraphDestroy(CUgraph graph) { return drop_handle(graph); }
