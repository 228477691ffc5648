// The learning itself: advantages of the transitions, and steps of Adam along the gradient of the loss. A minibatch's rows go through the
// network 32 at a time, a block each; their gradients are summed in order. SPDX-License-Identifier: BSD-3-Clause
#include "backend/cuda/learner_network.cuh"

using namespace ht;

namespace {

enum { LOSSES = HT_LEARNER_LOSSES, THREADS = 1024, SUM_WEIGHTS = 32, SUM_SLICES = 8, SUM_THREADS = SUM_WEIGHTS * SUM_SLICES };

__device__ inline double sum_of_block(double v, double *shared) {
  __syncthreads();
  shared[threadIdx.x] = v;
  for (int half = (int)blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

__device__ inline float mean_value(const ht_learner_batch &b, int64_t t, int count) {
  double sum = 0;
  for (int k = 0; k < count; k++) sum += (double)b.value_row[t * b.most_rows + k];
  return (float)(sum / count);
}

// To mean 0 and deviation 1; returns the deviation.
__device__ inline double standardise(int64_t count, float *v, double *shared) {
  double sum = 0, square = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += (double)v[i];
  double mean = sum_of_block(sum, shared) / (double)count;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) square += ((double)v[i] - mean) * ((double)v[i] - mean);
  double deviation = sqrt(sum_of_block(square, shared) / (double)count) + 1e-8;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) v[i] = (float)(((double)v[i] - mean) / deviation);
  return deviation;
}

// Fisher and Yates: the places are drawn by all threads, the swaps made by one.
__device__ inline void shuffle(uint32_t count, uint32_t *order, uint32_t *drawn, uint64_t seed) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    order[i] = i;
    drawn[i] = (uint32_t)(ht_random_bits(seed, i) % (uint64_t)(i + 1));
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (uint32_t i = count - 1; i > 0; i--) {
      uint32_t swapped = order[i];
      order[i] = order[drawn[i]];
      order[drawn[i]] = swapped;
    }
  __syncthreads();
}

} // namespace

// Values of the states, then advantages and targets, back from the end of each lane. One block.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_learner_estimate(const __grid_constant__ ht_learner_batch b, float *value, double gamma, double lambda) {
  for (int64_t t = threadIdx.x; t < b.transitions + b.lanes; t += blockDim.x) {
    int64_t like = t < b.transitions ? t : (t - b.transitions + 1) * b.steps - 1; // what a lane's last transition has
    value[t] = mean_value(b, t, b.rows[like]);
  }
  __syncthreads();
  for (int lane = threadIdx.x; lane < b.lanes; lane += blockDim.x) {
    double next = (double)value[b.transitions + lane], advantage = 0;
    for (int64_t t = (lane + 1) * b.steps - 1; t >= lane * b.steps; t--) {
      advantage = ht_learning_advantage((double)b.reward[t], (double)value[t], next, advantage, b.last[t] ? 0 : gamma, lambda);
      b.advantage[t] = (float)advantage;
      b.target[t] = (float)(advantage + (double)value[t]);
      next = (double)value[t];
    }
  }
}

// Advantages standardised by the first block, the transitions' order of an epoch by each of the others. in_shared: there is shared memory
// for that; else w.order has as much again behind the orders.
extern "C" __global__ void __launch_bounds__(THREADS)
    ht_learner_prepare(const __grid_constant__ ht_learner_batch b, const __grid_constant__ ht_learner_weights w, int in_shared) {
  extern __shared__ uint32_t drawn[];
  __shared__ double shared[THREADS];
  uint32_t count = (uint32_t)b.transitions;
  if (blockIdx.x == 0) {
    double deviation = standardise(b.transitions, b.advantage, shared);
    if (threadIdx.x == 0) w.scalars->deviation = deviation;
    return;
  }
  int64_t epoch = blockIdx.x - 1;
  uint32_t *to = w.order + epoch * count, *order = in_shared ? drawn + count : to;
  shuffle(count, order, in_shared ? drawn : to + w.settings.epochs * count, ht_random_bits(w.scalars->seed, (uint64_t)epoch));
  for (uint32_t i = threadIdx.x; i < count && in_shared; i += blockDim.x) to[i] = order[i];
}

namespace {

struct part { // of an update: a minibatch
  const uint32_t *transition;
  int64_t count;
  __device__ part(const ht_learner_batch &b, const ht_learner_weights &w) {
    int64_t size = w.settings.minibatch, an_epoch = (b.transitions + size - 1) / size, number = w.scalars->part;
    int64_t first = number % an_epoch * size;
    transition = w.order + number / an_epoch * b.transitions + first;
    count = b.transitions - first < size ? b.transitions - first : size;
  }
};

struct tile { // in a row of this block
  int64_t transition, at;
  int first, rows; // rows of the transition in this block
  bool there;
  __device__ tile(const ht_learner_batch &b, const part &p, int row) {
    int most = (int)b.most_rows, each = ROWS / most;
    int64_t index = (int64_t)blockIdx.x * each + row / most;
    there = row / most < each && index < p.count;
    transition = there ? p.transition[index] : 0;
    first = row / most * most;
    rows = b.rows[transition];
    there = there && row - first < rows;
    at = transition * most + row - first;
  }
};

// A thread a row: loss, and its gradient over the heads, in place.
__device__ inline void tile_loss(const ht_learner_batch &b, const ht_learner_weights &w, const part &p, float *y, const float *values,
                                 double (*losses)[LOSSES]) {
  int row = threadIdx.x;
  tile my(b, p, row);
  float logits[ACTIONS], gradient[HEADS] = {};
  ht_ppo_loss loss = {};
  if (my.there) {
    float value = 0, share = 1 / ((float)p.count * (float)my.rows);
    for (int r = 0; r < my.rows; r++) value += values[my.first + r];
    float miss = value / (float)my.rows - b.target[my.transition];
    for (int a = 0; a < ACTIONS; a++) logits[a] = y[a * ROWS + row];
    float advantage = ht_learning_tile_advantage(&w.settings, b.advantage[my.transition], b.action + my.transition * b.most_rows, my.rows,
                                                 row - my.first, w.scalars->deviation);
    ht_learning_tile_loss(&w.settings, ACTIONS, advantage, b.action[my.at], b.log_probability[my.at], share, my.rows, logits, gradient,
                          &loss);
    gradient[ACTIONS] = (float)w.settings.value_weight * 2 * miss * share;
    if (row == my.first) loss.value = (double)(miss * miss / (float)p.count);
  }
  for (int a = 0; a < HEADS; a++) y[a * ROWS + row] = gradient[a];
  losses[row][0] = loss.policy, losses[row][1] = loss.value, losses[row][2] = loss.entropy, losses[row][3] = loss.clipped;
}

__device__ inline void load_states(const ht_learner_batch &b, const part &p, float *x) {
  int row = threadIdx.x % ROWS;
  tile my(b, p, row);
  for (int i = threadIdx.x / ROWS * 4; i < WIDTH; i += NETWORK_THREADS / ROWS * 4) {
    float4 v = my.there ? *(const float4 *)(b.state + my.at * WIDTH + i) : make_float4(0, 0, 0, 0);
    x[i * PITCH + row] = v.x, x[(i + 1) * PITCH + row] = v.y, x[(i + 2) * PITCH + row] = v.z, x[(i + 3) * PITCH + row] = v.w;
  }
}

} // namespace

// Loss and gradient of 32 rows of the minibatch.
extern "C" __global__ void __launch_bounds__(NETWORK_THREADS)
    ht_learner_gradient(const __grid_constant__ ht_learner_batch b, const __grid_constant__ ht_learner_weights w) {
  extern __shared__ float4 memory[];
  __shared__ float values[ROWS], y[HEADS * ROWS];
  __shared__ double losses[ROWS][LOSSES];
  float *weights = (float *)memory, *x = weights + HT_LEARNER_STORED, *h1 = x + LAYER_FLOATS, *h2 = h1 + LAYER_FLOATS,
        *d = h2 + LAYER_FLOATS, *to = w.partial + (int64_t)blockIdx.x * HT_LEARNER_WEIGHTS;
  if (w.scalars->part >= w.scalars->parts) return;
  part p(b, w);
  load_weights(w.weights, HT_LEARNER_STORED, weights);
  load_states(b, p, x);
  __syncthreads();
  forward(weights, x, h1, h2, y);
  if (threadIdx.x < ROWS) values[threadIdx.x] = y[ACTIONS * ROWS + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < ROWS) tile_loss(b, w, p, y, values, losses);
  __syncthreads();
  if (threadIdx.x < LOSSES) {
    double sum = 0;
#pragma unroll
    for (int row = 0; row < ROWS; row++) sum += losses[row][threadIdx.x];
    w.losses[blockIdx.x * LOSSES + threadIdx.x] = sum;
  }
  heads_gradient(y, h2, to);
  through_heads(weights, y, h2, d);
  weight_gradient(h1, d, to + HT_LEARNER_W2);
  bias_gradient(d, to + HT_LEARNER_B2);
  through_second(weights, d, h1, h2); // h2 has done its part
  weight_gradient(x, h2, to + HT_LEARNER_W1);
  bias_gradient(h2, to + HT_LEARNER_B1);
}

namespace {

// What Adam needs, from the gradient's norm.
__device__ inline void conclude(const ht_learner_weights &w, const double (&losses)[LOSSES], double norm2) {
  ht_learner_scalars &s = *w.scalars;
  double norm = sqrt(norm2);
  s.loss.policy += losses[0], s.loss.value += losses[1], s.loss.entropy += losses[2], s.loss.clipped += losses[3];
  s.part++;
  s.stands = !isfinite(norm); // a step along it would end in nothing but NaN
  if (s.stands) return;
  s.steps++;
  s.adam = ht_learning_adam(&w.settings, norm, s.steps);
}

} // namespace

// The gradient of the minibatch from those of its units.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) ht_learner_sum(const __grid_constant__ ht_learner_weights w, int units) {
  __shared__ float slices[SUM_SLICES][SUM_WEIGHTS];
  __shared__ double shared[SUM_THREADS];
  __shared__ uint32_t ticket;
  if (w.scalars->part >= w.scalars->parts) {
    if (blockIdx.x == 0 && threadIdx.x == 0) w.scalars->stands = 1;
    return;
  }
  int slice = threadIdx.x / SUM_WEIGHTS, weight = blockIdx.x * SUM_WEIGHTS + threadIdx.x % SUM_WEIGHTS;
  float sum = 0;
#pragma unroll 16
  for (int u = slice; u < units && weight < HT_LEARNER_WEIGHTS; u += SUM_SLICES)
    sum += __ldcg(w.partial + (int64_t)u * HT_LEARNER_WEIGHTS + weight);
  slices[slice][threadIdx.x % SUM_WEIGHTS] = sum;
  __syncthreads();
  double square = 0;
  if (slice == 0 && weight < HT_LEARNER_WEIGHTS) {
    for (int k = 1; k < SUM_SLICES; k++) sum += slices[k][threadIdx.x];
    w.gradient[weight] = sum;
    square = (double)sum * (double)sum;
  }
  square = sum_of_block(square, shared);
  if (threadIdx.x == 0) {
    w.norm2[blockIdx.x] = square;
    __threadfence();
    ticket = atomicAdd(&w.scalars->arrived, 1u);
  }
  __syncthreads();
  if (ticket != gridDim.x - 1) return;
  __threadfence();
  square = 0;
  for (unsigned k = threadIdx.x; k < gridDim.x; k += SUM_THREADS) square += __ldcg(w.norm2 + k);
  square = sum_of_block(square, shared);
  double losses[LOSSES];
  for (int k = 0; k < LOSSES; k++) {
    double part = 0;
    for (int u = threadIdx.x; u < units; u += SUM_THREADS) part += __ldcg(w.losses + u * LOSSES + k);
    losses[k] = sum_of_block(part, shared);
  }
  if (threadIdx.x > 0) return;
  w.scalars->arrived = 0;
  conclude(w, losses, square);
}

// A step of Adam; the second layer's weights are kept both ways.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) ht_learner_step(const __grid_constant__ ht_learner_weights w) {
  int k = blockIdx.x * SUM_THREADS + threadIdx.x;
  if (w.scalars->stands || k >= HT_LEARNER_WEIGHTS) return;
  ht_learning_adam_step(&w.scalars->adam, w.gradient[k], &w.first[k], &w.second[k], &w.weights[k]);
  int second = k - HT_LEARNER_W2;
  if (second >= 0 && second < WIDTH * WIDTH) w.weights[HT_LEARNER_BACK + second % WIDTH * WIDTH + second / WIDTH] = w.weights[k];
}
