/* The last word of a training of policies that give each block its level: the network against one level throughout, as the solver solves
 * with them behind its guard. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_COMPETE_TILES_H
#define HT_TRAIN_COMPETE_TILES_H
#include "train/trainer.h"

/* The network, and levels throughout; names: of the policies, "learned" for the network. */
enum { HT_RIVAL_NETWORK, HT_RIVAL_64, HT_RIVAL_32, HT_RIVAL_16, HT_RIVALS };
extern const char *const ht_rival_names[HT_RIVALS];

/* time[k]: of rival k by FP64's, the mean over the matrices, each with A*1 and with a random b; infinite where one of them
 * is not solved. best: the fastest by more than a per cent, else FP64. */
ht_status ht_compete_tiles(ht_trainer *trainer, double time[HT_RIVALS], int *best);

#endif
