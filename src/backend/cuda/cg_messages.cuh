// Sums and rows that travel between the blocks of the persistent engine. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/sums.cuh"

namespace ht {

enum { MOST_THREADS = 640, MOST_BLOCKS = HT_PATCHES_MOST, COPIES = HT_MAIL_COPIES, MESSAGES = HT_MAIL_MESSAGES };

// ---- what travels between blocks ----

// 16 bytes are written and read at once (sm_70 and later); the lowest bit of the second number says whether they are those that are waited
// for. No fence stands between numbers and news of them, and who waits has them when it hears of them.
struct message {
  long long first, second;
  __device__ bool is(uint32_t tag) const { return ((uint32_t)second & 1) == tag; }
  __device__ double x() const { return __longlong_as_double(first); }
  __device__ double y() const { return __longlong_as_double(second & ~1ll); }
};

__device__ inline void send(message *to, double first, double second, uint32_t tag) {
  long long x = __double_as_longlong(first), y = (__double_as_longlong(second) & ~1ll) | tag;
  asm volatile("{ .reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.gpu.global.b128 [%0], q; }" ::"l"(to), "l"(x), "l"(y) : "memory");
}

__device__ inline message look(const message *from) {
  message m;
  asm volatile("{ .reg .b128 q; ld.relaxed.gpu.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }" : "=l"(m.first), "=l"(m.second) : "l"(from));
  return m;
}

// As it arrives at the other end.
__device__ inline double as_sent(double second) { return __longlong_as_double(__double_as_longlong(second) & ~1ll); }

// ---- sums ----

// The messages of a block: {rz, pap}, {rms, sms}, {rr, -}.

struct block_state {
  double2 warp[MOST_THREADS / 32][MESSAGES], part[MOST_BLOCKS / 32][MESSAGES]; // part: 0 where there are fewer blocks
  ht_cuda_cg_scalars scalars;
  double rr; // of a plain iteration
  int plain;
};

// Where the sums of an iteration go and come from, in turns to two places: who writes to one knows that all have read it, because since
// then they have sent the sums of the next iteration. There are several copies, so that not all blocks wait at the same place.
struct sums_mail {
  message *to;         // of lanes that send
  const message *from; // of lanes that wait
  uint32_t epoch;
  bool five; // whether rr is a sum of its own, and not rz

  __device__ sums_mail(void *memory, uint32_t epoch, bool five) : epoch(epoch), five(five) {
    int lane = threadIdx.x & 31;
    to = (message *)memory + ((lane >> 2) * MESSAGES + (lane & 3)) * MOST_BLOCKS + blockIdx.x;
    from = (const message *)memory + blockIdx.x % COPIES * MESSAGES * MOST_BLOCKS + threadIdx.x;
  }
  __device__ int turn() const { return (epoch & 1) * COPIES * MESSAGES * MOST_BLOCKS; }
  __device__ uint32_t tag() const { return epoch >> 1 & 1; }
  __device__ bool sends() const { return (threadIdx.x & 31) >> 2 < COPIES && (threadIdx.x & 3) < MESSAGES - !five; }
};

// The block's sums to all.
__device__ inline void send_sums(block_state &shared, const double (&v)[HT_SUMS], const sums_mail &mail) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  double2 mine = warp_sums(v, lane);
  if (lane < MESSAGES) shared.warp[warp][lane] = mine;
  __syncthreads();
  if (warp) return;
  double w[HT_SUMS] = {};
  if (lane < warps) {
    double2 a = shared.warp[lane][0], b = shared.warp[lane][1];
    w[0] = a.x, w[1] = a.y, w[2] = b.x, w[3] = b.y, w[4] = shared.warp[lane][2].x;
  }
  double2 sum = warp_sums(w, lane);
  if (mail.sends()) send(mail.to + mail.turn(), sum.x, sum.y, mail.tag());
}

// What all blocks sent, by the first `waiting` warps: sums of 32 blocks each, to `part`. The other warps stay away.
__device__ inline void receive_sums(block_state &shared, const sums_mail &mail, int waiting) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  uint32_t tag = mail.tag();
  for (int k = warp; 32 * k < gridDim.x; k += waiting) {
    const message *at = mail.from + mail.turn() + 32 * (k - warp);
    double sum[HT_SUMS] = {};
    if (lane + 32 * k < gridDim.x) {
      message a, b, c;
      do {
        a = look(at), b = look(at + MOST_BLOCKS);
        if (mail.five) c = look(at + 2 * MOST_BLOCKS);
      } while (!a.is(tag) || !b.is(tag) || (mail.five && !c.is(tag)));
      sum[0] = a.x(), sum[1] = a.y(), sum[2] = b.x(), sum[3] = b.y();
      if (mail.five) sum[4] = c.x();
    }
    __syncwarp();
    double2 part = warp_sums(sum, lane);
    if (lane < MESSAGES) shared.part[k][lane] = part;
  }
}

// The sums of all blocks, by the first warp: in its lanes 0, 1 and 2 {rz, pap}, {rms, sms} and {rr, -}.
__device__ inline double2 add_parts(const block_state &shared) {
  double2 sum = {0, 0};
  if (threadIdx.x < MESSAGES)
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS / 32; k++) sum.x += shared.part[k][threadIdx.x].x, sum.y += shared.part[k][threadIdx.x].y;
  return sum;
}

} // namespace ht
