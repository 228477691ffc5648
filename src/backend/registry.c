/* Backends by name. SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include "backend/backend.h"

extern const ht_backend ht_backend_cpu;
#ifdef HT_WITH_CUDA
extern const ht_backend ht_backend_cuda;
static const ht_backend *const cuda = &ht_backend_cuda;
#else
static const ht_backend *const cuda = NULL;
#endif

/* What follows "cuda" in a name: "" or the device after the colon; NULL when the name is another one. */
static const char *cuda_device(const char *name) {
  if (strncmp(name, "cuda", 4) != 0 || (name[4] && name[4] != ':')) return NULL;
  return name[4] ? name + 5 : name + 4;
}

ht_status ht_backend_find(ht_context *ctx, const char *name, const ht_backend **backend) {
  *backend = NULL;
  if (!strcmp(name, "cpu")) {
    *backend = &ht_backend_cpu;
    return HT_OK;
  }
  const char *device = cuda_device(name);
  HT_CHECK(ctx, device, HT_BAD_OPTION, "there is no backend '%s'; this build has %s", name, cuda ? "cpu, cuda and cuda:N" : "cpu");
  HT_CHECK(ctx, cuda, HT_UNSUPPORTED, "the cuda backend is not compiled into this build; use --backend cpu");
  HT_CHECK(ctx, *device || !name[4], HT_BAD_OPTION, "a device is chosen by its number, as in cuda:0, and none follows the colon");
  if (cuda) HT_TRY(ctx, cuda->open(ctx, device));
  *backend = cuda;
  return HT_OK;
}

void ht_backend_about_cuda(ht_context *ctx, char *text, size_t size) {
  if (cuda)
    cuda->about(ctx, text, size);
  else
    snprintf(text, size, "not compiled in");
}
