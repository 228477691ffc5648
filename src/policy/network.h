/* The policies' network: two ReLU layers of `hidden` units under a policy head and a value head. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_NETWORK_H
#define HT_POLICY_NETWORK_H
#include <stdint.h>

typedef struct ht_network {
  int inputs, hidden, actions;
  /* One array: W1[hidden][inputs] b1[hidden] W2[hidden][hidden] b2[hidden] Wp[actions][hidden] bp[actions] Wv[hidden] bv[1]. */
  float *weights;
} ht_network;

int64_t ht_network_size(int inputs, int hidden, int actions); /* numbers in `weights` */

enum { HT_NETWORK_MOST_HIDDEN = 256, HT_NETWORK_MOST_ACTIONS = 32 };

/* Of `rows` states of `inputs` numbers each: `actions` logits a row, and the value a row unless NULL. */
void ht_network_forward(const ht_network *network, int64_t rows, const float *inputs, float *logits, float *value);

/* The paper deploys weights of 16 bits: rounded once, they are the same numbers on every backend. */
void ht_network_round(ht_network *network);

#endif
