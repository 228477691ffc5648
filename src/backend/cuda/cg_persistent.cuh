// The persistent engine: one block a multiprocessor, one patch of rows a block, one grid barrier an iteration. A block keeps its part of
// r and s in registers, of p and as much of the matrix as fits in shared memory; of its neighbours' rows it reads those that its own touch,
// its halo. CG in predict-and-recompute form (Chen and Carson 2020): rows publish M^-1 r, M^-1 s and p before the barrier, and whoever
// needs the next p of a neighbour makes it from them after the barrier, when alpha and beta are known. With inverse blocks these take a
// vector in shared memory and two barriers of the block more.
//
// The barrier is a counter; the sums of the blocks are read by all after it, and added in the same order by all. So all blocks agree on
// every scalar, and the bits do not depend on timing. SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/precondition.cuh"
#include "backend/cuda/product.cuh"

namespace ht {

enum { MOST_THREADS = 640, MOST_BLOCKS = 160, SUMS_PADDED = 8 };

// How the block's shared memory is used.
template <int LEVEL> struct cache {
  static constexpr int value_bytes = LEVEL == LEVEL_64 ? 16 : LEVEL == LEVEL_32 ? 8 : 4; // two a lane
  static constexpr int unit_bytes = (value_bytes + 4) * HT_WARP + 8;
  double *p;       // own rows, then the halo
  uint8_t *values; // decoded doubles, 32-bit sums of head and mid, or heads
  uint32_t *indices;
  double *scales; // a group each
  int units;      // that are kept: the patch's first ones

  __device__ cache(uint8_t *memory, int columns, int kept) : units(kept) {
    p = (double *)memory;
    scales = p + ((columns + 1) & ~1);
    values = (uint8_t *)(scales + ((kept + 1) & ~1));
    indices = (uint32_t *)(values + (int64_t)kept * value_bytes * HT_WARP);
  }
};

struct shared_vector {
  typedef double number;
  static constexpr bool short_sums = false;
  const double *at;
  __device__ double operator()(int, uint32_t index) const { return at[index]; }
};

// Keep a group in shared memory, unit by unit: at 16 bits only FIXED ones, at 32 bits FLOAT ones too; the kept ones end before the first
// other one.
template <int LEVEL, int UNITS>
__device__ inline void keep(const ht_store_view &a, const cache<LEVEL> &c, int64_t first, int unit, int lane) {
  ht_group_info info = info_of(a, first + unit);
  loaded v;
  load_index<UNITS>(v, a, first + unit, lane);
  load<UNITS>(v, a, first + unit, lane, LEVEL);
  int encoding = encoding_of(info);
  double scale = scale_of(info, LEVEL);
  for (int j = 0; j < UNITS && unit + j < c.units; j++) {
    int at = (unit + j) * HT_WARP + lane;
    if (LEVEL == LEVEL_64) {
      pair d = decode(v, j, encoding, LEVEL_64);
      ((double2 *)c.values)[at] = {d.first * scale, d.second * scale};
    } else if (LEVEL == LEVEL_32) {
      ((int2 *)c.values)[at] = {join_first(encoding, v.head[j], v.mid[j]), join_second(encoding, v.head[j], v.mid[j])};
    } else {
      ((uint32_t *)c.values)[at] = v.head[j];
    }
    c.indices[at] = v.index[j];
    if (lane == 0) c.scales[unit + j] = encoding == HT_GROUP_FLOAT ? 0 : scale; // 0: the values are FP32 bits
  }
}

template <int LEVEL> __device__ inline double multiply_kept(const cache<LEVEL> &c, int begin, int end, int lane) {
  double sum = 0;
#pragma unroll 4
  for (int j = begin; j < end; j++) {
    uint32_t index = c.indices[j * HT_WARP + lane];
    double p0 = c.p[index & 0xffffu], p1 = c.p[index >> 16];
    if (LEVEL == LEVEL_64) {
      double2 v = ((const double2 *)c.values)[j * HT_WARP + lane];
      sum = fma(v.y, p1, fma(v.x, p0, sum));
    } else if (LEVEL == LEVEL_32) {
      int2 v = ((const int2 *)c.values)[j * HT_WARP + lane];
      double scale = c.scales[j], f0 = scale ? (double)v.x : (double)__int_as_float(v.x),
             f1 = scale ? (double)v.y : (double)__int_as_float(v.y);
      sum = fma(scale ? scale : 1, fma(f1, p1, f0 * p0), sum);
    } else {
      uint32_t v = ((const uint32_t *)c.values)[j * HT_WARP + lane];
      sum = fma(c.scales[j], fma((double)signed_second(v), p1, (double)signed_first(v) * p0), sum);
    }
  }
  return sum;
}

struct slice_rest { // the slice's groups, from the patch's first on
  int begin, end;
  uint8_t lanes_log2, encoding;
};

// The units begin..end-1 of a slice, from memory. Apart from the rest, whose registers it would take; small problems never come here.
template <int LEVEL>
__device__ __noinline__ double multiply_streamed(const ht_store_view &a, int64_t begin, int64_t end, int encoding, int plain,
                                                 const double *p) {
  int lane = threadIdx.x & 31;
  if (plain && encoding == HT_GROUP_FIXED)
    return add_units<LEVEL, false>(a, begin, end, lane, indices{0}, nullptr, LEVEL, shared_vector{p}, nullptr);
  return add_units<BY_GROUP, true>(a, begin, end, lane, indices{0}, nullptr, LEVEL, shared_vector{p}, nullptr);
}

// Off-diagonal part of the slice's product, in the first lane of each row.
template <int LEVEL>
__device__ inline double multiply_patch_slice(const ht_store_view &a, const cache<LEVEL> &c, int64_t first, const slice_rest &s, int lane,
                                              int plain) {
  int kept = min(max(c.units, s.begin), s.end);
  if (kept < s.end) kept -= (kept - s.begin) & 1; // a group is kept or not
  double sum = multiply_kept(c, s.begin, kept, lane);
  if (kept < s.end) sum += multiply_streamed<LEVEL>(a, first + kept, first + s.end, s.encoding, plain, c.p);
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) sum += __shfl_down_sync(~0u, sum, width);
  return sum;
}

// ---- sums and barrier ----

// Eight sums over the warp at once: lane l gets value l / 4 (its bits 4, 3, 2), in 9 exchanges instead of 40.
__device__ inline double transpose_sum(double v[SUMS_PADDED], int lane) {
#pragma unroll
  for (int width = 16, count = 4; count > 0; width >>= 1, count >>= 1) {
    bool high = lane & width;
#pragma unroll
    for (int k = 0; k < count; k++) {
      double keep = high ? v[k + count] : v[k], give = high ? v[k] : v[k + count];
      v[k] = keep + __shfl_xor_sync(~0u, give, width);
    }
  }
  v[0] += __shfl_xor_sync(~0u, v[0], 2);
  return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

__device__ inline void arrive_and_wait(uint32_t *counter, uint32_t target) {
  uint32_t seen;
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  while (seen < target);
}

struct exchange_row {
  double z, ms, p;
};

__device__ inline exchange_row read_row(const double *from) {
  exchange_row v;
  asm volatile("ld.global.cg.v2.f64 {%0, %1}, [%2];" : "=d"(v.z), "=d"(v.ms) : "l"(from) : "memory");
  asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(v.p) : "l"(from + 2) : "memory");
  return v;
}

__device__ inline void write_row(double *to, double z, double ms, double p) {
  asm volatile("st.global.cg.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(z), "d"(ms) : "memory");
  asm volatile("st.global.cg.f64 [%0], %1;" ::"l"(to + 2), "d"(p) : "memory");
}

__device__ inline void write_entry(double *to, double v) { asm volatile("st.global.cg.f64 [%0], %1;" ::"l"(to), "d"(v) : "memory"); }

struct block_state {
  double warp[SUMS_PADDED][MOST_THREADS / 32];
  ht_cuda_cg_scalars scalars;
  double rr; // of a plain iteration
  int plain;
};

// The block's sums to `part`, and the barrier. All that the block published before is seen by who passes.
__device__ inline void reduce_and_wait(block_state &shared, double v[SUMS_PADDED], double *part, uint32_t *counter, uint32_t target) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  double mine = transpose_sum(v, lane);
  if ((lane & 3) == 0) shared.warp[lane / 4][warp] = mine;
  __syncthreads();
  if (warp == 0) {
    double w[SUMS_PADDED];
#pragma unroll
    for (int k = 0; k < SUMS_PADDED; k++) w[k] = k < HT_SUMS && lane < warps ? shared.warp[k][lane] : 0;
    double sum = transpose_sum(w, lane);
    if ((lane & 3) == 0 && lane / 4 < HT_SUMS) __stcg(&part[lane / 4 * MOST_BLOCKS + blockIdx.x], sum);
    __syncwarp();
    if (lane == 0) arrive_and_wait(counter, target);
  }
  __syncthreads();
}

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

// The step from the sums of all blocks, after the barrier, by one warp: divisions by every thread would take longer than the wait. Whatever
// is not plainly an iteration like the others (also a comparison with a NaN) goes the long way.
__device__ inline void take_step(const ht_cuda_cg_vectors &v, block_state &shared, const limits &limit, const double *part) {
  ht_cuda_cg_scalars &state = shared.scalars;
  int lane = threadIdx.x & 31;
  double sum[SUMS_PADDED];
#pragma unroll
  for (int k = 0; k < SUMS_PADDED; k++) {
    sum[k] = 0;
    if (k >= HT_SUMS) continue;
    double got[MOST_BLOCKS / 32];
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS / 32; i++) got[i] = lane + 32 * i < gridDim.x ? __ldcg(&part[k * MOST_BLOCKS + lane + 32 * i]) : 0;
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS / 32; i++) sum[k] += got[i];
  }
  double mine = transpose_sum(sum, lane), total[HT_SUMS];
#pragma unroll
  for (int k = 0; k < HT_SUMS; k++) total[k] = __shfl_sync(~0u, mine, 4 * k);
  if (lane) return;
  step_lengths next = lengths_of(total);
  double rr = total[RR];
  shared.plain = rr > limit.goal2 && rr > limit.replace2 && rr <= limit.grow2 && total[PAP] > 0 && next.predicted > 0 &&
                 isfinite(next.alpha) && isfinite(next.beta) && state.iteration < limit.stop;
  if (shared.plain) {
    state.alpha = next.alpha;
    state.beta = next.beta;
    state.iteration++;
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

// What the engine needs of a row and of the slice it is in. The first part changes and stays in registers; the rest is read again in every
// iteration where a thread has many rows.
struct row_state {
  double r, s;
  int row; // in the patch; -1: none
};
struct row_rest {
  double x, d;
  float m;   // M^-1 where it is Jacobi's
  int16_t e; // of the row's scale
  bool publish;
};
struct row_weights {
  double m, w; // of z = M^-1 r where M is diagonal, and of the norm
};

__device__ inline row_weights weights_of(const row_rest &q, const ht_cuda_cg_vectors &v) {
  double w = scale_squared(q.e);
  return {inverse_of(v, q.m, w), w};
}

template <int LEVEL> __device__ inline row_rest load_rest(const ht_store_view &a, const ht_cuda_cg_vectors &v, int64_t i) {
  return {v.x[i], diagonal_at(a, i, LEVEL), v.inverse_diagonal ? v.inverse_diagonal[i] : 0, a.exponent[i], (bool)a.boundary[i]};
}

__device__ inline slice_rest load_slice(const ht_store_view &a, int slice, int64_t first_unit) {
  ht_slice_info info = a.slice[slice];
  int begin = (int)(info.unit - first_unit);
  return {begin, begin + info.units, info.lanes_log2, info.encoding};
}

// What a block works on: its rows, slices, units and halo.
struct patch {
  int64_t first_row, first_unit;
  int first_slice, slices, units, halo_begin, halo;
};

__device__ inline patch patch_of(const ht_store_view &a) {
  patch t;
  t.first_row = blockIdx.x * a.patch_rows;
  t.first_slice = a.patch_slice[blockIdx.x];
  t.slices = a.patch_slice[blockIdx.x + 1] - t.first_slice;
  t.halo_begin = a.halo_start[blockIdx.x];
  t.halo = a.halo_start[blockIdx.x + 1] - t.halo_begin;
  t.first_unit = a.slice[t.first_slice].unit;
  t.units = (int)(a.slice[t.first_slice + t.slices].unit - t.first_unit);
  return t;
}

// Decode the patch's first groups into shared memory.
template <int LEVEL> __device__ inline void fill_cache(const ht_store_view &a, const patch &t, cache<LEVEL> &c) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (LEVEL < LEVEL_64) // what is kept has one width
    for (int k = 0; k < t.slices; k++)
      if (a.slice[t.first_slice + k].encoding > (LEVEL == LEVEL_16 ? HT_GROUP_FIXED : HT_GROUP_FLOAT)) {
        c.units = min(c.units, (int)(a.slice[t.first_slice + k].unit - t.first_unit));
        break;
      }
  for (int k = warp; k < t.slices; k += warps) {
    slice_rest s = load_slice(a, t.first_slice + k, t.first_unit);
    for (int unit = s.begin; unit < s.end && unit < c.units; unit += 2) {
      if (unit + 1 < s.end)
        keep<LEVEL, 2>(a, c, t.first_unit, unit, lane);
      else
        keep<LEVEL, 1>(a, c, t.first_unit, unit, lane);
    }
  }
}

// The rows of a thread: one in each of its warp's slices, or none.
template <int ROWS> struct thread_rows {
  static constexpr bool KEEP = ROWS <= 4; // all of a row in registers
  row_state own[ROWS];
  row_rest rest[KEEP ? ROWS : 1];
  slice_rest slice[KEEP ? ROWS : 1];
};

template <int ROWS, int LEVEL>
__device__ inline row_rest rest_of(const thread_rows<ROWS> &rows, int k, const ht_store_view &a, const ht_cuda_cg_vectors &v,
                                   const patch &t) {
  return rows.KEEP ? rows.rest[k] : load_rest<LEVEL>(a, v, t.first_row + rows.own[k].row);
}

// Their part of the vectors; and what neighbours need to make their next p, where M is diagonal.
template <int ROWS, int LEVEL, bool BLOCKS>
__device__ inline void begin_rows(thread_rows<ROWS> &rows, const ht_store_view &a, const ht_cuda_cg_vectors &v, const patch &t, double *p) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    int slice = warp + k * warps;
    row_state &q = rows.own[k];
    q.row = -1;
    if (rows.KEEP) rows.slice[k] = {0, 0, 0, 0};
    if (slice >= t.slices) continue;
    slice_rest groups_of = load_slice(a, t.first_slice + slice, t.first_unit);
    if (rows.KEEP) rows.slice[k] = groups_of;
    if (lane & (1 << groups_of.lanes_log2) - 1) continue;
    int64_t i = a.slice[t.first_slice + slice].row + (lane >> groups_of.lanes_log2);
    row_rest rest = load_rest<LEVEL>(a, v, i);
    if (rows.KEEP) rows.rest[k] = rest;
    q.row = (int)(i - t.first_row);
    q.r = v.r[i];
    q.s = v.s[i];
    p[q.row] = v.p[i];
    if (BLOCKS || !rest.publish) continue;
    row_weights weights = weights_of(rest, v);
    write_row(v.exchange[0] + 4 * i, weights.m * q.r, weights.m * q.s, v.p[i]);
  }
}

// ---- inverse blocks: a vector of the patch goes through shared memory, `mixed`, to the rows of its blocks ----

// M^-1 of that vector in one row.
__device__ inline double precondition_mixed(const ht_cuda_cg_vectors &v, const patch &t, int row, const double *mixed) {
  return precondition_row(v, t.first_row + row, mixed + row / TILE * TILE);
}

template <int ROWS, int LEVEL>
__device__ inline void publish_first(const thread_rows<ROWS> &rows, const ht_store_view &a, const ht_cuda_cg_vectors &v, const patch &t,
                                     const double *p, double *mixed) {
  for (int part = 0; part < 2; part++) {
#pragma unroll
    for (int k = 0; k < ROWS; k++)
      if (rows.own[k].row >= 0) mixed[rows.own[k].row] = part ? rows.own[k].s : rows.own[k].r;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      const row_state &q = rows.own[k];
      if (q.row < 0 || !rest_of<ROWS, LEVEL>(rows, k, a, v, t).publish) continue;
      double *to = v.exchange[0] + 4 * (t.first_row + q.row), z = precondition_mixed(v, t, q.row, mixed);
      if (part)
        write_entry(to + 1, z);
      else
        write_entry(to, z), write_entry(to + 2, p[q.row]);
    }
    __syncthreads();
  }
}

// M^-1 s and its sums, after the product.
template <int ROWS, int LEVEL>
__device__ inline void precondition_rows(const thread_rows<ROWS> &rows, const ht_store_view &a, const ht_cuda_cg_vectors &v, const patch &t,
                                         double *to, double *mixed, double sums[SUMS_PADDED]) {
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    if (rows.own[k].row >= 0) mixed[rows.own[k].row] = rows.own[k].s;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    const row_state &q = rows.own[k];
    if (q.row < 0) continue;
    double ms = precondition_mixed(v, t, q.row, mixed);
    sums[RMS] = fma(q.r, ms, sums[RMS]);
    sums[SMS] = fma(q.s, ms, sums[SMS]);
    if (rest_of<ROWS, LEVEL>(rows, k, a, v, t).publish) write_entry(to + 4 * (t.first_row + q.row) + 1, ms);
  }
}

// ---- an iteration ----

// The pending step and the next p of the own rows. With BLOCKS neighbours get M^-1 r and p from here.
template <int ROWS, int LEVEL, bool BLOCKS>
__device__ inline void move_rows(thread_rows<ROWS> &rows, const ht_store_view &a, const ht_cuda_cg_vectors &v, const patch &t, double alpha,
                                 double beta, double *own_p, double *to, double *mixed, double sums[SUMS_PADDED]) {
  if (BLOCKS) {
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      row_state &q = rows.own[k];
      if (q.row < 0) continue;
      q.r = fma(-alpha, q.s, q.r);
      mixed[q.row] = q.r;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    row_state &q = rows.own[k];
    if (q.row < 0) continue;
    row_rest rest = rest_of<ROWS, LEVEL>(rows, k, a, v, t);
    row_weights weights = weights_of(rest, v);
    double p = own_p[q.row], x = fma(alpha, p, rest.x);
    if (rows.KEEP)
      rows.rest[k].x = x;
    else
      v.x[t.first_row + q.row] = x;
    if (!BLOCKS) q.r = fma(-alpha, q.s, q.r);
    double z = BLOCKS ? precondition_mixed(v, t, q.row, mixed) : weights.m * q.r;
    sums[RZ] = fma(q.r, z, sums[RZ]);
    sums[RR] = fma(weights.w * q.r, q.r, sums[RR]);
    own_p[q.row] = fma(beta, p, z);
    if (!BLOCKS || !rest.publish) continue;
    write_entry(to + 4 * (t.first_row + q.row), z);
    write_entry(to + 4 * (t.first_row + q.row) + 2, own_p[q.row]);
  }
}

// s = A p of the own rows, and the sums. Where M is diagonal, also M^-1 s, and all that neighbours need.
template <int ROWS, int LEVEL, bool BLOCKS>
__device__ inline void multiply_rows(thread_rows<ROWS> &rows, const ht_store_view &a, const ht_cuda_cg_vectors &v, const patch &t,
                                     const cache<LEVEL> &c, int plain, double *to, double sums[SUMS_PADDED]) {
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    row_state &q = rows.own[k];
    if (warp + k * warps >= t.slices) continue;
    slice_rest groups_of = rows.KEEP ? rows.slice[k] : load_slice(a, t.first_slice + warp + k * warps, t.first_unit);
    double sum = multiply_patch_slice<LEVEL>(a, c, t.first_unit, groups_of, lane, plain);
    if (q.row < 0) continue;
    row_rest rest = rest_of<ROWS, LEVEL>(rows, k, a, v, t);
    row_weights weights = weights_of(rest, v);
    double p = c.p[q.row];
    q.s = fma(rest.d, p, sum);
    sums[PAP] = fma(p, q.s, sums[PAP]);
    if (BLOCKS) continue;
    double ms = weights.m * q.s;
    sums[RMS] = fma(q.r, ms, sums[RMS]);
    sums[SMS] = fma(q.s, ms, sums[SMS]);
    if (rest.publish) write_row(to + 4 * (t.first_row + q.row), weights.m * q.r, ms, p);
  }
}

template <int ROWS>
__device__ inline void end_rows(const thread_rows<ROWS> &rows, const ht_cuda_cg_vectors &v, const patch &t, const double *p) {
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    const row_state &q = rows.own[k];
    if (q.row < 0) continue;
    int64_t i = t.first_row + q.row;
    if (rows.KEEP) v.x[i] = rows.rest[k].x;
    v.r[i] = q.r;
    v.s[i] = q.s;
    v.p[i] = p[q.row];
  }
}

// Rows of the halo: the first HELD of a thread are asked for before alpha and beta are known.
__device__ inline exchange_row ask(const ht_store_view &a, const patch &t, const double *from, int h) {
  return read_row(from + 4 * (int64_t)__ldg(a.halo + t.halo_begin + h));
}
__device__ inline double next_p(const exchange_row &q, double alpha, double beta) { return fma(beta, q.p, fma(-alpha, q.ms, q.z)); }

template <int ROWS, int LEVEL, bool BLOCKS>
__device__ void run_persistent(const ht_store_view &a, const ht_cuda_cg_vectors &v, int kept, int plain) {
  constexpr int HELD = ROWS <= 4 ? 2 : 1;
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ block_state shared;
  int warp = threadIdx.x / 32;
  patch t = patch_of(a);
  double *mixed = (double *)memory; // with BLOCKS only
  cache<LEVEL> c(memory + (BLOCKS ? a.patch_rows * sizeof *mixed : 0), (int)a.patch_rows + t.halo, min(kept, t.units));
  thread_rows<ROWS> rows;
  fill_cache(a, t, c);
  if (threadIdx.x == 0) shared.scalars = *v.scalars;
  begin_rows<ROWS, LEVEL, BLOCKS>(rows, a, v, t, c.p);
  if (BLOCKS) publish_first<ROWS, LEVEL>(rows, a, v, t, c.p, mixed);
  uint32_t target = gridDim.x;
  __syncthreads();
  limits limit = limits_of(shared.scalars);
  if (threadIdx.x == 0) arrive_and_wait(v.barrier, target);
  __syncthreads();

  for (int parity = 0;; parity ^= 1) {
    const double *from = v.exchange[parity];
    double *to = v.exchange[parity ^ 1]; // its last readers have passed the barrier
    exchange_row far[HELD];              // the sums of the iteration before arrive meanwhile
#pragma unroll
    for (int k = 0; k < HELD; k++)
      if (threadIdx.x + k * blockDim.x < t.halo) far[k] = ask(a, t, from, threadIdx.x + k * blockDim.x);
    if (target > gridDim.x) { // not before the first iteration, whose step the host gave
      if (warp == 0) take_step(v, shared, limit, v.sums + (parity ^ 1) * SUMS_PADDED * MOST_BLOCKS);
      __syncthreads();
      if (shared.scalars.event != CONTINUE) break;
      if (blockIdx.x == 0 && threadIdx.x == blockDim.x - 1) record_plain(v, shared);
    }
    double alpha = shared.scalars.alpha, beta = shared.scalars.beta, sums[SUMS_PADDED] = {};
    move_rows<ROWS, LEVEL, BLOCKS>(rows, a, v, t, alpha, beta, c.p, to, mixed, sums);
    double *halo_p = c.p + a.patch_rows;
#pragma unroll
    for (int k = 0; k < HELD; k++)
      if (threadIdx.x + k * blockDim.x < t.halo) halo_p[threadIdx.x + k * blockDim.x] = next_p(far[k], alpha, beta);
    for (int h = threadIdx.x + HELD * blockDim.x; h < t.halo; h += blockDim.x) halo_p[h] = next_p(ask(a, t, from, h), alpha, beta);
    __syncthreads();
    multiply_rows<ROWS, LEVEL, BLOCKS>(rows, a, v, t, c, plain, to, sums);
    if (BLOCKS) precondition_rows<ROWS, LEVEL>(rows, a, v, t, to, mixed, sums);
    target += gridDim.x;
    reduce_and_wait(shared, sums, v.sums + parity * SUMS_PADDED * MOST_BLOCKS, v.barrier, target);
  }
  end_rows(rows, v, t, c.p);
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) *v.scalars = shared.scalars;
    tell(v, shared.scalars);
  }
}

} // namespace ht

// name: of the preconditioner, if any, rows a thread and bits.
#define HT_PERSISTENT(name, rows, level, blocks)                                                                                           \
  extern "C" __global__ void __launch_bounds__(rows == 1 ? 640 : 512, 1) ht_cg_persistent_##name(                                          \
      const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int kept, int plain) {                        \
    ht::run_persistent<rows, level, blocks>(a, v, kept, plain);                                                                            \
  }
