/* A policy network as the inference kernel reads it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_NETWORK_H
#define HT_BACKEND_CUDA_NETWORK_H
#include <stdint.h>

enum {
  HT_NETWORK_WIDTH = 64, /* inputs, and units of both layers: fewer units are filled up with zeros */
  HT_NETWORK_ACTIONS = 3,
  HT_NETWORK_TILES = 16,  /* that a warp decides for at a time: the rows of its matrix products */
  HT_NETWORK_STEP = 16,   /* inputs that one instruction multiplies */
  HT_NETWORK_COLUMNS = 8, /* and units that it makes */
  HT_NETWORK_STEPS = HT_NETWORK_WIDTH / HT_NETWORK_STEP,
  HT_NETWORK_GROUPS = HT_NETWORK_WIDTH / HT_NETWORK_COLUMNS, /* of units in a layer; the head is one more */
  HT_NETWORK_FRAGMENTS = (2 * HT_NETWORK_GROUPS + 1) * HT_NETWORK_STEPS,
  HT_NETWORK_BIASES = 2 * HT_NETWORK_WIDTH + HT_NETWORK_COLUMNS,
  HT_NETWORK_SHARED = HT_NETWORK_FRAGMENTS * 32 * 4 * 2 + HT_NETWORK_BIASES * 4 /* bytes of shared memory */
};

/* Weights in FP16, in the order in which a warp's lanes hold them: of a group of units and a step of inputs each lane has four, those of
 * unit lane / 4 for the inputs 2 (lane % 4), the next, and both plus 8. Layers one after the other, then the head; in a layer by group,
 * then by step. */
typedef struct ht_cuda_network {
  const uint16_t *weights; /* HT_NETWORK_FRAGMENTS * 32 * 4 */
  const float *biases;     /* HT_NETWORK_BIASES */
} ht_cuda_network;

#endif
