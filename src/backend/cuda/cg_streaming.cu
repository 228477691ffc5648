// The streaming engine: two kernels an iteration, replayed in a graph. The update takes the pending step and makes the new direction; the
// product (cg_product.cu) multiplies with it, and its last block draws the conclusions. Nothing is read by the host but the event that ends
// a run. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_streaming.cuh"
#include "backend/cuda/precondition.cuh"

using namespace ht;

namespace {

struct look {
  double norm2, caller_norm2, caller_max; // of p in a block
};

__device__ inline look look_at(double2 p, short2 e) {
  double a = p.x * __hiloint2double((1023 - e.x) << 20, 0), b = p.y * __hiloint2double((1023 - e.y) << 20, 0);
  return {warp_sum(p.x * p.x + p.y * p.y), warp_sum(a * a + b * b), warp_largest(fmax(fabs(a), fabs(b)))};
}

} // namespace

// The direction, in pairs: FP64, or FP32 where products are read at 16 or 32 bits. Rounded before it is used, so that x and r take the same
// step; what the rounding costs is a little conjugacy, less than the matrix's own.
template <bool NARROW> struct direction;
template <> struct direction<false> {
  double2 *at;
  __device__ direction(const ht_cuda_cg_vectors &v, int64_t) : at((double2 *)v.p) {}
  __device__ double2 load(int64_t i) const { return at[i]; }
  __device__ double2 store(int64_t i, double2 p) const { return at[i] = p; }
};
template <> struct direction<true> {
  float2 *at;
  __device__ direction(const ht_cuda_cg_vectors &v, int64_t iteration) : at((float2 *)v.narrow[iteration & 1]) {}
  __device__ double2 load(int64_t i) const { return {(double)at[i].x, (double)at[i].y}; }
  __device__ double2 store(int64_t i, double2 p) const {
    at[i] = {(float)p.x, (float)p.y};
    return load(i);
  }
};

// M^-1 of the two rows that a lane has of a column block, by inverse blocks.
__device__ inline double2 precondition_tile(const ht_cuda_cg_vectors &v, int64_t column_block, int lane, double2 r) {
  __shared__ __align__(16) double tiles[WARPS][TILE];
  double *tile = tiles[threadIdx.x / 32];
  __syncwarp(); // the tile before this one has been read
  ((double2 *)tile)[lane] = r;
  __syncwarp();
  return precondition_pair(v, column_block, lane, tile);
}

// x is read and written in every second iteration only: a step that is put off is made up for in the next. The p of the step before is
// still there where directions are narrow, which take turns in two places; else it is had from p = M^-1 r + beta p_before: `conclude` puts
// a step off where beta is not small, so that the division loses two digits at most; x is not read by the iteration, and its last digits
// are the certificate's business.
enum { LATER, NOW, BOTH }; // what becomes of this iteration's x += alpha p

__device__ inline double2 weights_at(const ht_cuda_cg_vectors &v, int64_t i, double2 w) {
  if (!v.inverse_diagonal) return w;
  float2 narrow = ((const float2 *)v.inverse_diagonal)[i];
  return {(double)narrow.x, (double)narrow.y};
}

// The step that the last iteration put off, in the variables of the one that follows.
template <bool NARROW>
__device__ inline double2 owed_direction(const ht_cuda_cg_vectors &v, int64_t iteration, int64_t i, double2 p, double2 m, double2 r,
                                         double beta) {
  if (NARROW) return direction<true>(v, iteration).load(i);
  return {(p.x - m.x * r.x) / beta, (p.y - m.y * r.y) / beta};
}

// x += alpha p, r -= alpha s, p = M^-1 r + beta p; a warp takes a column block, a lane two rows. With BLOCKS no step of x is put off: to
// make up for it would take M^-1 of a second vector.
template <bool NARROW, bool BLOCKS> __device__ inline void update(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride) {
  const ht_cuda_cg_scalars &c = *v.scalars;
  wait_for_the_one_before();
  if (c.event != CONTINUE) return;
  let_the_next_begin();
  int lane = threadIdx.x & 31;
  double alpha = c.alpha, beta = c.beta, rz = 0, rr = 0, pp = 0, predicted_16 = 0, predicted_32 = 0;
  bool looking = c.iteration >= c.decide_at;
  int which = BLOCKS ? NOW : c.owed ? BOTH : c.later ? LATER : NOW;
  double owed_alpha = c.owed_alpha, owed_beta = c.owed_beta;
  direction<NARROW> present(v, c.iteration - 1), next(v, c.iteration);
  for (int64_t block = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; block < a.blocks; block += (int64_t)gridDim.x * WARPS) {
    int64_t i = block * 32 + lane; // in pairs
    double2 x = {0, 0}, r = ((double2 *)v.r)[i], p = present.load(i), s = ((double2 *)v.s)[i];
    if (which != LATER) x = ((double2 *)v.x)[i];
    short2 e = ((const short2 *)a.exponent)[i];
    double2 w = {scale_squared(e.x), scale_squared(e.y)}, m = weights_at(v, i, w);
    if (which == BOTH) {
      double2 before = owed_direction<NARROW>(v, c.iteration, i, p, m, r, owed_beta);
      x.x = fma(owed_alpha, before.x, x.x), x.y = fma(owed_alpha, before.y, x.y);
    }
    x.x = fma(alpha, p.x, x.x), x.y = fma(alpha, p.y, x.y);
    if (which != LATER) ((double2 *)v.x)[i] = x;
    r.x = fma(-alpha, s.x, r.x), r.y = fma(-alpha, s.y, r.y);
    double2 z = BLOCKS ? precondition_tile(v, block, lane, r) : double2{m.x * r.x, m.y * r.y};
    rz = fma(r.x, z.x, fma(r.y, z.y, rz));
    rr = fma(w.x * r.x, r.x, fma(w.y * r.y, r.y, rr));
    ((double2 *)v.r)[i] = r;
    p = next.store(i, {fma(beta, p.x, z.x), fma(beta, p.y, z.y)});
    pp = fma(p.x, p.x, fma(p.y, p.y, pp));
    if (!looking) continue;
    look l = look_at(p, e);
    if (lane) continue;
    double e16 = a.error_16[block], e32 = a.error_32[block];
    predicted_16 += e16 * e16 * l.norm2, predicted_32 += e32 * e32 * l.norm2;
    if (c.decide_rule == DECIDE_HOST)
      v.block_norm2[block] = l.caller_norm2, v.block_max[block] = l.caller_max;
    else if (alpha > 0)
      v.block_level[block] = (uint8_t)max(c.floor, decide(c, l.norm2, l.caller_max, e16, e32, (double)a.blocks));
  }
  const double values[] = {rz, rr, pp, predicted_16, predicted_32};
  leave_block_sums(values, looking ? 5 : c.decide_rule == DECIDE_BUDGET ? 3 : 2, &v.sums[S_RZ * stride], stride);
}

#define HT_UPDATE(name, narrow, blocks)                                                                                                    \
  extern "C" __global__ void __launch_bounds__(THREADS, 4)                                                                                 \
      ht_cg_update##name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride) {              \
    update<narrow, blocks>(a, v, stride);                                                                                                  \
  }
HT_UPDATE(, false, false)
HT_UPDATE(_narrow, true, false)
HT_UPDATE(_blocks, false, true)
HT_UPDATE(_blocks_narrow, true, true)

// x with the step that the last iteration put off; `to` may be x itself.
template <bool NARROW> __device__ inline void settle(const ht_store_view &a, const ht_cuda_cg_vectors &v, double2 *to) {
  const ht_cuda_cg_scalars &c = *v.scalars;
  direction<NARROW> present(v, c.iteration);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded / 2; i += (int64_t)gridDim.x * blockDim.x) {
    short2 e = ((const short2 *)a.exponent)[i];
    double2 m = weights_at(v, i, {scale_squared(e.x), scale_squared(e.y)}), x = ((double2 *)v.x)[i];
    double2 before = owed_direction<NARROW>(v, c.iteration - 1, i, present.load(i), m, ((double2 *)v.r)[i], c.owed_beta);
    to[i] = {fma(c.owed_alpha, before.x, x.x), fma(c.owed_alpha, before.y, x.y)};
  }
}

#define HT_SETTLE(name, narrow)                                                                                                            \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                                    \
      ht_cg_settle##name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, double *to) {              \
    settle<narrow>(a, v, (double2 *)to);                                                                                                   \
  }
HT_SETTLE(, false)
HT_SETTLE(_narrow, true)

// The direction of the last iteration, from one width to the other. Its step is still to be made, and r will take it as it was: x takes
// here what rounding takes from it. A direction that is cleared loses nothing, whatever alpha is.
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_widen(ht_store_view a, ht_cuda_cg_vectors v) {
  direction<true> from(v, v.scalars->iteration);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded / 2; i += (int64_t)gridDim.x * blockDim.x)
    ((double2 *)v.p)[i] = from.load(i);
}
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_narrow(ht_store_view a, ht_cuda_cg_vectors v) {
  direction<true> to(v, v.scalars->iteration);
  double alpha = v.scalars->alpha;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded / 2; i += (int64_t)gridDim.x * blockDim.x) {
    double2 p = ((const double2 *)v.p)[i], kept = to.store(i, p), lost = {p.x - kept.x, p.y - kept.y}, *x = (double2 *)v.x + i;
    if (lost.x != 0 || lost.y != 0) *x = {fma(alpha, lost.x, x->x), fma(alpha, lost.y, x->y)};
  }
}

// What a policy on the host wants to know of p, for the engine that does not look by itself. A warp takes a column block.
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_look(ht_store_view a, ht_cuda_cg_vectors v) {
  int lane = threadIdx.x & 31;
  for (int64_t block = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; block < a.blocks; block += (int64_t)gridDim.x * WARPS) {
    int64_t i = block * 32 + lane; // in pairs
    short2 e = {(short)scale_exponent(a, 2 * i), (short)scale_exponent(a, 2 * i + 1)};
    look l = look_at(((const double2 *)v.p)[i], e);
    if (lane == 0) v.block_norm2[block] = l.caller_norm2, v.block_max[block] = l.caller_max;
  }
}

// r'M^-1 s and s'M^-1 s with inverse blocks, and the conclusions: in the product a block's rows may be several warps'. by_group: the
// product has left all its sums.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    ht_cg_precondition(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride, int update_blocks,
                       int multiply_blocks, int by_group) {
  wait_for_the_one_before();
  if (v.scalars->event != CONTINUE) return;
  int lane = threadIdx.x & 31;
  double rms = 0, sms = 0;
  for (int64_t block = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; block < a.blocks; block += (int64_t)gridDim.x * WARPS) {
    double2 r = ((const double2 *)v.r)[block * 32 + lane], s = ((const double2 *)v.s)[block * 32 + lane];
    double2 ms = precondition_tile(v, block, lane, s);
    rms = fma(r.x, ms.x, fma(r.y, ms.y, rms));
    sms = fma(s.x, ms.x, fma(s.y, ms.y, sms));
  }
  let_the_next_begin();
  const double values[] = {rms, sms};
  leave_block_sums(values, 2, &v.sums[S_RMS * stride], stride);
  leave(a, v, stride, {update_blocks, multiply_blocks, by_group ? S_COUNT : S_ERROR_16});
}
