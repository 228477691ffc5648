// What kernels that solve have in common (learner_solve.cu, learner_small.cu). SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "backend/cuda/learner_network.cuh"
#include "backend/replacement.h"

namespace ht {

enum { TILE = HT_LEARNER_WIDTH };
constexpr double LEAST_NORM = 1e-30; // delta of the paper

// Nothing left to do in this replay. Whoever changes this is the last block of a kernel.
__device__ inline bool idle(const ht_learner_group &g) {
  return g.control->step >= g.control->steps || (g.judged && g.solve->over) || g.control->resting >= g.lanes;
}

// Before iteration number `iteration`, from 0. interval 0: never.
__device__ inline bool decision_due(const ht_learner_group &g, int64_t iteration) {
  return g.control->interval > 0 && iteration % g.control->interval == 0;
}

__device__ inline bool decides(const ht_learner_group &g, const ht_learner_solve &s) { return !s.rests && decision_due(g, s.iteration); }

// Any of the solves; for all threads of a block.
__device__ inline bool any_decides(const ht_learner_group &g) {
  bool due = false;
  for (int lane = threadIdx.x; lane < g.lanes; lane += blockDim.x) due |= decides(g, g.solve[lane]);
  return __syncthreads_or(due);
}

// Of a lane's solve, among those of all matrices.
__device__ inline int64_t number_of(const ht_learner_group &g, int lane) { return g.first + (int64_t)lane * g.stride; }

// Of episode `episode`; those of a judged solve are the numbers of right-hand sides.
__device__ inline int side_of(const ht_learner_group &g, int64_t episode) {
  return g.judged ? (int)episode : ht_learning_side(g.sides, episode / g.stride);
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

// Each solve's sums over all blocks, in the last one to come here; false in the others.
template <int COUNT> __device__ inline bool sums_of_blocks(const ht_learner_group &g, const place &my, double (&v)[COUNT], double *shared) {
  __shared__ uint32_t ticket;
  for (int k = 0; k < COUNT; k++) {
    v[k] = sum_of_rows(g, my, v[k], shared);
    if (my.row == 0) g.sums[((int64_t)blockIdx.x * COUNT + k) * g.lanes + my.lane] = v[k];
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) ticket = atomicAdd(g.arrived, 1u);
  __syncthreads();
  if (ticket != gridDim.x - 1) return false;
  __threadfence();
  for (int k = 0; k < COUNT; k++) {
    double sum = 0;
#pragma unroll 8
    for (unsigned b = my.row; b < gridDim.x; b += my.rows) sum += __ldcg(g.sums + ((int64_t)b * COUNT + k) * g.lanes + my.lane);
    v[k] = sum_of_rows(g, my, sum, shared);
  }
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
  if (g.side && !(decides(g, s) && s.written < b.steps)) return; // no room: it decides all the same
  int64_t number = number_of(g, my.lane), step = g.side ? s.written : g.control->step;
  int64_t row = (mode == HT_LEARNER_PEEK ? b.transitions + number : number * b.steps + step) * b.most_rows;
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

// The number in [0, 1) that decides about a tile.
__device__ inline double draw(const ht_learner_group &g, const ht_learner_solve &s, int64_t tile) {
  return g.side ? ht_learning_shared_draw(g.seed, s.episode / g.stride) : ht_learning_draw(g.seed, s.episode, s.iteration, tile, g.tiles);
}

__device__ inline void decide(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, const acting &acts,
                              const int64_t (&picked)[2]) {
  tile_of my(g, first + threadIdx.x);
  int action = 0;
  float *y = acts.y + threadIdx.x, logits[ACTIONS];
  if (!my.there) return;
  const ht_learner_solve &s = g.solve[my.lane];
  if (mode != HT_LEARNER_PEEK && !decides(g, s)) return;
  for (int a = 0; a < ACTIONS; a++) logits[a] = y[a * ROWS];
  if (mode == HT_LEARNER_LIKELIEST) {
    for (int a = 1; a < ACTIONS; a++) action = logits[a] > logits[action] ? a : action;
  } else {
    ht_learning_log_softmax(ACTIONS, logits);
    action = ht_learning_sample(ACTIONS, logits, draw(g, s, my.tile));
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

// Whether one of these 32 tiles' solves decides now; for all threads of a block.
__device__ inline bool act_is_due(const ht_learner_group &g, int64_t first) {
  tile_of my(g, first + threadIdx.x % ROWS);
  return __syncthreads_or(my.there && decides(g, g.solve[my.lane]));
}

// A level for each of 32 tiles, whose entries have been fetched; ends with a barrier.
__device__ inline void act(const ht_learner_group &g, const ht_learner_batch &b, int64_t first, int mode, const acting &my,
                           const entries &e, double (*square)[ROWS], int64_t (*picked)[2]) {
  if (g.side && !act_is_due(g, first)) return;
  if (threadIdx.x < ROWS) find_picks(g, b, first, mode, picked[threadIdx.x]);
  place_tiles(e, my.x, square);
  if (mode == HT_LEARNER_SAMPLE) write_states(b, my.x, picked);
  forward(my.weights, my.x, my.h1, my.x, my.y); // the second layer takes the inputs' place
  if (threadIdx.x < ROWS) decide(g, b, first, mode, my, picked[threadIdx.x]);
  __syncthreads();
}

// The level that a part of a solve's matrix is read at.
__device__ inline void spread(const ht_learner_group &g, int64_t part, int lane) {
  uint8_t level = 0;
  for (int64_t k = g.touch_start[part]; k < g.touch_start[part + 1]; k++)
    level = max(level, g.level[(int64_t)g.touched[k] * g.lanes + lane]);
  g.part_level[part * g.lanes + lane] = level;
}

// ---- product and step ----

// COUNT entries of a row from k on, added to `sum`. What is asked for at once does not wait for each other; a lane takes the value of its
// level from the three that lie side by side: its part's, or its column block's.
template <int COUNT, bool PARTS> __device__ inline double add_entries(const ht_learner_group &g, int64_t k, int lane, double sum) {
  int column[COUNT], together[COUNT]; // whose level counts
  const uint8_t *level = PARTS ? g.part_level : g.level;
  double value[COUNT], p[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; j++) column[j] = g.columns[k + j];
#pragma unroll
  for (int j = 0; j < COUNT; j++) together[j] = PARTS ? g.part[k + j] : column[j] / TILE;
#pragma unroll
  for (int j = 0; j < COUNT; j++) {
    p[j] = g.p[(int64_t)column[j] * g.lanes + lane];
    value[j] = g.values[(k + j) * HT_LEARNER_VALUES + level[(int64_t)together[j] * g.lanes + lane]];
  }
#pragma unroll
  for (int j = 0; j < COUNT; j++) sum = fma(value[j], p[j], sum);
  return sum;
}

template <bool PARTS> __device__ inline double add_row(const ht_learner_group &g, int64_t k, int64_t end, int lane) {
  double sum = 0;
  for (; k + 4 <= end; k += 4) sum = add_entries<4, PARTS>(g, k, lane, sum);
  if (k + 2 <= end) sum = add_entries<2, PARTS>(g, k, lane, sum), k += 2;
  return k < end ? add_entries<1, PARTS>(g, k, lane, sum) : sum;
}

// Entries begin..end-1 of a row times a direction.
__device__ inline double row_times(const ht_learner_group &g, int64_t begin, int64_t end, int lane) {
  return g.parts ? add_row<true>(g, begin, end, lane) : add_row<false>(g, begin, end, lane);
}

// An entry of b - A x in FP64.
__device__ inline double residual_of(const ht_learner_group &g, int64_t row, int lane) {
  double sum = 0;
  for (int64_t k = g.row_start[row]; k < g.row_start[row + 1]; k++)
    sum = fma(g.values[k * HT_LEARNER_VALUES + HT_REPLACES_NONE], g.x[(int64_t)g.columns[k] * g.lanes + lane], sum);
  return g.right_sides[side_of(g, g.solve[lane].episode) * g.n + row] - sum;
}

// Before the step: its length, from p'q.
__device__ inline void set_length(ht_learner_solve &s, double pq) {
  double alpha = s.rr / pq;
  s.alpha = 0;
  if (s.rests) return;
  s.broken = !(pq > 0) || !isfinite(alpha);
  if (!s.broken) s.alpha = alpha;
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
  double v = g.right_sides ? g.right_sides[side_of(g, episode) * g.n + row] : ht_learning_right_side(g.seed, episode, row);
  if (g.x) g.x[at] = 0;
  g.r[at] = v, g.p[at] = v;
  return v;
}

// anew: in an update that begins.
__device__ inline void set_begun(ht_learner_solve &s, int64_t episode, double bb, bool anew) {
  s.episode = episode;
  s.iteration = s.over = s.broken = s.reached = s.rests = 0;
  if (anew) s.written = 0;
  s.begun = s.written;
  s.total = s.progress = 0;
  s.rr = bb;
  s.norm_0 = s.norm_r = s.reference = s.best = sqrt(bb);
  s.lowest = HT_REPLACES_NONE;
}

// ---- after the step ----

// The residual and the direction stand.
__device__ inline void settle(const ht_learner_group &g, ht_learner_solve &s, double rr, double change) {
  s.reached = s.norm_r <= g.rtol * s.norm_0;
  s.broken = !isfinite(rr);
  s.beta = change <= ht_replacement_bearable(s.norm_r) ? rr / s.rr : 0;
  s.rr = rr;
}

__device__ inline bool replacement_is_due(const ht_learner_group &g, ht_learner_solve &s) {
  for (int level = 0; level < s.lowest; level++)
    if (s.count[level]) s.lowest = level;
  if (!g.replaces || s.lowest == HT_REPLACES_NONE) return false;
  return s.norm_r <= g.drop[s.lowest] * s.reference || s.norm_r <= g.rtol * s.norm_0;
}

// The recurrence says so, and there is nothing below FP64 in it that was not made good.
__device__ inline bool is_there(const ht_learner_solve &s) { return s.reached && s.lowest == HT_REPLACES_NONE; }

// What the iteration earned by the reward time.
__device__ inline double saved(const ht_learner_group &g, ht_learner_solve &s) {
  const ht_learner_side &side = g.side[side_of(g, s.episode)];
  s.best = s.replaced || s.norm_r < s.best ? s.norm_r : s.best;
  bool there = is_there(s), missed = s.over && !there;
  double residual = missed ? s.true_residual : s.best / s.norm_0;
  double before = s.progress;
  s.progress = there ? (double)side.iterations : ht_learning_progress(side.fallen, side.iterations, residual);
  double reward = ht_learning_saving(&side.prices, s.progress - before, side.iterations, s.count, g.tiles, s.replaced);
  return missed ? reward - ht_learning_missed(s.progress, side.iterations) : reward;
}

// Where it is over: all transitions of an episode have what the whole of it came to; without room for more the solve rests.
__device__ inline void end_whole_episode(const ht_learner_group &g, const ht_learner_batch &b, int64_t number, ht_learner_solve &s) {
  for (int64_t t = number * b.steps + s.begun; t < number * b.steps + s.written; t++) b.advantage[t] = b.target[t] = (float)s.total;
  if (s.written < b.steps) return;
  s.rests = 1;
  atomicAdd(&g.control->resting, 1);
}

// The iteration as a transition, and the episode where it ended. With the reward time a decision is one, while there is room.
__device__ inline void write_transition(const ht_learner_group &g, const ht_learner_batch &b, int lane, double reward) {
  ht_learner_solve &s = g.solve[lane];
  int64_t number = number_of(g, lane), t = number * b.steps + (g.side ? s.written : g.control->step);
  s.total += reward;
  if (!g.side || (decision_due(g, s.iteration - 1) && s.written < b.steps)) {
    s.written += g.side != nullptr;
    b.rows[t] = (int32_t)(g.tiles < b.most_rows ? g.tiles : b.most_rows);
    b.reward[t] = (float)reward;
    b.last[t] = (uint8_t)s.over;
  }
  if (!s.over) return;
  b.finished[number * b.steps + b.finished_count[number]++] = {s.episode, s.iteration, s.total};
  if (g.side) end_whole_episode(g, b, number, s);
}

__device__ inline void finish(const ht_learner_group &g, const ht_learner_batch &b, int lane) {
  ht_learner_solve &s = g.solve[lane];
  s.over = s.broken || s.reached || s.iteration >= g.control->most_iterations;
  if (g.judged) {
    for (int level = 0; level < 3; level++) s.share[level] += s.count[level];
    s.replacements += s.replaced;
    g.norms[(s.iteration - 1) % HT_LEARNER_NORMS] = s.norm_r;
  } else {
    write_transition(
        g, b, lane, g.side ? saved(g, s) : ht_learning_reward(s.norm_before, s.norm_r, s.count, g.tiles, s.broken, s.reached, g.tile_cost));
  }
  if (s.over || decision_due(g, s.iteration))
    for (int level = 0; level < 3; level++) s.count[level] = 0;
}

// After the step: what became of the solve, and its reward, where no residual is wanted first.
__device__ inline void conclude(const ht_learner_group &g, const ht_learner_batch &b, int lane, double rr) {
  ht_learner_solve &s = g.solve[lane];
  if (s.rests) return;
  s.norm_before = s.norm_r;
  s.reached = s.replaced = 0;
  s.wants = HT_LEARNER_NOTHING;
  if (!s.broken) {
    s.norm_r = sqrt(rr);
    if (replacement_is_due(g, s))
      s.wants = HT_LEARNER_REPLACEMENT;
    else
      settle(g, s, rr, 0);
  }
  bool ends = s.broken || s.reached || s.iteration >= g.control->most_iterations;
  if (!s.wants && ends && g.side && !g.judged && !is_there(s)) s.wants = HT_LEARNER_NORM;
  if (s.wants)
    g.control->wanted = 1;
  else
    finish(g, b, lane);
}

// With the residual that was wanted; change2: the square of how far the recurrence's was from it.
__device__ inline void conclude_wanted(const ht_learner_group &g, const ht_learner_batch &b, int lane, double rr, double change2) {
  ht_learner_solve &s = g.solve[lane];
  double norm = sqrt(rr);
  if (s.wants == HT_LEARNER_REPLACEMENT) {
    s.replaced = 1;
    s.norm_r = s.reference = norm;
    s.lowest = HT_REPLACES_NONE;
    settle(g, s, rr, sqrt(change2));
  }
  s.true_residual = isfinite(norm) ? norm / s.norm_0 : INFINITY;
  s.wants = HT_LEARNER_NOTHING;
  finish(g, b, lane);
}

} // namespace ht
