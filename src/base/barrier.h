/* A barrier for short phases: spins, then yields, so that it neither sleeps for microseconds of work nor starves a busy
 * machine. Where there are more threads than cores it yields at once: the thread that is waited for may want the core (four threads
 * on two cores: an iteration of 0.3 ms took 2 to 4 ms with spinning). SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_BARRIER_H
#define HT_BASE_BARRIER_H
#include <sched.h>
#include <stdatomic.h>
#include "base/context.h"

typedef struct ht_barrier {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_int phase;
  int spins; /* before it yields; ht_barrier_spins gives the number */
} ht_barrier;

static inline int ht_barrier_spins(int threads, int cores) { return threads > cores ? 0 : 4000; }

static inline void ht_barrier_wait(ht_barrier *b, int threads) {
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
    if (spins >= b->spins) sched_yield();
  }
}

#endif
