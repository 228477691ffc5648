/* The CUDA driver, loaded when it is first asked for. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_DRIVER_H
#define HT_BACKEND_CUDA_DRIVER_H
#include <cuda.h>
#include <cudaTypedefs.h>
#include "base/context.h"

enum { HT_CUDA_LEAST_DRIVER = 12000 }; /* 1000 * major + 10 * minor: the first with libraries of kernels */

/* One pointer an entry point, with the type that cuda.h's own tables give to this version of it. */
typedef struct ht_cuda_driver {
  int version; /* of the installed driver */
#define HT_ENTRY(name, since) PFN_##name##_v##since name;
#include "backend/cuda/driver.def"
#undef HT_ENTRY
} ht_cuda_driver;

/* The driver, initialised; loaded once a process. HT_UNSUPPORTED with a sentence when there is none, it is too old, or it does not
 * start. */
ht_status ht_cuda_driver_find(ht_context *ctx, const ht_cuda_driver **driver);

#endif
