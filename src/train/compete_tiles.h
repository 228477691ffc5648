/* The last word of a training of policies that give each block its level: the network against one level throughout, as the solver solves
 * with them behind its guard. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_COMPETE_TILES_H
#define HT_TRAIN_COMPETE_TILES_H
#include "train/trainer.h"

/* time[k]: of the candidate ht_kept k by FP64's, the mean over the matrices, each with A*1 and with a random b; infinite where one of them
 * is not solved. kept: the best. */
ht_status ht_compete_tiles(ht_trainer *trainer, double time[HT_KEPT_COUNT], ht_kept *kept);

#endif
