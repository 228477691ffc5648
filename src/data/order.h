/* Orders of the nodes. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_ORDER_H
#define HT_DATA_ORDER_H
#include "data/order_cache.h"

/* Reverse Cuthill-McKee: order[new] = old. The pattern should be symmetric; any pattern gives a permutation. O(nonzeros); the same for the
 * same graph, whatever the number of threads. Every connected component begins at a node at its far end, or, in half the time and with
 * wider levels, at its first node. */
ht_status ht_order_rcm(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, int32_t *order);

/* Reverse Cuthill-McKee where it clearly lowers what a product of the split storage reads, else the natural order.
 * *order comes from ht_allocate, or is NULL for natural. known: the graph's fingerprint, or NULL. */
ht_status ht_order_auto(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, const ht_fingerprint *known, int32_t **order);

#endif
