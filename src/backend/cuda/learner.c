/* Training on the device: graphs of iterations of many solves, and of steps of Adam, are replayed until an update's transitions are there
 * and learned from; the host reads which episodes have ended. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/learner.h"
#include <string.h>

enum {
  VECTORS_THREADS = 256,
  SUM_WEIGHTS = 32,
  SUM_THREADS = 256,
  PREPARE_THREADS = 1024,
  MOST_SHUFFLED = 4096, /* transitions that are put in order in shared memory */
  MOST_STEPS = 32,      /* of all solves in one graph */
  MOST_PARTS = 128,     /* steps of Adam in one graph */
  JUDGED_STEPS = 32,
  SMALL_STEPS = 1024 /* of a judged solve in one kernel: an interrupt waits no longer */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- launches ---- */

ht_status ht_learner_iteration(ht_learner *l, ht_learner_matrix *m, int judged) {
  ht_learner_group *g = judged ? &m->judged : &m->group;
  const ht_learner_launches *launches = judged ? &m->judged_launches : &m->launches;
  float *weights = judged ? l->deployed : l->w.weights;
  int mode = judged ? HT_LEARNER_LIKELIEST : HT_LEARNER_SAMPLE, only_begin = 0;
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_act, launches->act, HT_ARGS(g, &l->batch, &weights, &mode)));
  if (g->parts) HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_spread, launches->vectors, HT_ARGS(g)));
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_multiply, launches->vectors, HT_ARGS(g)));
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_advance, launches->vectors, HT_ARGS(g, &l->batch)));
  if (g->side) HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_repair, launches->vectors, HT_ARGS(g, &l->batch)));
  return ht_cuda_launch(l->cuda, HT_KERNEL_learner_turn, launches->vectors, HT_ARGS(g, &only_begin));
}

static void enqueue_steps(void *user) {
  ht_learner *l = user;
  for (int64_t k = 0; k < l->collect_steps; k++)
    for (int m = 0; m < l->matrices; m++)
      if (!l->matrix[m].launches.small.grid) ht_learner_iteration(l, &l->matrix[m], 0);
}

static ht_status run_small(ht_learner *l, ht_learner_matrix *m, int judged) {
  ht_learner_group *g = judged ? &m->judged : &m->group;
  float *weights = judged ? l->deployed : l->w.weights;
  return ht_cuda_launch(l->cuda, HT_KERNEL_learner_small, judged ? m->judged_launches.small : m->launches.small,
                        HT_ARGS(g, &l->batch, &weights));
}

static ht_status enqueue_part(ht_learner *l) {
  int units = (int)l->units;
  unsigned shared = (HT_LEARNER_STORED + 4 * HT_LEARNER_WIDTH * HT_LEARNER_PITCH) * 4;
  ht_launch gradient = {.grid = (unsigned)units, .block = HT_LEARNER_THREADS, .shared_bytes = shared},
            sum = {.grid = (HT_LEARNER_WEIGHTS + SUM_WEIGHTS - 1) / SUM_WEIGHTS, .block = SUM_THREADS},
            step = {.grid = (HT_LEARNER_WEIGHTS + SUM_THREADS - 1) / SUM_THREADS, .block = SUM_THREADS};
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_gradient, gradient, HT_ARGS(&l->batch, &l->w)));
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_sum, sum, HT_ARGS(&l->w, &units)));
  return ht_cuda_launch(l->cuda, HT_KERNEL_learner_step, step, HT_ARGS(&l->w));
}

static void enqueue_parts(void *user) {
  ht_learner *l = user;
  for (int64_t k = 0; k < l->update_parts; k++) enqueue_part(l);
}

typedef struct judged_run {
  ht_learner *learner;
  ht_learner_matrix *matrix;
} judged_run;

static void enqueue_judged(void *user) {
  const judged_run *run = user;
  for (int k = 0; k < JUDGED_STEPS; k++) ht_learner_iteration(run->learner, run->matrix, 1);
}

/* ---- life ---- */

static int64_t parts_of(const ht_learner *l) {
  int64_t size = l->w.settings.minibatch;
  return l->w.settings.epochs * ((l->batch.transitions + size - 1) / size);
}

static ht_status check_settings(ht_context *ctx, const ht_learner_settings *s, int matrices) {
  HT_CHECK(ctx, s->lanes % matrices == 0 && s->lanes / matrices <= HT_LEARNER_MOST_LANES, HT_UNSUPPORTED,
           "the cuda backend trains with as many solves side by side for each matrix, up to %d, and lanes is %d for %d matrices",
           HT_LEARNER_MOST_LANES, s->lanes, matrices);
  return HT_OK;
}

static ht_status load_kernels(ht_learner *l) {
  static const ht_kernel kernels[] = {HT_KERNEL_learner_estimate, HT_KERNEL_learner_prepare, HT_KERNEL_learner_gradient,
                                      HT_KERNEL_learner_sum, HT_KERNEL_learner_step};
  int blocks;
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
    HT_TRY(l->ctx, ht_cuda_resident_blocks(l->cuda, kernels[k], HT_LEARNER_THREADS, 0, &blocks));
  return HT_OK;
}

static ht_status create(ht_learner *l, const ht_learner_system *system) {
  HT_TRY(l->ctx, ht_allocate_zeroed(l->ctx, l->matrices, sizeof *l->matrix, &l->matrix));
  HT_TRY(l->ctx, ht_cuda_allocate_host(l->cuda, sizeof *l->scalars, &l->scalars));
  HT_TRY(l->ctx, ht_cuda_allocate_host(l->cuda, HT_LEARNER_MOST_LANES * (int64_t)sizeof *l->solve, &l->solve));
  HT_TRY(l->ctx, ht_cuda_allocate_host(l->cuda, sizeof *l->control, &l->control));
  HT_TRY(l->ctx, ht_cuda_allocate_host(l->cuda, HT_LEARNER_STORED * 4, &l->staged));
  HT_TRY(l->ctx, ht_learner_make_batch(l));
  HT_TRY(l->ctx, ht_learner_make_weights(l));
  for (int m = 0; m < l->matrices; m++) HT_TRY(l->ctx, ht_learner_make_matrix(l, m, &system[m]));
  HT_TRY(l->ctx, load_kernels(l));
  l->collect_steps = l->settings.saves ? MOST_STEPS : smaller(l->settings.steps, MOST_STEPS);
  l->update_parts = smaller(parts_of(l), MOST_PARTS);
  /* the gradient's shared memory is allowed outside of a capture: by a launch that has nothing to do */
  HT_TRY(l->ctx, enqueue_part(l));
  int larger = 0;
  for (int m = 0; m < l->matrices; m++) larger += !l->matrix[m].launches.small.grid;
  if (larger) HT_TRY(l->ctx, ht_cuda_capture(l->cuda, enqueue_steps, l, "making the graph of a learner's iterations", &l->collect));
  return ht_cuda_capture(l->cuda, enqueue_parts, l, "making the graph of an update", &l->update);
}

ht_status ht_cuda_learner_create(ht_context *ctx, const ht_learner_settings *settings, int matrices, const ht_learner_system *system,
                                 ht_learner **out) {
  ht_learner *l;
  *out = NULL;
  HT_TRY(ctx, check_settings(ctx, settings, matrices));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *l, &l));
  *l = (ht_learner){.ctx = ctx, .cuda = ht_cuda_of(ctx), .settings = *settings, .matrices = matrices, .unbegun = 1};
  ht_status status = create(l, system);
  if (status != HT_OK) {
    ht_cuda_learner_release(l);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = l;
  return HT_OK;
}

static void release_group(ht_cuda *cuda, const ht_learner_group *g) { ht_cuda_release(cuda, g->r); }

void ht_cuda_learner_release(ht_learner *l) {
  if (!l) return;
  int entered = ht_cuda_enter(l->cuda);
  if (l->collect) l->cuda->driver->cuGraphExecDestroy(l->collect);
  if (l->update) l->cuda->driver->cuGraphExecDestroy(l->update);
  for (int m = 0; l->matrix && m < l->matrices; m++)
    if (l->matrix[m].judge) l->cuda->driver->cuGraphExecDestroy(l->matrix[m].judge);
  ht_cuda_leave(l->cuda, entered);
  for (int m = 0; l->matrix && m < l->matrices; m++) {
    const ht_learner_group *g = &l->matrix[m].group;
    release_group(l->cuda, g);
    release_group(l->cuda, &l->matrix[m].judged);
    const void *owned[] = {g->row_start, g->columns,     g->values, g->right_sides,     g->part,
                           g->touched,   g->touch_start, g->side,   l->matrix[m].fallen};
    for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) ht_cuda_release(l->cuda, (void *)(uintptr_t)owned[k]);
  }
  ht_cuda_release(l->cuda, l->batch.rows);
  ht_cuda_release(l->cuda, l->w.weights);
  void *pinned[] = {l->scalars, l->solve, l->control, l->staged};
  for (size_t k = 0; k < sizeof pinned / sizeof *pinned; k++) ht_cuda_release_host(l->cuda, pinned[k]);
  ht_release(l->ctx, l->matrix);
  ht_release(l->ctx, l);
}

/* ---- what goes in and out ---- */

void ht_cuda_learner_set_limit(ht_learner *l, int matrix, int64_t iterations) { l->matrix[matrix].control.most_iterations = iterations; }

ht_status ht_cuda_learner_set_saving(ht_learner *l, int matrix, const ht_learner_side *side, int64_t interval) {
  ht_learner_matrix *m = &l->matrix[matrix];
  ht_learner_side placed[HT_LEARNER_MOST_SIDES];
  int64_t numbers = 0, at = 0;
  for (int k = 0; k < m->group.sides; k++) numbers += side[k].iterations + 1;
  ht_cuda_release(l->cuda, m->fallen);
  m->fallen = NULL;
  HT_TRY(l->ctx, ht_cuda_allocate(l->cuda, numbers * 8, &m->fallen));
  for (int k = 0; k < m->group.sides; k++) {
    placed[k] = side[k];
    placed[k].fallen = m->fallen + at;
    HT_TRY(l->ctx, ht_cuda_copy(l->cuda, (side[k].iterations + 1) * 8, side[k].fallen, m->fallen + at));
    at += side[k].iterations + 1;
  }
  m->control.interval = interval;
  return ht_cuda_copy(l->cuda, m->group.sides * (int64_t)sizeof *placed, placed, (void *)(uintptr_t)m->group.side);
}

enum { TO_DEVICE, FROM_DEVICE };

static void move_numbers(int way, int64_t count, float *network, float *device) {
  memcpy(way == TO_DEVICE ? device : network, way == TO_DEVICE ? network : device, (size_t)count * sizeof *network);
}

static float *move_weights(int way, int outputs, int inputs, int step, float *network, float *device) {
  for (int o = 0; o < outputs; o++)
    for (int i = 0; i < inputs; i++, network++) {
      float *there = device + o * (step == 1 ? 1 : HT_LEARNER_WIDTH) + i * (step == 1 ? HT_LEARNER_WIDTH : 1);
      move_numbers(way, 1, network, there);
    }
  return network;
}

/* Numbers in ht_network's order, of as many units as there are, and in the device's (learner_view.h). */
static void rearrange(int way, int hidden, float *network, float *device) {
  enum { BY_INPUT = 1, BY_OUTPUT };
  network = move_weights(way, hidden, HT_LEARNER_WIDTH, BY_INPUT, network, device + HT_LEARNER_W1);
  move_numbers(way, hidden, network, device + HT_LEARNER_B1);
  network = move_weights(way, hidden, hidden, BY_INPUT, network + hidden, device + HT_LEARNER_W2);
  move_numbers(way, hidden, network, device + HT_LEARNER_B2);
  network = move_weights(way, HT_LEARNER_ACTIONS, hidden, BY_OUTPUT, network + hidden, device + HT_LEARNER_HEAD);
  move_numbers(way, HT_LEARNER_ACTIONS, network, device + HT_LEARNER_B3);
  network = move_weights(way, 1, hidden, BY_OUTPUT, network + HT_LEARNER_ACTIONS,
                         device + HT_LEARNER_HEAD + HT_LEARNER_ACTIONS * HT_LEARNER_WIDTH);
  move_numbers(way, 1, network, device + HT_LEARNER_B3 + HT_LEARNER_ACTIONS);
}

/* `from` is in the network's order; count: HT_LEARNER_WEIGHTS, or HT_LEARNER_STORED with the second layer's copy. */
static ht_status send_numbers(ht_learner *l, const float *from, int count, float *to) {
  float *staged = l->staged;
  memset(staged, 0, (size_t)count * sizeof *staged);
  rearrange(TO_DEVICE, l->settings.hidden, (float *)(uintptr_t)from, staged);
  for (int k = 0; k < HT_LEARNER_WIDTH * HT_LEARNER_WIDTH && count == HT_LEARNER_STORED; k++)
    staged[HT_LEARNER_BACK + k % HT_LEARNER_WIDTH * HT_LEARNER_WIDTH + k / HT_LEARNER_WIDTH] = staged[HT_LEARNER_W2 + k];
  return ht_cuda_copy(l->cuda, count * 4, staged, to);
}

static ht_status fetch_numbers(ht_learner *l, const float *from, float *to) {
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, HT_LEARNER_WEIGHTS * 4, from, l->staged));
  rearrange(FROM_DEVICE, l->settings.hidden, to, l->staged);
  return HT_OK;
}

ht_status ht_cuda_learner_set_network(ht_learner *l, const float *weights, const float *first, const float *second, int64_t steps) {
  HT_TRY(l->ctx, send_numbers(l, weights, HT_LEARNER_STORED, l->w.weights));
  HT_TRY(l->ctx, send_numbers(l, first, HT_LEARNER_WEIGHTS, l->w.first));
  HT_TRY(l->ctx, send_numbers(l, second, HT_LEARNER_WEIGHTS, l->w.second));
  *l->scalars = (ht_learner_scalars){.steps = steps};
  return ht_cuda_copy(l->cuda, sizeof *l->scalars, l->scalars, l->w.scalars);
}

ht_status ht_cuda_learner_get_network(ht_learner *l, float *weights, float *first, float *second, int64_t *steps) {
  HT_TRY(l->ctx, fetch_numbers(l, l->w.weights, weights));
  HT_TRY(l->ctx, fetch_numbers(l, l->w.first, first));
  HT_TRY(l->ctx, fetch_numbers(l, l->w.second, second));
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->scalars, l->w.scalars, l->scalars));
  *steps = l->scalars->steps;
  return HT_OK;
}

/* ---- learning ---- */

static ht_status send_control(ht_learner *l, ht_learner_matrix *m, ht_learner_control *to) {
  return ht_cuda_copy(l->cuda, sizeof m->control, &m->control, to);
}

/* Solves that are over, or have never begun, begin. */
static ht_status begin(ht_learner *l, ht_learner_matrix *m, int judged) {
  int only_begin = 1;
  return ht_cuda_launch(l->cuda, HT_KERNEL_learner_turn, judged ? m->judged_launches.vectors : m->launches.vectors,
                        HT_ARGS(judged ? &m->judged : &m->group, &only_begin));
}

/* The values of the states that the solves are in now, then advantages. */
static ht_status estimate(ht_learner *l) {
  float *weights = l->w.weights;
  int mode = HT_LEARNER_PEEK;
  double gamma = l->settings.gamma, lambda = l->settings.gae_lambda;
  ht_launch launch = {.grid = 1, .block = PREPARE_THREADS};
  for (int m = 0; m < l->matrices; m++)
    HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_act, l->matrix[m].launches.act,
                                  HT_ARGS(&l->matrix[m].group, &l->batch, &weights, &mode)));
  return ht_cuda_launch(l->cuda, HT_KERNEL_learner_estimate, launch, HT_ARGS(&l->batch, &l->value, &gamma, &lambda));
}

/* The episodes that ended, packed. */
static ht_status fetch_finished(ht_learner *l, ht_episode *finished, int64_t *count) {
  const ht_learner_batch *b = &l->batch;
  int32_t *counts;
  HT_TRY(l->ctx, ht_allocate(l->ctx, b->lanes, sizeof *counts, &counts));
  ht_status status = ht_cuda_copy(l->cuda, b->lanes * 4, b->finished_count, counts);
  if (status == HT_OK) status = ht_cuda_copy(l->cuda, b->transitions * (int64_t)sizeof *finished, b->finished, finished);
  *count = 0;
  for (int lane = 0; lane < b->lanes && status == HT_OK; lane++)
    for (int32_t k = 0; k < counts[lane]; k++) finished[(*count)++] = finished[lane * b->steps + k];
  ht_release(l->ctx, counts);
  return status;
}

/* Solves of the reward time begin anew in each update, the others go on. */
static ht_status begin_update(ht_learner *l, ht_learner_matrix *m) {
  int anew = l->settings.saves;
  m->control.step = 0;
  m->control.steps = anew ? INT64_MAX : l->settings.steps;
  if (!anew) m->control.interval = 1;
  HT_TRY(l->ctx, send_control(l, m, m->group.control));
  if (anew || l->unbegun) HT_TRY(l->ctx, begin(l, m, 0));
  return m->launches.small.grid ? run_small(l, m, 0) : HT_OK;
}

/* Whether all solves of the larger matrices have all the transitions that they have room for. */
static ht_status all_rest(ht_learner *l, int *rest) {
  *rest = 1;
  for (int m = 0; m < l->matrices && *rest; m++) {
    if (l->matrix[m].launches.small.grid) continue;
    HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->control, l->matrix[m].group.control, l->control));
    *rest = l->control->resting >= l->matrix[m].group.lanes;
  }
  return HT_OK;
}

static ht_status replay_until_all_rest(ht_learner *l) {
  int rest = 0;
  while (!rest) {
    HT_TRY(l->ctx, ht_cuda_replay(l->cuda, l->collect, "replaying a learner's iterations"));
    HT_TRY(l->ctx, all_rest(l, &rest));
  }
  return HT_OK;
}

ht_status ht_cuda_learner_collect(ht_learner *l, ht_episode *finished, int64_t *count) {
  HT_TRY(l->ctx, ht_cuda_fill(l->cuda, l->batch.lanes * 4, 0, l->batch.finished_count));
  for (int m = 0; m < l->matrices; m++) HT_TRY(l->ctx, begin_update(l, &l->matrix[m]));
  l->unbegun = 0;
  if (l->settings.saves) {
    if (l->collect) HT_TRY(l->ctx, replay_until_all_rest(l));
    return fetch_finished(l, finished, count);
  }
  for (int64_t k = 0; k < l->settings.steps && l->collect; k += l->collect_steps)
    HT_TRY(l->ctx, ht_cuda_replay(l->cuda, l->collect, "replaying a learner's iterations"));
  HT_TRY(l->ctx, estimate(l));
  return fetch_finished(l, finished, count);
}

ht_status ht_cuda_learner_update(ht_learner *l, uint64_t seed, ht_ppo_loss *mean) {
  const ht_ppo_settings *settings = &l->w.settings;
  int in_shared = l->batch.transitions <= MOST_SHUFFLED;
  int64_t parts = parts_of(l);
  ht_launch prepare = {.grid = (unsigned)(settings->epochs + 1),
                       .block = PREPARE_THREADS,
                       .shared_bytes = in_shared ? (unsigned)(8 * l->batch.transitions) : 0};
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->scalars, l->w.scalars, l->scalars));
  *l->scalars = (ht_learner_scalars){.seed = seed, .parts = parts, .steps = l->scalars->steps};
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->scalars, l->scalars, l->w.scalars));
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_prepare, prepare, HT_ARGS(&l->batch, &l->w, &in_shared)));
  for (int64_t k = 0; k < parts; k += l->update_parts) HT_TRY(l->ctx, ht_cuda_replay(l->cuda, l->update, "replaying an update"));
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->scalars, l->w.scalars, l->scalars));
  *mean = l->scalars->loss;
  double *sums[] = {&mean->policy, &mean->value, &mean->entropy, &mean->clipped};
  for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) *sums[k] /= (double)parts;
  mean->total = mean->policy + settings->value_weight * mean->value - settings->entropy_weight * mean->entropy;
  return HT_OK;
}

/* ---- lanes ---- */

static ht_status move_vector(ht_learner *l, ht_learner_group *g, int solve, int way, double *vector, double *host) {
  int to_device = way == TO_DEVICE;
  ht_launch launch = {.grid = (unsigned)smaller((g->n + VECTORS_THREADS - 1) / VECTORS_THREADS, 1024), .block = VECTORS_THREADS};
  double *packed = g->q; /* free between two iterations */
  if (to_device) HT_TRY(l->ctx, ht_cuda_copy(l->cuda, g->n * 8, host, packed));
  HT_TRY(l->ctx, ht_cuda_launch(l->cuda, HT_KERNEL_learner_move, launch, HT_ARGS(g, &solve, &to_device, &vector)));
  if (!to_device) HT_TRY(l->ctx, ht_cuda_copy(l->cuda, g->n * 8, packed, host));
  return HT_OK;
}

static ht_status move_vectors(ht_learner *l, ht_learner_group *g, int solve, int way, const ht_learner_lane *lane) {
  double *host[] = {lane->r, lane->p}, *device[] = {g->r, g->p};
  for (int k = 0; k < 2; k++) HT_TRY(l->ctx, move_vector(l, g, solve, way, device[k], host[k]));
  return HT_OK;
}

ht_status ht_cuda_learner_set_lane(ht_learner *l, int lane, const ht_learner_lane *from) {
  ht_learner_group *g = &l->matrix[lane % l->matrices].group;
  int solve = lane / l->matrices;
  *l->solve = (ht_learner_solve){.episode = from->episode < 0 ? lane - l->settings.lanes : from->episode,
                                 .iteration = from->iteration,
                                 .total = from->total,
                                 .norm_0 = from->norm_0,
                                 .norm_r = from->norm_r,
                                 .rr = from->rr,
                                 .over = from->over || from->episode < 0};
  l->unbegun |= l->solve->over;
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->solve, l->solve, g->solve + solve));
  return move_vectors(l, g, solve, TO_DEVICE, from);
}

ht_status ht_cuda_learner_get_lane(ht_learner *l, int lane, ht_learner_lane *to) {
  ht_learner_group *g = &l->matrix[lane % l->matrices].group;
  const ht_learner_solve *s = l->solve;
  int solve = lane / l->matrices;
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *s, g->solve + solve, l->solve));
  to->episode = s->episode < 0 ? -1 : s->episode;
  to->iteration = s->iteration;
  to->total = s->total;
  to->norm_0 = s->norm_0;
  to->norm_r = s->norm_r;
  to->rr = s->rr;
  to->over = s->over;
  return move_vectors(l, g, solve, FROM_DEVICE, to);
}

/* ---- judging ---- */

/* Without weights FP64 throughout: no decision is ever due. */
static ht_status prepare_judged(ht_learner *l, ht_learner_matrix *m, const ht_learner_trial *trial) {
  ht_learner_group *g = &m->judged;
  int asked = trial->weights != NULL;
  const ht_learner_control control = {.steps = m->judged_launches.small.grid ? SMALL_STEPS : INT64_MAX,
                                      .most_iterations = trial->most_iterations,
                                      .interval = asked ? trial->interval : 0};
  *l->solve = (ht_learner_solve){.episode = trial->side - 1, .over = 1, .count = {0, 0, asked ? 0 : (int32_t)g->tiles}};
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->solve, l->solve, g->solve));
  HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof control, &control, g->control));
  HT_TRY(l->ctx, begin(l, m, 1));
  if (asked) return send_numbers(l, trial->weights, HT_LEARNER_STORED, l->deployed);
  HT_TRY(l->ctx, ht_cuda_fill(l->cuda, g->tiles, HT_LEVEL_64, g->level));
  return g->parts ? ht_cuda_fill(l->cuda, g->parts, HT_LEVEL_64, g->part_level) : HT_OK;
}

/* Norms of the iterations from `from` on, which are all still there. */
static ht_status fetch_norms(ht_learner *l, const ht_learner_group *g, int64_t from, const ht_learner_trial *trial) {
  int64_t end = smaller(l->solve->iteration, trial->room);
  for (int64_t k = from, count; trial->norms && k < end; k += count) {
    count = smaller(end - k, HT_LEARNER_NORMS - k % HT_LEARNER_NORMS);
    HT_TRY(l->ctx, ht_cuda_copy(l->cuda, count * 8, g->norms + k % HT_LEARNER_NORMS, trial->norms + k));
  }
  return HT_OK;
}

static ht_status run_judged(ht_learner *l, ht_learner_matrix *m, const ht_learner_trial *trial) {
  judged_run run = {l, m};
  int small = m->judged_launches.small.grid > 0;
  if (!m->judge && !small) HT_TRY(l->ctx, ht_cuda_capture(l->cuda, enqueue_judged, &run, "making the graph of a judged solve", &m->judge));
  int64_t before = 0;
  do {
    HT_TRY(l->ctx, small ? run_small(l, m, 1) : ht_cuda_replay(l->cuda, m->judge, "replaying a judged solve"));
    HT_TRY(l->ctx, ht_cuda_copy(l->cuda, sizeof *l->solve, m->judged.solve, l->solve));
    HT_TRY(l->ctx, fetch_norms(l, &m->judged, before, trial));
    before = l->solve->iteration;
  } while (!l->solve->over && !ht_stop_requested(l->ctx));
  return HT_OK;
}

ht_status ht_cuda_learner_judge(ht_learner *l, int matrix, const ht_learner_trial *trial, ht_learner_judgement *judgement) {
  ht_learner_matrix *m = &l->matrix[matrix];
  HT_TRY(l->ctx, prepare_judged(l, m, trial));
  HT_TRY(l->ctx, run_judged(l, m, trial));
  const ht_learner_solve *s = l->solve;
  *judgement = (ht_learner_judgement){.iterations = s->iteration,
                                      .replacements = s->replacements,
                                      .norm_0 = s->norm_0,
                                      .norm_r = s->norm_r,
                                      .reached = s->reached,
                                      .broken = s->broken,
                                      .lowest = s->lowest};
  memcpy(judgement->count, s->share, sizeof judgement->count);
  memcpy(judgement->rises, s->rises, sizeof judgement->rises);
  return ht_cuda_copy(l->cuda, m->judged.n * 8, m->judged.x, trial->x);
}
