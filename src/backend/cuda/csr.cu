// CSR products: `width` lanes a row, a power of two up to 32. A lane adds its entries in ascending order, the lanes are added along a
// fixed tree: the bits depend on the width alone. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

namespace {

constexpr int THREADS = 256; // csr.c launches with it

// The sum of row `row`, in each of its lanes. Every lane of the warp must come here; rows from n on are empty.
__device__ double row_product(int64_t n, const int64_t *row_start, const int32_t *columns, const double *values, const double *x,
                              int64_t row, int lane, int width) {
  double sum = 0;
  if (row < n)
    for (int64_t k = row_start[row] + lane, end = row_start[row + 1]; k < end; k += width)
      sum = fma(__ldcs(values + k), x[__ldcs(columns + k)], sum);
  for (int step = width / 2; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

// `finish(row, sum)` is called once a row. A warp's lanes stay together: the first row of its lanes decides whether it goes on.
template <class Finish>
__device__ void each_row(int64_t n, const int64_t *row_start, const int32_t *columns, const double *values, const double *x, int width,
                         Finish finish) {
  int64_t rows_a_block = THREADS / width, rows_a_warp = 32 / width;
  int lane = threadIdx.x % width, warp = threadIdx.x / 32, place = threadIdx.x % 32 / width;
  for (int64_t first = blockIdx.x * rows_a_block + warp * rows_a_warp; first < n; first += gridDim.x * rows_a_block) {
    int64_t row = first + place;
    double sum = row_product(n, row_start, columns, values, x, row, lane, width);
    if (row < n && lane == 0) finish(row, sum);
  }
}

} // namespace

extern "C" __global__ void __launch_bounds__(THREADS) ht_csr_multiply(int64_t n, const int64_t *row_start, const int32_t *columns,
                                                                      const double *values, const double *x, double *y, int width) {
  each_row(n, row_start, columns, values, x, width, [=](int64_t row, double sum) { y[row] = sum; });
}

// r may be b.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_csr_residual(int64_t n, const int64_t *row_start, const int32_t *columns, const double *values, const double *x, const double *b,
                    double *r, int width) {
  each_row(n, row_start, columns, values, x, width, [=](int64_t row, double sum) { r[row] = b[row] - sum; });
}
