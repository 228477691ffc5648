/* Counter-based random numbers: a value depends on (seed, counter) alone, not on threads or order.
 *
 * SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): with g = 0x9e3779b97f4a7c15,
 *   bits(seed, i) = mix(mix(seed + g) + (i + 1) * g),   uniform(seed, i) = (bits >> 11) * 2^-52 - 1, in [-1, 1).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_RANDOM_H
#define HT_BASE_RANDOM_H
#include <stdint.h>

#ifdef __CUDACC__ /* kernels draw the same numbers */
#define HT_KERNELS_TOO __host__ __device__
#else
#define HT_KERNELS_TOO
#endif

static HT_KERNELS_TOO inline uint64_t ht_random_mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static HT_KERNELS_TOO inline uint64_t ht_random_bits(uint64_t seed, uint64_t counter) {
  uint64_t g = 0x9e3779b97f4a7c15u;
  return ht_random_mix(ht_random_mix(seed + g) + (counter + 1) * g);
}

static HT_KERNELS_TOO inline double ht_random_uniform(uint64_t seed, uint64_t counter) {
  return (double)(ht_random_bits(seed, counter) >> 11) * 0x1p-52 - 1;
}

#endif
