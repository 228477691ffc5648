/* Sums over chunks of a pattern. SPDX-License-Identifier: BSD-3-Clause */
#include "base/fingerprint.h"
#include <string.h>
#include "base/context.h"

enum { LANES = 8, GROUP = 8 * LANES /* bytes */, CHUNK = 1 << 18 /* bytes that one thread reads */, PARALLEL_FROM = 1 << 20 };

static inline uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15u;
  return state ^ state >> 32;
}

static inline void add_group(const char *bytes, uint64_t *lane) {
  uint64_t words[LANES];
  memcpy(words, bytes, sizeof words);
  for (int l = 0; l < LANES; l++) lane[l] = mix(lane[l], words[l]);
}

/* Of the chunk that begins at byte `at`, a different one at each place. Lanes do not wait for each other. */
static void add_chunk(const char *bytes, int64_t at, int64_t end, uint64_t *sum) {
  uint64_t lane[LANES] = {1, 2, 3, 4, 5, 6, 7, 8};
  char rest[GROUP] = {0};
  int64_t k = at;
  for (; end - k >= GROUP; k += GROUP) add_group(bytes + k, lane);
  memcpy(rest, bytes + k, (size_t)(end - k));
  if (k < end) add_group(rest, lane);
  for (int half = 0; half < 2; half++) {
    uint64_t state = mix(0xc2b2ae3d27d4eb4fu + (uint64_t)half, (uint64_t)at);
    for (int l = 0; l < LANES; l++) state = mix(state, lane[l]);
    sum[half] += state;
  }
}

/* Sums of chunks: the same for any number of threads. */
static void add_bytes(const ht_context *ctx, const void *bytes, int64_t size, uint64_t *fingerprint) {
  uint64_t first = 0, second = 0;
#pragma omp parallel for schedule(static) num_threads(ctx->threads) reduction(+ : first, second) if (size > PARALLEL_FROM)
  for (int64_t at = 0; at < size; at += CHUNK) {
    uint64_t sum[2] = {0, 0};
    add_chunk(bytes, at, size - at < CHUNK ? size : at + CHUNK, sum);
    first += sum[0];
    second += sum[1];
  }
  fingerprint[0] = mix(fingerprint[0], first);
  fingerprint[1] = mix(fingerprint[1], second);
}

ht_fingerprint ht_fingerprint_of(ht_context *ctx, int64_t rows, const int64_t *start, const int32_t *columns) {
  ht_fingerprint f = {.rows = rows, .entries = start[rows]};
  add_bytes(ctx, start, (rows + 1) * (int64_t)sizeof *start, f.hash);
  add_bytes(ctx, columns, f.entries * (int64_t)sizeof *columns, f.hash);
  ht_lap(ctx, HT_PHASE_fingerprint);
  return f;
}
