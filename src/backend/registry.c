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

static const ht_backend *extra;

void ht_backend_set_extra(const ht_backend *backend) { extra = backend; }

/* `length` characters of `name`, up to the colon before a device. */
static const ht_backend *named(const char *name, size_t length) {
  const ht_backend *const backends[] = {extra, &ht_backend_cpu, cuda};
  for (size_t k = 0; k < sizeof backends / sizeof *backends; k++)
    if (backends[k] && strlen(backends[k]->name) == length && !strncmp(backends[k]->name, name, length)) return backends[k];
  return NULL;
}

ht_status ht_backend_find(ht_context *ctx, const char *name, const ht_backend **backend) {
  size_t length = strcspn(name, ":");
  const ht_backend *found = named(name, length);
  int known = found || (length == 4 && !strncmp(name, "cuda", 4));
  *backend = NULL;
  HT_CHECK(ctx, known, HT_BAD_OPTION, "there is no backend '%s'; the backends are cpu, cuda and cuda:N, the N-th device from 0", name);
  const char *device = name[length] ? name + length + 1 : "0";
  size_t digits = strspn(device, "0123456789");
  HT_CHECK(ctx, digits > 0 && digits <= 4 && !device[digits], HT_BAD_OPTION,
           "a device is chosen by its number from 0, as in cuda:0, and not by '%s' as in '%s'", device, name);
  HT_CHECK(ctx, found, HT_UNSUPPORTED, "the cuda backend is not compiled into this build; use --backend cpu");
  HT_TRY(ctx, found->open(ctx, name[length] ? name + length + 1 : ""));
  *backend = found;
  return HT_OK;
}

void ht_backend_about_cuda(ht_context *ctx, char *text, size_t size) {
  if (cuda)
    cuda->about(ctx, text, size);
  else
    snprintf(text, size, "not compiled in");
}

ht_status ht_context_set_cuda_stream(ht_context *ctx, void *stream) {
  HT_NEED(NULL, ctx);
  const ht_backend *backend = named("cuda", 4);
  if (!stream && !ctx->device) return HT_OK; /* our own it is */
  HT_CHECK(ctx, backend && backend->set_stream, HT_UNSUPPORTED, "the cuda backend is not compiled into this build, which takes no stream");
  HT_TRY(ctx, backend->set_stream(ctx, stream));
  return HT_OK;
}
