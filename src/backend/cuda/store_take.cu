// A CSR that lies on the device already: what the host would have looked at, and its rows in solver order. Nothing is believed: where the
// arrays do not have the pattern that the store was made for, that is counted. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/decode.cuh"
#include <cfloat>

namespace {

// Row i's entries; none where the ends are no ends.
struct row_span {
  int64_t begin, end;
  bool sound;
  __device__ row_span(const ht_taken_view &a, int64_t i) : begin(a.row_start[i]), end(a.row_start[i + 1]) {
    sound = begin >= 0 && begin <= end && end <= a.nnz;
    if (!sound) begin = end = 0;
  }
};

// Where row i has the column, or -1: columns ascend.
__device__ inline int64_t find(const ht_taken_view &a, int64_t i, int column) {
  row_span row(a, i);
  int64_t low = row.begin, high = row.end;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (a.columns[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < row.end && a.columns[low] == column ? low : -1;
}

// What a thread has seen of its rows.
struct seen {
  unsigned other, not_finite, unsymmetric, not_positive, zero_sums, lower, matched;
  double norm_inf, most, least;
};

__device__ inline void look_at_row(const ht_taken_view &a, int64_t i, double *diagonal, seen &s) {
  row_span row(a, i);
  double sum = 0, size = 0, own = 0;
  s.other += !row.sound;
  for (int64_t k = row.begin; k < row.end; k++) {
    int c = a.columns[k];
    double v = a.values[k];
    if (c < 0 || c >= a.n) {
      s.other++;
      continue;
    }
    s.other += k > row.begin && a.columns[k - 1] >= c;
    s.not_finite += !isfinite(v);
    sum += v;
    size += fabs(v);
    if (c == i) own = v;
    s.lower += c < i;
    if (c <= i) continue;
    int64_t partner = find(a, c, (int)i);
    s.matched += partner >= 0;
    s.unsymmetric += v != (partner < 0 ? 0 : a.values[partner]);
  }
  diagonal[i] = own;
  s.not_positive += !(own > 0);
  s.zero_sums += isfinite(size) && fabs(sum) <= (double)(row.end - row.begin) * DBL_EPSILON * size;
  s.norm_inf = fmax(s.norm_inf, size);
  s.most = fmax(s.most, own);
  s.least = own > 0 ? fmin(s.least, own) : s.least;
}

__device__ inline void add(unsigned long long *count, unsigned mine) {
  unsigned all = __reduce_add_sync(~0u, mine);
  if ((threadIdx.x & 31) == 0 && all) atomicAdd(count, (unsigned long long)all);
}

// Of numbers that are not negative: their bits are ordered as they are.
__device__ inline void keep_largest(unsigned long long *largest, double mine) {
  for (int step = 16; step; step /= 2) mine = fmax(mine, __shfl_xor_sync(~0u, mine, step));
  if ((threadIdx.x & 31) == 0 && mine > 0) atomicMax(largest, (unsigned long long)__double_as_longlong(mine));
}

} // namespace

// The diagonal, and facts about all rows. Entries that stand alone below the diagonal are found by number: `lower` is then not `matched`.
extern "C" __global__ void __launch_bounds__(256)
    ht_take_look(const __grid_constant__ ht_taken_view a, double *diagonal, unsigned long long *counts) {
  seen s = {};
  s.least = DBL_MAX;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += (int64_t)gridDim.x * blockDim.x)
    look_at_row(a, i, diagonal, s);
  add(counts + HT_COUNT_OTHER, s.other);
  add(counts + HT_COUNT_NOT_FINITE, s.not_finite);
  add(counts + HT_COUNT_UNSYMMETRIC, s.unsymmetric);
  add(counts + HT_COUNT_NOT_POSITIVE, s.not_positive);
  add(counts + HT_COUNT_ZERO_SUMS, s.zero_sums);
  add(counts + HT_COUNT_LOWER, s.lower);
  add(counts + HT_COUNT_MATCHED, s.matched);
  keep_largest(counts + HT_COUNT_NORM_INF, s.norm_inf);
  keep_largest(counts + HT_COUNT_MOST, s.most);
  for (int step = 16; step; step /= 2) s.least = fmin(s.least, __shfl_xor_sync(~0u, s.least, step));
  if ((threadIdx.x & 31) == 0) atomicMax(counts + HT_COUNT_LEAST, ~(unsigned long long)__double_as_longlong(s.least));
}

// `count` rows in solver order from `first` on, as they lie in the CSR; rows.start says how long they have to be. Eight lanes a row.
extern "C" __global__ void __launch_bounds__(256)
    ht_take_rows(const __grid_constant__ ht_store_view a, const __grid_constant__ ht_taken_view from, int64_t first, int64_t count,
                 const __grid_constant__ ht_rows_view rows, unsigned long long *counts) {
  enum { LANES = 8 };
  int lane = threadIdx.x % LANES;
  unsigned other = 0;
  for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES; i < count; i += (int64_t)gridDim.x * blockDim.x / LANES) {
    int row = ht::callers_row(a, first + i);
    if (row < 0) continue;
    row_span span(from, row);
    int64_t to = rows.start[i] - rows.start[0], length = rows.start[i + 1] - rows.start[i];
    bool same = span.end - span.begin == length;
    other += !same && lane == 0;
    for (int64_t k = lane; k < length; k += LANES) {
      int c = same ? from.columns[span.begin + k] : 0;
      const_cast<int32_t *>(rows.columns)[to + k] = c >= 0 && c < from.n ? c : 0;
      const_cast<double *>(rows.values)[to + k] = same ? from.values[span.begin + k] : 0;
    }
  }
  if (other) atomicAdd(counts + HT_COUNT_OTHER, (unsigned long long)other);
}
