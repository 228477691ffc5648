/* A network laid out for products with many rows: each layer padded and stored both ways. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_PACKED_H
#define HT_TRAIN_PACKED_H
#include "base/context.h"
#include "policy/network.h"

enum { HT_PACKED_LAYERS = 3 }; /* two of ReLU units, and both heads together: the actions, then the value */

typedef struct ht_packed_layer {
  int inputs, outputs; /* as they are */
  int in, out;         /* padded with zeros for ht_dense_multiply */
  float *forward;      /* [in][out] */
  float *backward;     /* [out][in] */
  float *bias;         /* [out] */
} ht_packed_layer;

typedef struct ht_packed {
  ht_context *ctx;
  int actions;
  ht_packed_layer layer[HT_PACKED_LAYERS];
  float *memory;
} ht_packed;

/* What a pass over rows leaves: activation[0] holds the states, [in of layer 0] each, [1] and [2] what the ReLU layers give, [3] logits
 * and value. `rows` is a multiple of HT_DENSE_ROWS. */
typedef struct ht_activations {
  int64_t rows;
  float *activation[HT_PACKED_LAYERS + 1];
  float *memory;
} ht_activations;

ht_status ht_packed_create(ht_context *ctx, const ht_network *network, ht_packed *packed);
void ht_packed_release(ht_packed *packed);
void ht_packed_load(ht_packed *packed, const ht_network *network); /* renew from its weights */

ht_status ht_activations_create(ht_context *ctx, const ht_packed *packed, int64_t rows, ht_activations *a);
void ht_activations_release(ht_context *ctx, ht_activations *a);
/* From activation[0] on; the first `rows` rows, rounded up, of as many as there are. */
void ht_packed_forward(const ht_packed *packed, int64_t rows, ht_activations *a);
/* Gradients of the weights, each layer padded: [out][in] and then [out] for the biases. */
int64_t ht_packed_gradient_size(const ht_packed *packed);
/* From the gradient of activation[3], which is in gradient->activation[3]: adds that of the weights to `sums`. Rows behind the last are
 * there up to a multiple of HT_DENSE_ROWS, and their gradient is 0. */
void ht_packed_backward(const ht_packed *packed, int64_t rows, const ht_activations *a, ht_activations *gradient, float *sums);
/* Padded gradients in the layout of ht_network.weights. */
void ht_packed_flatten(const ht_packed *packed, const float *sums, float *flat);

#endif
