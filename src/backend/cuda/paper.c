/* The EvoCG paper's engine: Tile-CSC product and fused step, replayed in a graph by engine.c. Vectors are in the caller's order and scale,
 * and a column block is 64 consecutive unknowns. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/engine.h"
#include "backend/cuda/tilecsc.h"

enum { STEP_SUMS = 6, STEP_HELD = 4 /* column blocks that a warp of the step keeps in registers */ };

/* The step's kernels, and the threads of their blocks. */
static const struct {
  ht_kernel start, step;
  unsigned threads;
} steps[] = {{HT_KERNEL_paper_start, HT_KERNEL_paper_step, 256}, {HT_KERNEL_paper_wide_start, HT_KERNEL_paper_wide_step, 512}};

static ht_status place(ht_engine *e, int64_t bytes, const void *from, void *to) {
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, bytes, to));
  return ht_cuda_copy(e->cuda, bytes, from, *(void **)to);
}

/* Bytes that a product reads: a tile's streams at its level, the row indices and the metadata. */
static ht_status sum_bytes(ht_engine *e, const ht_tilecsc_view *a, ht_tile_head *head, double *bytes) {
  HT_TRY(e->ctx, ht_cuda_copy(e->cuda, a->tiles * (int64_t)sizeof *head, a->head, head));
  for (int64_t t = 0; t < a->tiles; t++)
    for (int level = 0; level < HT_LEVELS; level++)
      bytes[level * e->blocks + head[t].column] += ht_tilecsc_tile_bytes(a, 2 * (int64_t)head[t].pairs, (ht_level)level);
  for (int64_t k = 0; k < HT_LEVELS * e->blocks; k++) e->facts.whole[k / e->blocks] += bytes[k];
  return place(e, HT_LEVELS * e->blocks * 8, bytes, &e->facts.bytes);
}

static ht_status count_bytes(ht_engine *e, const ht_tilecsc_view *a) {
  ht_status status;
  ht_tile_head *head = NULL;
  double *bytes = NULL;
  HT_TRY_GOTO(e->ctx, status, ht_allocate_zeroed(e->ctx, HT_LEVELS * e->blocks, sizeof *bytes, &bytes), done);
  HT_TRY_GOTO(e->ctx, status, ht_allocate(e->ctx, a->tiles, sizeof *head, &head), done);
  status = sum_bytes(e, a, head, bytes);
done:
  ht_release(e->ctx, head);
  ht_release(e->ctx, bytes);
  return status;
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

/* Loads the product's kernels. */
static ht_status prepare_product(ht_engine *e) {
  int blocks;
  const ht_launch multiply = ht_cuda_tilecsc_shape(e->cuda, &e->tiles);
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, HT_KERNEL_tilecsc_multiply, multiply.block, multiply.shared_bytes, &blocks));
  return ht_cuda_resident_blocks(e->cuda, HT_KERNEL_tilecsc_multiply_streamed, multiply.block, multiply.shared_bytes, &blocks);
}

/* One block a multiprocessor: fewer wait for each other sooner. */
static ht_status choose_step(ht_engine *e) {
  int blocks, start_blocks;
  e->wide = e->blocks > (int64_t)e->cuda->sms * (steps[0].threads / 32) * STEP_HELD;
  unsigned threads = steps[e->wide].threads;
  int64_t warps = threads / 32, wanted = (e->blocks + warps - 1) / warps;
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, steps[e->wide].start, threads, HT_NETWORK_SHARED, &start_blocks));
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, steps[e->wide].step, threads, HT_NETWORK_SHARED, &blocks));
  if (start_blocks < blocks) blocks = start_blocks;
  if (blocks > e->cuda->sms) blocks = e->cuda->sms;
  if (wanted < blocks) blocks = (int)wanted;
  HT_CHECK(e->ctx, blocks > 0, HT_UNSUPPORTED, "no block of %u threads fits on GPU %d (%s); use --engine streaming", threads,
           e->cuda->ordinal, e->cuda->name);
  e->step = (ht_launch){.grid = (unsigned)blocks, .block = threads, .cooperative = 1};
  return ht_cuda_allocate(e->cuda, STEP_SUMS * (int64_t)blocks * 8, &e->v.sums);
}

static ht_status create(ht_engine *e, const ht_tilecsc_view *a, const float *const error[HT_LEVEL_64], const double *diagonal) {
  HT_TRY(e->ctx, ht_cuda_engine_allocate(e));
  e->facts = (ht_cuda_tiles_facts){.padded = e->padded, .blocks = e->blocks, .row_blocks = a->row_blocks, .tiles = a->tiles};
  HT_TRY(e->ctx, count_bytes(e, a));
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, a->row_blocks * 8, &e->facts.products));
  HT_TRY(e->ctx, place(e, a->tiles * (int64_t)sizeof *a->head, a->head, &e->facts.head));
  e->tiles.head = e->facts.head;
  HT_TRY(e->ctx, place(e, e->blocks * 4, error[HT_LEVEL_16], &e->facts.error_16));
  HT_TRY(e->ctx, place(e, e->blocks * 4, error[HT_LEVEL_32], &e->facts.error_32));
  if (diagonal) HT_TRY(e->ctx, make_inverse(e, diagonal));
  HT_TRY(e->ctx, prepare_product(e));
  return choose_step(e);
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
}

ht_status ht_cuda_paper_start(ht_engine *e) { return ht_cuda_launch(e->cuda, steps[e->wide].start, e->step, HT_ARGS(&e->facts, &e->v)); }

/* Whether the cache holds less than an iteration reads: the matrix at the solve's level, or FP64 where levels are mixed, and five vectors.
 * It holds little more than half of its size: what is read from its far half may be there twice. */
int ht_cuda_paper_streams(const ht_engine *e, int level) {
  double all = 5.0 * (double)e->padded * sizeof(double) + e->facts.whole[level == HT_ENGINE_MIXED ? HT_LEVEL_64 : level];
  return all > 0.6 * (double)e->cuda->l2_bytes;
}

ht_status ht_cuda_paper_iteration(ht_engine *e, int streamed) {
  ht_launch step = e->step;
  step.early = 1;
  step.shared_bytes = e->network.weights ? HT_NETWORK_SHARED : 0;
  e->facts.network = e->network;
  HT_TRY(e->ctx, ht_cuda_tilecsc_launch(e->cuda, &e->tiles, e->v.block_level, e->v.scalars, e->v.chosen, streamed, NULL, e->v.p, e->v.x,
                                        e->v.s, e->facts.products));
  return ht_cuda_launch(e->cuda, steps[e->wide].step, step, HT_ARGS(&e->facts, &e->v));
}

/* The device counts, but for replacements. */
void ht_cuda_paper_add_bytes(const ht_engine *e, ht_cg_state *s) {
  s->bytes_level[HT_LEVEL_64] += s->replaced * e->facts.whole[HT_LEVEL_64];
  for (int level = 0; level < HT_LEVELS; level++) s->bytes_level[level] += e->v.told->level_groups[level];
}
