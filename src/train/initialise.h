/* First weights of a network. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_INITIALISE_H
#define HT_TRAIN_INITIALISE_H
#include "base/context.h"
#include "policy/network.h"

/* Orthogonal weights (Saxe, McClelland, Ganguli 2013), with gain sqrt(2) before a ReLU, 0.01 in the policy's head, so that every action
 * begins about as likely as another, and 1 in the value's; biases 0. The same seed gives the same bits. */
ht_status ht_network_initialise(ht_context *ctx, uint64_t seed, ht_network *network);

/* Let this action be the likeliest to begin with, whatever is seen, so that what is learned are the exceptions. */
void ht_network_lean(ht_network *network, int action);

#endif
