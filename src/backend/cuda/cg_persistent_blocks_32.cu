// The persistent engine at 32 bits with inverse blocks. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_persistent.cuh"

HT_PERSISTENT_ALL(ht::LEVEL_32, true, blocks_, 32)
