// The persistent engine at 64 bits; by rows a thread. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT(1, 64, ht::LEVEL_64)
HT_PERSISTENT(2, 64, ht::LEVEL_64)
HT_PERSISTENT(4, 64, ht::LEVEL_64)
HT_PERSISTENT(8, 64, ht::LEVEL_64)
