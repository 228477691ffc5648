// The persistent engine at 16 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1, 16, ht::LEVEL_16)
HT_PERSISTENT(2, 16, ht::LEVEL_16)
HT_PERSISTENT(4, 16, ht::LEVEL_16)
HT_PERSISTENT(8, 16, ht::LEVEL_16)
