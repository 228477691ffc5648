/* How much a product loses at the lower levels, measured on a sample of the tiles: the column errors that were taken at set-up
 * cannot know how errors cancel for the direction at hand. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "backend/cpu/cg.h"
#include "backend/cpu/split.h"

enum { SAMPLE = 24 }; /* tiles: a few per cent of a matrix that does not fit the cache */

static double row_weight(const ht_split_view *a, int64_t i) { return ldexp(1.0, 2 * ht_split_exponent(a, i)); }

/* Sum over the tile's rows of s_i^2 (exact_i - y_i)^2. */
static double tile_error(const ht_split_view *a, const ht_tile *t, ht_level level, const double *p, const double *exact, double *y) {
  double sum = 0;
  if (ht_tile_level(t, level) == ht_tile_level(t, HT_LEVEL_64)) return 0;
  ht_cpu_split_kernel(a, t, level)(a, t, p, y);
  for (int64_t i = t->row; i < t->row + t->rows; i++) sum += row_weight(a, i) * (exact[i] - y[i]) * (exact[i] - y[i]);
  return sum;
}

/* Tiles are taken evenly, from another start each time, and none that shares its rows with another. The sum grows from the
 * sampled rows to all by their numbers. */
void ht_cpu_cg_measure_error(const ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state) {
  int64_t stride = a->tiles / SAMPLE + 1, start = state->iteration % stride, rows = 0;
  double *exact = plan->work, *y = plan->work + a->padded, sum16 = 0, sum32 = 0;
  int threads = plan->ctx->threads;
  double part[SAMPLE + 1][2] = {{0}};
  for (int64_t t = start; t < a->tiles; t += stride) rows += a->tile[t].accumulate ? 0 : a->tile[t].rows;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t k = 0; k <= SAMPLE; k++) {
    int64_t t = start + k * stride;
    if (t >= a->tiles || a->tile[t].accumulate) continue;
    const ht_tile *tile = &a->tile[t];
    ht_cpu_split_kernel(a, tile, HT_LEVEL_64)(a, tile, state->p, exact);
    part[k][HT_LEVEL_16] = tile_error(a, tile, HT_LEVEL_16, state->p, exact, y);
    part[k][HT_LEVEL_32] = tile_error(a, tile, HT_LEVEL_32, state->p, exact, y);
  }
  for (int k = 0; k <= SAMPLE; k++) {
    sum16 += part[k][HT_LEVEL_16];
    sum32 += part[k][HT_LEVEL_32];
  }
  double all = rows > 0 ? (double)a->padded / (double)rows : 0;
  state->error2[HT_LEVEL_16] = sum16 * all;
  state->error2[HT_LEVEL_32] = sum32 * all;
}
