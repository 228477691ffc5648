/* Policy files: any bytes are a policy that is written as it was read, or a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "policy/learned_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

static void require_round_trip(ht_context *ctx, const ht_learned *l) {
  void *bytes;
  int64_t size;
  ht_learned *again;
  require(ht_learned_serialize(ctx, l, &bytes, &size) == HT_OK);
  require(ht_learned_parse(ctx, bytes, size, "again", &again) == HT_OK);
  size_t weights = (size_t)ht_network_size(l->network.inputs, l->network.hidden, l->network.actions) * sizeof(float);
  require(again->interval == l->interval && !memcmp(again->network.weights, l->network.weights, weights));
  ht_learned_release(ctx, again);
  ht_release(ctx, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ht_context *ctx;
  ht_learned *l;
  require(ht_context_create(&ctx) == HT_OK);
  ht_status status = ht_learned_parse(ctx, data, (int64_t)size, "input", &l);
  require((status == HT_OK) == (l != NULL));
  require(status == HT_OK || (*ht_context_error(ctx) && !strchr(ht_context_error(ctx), '\n')));
  if (l) require_round_trip(ctx, l);
  ht_learned_release(ctx, l);
  ht_context_destroy(ctx);
  return 0;
}
