// Bulk copies from global to shared memory, from compute capability 9.0 on: one thread asks, the copy engine moves, and a barrier in shared
// memory tells when the bytes are there. Addresses and sizes are multiples of 16. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <stdint.h>

namespace ht {

__device__ inline uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// One lane of a whole warp, of which the compiler knows that it is one: the copy engine's operands need no loop over lanes.
__device__ inline bool elected() {
  uint32_t chosen;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen;
}

// A phase of a barrier ends with one arrival and the bytes that it announces.
__device__ inline void barrier_init(uint32_t barrier) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory"); }
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
// To L2 only; nothing before 9.0, which has no copy engine.
__device__ inline void bulk_prefetch(const void *from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

__device__ inline void load_shared(uint32_t &v, uint32_t from) { asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from)); }
__device__ inline void load_shared(uint32_t &v, uint32_t &w, uint32_t from) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v), "=r"(w) : "r"(from));
}
__device__ inline void load_shared(uint2 &v, uint2 &w, uint32_t from) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(w.x), "=r"(w.y) : "r"(from));
}

} // namespace ht
