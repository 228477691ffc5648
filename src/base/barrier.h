/* A barrier for short phases: spins, then yields, so that it neither sleeps for microseconds of work nor starves a busy
 * machine. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_BARRIER_H
#define HT_BASE_BARRIER_H
#include <sched.h>
#include <stdatomic.h>

typedef struct ht_barrier {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_int phase;
} ht_barrier;

static inline void ht_barrier_wait(ht_barrier *b, int threads) {
  enum { SPINS = 4000 };
  if (threads == 1) return;
  int phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) == threads - 1) {
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
    return;
  }
  for (int spins = 0; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; spins++) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (spins > SPINS) sched_yield();
  }
}

#endif
