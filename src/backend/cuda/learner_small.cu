// Solves of a matrix so small that a block holds one of them: all iterations until the update in one kernel, vectors in shared memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/learner_solve.cuh"

using namespace ht;

namespace {

// This block's solve as a group of its own, whose vectors, levels and scalars are in shared memory.
__device__ inline ht_learner_group own_group(const ht_learner_group &g, double *vectors, uint8_t *level, ht_learner_solve *solve,
                                             ht_learner_control *control) {
  ht_learner_group own = g;
  int64_t padded = g.tiles * TILE;
  own.r = vectors, own.p = vectors + padded, own.q = vectors + 2 * padded;
  own.x = g.x ? vectors + 3 * padded : nullptr;
  own.level = level, own.solve = solve, own.control = control;
  own.part_level = g.part_level + (int64_t)blockIdx.x * g.parts;
  own.first = g.first + (int)blockIdx.x * g.stride;
  own.lanes = 1;
  return own;
}

__device__ inline void copy_vectors(const ht_learner_group &g, const ht_learner_group &own, bool in) {
  double *const there[] = {g.x, g.r, g.p}, *const here[] = {own.x, own.r, own.p};
  for (int k = g.x ? 0 : 1; k < 3; k++)
    for (int64_t i = threadIdx.x; i < g.tiles * TILE; i += NETWORK_THREADS) {
      double *global = there[k] + i * g.lanes + blockIdx.x;
      if (in)
        here[k][i] = *global;
      else
        *global = here[k][i];
    }
}

__device__ inline void choose_levels(const ht_learner_group &own, const ht_learner_batch &b, int mode, const acting &my,
                                     double (*square)[ROWS], int64_t (*picked)[2]) {
  if (threadIdx.x < 3) my.count[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t first = 0; first < own.tiles; first += ROWS) act(own, b, first, mode, my, fetch_tiles(own, first), square, picked);
  if (threadIdx.x < 3) own.solve->count[threadIdx.x] = my.count[threadIdx.x];
  for (int64_t part = threadIdx.x; part < own.parts; part += NETWORK_THREADS) spread(own, part, 0);
}

__device__ inline void repair(const ht_learner_group &own, const ht_learner_batch &b, double *shared) {
  place my(own);
  int wants = own.solve->wants;
  double rr = 0, change2 = 0;
  for (int64_t i = threadIdx.x; i < own.n; i += NETWORK_THREADS) {
    double r = residual_of(own, i, 0), change = r - own.r[i];
    rr = fma(r, r, rr);
    change2 = fma(change, change, change2);
    if (wants == HT_LEARNER_REPLACEMENT) own.r[i] = r;
  }
  rr = sum_of_rows(own, my, rr, shared);
  change2 = sum_of_rows(own, my, change2, shared);
  if (threadIdx.x > 0) return;
  own.control->wanted = 0;
  conclude_wanted(own, b, 0, rr, change2);
}

__device__ inline void iterate(const ht_learner_group &own, const ht_learner_batch &b, double *shared) {
  ht_learner_solve &s = *own.solve;
  place my(own);
  double pq = 0, rr = 0, bb = 0;
  for (int64_t i = threadIdx.x; i < own.n; i += NETWORK_THREADS) {
    own.q[i] = row_times(own, own.row_start[i], own.row_start[i + 1], 0);
    pq = fma(own.p[i], own.q[i], pq);
  }
  pq = sum_of_rows(own, my, pq, shared);
  if (threadIdx.x == 0) set_length(s, pq);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < own.n; i += NETWORK_THREADS) {
    double r = advance(own, i, s.alpha);
    rr = fma(r, r, rr);
  }
  rr = sum_of_rows(own, my, rr, shared);
  if (threadIdx.x == 0) {
    conclude(own, b, 0, rr);
    own.control->step++;
  }
  __syncthreads();
  if (own.control->wanted) repair(own, b, shared);
  __syncthreads();
  int64_t next = s.episode + own.all_lanes;
  bool begins = s.over;
  if (begins && (own.judged || s.rests)) return;
  for (int64_t i = threadIdx.x; i < own.n; i += NETWORK_THREADS) {
    if (begins) {
      double v = begin(own, i, i, next);
      bb = fma(v, v, bb);
    } else {
      own.p[i] = fma(s.beta, own.p[i], own.r[i]);
    }
  }
  bb = sum_of_rows(own, my, bb, shared);
  if (begins && threadIdx.x == 0) set_begun(s, next, bb, false);
  __syncthreads();
}

} // namespace

// As `steps` times the kernels of an iteration; a judged solve ends when it is over. A block a solve.
extern "C" __global__ void __launch_bounds__(NETWORK_THREADS)
    ht_learner_small(const __grid_constant__ ht_learner_group g, const __grid_constant__ ht_learner_batch b, const float *weights) {
  extern __shared__ float4 memory[];
  __shared__ double square[4][ROWS], shared[NETWORK_THREADS];
  __shared__ int64_t picked[ROWS][2];
  __shared__ ht_learner_solve solve;
  __shared__ ht_learner_control control;
  acting my = divide_shared((float *)memory);
  double *vectors = (double *)(my.count + 4);
  ht_learner_group own = own_group(g, vectors, (uint8_t *)(vectors + 4 * g.tiles * TILE), &solve, &control);
  int mode = g.judged ? HT_LEARNER_LIKELIEST : HT_LEARNER_SAMPLE;
  if (threadIdx.x == 0) solve = g.solve[blockIdx.x], control = *g.control;
  load_weights(weights, HT_LEARNER_WEIGHTS, my.weights);
  copy_vectors(g, own, true);
  for (int64_t tile = threadIdx.x; tile < g.tiles; tile += NETWORK_THREADS) own.level[tile] = g.level[tile * g.lanes + blockIdx.x];
  __syncthreads();
  while (!idle(own)) {
    if (decides(own, solve)) choose_levels(own, b, mode, my, square, picked);
    __syncthreads();
    iterate(own, b, shared);
    __syncthreads();
  }
  copy_vectors(g, own, false);
  for (int64_t tile = threadIdx.x; tile < g.tiles; tile += NETWORK_THREADS) g.level[tile * g.lanes + blockIdx.x] = own.level[tile];
  if (threadIdx.x == 0) g.solve[blockIdx.x] = solve;
}
