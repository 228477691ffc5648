// What kernels that solve have in common (learner_solve.cu, learner_small.cu). SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/learner_network.cuh"

namespace ht {

enum { TILE = HT_LEARNER_WIDTH };
constexpr double LEAST_NORM = 1e-30; // delta of the paper

// Nothing left to do in this replay. Whoever changes this is the last block of a kernel.
__device__ inline bool idle(const ht_learner_group &g) { return g.control->step >= g.control->steps || (g.judged && g.solve->over); }

// In the iteration of a judged solve that comes next. interval 0: never.
__device__ inline bool decision_due(const ht_learner_group &g) {
  return g.control->interval > 0 && g.solve->iteration % g.control->interval == 0;
}

// ---- sums ----

// A thread's place in kernels over vectors: a solve, and the first of its rows; blocks are lanes * rows threads.
struct place {
  int lane, row, rows;
  __device__ explicit place(const ht_learner_group &g)
      : lane(threadIdx.x % g.lanes), row(threadIdx.x / g.lanes), rows(blockDim.x / g.lanes) {}
};

// The sum over a solve's threads in its first one.
__device__ inline double sum_of_rows(const ht_learner_group &g, const place &my, double v, double *shared) {
  __syncthreads();
  shared[threadIdx.x] = v;
  for (int count = my.rows; count > 1;) {
    int half = (count + 1) / 2;
    __syncthreads();
    if (my.row < count / 2) shared[threadIdx.x] += shared[threadIdx.x + half * g.lanes];
    count = half;
  }
  __syncthreads();
  return shared[my.lane];
}

// Each solve's sum over all blocks, in the last one to come here; false in the others.
__device__ inline bool sum_of_blocks(const ht_learner_group &g, const place &my, double v, double *shared, double *sum) {
  __shared__ uint32_t ticket;
  v = sum_of_rows(g, my, v, shared);
  if (my.row == 0) g.sums[(int64_t)blockIdx.x * g.lanes + my.lane] = v;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) ticket = atomicAdd(g.arrived, 1u);
  __syncthreads();
  if (ticket != gridDim.x - 1) return false;
  __threadfence();
  v = 0;
#pragma unroll 8
  for (unsigned b = my.row; b < gridDim.x; b += my.rows) v += __ldcg(g.sums + (int64_t)b * g.lanes + my.lane);
  *sum = sum_of_rows(g, my, v, shared);
  if (threadIdx.x == 0) *g.arrived = 0;
  return true;
}

// ---- act ----

struct acting { // shared memory of `act`
  float *weights, *x, *h1, *h2, *y;
  int *count;
};

// This thread's 16 entries of a tile of a direction.
__device__ inline void load_tiles(const ht_learner_group &g, int64_t first, float *x, double (*square)[ROWS]) {
  enum { EACH = TILE * ROWS / NETWORK_THREADS };
  int row = threadIdx.x % ROWS, begin = threadIdx.x / ROWS * EACH;
  int64_t at = first + row, lane = at % g.lanes, tile = at / g.lanes;
  bool there = tile < g.tiles;
  double v[EACH], norm2 = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) v[i] = there ? g.p[(tile * TILE + begin + i) * g.lanes + lane] : 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) norm2 = fma(v[i], v[i], norm2);
  square[threadIdx.x / ROWS][row] = norm2;
  __syncthreads();
  double norm = fmax(sqrt(square[0][row] + square[1][row] + square[2][row] + square[3][row]), LEAST_NORM);
#pragma unroll
  for (int i = 0; i < EACH; i++) x[(begin + i) * PITCH + row] = (float)(v[i] / norm);
  __syncthreads();
}

// Writes down the tile in `row` where it is among those that are learned from; there are two places for two neighbours that meet in it.
__device__ inline void write_down(const ht_learner_group &g, const ht_learner_batch &b, int64_t tile, int lane, int mode, int action,
                                  const float *y, int64_t (&place)[2]) {
  const ht_learner_solve &s = g.solve[lane];
  int64_t number = g.first + (int64_t)lane * g.stride, most = b.most_rows;
  int64_t t = mode == HT_LEARNER_PEEK ? b.transitions + number : number * b.steps + g.control->step;
  int64_t from = g.tiles <= most ? tile : tile * most / g.tiles, to = g.tiles <= most ? tile : (tile + 1) * most / g.tiles;
  int found = 0;
  for (int64_t index = from > 0 && g.tiles > most ? from - 1 : from; index <= to && index < most && found < 2; index++) {
    if (ht_learning_pick(g.seed, s.episode, s.iteration, index, most, g.tiles) != tile) continue;
    int64_t row = t * most + index;
    b.value_row[row] = y[ACTIONS * ROWS];
    if (mode == HT_LEARNER_PEEK) continue;
    b.action[row] = (uint8_t)action;
    b.log_probability[row] = y[action * ROWS];
    place[found++] = row;
  }
}

__device__ inline void decide(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, acting &my,
                              int64_t (*written)[2]) {
  int row = threadIdx.x;
  int64_t at = first + row, tile = at / g.lanes;
  int lane = (int)(at % g.lanes), action = 0;
  float *y = my.y + row, logits[ACTIONS];
  written[row][0] = written[row][1] = -1;
  if (tile >= g.tiles) return;
  const ht_learner_solve &s = g.solve[lane];
  for (int a = 0; a < ACTIONS; a++) logits[a] = y[a * ROWS];
  if (mode == HT_LEARNER_LIKELIEST) {
    for (int a = 1; a < ACTIONS; a++) action = logits[a] > logits[action] ? a : action;
  } else {
    ht_learning_log_softmax(ACTIONS, logits);
    action = ht_learning_sample(ACTIONS, logits, ht_learning_draw(g.seed, s.episode, s.iteration, tile, g.tiles));
    for (int a = 0; a < ACTIONS; a++) y[a * ROWS] = logits[a];
    write_down(g, b, tile, lane, mode, action, y, written[row]);
  }
  if (mode == HT_LEARNER_PEEK) return;
  int level = ht_learning_level(action), zeros = 0;
  uint8_t *to = g.level + tile * g.lanes + lane;
  if (mode == HT_LEARNER_LIKELIEST && s.iteration > 0 && level > *to) {
    while (zeros < HT_LEARNING_RISES - 1 && !(s.iteration >> zeros & 1)) zeros++;
    atomicAdd((unsigned long long *)&g.solve[lane].rises[zeros], 1ull);
  }
  *to = (uint8_t)level;
  atomicAdd(&my.count[lane * 3 + level], 1);
}

__device__ inline acting divide_shared(float *shared) {
  acting my;
  my.weights = shared;
  my.x = my.weights + HT_LEARNER_WEIGHTS;
  my.h1 = my.x + LAYER_FLOATS;
  my.h2 = my.h1 + LAYER_FLOATS;
  my.y = my.h2 + LAYER_FLOATS;
  my.count = (int *)(my.y + HEADS * ROWS);
  return my;
}

__device__ inline void write_states(const ht_learner_batch &b, const float *x, const int64_t (*written)[2]) {
  for (int e = threadIdx.x; e < ROWS * TILE; e += NETWORK_THREADS)
    for (int k = 0; k < 2; k++)
      if (written[e / TILE][k] >= 0) b.state[written[e / TILE][k] * TILE + e % TILE] = x[e % TILE * PITCH + e / TILE];
}

// ---- product and step ----

// How a matrix entry is rounded to a level: to nearest, ties to even, in the bits of the double. Entries within FP32's range become what
// FP32 and BF16 would make of them; those that are smaller by 2^-126 than others of their column keep bits that they would lose there.
struct rounding {
  uint64_t half, odd, mask;
  int drop;
  __device__ explicit rounding(int level) : drop(level == 2 ? 0 : level == 1 ? 29 : 45) {
    half = drop ? (1ull << (drop - 1)) - 1 : 0;
    odd = drop ? 1 : 0;
    mask = ~0ull << drop;
  }
  __device__ double operator()(double v) const {
    uint64_t bits = (uint64_t)__double_as_longlong(v);
    return __longlong_as_double((long long)((bits + half + (bits >> drop & odd)) & mask));
  }
};

__device__ inline double row_times(const ht_learner_group &g, int64_t row, int lane) {
  int64_t end = g.row_start[row + 1], k = g.row_start[row];
  int tile = -1;
  double sum = 0;
  rounding round(2);
#pragma unroll 4
  for (; k < end; k++) {
    int column = g.columns[k];
    if (column / TILE != tile) {
      tile = column / TILE;
      round = rounding(g.level[(int64_t)tile * g.lanes + lane]);
    }
    sum = fma(round(g.values[k]), g.p[(int64_t)column * g.lanes + lane], sum);
  }
  return sum;
}

// Before the step: its length, from p'q.
__device__ inline void set_length(ht_learner_solve &s, double pq) {
  double alpha = s.rr / pq;
  s.broken = !(pq > 0) || !isfinite(alpha);
  s.alpha = s.broken ? 0 : alpha;
  s.iteration++;
}

// x += alpha p, r -= alpha q in one entry; returns r.
__device__ inline double advance(const ht_learner_group &g, int64_t at, double alpha) {
  double r = fma(-alpha, g.q[at], g.r[at]);
  g.x[at] = fma(alpha, g.p[at], g.x[at]);
  g.r[at] = r;
  return r;
}

// The first residual of an episode in one entry; returns it.
__device__ inline double begin(const ht_learner_group &g, int64_t at, int64_t row, int64_t episode) {
  double v = g.right_side ? g.right_side[row] : ht_learning_right_side(g.seed, episode, row);
  g.x[at] = 0, g.r[at] = v, g.p[at] = v;
  return v;
}

__device__ inline void set_begun(ht_learner_solve &s, int64_t episode, double bb) {
  s.episode = episode;
  s.iteration = s.over = s.broken = s.reached = 0;
  s.total = 0;
  s.rr = bb;
  s.norm_0 = s.norm_r = sqrt(bb);
}

// After the step: what became of the solve, and its reward.
__device__ inline void conclude(const ht_learner_group &g, const ht_learner_batch &b, int lane, double rr) {
  ht_learner_solve &s = g.solve[lane];
  double before = s.norm_r;
  s.reached = 0;
  if (!s.broken) {
    s.norm_r = sqrt(rr);
    s.reached = s.norm_r <= g.rtol * s.norm_0;
    s.broken = !isfinite(rr);
    s.beta = rr / s.rr;
    s.rr = rr;
  }
  s.over = s.broken || s.reached || s.iteration >= g.control->most_iterations;
  for (int level = 0; level < 3 && g.judged; level++) s.share[level] += s.count[level];
  double reward = ht_learning_reward(before, s.norm_r, s.count, g.tiles, s.broken, s.reached);
  if (!g.judged || decision_due(g))
    for (int level = 0; level < 3; level++) s.count[level] = 0;
  if (g.judged) return;
  int64_t number = g.first + (int64_t)lane * g.stride, t = number * b.steps + g.control->step;
  s.total += reward;
  b.rows[t] = (int32_t)(g.tiles < b.most_rows ? g.tiles : b.most_rows);
  b.reward[t] = (float)reward;
  b.last[t] = (uint8_t)s.over;
  if (s.over) b.finished[number * b.steps + b.finished_count[number]++] = {s.episode, s.iteration, s.total};
}

} // namespace ht
