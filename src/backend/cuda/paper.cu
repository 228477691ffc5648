// The EvoCG paper's step where a block's warps hold all of its vectors: few of them meet sooner, and leave room for the product's blocks,
// which begin while it ends. SPDX-License-Identifier: BSD-3-Clause
#define HT_STEP_THREADS 256
#include "backend/cuda/paper_step.cuh"

HT_PAPER_STEP(paper)
