/* A policy network on the device, and its decisions. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/network.h"
#include <string.h>
#include "backend/cuda/engine.h"
#include "base/convert.h"

enum { WIDTH = HT_NETWORK_WIDTH, LANES = 32, WARPS = 4, WEIGHTS = HT_NETWORK_FRAGMENTS * LANES * 4 };

/* A layer of `units` units with `inputs` weights each, into the lanes' order. */
static void arrange(const float *layer, int units, int inputs, int groups, uint16_t *to) {
  for (int g = 0; g < groups; g++)
    for (int step = 0; step < HT_NETWORK_STEPS; step++)
      for (int lane = 0; lane < LANES; lane++)
        for (int k = 0; k < 4; k++, to++) {
          int unit = g * HT_NETWORK_COLUMNS + lane / 4, input = step * HT_NETWORK_STEP + 2 * (lane % 4) + k % 2 + k / 2 * 8;
          *to = unit < units && input < inputs ? ht_store_f16(layer[unit * inputs + input]) : 0;
        }
}

static void arrange_all(const float *w, int hidden, uint16_t *weights, float *biases) {
  const int layer = HT_NETWORK_GROUPS * HT_NETWORK_STEPS * LANES * 4;
  const float *second = w + hidden * (WIDTH + 1), *head = second + hidden * (hidden + 1);
  arrange(w, hidden, WIDTH, HT_NETWORK_GROUPS, weights);
  arrange(second, hidden, hidden, HT_NETWORK_GROUPS, weights + layer);
  arrange(head, HT_NETWORK_ACTIONS, hidden, 1, weights + 2 * layer);
  memset(biases, 0, HT_NETWORK_BIASES * sizeof *biases);
  memcpy(biases, w + hidden * WIDTH, (size_t)hidden * sizeof *biases);
  memcpy(biases + WIDTH, second + hidden * hidden, (size_t)hidden * sizeof *biases);
  memcpy(biases + 2 * WIDTH, head + HT_NETWORK_ACTIONS * hidden, HT_NETWORK_ACTIONS * sizeof *biases);
}

static ht_status place(ht_engine *e, const uint16_t *weights, const float *biases) {
  ht_cuda_network *n = &e->network;
  if (!n->biases) HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, HT_NETWORK_BIASES * (int64_t)sizeof *biases, &n->biases));
  if (!n->weights) HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, WEIGHTS * (int64_t)sizeof *weights, &n->weights));
  HT_TRY(e->ctx, ht_cuda_copy(e->cuda, HT_NETWORK_BIASES * (int64_t)sizeof *biases, biases, (void *)(uintptr_t)n->biases));
  return ht_cuda_copy(e->cuda, WEIGHTS * (int64_t)sizeof *weights, weights, (void *)(uintptr_t)n->weights);
}

ht_status ht_cuda_engine_set_network(ht_engine *e, const float *weights, int inputs, int hidden, int actions, int64_t interval) {
  uint16_t *arranged;
  float biases[HT_NETWORK_BIASES];
  HT_CHECK(e->ctx, inputs == WIDTH && hidden > 0 && hidden <= WIDTH && actions == HT_NETWORK_ACTIONS, HT_UNSUPPORTED,
           "the cuda backend decides by networks of %d inputs, up to %d units a layer and %d actions, and this one has %d, %d and %d",
           WIDTH, WIDTH, HT_NETWORK_ACTIONS, inputs, hidden, actions);
  HT_CHECK(e->ctx, !e->store || e->store->plan.engine == HT_STORE_ENGINE_STREAMING, HT_UNSUPPORTED,
           "the persistent engine reads all blocks at one level and takes no network; use --engine streaming");
  HT_TRY(e->ctx, ht_allocate(e->ctx, WEIGHTS, sizeof *arranged, &arranged));
  arrange_all(weights, hidden, arranged, biases);
  if (!e->network.weights) ht_cuda_engine_forget_graphs(e);
  ht_status status = place(e, arranged, biases);
  ht_release(e->ctx, arranged);
  HT_TRY(e->ctx, status);
  e->interval = interval;
  return HT_OK;
}

ht_status ht_cuda_decide(ht_engine *e) {
  const int64_t each = WARPS * HT_NETWORK_TILES, most = 4 * (int64_t)e->cuda->sms, blocks = (e->blocks + each - 1) / each;
  const int16_t *exponent = e->store ? e->store->view.exponent : NULL;
  ht_launch launch = {.grid = (unsigned)(blocks < most ? blocks : most), .block = LANES * WARPS, .early = 1};
  return ht_cuda_launch(e->cuda, HT_KERNEL_network_decide, launch, HT_ARGS(&e->network, &e->blocks, &exponent, &e->v));
}
