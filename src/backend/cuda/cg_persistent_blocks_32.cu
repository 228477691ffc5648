// The persistent engine at 32 bits with inverse blocks; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(blocks_1_32, 1, ht::LEVEL_32, true)
HT_PERSISTENT(blocks_2_32, 2, ht::LEVEL_32, true)
HT_PERSISTENT(blocks_4_32, 4, ht::LEVEL_32, true)
HT_PERSISTENT(blocks_8_32, 8, ht::LEVEL_32, true)
