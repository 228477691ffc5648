// Sums over a warp by its tensor cores: two instructions for up to eight of them, in a fixed order. SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace ht {

// A times B of 8 x 4 and 4 x 8 numbers, A all ones: lane l gets the sums over the lanes of columns 2 (l & 3) and the next.
__device__ inline double2 column_sums(double b) {
  double2 d;
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %4};"
      : "=d"(d.x), "=d"(d.y)
      : "d"(1.0), "d"(b), "d"(0.0));
  return d;
}

// The sums over the warp: lane l gets sums 2 (l & 3) and the next, those beyond the last being 0.
template <int COUNT> __device__ inline double2 warp_sums(const double (&v)[COUNT], int lane) {
  static_assert(COUNT <= 8, "a row of four lanes each");
  double mine = 0;
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    double2 d = column_sums(v[k]);
    double part = d.x + d.y; // of lanes 8 (l & 3) and the seven after
    if (lane >> 2 == k) mine = part;
  }
  return column_sums(mine);
}

} // namespace ht
