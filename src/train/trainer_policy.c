/* What a training hands out: its report, and the policy as a file. SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "halftone/version.h"
#include "policy/learned_file.h"

ht_status ht_trainer_policy(ht_trainer *t, const void **bytes, int64_t *size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, bytes);
  HT_NEED(t->ctx, size);
  static const char *const rewards[] = {"auto", "paper", "time"};
  HT_CHECK(t->ctx, t->prepared && t->interval, HT_BAD_ARGUMENT, "there is no policy before a training has run");
  ht_learned learned = {.kind = ht_trainer_kind(t),
                        .network = t->network,
                        .interval = (int)t->interval,
                        .seed = (uint64_t)t->options.seed,
                        .episodes = t->at.episodes};
  learned.network.weights = t->best;
  snprintf(learned.state, sizeof learned.state, "%s", ht_trains_windows(t) ? "features" : "paper");
  if (ht_trains_windows(t)) {
    snprintf(learned.actions, sizeof learned.actions, "%s", t->options.actions);
    learned.for_device = t->device != NULL;
  }
  snprintf(learned.reward, sizeof learned.reward, "%s", rewards[t->options.reward]);
  snprintf(learned.chosen, sizeof learned.chosen, "%s", t->fastest);
  snprintf(learned.contest, sizeof learned.contest, "%s", t->contest);
  snprintf(learned.trained_on, sizeof learned.trained_on, "%s", t->trained_on);
  snprintf(learned.version, sizeof learned.version, "%s", ht_version());
  ht_release(t->ctx, t->bytes);
  t->bytes = NULL;
  HT_TRY(t->ctx, ht_learned_serialize(t->ctx, &learned, &t->bytes, size));
  *bytes = t->bytes;
  return HT_OK;
}
