/* A learner's data: matrices, solves, transitions and weights go to the device once and stay there. SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include "backend/cuda/learner.h"

enum {
  THREADS = 256,
  SMALL_TILES = 16,   /* of a matrix whose solves take a block each */
  MOST_BLOCKS = 1024, /* the same on every device, so that the bits are */
  SUM_BLOCKS = (HT_LEARNER_WEIGHTS + 31) / 32
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- a matrix ---- */

static ht_status place(ht_cuda *cuda, int64_t bytes, const void *from, void *to) {
  HT_TRY(cuda->ctx, ht_cuda_allocate(cuda, bytes, to));
  return ht_cuda_send(cuda, bytes, from, *(void **)to);
}

static ht_status place_values(ht_learner *l, const ht_learner_system *system, const double **to) {
  int64_t nnz = system->row_start[system->n];
  double *values;
  HT_TRY(l->ctx, ht_allocate(l->ctx, nnz * HT_LEARNER_VALUES, sizeof *values, &values));
#pragma omp parallel for schedule(static) num_threads(l->ctx->threads)
  for (int64_t k = 0; k < nnz; k++) {
    memcpy(values + k * HT_LEARNER_VALUES, system->values + k * HT_LEVELS, HT_LEVELS * sizeof *values);
    values[k * HT_LEARNER_VALUES + HT_LEVELS] = 0;
  }
  ht_status status = place(l->cuda, nnz * HT_LEARNER_VALUES * 8, values, to);
  ht_release(l->ctx, values);
  return status;
}

static ht_status place_system(ht_learner *l, const ht_learner_system *system, ht_learner_group *g) {
  int64_t nnz = system->row_start[system->n];
  HT_TRY(l->ctx, place(l->cuda, (system->n + 1) * 8, system->row_start, &g->row_start));
  HT_TRY(l->ctx, place(l->cuda, nnz * 4, system->columns, &g->columns));
  HT_TRY(l->ctx, place_values(l, system, &g->values));
  if (system->right_sides) HT_TRY(l->ctx, place(l->cuda, system->sides * system->n * 8, system->right_sides, &g->right_sides));
  if (!system->parts) return HT_OK;
  HT_TRY(l->ctx, place(l->cuda, nnz * 4, system->part, &g->part));
  HT_TRY(l->ctx, place(l->cuda, (system->parts + 1) * 8, system->touch_start, &g->touch_start));
  return place(l->cuda, system->touch_start[system->parts] * 4, system->touched, &g->touched);
}

/* The group's vectors and scalars; no solve has begun. */
static ht_status make_solves(ht_learner *l, ht_learner_group *g) {
  int64_t vector = g->tiles * HT_LEARNER_WIDTH * g->lanes * 8;
  const ht_cuda_part parts[] = {{vector, &g->r},
                                {vector, &g->p},
                                {vector, &g->q},
                                {g->judged || l->settings.saves ? vector : 0, &g->x},
                                {g->tiles * g->lanes, &g->level},
                                {g->parts * g->lanes, &g->part_level},
                                {g->judged ? HT_LEARNER_NORMS * 8 : 0, &g->norms},
                                {g->lanes * (int64_t)sizeof *g->solve, &g->solve},
                                {sizeof *g->control, &g->control},
                                {2 * MOST_BLOCKS * (int64_t)g->lanes * 8, &g->sums},
                                {sizeof *g->arrived, &g->arrived}};
  HT_TRY(l->ctx, ht_cuda_allocate_parts(l->cuda, sizeof parts / sizeof *parts, parts));
  for (int k = 0; k < g->lanes; k++) l->solve[k] = (ht_learner_solve){.episode = g->first + k * g->stride - g->all_lanes, .over = 1};
  return ht_cuda_copy(l->cuda, g->lanes * (int64_t)sizeof *g->solve, l->solve, g->solve);
}

static unsigned act_shared(const ht_learner_group *g) {
  return (HT_LEARNER_WEIGHTS + 2 * HT_LEARNER_WIDTH * HT_LEARNER_PITCH + HT_LEARNER_HEADS * HT_LEARNER_ROWS) * 4 + 12 * (unsigned)g->lanes;
}

/* Where a block holds a solve: as the kernel divides it. */
static unsigned small_shared(const ht_learner_group *g) {
  ht_learner_group one = *g;
  one.lanes = 1;
  return act_shared(&one) + 4 + (unsigned)(4 * g->tiles * HT_LEARNER_WIDTH * 8 + g->tiles);
}

static ht_status choose_launches(ht_learner *l, const ht_learner_group *g, ht_learner_launches *launches) {
  static const ht_kernel over_vectors[] = {HT_KERNEL_learner_spread, HT_KERNEL_learner_multiply, HT_KERNEL_learner_advance,
                                           HT_KERNEL_learner_repair, HT_KERNEL_learner_turn};
  int64_t units = (g->tiles * g->lanes + HT_LEARNER_ROWS - 1) / HT_LEARNER_ROWS, rows = THREADS / g->lanes;
  int blocks, other;
  HT_TRY(l->ctx, ht_cuda_resident_blocks(l->cuda, HT_KERNEL_learner_act, HT_LEARNER_THREADS, act_shared(g), &blocks));
  for (size_t k = 0; k < sizeof over_vectors / sizeof *over_vectors; k++) /* loads them */
    HT_TRY(l->ctx, ht_cuda_resident_blocks(l->cuda, over_vectors[k], THREADS, 0, &other));
  HT_CHECK(l->ctx, blocks > 0, HT_UNSUPPORTED, "GPU %d (%s) has too little shared memory to train on; use --backend cpu", l->cuda->ordinal,
           l->cuda->name);
  launches->act = (ht_launch){.grid = (unsigned)smaller(units, blocks), .block = HT_LEARNER_THREADS, .shared_bytes = act_shared(g)};
  launches->vectors = (ht_launch){.grid = (unsigned)smaller((g->n + rows - 1) / rows, MOST_BLOCKS), .block = (unsigned)(rows * g->lanes)};
  if (g->tiles <= SMALL_TILES)
    launches->small = (ht_launch){.grid = (unsigned)g->lanes, .block = HT_LEARNER_THREADS, .shared_bytes = small_shared(g)};
  return HT_OK;
}

ht_status ht_learner_make_matrix(ht_learner *l, int number, const ht_learner_system *system) {
  const ht_learner_settings *settings = &l->settings;
  ht_learner_matrix *m = &l->matrix[number];
  ht_learner_group *g = &m->group;
  ht_learner_side *sides = NULL;
  *g = (ht_learner_group){.n = system->n,
                          .tiles = (system->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK,
                          .parts = system->parts,
                          .rtol = settings->rtol,
                          .tile_cost = settings->tile_cost,
                          .seed = settings->seed,
                          .lanes = settings->lanes / l->matrices,
                          .first = number,
                          .stride = l->matrices,
                          .all_lanes = settings->lanes,
                          .sides = system->sides,
                          .replaces = settings->replaces};
  memcpy(g->drop, settings->drop, sizeof g->drop);
  HT_TRY(l->ctx, place_system(l, system, g));
  if (settings->saves) HT_TRY(l->ctx, ht_cuda_allocate(l->cuda, system->sides * (int64_t)sizeof *sides, &sides));
  g->side = sides;
  m->judged = *g;
  m->judged.lanes = m->judged.stride = m->judged.all_lanes = m->judged.judged = 1;
  m->judged.first = 0;
  HT_TRY(l->ctx, make_solves(l, g));
  HT_TRY(l->ctx, make_solves(l, &m->judged));
  HT_TRY(l->ctx, choose_launches(l, g, &m->launches));
  return choose_launches(l, &m->judged, &m->judged_launches);
}

/* ---- transitions and weights ---- */

ht_status ht_learner_make_batch(ht_learner *l) {
  const ht_learner_settings *s = &l->settings;
  ht_learner_batch *b = &l->batch;
  int64_t count = s->lanes * s->steps, rows = count * s->most_rows;
  *b = (ht_learner_batch){.transitions = count, .steps = s->steps, .most_rows = s->most_rows, .lanes = s->lanes};
  const ht_cuda_part parts[] = {{count * 4, &b->rows},
                                {count * 4, &b->advantage},
                                {count * 4, &b->target},
                                {rows * HT_LEARNER_WIDTH * 4, &b->state},
                                {rows * 4, &b->log_probability},
                                {count * 4, &b->reward},
                                {(rows + s->lanes * s->most_rows) * 4, &b->value_row},
                                {rows, &b->action},
                                {count, &b->last},
                                {count * (int64_t)sizeof *b->finished, &b->finished},
                                {s->lanes * 4, &b->finished_count},
                                {(count + s->lanes) * 4, &l->value}};
  return ht_cuda_allocate_parts(l->cuda, sizeof parts / sizeof *parts, parts);
}

ht_status ht_learner_make_weights(ht_learner *l) {
  ht_learner_weights *w = &l->w;
  int64_t each = HT_LEARNER_ROWS / l->settings.most_rows, number = HT_LEARNER_WEIGHTS * 4;
  w->settings = l->settings.ppo;
  if (w->settings.minibatch > l->batch.transitions) w->settings.minibatch = l->batch.transitions;
  l->units = (w->settings.minibatch + each - 1) / each;
  const ht_cuda_part parts[] = {{HT_LEARNER_STORED * 4, &w->weights},
                                {number, &w->first},
                                {number, &w->second},
                                {number, &w->gradient},
                                {l->units * number, &w->partial},
                                {SUM_BLOCKS * 8, &w->norm2},
                                {l->units * HT_LEARNER_LOSSES * 8, &w->losses},
                                {2 * w->settings.epochs * l->batch.transitions * 4, &w->order},
                                {sizeof *w->scalars, &w->scalars},
                                {HT_LEARNER_STORED * 4, &l->deployed}};
  return ht_cuda_allocate_parts(l->cuda, sizeof parts / sizeof *parts, parts);
}
