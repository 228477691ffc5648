// Vector operations. The sums' order depends on the length alone: the grid is the same on every device, a thread adds its elements in
// ascending order, threads and blocks are added along fixed trees. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32, AT_ONCE = 4; // vectors.c launches with THREADS; loads in flight a thread

struct Sum {
  using Type = double;
  static __device__ double zero() { return 0; }
  static __device__ double join(double a, double b) { return a + b; }
};

// The bits of |x| order as the numbers do, with NaN above infinity.
struct Largest {
  using Type = unsigned long long;
  static __device__ unsigned long long bits(double x) { return __double_as_longlong(x) & ~(1ull << 63); }
  static __device__ unsigned long long zero() { return 0; }
  static __device__ unsigned long long join(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
};

// Over the block; the result is thread 0's.
template <class Op> __device__ typename Op::Type join_block(typename Op::Type value) {
  __shared__ typename Op::Type part[WARPS];
  for (int step = 16; step; step /= 2) value = Op::join(value, __shfl_down_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < WARPS ? part[threadIdx.x] : Op::zero();
  if (threadIdx.x < 32)
    for (int step = WARPS / 2; step; step /= 2) value = Op::join(value, __shfl_down_sync(~0u, value, step));
  __syncthreads();
  return value;
}

// Each block leaves its part; the block that comes last joins them in order, and leaves the counter as it was.
template <class Op>
__device__ void join_grid(typename Op::Type value, typename Op::Type *part, unsigned *arrived, typename Op::Type *result) {
  __shared__ bool last;
  value = join_block<Op>(value);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = value;
    __threadfence();
    last = atomicAdd(arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  value = Op::zero();
  for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) value = Op::join(value, __ldcg(part + b));
  value = join_block<Op>(value);
  if (threadIdx.x == 0) {
    *result = value;
    *arrived = 0;
  }
}

__device__ int64_t first_element() { return blockIdx.x * int64_t{THREADS} + threadIdx.x; }
__device__ int64_t stride() { return gridDim.x * int64_t{THREADS}; }

} // namespace

extern "C" __global__ void __launch_bounds__(THREADS)
    ht_vector_dot(int64_t n, const double *x, const double *y, double *part, unsigned *arrived, double *result) {
  double sum = 0;
#pragma unroll AT_ONCE
  for (int64_t i = first_element(); i < n; i += stride()) sum = fma(x[i], y[i], sum);
  join_grid<Sum>(sum, part, arrived, result);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ht_vector_norm_inf(int64_t n, const double *x, unsigned long long *part, unsigned *arrived, unsigned long long *result) {
  unsigned long long largest = 0;
#pragma unroll AT_ONCE
  for (int64_t i = first_element(); i < n; i += stride()) largest = Largest::join(largest, Largest::bits(x[i]));
  join_grid<Largest>(largest, part, arrived, result);
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
