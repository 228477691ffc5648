/* The Tile-CSC product, alone and in a solve. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_TILECSC_H
#define HT_BACKEND_CUDA_TILECSC_H
#include "backend/cuda/cg.h"
#include "backend/cuda/cuda.h"

ht_launch ht_cuda_tilecsc_shape(const ht_cuda *cuda, const ht_tilecsc_view *a);
/* level, one a column block, in the device's memory; NULL: FP64. scalars and chosen NULL, or those of a solve: nothing is done after its
 * event, where it has chosen one level for all blocks that one counts, and where a replacement is due y = A iterate, at FP64. order: of x
 * and y, where it is not that of the tiles. products: receives x'y of each row block; or NULL. */
ht_status ht_cuda_tilecsc_launch(ht_cuda *cuda, const ht_tilecsc_view *a, const uint8_t *level, const ht_cuda_cg_scalars *scalars,
                                 const uint32_t *chosen, int streamed, const int32_t *order, const double *x, const double *iterate,
                                 double *y, double *products);

#endif
