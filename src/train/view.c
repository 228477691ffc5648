/* What a policy sees of a solve. SPDX-License-Identifier: BSD-3-Clause */
#include "train/view.h"
#include <math.h>

void ht_view_tiles(const ht_course *c, int64_t first, int64_t count, int width, float *rows) {
  static const double DELTA = 1e-30;
  for (int64_t b = 0; b < count; b++) {
    const double *p = c->p + (first + b) * HT_COLUMN_BLOCK;
    double norm2 = 0;
    for (int i = 0; i < HT_COLUMN_BLOCK; i++) norm2 += p[i] * p[i];
    double norm = fmax(sqrt(norm2), DELTA);
    for (int i = 0; i < HT_COLUMN_BLOCK; i++) rows[b * width + i] = (float)(p[i] / norm);
  }
}

uint8_t ht_view_level(int action) { return (uint8_t)(HT_LEVEL_64 - action); }
