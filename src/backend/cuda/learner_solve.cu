// Many solves of one matrix at once, to learn from or to judge by: an iteration is four kernels, or six. `act` takes every tile of every
// direction through the network and chooses its level; `spread` tells what is read together; `multiply` is the product with many vectors, a
// matrix entry read once for all; `advance` takes the step and gives the reward, or leaves it to `repair`, which makes the residual that a
// step wants first; `turn` makes the next direction, or begins the next episode. Sums are made by each block in a fixed order, and by the
// last block from all of theirs, in theirs. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/learner_solve.cuh"

using namespace ht;

namespace {

enum { THREADS = 256 };

struct extent { // of a row
  int64_t begin, end;
  __device__ extent(const ht_learner_group &g, int64_t row) : begin(0), end(0) {
    if (row < g.n) begin = g.row_start[row], end = g.row_start[row + 1];
  }
};

} // namespace

// A judged solve decides every `interval` iterations.
extern "C" __global__ void __launch_bounds__(NETWORK_THREADS, 4)
    ht_learner_act(const __grid_constant__ ht_learner_group g, const __grid_constant__ ht_learner_batch b, const float *weights, int mode) {
  extern __shared__ float4 memory[];
  __shared__ double square[4][ROWS];
  __shared__ int64_t picked[ROWS][2];
  acting my = divide_shared((float *)memory);
  if (mode != HT_LEARNER_PEEK && idle(g)) return;
  if ((g.judged || g.side) && !any_decides(g)) return;
  load_weights(weights, HT_LEARNER_WEIGHTS, my.weights);
  for (int i = threadIdx.x; i < 3 * g.lanes; i += NETWORK_THREADS) my.count[i] = 0;
  int64_t rows = g.tiles * g.lanes, stride = (int64_t)gridDim.x * ROWS, first = (int64_t)blockIdx.x * ROWS;
  for (entries next = fetch_tiles(g, first); first < rows; first += stride) {
    entries now = next;
    next = fetch_tiles(g, first + stride); // underway while the network is
    act(g, b, first, mode, my, now, square, picked);
  }
  for (int i = threadIdx.x; i < 3 * g.lanes; i += NETWORK_THREADS)
    if (my.count[i]) atomicAdd(&g.solve[i / 3].count[i % 3], my.count[i]);
}

// q = A p, and the step length from p'q.
extern "C" __global__ void __launch_bounds__(THREADS, 4) ht_learner_multiply(const __grid_constant__ ht_learner_group g) {
  __shared__ double shared[THREADS];
  if (idle(g)) return;
  place my(g);
  int64_t row = (int64_t)blockIdx.x * my.rows + my.row, stride = (int64_t)gridDim.x * my.rows;
  double pq[1] = {0};
  for (extent next(g, row); row < g.n; row += stride) {
    extent now = next;
    next = extent(g, row + stride);
    int64_t at = row * g.lanes + my.lane;
    double q = row_times(g, now.begin, now.end, my.lane);
    g.q[at] = q;
    pq[0] = fma(g.p[at], q, pq[0]);
  }
  if (sums_of_blocks(g, my, pq, shared) && my.row == 0) set_length(g.solve[my.lane], pq[0]);
}

// x += alpha p, r -= alpha q.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_learner_advance(const __grid_constant__ ht_learner_group g, const __grid_constant__ ht_learner_batch b) {
  __shared__ double shared[THREADS];
  if (idle(g)) return;
  place my(g);
  double alpha = g.solve[my.lane].alpha, rr[1] = {0};
#pragma unroll 4
  for (int64_t row = (int64_t)blockIdx.x * my.rows + my.row; row < g.n; row += (int64_t)gridDim.x * my.rows) {
    double r = advance(g, row * g.lanes + my.lane, alpha);
    rr[0] = fma(r, r, rr[0]);
  }
  if (sums_of_blocks(g, my, rr, shared) && my.row == 0) conclude(g, b, my.lane, rr[0]);
}

// b - A x where a step wants it.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_learner_repair(const __grid_constant__ ht_learner_group g, const __grid_constant__ ht_learner_batch b) {
  __shared__ double shared[THREADS];
  if (!g.control->wanted || idle(g)) return;
  place my(g);
  int wants = g.solve[my.lane].wants;
  double sum[2] = {0, 0}; // of r'r, and of the change's square
  for (int64_t row = (int64_t)blockIdx.x * my.rows + my.row; row < g.n && wants; row += (int64_t)gridDim.x * my.rows) {
    int64_t at = row * g.lanes + my.lane;
    double r = residual_of(g, row, my.lane), change = r - g.r[at];
    sum[0] = fma(r, r, sum[0]);
    sum[1] = fma(change, change, sum[1]);
    if (wants == HT_LEARNER_REPLACEMENT) g.r[at] = r;
  }
  if (!sums_of_blocks(g, my, sum, shared)) return;
  if (threadIdx.x == 0) g.control->wanted = 0;
  if (my.row == 0 && wants) conclude_wanted(g, b, my.lane, sum[0], sum[1]);
}

// The levels of the parts, where a solve has decided.
extern "C" __global__ void __launch_bounds__(THREADS) ht_learner_spread(const __grid_constant__ ht_learner_group g) {
  if (idle(g) || !any_decides(g)) return;
  place my(g);
  for (int64_t part = (int64_t)blockIdx.x * my.rows + my.row; part < g.parts; part += (int64_t)gridDim.x * my.rows)
    spread(g, part, my.lane);
}

// p = r + beta p; where a solve is over, the next episode's beginning, or with only_begin nothing but that.
extern "C" __global__ void __launch_bounds__(THREADS) ht_learner_turn(const __grid_constant__ ht_learner_group g, int only_begin) {
  __shared__ double shared[THREADS];
  if (!only_begin && idle(g)) return;
  place my(g);
  ht_learner_solve &s = g.solve[my.lane];
  double beta = s.beta, bb[1] = {0};
  int64_t next = s.episode + g.all_lanes;
  bool rests = !only_begin && s.rests, begins = s.over && !rests;
#pragma unroll 2
  for (int64_t row = (int64_t)blockIdx.x * my.rows + my.row; row < g.n; row += (int64_t)gridDim.x * my.rows) {
    int64_t at = row * g.lanes + my.lane;
    if (begins) {
      double v = begin(g, at, row, next);
      bb[0] = fma(v, v, bb[0]);
    } else if (!only_begin && !rests) {
      g.p[at] = fma(beta, g.p[at], g.r[at]);
    }
  }
  if (!__syncthreads_or(begins)) { // in no block, since each has threads of every solve
    if (threadIdx.x == 0 && !only_begin && is_last_block(g)) g.control->step++;
    return;
  }
  if (!sums_of_blocks(g, my, bb, shared)) return;
  if (threadIdx.x == 0 && !only_begin) g.control->step++;
  if (my.row == 0 && begins) set_begun(s, next, bb[0], only_begin);
}

// One solve's vector to or from an array of its own, which lies in g.q.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_learner_move(const __grid_constant__ ht_learner_group g, int solve, int to_vector, double *vector) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < g.n; i += (int64_t)gridDim.x * THREADS) {
    double *at = vector + i * g.lanes + solve;
    if (to_vector)
      *at = g.q[i];
    else
      g.q[i] = *at;
  }
}
