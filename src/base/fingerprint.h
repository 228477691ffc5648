/* What a pattern is found again by. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_FINGERPRINT_H
#define HT_BASE_FINGERPRINT_H
#include <stdint.h>

struct ht_context;

/* Patterns are told apart by their size and 128 bits; what is kept by them must be as right where two were ever taken for the same. */
typedef struct ht_fingerprint {
  int64_t rows, entries;
  uint64_t hash[2];
} ht_fingerprint;

/* The same for any number of threads. */
ht_fingerprint ht_fingerprint_of(struct ht_context *ctx, int64_t rows, const int64_t *start, const int32_t *columns);
static inline int ht_same_fingerprint(const ht_fingerprint *a, const ht_fingerprint *b) {
  return a->rows == b->rows && a->entries == b->entries && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

#endif
