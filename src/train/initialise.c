/* First weights of a network. SPDX-License-Identifier: BSD-3-Clause */
#include "train/initialise.h"
#include <math.h>
#include "base/random.h"

static const double PI = 3.14159265358979323846;

/* Box and Muller's transform of two uniform numbers. */
static double normal(uint64_t seed, uint64_t counter) {
  double radius = (ht_random_uniform(seed, 2 * counter) + 1) / 2, angle = ht_random_uniform(seed, 2 * counter + 1) * PI;
  return sqrt(-2 * log(fmax(radius, 0x1p-60))) * cos(angle);
}

/* Vectors of `length` numbers one after the other, made orthonormal in turn; count <= length. */
static void orthonormalise(int count, int length, double *v) {
  for (int i = 0; i < count; i++) {
    double *a = v + (int64_t)i * length, norm2 = 0;
    for (int j = 0; j < i; j++) {
      const double *b = v + (int64_t)j * length;
      double dot = 0;
      for (int k = 0; k < length; k++) dot += a[k] * b[k];
      for (int k = 0; k < length; k++) a[k] -= dot * b[k];
    }
    for (int k = 0; k < length; k++) norm2 += a[k] * a[k];
    for (int k = 0; k < length; k++) a[k] /= sqrt(norm2);
  }
}

/* W[outputs][inputs] with orthonormal rows or columns, whichever are fewer, and its biases; returns what follows. */
static float *layer(uint64_t seed, int inputs, int outputs, double gain, double *work, float *weights) {
  int wide = outputs <= inputs, count = wide ? outputs : inputs, length = wide ? inputs : outputs;
  for (int64_t i = 0; i < (int64_t)count * length; i++) work[i] = normal(seed, (uint64_t)i);
  orthonormalise(count, length, work);
  for (int o = 0; o < outputs; o++)
    for (int i = 0; i < inputs; i++) *weights++ = (float)(gain * work[wide ? o * length + i : i * length + o]);
  for (int o = 0; o < outputs; o++) *weights++ = 0;
  return weights;
}

ht_status ht_network_initialise(ht_context *ctx, uint64_t seed, ht_network *net) {
  int widest = net->inputs > net->hidden ? net->inputs : net->hidden;
  double *work;
  HT_TRY(ctx, ht_allocate(ctx, (int64_t)widest * (net->hidden > net->actions ? net->hidden : net->actions), sizeof *work, &work));
  float *w = layer(ht_random_bits(seed, 0), net->inputs, net->hidden, sqrt(2), work, net->weights);
  w = layer(ht_random_bits(seed, 1), net->hidden, net->hidden, sqrt(2), work, w);
  w = layer(ht_random_bits(seed, 2), net->hidden, net->actions, 0.01, work, w);
  layer(ht_random_bits(seed, 3), net->hidden, 1, 1, work, w);
  ht_release(ctx, work);
  return HT_OK;
}

void ht_network_lean(ht_network *net, int action) {
  static const float LOGIT = 2; /* two times of three among five actions */
  int64_t i = net->inputs, h = net->hidden, a = net->actions;
  net->weights[(i + 1) * h + (h + 1) * h + h * a + action] = LOGIT;
}
