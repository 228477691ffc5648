// The streaming engine: two kernels an iteration, replayed in a graph. The update takes the pending step and makes the new direction; the
// product multiplies with it, and its last block draws the conclusions. Nothing is read by the host but the event that ends a run.
// SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_step.cuh"
#include "backend/cuda/precondition.cuh"
#include "backend/cuda/product.cuh"

using namespace ht;

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, SAMPLE = 32, RUN = 64 };
constexpr double LEAST_BETA = 0.01; // of a step that is put off
// What each block leaves in `sums`, an array of `stride` entries each.
enum {
  S_RZ,
  S_RR,
  S_PP,
  S_PREDICTED_16,
  S_PREDICTED_32,
  S_PAP,
  S_RMS,
  S_SMS,
  S_ERROR_16,
  S_ERROR_32,
  S_LEVEL_16,
  S_LEVEL_32,
  S_LEVEL_64,
  S_COUNT
};

// Sum of one value a thread over the block, in thread 0.
__device__ inline double block_sum(double v, double *shared) {
  v = warp_sum(v);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (int w = 0; w < WARPS; w++) sum += shared[w];
  __syncthreads();
  return sum;
}

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
  __shared__ double shared[WARPS];
  const ht_cuda_cg_scalars &c = *v.scalars;
  if (c.event != CONTINUE) return;
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
  for (int k = 0; k < (looking ? 5 : c.decide_rule == DECIDE_BUDGET ? 3 : 2); k++) {
    double sum = block_sum(values[k], shared);
    if (threadIdx.x == 0) v.sums[(S_RZ + k) * stride + blockIdx.x] = sum;
  }
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

// The direction of the last iteration, from one width to the other.
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_widen(ht_store_view a, ht_cuda_cg_vectors v) {
  direction<true> from(v, v.scalars->iteration);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded / 2; i += (int64_t)gridDim.x * blockDim.x)
    ((double2 *)v.p)[i] = from.load(i);
}
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_narrow(ht_store_view a, ht_cuda_cg_vectors v) {
  direction<true> to(v, v.scalars->iteration);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.padded / 2; i += (int64_t)gridDim.x * blockDim.x)
    to.store(i, ((const double2 *)v.p)[i]);
}

// What a policy on the host wants to know of p, for the engine that does not look by itself. A warp takes a column block.
extern "C" __global__ void __launch_bounds__(THREADS) ht_cg_look(ht_store_view a, ht_cuda_cg_vectors v) {
  int lane = threadIdx.x & 31;
  for (int64_t block = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; block < a.blocks; block += (int64_t)gridDim.x * WARPS) {
    int64_t i = block * 32 + lane; // in pairs
    look l = look_at(((const double2 *)v.p)[i], ((const short2 *)a.exponent)[i]);
    if (lane == 0) v.block_norm2[block] = l.caller_norm2, v.block_max[block] = l.caller_max;
  }
}

namespace {

struct product_sums {
  double pap, rms, sms, error_16, error_32;
  units_read read; // only where each group has its own level
};

// What a slice's rows lose at the lower levels, squared, in the caller's scale.
__device__ inline double2 measure(const ht_store_view &a, const ht_slice_info &s, int lane, int64_t row, const double *p) {
  double got[3];
  for (int level = LEVEL_16; level <= LEVEL_64; level++)
    got[level] =
        multiply_slice<BY_GROUP>(a, s, lane, nullptr, level, global_vector<double>{p}, nullptr) + diagonal_at(a, row, level) * p[row];
  if (lane & (1 << s.lanes_log2) - 1) return {0, 0};
  double weight = scale_squared(a.exponent[row]), off_16 = got[LEVEL_64] - got[LEVEL_16], off_32 = got[LEVEL_64] - got[LEVEL_32];
  return {weight * off_16 * off_16, weight * off_32 * off_32};
}

// Conclusions of the iteration, by one thread; `total` as in the enum above.
__device__ inline void conclude(const ht_store_view &a, const ht_cuda_cg_vectors &v, const double *total) {
  ht_cuda_cg_scalars s = *v.scalars;
  const double sum[HT_SUMS] = {total[S_RZ], total[S_PAP], total[S_RMS], total[S_SMS], total[S_RR]};
  int64_t looked = s.iteration >= s.decide_at;
  /* The update of this iteration made up for what was owed, or put its own step off: then it is owed from now on. */
  s.owed = !s.owed && s.later;
  s.owed_alpha = s.alpha;
  s.owed_beta = s.beta;
  int event = step(s, sum);
  s.later = !v.inverse_blocks && !s.owed && (event == CONTINUE || event == PAUSE) && s.beta >= LEAST_BETA; // a pause changes no bit
  record(v, s);
  for (int k = 0; k < 3; k++) s.level_groups[k] += total[S_LEVEL_16 + k];
  if (s.decide_rule == DECIDE_BUDGET) s.mean_norm2 = total[S_PP] / (double)a.blocks;
  if (looked && s.decide_rule == DECIDE_BUDGET) {
    if (total[S_PREDICTED_16] > 0) s.calibration_16 = SAMPLE * total[S_ERROR_16] / total[S_PREDICTED_16];
    if (total[S_PREDICTED_32] > 0) s.calibration_32 = SAMPLE * total[S_ERROR_32] / total[S_PREDICTED_32];
  }
  if (looked && s.decide_rule != DECIDE_HOST) s.decide_at = s.iteration + s.decide_every;
  s.finished = 0;
  s.event = event;
  if (event == CONTINUE) s.iteration++;
  *v.scalars = s;
}

// Blocks of the kernels before the one that draws the conclusions, and the sums that they have left.
struct before {
  int update_blocks, multiply_blocks, count;
};

__device__ __noinline__ void finish(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  __shared__ double total[S_COUNT];
  __threadfence();
  int lane = threadIdx.x & 31;
  for (int k = threadIdx.x / 32; k < S_COUNT; k += WARPS) {
    double sum = 0;
    int blocks = k >= b.count ? 0 : k < S_PAP ? b.update_blocks : k == S_RMS || k == S_SMS ? gridDim.x : b.multiply_blocks;
    for (int i = lane; i < blocks; i += 32) sum += __ldcg(&v.sums[k * stride + i]);
    sum = warp_sum(sum);
    if (lane == 0) total[k] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) conclude(a, v, total);
  __syncthreads();
  if (v.scalars->event != CONTINUE) tell(v, *v.scalars);
}

// The last block to be through draws the conclusions.
__device__ inline void leave(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, before b) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&v.scalars->finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) finish(a, v, stride, b);
}

// What a lane needs of its row besides the product.
struct row_data {
  double p, r, d;
  float m;
  int16_t e;
};

// r'M^-1 s is p's where directions are conjugate, and FP64 products keep them so: r is not read there, at 0 to 1 % more iterations. With
// lower ones that costs 3 %, on biharmonic problems 10 %.
template <int MODE> __device__ constexpr bool reads_residual() { return MODE != LEVEL_64; }

template <int MODE, class Number>
__device__ inline row_data load_row(const ht_store_view &a, const ht_cuda_cg_vectors &v, const Number *p, int64_t row,
                                    const uint8_t *levels, int uniform) {
  return {(double)p[row], reads_residual<MODE>() ? v.r[row] : 0, diagonal_at(a, row, levels ? levels[row / 64] : uniform),
          v.inverse_diagonal ? v.inverse_diagonal[row] : 0, a.exponent[row]};
}

template <int MODE>
__device__ inline void finish_slice(const ht_cuda_cg_vectors &v, const ht_slice_info &s, int lane, const row_data &q, double sum,
                                    product_sums &sums) {
  if (lane & (1 << s.lanes_log2) - 1) return;
  double m = inverse_of(v, q.m, scale_squared(q.e));
  sum = fma(q.d, q.p, sum);
  v.s[s.row + (lane >> s.lanes_log2)] = sum;
  sums.pap = fma(q.p, sum, sums.pap);
  sums.rms = reads_residual<MODE>() ? fma(q.r * m, sum, sums.rms) : sums.pap;
  sums.sms = fma(sum * m, sum, sums.sms);
}

// Every SAMPLE-th slice, from another start each time: errors at 16 and 32 bits. Apart from the rest, whose registers it would take.
__device__ __noinline__ double2 measure_some(const ht_store_view &a, const ht_cuda_cg_vectors &v) {
  int64_t start = v.scalars->iteration % SAMPLE;
  int lane = threadIdx.x & 31;
  double2 errors = {0, 0};
  for (int64_t slice = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * SAMPLE + start; slice < a.slices;
       slice += (int64_t)gridDim.x * WARPS * SAMPLE) {
    ht_slice_info s = a.slice[slice];
    double2 more = measure(a, s, lane, s.row + (lane >> s.lanes_log2), v.p);
    errors.x += more.x;
    errors.y += more.y;
  }
  return errors;
}

// s = A p and the sums that need it. All blocks work within one part of the matrix at a time, whose part of p stays in L2; there each has
// a run of some RUN slices, which its warps take in turn: what a slice reads of p, the next ones find in L1.
template <int MODE, bool SHORT, class Number>
__device__ inline void multiply(const ht_store_view &a, const ht_cuda_cg_vectors &v, const Number *p, int stride, int update_blocks) {
  __shared__ double shared[WARPS];
  int lane = threadIdx.x & 31, uniform = MODE == BY_GROUP ? v.scalars->uniform : MODE;
  const uint8_t *levels = MODE == BY_GROUP && uniform < 0 ? v.block_level : nullptr;
  product_sums sums = {};
  int64_t parts = max((int64_t)1, a.slices / ((int64_t)gridDim.x * RUN));
  for (int64_t part = 0; part < parts; part++) {
    int64_t first = a.slices * part / parts, count = a.slices * (part + 1) / parts - first, begin = first + count * blockIdx.x / gridDim.x,
            end = first + count * (blockIdx.x + 1) / gridDim.x;
    int64_t slice = begin + threadIdx.x / 32;
    ht_slice_info next = a.slice[min(slice, a.slices)];
    for (; slice < end; slice += WARPS) {
      ht_slice_info s = next;
      next = a.slice[min(slice + WARPS, a.slices)];
      row_data row = load_row<MODE>(a, v, p, s.row + (lane >> s.lanes_log2), levels, uniform); // on its way during the product
      double sum =
          multiply_slice<MODE>(a, s, lane, levels, uniform, global_vector<Number, SHORT>{p}, MODE == BY_GROUP ? &sums.read : nullptr);
      finish_slice<MODE>(v, s, lane, row, sum, sums);
    }
  }
  if (MODE == BY_GROUP && v.scalars->iteration >= v.scalars->decide_at && v.scalars->decide_rule == DECIDE_BUDGET) {
    double2 errors = measure_some(a, v);
    sums.error_16 = errors.x;
    sums.error_32 = errors.y;
  }
  bool first = lane == 0; // groups are the warp's
  const double values[] = {sums.pap,
                           sums.rms,
                           sums.sms,
                           sums.error_16,
                           sums.error_32,
                           first ? (double)sums.read.at_16 : 0,
                           first ? (double)sums.read.at_32 : 0,
                           first ? (double)sums.read.at_64 : 0};
#pragma unroll
  for (int k = 0; k < (MODE == BY_GROUP ? 8 : 3); k++) {
    double sum = block_sum(values[k], shared);
    if (threadIdx.x == 0) v.sums[(S_PAP + k) * stride + blockIdx.x] = sum;
  }
  if (v.inverse_blocks) return; // ht_cg_precondition has the other sums
  leave(a, v, stride, {update_blocks, (int)gridDim.x, MODE == BY_GROUP ? S_COUNT : S_ERROR_16});
}

} // namespace

// One for each level that all groups are read at, and one that looks at each group. At 32 bits more groups in flight a warp are worth more
// than more warps. Where 16 bits hold every value exactly, so must the
// sums: there nothing is replaced.
#define HT_MULTIPLY(name, mode, short_sums, direction)                                                                                     \
  extern "C" __global__ void __launch_bounds__(THREADS, mode == LEVEL_32 ? 3 : 4)                                                          \
      name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride, int update_blocks) {         \
    if (v.scalars->event == CONTINUE) multiply<mode, short_sums>(a, v, direction, stride, update_blocks);                                  \
  }
HT_MULTIPLY(ht_cg_multiply_16, LEVEL_16, true, v.narrow[v.scalars->iteration & 1])
HT_MULTIPLY(ht_cg_multiply_16_exact, LEVEL_16, false, v.narrow[v.scalars->iteration & 1])
HT_MULTIPLY(ht_cg_multiply_32, LEVEL_32, false, v.narrow[v.scalars->iteration & 1])
HT_MULTIPLY(ht_cg_multiply_64, LEVEL_64, false, v.p)
HT_MULTIPLY(ht_cg_multiply_by_group, BY_GROUP, false, v.p)

// r'M^-1 s and s'M^-1 s with inverse blocks, and the conclusions: in the product a block's rows may be several warps'. by_group: the
// product has left all its sums.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    ht_cg_precondition(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride, int update_blocks,
                       int multiply_blocks, int by_group) {
  __shared__ double shared[WARPS];
  if (v.scalars->event != CONTINUE) return;
  int lane = threadIdx.x & 31;
  double rms = 0, sms = 0;
  for (int64_t block = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; block < a.blocks; block += (int64_t)gridDim.x * WARPS) {
    double2 r = ((const double2 *)v.r)[block * 32 + lane], s = ((const double2 *)v.s)[block * 32 + lane];
    double2 ms = precondition_tile(v, block, lane, s);
    rms = fma(r.x, ms.x, fma(r.y, ms.y, rms));
    sms = fma(s.x, ms.x, fma(s.y, ms.y, sms));
  }
  const double values[] = {rms, sms};
  for (int k = 0; k < 2; k++) {
    double sum = block_sum(values[k], shared);
    if (threadIdx.x == 0) v.sums[(S_RMS + k) * stride + blockIdx.x] = sum;
  }
  leave(a, v, stride, {update_blocks, multiply_blocks, by_group ? S_COUNT : S_ERROR_16});
}
