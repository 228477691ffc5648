// The persistent engine at 32 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1, 32, ht::LEVEL_32)
HT_PERSISTENT(2, 32, ht::LEVEL_32)
HT_PERSISTENT(4, 32, ht::LEVEL_32)
HT_PERSISTENT(8, 32, ht::LEVEL_32)
