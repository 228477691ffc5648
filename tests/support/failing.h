/* An allocator that counts what is alive and can refuse the n-th request. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_FAILING_H
#define HT_TEST_FAILING_H
#include <stdlib.h>
#include "halftone/context.h"

typedef struct {
  long alive;    /* blocks not yet released */
  long requests; /* so far */
  long fail_at;  /* this request is refused; negative: none */
} failing_allocator;

static inline void *failing_allocate(void *user, size_t bytes) {
  failing_allocator *a = user;
  if (a->requests++ == a->fail_at) return NULL;
  a->alive++;
  return malloc(bytes);
}

static inline void failing_release(void *user, void *memory) {
  ((failing_allocator *)user)->alive--;
  free(memory);
}

/* A context on it; the counter must outlive the context. */
static inline ht_status failing_context(failing_allocator *a, ht_context **ctx) {
  ht_allocator functions = {failing_allocate, failing_release, a};
  *a = (failing_allocator){.fail_at = -1};
  return ht_context_create_with(&functions, ctx);
}

#endif
