/* Counter-based random numbers: a value depends on (seed, stream, counter) alone, not on threads or order.
 *
 * With mix() of base/random.h and g = 0x9e3779b97f4a7c15,
 *   bits(seed, stream, counter) = mix(mix(mix(seed + g) ^ stream * g') + (counter + 1) * g),  g' = 0xd1b54a32d192ed03,
 *   uniform = (bits >> 11 + 1/2) * 2^-53, inside (0, 1);
 *   normal  = sqrt(-2 log u1) cos(2 pi u2), u1 and u2 with counters 2c and 2c+1.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_GEN_RANDOM_H
#define HT_GEN_RANDOM_H
#include <math.h>
#include <stdint.h>
#include "base/random.h"

#define HT_GEN_PI 3.14159265358979323846

static inline uint64_t ht_gen_bits(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint64_t key = ht_random_mix(ht_random_mix(seed + 0x9e3779b97f4a7c15u) ^ stream * 0xd1b54a32d192ed03u);
  return ht_random_mix(key + (counter + 1) * 0x9e3779b97f4a7c15u);
}

static inline double ht_gen_uniform(uint64_t seed, uint64_t stream, uint64_t counter) {
  return ((double)(ht_gen_bits(seed, stream, counter) >> 11) + 0.5) * 0x1p-53;
}

static inline double ht_gen_normal(uint64_t seed, uint64_t stream, uint64_t counter) {
  double u = ht_gen_uniform(seed, stream, 2 * counter), v = ht_gen_uniform(seed, stream, 2 * counter + 1);
  return sqrt(-2 * log(u)) * cos(2 * HT_GEN_PI * v);
}

#endif
