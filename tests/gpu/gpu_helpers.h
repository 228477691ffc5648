/* A context on the first GPU, and arrays there. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_GPU_HELPERS_H
#define HT_TEST_GPU_HELPERS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/backend.h"

enum { GPU_SKIPPED = 77 }; /* ctest's word for it */

typedef struct gpu {
  ht_context *ctx;
  const ht_backend *cpu, *cuda;
} gpu;

static inline gpu gpu_open(void) {
  gpu g = {NULL, NULL, NULL};
  assert_int_equal(ht_context_create(&g.ctx), HT_OK);
  assert_int_equal(ht_backend_find(g.ctx, "cpu", &g.cpu), HT_OK);
  assert_int_equal(ht_backend_find(g.ctx, "cuda", &g.cuda), HT_OK);
  return g;
}

/* All that was launched must have worked. */
static inline void gpu_close(gpu *g) {
  assert_int_equal(g->cuda->failed(g->ctx), HT_OK);
  ht_context_destroy(g->ctx);
}

/* A copy of host memory; with `host` NULL, zeros. */
static inline void *gpu_copy(gpu *g, int64_t bytes, const void *host) {
  void *memory = NULL;
  assert_int_equal(g->cuda->memory_create(g->ctx, bytes, &memory), HT_OK);
  if (host) assert_int_equal(g->cuda->upload(g->ctx, bytes, host, memory), HT_OK);
  return memory;
}

static inline void gpu_fetch(gpu *g, int64_t bytes, const void *device, void *host) {
  assert_int_equal(g->cuda->download(g->ctx, bytes, device, host), HT_OK);
}

/* For main: 0 and the reason on stdout where there is no GPU that can be used. HALFTONE_TESTS=PATTERN leaves the tests with such names. */
static inline int gpu_present(void) {
  if (getenv("HALFTONE_TESTS")) cmocka_set_test_filter(getenv("HALFTONE_TESTS"));
  ht_context *ctx;
  const ht_backend *cuda;
  if (ht_context_create(&ctx) != HT_OK) return 0;
  int present = ht_backend_find(ctx, "cuda", &cuda) == HT_OK;
  if (!present) printf("skipped: %s\n", ht_context_error(ctx));
  ht_context_destroy(ctx);
  return present;
}

/* Whether tests are to leave out what takes minutes under compute-sanitizer. */
static inline int gpu_short(void) { return getenv("HALFTONE_SHORT") != NULL; }

#endif
