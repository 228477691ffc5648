// b - A x in twice FP64's precision, for the certificate: products split without error by fma, sums by TwoSum, and their errors added up
// beside them (Ogita, Rump and Oishi 2005, algorithm Dot2). What that takes is hidden behind the matrix, which comes from memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/product.cuh"

using namespace ht;

namespace {

enum { WARPS = 8 };

// Intrinsics, which are never joined to an fma: that would cancel the errors.
struct doubled {
  double sum, errors;
  __device__ void add(double v) {
    double next = __dadd_rn(sum, v), part = __dsub_rn(next, sum);
    errors = __dadd_rn(errors, __dadd_rn(__dsub_rn(sum, __dsub_rn(next, part)), __dsub_rn(v, part)));
    sum = next;
  }
  __device__ void add_product(double a, double x) {
    double product = __dmul_rn(a, x);
    errors = __dadd_rn(errors, __fma_rn(a, x, -product));
    add(product);
  }
  // Where errors are not finite the sum is not either, or not what they say.
  __device__ double rounded() const { return isfinite(errors) ? __dadd_rn(sum, errors) : sum; }
};

template <int UNITS, class Columns, class Vector>
__device__ inline void add_exact_group(const ht_store_view &a, int64_t unit, int lane, const Columns &columns, const Vector &x,
                                       doubled &row) {
  loaded v;
  uint32_t index[2 * UNITS];
  ht_group_info info = info_of(a, unit);
  int base = columns.template fetch<UNITS>(a, unit, lane, index);
  load<UNITS>(v, a, unit, lane, LEVEL_64);
  double scale = scale_of(info, LEVEL_64), at_column[2 * UNITS];
#pragma unroll
  for (int k = 0; k < 2 * UNITS; k++) at_column[k] = x(base, index[k]); // all on their way at once
#pragma unroll
  for (int j = 0; j < UNITS; j++) {
    pair value = decode(v, j, encoding_of(info), LEVEL_64);
    row.add_product(value.first * scale, at_column[2 * j]); // a scale is a power of two
    row.add_product(value.second * scale, at_column[2 * j + 1]);
  }
}

template <class Columns, class Vector>
__device__ inline void add_exact_units(const ht_store_view &a, const ht_slice_info &s, int lane, const Columns &columns, const Vector &x,
                                       doubled &row) {
  int64_t unit = s.unit, end = unit + s.units;
#pragma unroll 2
  for (; unit + 2 <= end; unit += 2) add_exact_group<2>(a, unit, lane, columns, x, row);
  if (unit < end) add_exact_group<1>(a, unit, lane, columns, x, row);
}

// A row of A^ x^, in the first lane of each.
template <class Vector> __device__ inline doubled exact_product(const ht_store_view &a, const ht_slice_info &s, int lane, const Vector &x) {
  doubled row = {0, 0};
  ragged_unit last;
  if constexpr (Vector::in_patch)
    if (a.ragged) last = ragged_unit(a, x.slice, lane, LEVEL_64); // on its way meanwhile
  with_columns<Vector>(a, s, lane, [&](const auto &columns) { add_exact_units(a, s, lane, columns, x, row); });
  if constexpr (Vector::in_patch)
    if (a.ragged) {
      row.add_product(last.exact().first, x(0, last.v.index[0] & 0xffffu));
      row.add_product(last.exact().second, x(0, last.v.index[0] >> 16));
    }
  for (int width = 1 << s.lanes_log2 >> 1; width > 0; width >>= 1) {
    double sum = __shfl_down_sync(~0u, row.sum, width), errors = __shfl_down_sync(~0u, row.errors, width);
    row.add(sum);
    row.errors = __dadd_rn(row.errors, errors);
  }
  return row;
}

} // namespace

// x: S times the caller's, in solver order; b and r: the caller's.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    ht_store_residual(const __grid_constant__ ht_store_view a, const double *x, const double *b, double *r) {
  each_row(
      a, x, [&](const ht_slice_info &s, int lane, const auto &vector) { return exact_product(a, s, lane, vector); },
      [&](int row, doubled sum) {
        int to = callers_row(a, row);
        if (to < 0) return;
        sum.add_product(diagonal_exact(a, row), x[row]);
        double scale = power_of_two(scale_exponent(a, row));
        doubled rest = {-sum.sum * scale, -sum.errors * scale};
        rest.add(b[to]);
        r[to] = rest.rounded();
      });
}
