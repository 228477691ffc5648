/* Passes forward and backward over a padded network. SPDX-License-Identifier: BSD-3-Clause */
#include "train/packed.h"
#include <string.h>
#include "train/dense.h"

static int64_t layer_size(const ht_packed_layer *l) { return 2 * (int64_t)l->in * l->out + l->out; }

ht_status ht_packed_create(ht_context *ctx, const ht_network *net, ht_packed *packed) {
  const int inputs[HT_PACKED_LAYERS] = {net->inputs, net->hidden, net->hidden};
  const int outputs[HT_PACKED_LAYERS] = {net->hidden, net->hidden, net->actions + 1};
  int64_t size = 0;
  *packed = (ht_packed){.ctx = ctx, .actions = net->actions};
  for (int k = 0; k < HT_PACKED_LAYERS; k++) {
    ht_packed_layer *l = &packed->layer[k];
    *l = (ht_packed_layer){.inputs = inputs[k],
                           .outputs = outputs[k],
                           .in = (int)ht_dense_padded(inputs[k], HT_DENSE_COLUMNS),
                           .out = (int)ht_dense_padded(outputs[k], HT_DENSE_COLUMNS)};
    size += layer_size(l);
  }
  HT_TRY(ctx, ht_allocate_zeroed(ctx, size, sizeof(float), &packed->memory));
  float *at = packed->memory;
  for (int k = 0; k < HT_PACKED_LAYERS; k++) {
    ht_packed_layer *l = &packed->layer[k];
    l->forward = at;
    l->backward = at + (int64_t)l->in * l->out;
    l->bias = at + 2 * (int64_t)l->in * l->out;
    at += layer_size(l);
  }
  return HT_OK;
}

void ht_packed_release(ht_packed *packed) {
  if (packed->ctx) ht_release(packed->ctx, packed->memory);
  packed->memory = NULL;
}

/* The outputs first..first + count - 1 of a layer, weights then biases; returns what follows. */
static const float *load(ht_packed_layer *l, int first, int count, const float *from) {
  for (int o = 0; o < count; o++)
    for (int i = 0; i < l->inputs; i++) {
      float w = from[o * l->inputs + i];
      l->backward[(first + o) * l->in + i] = w;
      l->forward[i * l->out + first + o] = w;
    }
  from += (int64_t)count * l->inputs;
  memcpy(l->bias + first, from, (size_t)count * sizeof *from);
  return from + count;
}

void ht_packed_load(ht_packed *packed, const ht_network *net) {
  ht_packed_layer *l = packed->layer;
  const float *from = load(&l[0], 0, net->hidden, net->weights);
  from = load(&l[1], 0, net->hidden, from);
  from = load(&l[2], 0, net->actions, from);
  load(&l[2], net->actions, 1, from);
}

ht_status ht_activations_create(ht_context *ctx, const ht_packed *packed, int64_t rows, ht_activations *a) {
  const ht_packed_layer *l = packed->layer;
  *a = (ht_activations){.rows = ht_dense_padded(rows, HT_DENSE_ROWS)};
  HT_TRY(ctx, ht_allocate_zeroed(ctx, a->rows * (l[0].in + l[0].out + l[1].out + l[2].out), sizeof(float), &a->memory));
  a->activation[0] = a->memory;
  for (int k = 0; k < HT_PACKED_LAYERS; k++) a->activation[k + 1] = a->activation[k] + a->rows * (k ? l[k - 1].out : l[0].in);
  return HT_OK;
}

void ht_activations_release(ht_context *ctx, ht_activations *a) {
  ht_release(ctx, a->memory);
  a->memory = NULL;
}

void ht_packed_forward(const ht_packed *packed, int64_t rows, ht_activations *a) {
  int64_t m = ht_dense_padded(rows, HT_DENSE_ROWS);
  for (int k = 0; k < HT_PACKED_LAYERS; k++) {
    const ht_packed_layer *l = &packed->layer[k];
    float *y = a->activation[k + 1];
    for (int64_t r = 0; r < m; r++) memcpy(y + r * l->out, l->bias, (size_t)l->out * sizeof *y);
    ht_dense_multiply(m, l->out, l->in, a->activation[k], l->in, 1, l->forward, l->out, y, l->out);
    if (k == HT_PACKED_LAYERS - 1) return;
    for (int64_t i = 0; i < m * l->out; i++) y[i] = y[i] > 0 ? y[i] : 0;
  }
}

static int64_t gradient_size(const ht_packed_layer *l) { return (int64_t)l->in * l->out + l->out; }

int64_t ht_packed_gradient_size(const ht_packed *packed) {
  int64_t size = 0;
  for (int k = 0; k < HT_PACKED_LAYERS; k++) size += gradient_size(&packed->layer[k]);
  return size;
}

/* dX = dY W where the ReLU let X through, 0 elsewhere. */
static void through_layer(const ht_packed_layer *l, int64_t m, const float *dy, const float *x, float *dx) {
  memset(dx, 0, (size_t)(m * l->in) * sizeof *dx);
  ht_dense_multiply(m, l->in, l->out, dy, l->out, 1, l->backward, l->in, dx, l->in);
  for (int64_t i = 0; i < m * l->in; i++) dx[i] = x[i] > 0 ? dx[i] : 0;
}

void ht_packed_backward(const ht_packed *packed, int64_t rows, const ht_activations *a, ht_activations *gradient, float *sums) {
  int64_t m = ht_dense_padded(rows, HT_DENSE_ROWS);
  sums += ht_packed_gradient_size(packed);
  for (int k = HT_PACKED_LAYERS - 1; k >= 0; k--) {
    const ht_packed_layer *l = &packed->layer[k];
    const float *x = a->activation[k], *dy = gradient->activation[k + 1];
    sums -= gradient_size(l);
    ht_dense_multiply(l->out, l->in, m, dy, 1, l->out, x, l->in, sums, l->in); /* dW += dY' X */
    float *bias = sums + (int64_t)l->in * l->out;
    for (int64_t r = 0; r < m; r++)
      for (int o = 0; o < l->out; o++) bias[o] += dy[r * l->out + o];
    if (k) through_layer(l, m, dy, x, gradient->activation[k]);
  }
}

/* As `load` above, the other way. */
static float *unload(const ht_packed_layer *l, const float *sums, int first, int count, float *to) {
  for (int o = 0; o < count; o++) memcpy(to + o * l->inputs, sums + (first + o) * l->in, (size_t)l->inputs * sizeof *to);
  to += (int64_t)count * l->inputs;
  memcpy(to, sums + (int64_t)l->in * l->out + first, (size_t)count * sizeof *to);
  return to + count;
}

void ht_packed_flatten(const ht_packed *packed, const float *sums, float *flat) {
  const ht_packed_layer *l = packed->layer;
  for (int k = 0; k < HT_PACKED_LAYERS - 1; k++) {
    flat = unload(&l[k], sums, 0, l[k].outputs, flat);
    sums += gradient_size(&l[k]);
  }
  flat = unload(&l[2], sums, 0, packed->actions, flat);
  unload(&l[2], sums, packed->actions, 1, flat);
}
