/* Training on a device: what a trainer does through the learner of a backend. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_DEVICE_H
#define HT_TRAIN_DEVICE_H
#include <string.h>
#include "train/trainer.h"

/* The backend that the option asks for, and the number of lanes; on the host t->backend is the CPU's. t->device: what the policy is for. */
ht_status ht_device_choose(ht_trainer *trainer);
/* That the policy is for, as a solver's option. */
static inline const char *ht_device_name(const ht_trainer *t) {
  return !t->device ? "cpu" : strcmp(t->options.backend, "auto") ? t->options.backend : "cuda";
}
static inline int ht_trains_on_device(const ht_trainer *t) { return t->backend->learner_create != NULL; }
/* After a failure of a device that was chosen by itself: 1, and the trainer is to be prepared for the CPU. */
int ht_device_give_up(ht_trainer *trainer, ht_status status);
/* The same of a competition alone: 1, and it is to be held on the CPU. */
int ht_device_is_left(ht_trainer *trainer, ht_status status);

/* From the environments, the network and the rollout's shape; makes the environments' FP64 solves, and what the reward time needs. */
ht_status ht_device_prepare(ht_trainer *trainer);
void ht_device_release(ht_trainer *trainer);
/* Transitions, to the rollout's finished episodes. */
ht_status ht_device_collect(ht_trainer *trainer);
ht_status ht_device_update(ht_trainer *trainer, uint64_t seed, ht_ppo_loss *loss);
/* The network and Adam's state, from the learner or to it. */
ht_status ht_device_fetch_network(ht_trainer *trainer);
ht_status ht_device_place_network(ht_trainer *trainer);
/* A lane, from the learner or to it. In between it is the rollout's judge, which has the memory for it. */
ht_status ht_device_fetch_lane(ht_trainer *trainer, int lane, ht_lane **fetched);
ht_status ht_device_place_lane(ht_trainer *trainer, int lane);
/* As ht_judge, with the deployed weights. */
ht_status ht_device_judge(ht_trainer *trainer, int environment, int64_t interval, ht_judgement *judgement);

#endif
