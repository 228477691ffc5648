// The persistent engine at 16 bits with inverse blocks; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(blocks_1_16, 1, ht::LEVEL_16, true)
HT_PERSISTENT(blocks_2_16, 2, ht::LEVEL_16, true)
HT_PERSISTENT(blocks_4_16, 4, ht::LEVEL_16, true)
HT_PERSISTENT(blocks_8_16, 8, ht::LEVEL_16, true)
