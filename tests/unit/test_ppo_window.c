/* The tests of the updates in the shape of policies of the kind window: one row a transition, more inputs, more actions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "policy/features.h"
#define PPO_SHAPE
enum { INPUTS = HT_FEATURES, HIDDEN = 32, ACTIONS = 8, TRANSITIONS = 37, TILES = 1 };
#include "unit/test_ppo.c"
