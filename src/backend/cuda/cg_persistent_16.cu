// The persistent engine at 16 bits. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT_ALL(ht::LEVEL_16, false, , 16)
