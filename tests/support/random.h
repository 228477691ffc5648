/* Random numbers that are the same on every machine. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_RANDOM_H
#define HT_TEST_RANDOM_H
#include <math.h>
#include <stdint.h>

typedef struct {
  uint64_t state;
} random_stream;

/* splitmix64 */
static inline uint64_t random_bits(random_stream *s) {
  uint64_t z = s->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline double random_unit(random_stream *s) { return (double)(random_bits(s) >> 11) * 0x1p-53; }
static inline double random_signed(random_stream *s) { return 2 * random_unit(s) - 1; }
static inline int64_t random_below(random_stream *s, int64_t limit) { return (int64_t)(random_bits(s) % (uint64_t)limit); }

static inline void random_vector(uint64_t seed, int64_t n, double *x) {
  random_stream s = {seed};
  for (int64_t i = 0; i < n; i++) x[i] = random_signed(&s);
}

#endif
