/* The policies' network. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/network.h"
#include <string.h>
#include "base/convert.h"

/* Rows that go through the network side by side: vectors are made of them, and no sum depends on how. */
enum { LANES = 16 };

int64_t ht_network_size(int inputs, int hidden, int actions) {
  int64_t i = inputs, h = hidden, a = actions;
  return (i + 1) * h + (h + 1) * h + (h + 1) * a + h + 1;
}

/* y = W x + b, W row by row, and its negative part cut off; returns what follows b. */
static const float *layer(const float *weights, int inputs, int outputs, int relu, float (*x)[LANES], float (*y)[LANES]) {
  const float *bias = weights + (int64_t)inputs * outputs;
  for (int o = 0; o < outputs; o++) {
    float sum[LANES];
    for (int l = 0; l < LANES; l++) sum[l] = bias[o];
    for (int i = 0; i < inputs; i++)
#pragma omp simd
      for (int l = 0; l < LANES; l++) sum[l] += weights[(int64_t)o * inputs + i] * x[i][l];
    for (int l = 0; l < LANES; l++) y[o][l] = relu && !(sum[l] > 0) ? 0 : sum[l];
  }
  return bias + outputs;
}

/* Up to LANES rows; lanes without a row are 0. */
static void forward(const ht_network *net, int64_t rows, const float *inputs, float *logits, float *value) {
  float x[HT_NETWORK_MOST_HIDDEN][LANES] = {{0}}, y[HT_NETWORK_MOST_HIDDEN][LANES];
  for (int64_t r = 0; r < rows; r++)
    for (int i = 0; i < net->inputs; i++) x[i][r] = inputs[r * net->inputs + i];
  const float *w = layer(net->weights, net->inputs, net->hidden, 1, x, y);
  w = layer(w, net->hidden, net->hidden, 1, y, x);
  w = layer(w, net->hidden, net->actions, 0, x, y);
  for (int64_t r = 0; r < rows; r++)
    for (int a = 0; a < net->actions; a++) logits[r * net->actions + a] = y[a][r];
  if (!value) return;
  layer(w, net->hidden, 1, 0, x, y);
  memcpy(value, y[0], (size_t)rows * sizeof *value);
}

void ht_network_forward(const ht_network *net, int64_t rows, const float *inputs, float *logits, float *value) {
  for (int64_t r = 0; r < rows; r += LANES)
    forward(net, rows - r < LANES ? rows - r : LANES, inputs + r * net->inputs, logits + r * net->actions, value ? value + r : NULL);
}

void ht_network_round(ht_network *net) {
  int64_t count = ht_network_size(net->inputs, net->hidden, net->actions);
  for (int64_t k = 0; k < count; k++) net->weights[k] = (float)ht_load_f16(ht_store_f16(net->weights[k]));
}
