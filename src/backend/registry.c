/* Backends by name. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/backend.h"

extern const ht_backend ht_backend_cpu;

ht_status ht_backend_find(ht_context *ctx, const char *name, const ht_backend **backend) {
  if (!strcmp(name, "cpu")) {
    *backend = &ht_backend_cpu;
    return HT_OK;
  }
  *backend = NULL;
  if (!strcmp(name, "cuda")) HT_FAIL(ctx, HT_UNSUPPORTED, "the cuda backend is not compiled into this build; use --backend cpu");
  HT_FAIL(ctx, HT_BAD_OPTION, "there is no backend '%s'; this build has cpu", name);
}
