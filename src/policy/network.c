/* The policies' network. SPDX-License-Identifier: BSD-3-Clause */
#include "policy/network.h"

int64_t ht_network_size(int inputs, int hidden, int actions) {
  int64_t i = inputs, h = hidden, a = actions;
  return (i + 1) * h + (h + 1) * h + (h + 1) * a + h + 1;
}

/* y = W x + b, W row by row, and its negative part cut off; returns what follows b. */
static const float *layer(const float *weights, int inputs, int outputs, int relu, const float *x, float *y) {
  const float *bias = weights + (int64_t)inputs * outputs;
  for (int o = 0; o < outputs; o++) {
    float sum = bias[o];
    for (int i = 0; i < inputs; i++) sum += weights[(int64_t)o * inputs + i] * x[i];
    y[o] = relu && !(sum > 0) ? 0 : sum;
  }
  return bias + outputs;
}

void ht_network_forward(const ht_network *net, int64_t rows, const float *inputs, float *logits, float *value) {
  float first[HT_NETWORK_MOST_HIDDEN], second[HT_NETWORK_MOST_HIDDEN];
  for (int64_t r = 0; r < rows; r++) {
    const float *w = layer(net->weights, net->inputs, net->hidden, 1, inputs + r * net->inputs, first);
    w = layer(w, net->hidden, net->hidden, 1, first, second);
    w = layer(w, net->hidden, net->actions, 0, second, logits + r * net->actions);
    if (value) layer(w, net->hidden, 1, 0, second, value + r);
  }
}
