// A warp's run of slices, streamed: groups lie one behind the other in memory, whatever slices they belong to, and are copied into a ring
// in shared memory some batches ahead of the one that is multiplied. So the loads need no registers and do not wait for each other.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <stddef.h>
#include "backend/cuda/product.cuh"

namespace ht {

enum { RING_GROUPS = 4, RING_STAGES = 3, CHUNK = 32 };

// One batch of groups as it lies in the ring.
struct stage {
  uint32_t index[RING_GROUPS * HT_WARP], head[RING_GROUPS * HT_WARP], mid[RING_GROUPS * HT_WARP];
  uint2 tail[RING_GROUPS * HT_WARP];
};

__device__ inline void copy_16(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// What the lanes share about a group: its base, and a word that is the high half of the double its values are to be multiplied by, with the
// kind of decoding in the low bits, which a power of two does not need.
enum { KIND_FIXED_16, KIND_FIXED_32, KIND_FIXED_64, KIND_FLOAT_32, KIND_FLOAT_64, KIND_RAW, KIND_BITS = 7 };

__device__ inline uint32_t describe(const ht_group_info &g, int level) {
  int encoding = encoding_of(g);
  uint32_t kind = encoding == HT_GROUP_FIXED ? level
                  : encoding == HT_GROUP_RAW ? KIND_RAW
                  : level == LEVEL_64        ? KIND_FLOAT_64
                                             : KIND_FLOAT_32;
  return (uint32_t)__double2hiint(scale_of(g, level)) | kind;
}

__device__ inline bool reads_mid(uint32_t kind) { return kind != KIND_FIXED_16; }
__device__ inline bool reads_tail(uint32_t kind) { return kind == KIND_FIXED_64 || kind >= KIND_FLOAT_64; }

__device__ __noinline__ pair decode_rare(uint32_t kind, uint32_t head, uint32_t mid, uint2 tail) {
  int encoding = kind == KIND_RAW ? HT_GROUP_RAW : HT_GROUP_FLOAT, first = join_first(encoding, head, mid),
      second = join_second(encoding, head, mid);
  if (kind == KIND_FLOAT_32) return {(double)__int_as_float(first), (double)__int_as_float(second)};
  return {decode_64(encoding, first, tail.x), decode_64(encoding, second, tail.y)};
}

struct group_stream {
  const ht_store_view &a;
  const stage *ring; // RING_STAGES
  uint32_t ring_at;  // the lane's place in it, as a shared address
  int64_t at;        // the lane's place in the next batch to ask for, in bytes of a stream of four bytes a lane
  int64_t first;
  int total, lane;
  const uint8_t *levels;
  int uniform;
  int base, next_base; // of the lane's group in this chunk and the next
  uint32_t about, next_about;
  uint32_t low; // groups that the lane saw at 32 bits, and in the upper half those at 16

  __device__ group_stream(const ht_store_view &a, stage *ring, int64_t first, int total, int lane, const uint8_t *levels, int uniform)
      : a(a), ring(ring), first(first), total(total), lane(lane), levels(levels), uniform(uniform), low(0) {
    ring_at = (uint32_t)__cvta_generic_to_shared(ring) + 16 * lane;
    at = first * (4 * HT_WARP) + 16 * lane;
    learn(0, base, about);
    learn(CHUNK, next_base, next_about);
    for (int batch = 0; batch < RING_STAGES - 1; batch++) request(batch * RING_GROUPS, about);
  }

  // What the lane's group of the chunk that begins at `chunk` is read at.
  __device__ void learn(int chunk, int &to_base, uint32_t &to_about) {
    to_base = 0;
    to_about = 0;
    if (chunk + lane >= total) return;
    ht_group_info mine = stream(a.info + first + chunk + lane);
    int level = level_of(mine, levels ? asked_of(mine, levels, a.blocks) : uniform);
    to_base = mine.base;
    to_about = describe(mine, level);
    low += level == LEVEL_16 ? 65536 : level == LEVEL_32;
  }

  // Ask for the batch that begins with group g; `of` describes the groups of its chunk. A lane copies 16 bytes of a stream: eight lanes a
  // group, of the tails sixteen.
  __device__ void request(int g, uint32_t of) {
    uint32_t to = ring_at + (uint32_t)(g / RING_GROUPS % RING_STAGES) * (uint32_t)sizeof(stage);
    int left = total - g;
    uint32_t kind = __shfl_sync(~0u, of, g + lane / 8) & KIND_BITS;
    if (lane / 8 < left) {
      copy_16(to, (const char *)a.index + at);
      copy_16(to + offsetof(stage, head), (const char *)a.head + at);
      if (reads_mid(kind)) copy_16(to + offsetof(stage, mid), (const char *)a.mid + at);
    }
    uint32_t wide = __ballot_sync(~0u, reads_tail(kind) && lane / 8 < left); // a byte a group
    if (wide) {
      const char *tail = (const char *)a.tail + (2 * at - 16 * lane);
      if (wide >> (lane / 16 * 8) & 1) copy_16(to + offsetof(stage, tail), tail);
      if (wide >> (16 + lane / 16 * 8) & 1) copy_16(to + offsetof(stage, tail) + 512, tail + 512);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    at += RING_GROUPS * 4 * HT_WARP;
  }

  // To be called when group `g`, the first of its batch, is next: asks for a later batch and waits for this one.
  __device__ void advance(int g) {
    if (g && g % CHUNK == 0) {
      base = next_base;
      about = next_about;
      learn(g + CHUNK, next_base, next_about);
    }
    int ahead = g + (RING_STAGES - 1) * RING_GROUPS;
    __syncwarp(); // all lanes are through with the stage that is filled again
    request(ahead, ahead / CHUNK == g / CHUNK ? about : next_about);
    asm volatile("cp.async.wait_group %0;" ::"n"(RING_STAGES - 1) : "memory");
    __syncwarp();
  }

  // Sum over the lane's entries of the groups g..end-1, which are of one batch.
  __device__ double multiply(int g, int end, const double *__restrict__ p) const {
    const stage &s = ring[g / RING_GROUPS % RING_STAGES];
    double x0[RING_GROUPS], x1[RING_GROUPS], sum = 0;
    int batch = g & ~(RING_GROUPS - 1);
#pragma unroll
    for (int u = 0; u < RING_GROUPS; u++) {
      const double *from = p + __shfl_sync(~0u, base, batch + u);
      if (batch + u < g || batch + u >= end) continue;
      uint32_t i = s.index[u * HT_WARP + lane];
      x0[u] = __ldg(from + (i & 0xffffu));
      x1[u] = __ldg(from + (i >> 16));
    }
#pragma unroll
    for (int u = 0; u < RING_GROUPS; u++) {
      uint32_t word = __shfl_sync(~0u, about, batch + u), kind = word & KIND_BITS;
      if (batch + u < g || batch + u >= end) continue;
      int at = u * HT_WARP + lane;
      uint32_t h = s.head[at];
      double a0, a1;
      if (kind == KIND_FIXED_16) {
        a0 = (double)signed_first(h);
        a1 = (double)signed_second(h);
      } else if (kind == KIND_FIXED_32) {
        uint32_t m = s.mid[at];
        a0 = (double)(high_first(h) + signed_first(m));
        a1 = (double)(high_second(h) + signed_second(m));
      } else if (kind == KIND_FIXED_64) {
        uint32_t m = s.mid[at];
        uint2 t = s.tail[at];
        a0 = (double)(((long long)(high_first(h) + signed_first(m)) << 32) + (long long)(int)t.x);
        a1 = (double)(((long long)(high_second(h) + signed_second(m)) << 32) + (long long)(int)t.y);
      } else {
        pair rare = decode_rare(kind, h, s.mid[at], s.tail[at]);
        a0 = rare.first, a1 = rare.second;
      }
      sum = fma(__hiloint2double((int)(word & ~(uint32_t)KIND_BITS), 0), fma(a1, x1[u], a0 * x0[u]), sum);
    }
    return sum;
  }
};

} // namespace ht
