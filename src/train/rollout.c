/* Sampled solves, and what is learned from them. SPDX-License-Identifier: BSD-3-Clause */
#include "train/rollout.h"
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "train/saving.h"
#include "train/view.h"

/* ---- reward ---- */

static double reward_paper(const ht_course *c, double before, double tile_cost) {
  int32_t count[HT_LEVELS] = {0};
  for (int64_t b = 0; b < c->environment->blocks; b++) count[c->level[b]]++;
  return ht_learning_reward(before, c->norm_r, count, c->environment->blocks, c->broken, c->reached, tile_cost);
}

/* How far a residual, by ||b||, has come on a log scale: 0 at the start, 1 at the tolerance, or where FP64 ends. */
static double progress(const ht_environment *e, double residual) {
  double target = fmax(e->options->rtol, e->true_64);
  return residual > 0 ? ht_learning_clamp(log(residual) / log(target), -1, 1) : 1;
}

double ht_missing_progress(ht_course *c) { return 1 - progress(c->environment, ht_course_true_residual(c)); }

/* ---- a step ---- */

static int64_t pick(const ht_rollout *r, const ht_lane *lane, int64_t index) {
  return ht_learning_pick((uint64_t)r->options->seed, lane->episode, lane->course.iteration, index, r->batch.most_rows,
                          lane->course.environment->blocks);
}

static int64_t picks(const ht_rollout *r, const ht_lane *lane) {
  int64_t blocks = lane->course.environment->blocks;
  return blocks < r->batch.most_rows ? blocks : r->batch.most_rows;
}

static double draw(const ht_rollout *r, const ht_lane *lane, int64_t tile) {
  uint64_t seed = (uint64_t)r->options->seed;
  if (r->saving) return ht_learning_shared_draw(seed, lane->episode / r->environments);
  return ht_learning_draw(seed, lane->episode, lane->course.iteration, tile, lane->course.environment->blocks);
}

/* A level for every block, sampled; those picked are written down as transition t, unless it is negative. */
static void act(ht_rollout *r, const ht_packed *packed, ht_lane *lane, int64_t t) {
  ht_course *c = &lane->course;
  int64_t blocks = c->environment->blocks, next = 0, count = t < 0 ? 0 : picks(r, lane), wanted = t < 0 ? -1 : pick(r, lane, 0);
  int inputs = packed->layer[0].inputs, width = packed->layer[HT_PACKED_LAYERS - 1].out;
  double value = 0;
  for (int64_t first = 0; first < blocks; first += lane->rows.rows) {
    int64_t rows = blocks - first < lane->rows.rows ? blocks - first : lane->rows.rows;
    ht_view_tiles(c, first, rows, packed->layer[0].in, lane->rows.activation[0]);
    ht_packed_forward(packed, rows, &lane->rows);
    for (int64_t b = 0; b < rows; b++) {
      float *y = lane->rows.activation[HT_PACKED_LAYERS] + b * width;
      ht_learning_log_softmax(packed->actions, y);
      double u = draw(r, lane, first + b);
      int action = ht_learning_sample(packed->actions, y, u);
      c->level[first + b] = ht_view_level(action);
      for (; first + b == wanted; wanted = next < count ? pick(r, lane, next) : -1) {
        int64_t row = t * r->batch.most_rows + next++;
        memcpy(r->batch.state + row * inputs, lane->rows.activation[0] + b * packed->layer[0].in, (size_t)inputs * sizeof(float));
        r->batch.action[row] = (uint8_t)action;
        r->batch.log_probability[row] = y[action];
        value += y[packed->actions];
      }
    }
  }
  if (t < 0) return;
  r->batch.rows[t] = (int32_t)count;
  r->value[t] = (float)(value / (double)count);
}

/* The value of the state that an unfinished episode is in. */
static float value_now(ht_rollout *r, const ht_packed *packed, ht_lane *lane) {
  double value = 0;
  int64_t count = picks(r, lane);
  if (lane->course.over) return 0;
  for (int64_t i = 0; i < count; i++) {
    ht_view_tiles(&lane->course, pick(r, lane, i), 1, packed->layer[0].in, lane->rows.activation[0]);
    ht_packed_forward(packed, 1, &lane->rows);
    value += lane->rows.activation[HT_PACKED_LAYERS][packed->actions];
  }
  return (float)(value / (double)count);
}

/* With the reward time. */
static int right_side_of(const ht_rollout *r, const ht_lane *lane) {
  return ht_saving_right_side(r->options, lane->episode / r->environments);
}

static void begin_episode(ht_rollout *r, int k) {
  ht_lane *lane = &r->lane[k];
  lane->episode = lane->episode < 0 ? k : lane->episode + r->options->lanes;
  uint64_t right_side = r->saving ? (uint64_t)right_side_of(r, lane) : (uint64_t)lane->episode;
  ht_course_begin(r->environment[lane->episode % r->environments], right_side, &lane->course);
  lane->total = 0;
  lane->lowest = lane->course.norm_0;
}

int64_t ht_most_iterations(const ht_environment *e) { return e->iterations_64 + (e->iterations_64 + 1) / 2; }

int64_t ht_iterations_apart(const ht_rollout *r, const ht_environment *e) {
  return e->iterations_64 > r->steps ? e->iterations_64 / r->steps : 1;
}

static void run_lane(ht_rollout *r, const ht_packed *packed, int k) {
  ht_lane *lane = &r->lane[k];
  ht_course *c = &lane->course;
  r->lane_finished_count[k] = 0;
  for (int64_t t = k * r->steps; t < (k + 1) * r->steps; t++) {
    if (c->over) begin_episode(r, k);
    act(r, packed, lane, t);
    double before = c->norm_r;
    ht_course_step(c, ht_most_iterations(c->environment));
    double reward = reward_paper(c, before, r->options->tile_cost);
    lane->total += reward;
    r->reward[t] = (float)reward;
    r->last[t] = (uint8_t)c->over;
    if (c->over) r->lane_finished[k * r->steps + r->lane_finished_count[k]++] = (ht_episode){lane->episode, c->iteration, lane->total};
  }
}

/* Reward time: whole episodes, whose transitions all have what the episode came to. A step of one tells nothing: the residual has plateaus
 * and humps of its own. A decision, which holds until the next, is a transition; from long solves as many are taken as a lane has room for,
 * and what has no room at the end still decides. */
static void run_whole_episodes(ht_rollout *r, const ht_packed *packed, int k) {
  ht_lane *lane = &r->lane[k];
  ht_course *c = &lane->course;
  int64_t end = (k + 1) * r->steps, t = k * r->steps;
  r->lane_finished_count[k] = 0;
  while (t < end) {
    begin_episode(r, k);
    int64_t begun = t, apart = ht_iterations_apart(r, c->environment);
    while (!c->over) {
      if (c->iteration % apart == 0) act(r, packed, lane, t < end ? t++ : -1);
      ht_course_step(c, ht_most_iterations(c->environment));
      lane->total += ht_saving_reward(r->saving[lane->episode % r->environments], right_side_of(r, lane), lane);
    }
    for (int64_t i = begun; i < t; i++) r->batch.advantage[i] = r->batch.target[i] = (float)lane->total;
    r->lane_finished[k * r->steps + r->lane_finished_count[k]++] = (ht_episode){lane->episode, c->iteration, lane->total};
  }
}

/* Back from the end of the lane. */
static void estimate_advantages(ht_rollout *r, const ht_packed *packed, int k) {
  double next = value_now(r, packed, &r->lane[k]), advantage = 0;
  for (int64_t t = (k + 1) * r->steps - 1; t >= k * r->steps; t--) {
    double goes_on = r->last[t] ? 0 : r->options->gamma;
    advantage = ht_learning_advantage(r->reward[t], r->value[t], next, advantage, goes_on, r->options->gae_lambda);
    r->batch.advantage[t] = (float)advantage;
    r->batch.target[t] = (float)(advantage + r->value[t]);
    next = r->value[t];
  }
}

void ht_rollout_collect(ht_rollout *r, const ht_packed *packed) {
  int threads = r->ctx->threads, lanes = (int)r->options->lanes;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int k = 0; k < lanes; k++) {
    if (r->saving) {
      run_whole_episodes(r, packed, k);
      continue;
    }
    run_lane(r, packed, k);
    estimate_advantages(r, packed, k);
  }
  r->finished_count = 0;
  for (int k = 0; k < lanes; k++)
    for (int64_t i = 0; i < r->lane_finished_count[k]; i++) r->finished[r->finished_count++] = r->lane_finished[k * r->steps + i];
}

/* ---- life ---- */

enum { ROWS = 64 }; /* tiles that go through the network together */

static ht_status allocate_batch(ht_rollout *r, const ht_packed *packed) {
  ht_context *ctx = r->ctx;
  int64_t count = r->batch.transitions, rows = count * r->batch.most_rows;
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof *r->batch.rows, &r->batch.rows));
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof(float), &r->batch.advantage));
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof(float), &r->batch.target));
  HT_TRY(ctx, ht_allocate(ctx, rows, (size_t)packed->layer[0].inputs * sizeof(float), &r->batch.state));
  HT_TRY(ctx, ht_allocate(ctx, rows, 1, &r->batch.action));
  HT_TRY(ctx, ht_allocate(ctx, rows, sizeof(float), &r->batch.log_probability));
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof(float), &r->value));
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof(float), &r->reward));
  HT_TRY(ctx, ht_allocate(ctx, count, 1, &r->last));
  HT_TRY(ctx, ht_allocate(ctx, count, sizeof *r->lane_finished, &r->lane_finished));
  HT_TRY(ctx, ht_allocate(ctx, r->options->lanes, sizeof *r->lane_finished_count, &r->lane_finished_count));
  for (int64_t k = 0; k < r->options->lanes; k++) {
    HT_TRY(ctx, ht_course_create(ctx, r->environments, r->environment, &r->lane[k].course));
    HT_TRY(ctx, ht_activations_create(ctx, packed, ROWS, &r->lane[k].rows));
  }
  return HT_OK;
}

static ht_status allocate(ht_rollout *r, const ht_packed *packed, int on_device) {
  ht_context *ctx = r->ctx;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, r->options->lanes, sizeof *r->lane, &r->lane));
  for (int64_t k = 0; k < r->options->lanes; k++) r->lane[k].episode = -1;
  HT_TRY(ctx, ht_allocate(ctx, r->batch.transitions, sizeof *r->finished, &r->finished));
  HT_TRY(ctx, ht_course_create(ctx, r->environments, r->environment, &r->judge.course));
  HT_TRY(ctx, ht_activations_create(ctx, packed, ROWS, &r->judge.rows));
  if (!on_device) HT_TRY(ctx, allocate_batch(r, packed));
  return HT_OK;
}

ht_status ht_rollout_create(ht_context *ctx, const ht_train_options *options, int environments, ht_environment *const *environment,
                            const ht_packed *packed, int on_device, ht_rollout **out) {
  ht_rollout *r;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *r, &r));
  r->ctx = ctx;
  r->options = options;
  r->environments = environments;
  r->environment = environment;
  r->steps = options->update / options->lanes;
  r->batch.transitions = r->steps * options->lanes;
  for (int k = 0; k < environments; k++)
    if (environment[k]->blocks > r->batch.most_rows) r->batch.most_rows = environment[k]->blocks;
  if (r->batch.most_rows > options->tiles) r->batch.most_rows = options->tiles;
  ht_status status = allocate(r, packed, on_device);
  if (status != HT_OK) {
    ht_rollout_destroy(r);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = r;
  return HT_OK;
}

void ht_rollout_destroy(ht_rollout *r) {
  if (!r) return;
  for (int64_t k = 0; r->lane && k < r->options->lanes; k++) {
    ht_course_release(r->ctx, &r->lane[k].course);
    ht_activations_release(r->ctx, &r->lane[k].rows);
  }
  void *memory[] = {r->batch.rows, r->batch.advantage, r->batch.target, r->batch.state, r->batch.action,  r->batch.log_probability,
                    r->value,      r->reward,          r->last,         r->finished,    r->lane_finished, r->lane_finished_count,
                    r->lane};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) ht_release(r->ctx, memory[k]);
  ht_course_release(r->ctx, &r->judge.course);
  ht_activations_release(r->ctx, &r->judge.rows);
  ht_release(r->ctx, r);
}
