// The persistent engine at 64 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1_64, 1, ht::LEVEL_64, false)
HT_PERSISTENT(2_64, 2, ht::LEVEL_64, false)
HT_PERSISTENT(4_64, 4, ht::LEVEL_64, false)
HT_PERSISTENT(8_64, 8, ht::LEVEL_64, false)
