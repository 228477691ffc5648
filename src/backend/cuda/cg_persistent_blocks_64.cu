// The persistent engine at 64 bits with inverse blocks; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(blocks_1_64, 1, ht::LEVEL_64, true)
HT_PERSISTENT(blocks_2_64, 2, ht::LEVEL_64, true)
HT_PERSISTENT(blocks_4_64, 4, ht::LEVEL_64, true)
HT_PERSISTENT(blocks_8_64, 8, ht::LEVEL_64, true)
