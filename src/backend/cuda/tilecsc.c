/* Product with the Tile-CSC storage on arrays in the device's memory. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/tilecsc.h"

enum { MOST_WARPS = 8, FEW_WARPS = 4, WARPS_TO_FILL = 32 /* of a multiprocessor */ };

/* As many warps a row block as its tiles keep busy and shared memory has sums for; half as many where the device is full all the same. */
ht_launch ht_cuda_tilecsc_shape(const ht_cuda *cuda, const ht_tilecsc_view *a) {
  int64_t warps = MOST_WARPS, row_bytes = (a->rows_per_block + HT_COLUMN_BLOCK) * (int64_t)sizeof(double),
          full = WARPS_TO_FILL * (int64_t)cuda->sms;
  while (warps > 1 && (warps * row_bytes > cuda->shared_block_bytes || warps * a->row_blocks >= a->tiles)) warps /= 2;
  if (warps > FEW_WARPS && FEW_WARPS * a->row_blocks >= full - full / 8) warps = FEW_WARPS;
  return (ht_launch){.grid = (unsigned)a->row_blocks, .block = (unsigned)(32 * warps), .shared_bytes = (unsigned)(warps * row_bytes)};
}

ht_status ht_cuda_tilecsc_launch(ht_cuda *cuda, const ht_tilecsc_view *a, const uint8_t *level, const ht_cuda_cg_scalars *scalars,
                                 const uint32_t *chosen, int streamed, const int32_t *order, const double *x, const double *iterate,
                                 double *y, double *products) {
  ht_cuda_tiles tiles = {.n = a->n,
                         .rows_per_block = a->rows_per_block,
                         .tile_row_start = a->tile_row_start,
                         .head = a->head,
                         .index = a->row_index,
                         .exponent = a->exponent,
                         .lack = {a->lack[HT_LEVEL_16], a->lack[HT_LEVEL_32]},
                         .order = order,
                         .value_f64 = a->value_f64,
                         .value_f32 = a->value_f32,
                         .value_bf16 = a->value_bf16};
  ht_launch launch = ht_cuda_tilecsc_shape(cuda, a);
  launch.early = 1;
  ht_kernel kernel = order      ? HT_KERNEL_tilecsc_multiply_ordered
                     : streamed ? HT_KERNEL_tilecsc_multiply_streamed
                                : HT_KERNEL_tilecsc_multiply;
  return ht_cuda_launch(cuda, kernel, launch, HT_ARGS(&tiles, &level, &scalars, &chosen, &x, &iterate, &y, &products));
}

void ht_cuda_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y) {
  if (a->n > 0) ht_cuda_tilecsc_launch(ht_cuda_of(ctx), a, level, NULL, NULL, 0, a->order, x, NULL, y, NULL);
}
