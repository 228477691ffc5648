/* What a policy sees of a solve, and what its actions mean: the only place that knows the kind. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_VIEW_H
#define HT_TRAIN_VIEW_H
#include "train/environment.h"

/* The tiles first..first + count - 1 as rows of `width` numbers: equation 8 of the EvoCG paper, p_i / max(||p_i||, 1e-30). */
void ht_view_tiles(const ht_course *course, int64_t first, int64_t count, int width, float *rows);
uint8_t ht_view_level(int action); /* the paper's 0, 1, 2: FP64, FP32, 16 bits */

/* ---- What several files of this folder need of a course ---- */
int64_t ht_most_iterations(const ht_environment *environment); /* of an episode: 1.5 times those of FP64 */
double ht_missing_progress(ht_course *course);                 /* to the tolerance, by the true residual on a log scale: 0 to 2 */

#endif
