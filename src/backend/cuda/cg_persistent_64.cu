// The persistent engine at 64 bits. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT_ALL(ht::LEVEL_64, false, , 64)
