// Bulk copies from global to shared memory, from compute capability 9.0 on: one thread asks, the copy engine moves, and a barrier in shared
// memory tells when the bytes are there. Addresses and sizes are multiples of 16. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <stdint.h>

namespace ht {

__device__ inline uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Each phase ends with one arrival and the bytes that it announces.
__device__ inline void barrier_init(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
// So that the copy engine sees barriers that were made before.
__device__ inline void barrier_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline bool barrier_passed(uint32_t barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed;
}
__device__ inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  while (!barrier_passed(barrier, parity)) {}
}
__device__ inline void bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

} // namespace ht
