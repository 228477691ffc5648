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

/* Coordinates of a grid in natural order, of one or more unknowns a point, in units of the stencil's reach; 0: it is not one. */
int ht_patches_find_grid(const ht_context *ctx, const ht_csr_view *a, ht_point *points);
/* Gives each node the number of its aggregate and returns how many there are: a node and its neighbours where all of them are free, and
 * who is left over joins a neighbour's. A hub, a node with far more neighbours than others, gets HT_HUB_OF(an aggregate near it). */
#define HT_HUB_OF(aggregate) (~(aggregate)) /* and back */
int64_t ht_patches_aggregate(const ht_node_graph *g, int32_t *owner);
/* The graph of the aggregates: those are neighbours whose nodes are, hubs left out. */
ht_status ht_patches_coarsen(ht_context *ctx, const ht_node_graph *g, const int32_t *owner, int64_t count, ht_node_graph *coarse);

/* Coordinates of any graph, from its distances. `patches`: how many will be cut, which tells how fine they must be. */
ht_status ht_patches_embed(ht_context *ctx, const ht_csr_view *a, int64_t patches, ht_point *points);

#endif
