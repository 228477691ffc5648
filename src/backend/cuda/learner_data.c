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

/* To nearest, ties to even, in the bits of the double. Values within FP32's range become what FP32 and BF16 would make of them; those that
 * are smaller by 2^-126 than others of their column keep bits that they would lose there. */
static double rounded(double v, int level) {
  static const int dropped[HT_LEVELS] = {[HT_LEVEL_16] = 45, [HT_LEVEL_32] = 29, [HT_LEVEL_64] = 0};
  int drop = dropped[level];
  uint64_t bits, half = drop ? ((uint64_t)1 << (drop - 1)) - 1 : 0;
  memcpy(&bits, &v, sizeof bits);
  bits = (bits + half + (drop ? bits >> drop & 1 : 0)) & ~(uint64_t)0 << drop;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static ht_status place_values(ht_learner *l, const ht_csr_view *rows, const double **to) {
  double *values;
  HT_TRY(l->ctx, ht_allocate(l->ctx, rows->nnz * HT_LEARNER_VALUES, sizeof *values, &values));
#pragma omp parallel for schedule(static) num_threads(l->ctx->threads)
  for (int64_t k = 0; k < rows->nnz; k++) {
    for (int level = 0; level < HT_LEVELS; level++) values[k * HT_LEARNER_VALUES + level] = rounded(rows->values[k], level);
    values[k * HT_LEARNER_VALUES + HT_LEVELS] = 0;
  }
  ht_status status = place(l->cuda, rows->nnz * HT_LEARNER_VALUES * 8, values, to);
  ht_release(l->ctx, values);
  return status;
}

/* b = A*1, summed as the host's training does. */
static ht_status place_right_side(ht_learner *l, const ht_csr_view *rows, const double **to) {
  double *b;
  if (l->settings.random_right_sides) return HT_OK;
  HT_TRY(l->ctx, ht_allocate(l->ctx, rows->n, sizeof *b, &b));
  for (int64_t i = 0; i < rows->n; i++) {
    b[i] = 0;
    for (int64_t k = rows->row_start[i]; k < rows->row_start[i + 1]; k++) b[i] += rows->values[k];
  }
  ht_status status = place(l->cuda, rows->n * 8, b, to);
  ht_release(l->ctx, b);
  return status;
}

/* The group's vectors and scalars; no solve has begun. */
static ht_status make_solves(ht_learner *l, ht_learner_group *g) {
  int64_t vector = g->tiles * HT_LEARNER_WIDTH * g->lanes * 8;
  const ht_cuda_part parts[] = {{vector, &g->r},
                                {vector, &g->p},
                                {vector, &g->q},
                                {g->judged ? vector : 0, &g->x},
                                {g->tiles * g->lanes, &g->level},
                                {g->lanes * (int64_t)sizeof *g->solve, &g->solve},
                                {sizeof *g->control, &g->control},
                                {MOST_BLOCKS * (int64_t)g->lanes * 8, &g->sums},
                                {sizeof *g->arrived, &g->arrived}};
  HT_TRY(l->ctx, ht_cuda_allocate_parts(l->cuda, sizeof parts / sizeof *parts, parts));
  for (int k = 0; k < g->lanes; k++) l->solve[k] = (ht_learner_solve){.episode = g->first + k * g->stride - g->all_lanes, .over = 1};
  return ht_cuda_copy(l->cuda, g->lanes * (int64_t)sizeof *g->solve, l->solve, g->solve);
}

static unsigned act_shared(const ht_learner_group *g) {
  return (HT_LEARNER_WEIGHTS + 2 * HT_LEARNER_WIDTH * HT_LEARNER_PITCH + HT_LEARNER_HEADS * HT_LEARNER_ROWS) * 4 + 12 * (unsigned)g->lanes;
}

static ht_status choose_launches(ht_learner *l, const ht_learner_group *g, ht_learner_launches *launches) {
  static const ht_kernel over_vectors[] = {HT_KERNEL_learner_multiply, HT_KERNEL_learner_advance, HT_KERNEL_learner_turn};
  int64_t units = (g->tiles * g->lanes + HT_LEARNER_ROWS - 1) / HT_LEARNER_ROWS, rows = THREADS / g->lanes;
  int blocks, other;
  HT_TRY(l->ctx, ht_cuda_resident_blocks(l->cuda, HT_KERNEL_learner_act, HT_LEARNER_THREADS, act_shared(g), &blocks));
  for (int k = 0; k < 3; k++) /* loads them */
    HT_TRY(l->ctx, ht_cuda_resident_blocks(l->cuda, over_vectors[k], THREADS, 0, &other));
  HT_CHECK(l->ctx, blocks > 0, HT_UNSUPPORTED, "GPU %d (%s) has too little shared memory to train on; use --backend cpu", l->cuda->ordinal,
           l->cuda->name);
  launches->act = (ht_launch){.grid = (unsigned)smaller(units, blocks), .block = HT_LEARNER_THREADS, .shared_bytes = act_shared(g)};
  launches->vectors = (ht_launch){.grid = (unsigned)smaller((g->n + rows - 1) / rows, MOST_BLOCKS), .block = (unsigned)(rows * g->lanes)};
  return HT_OK;
}

ht_status ht_learner_make_matrix(ht_learner *l, int number, const ht_csr_view *rows) {
  ht_learner_matrix *m = &l->matrix[number];
  ht_learner_group *g = &m->group;
  *g = (ht_learner_group){.n = rows->n,
                          .tiles = (rows->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK,
                          .rtol = l->settings.rtol,
                          .tile_cost = l->settings.tile_cost,
                          .seed = l->settings.seed,
                          .lanes = l->settings.lanes / l->matrices,
                          .first = number,
                          .stride = l->matrices,
                          .all_lanes = l->settings.lanes};
  HT_TRY(l->ctx, place(l->cuda, (rows->n + 1) * 8, rows->row_start, &g->row_start));
  HT_TRY(l->ctx, place(l->cuda, rows->nnz * 4, rows->columns, &g->columns));
  HT_TRY(l->ctx, place_values(l, rows, &g->values));
  HT_TRY(l->ctx, place_right_side(l, rows, &g->right_side));
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
