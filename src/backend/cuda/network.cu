// A learned policy's decisions in a kernel of their own: of the streaming engine, and of the paper's where a run begins with a look.
// SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/network.cuh"

using namespace ht;

namespace {
enum { WARPS = 4 };
}

// exponent: of the scaled direction's entries, or NULL.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ht_network_decide(const __grid_constant__ ht_cuda_network network, int64_t blocks, const int16_t *exponent,
                      const __grid_constant__ ht_cuda_cg_vectors v) {
  __shared__ network_in_shared shared;
  load_network(network, shared);
  __syncthreads();
  wait_for_the_one_before(); // the weights are nobody's but ours
  let_the_next_begin();
  if (v.scalars->event != CONTINUE) return;
  int floor = v.scalars->floor;
  uint32_t chosen = 0;
  for (int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * HT_NETWORK_TILES; first < blocks;
       first += (int64_t)gridDim.x * WARPS * HT_NETWORK_TILES)
    chosen |= decide_tile(shared, first, first + HT_NETWORK_TILES / 2, blocks, v.p, exponent, v.block_level, floor);
  chosen = __reduce_or_sync(~0u, chosen);
  if (threadIdx.x % 32 || !chosen) return;
  if (v.chosen)
    atomicOr(v.chosen + (v.scalars->looks & 1), chosen);
  else if (lowest_of(chosen) < LEVEL_64)
    atomicMin(&v.scalars->lowest, lowest_of(chosen)); // of whole numbers: the order does not matter
}
