/* Loading the driver: each entry point by name and version, so that a newer driver keeps the meaning this was compiled for.
 * SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "backend/cuda/driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { REASON = 512 };

static ht_cuda_driver loaded;
static char reason[REASON]; /* why there is none; "" when there is one */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dlsym's object pointer as a function pointer: ISO C has no cast for it. */
static int find_plainly(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int find_entries(PFN_cuGetProcAddress_v12000 get) {
  const struct {
    const char *name;
    int since;
    void *to;
  } entries[] = {
#define HT_ENTRY(name, since) {#name, since, &loaded.name},
#include "backend/cuda/driver.def"
#undef HT_ENTRY
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    void *symbol = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = get(entries[i].name, &symbol, entries[i].since, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (result != CUDA_SUCCESS || !symbol) {
      snprintf(reason, REASON, "the NVIDIA driver (CUDA %d.%d) lacks %s; install a newer one, or use the cpu backend",
               loaded.version / 1000, loaded.version % 1000 / 10, entries[i].name);
      return 0;
    }
    memcpy(entries[i].to, &symbol, sizeof symbol);
  }
  return 1;
}

static void explain_start(CUresult result) {
  const char *text = NULL;
  if (loaded.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "error without a text";
  if (result == CUDA_ERROR_NO_DEVICE)
    snprintf(reason, REASON, "the NVIDIA driver sees no GPU (is CUDA_VISIBLE_DEVICES empty?); use the cpu backend");
  else
    snprintf(reason, REASON, "the NVIDIA driver (CUDA %d.%d) does not start: error %d, %s; use the cpu backend", loaded.version / 1000,
             loaded.version % 1000 / 10, (int)result, text);
}

static void load(void) {
  PFN_cuDriverGetVersion_v2020 get_version = NULL;
  PFN_cuGetProcAddress_v12000 get = NULL;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* kept: the driver cannot be unloaded */
  if (!library) {
    snprintf(reason, REASON, "no NVIDIA driver is installed (libcuda.so.1 does not load); use the cpu backend");
    return;
  }
  if (!find_plainly(library, "cuDriverGetVersion", &get_version) || get_version(&loaded.version) != CUDA_SUCCESS) loaded.version = 0;
  if (loaded.version < HT_CUDA_LEAST_DRIVER || !find_plainly(library, "cuGetProcAddress_v2", &get)) {
    snprintf(reason, REASON,
             "the NVIDIA driver is for CUDA %d.%d, and %d.%d is the oldest that works; install a newer one, or use the cpu backend",
             loaded.version / 1000, loaded.version % 1000 / 10, HT_CUDA_LEAST_DRIVER / 1000, HT_CUDA_LEAST_DRIVER % 1000 / 10);
    return;
  }
  if (!find_entries(get)) return;
  CUresult result = loaded.cuInit(0);
  if (result != CUDA_SUCCESS) explain_start(result);
}

ht_status ht_cuda_driver_find(ht_context *ctx, const ht_cuda_driver **driver) {
  pthread_once(&once, load);
  *driver = NULL;
  HT_CHECK(ctx, !*reason, HT_UNSUPPORTED, "%s", reason);
  *driver = &loaded;
  return HT_OK;
}
