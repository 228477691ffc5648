// Vector operations. The sums' order depends on the length alone: the grid is the same on every device, a thread adds its elements in
// ascending order, threads and blocks are added along fixed trees. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include "backend/cuda/reduce.h"

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32, AT_ONCE = 4; // vectors.c launches with THREADS; loads in flight a thread

static_assert(WARPS == HT_CUDA_REDUCTIONS, "a warp joins the threads' parts of one reduction");

enum kind { DOT, NORM_INF, DISTANCE_SQUARE }; // ht_reduction_kind

// The bits of numbers >= 0 order as the numbers do, with NaN above infinity.
__device__ double larger(double a, double b) {
  unsigned long long x = __double_as_longlong(a), y = __double_as_longlong(b);
  return __longlong_as_double(x > y ? x : y);
}

__device__ double join(int kind, double a, double b) { return kind == NORM_INF ? larger(a, b) : a + b; }

__device__ double take(int kind, double so_far, double x, double y) {
  if (kind == DOT) return fma(x, y, so_far);
  if (kind == NORM_INF) return larger(so_far, __longlong_as_double(__double_as_longlong(x) & ~(1ull << 63)));
  return fma(x - y, x - y, so_far);
}

// Each reduction over the block: reduction k's result is that of warp k's first lane, k being the warp of the caller.
__device__ double join_block(const ht_cuda_reductions &r, double *value) {
  __shared__ double part[HT_CUDA_REDUCTIONS][WARPS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int k = 0; k < HT_CUDA_REDUCTIONS; k++) {
    if (k >= r.count) break;
    for (int step = 16; step; step /= 2) value[k] = join(r.kind[k], value[k], __shfl_down_sync(~0u, value[k], step));
    if (lane == 0) part[k][warp] = value[k];
  }
  __syncthreads();
  double joined = lane < WARPS && warp < r.count ? part[warp][lane] : 0;
  for (int step = WARPS / 2; step; step /= 2) joined = join(r.kind[warp], joined, __shfl_down_sync(~0u, joined, step));
  __syncthreads();
  return joined;
}

__device__ int64_t first_element() { return blockIdx.x * int64_t{THREADS} + threadIdx.x; }
__device__ int64_t stride() { return gridDim.x * int64_t{THREADS}; }

} // namespace

// Each block leaves its parts; the block that comes last joins them in order, and leaves the counter as it was. A vector that serves
// several reductions is read from memory once: a thread asks for its elements again while the first-level cache has them.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_vector_reduce(int64_t n, __grid_constant__ const ht_cuda_reductions r, double *part, unsigned *arrived, double *result) {
  __shared__ bool last;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double value[HT_CUDA_REDUCTIONS] = {}; // zero begins all kinds
  for (int64_t first = first_element(); first < n; first += AT_ONCE * stride()) {
#pragma unroll
    for (int k = 0; k < HT_CUDA_REDUCTIONS; k++) {
      if (k >= r.count) break;
      double x[AT_ONCE], y[AT_ONCE];
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        int64_t i = first + j * stride();
        x[j] = i < n ? r.x[k][i] : 0; // what zeros add changes no kind
        y[j] = i < n ? r.y[k][i] : 0;
      }
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) value[k] = take(r.kind[k], value[k], x[j], y[j]);
    }
  }
  double joined = join_block(r, value);
  if (lane == 0 && warp < r.count) part[warp * HT_CUDA_SUMS + blockIdx.x] = joined;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
#pragma unroll
  for (int k = 0; k < HT_CUDA_REDUCTIONS; k++) {
    if (k >= r.count) break;
    value[k] = 0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) value[k] = join(r.kind[k], value[k], __ldcg(part + k * HT_CUDA_SUMS + b));
  }
  joined = join_block(r, value);
  if (lane == 0 && warp < r.count) result[warp] = joined;
  if (threadIdx.x == 0) *arrived = 0;
}

// x, y and d may be the same array: an element is read and written by one thread.
extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_axpy(int64_t n, double a, const double *x, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[i] = fma(a, x[i], y[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_xpby(int64_t n, const double *x, double b, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[i] = fma(b, y[i], x[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_scale_by(int64_t n, const double *d, const double *x, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[i] = d[i] * x[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_shift(int64_t n, int exponent, const double *x, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[i] = ldexp(x[i], exponent);
}

extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_gather(int64_t n, const int32_t *order, const double *x, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[i] = x[order[i]];
}

extern "C" __global__ void __launch_bounds__(THREADS) ht_vector_scatter(int64_t n, const int32_t *order, const double *x, double *y) {
  for (int64_t i = first_element(); i < n; i += stride()) y[order[i]] = x[i];
}
