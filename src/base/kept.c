/* Things kept by pattern. SPDX-License-Identifier: BSD-3-Clause */
#include "base/kept.h"
#include <string.h>

enum { PLACES = 24 };
static const int64_t MOST_BYTES = 512 << 20; /* of all together */

typedef struct place {
  ht_kept_key key;
  void *thing; /* NULL: free */
  void (*release)(ht_context *ctx, void *thing);
  int64_t bytes, used; /* used: when, by the count of uses */
} place;

struct ht_kept {
  place place[PLACES];
  int64_t uses;
};

static int same_key(const ht_kept_key *a, const ht_kept_key *b) {
  return a->kind == b->kind && ht_same_fingerprint(&a->pattern, &b->pattern) && !memcmp(a->choice, b->choice, sizeof a->choice);
}

static void empty(ht_context *ctx, place *p) {
  if (p->thing) p->release(ctx, p->thing);
  *p = (place){.thing = NULL};
}

void ht_kept_forget(ht_context *ctx) {
  for (int k = 0; ctx->kept && k < PLACES; k++) empty(ctx, &ctx->kept->place[k]);
  ht_release(ctx, ctx->kept);
  ctx->kept = NULL;
}

void *ht_kept_find(ht_context *ctx, const ht_kept_key *key) {
  for (int k = 0; ctx->kept && k < PLACES; k++) {
    place *p = &ctx->kept->place[k];
    if (!p->thing || !same_key(&p->key, key)) continue;
    p->used = ++ctx->kept->uses;
    return p->thing;
  }
  return NULL;
}

/* A free place, and memory for so many bytes within the bound: what was not used for longest gives way. */
static place *make_room(ht_context *ctx, int64_t bytes) {
  for (;;) {
    place *oldest = NULL, *unused = NULL;
    int64_t sum = bytes;
    for (int k = 0; k < PLACES; k++) {
      place *p = &ctx->kept->place[k];
      if (!p->thing) {
        unused = p;
        continue;
      }
      sum += p->bytes;
      if (!oldest || p->used < oldest->used) oldest = p;
    }
    if (!oldest || (unused && sum <= MOST_BYTES)) return unused;
    empty(ctx, oldest);
  }
}

void ht_kept_add(ht_context *ctx, const ht_kept_key *key, int64_t bytes, void *thing, void (*release)(ht_context *ctx, void *thing)) {
  if (bytes <= MOST_BYTES && !ctx->kept && ht_allocate_zeroed(ctx, 1, sizeof *ctx->kept, &ctx->kept) != HT_OK) ht_context_clear_error(ctx);
  if (bytes > MOST_BYTES || !ctx->kept) {
    release(ctx, thing);
    return;
  }
  *make_room(ctx, bytes) = (place){*key, thing, release, bytes, ++ctx->kept->uses};
}
