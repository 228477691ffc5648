// The persistent engine: one block a multiprocessor, one patch of rows a block, one exchange an iteration. A block keeps its part of
// r and s in registers, of p in shared memory, and of the matrix as much as fits on the chip; of its neighbours' rows it reads those that
// its own touch, its halo. CG in predict-and-recompute form (Chen and Carson 2020): rows send M^-1 r and M^-1 s as soon as they have them,
// and when alpha and beta are known the next p is made from them and the p before, by the row itself and by whoever has it in its halo, in
// the same operations, so that all have the same bits.
//
// There is no barrier between blocks: what a block waits for says by itself that it has come (cg_messages.cuh). The sums of the blocks are
// read by all and added in the same order by all. So all blocks agree on every scalar, and the bits do not depend on timing.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_cache.cuh"
#include "backend/cuda/cg_messages.cuh"
#include "backend/cuda/precondition.cuh"

namespace ht {

// What ends a run, for a quick look; `step` looks again and says which it was.
struct limits {
  double goal2, replace2, grow2; // squares of norms
  int64_t stop;                  // first iteration that ends a run
};

__device__ inline double square_of(double norm) { return norm < 0 ? -1 : norm * norm; }

__device__ inline limits limits_of(const ht_cuda_cg_scalars &s) {
  int64_t stop = min(min(s.iteration_end, s.pause_at), s.decide_rule == DECIDE_HOST ? s.decide_at : s.pause_at);
  return {square_of(s.goal) * (1 + 1e-15), square_of(s.replace_below) * (1 + 1e-15), square_of(s.grow_above) * (1 - 1e-15),
          min(stop, s.capacity)};
}

// The step from the sums of all blocks, by the first warp: divisions by every thread would take longer than its barrier. Whatever is not
// plainly an iteration like the others (also a comparison with a NaN) goes the long way.
__device__ inline void take_step(const ht_cuda_cg_vectors &v, block_state &shared, const limits &limit, bool five) {
  ht_cuda_cg_scalars &state = shared.scalars;
  int lane = threadIdx.x;
  double2 mine = add_parts(shared);
  double total[HT_SUMS];
  total[RZ] = __shfl_sync(~0u, mine.x, 0);
  total[PAP] = __shfl_sync(~0u, mine.y, 0);
  total[RMS] = __shfl_sync(~0u, mine.x, 1);
  total[SMS] = __shfl_sync(~0u, mine.y, 1);
  total[RR] = five ? __shfl_sync(~0u, mine.x, 2) : total[RZ];
  double quotient = (lane ? 1 : total[RZ]) / (lane ? total[RZ] : total[PAP]); // both at once
  double alpha = __shfl_sync(~0u, quotient, 0), inverse = __shfl_sync(~0u, quotient, 1), predicted = predicted_rz(total, alpha),
         beta = predicted * inverse, rr = total[RR];
  if (threadIdx.x) return;
  int64_t iteration = state.iteration;
  bool plain = rr > limit.goal2 & rr > limit.replace2 & rr <= limit.grow2 & total[PAP] > 0 & predicted > 0 & isfinite(alpha) &
               isfinite(beta) & iteration < limit.stop;
  shared.plain = plain;
  if (plain) {
    state.alpha = alpha;
    state.beta = beta;
    state.iteration = iteration + 1;
    shared.rr = rr;
    return;
  }
  int event = step(state, total);
  if (blockIdx.x == 0) record(v, state);
  state.event = event;
  if (event == CONTINUE) state.iteration++;
}

// The record of a plain iteration, by a thread that others do not wait for.
__device__ inline void record_plain(const ht_cuda_cg_vectors &v, const block_state &shared) {
  int64_t iteration = shared.scalars.iteration - 1;
  if (!shared.plain || iteration >= shared.scalars.capacity) return;
  v.history[iteration] = sqrt(shared.rr);
  v.alphas[iteration] = shared.scalars.alpha;
  v.betas[iteration] = shared.scalars.beta;
}

// ---- the engine ----

// Threads at most, and rows a thread. LONG: halos have more than one and a half rows a thread.
template <int THREADS, int ROWS, int LEVEL, bool BLOCKS, bool LONG> struct shape {
  static constexpr int HELD = LEVEL < LEVEL_64 || ROWS > 1 || THREADS > 512 || LONG ? 0 : 6; // units of a slice in registers
  static constexpr bool ROLLED = ROWS > 2;                             // loops short enough for the caches of instructions
  static constexpr bool LEAN = ROWS > 4;                               // of a row no more than r and s in registers
  static constexpr bool NARROW = !LEAN;                                // the halo may be listed in 16 bits
  static constexpr bool RAGGED = ROWS <= 2 && THREADS <= 512;          // slices may end with a ragged unit (may_be_ragged),
  static constexpr bool RAGGED_FAR = RAGGED && LEVEL < LEVEL_64;       // which is streamed where it has another width
  static constexpr int FACTS_AHEAD = 2;                                // the rest on its way, of so many rows
  static constexpr bool SENT = ROWS == 1;                              // of a row also p, and what was sent, in registers
  static constexpr bool BOTH_WAYS = ROWS == 4;                         // whether so much is streamed that L2 does not keep it
  static constexpr bool ROUNDS = ROWS > 1;                             // whether enough is streamed to be had ahead
  static constexpr int FAR = ROWS == 1 || ROWS == 8 ? 1 : 2;           // rows of the halo that are asked for early
  static constexpr int TOGETHER = ROWS == 1 && THREADS <= 512 ? 6 : 3; // of a long one, without spills
};

// What the engine needs of a row.
struct row_facts {
  double x, d;
  float m;       // M^-1 where it is Jacobi's
  int16_t scale; // as in the view: whether another patch wants the row, too
  int number;    // in the patch; -1: none
  __device__ int row() const { return number; }
  __device__ bool is_sent() const { return scale & 1; }
  __device__ double scale2() const { return scale_squared(scale >> 1); }
};

// The same in fewer registers: unpacked each time.
struct packed_facts {
  double x, d;
  float m;
  int packed;
  packed_facts() = default;
  __device__ explicit packed_facts(const row_facts &q) : x(q.x), d(q.d), m(q.m), packed(q.number << 16 | (uint16_t)q.scale) {}
  __device__ int unpack() const {
    int hidden = packed;
    asm volatile("" : "+r"(hidden)); // or it is unpacked before the loop
    return hidden;
  }
  __device__ int row() const { return unpack() >> 16; }
  __device__ bool is_sent() const { return unpack() & 1; }
  __device__ double scale2() const { return scale_squared((int16_t)unpack() >> 1); }
};

// What a thread keeps of a row in registers: by rows a thread.
struct lean_state {
  double r, s;
};
template <class Facts> struct full_state : lean_state { Facts facts; };
struct sent_state : full_state<row_facts> {
  double p, z, ms; // the last two: M^-1 r and M^-1 s as they were sent
};
template <int ROWS> struct state_of { typedef full_state<row_facts> type; };
template <> struct state_of<1> { typedef sent_state type; };
template <> struct state_of<4> { typedef full_state<packed_facts> type; };
template <> struct state_of<8> { typedef lean_state type; };

// What a block works on: its rows, slices, units and halo.
struct patch {
  int64_t first_row, first_unit;
  int first_slice, slices, halo_begin, halo;

  __device__ explicit patch(const ht_store_view &a) {
    first_row = blockIdx.x * a.patch_rows;
    first_slice = a.patch_slice[blockIdx.x];
    slices = a.patch_slice[blockIdx.x + 1] - first_slice;
    halo_begin = a.halo_start[blockIdx.x];
    halo = a.halo_start[blockIdx.x + 1] - halo_begin;
    first_unit = a.slice[first_slice].unit;
  }
};

// What rows send their neighbours, in turns to two places, as sums.
struct rows_mail {
  message *memory;
  int64_t padded;
  uint32_t epoch;
  __device__ message *at() const { return memory + (epoch & 1) * padded; }
  __device__ uint32_t tag() const { return epoch >> 1 & 1; }
};

__device__ inline double next_p(double z, double ms, double p, double alpha, double beta) { return fma(beta, p, fma(-alpha, ms, z)); }

// A row of the halo: its next p.
__device__ inline void move_far(message m, const message *from, uint32_t tag, double &p, double alpha, double beta) {
  while (!m.is(tag)) m = look(from);
  p = next_p(m.x(), m.y(), p, alpha, beta);
}

// A thread's rows of the halo: each blockDim-th. The first warps, which wait for the sums, have the last. COUNT of them are asked for
// before the block waits.
template <int COUNT, bool NARROW> struct far_rows {
  int first, row[COUNT]; // -1: none

  template <class Place> static __device__ int number(const ht_store_view &a, const patch &t, Place place) {
    return NARROW ? halo_row(a, t.halo_begin + place) : __ldg(a.halo + t.halo_begin + place);
  }
  __device__ far_rows(const ht_store_view &a, const patch &t) {
    first = blockDim.x - 1 - threadIdx.x;
#pragma unroll
    for (int k = 0; k < COUNT; k++) row[k] = first + k * blockDim.x < t.halo ? number(a, t, first + k * blockDim.x) : -1;
  }
  __device__ void ask(const message *from, message (&sent)[COUNT]) const {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      if (row[k] >= 0) sent[k] = look(from + row[k]);
  }
  __device__ void wait(const message *from, uint32_t tag, message (&sent)[COUNT]) const {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      while (row[k] >= 0 && !sent[k].is(tag)) sent[k] = look(from + row[k]);
  }
  // The next p of the halo: what was asked for, and the rest.
  __device__ void move(const ht_store_view &a, const patch &t, const message *from, uint32_t tag, const message (&sent)[COUNT], double *p,
                       double alpha, double beta) const {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      if (row[k] >= 0) move_far(sent[k], from + row[k], tag, p[first + k * blockDim.x], alpha, beta);
    for (int h = first + COUNT * blockDim.x; h < t.halo; h += blockDim.x) {
      const message *at = from + number(a, t, h);
      move_far(look(at), at, tag, p[h], alpha, beta);
    }
  }
};

// A long halo. Its messages go to shared memory: COUNT of a thread's at a time, by the warps that do not wait for the sums.
template <int COUNT> struct long_halo {
  double2 *const kept;

  __device__ void collect(const ht_store_view &a, const patch &t, const message *from, uint32_t tag, int waiting) const {
    int step = blockDim.x - 32 * waiting;
    for (int begin = threadIdx.x - 32 * waiting; begin < t.halo; begin += COUNT * step) {
      int row[COUNT];
      message sent[COUNT];
#pragma unroll
      for (int k = 0; k < COUNT; k++) row[k] = begin + k * step < t.halo ? halo_row(a, t.halo_begin + begin + k * step) : -1;
#pragma unroll
      for (int k = 0; k < COUNT; k++)
        if (row[k] >= 0) sent[k] = look(from + row[k]);
      for (int missing; (missing = last_missing(row, sent, tag)) >= 0;) {
        while (!look(from + missing).is(tag)) {}
#pragma unroll
        for (int k = 0; k < COUNT; k++)
          if (row[k] >= 0 && !sent[k].is(tag)) sent[k] = look(from + row[k]);
      }
#pragma unroll
      for (int k = 0; k < COUNT; k++)
        if (row[k] >= 0) kept[begin + k * step] = {sent[k].x(), sent[k].y()};
    }
  }
  // A row that is waited for; the others are not asked for again until it is there: who polls keeps the sums waiting, too.
  static __device__ int last_missing(const int (&row)[COUNT], const message (&sent)[COUNT], uint32_t tag) {
    int missing = -1;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      if (row[k] >= 0 && !sent[k].is(tag)) missing = row[k];
    return missing;
  }
  // The next p of the halo.
  __device__ void move(const patch &t, double *p, double alpha, double beta) const {
#pragma unroll 4
    for (int h = threadIdx.x; h < t.halo; h += blockDim.x) p[h] = next_p(kept[h].x, kept[h].y, p[h], alpha, beta);
  }
};

template <int THREADS, int ROWS, int LEVEL, bool BLOCKS, bool LONG> struct engine {
  typedef shape<THREADS, ROWS, LEVEL, BLOCKS, LONG> of;
  const ht_store_view &a;
  const ht_cuda_cg_vectors &v;
  const patch t;
  slice_plan *const plan; // in shared memory
  double *const mixed;    // r and s of the patch, with inverse blocks; what a long halo sent
  const cache<LEVEL> c;
  const bool five; // sums are sent
  bool rounds;
  rows_mail mail;
  typedef typename state_of<ROWS>::type state;
  state own[ROWS];           // one in each of the warp's slices, or none
  held_units<of::HELD> held; // of one row a thread, as
  ahead<LEVEL, of::BOTH_WAYS> stream;
  slice_plan slice; // is its slice
  double sums[HT_SUMS];

  __device__ engine(const ht_store_view &a, const ht_cuda_cg_vectors &v, uint8_t *memory, slice_plan *plan, int room)
      : a(a), v(v), t(a), plan(plan), mixed((double *)memory), c(memory + 2 * sizeof(double) *
                                                                              (BLOCKS ? a.patch_rows
                                                                               : LONG ? t.halo
                                                                                      : 0),
                                                                 (int)a.patch_rows + t.halo, room),
        five(BLOCKS || v.inverse_diagonal), mail{(message *)v.exchange, a.padded, v.epochs[1]} {}

  __device__ int ragged() const { return of::RAGGED ? (int)a.ragged : 0; } // units of a slice
  __device__ int slice_of(int k) const { return threadIdx.x / 32 + k * (blockDim.x / 32); }
  __device__ int planned_row(int k) const { return slice_of(k) < t.slices ? plan[slice_of(k)].row_of(threadIdx.x & 31) : -1; }
  __device__ int row_of(int k) const {
    if constexpr (of::LEAN)
      return planned_row(k);
    else
      return own[k].facts.row();
  }
  // Of a row that is not there, the first one's and its own number.
  __device__ row_facts load_facts(int row) const {
    int64_t i = t.first_row + max(row, 0);
    return {v.x[i], patch_diagonal_at(a, i, LEVEL), v.inverse_diagonal ? v.inverse_diagonal[i] : 0, a.scale[i], row};
  }
  template <class Facts> __device__ double inverse_of_row(const Facts &q) const { return inverse_of(v, q.m, q.scale2()); }
  __device__ void send_row(int row, double z, double ms) const { send(mail.at() + t.first_row + row, z, ms, mail.tag()); }

  // What goes where. At the lower levels what is kept in shared memory has one width. One thread's word for all: `whole`.
  __device__ void make_plan(int room, int &whole) {
    constexpr int WIDEST = LEVEL == LEVEL_64 ? HT_GROUP_RAW : LEVEL == LEVEL_32 ? HT_GROUP_FLOAT : HT_GROUP_FIXED;
    for (int k = threadIdx.x; k < t.slices; k += blockDim.x) {
      ht_slice_info s = a.slice[t.first_slice + k];
      int units = s.units + ragged(), in_registers = min(units, of::HELD), rest = units - in_registers;
      slice_plan p = {(int)(s.unit - t.first_unit)};
      p.held = (uint8_t)in_registers;
      p.streamed = (uint16_t)(s.encoding <= WIDEST ? 0 : rest);
      p.kept = (uint16_t)(rest - p.streamed);
      p.row = (uint16_t)(s.row - t.first_row);
      p.lanes_log2 = s.lanes_log2;
      p.encoding = s.encoding;
      plan[k] = p;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      bool regular = share_out(plan, t.slices, room, ragged());
      for (int k = 0; k < t.slices; k++) regular &= plan[k].streamed == 0 || plan[k].encoding == HT_GROUP_FIXED;
      whole = regular;
    }
    __syncthreads();
    rounds = of::ROUNDS && whole;
  }

  // The block's part of the vectors and of the matrix; and what neighbours need to make their next p, where M is diagonal.
  __device__ void begin(bool backwards) {
    int lane = threadIdx.x & 31;
    for (int k = threadIdx.x / 32; k < t.slices; k += blockDim.x / 32)
      fill_kept(a, t.first_unit, t.first_slice + k, plan[k], c, lane, ragged());
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      auto &q = own[k];
      int row = planned_row(k);
      if constexpr (!of::LEAN) {
        if (ROWS == 1) slice = {};
        if (ROWS == 1 && slice_of(0) < t.slices) slice = plan[slice_of(0)];
        if (of::HELD > 0) fill_held(a, t.first_unit, t.first_slice + min(slice_of(0), t.slices - 1), slice, lane, held);
      }
      row_facts facts = load_facts(row);
      if constexpr (!of::LEAN) q.facts = decltype(q.facts)(facts);
      if (row < 0) continue;
      int64_t i = t.first_row + row;
      q.r = v.r[i];
      q.s = v.s[i];
      c.p[row] = v.p[i];
      double m = inverse_of_row(facts), z = m * q.r, ms = m * q.s;
      if constexpr (of::SENT) q.p = v.p[i], q.z = z, q.ms = as_sent(ms);
      if (!BLOCKS && facts.is_sent()) send_row(row, z, ms);
    }
    for (int h = threadIdx.x; h < t.halo; h += blockDim.x)
      c.p[a.patch_rows + h] = v.p[of::NARROW ? halo_row(a, t.halo_begin + h) : __ldg(a.halo + t.halo_begin + h)];
    if (rounds) stream.begin(a, t.first_unit, plan, t.slices, of::BOTH_WAYS && backwards);
  }

  // Inverse blocks: r and s of the patch go through shared memory to the rows of their blocks. M^-1 r and M^-1 s, their sums, and what
  // neighbours need; where they do not stay in registers each row sends itself what it will need.
  __device__ void precondition_rows() {
    double *mixed_s = mixed + a.patch_rows;
#pragma unroll
    for (int k = 0; k < ROWS; k++)
      if (row_of(k) >= 0) mixed[row_of(k)] = own[k].r, mixed_s[row_of(k)] = own[k].s;
    __syncthreads();
#pragma unroll(of::ROLLED ? 1 : ROWS)
    for (int k = 0; k < ROWS; k++) {
      int row = of::ROLLED ? planned_row(k) : row_of(k); // what is indexed in a loop does not stay in registers
      if (row < 0) continue;
      double scale2;
      if constexpr (of::ROLLED)
        scale2 = scale_squared(a.scale[t.first_row + row] >> 1);
      else
        scale2 = own[k].facts.scale2();
      double r = mixed[row], s = mixed_s[row];
      double2 z = precondition_both(v, t.first_row + row, mixed + row / TILE * TILE, mixed_s + row / TILE * TILE);
      sums[RZ] = fma(r, z.x, sums[RZ]);
      sums[RR] = fma(scale2 * r, r, sums[RR]);
      sums[RMS] = fma(r, z.y, sums[RMS]);
      sums[SMS] = fma(s, z.y, sums[SMS]);
      bool wanted = true;
      if constexpr (of::SENT) own[k].z = z.x, own[k].ms = as_sent(z.y), wanted = own[k].facts.is_sent();
      if (wanted) send_row(row, z.x, z.y);
    }
  }

  // The pending step of r, and its sums where M is diagonal.
  template <class Facts> __device__ void step_row(state &q, const Facts &facts, double alpha) {
    q.r = fma(-alpha, q.s, q.r);
    if (BLOCKS) return;
    double z = inverse_of_row(facts) * q.r;
    if constexpr (of::SENT) q.z = z;
    sums[RZ] = fma(q.r, z, sums[RZ]);
    if (five) sums[RR] = fma(facts.scale2() * q.r, q.r, sums[RR]);
  }

  // A row's next p, its x, and its step of r.
  template <class Facts> __device__ void move_row(state &q, int row, Facts &facts, double alpha, double beta) {
    double p = c.p[row], m = inverse_of_row(facts), z = m * q.r, ms = as_sent(m * q.s);
    if (BLOCKS) {
      message sent = look(mail.at() + t.first_row + row);
      z = sent.x(), ms = sent.y();
    }
    c.p[row] = next_p(z, ms, p, alpha, beta);
    facts.x = fma(alpha, p, facts.x);
    step_row(q, facts, alpha);
  }

  // The next p of the own rows, and x; and r, but for one row a thread, where it has time.
  __device__ void move_rows(double alpha, double beta) {
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      auto &q = own[k];
      int row = q.facts.row();
      if (row < 0) continue;
      if constexpr (of::SENT) {
        q.facts.x = fma(alpha, q.p, q.facts.x);
        c.p[row] = q.p = next_p(q.z, q.ms, q.p, alpha, beta);
      } else {
        move_row(q, row, q.facts, alpha, beta);
      }
    }
  }

  // The same where a row's facts come from memory, FACTS_AHEAD rows ahead.
  __device__ void move_lean_rows(double alpha, double beta) {
    row_facts facts[ROWS];
#pragma unroll
    for (int k = -of::FACTS_AHEAD; k < ROWS; k++) {
      if (k + of::FACTS_AHEAD < ROWS) facts[k + of::FACTS_AHEAD] = load_facts(row_of(k + of::FACTS_AHEAD));
      if (k < 0 || facts[k].row() < 0) continue;
      move_row(own[k], facts[k].row(), facts[k], alpha, beta);
      v.x[t.first_row + facts[k].row()] = facts[k].x;
    }
  }

  __device__ void step_rows(double alpha) {
    if constexpr (of::SENT)
      if (own[0].facts.row() >= 0) step_row(own[0], own[0].facts, alpha);
  }

  // Off-diagonal part of a slice's product, in the first lane of each row.
  __device__ double multiply_slice(int number, const slice_plan &s) {
    int lane = threadIdx.x & 31;
    double sum = 0;
    if (of::HELD > 0) sum = multiply_held(held, s.held, c.p);
    sum = multiply_kept(c, s.at, s.at + s.kept, lane, sum);
    if (of::ROUNDS && rounds)
      sum = stream.multiply(s, a, t.first_unit, plan, t.slices, c.p, sum);
    else if (s.streamed)
      sum = multiply_streamed<LEVEL, of::RAGGED_FAR>(a, t.first_unit, t.first_slice + number, s, lane, c.p, sum);
    for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
    return sum;
  }

  // A row's s, whose off-diagonal part is `sum`, and its sums. Where M is diagonal, also M^-1 s as it is sent, and what neighbours need.
  template <class Facts> __device__ double2 finish_row(double p, double r, const Facts &facts, double sum) {
    double s = fma(facts.d, p, sum);
    sums[PAP] = fma(p, s, sums[PAP]);
    if (BLOCKS) return {s, 0};
    double m = inverse_of_row(facts), ms = m * s;
    sums[RMS] = fma(r, ms, sums[RMS]);
    sums[SMS] = fma(s, ms, sums[SMS]);
    if (facts.is_sent()) send_row(facts.row(), m * r, ms);
    return {s, as_sent(ms)};
  }

  // s = A p of the own rows, and what follows from it.
  __device__ void multiply_rows() {
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      auto &q = own[k];
      if (slice_of(k) >= t.slices) continue;
      double sum = multiply_slice(slice_of(k), ROWS == 1 ? slice : plan[slice_of(k)]);
      if (q.facts.row() < 0) continue;
      if constexpr (of::SENT) {
        double2 both = finish_row(q.p, q.r, q.facts, sum);
        q.s = both.x, q.ms = both.y;
      } else {
        q.s = finish_row(c.p[q.facts.row()], q.r, q.facts, sum).x;
      }
    }
  }

  // In a loop; what is indexed does not stay in registers. Where a row's facts come from memory they are on their way during its product.
  __device__ void multiply_rolled(bool backwards) {
    int warps = blockDim.x / 32, count = (t.slices - slice_of(0) + warps - 1) / warps;
#pragma unroll 1
    for (int n = 0; of::LEAN ? n < ROWS && slice_of(n) < t.slices : n < count; n++) { // either in the fewest registers
      int k = of::BOTH_WAYS && backwards ? count - 1 - n : n;
      const slice_plan &its = plan[slice_of(k)];
      row_facts facts;
      if constexpr (of::LEAN) facts = load_facts(its.row_of(threadIdx.x & 31));
      double sum = multiply_slice(slice_of(k), its);
      if constexpr (of::LEAN) {
        double r = 0;
#pragma unroll
        for (int j = 0; j < ROWS; j++)
          if (j == k) r = own[j].r;
        if (facts.row() >= 0) sum = finish_row(c.p[facts.row()], r, facts, sum).x;
      }
#pragma unroll
      for (int j = 0; j < ROWS; j++)
        if (j == k) own[j].s = sum;
    }
    if constexpr (!of::LEAN) {
#pragma unroll
      for (int k = 0; k < ROWS; k++) {
        auto &q = own[k];
        if (q.facts.row() >= 0) q.s = finish_row(c.p[q.facts.row()], q.r, q.facts, q.s).x;
      }
    }
  }

  // The next p of the own rows.
  __device__ void move(double alpha, double beta) {
    for (int k = 0; k < HT_SUMS; k++) sums[k] = 0;
    if constexpr (of::LEAN)
      move_lean_rows(alpha, beta);
    else
      move_rows(alpha, beta);
  }

  // Once all of the next p is there.
  __device__ void multiply(double alpha, bool backwards) {
    step_rows(alpha);
    if constexpr (of::ROLLED)
      multiply_rolled(backwards);
    else
      multiply_rows();
    if (BLOCKS) precondition_rows();
  }

  __device__ void end() const {
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      const auto &q = own[k];
      int row = row_of(k);
      if (row < 0) continue;
      int64_t i = t.first_row + row;
      if constexpr (!of::LEAN) v.x[i] = q.facts.x;
      v.r[i] = q.r;
      v.s[i] = q.s;
      v.p[i] = c.p[row];
    }
  }
};

// What the host gave, and what is the block's; its rows and its part of the matrix.
template <class Engine> __device__ inline void begin_run(Engine &e, block_state &shared, limits &limit, int &whole, int room) {
  if (threadIdx.x == 0) {
    shared.scalars = *e.v.scalars;
    limit = limits_of(shared.scalars);
  }
  if (threadIdx.x < MOST_BLOCKS / 32 * MESSAGES) (&shared.part[0][0])[threadIdx.x] = {0, 0};
  e.make_plan(room, whole);
  e.begin(shared.scalars.iteration & 1);
}

// Vectors and scalars to where the next run finds them.
template <class Engine> __device__ inline void end_run(const Engine &e, const block_state &shared, const sums_mail &mail) {
  e.end();
  if (blockIdx.x) return;
  if (threadIdx.x == 0) {
    *e.v.scalars = shared.scalars;
    e.v.epochs[0] = mail.epoch;
    e.v.epochs[1] = e.mail.epoch + 1;
  }
  tell(e.v, shared.scalars);
}

template <int THREADS, int ROWS, int LEVEL, bool BLOCKS, bool LONG>
__device__ void run_persistent(const ht_store_view &a, const ht_cuda_cg_vectors &v, int room) {
  typedef shape<THREADS, ROWS, LEVEL, BLOCKS, LONG> of;
  extern __shared__ __align__(16) uint8_t memory[];
  if (of::RAGGED) asm volatile("" : "+r"(room)); // or what lies behind so many units is looked for anew in every iteration
  __shared__ block_state shared;
  __shared__ slice_plan plan[HT_PATCH_SLICES_MOST];
  __shared__ limits limit;
  __shared__ int whole;
  int warp = threadIdx.x / 32, waiting = min((int)gridDim.x + 31, (int)blockDim.x) / 32; // warps that wait for sums
  engine<THREADS, ROWS, LEVEL, BLOCKS, LONG> e(a, v, memory, plan, room);
  sums_mail mail(v.sums, v.epochs[0], e.five);
  begin_run(e, shared, limit, whole, room);
  if (BLOCKS) e.precondition_rows();
  const far_rows<of::FAR, of::NARROW> far(a, e.t);
  const long_halo<of::TOGETHER> distant = {(double2 *)e.mixed};
  __syncthreads();

  for (bool first = true;; first = false) { // the host gave the first step
    const message *from = e.mail.at();
    uint32_t tag = e.mail.tag();
    message sent[of::FAR];
    if (!LONG) far.ask(from, sent);
    if (LONG && warp >= waiting) distant.collect(a, e.t, from, tag, waiting);
    if (!first) {
      if (warp < waiting) receive_sums(shared, mail, waiting);
      __syncthreads();
      if (warp == 0) take_step(v, shared, limit, e.five);
    }
    if (!LONG) far.wait(from, tag, sent);
    if (LONG || !first) __syncthreads();
    if (!first) {
      mail.epoch++;
      if (shared.scalars.event != CONTINUE) break;
      if (blockIdx.x == 0 && threadIdx.x == blockDim.x - 1) record_plain(v, shared);
    }
    bool backwards = shared.scalars.iteration & 1;
    double alpha = shared.scalars.alpha, beta = shared.scalars.beta, *far_p = e.c.p + a.patch_rows;
    e.move(alpha, beta);
    if (LONG)
      distant.move(e.t, far_p, alpha, beta);
    else
      far.move(a, e.t, from, tag, sent, far_p, alpha, beta);
    e.mail.epoch++;
    __syncthreads();
    e.multiply(alpha, backwards);
    send_sums(shared, e.sums, mail);
    if (of::BOTH_WAYS && e.rounds) e.stream.prefetch(a, e.t.first_unit);
  }
  end_run(e, shared, mail);
}

} // namespace ht

// name: of the preconditioner, if any, threads at most, rows a thread and bits.
#define HT_PERSISTENT(threads, rows, level, blocks, is_long, name)                                                                         \
  extern "C" __global__ void __launch_bounds__(threads, 1)                                                                                 \
      ht_cg_persistent_##name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int room) {           \
    ht::run_persistent<threads, rows, level, blocks, is_long>(a, v, room);                                                                 \
  }
#define HT_PERSISTENT_ALL(level, blocks, name, bits)                                                                                       \
  HT_PERSISTENT(512, 1, level, blocks, false, name##1_##bits)                                                                              \
  HT_PERSISTENT(640, 1, level, blocks, false, name##many_1_##bits)                                                                         \
  HT_PERSISTENT(512, 2, level, blocks, false, name##2_##bits)                                                                              \
  HT_PERSISTENT(512, 4, level, blocks, false, name##4_##bits)                                                                              \
  HT_PERSISTENT(512, 8, level, blocks, false, name##8_##bits)
