// The persistent engine at 64 bits where halos are long. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(512, 1, ht::LEVEL_64, false, true, long_1_64)
HT_PERSISTENT(640, 1, ht::LEVEL_64, false, true, long_many_1_64)
HT_PERSISTENT(512, 2, ht::LEVEL_64, false, true, long_2_64)
