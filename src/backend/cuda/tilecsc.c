/* Product with the Tile-CSC storage on arrays in the device's memory. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"

/* High row blocks leave room for few blocks on a multiprocessor: their warps must fill it. */
static unsigned threads_for(int rows) { return rows <= 2048 ? 256 : rows <= 4096 ? 512 : 1024; }

void ht_cuda_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y) {
  ht_tilecsc_view v = *a;
  if (v.n <= 0) return;
  ht_launch launch = {.grid = (unsigned)v.row_blocks,
                      .block = threads_for(v.rows_per_block),
                      .shared_bytes = (unsigned)v.rows_per_block * (unsigned)sizeof(double)};
  ht_cuda_launch(ht_cuda_of(ctx), HT_KERNEL_tilecsc_multiply, launch,
                 HT_ARGS(&v.n, &v.rows_per_block, &v.tile_row_start, &v.tile_column, &v.tile_entry, &v.column_start, &v.row_index, &v.scale,
                         &v.value_f64, &v.value_f32, &v.value_bf16, &level, &x, &y));
}
