/* An order of the unknowns for tiles. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_TILECSC_ORDER_H
#define HT_DATA_TILECSC_ORDER_H
#include "data/matrix.h"

/* Compact patches, of a column block each, where tiles of `rows` rows hold few entries as the unknowns are numbered, and clearly more then.
 * *order comes from ht_allocate, order[new] = old, or is NULL for natural. */
ht_status ht_tilecsc_order_auto(ht_context *ctx, const ht_matrix *matrix, int64_t rows, int32_t **order);

/* The matrix with its unknowns in that order; rows are as long as they were, and their entries not sorted. */
ht_status ht_tilecsc_reorder(ht_context *ctx, const ht_matrix *matrix, const int32_t *order, ht_matrix **reordered);

#endif
