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

// Whether all other blocks have come here; for one thread of each.
__device__ inline bool is_last_block(const ht_learner_group &g) {
  if (atomicAdd(g.arrived, 1u) != gridDim.x - 1) return false;
  *g.arrived = 0;
  return true;
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
  float *weights, *x, *h1, *y;
  int *count;
};

// Where row `at` of all tiles and solves belongs. 64-bit divisions are slow.
struct tile_of {
  int64_t tile;
  int lane;
  bool there;
  __device__ tile_of(const ht_learner_group &g, int64_t at) {
    uint32_t narrow = (uint32_t)at, lanes = (uint32_t)g.lanes;
    tile = narrow == at ? narrow / lanes : at / lanes;
    lane = (int)(at - tile * lanes);
    there = tile < g.tiles;
  }
};

enum { EACH = TILE * ROWS / NETWORK_THREADS }; // entries of a tile that a thread takes in

struct entries {
  double v[EACH];
};

__device__ inline entries fetch_tiles(const ht_learner_group &g, int64_t first) {
  int begin = threadIdx.x / ROWS * EACH;
  tile_of my(g, first + threadIdx.x % ROWS);
  const double *from = g.p + (my.tile * TILE + begin) * g.lanes + my.lane;
  entries e;
#pragma unroll
  for (int i = 0; i < EACH; i++) e.v[i] = my.there ? from[(int64_t)i * g.lanes] : 0;
  return e;
}

// Divided by their tiles' norms.
__device__ inline void place_tiles(const entries &e, float *x, double (*square)[ROWS]) {
  int row = threadIdx.x % ROWS, begin = threadIdx.x / ROWS * EACH;
  double norm2 = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) norm2 = fma(e.v[i], e.v[i], norm2);
  square[threadIdx.x / ROWS][row] = norm2;
  __syncthreads();
  double inverse = 1 / fmax(sqrt(square[0][row] + square[1][row] + square[2][row] + square[3][row]), LEAST_NORM);
#pragma unroll
  for (int i = 0; i < EACH; i++) x[(begin + i) * PITCH + row] = (float)(e.v[i] * inverse);
  __syncthreads();
}

// Rows of the batch that this thread's tile is to be written to: two where neighbours meet in it; -1: none.
__device__ inline void find_picks(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, int64_t (&picked)[2]) {
  tile_of my(g, first + threadIdx.x);
  picked[0] = picked[1] = -1;
  if (mode == HT_LEARNER_LIKELIEST || !my.there) return;
  const ht_learner_solve &s = g.solve[my.lane];
  int64_t number = g.first + (int64_t)my.lane * g.stride;
  int64_t row = (mode == HT_LEARNER_PEEK ? b.transitions + number : number * b.steps + g.control->step) * b.most_rows;
  uint32_t most = (uint32_t)b.most_rows, tiles = (uint32_t)g.tiles, scaled = (uint32_t)my.tile * most; // 32 bits: columns have no more
  if (tiles <= most) {
    picked[0] = row + my.tile;
    return;
  }
  uint32_t from = scaled / tiles, to = min((scaled + most) / tiles, most - 1);
  if (from > 0 && scaled % tiles == 0) from--; // whose end may be rounded to this tile's beginning
  for (int found = 0; from <= to && found < 2; from++)
    if (ht_learning_pick(g.seed, s.episode, s.iteration, from, most, tiles) == my.tile) picked[found++] = row + from;
}

__device__ inline void write_down(const ht_learner_batch &b, int mode, int action, const float *y, const int64_t (&picked)[2]) {
  for (int k = 0; k < 2; k++) {
    if (picked[k] < 0) continue;
    b.value_row[picked[k]] = y[ACTIONS * ROWS];
    if (mode == HT_LEARNER_PEEK) continue;
    b.action[picked[k]] = (uint8_t)action;
    b.log_probability[picked[k]] = y[action * ROWS];
  }
}

__device__ inline void write_states(const ht_learner_batch &b, const float *x, const int64_t (*picked)[2]) {
  for (int e = threadIdx.x; e < ROWS * TILE; e += NETWORK_THREADS)
    for (int k = 0; k < 2; k++)
      if (picked[e / TILE][k] >= 0) b.state[picked[e / TILE][k] * TILE + e % TILE] = x[e % TILE * PITCH + e / TILE];
}

__device__ inline void decide(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, const acting &acts,
                              const int64_t (&picked)[2]) {
  tile_of my(g, first + threadIdx.x);
  int action = 0;
  float *y = acts.y + threadIdx.x, logits[ACTIONS];
  if (!my.there) return;
  const ht_learner_solve &s = g.solve[my.lane];
  for (int a = 0; a < ACTIONS; a++) logits[a] = y[a * ROWS];
  if (mode == HT_LEARNER_LIKELIEST) {
    for (int a = 1; a < ACTIONS; a++) action = logits[a] > logits[action] ? a : action;
  } else {
    ht_learning_log_softmax(ACTIONS, logits);
    action = ht_learning_sample(ACTIONS, logits, ht_learning_draw(g.seed, s.episode, s.iteration, my.tile, g.tiles));
    for (int a = 0; a < ACTIONS; a++) y[a * ROWS] = logits[a];
    write_down(b, mode, action, y, picked);
  }
  if (mode == HT_LEARNER_PEEK) return;
  int level = ht_learning_level(action), zeros = 0;
  uint8_t *to = g.level + my.tile * g.lanes + my.lane;
  if (mode == HT_LEARNER_LIKELIEST && s.iteration > 0 && level > *to) {
    while (zeros < HT_LEARNING_RISES - 1 && !(s.iteration >> zeros & 1)) zeros++;
    atomicAdd((unsigned long long *)&g.solve[my.lane].rises[zeros], 1ull);
  }
  *to = (uint8_t)level;
  atomicAdd(&acts.count[my.lane * 3 + level], 1);
}

__device__ inline acting divide_shared(float *shared) {
  acting my;
  my.weights = shared;
  my.x = my.weights + HT_LEARNER_WEIGHTS;
  my.h1 = my.x + LAYER_FLOATS;
  my.y = my.h1 + LAYER_FLOATS;
  my.count = (int *)(my.y + HEADS * ROWS);
  return my;
}

// A level for each of 32 tiles, whose entries have been fetched; ends with a barrier.
__device__ inline void act(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, const acting &my,
                           const entries &e, double (*square)[ROWS], int64_t (*picked)[2]) {
  if (threadIdx.x < ROWS) find_picks(g, b, first, mode, picked[threadIdx.x]);
  place_tiles(e, my.x, square);
  if (mode == HT_LEARNER_SAMPLE) write_states(b, my.x, picked);
  forward(my.weights, my.x, my.h1, my.x, my.y); // the second layer takes the inputs' place
  if (threadIdx.x < ROWS) decide(g, b, first, mode, my, picked[threadIdx.x]);
  __syncthreads();
}

// ---- product and step ----

// COUNT entries of a row from k on, added to `sum`. What is asked for at once does not wait for each other; a lane takes the value of its
// level from the three that lie side by side.
template <int COUNT> __device__ inline double add_entries(const ht_learner_group &g, int64_t k, int lane, double sum) {
  int column[COUNT];
  double value[COUNT], p[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; j++) column[j] = g.columns[k + j];
#pragma unroll
  for (int j = 0; j < COUNT; j++) {
    p[j] = g.p[(int64_t)column[j] * g.lanes + lane];
    value[j] = g.values[(k + j) * HT_LEARNER_VALUES + g.level[(int64_t)(column[j] / TILE) * g.lanes + lane]];
  }
#pragma unroll
  for (int j = 0; j < COUNT; j++) sum = fma(value[j], p[j], sum);
  return sum;
}

// Entries begin..end-1 of a row times a direction.
__device__ inline double row_times(const ht_learner_group &g, int64_t begin, int64_t end, int lane) {
  double sum = 0;
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) sum = add_entries<4>(g, k, lane, sum);
  if (k + 2 <= end) sum = add_entries<2>(g, k, lane, sum), k += 2;
  return k < end ? add_entries<1>(g, k, lane, sum) : sum;
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
  if (g.x) g.x[at] = fma(alpha, g.p[at], g.x[at]);
  g.r[at] = r;
  return r;
}

// The first residual of an episode in one entry; returns it.
__device__ inline double begin(const ht_learner_group &g, int64_t at, int64_t row, int64_t episode) {
  double v = g.right_side ? g.right_side[row] : ht_learning_right_side(g.seed, episode, row);
  if (g.x) g.x[at] = 0;
  g.r[at] = v, g.p[at] = v;
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
  double reward = ht_learning_reward(before, s.norm_r, s.count, g.tiles, s.broken, s.reached, g.tile_cost);
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
