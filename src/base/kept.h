/* What a context keeps of patterns that it has met: the few things used last, within a bound of memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_KEPT_H
#define HT_BASE_KEPT_H
#include "base/context.h"
#include "base/fingerprint.h"

typedef enum ht_kept_kind { HT_KEPT_ORDER, HT_KEPT_ARRANGEMENT, HT_KEPT_NODES } ht_kept_kind;

enum { HT_KEPT_CHOICES = 5 };

typedef struct ht_kept_key {
  ht_fingerprint pattern;
  ht_kept_kind kind;
  int64_t choice[HT_KEPT_CHOICES]; /* whatever else it depends on */
} ht_kept_key;

/* NULL: it is not there. It stays until something is added or all is forgotten. */
void *ht_kept_find(ht_context *ctx, const ht_kept_key *key);
/* `thing`, of so many bytes, is the context's from now on, which gives it back by `release`; where there is no room for it, at once:
 * nothing depends on that it is kept. */
void ht_kept_add(ht_context *ctx, const ht_kept_key *key, int64_t bytes, void *thing, void (*release)(ht_context *ctx, void *thing));
void ht_kept_forget(ht_context *ctx); /* all of them */

#endif
