// The persistent engine at 16 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1_16, 1, ht::LEVEL_16, false)
HT_PERSISTENT(2_16, 2, ht::LEVEL_16, false)
HT_PERSISTENT(4_16, 4, ht::LEVEL_16, false)
HT_PERSISTENT(8_16, 8, ht::LEVEL_16, false)
