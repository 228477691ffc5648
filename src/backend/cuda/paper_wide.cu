// The EvoCG paper's step on longer vectors: twice as many warps have twice as much on its way. SPDX-License-Identifier: BSD-3-Clause
#define HT_STEP_THREADS 512
#include "backend/cuda/paper_step.cuh"

HT_PAPER_STEP(paper_wide)
