/* Steps of ht_order_patches. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_PATCHES_INTERNAL_H
#define HT_DATA_PATCHES_INTERNAL_H
#include "data/patches.h"
#include "data/split.h"

enum { HT_AXES = 3 };

/* A row and where it lies. */
typedef struct ht_point {
  float at[HT_AXES];
  int32_t row;
} ht_point;

/* Coordinates of a grid in natural order, in units of the stencil's reach; 0: it is not one (patches_grid.c). */
int ht_find_grid(const ht_csr_view *a, ht_point *points);
/* Coordinates of any graph, from its distances (patches_embed.c). `patches`: how many will be cut. */
ht_status ht_embed_graph(ht_context *ctx, const ht_csr_view *a, int64_t patches, ht_point *points);

#endif
