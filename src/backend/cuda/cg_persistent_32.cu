// The persistent engine at 32 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1_32, 1, ht::LEVEL_32, false)
HT_PERSISTENT(2_32, 2, ht::LEVEL_32, false)
HT_PERSISTENT(4_32, 4, ht::LEVEL_32, false)
HT_PERSISTENT(8_32, 8, ht::LEVEL_32, false)
