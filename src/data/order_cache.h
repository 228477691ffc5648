/* Orders found before. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_ORDER_CACHE_H
#define HT_DATA_ORDER_CACHE_H
#include "base/fingerprint.h"
#include "data/split.h"

typedef enum ht_rcm_root { HT_ROOT_FAR, HT_ROOT_FIRST } ht_rcm_root; /* of ht_order_rcm */

/* ht_order_rcm and ht_order_patches, which find the same order for the same pattern: one that this context found before is copied, be it
 * of another matrix. The context keeps the last few (4 bytes a row), and no pattern: patterns are told apart by their fingerprint. Were two
 * ever taken for the same, a product would be slower, and as right: every order is a permutation. known: the pattern's, or NULL. */
ht_status ht_order_rcm_kept(ht_context *ctx, const ht_node_graph *graph, ht_rcm_root root, const ht_fingerprint *known, int32_t *order);
ht_status ht_order_patches_kept(ht_context *ctx, const ht_csr_view *a, int64_t rows, const ht_fingerprint *known, int32_t *order);

#endif
