/* Compact patches of rows. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_PATCHES_H
#define HT_DATA_PATCHES_H
#include "backend/backend.h"

/* Orders the rows so that every `rows` consecutive ones form a compact patch of the matrix's graph, the last patch taking what is left:
 * order[new] = old; inside a patch the old order stays. Rows get coordinates and are bisected along the longest extent again and again
 * (recursive coordinate bisection, Berger and Bokhari 1987). The coordinates of a grid in natural order are read off its stencil; any
 * other graph is laid out by its distances. The pattern should be symmetric; any pattern gives a permutation. rows >= 1.
 * O(nonzeros + n log(n / rows)); the same for the same pattern, whatever the number of threads. */
ht_status ht_order_patches(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order);

#endif
