// The product of the streaming engine. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/cg_streaming.cuh"
#include "backend/cuda/precondition.cuh"
#include "backend/cuda/product_ring.cuh"

using namespace ht;

namespace {

enum { LONG_SLICE = 8 }; // units

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

// What a lane needs of its row besides the product, as it was loaded: what is made of it would wait for it.
template <int MODE, class Number> struct row_data {
  Number p;
  double r;
  int2 d; // the diagonal's parts, or the words of its number
  float m;
  int16_t e;
};

template <int MODE> __device__ inline int2 load_diagonal(const ht_store_view &a, int64_t row, const uint8_t *levels, int uniform) {
  if (MODE == LEVEL_16) return {__float_as_int(a.diagonal_16[row]), 0};
  if (MODE == LEVEL_32) return {a.diagonal[row], a.diagonal_mid[row]};
  if (MODE == LEVEL_64) return {a.diagonal[row], a.diagonal_tail[row]};
  double d = diagonal_at(a, row, levels ? levels[row / 64] : uniform);
  return {__double2hiint(d), __double2loint(d)};
}
template <int MODE> __device__ inline double diagonal_of(int2 d) {
  if (MODE == LEVEL_16) return __int_as_float(d.x);
  if (MODE == LEVEL_32) return join_diagonal<HT_MID_BITS>(d.x, d.y);
  return MODE == LEVEL_64 ? join_diagonal<HT_TAIL_BITS>(d.x, d.y) : __hiloint2double(d.x, d.y);
}

// r'M^-1 s is p's where directions are conjugate, and FP64 products keep them so: r is not read there, at 0 to 1 % more iterations. With
// lower ones that costs 3 %, on biharmonic problems 10 %.
template <int MODE> __device__ constexpr bool reads_residual() { return MODE != LEVEL_64; }

template <int MODE, class Number>
__device__ inline row_data<MODE, Number> load_row(const ht_store_view &a, const ht_cuda_cg_vectors &v, const Number *p, int64_t row,
                                                  const uint8_t *levels, int uniform) {
  return {p[row], reads_residual<MODE>() ? v.r[row] : 0, load_diagonal<MODE>(a, row, levels, uniform),
          v.inverse_diagonal ? v.inverse_diagonal[row] : 0, a.exponent[row]};
}

template <int MODE, class Number>
__device__ inline void finish_slice(const ht_cuda_cg_vectors &v, const ht_slice_info &s, int lane, const row_data<MODE, Number> &q,
                                    double sum, product_sums &sums) {
  if (lane & (1 << s.lanes_log2) - 1) return;
  double m = inverse_of(v, q.m, scale_squared(q.e));
  double p = q.p;
  sum = fma(diagonal_of<MODE>(q.d), p, sum);
  v.s[s.row + (lane >> s.lanes_log2)] = sum;
  sums.pap = fma(p, sum, sums.pap);
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

template <class Number> __device__ const Number *direction_of(const ht_cuda_cg_vectors &v);
template <> __device__ const double *direction_of(const ht_cuda_cg_vectors &v) { return v.p; }
template <> __device__ const float *direction_of(const ht_cuda_cg_vectors &v) { return v.narrow[v.scalars->iteration & 1]; }

// The sums of a product, and the conclusions where no other kernel has more.
template <int COUNT>
__device__ inline void leave_sums(const ht_store_view &a, const ht_cuda_cg_vectors &v, const double (&values)[COUNT], int stride,
                                  int update_blocks) {
  leave_block_sums(values, COUNT, &v.sums[S_PAP * stride], stride);
  if (v.inverse_blocks) return; // ht_cg_precondition has the other sums
  leave(a, v, stride, {update_blocks, (int)gridDim.x, S_PAP + COUNT});
}

// At 16 bits a warp reads so little of a slice that the next one may be asked for in L2 without driving other data out of it.
template <int MODE> __device__ inline void ask_ahead(const ht_store_view &a, const ht_slice_info &s) {
#if __CUDA_ARCH__ >= 900
  if (MODE != LEVEL_16 || s.units < LONG_SLICE || !elected()) return;
  uint32_t bytes = s.units * HT_WARP * 4;
  bulk_prefetch(a.head + (int64_t)s.unit * HT_WARP, bytes);
  if (!s.by_offset) bulk_prefetch(a.index + (int64_t)s.index * HT_WARP, bytes);
#endif
}

// s = A p and the sums that need it; UNROLL groups of a slice are in flight.
template <int MODE, bool SHORT, int UNROLL, class Number>
__device__ inline void multiply(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, int update_blocks) {
  wait_for_the_one_before();
  if (v.scalars->event != CONTINUE) return;
  const Number *p = direction_of<Number>(v);
  int lane = threadIdx.x & 31, level = MODE == BY_GROUP ? v.scalars->uniform : MODE;
  const uint8_t *levels = MODE == BY_GROUP && level < 0 ? v.block_level : nullptr;
  product_sums sums = {};
  slice_turns turns(a.slices);
  ht_slice_info next = slice_at(a, turns.slice());
  while (turns.more()) {
    ht_slice_info s = next;
    turns.advance();
    next = slice_at(a, turns.slice());
    ask_ahead<MODE>(a, next);
    row_data<MODE, Number> row = load_row<MODE>(a, v, p, s.row + (lane >> s.lanes_log2), levels, level); // on its way during the product
    double sum =
        multiply_slice<MODE, UNROLL>(a, s, lane, levels, level, global_vector<Number, SHORT>{p}, MODE == BY_GROUP ? &sums.read : nullptr);
    if (MODE == LEVEL_16) row.p = p[s.row + (lane >> s.lanes_log2)]; // not before: it takes a register, and lies near what was gathered
    finish_slice(v, s, lane, row, sum, sums);
  }
  let_the_next_begin();
  if (MODE == BY_GROUP && v.scalars->iteration >= v.scalars->decide_at && v.scalars->decide_rule == DECIDE_BUDGET) {
    double2 errors = measure_some(a, v);
    sums.error_16 = errors.x;
    sums.error_32 = errors.y;
  }
  if constexpr (MODE == BY_GROUP) {
    bool first = lane == 0; // groups are the warp's
    const double values[] = {sums.pap,
                             sums.rms,
                             sums.sms,
                             sums.error_16,
                             sums.error_32,
                             first ? (double)sums.read.at_16 : 0,
                             first ? (double)sums.read.at_32 : 0,
                             first ? (double)sums.read.at_64 : 0};
    leave_sums(a, v, values, stride, update_blocks);
  } else {
    const double values[] = {sums.pap, sums.rms, sums.sms};
    leave_sums(a, v, values, stride, update_blocks);
  }
}

#if __CUDA_ARCH__ >= 900
// The same with a ring. What a slice needs besides the matrix is asked for while the one before it is multiplied.
template <class SHAPE, bool SHORT, class Number>
__device__ inline void multiply_with_ring(const ht_store_view &a, const ht_cuda_cg_vectors &v, int stride, int update_blocks) {
  constexpr int MODE = SHAPE::MODE;
  extern __shared__ __align__(128) unsigned char rings[];
  int lane = threadIdx.x & 31, warp = uniform((int)threadIdx.x / HT_WARP);
  slice_turns turns(a.slices);
  matrix_ring<SHAPE> ring(a, shared_address(rings) + warp * SHAPE::BYTES, turns); // the matrix does not wait for the update
  ht_slice_info s = slice_at(a, turns.slice());
  wait_for_the_one_before();
  if (v.scalars->event != CONTINUE) return ring.drain(turns);
  const Number *p = direction_of<Number>(v);
  product_sums sums = {};
  bool more = turns.more();
  turns.advance();
  ht_slice_info next = slice_at(a, turns.slice());
  units_known known = units_known::of<SHAPE::INDEXED>(a, s, 0, lane);
  row_data<MODE, Number> row = load_row<MODE>(a, v, p, s.row + (lane >> s.lanes_log2), nullptr, MODE);
  while (more) {
    more = turns.more();
    units_known next_known = units_known::of<SHAPE::INDEXED>(a, next, 0, lane);
    row_data<MODE, Number> next_row = load_row<MODE>(a, v, p, next.row + (lane >> next.lanes_log2), nullptr, MODE);
    turns.advance();
    ht_slice_info after = slice_at(a, turns.slice());
    double sum = multiply_ring_slice<SHAPE, SHORT>(a, s, ring, known, lane, p);
    finish_slice(v, s, lane, row, sum, sums);
    s = next, next = after, known = next_known, row = next_row;
  }
  let_the_next_begin();
  const double values[] = {sums.pap, sums.rms, sums.sms};
  leave_sums(a, v, values, stride, update_blocks);
}
#endif

} // namespace

// One for each level that all groups are read at, and one that looks at each group. At 32 bits, and at 16 where slices are long, more
// groups in flight a warp are worth more than more warps. Where 16 bits hold every value exactly, so must the sums: there nothing is
// replaced.
#define HT_MULTIPLY(name, mode, short_sums, number, unroll, blocks)                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks)                                                                            \
      name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride, int update_blocks) {         \
    multiply<mode, short_sums, unroll, number>(a, v, stride, update_blocks);                                                               \
  }
HT_MULTIPLY(ht_cg_multiply_16, LEVEL_16, true, float, 2, 4)
HT_MULTIPLY(ht_cg_multiply_16_long, LEVEL_16, true, float, 3, 3)
HT_MULTIPLY(ht_cg_multiply_16_exact, LEVEL_16, false, float, 2, 4)
HT_MULTIPLY(ht_cg_multiply_32, LEVEL_32, false, float, 4, 3)
HT_MULTIPLY(ht_cg_multiply_64, LEVEL_64, false, double, 2, 4)
HT_MULTIPLY(ht_cg_multiply_by_group, BY_GROUP, false, double, 2, 4)

// For the capabilities that have a copy engine, where nearly all slices are of one form.
template <int MODE> struct number_of { typedef float type; };
template <> struct number_of<LEVEL_64> { typedef double type; };
#if __CUDA_ARCH__ >= 900
#define HT_WITH_RING(mode, indexed, units, stages, groups)                                                                                 \
  multiply_with_ring<ring_shape<mode, indexed, units, stages, groups>, mode == LEVEL_16, number_of<mode>::type>(a, v, stride, update_blocks)
#else
#define HT_WITH_RING(mode, indexed, units, stages, groups) __trap()
#endif
#define HT_RING(name, mode, indexed, units, stages, groups, blocks)                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks)                                                                            \
      ht_##name(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_cuda_cg_vectors v, int stride, int update_blocks) {    \
    HT_WITH_RING(mode, indexed, units, stages, groups);                                                                                    \
  }
#include "backend/cuda/rings.def"
