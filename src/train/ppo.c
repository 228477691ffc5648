/* Proximal policy optimisation: losses, gradients, Adam. SPDX-License-Identifier: BSD-3-Clause */
#include "train/ppo.h"
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "train/dense.h"

typedef struct ht_ppo_slot slot;

static int64_t slot_transitions(int64_t count) { return (count + HT_PPO_SLOTS - 1) / HT_PPO_SLOTS; }

static ht_status allocate(ht_ppo *p, int64_t transitions, int64_t tiles) {
  ht_context *ctx = p->ctx;
  int64_t rows = slot_transitions(p->settings.minibatch) * tiles;
  HT_TRY(ctx, ht_packed_create(ctx, p->network, &p->packed));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, p->weights, sizeof(float), &p->gradient));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, p->weights, sizeof(float), &p->first));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, p->weights, sizeof(float), &p->second));
  HT_TRY(ctx, ht_allocate(ctx, transitions, sizeof *p->shuffled, &p->shuffled));
  HT_TRY(ctx, ht_allocate(ctx, HT_PPO_SLOTS * ht_packed_gradient_size(&p->packed), sizeof(float), &p->sums));
  for (int k = 0; k < HT_PPO_SLOTS; k++) {
    HT_TRY(ctx, ht_activations_create(ctx, &p->packed, rows, &p->slot[k].forward));
    HT_TRY(ctx, ht_activations_create(ctx, &p->packed, rows, &p->slot[k].backward));
  }
  return HT_OK;
}

ht_status ht_ppo_create(ht_context *ctx, const ht_ppo_settings *settings, ht_network *network, int64_t transitions, int64_t tiles,
                        ht_ppo **out) {
  ht_ppo *p;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *p, &p));
  p->ctx = ctx;
  p->settings = *settings;
  p->deviation = 1;
  if (p->settings.minibatch > transitions) p->settings.minibatch = transitions;
  p->network = network;
  p->weights = ht_network_size(network->inputs, network->hidden, network->actions);
  ht_status status = allocate(p, transitions, tiles);
  if (status != HT_OK) {
    ht_ppo_destroy(p);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  ht_packed_load(&p->packed, network);
  *out = p;
  return HT_OK;
}

void ht_ppo_destroy(ht_ppo *p) {
  if (!p) return;
  void *memory[] = {p->gradient, p->first, p->second, p->shuffled, p->sums};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(p->ctx, memory[k]);
  for (int k = 0; k < HT_PPO_SLOTS; k++) {
    ht_activations_release(p->ctx, &p->slot[k].forward);
    ht_activations_release(p->ctx, &p->slot[k].backward);
  }
  ht_packed_release(&p->packed);
  ht_release(p->ctx, p);
}

/* ---- gradient of the loss ---- */

/* One transition, whose heads are `rows` rows of y: loss, and gradient over y. */
static void transition_loss(const ht_ppo *p, const ht_ppo_batch *batch, int64_t t, int64_t count, float *y, float *gradient,
                            ht_ppo_loss *loss) {
  int64_t first = t * batch->most_rows, rows = batch->rows[t];
  int width = p->packed.layer[HT_PACKED_LAYERS - 1].out, actions = p->network->actions;
  float value = 0, share = 1 / ((float)count * (float)rows);
  for (int64_t r = 0; r < rows; r++) value += y[r * width + actions];
  float miss = value / (float)rows - batch->target[t];
  for (int64_t r = 0; r < rows; r++) {
    float *g = gradient + r * width;
    float advantage = ht_learning_tile_advantage(&p->settings, batch->advantage[t], batch->action + first, rows, r, p->deviation);
    ht_learning_tile_loss(&p->settings, actions, advantage, batch->action[first + r], batch->log_probability[first + r], share, rows,
                          y + r * width, g, loss);
    g[actions] = (float)p->settings.value_weight * 2 * miss * share;
  }
  loss->value += (double)(miss * miss / (float)count);
}

/* Transitions first..last-1 of the list: states in, heads out, losses, and back. */
static void slot_gradient(ht_ppo *p, int k, const ht_ppo_batch *batch, int64_t count, const uint32_t *transition, int64_t first,
                          int64_t last) {
  slot *s = &p->slot[k];
  int width = p->packed.layer[0].in, inputs = p->network->inputs, heads = p->packed.layer[HT_PACKED_LAYERS - 1].out;
  int64_t rows = 0, size = ht_packed_gradient_size(&p->packed);
  float *sums = p->sums + k * size, *y = s->forward.activation[HT_PACKED_LAYERS], *dy = s->backward.activation[HT_PACKED_LAYERS];
  memset(sums, 0, (size_t)size * sizeof *sums);
  s->loss = (ht_ppo_loss){0};
  for (int64_t i = first; i < last; i++)
    for (int64_t r = 0; r < batch->rows[transition[i]]; r++, rows++)
      memcpy(s->forward.activation[0] + rows * width, batch->state + (transition[i] * batch->most_rows + r) * inputs,
             (size_t)inputs * sizeof(float));
  ht_packed_forward(&p->packed, rows, &s->forward);
  int64_t at = 0;
  for (int64_t i = first; i < last; i++) {
    uint32_t t = transition[i];
    transition_loss(p, batch, t, count, y + at * heads, dy + at * heads, &s->loss);
    at += batch->rows[t];
  }
  memset(dy + rows * heads, 0, (size_t)((ht_dense_padded(rows, HT_DENSE_ROWS) - rows) * heads) * sizeof *dy);
  ht_packed_backward(&p->packed, rows, &s->forward, &s->backward, sums);
}

void ht_ppo_gradient(ht_ppo *p, const ht_ppo_batch *batch, int64_t count, const uint32_t *transition, ht_ppo_loss *loss) {
  int64_t each = slot_transitions(count), size = ht_packed_gradient_size(&p->packed);
  int threads = p->ctx->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int k = 0; k < HT_PPO_SLOTS; k++) {
    int64_t first = k * each < count ? k * each : count, last = first + each < count ? first + each : count;
    slot_gradient(p, k, batch, count, transition, first, last);
  }
  *loss = (ht_ppo_loss){0};
  for (int k = 0; k < HT_PPO_SLOTS; k++) {
    for (int64_t i = 0; k && i < size; i++) p->sums[i] += p->sums[k * size + i];
    loss->policy += p->slot[k].loss.policy;
    loss->value += p->slot[k].loss.value;
    loss->entropy += p->slot[k].loss.entropy;
    loss->clipped += p->slot[k].loss.clipped;
  }
  loss->total = loss->policy + p->settings.value_weight * loss->value - p->settings.entropy_weight * loss->entropy;
  ht_packed_flatten(&p->packed, p->sums, p->gradient);
}

/* ---- steps ---- */

void ht_ppo_step(ht_ppo *p) {
  double norm2 = 0;
  for (int64_t i = 0; i < p->weights; i++) norm2 += (double)p->gradient[i] * p->gradient[i];
  double norm = sqrt(norm2);
  if (!isfinite(norm)) return; /* a step along it would end in nothing but NaN */
  const ht_adam adam = ht_learning_adam(&p->settings, norm, ++p->steps);
  for (int64_t i = 0; i < p->weights; i++)
    ht_learning_adam_step(&adam, p->gradient[i], &p->first[i], &p->second[i], &p->network->weights[i]);
  ht_packed_load(&p->packed, p->network);
}

/* Returns the deviation of before. */
static double standardise(int64_t count, float *v) {
  double mean = 0, square = 0;
  for (int64_t i = 0; i < count; i++) mean += v[i];
  mean /= (double)count;
  for (int64_t i = 0; i < count; i++) square += (v[i] - mean) * (v[i] - mean);
  double deviation = sqrt(square / (double)count) + 1e-8;
  for (int64_t i = 0; i < count; i++) v[i] = (float)((v[i] - mean) / deviation);
  return deviation;
}

static void shuffle(int64_t count, uint32_t *order, uint64_t seed) {
  for (int64_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (int64_t i = count - 1; i > 0; i--) {
    uint64_t j = ht_random_bits(seed, (uint64_t)i) % (uint64_t)(i + 1);
    uint32_t swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}

void ht_ppo_update(ht_ppo *p, ht_ppo_batch *batch, uint64_t seed, ht_ppo_loss *mean) {
  int64_t parts = 0;
  *mean = (ht_ppo_loss){0};
  p->deviation = standardise(batch->transitions, batch->advantage);
  for (int64_t epoch = 0; epoch < p->settings.epochs; epoch++) {
    shuffle(batch->transitions, p->shuffled, ht_random_bits(seed, (uint64_t)epoch));
    for (int64_t first = 0; first < batch->transitions; first += p->settings.minibatch, parts++) {
      int64_t left = batch->transitions - first;
      ht_ppo_loss loss;
      ht_ppo_gradient(p, batch, left < p->settings.minibatch ? left : p->settings.minibatch, p->shuffled + first, &loss);
      ht_ppo_step(p);
      mean->total += loss.total, mean->policy += loss.policy, mean->value += loss.value;
      mean->entropy += loss.entropy, mean->clipped += loss.clipped;
    }
  }
  double *sums[] = {&mean->total, &mean->policy, &mean->value, &mean->entropy, &mean->clipped};
  for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) *sums[k] /= (double)parts;
}
