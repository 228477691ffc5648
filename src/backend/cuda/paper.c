/* The EvoCG paper's engine: Tile-CSC product and fused step, replayed in a graph by engine.c. Vectors are in the caller's order and scale,
 * and a column block is 64 consecutive unknowns. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/engine.h"
#include "backend/cuda/tilecsc.h"

enum { STEP_THREADS = 512, STEP_WARPS = STEP_THREADS / 32, STEP_SUMS = 6 };

/* Bytes that a product reads: a tile's streams at its level, the row indices and the metadata. */
static ht_status count_bytes(ht_engine *e, const ht_tilecsc_view *a) {
  ht_tile_head *head;
  HT_TRY(e->ctx, ht_allocate_zeroed(e->ctx, HT_LEVELS * e->blocks, sizeof *e->host_bytes, &e->host_bytes));
  HT_TRY(e->ctx, ht_allocate(e->ctx, a->tiles, sizeof *head, &head));
  ht_status status = ht_cuda_copy(e->cuda, a->tiles * (int64_t)sizeof *head, a->head, head);
  for (int64_t t = 0; t < a->tiles && status == HT_OK; t++)
    for (int level = 0; level < HT_LEVELS; level++)
      e->host_bytes[level * e->blocks + head[t].column] += ht_tilecsc_tile_bytes(a, 2 * (int64_t)head[t].pairs, (ht_level)level);
  ht_release(e->ctx, head);
  return status;
}

static ht_status place(ht_engine *e, int64_t bytes, const void *from, void *to) {
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, bytes, to));
  return ht_cuda_copy(e->cuda, bytes, from, *(void **)to);
}

/* An empty row takes 1, as does the padding. */
static ht_status make_inverse(ht_engine *e, const double *diagonal) {
  ht_status status;
  double *inverse = NULL;
  int32_t *order = NULL;
  HT_TRY_GOTO(e->ctx, status, ht_allocate(e->ctx, e->padded, sizeof *inverse, &inverse), done);
  HT_TRY_GOTO(e->ctx, status, ht_allocate(e->ctx, e->tiles.n, sizeof *order, &order), done);
  if (e->tiles.order) HT_TRY_GOTO(e->ctx, status, ht_cuda_copy(e->cuda, e->tiles.n * 4, e->tiles.order, order), done);
  for (int64_t i = 0; i < e->padded; i++) {
    double d = i < e->tiles.n ? diagonal[e->tiles.order ? order[i] : i] : 0;
    inverse[i] = d > 0 ? 1 / d : 1;
  }
  status = place(e, e->padded * 8, inverse, &e->facts.inverse_diagonal);
done:
  ht_release(e->ctx, order);
  ht_release(e->ctx, inverse);
  return status;
}

static ht_status choose_shapes(ht_engine *e) {
  int blocks, start_blocks;
  int64_t wanted = (e->blocks + STEP_WARPS - 1) / STEP_WARPS;
  const ht_launch multiply = ht_cuda_tilecsc_shape(e->cuda, &e->tiles);
  HT_TRY(e->ctx,
         ht_cuda_resident_blocks(e->cuda, HT_KERNEL_tilecsc_multiply, multiply.block, multiply.shared_bytes, &blocks)); /* loads it */
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, HT_KERNEL_tilecsc_multiply_streamed, multiply.block, multiply.shared_bytes, &blocks));
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, HT_KERNEL_paper_start, STEP_THREADS, 0, &start_blocks));
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, HT_KERNEL_paper_step, STEP_THREADS, 0, &blocks));
  if (start_blocks < blocks) blocks = start_blocks;
  if (wanted < blocks) blocks = (int)wanted;
  HT_CHECK(e->ctx, blocks > 0, HT_UNSUPPORTED, "no block of %d threads fits on GPU %d (%s); use --engine streaming", STEP_THREADS,
           e->cuda->ordinal, e->cuda->name);
  e->step = (ht_launch){.grid = (unsigned)blocks, .block = STEP_THREADS, .cooperative = 1};
  return ht_cuda_allocate(e->cuda, STEP_SUMS * (int64_t)blocks * 8, &e->v.sums);
}

static ht_status create(ht_engine *e, const ht_tilecsc_view *a, const float *const error[HT_LEVEL_64], const double *diagonal) {
  HT_TRY(e->ctx, ht_cuda_engine_allocate(e));
  HT_TRY(e->ctx, count_bytes(e, a));
  e->facts = (ht_cuda_tiles_facts){.padded = e->padded, .blocks = e->blocks, .row_blocks = a->row_blocks, .tiles = a->tiles};
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, a->row_blocks * 8, &e->facts.products));
  HT_TRY(e->ctx, place(e, a->tiles * (int64_t)sizeof *a->head, a->head, &e->facts.head));
  e->tiles.head = e->facts.head;
  HT_TRY(e->ctx, place(e, e->blocks * 4, error[HT_LEVEL_16], &e->facts.error_16));
  HT_TRY(e->ctx, place(e, e->blocks * 4, error[HT_LEVEL_32], &e->facts.error_32));
  HT_TRY(e->ctx, place(e, HT_LEVELS * e->blocks * 8, e->host_bytes, &e->facts.bytes));
  if (diagonal) HT_TRY(e->ctx, make_inverse(e, diagonal));
  return choose_shapes(e);
}

ht_status ht_cuda_engine_create_on_tiles(ht_context *ctx, const ht_tilecsc_view *a, const float *const column_error[HT_LEVEL_64],
                                         const double *diagonal, int64_t capacity, ht_engine **out) {
  ht_engine *e;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *e, &e));
  e->ctx = ctx;
  e->cuda = ht_cuda_of(ctx);
  e->tiles = *a;
  e->blocks = (a->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK;
  e->padded = e->blocks * HT_COLUMN_BLOCK;
  e->capacity = capacity;
  ht_status status = create(e, a, column_error, diagonal);
  if (status != HT_OK) {
    ht_cuda_engine_release(e);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = e;
  return HT_OK;
}

void ht_cuda_paper_release(ht_engine *e) {
  const ht_cuda_tiles_facts *f = &e->facts;
  const void *device[] = {f->error_16, f->error_32, f->inverse_diagonal, f->bytes, f->products, f->head};
  for (size_t k = 0; k < sizeof device / sizeof *device; k++) ht_cuda_release(e->cuda, (void *)(uintptr_t)device[k]);
  ht_release(e->ctx, e->host_bytes);
}

ht_status ht_cuda_paper_start(ht_engine *e) { return ht_cuda_launch(e->cuda, HT_KERNEL_paper_start, e->step, HT_ARGS(&e->facts, &e->v)); }

/* Whether the cache holds less than an iteration reads: the matrix at the solve's level, or FP64 where levels are mixed, and five vectors.
 * It holds little more than half of its size: what is read from its far half may be there twice. */
int ht_cuda_paper_streams(const ht_engine *e, int level) {
  const double *bytes = e->host_bytes + (level == HT_ENGINE_MIXED ? HT_LEVEL_64 : level) * e->blocks;
  double all = 5.0 * (double)e->padded * sizeof(double);
  for (int64_t b = 0; b < e->blocks; b++) all += bytes[b];
  return all > 0.6 * (double)e->cuda->l2_bytes;
}

ht_status ht_cuda_paper_iteration(ht_engine *e, int streamed) {
  HT_TRY(e->ctx, ht_cuda_tilecsc_launch(e->cuda, &e->tiles, e->v.block_level, e->v.scalars, streamed, NULL, e->v.p, e->v.x, e->v.s,
                                        e->facts.products));
  return ht_cuda_launch(e->cuda, HT_KERNEL_paper_step, e->step, HT_ARGS(&e->facts, &e->v));
}

/* The device counts where levels are the blocks' own. */
void ht_cuda_paper_add_bytes(const ht_engine *e, ht_cg_state *s, int64_t products) {
  for (int64_t b = 0; b < e->blocks && s->replaced > 0; b++)
    s->bytes_level[HT_LEVEL_64] += s->replaced * e->host_bytes[HT_LEVEL_64 * e->blocks + b];
  if (e->v.told->uniform < 0) {
    for (int level = 0; level < HT_LEVELS; level++) s->bytes_level[level] += e->v.told->level_groups[level];
    return;
  }
  const double *bytes = e->host_bytes + e->v.told->uniform * e->blocks;
  for (int64_t b = 0; b < e->blocks; b++) s->bytes_level[e->v.told->uniform] += (double)products * bytes[b];
}
