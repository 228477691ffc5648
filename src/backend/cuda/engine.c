/* The CG engines' host side: vectors, launches, and what comes back when a run ends. The persistent engine is one cooperative launch a run;
 * the streaming engine and the EvoCG paper's replay graphs until the device says that something happened.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/engine.h"
#include <math.h>
#include <string.h>

enum {
  MIXED = HT_ENGINE_MIXED,
  MODES = HT_ENGINE_MODES,
  THREADS = 256,
  WARPS = THREADS / 32,
  SUMS = 16,
  LONG_SLICES = 10, /* units of one in the mean */
  RING_CAPABILITY = 90
};

/* ---- making ---- */

/* Pinned memory takes longer to make than the rest of an engine: the device keeps that of one. */
static ht_status take_told(ht_cuda *cuda, ht_cuda_cg_scalars **told) {
  *told = cuda->told;
  cuda->told = NULL;
  const int64_t bytes = sizeof **told + sizeof(ht_cuda_cg_staged) + 3 * HT_CUDA_TOLD * 8 + HT_CG_REPLACEMENTS * sizeof(ht_cg_replacement);
  return *told ? HT_OK : ht_cuda_allocate_host(cuda, bytes, told);
}

static void give_told_back(ht_cuda *cuda, ht_cuda_cg_scalars *told) {
  if (cuda->told)
    ht_cuda_release_host(cuda, told);
  else
    cuda->told = told;
}

/* x's pointer releases all on the device, and told's all on the host. */
ht_status ht_cuda_engine_allocate(ht_engine *e) {
  ht_cuda_cg_vectors *v = &e->v;
  int64_t whole = e->padded * 8, records = e->capacity * 8,
          narrow = e->store && e->store->plan.engine == HT_STORE_ENGINE_STREAMING ? e->padded * 4 : 0, right_side = e->store ? 0 : whole;
  const ht_cuda_part parts[] = {{whole, &v->x},
                                {whole, &v->r},
                                {whole, &v->p},
                                {whole, &v->s},
                                {records, &v->history},
                                {records, &v->alphas},
                                {records, &v->betas},
                                {e->blocks, &v->block_level},
                                {e->blocks * 8, &v->block_norm2},
                                {e->blocks * 8, &v->block_max},
                                {sizeof(ht_cuda_cg_staged), &v->scalars},
                                {narrow, &v->narrow[0]},
                                {narrow, &v->narrow[1]},
                                {right_side, &v->b},
                                {right_side, &v->best}};
  HT_TRY(e->ctx, ht_cuda_allocate_parts(e->cuda, sizeof parts / sizeof *parts, parts));
  HT_TRY(e->ctx, take_told(e->cuda, &v->told));
  *v->told = (ht_cuda_cg_scalars){.iteration = 0};
  if (!e->store) v->chosen = ((ht_cuda_cg_staged *)v->scalars)->chosen;
  e->staged = (ht_cuda_cg_staged *)(v->told + 1);
  v->told_records = (double *)(e->staged + 1);
  v->told_replacements = (ht_cg_replacement *)(v->told_records + 3 * HT_CUDA_TOLD);
  e->uniform = e->lowest = e->highest = HT_LEVEL_64;
  int entered = ht_cuda_enter(e->cuda);
  CUresult result = CUDA_SUCCESS;
  for (int k = 0; result == CUDA_SUCCESS && k < 2; k++) result = e->cuda->driver->cuEventCreate(&e->passed[k], CU_EVENT_DISABLE_TIMING);
  ht_cuda_leave(e->cuda, entered);
  return ht_cuda_check(e->cuda, result, "creating an event");
}

/* How the streaming engine multiplies at a level, or group by group. */
typedef struct multiply_form {
  ht_kernel kernel;
  unsigned shared_bytes; /* a block */
} multiply_form;

/* Where nearly all of the matrix is of one form and the device has a copy engine, through a ring. */
static int ring_form(const ht_engine *e, int mode, multiply_form *form) {
  static const struct {
    int level, indexed;
    multiply_form form;
  } rings[] = {
#define HT_RING(name, level, indexed, units, stages, groups, blocks)                                                                       \
  {level, indexed, {HT_KERNEL_##name, WARPS * HT_RING_BYTES(level, indexed, units, stages)}},
#include "backend/cuda/rings.def"
#undef HT_RING
  };
  const ht_store_view *a = &e->store->view;
  int64_t few = a->units / 8, indexed = a->index_units > few;
  if (e->cuda->capability < RING_CAPABILITY || (indexed && a->units - a->index_units > few)) return 0;
  for (size_t k = 0; k < sizeof rings / sizeof *rings; k++)
    if (rings[k].level == mode && rings[k].indexed == indexed) {
      *form = rings[k].form;
      return 1;
    }
  return 0;
}

static multiply_form form_of(const ht_engine *e, int mode) {
  static const ht_kernel kernels[MODES] = {HT_KERNEL_cg_multiply_16, HT_KERNEL_cg_multiply_32, HT_KERNEL_cg_multiply_64,
                                           HT_KERNEL_cg_multiply_by_group};
  multiply_form form = {kernels[mode], 0};
  const ht_store_view *a = &e->store->view;
  if (mode == HT_LEVEL_16 && e->store->info.share_exact_16 == 1)
    form.kernel = HT_KERNEL_cg_multiply_16_exact;
  else if (!ring_form(e, mode, &form) && mode == HT_LEVEL_16 && a->units >= LONG_SLICES * a->slices)
    form.kernel = HT_KERNEL_cg_multiply_16_long;
  return form;
}

static ht_kernel update_kernel(const ht_engine *e, int narrow) {
  if (e->v.inverse_blocks) return narrow ? HT_KERNEL_cg_update_blocks_narrow : HT_KERNEL_cg_update_blocks;
  return narrow ? HT_KERNEL_cg_update_narrow : HT_KERNEL_cg_update;
}

static int is_narrow(int mode) { return mode < HT_LEVEL_64; }

static ht_status launch_iteration(ht_engine *e, int mode) {
  if (!e->store) return ht_cuda_paper_iteration(e, mode);
  ht_store_view *a = &e->store->view;
  int by_group = mode == MODES - 1;
  multiply_form form = form_of(e, mode);
  ht_launch update = {.grid = (unsigned)e->update_blocks, .block = THREADS, .early = 1},
            multiply = {.grid = (unsigned)e->multiply_blocks[mode], .block = THREADS, .shared_bytes = form.shared_bytes, .early = 1},
            precondition = {.grid = (unsigned)e->precondition_blocks, .block = THREADS, .early = 1};
  HT_TRY(e->ctx, ht_cuda_launch(e->cuda, update_kernel(e, is_narrow(mode)), update, HT_ARGS(a, &e->v, &e->stride)));
  HT_TRY(e->ctx, ht_cuda_launch(e->cuda, form.kernel, multiply, HT_ARGS(a, &e->v, &e->stride, &e->update_blocks)));
  if (!e->precondition_blocks) return HT_OK;
  return ht_cuda_launch(e->cuda, HT_KERNEL_cg_precondition, precondition,
                        HT_ARGS(a, &e->v, &e->stride, &e->update_blocks, &e->multiply_blocks[mode], &by_group));
}

typedef struct captured_run {
  ht_engine *engine;
  int mode, run;
  int64_t every;
} captured_run;

static void enqueue(void *user) {
  const captured_run *c = user;
  for (int k = 0; k < 1 << c->run; k++) {
    if (c->every && k % c->every == 0) ht_cuda_decide(c->engine);
    launch_iteration(c->engine, c->mode);
  }
}

/* 1 << run iterations, and a decision by the network before each `every`-th, from the first on; 0: none. */
static ht_status capture(ht_engine *e, int mode, int run, int64_t every, CUgraphExec *made) {
  captured_run c = {e, mode, run, every};
  return ht_cuda_capture(e->cuda, enqueue, &c, "making the graph of an iteration", made);
}

enum { LONGEST_RUN = HT_ENGINE_RUNS - 1 };

static int smaller(int64_t a, int64_t b) { return (int)(a < b ? a : b); }

static ht_status make_streaming(ht_engine *e) {
  const ht_store_view *a = &e->store->view;
  int blocks, narrow;
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, update_kernel(e, 0), THREADS, 0, &blocks));
  HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, update_kernel(e, 1), THREADS, 0, &narrow));
  blocks = smaller(blocks, narrow);
  e->stride = e->update_blocks = smaller(blocks, (a->blocks + WARPS - 1) / WARPS);
  if (e->v.inverse_blocks) {
    HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, HT_KERNEL_cg_precondition, THREADS, 0, &blocks));
    e->precondition_blocks = smaller(blocks, (a->blocks + WARPS - 1) / WARPS);
    if (e->precondition_blocks > e->stride) e->stride = e->precondition_blocks;
  }
  for (int mode = 0; mode < MODES; mode++) {
    multiply_form form = form_of(e, mode);
    HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, form.kernel, THREADS, form.shared_bytes, &blocks));
    e->multiply_blocks[mode] = smaller(blocks, (a->slices + WARPS - 1) / WARPS);
    if (e->multiply_blocks[mode] > e->stride) e->stride = e->multiply_blocks[mode];
  }
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, SUMS * (int64_t)e->stride * 8, &e->v.sums));
  return capture(e, HT_LEVEL_64, LONGEST_RUN, 0, &e->graph[HT_LEVEL_64][LONGEST_RUN]);
}

/* With a diagonal M or inverse blocks, by level and by log2 of the rows a thread; the last for one row a thread and many threads. */
enum { MANY_THREADS = 4, LONG_ROWS_MOST = 2 };
#define ROWS(name, bits)                                                                                                                   \
  {                                                                                                                                        \
    HT_KERNEL_##name##_1_##bits, HT_KERNEL_##name##_2_##bits, HT_KERNEL_##name##_4_##bits, HT_KERNEL_##name##_8_##bits,                    \
        HT_KERNEL_##name##_many_1_##bits                                                                                                   \
  }
#define LEVELS(name)                                                                                                                       \
  { ROWS(name, 16), ROWS(name, 32), ROWS(name, 64) }
static const ht_kernel persistent_kernels[2][HT_LEVELS][MANY_THREADS + 1] = {LEVELS(cg_persistent), LEVELS(cg_persistent_blocks)};
#undef LEVELS
#undef ROWS

static ht_kernel persistent_kernel(const ht_engine *e, int level) {
  int rows_log2 = 0;
  while (1 << rows_log2 < e->rows) rows_log2++;
  if (level == HT_LEVEL_64 && e->long_halos)
    return e->block > 32 * HT_WIDE_WARPS ? HT_KERNEL_cg_persistent_long_many_1_64
           : rows_log2                   ? HT_KERNEL_cg_persistent_long_2_64
                                         : HT_KERNEL_cg_persistent_long_1_64;
  return persistent_kernels[e->v.inverse_blocks != NULL][level][e->block > 32 * HT_WIDE_WARPS ? MANY_THREADS : rows_log2];
}

static unsigned persistent_shared(const ht_engine *e) { return (unsigned)(e->cuda->shared_block_bytes - HT_STATIC_SHARED); }

/* Units that a block keeps decoded in shared memory, beside p and what else of a patch lies there. */
static int units_kept(const ht_engine *e, int level) {
  const ht_store *store = e->store;
  int64_t columns = store->view.patch_rows + store->rows->halo_most;
  if (e->v.inverse_blocks) columns += 2 * store->view.patch_rows;                   /* two vectors more */
  if (level == HT_LEVEL_64 && e->long_halos) columns += 2 * store->rows->halo_most; /* messages */
  int64_t rest = e->cuda->shared_block_bytes - HT_STATIC_SHARED - (columns + 4) * 8;
  return smaller(rest > 0 ? rest / ht_cuda_unit_shared(level) : 0, INT32_MAX);
}

static int64_t most_units(const ht_store *store) {
  const ht_arrangement *rows = store->rows;
  int64_t most = 0;
  for (int64_t p = 0; p < store->view.patches; p++) {
    int64_t begin = rows->patch_slice[p], end = rows->patch_slice[p + 1],
            units = rows->slice[end].unit - rows->slice[begin].unit + (end - begin) * store->view.ragged;
    if (units > most) most = units;
  }
  return most;
}

/* Where halos are longer than one and a half rows a thread, messages are asked for together and collected in shared memory: if the matrix
 * has room there, too. */
static void choose_threads(ht_engine *e) {
  const ht_store *store = e->store;
  int64_t slices = store->rows->patch_slices_most, most = slices > HT_NARROW_WARPS ? HT_WIDE_WARPS : HT_NARROW_WARPS,
          warps = slices < most ? slices : most;
  for (e->rows = 1; e->rows * warps < slices;) e->rows *= 2;
  e->long_halos = !e->v.inverse_blocks && e->rows <= LONG_ROWS_MOST && 2 * store->rows->halo_most > 3 * 32 * warps;
  if (e->long_halos) e->long_halos = most_units(store) <= units_kept(e, HT_LEVEL_64);
  if (e->long_halos && warps < HT_WIDE_WARPS) warps = HT_WIDE_WARPS; /* those without rows collect, too */
  e->block = (unsigned)(32 * warps);
}

static ht_status make_persistent(ht_engine *e) {
  static const uint32_t first[2] = {2, 2}; /* whose tags nothing has yet */
  const ht_store *store = e->store;
  int64_t rows = store->view.padded * 2 * 16;
  const ht_cuda_part parts[] = {{HT_MAIL_BYTES, &e->v.sums}, {rows, &e->v.exchange}, {sizeof first, &e->v.epochs}};
  HT_TRY(e->ctx, ht_cuda_allocate_parts(e->cuda, 3, parts));
  HT_TRY(e->ctx, ht_cuda_fill(e->cuda, HT_MAIL_BYTES, 0, e->v.sums));
  HT_TRY(e->ctx, ht_cuda_fill(e->cuda, rows, 0, e->v.exchange));
  HT_TRY(e->ctx, ht_cuda_send(e->cuda, sizeof first, first, e->v.epochs));
  choose_threads(e);
  for (int level = 0; level < HT_LEVELS; level++) { /* loads the kernels, too */
    int blocks;
    HT_TRY(e->ctx, ht_cuda_resident_blocks(e->cuda, persistent_kernel(e, level), e->block, persistent_shared(e), &blocks));
    HT_CHECK(e->ctx, blocks >= store->view.patches, HT_UNSUPPORTED,
             "the persistent engine needs %lld blocks at once, and GPU %d (%s) runs %d; use --engine streaming",
             (long long)store->view.patches, e->cuda->ordinal, e->cuda->name, blocks);
  }
  return HT_OK;
}

static ht_status create(ht_engine *e, const ht_engine_precond *precond) {
  HT_TRY(e->ctx, ht_cuda_engine_allocate(e));
  HT_TRY(e->ctx, ht_cuda_engine_precondition(e, precond));
  e->exact = e->store->info.share_exact_16 == 1;
  if (e->store->plan.engine == HT_STORE_ENGINE_PERSISTENT) return make_persistent(e);
  return make_streaming(e);
}

ht_status ht_cuda_engine_create(ht_store *store, const ht_engine_precond *precond, int64_t capacity, ht_engine **out) {
  ht_engine *e;
  *out = NULL;
  HT_TRY(store->ctx, ht_allocate_zeroed(store->ctx, 1, sizeof *e, &e));
  e->ctx = store->ctx;
  e->cuda = store->cuda;
  e->store = store;
  e->padded = store->view.padded;
  e->blocks = store->view.blocks;
  e->capacity = capacity;
  ht_status status = create(e, precond);
  if (status != HT_OK) {
    ht_cuda_engine_release(e);
    return ht_trace(store->ctx, status, __func__, __FILE__, __LINE__);
  }
  *out = e;
  return HT_OK;
}

ht_status ht_cuda_engine_renew(ht_engine *e, int *same) {
  *same = e->exact == (e->store->info.share_exact_16 == 1) && !e->v.inverse_blocks;
  return *same && e->v.inverse_diagonal ? ht_cuda_engine_invert(e) : HT_OK;
}

/* Replays that an event overtook may still be under way, and write to what is the host's. */
static void forget_graphs(ht_engine *e) {
  e->cuda->driver->cuStreamSynchronize(e->cuda->stream);
  for (int k = 0; k < MODES * HT_ENGINE_RUNS; k++) {
    CUgraphExec *graph = &e->graph[k / HT_ENGINE_RUNS][k % HT_ENGINE_RUNS];
    if (*graph) e->cuda->driver->cuGraphExecDestroy(*graph);
    *graph = NULL;
  }
}

void ht_cuda_engine_forget_graphs(ht_engine *e) {
  int entered = ht_cuda_enter(e->cuda);
  forget_graphs(e);
  ht_cuda_leave(e->cuda, entered);
}

void ht_cuda_engine_release(ht_engine *e) {
  if (!e) return;
  const ht_cuda_cg_vectors *v = &e->v;
  int entered = ht_cuda_enter(e->cuda);
  forget_graphs(e);
  if (e->deciding) e->cuda->driver->cuGraphExecDestroy(e->deciding);
  for (int k = 0; k < 2; k++)
    if (e->passed[k]) e->cuda->driver->cuEventDestroy(e->passed[k]);
  ht_cuda_leave(e->cuda, entered);
  ht_cuda_release(e->cuda, v->x);
  ht_cuda_release(e->cuda, v->sums);
  ht_cuda_release(e->cuda, (void *)(uintptr_t)v->inverse_diagonal);
  ht_cuda_release(e->cuda, (void *)(uintptr_t)v->inverse_blocks);
  ht_cuda_release(e->cuda, (void *)(uintptr_t)e->network.weights);
  ht_cuda_release(e->cuda, (void *)(uintptr_t)e->network.biases);
  ht_cuda_paper_release(e);
  give_told_back(e->cuda, v->told);
  ht_release(e->ctx, e);
}

/* ---- vectors in and out ---- */

/* The paper's engine works in the caller's scale, and in its order unless there is another for the tiles. */
static void move_unscaled(ht_engine *e, int in, const double *from, double *to) {
  int64_t n = e->tiles.n;
  if (e->tiles.order)
    ht_cuda_launch(e->cuda, in ? HT_KERNEL_vector_gather : HT_KERNEL_vector_scatter, ht_cuda_over(n),
                   HT_ARGS(&n, &e->tiles.order, &from, &to));
  else
    ht_cuda_copy_async(e->cuda, n * 8, from, to);
}

static void move(ht_engine *e, ht_kernel kernel, int sign, const double *from, double *to) {
  if (!e->store) {
    move_unscaled(e, kernel == HT_KERNEL_store_gather, from, to);
    return;
  }
  ht_store_view *a = &e->store->view;
  ht_cuda_launch(e->cuda, kernel, ht_cuda_over(a->padded), HT_ARGS(a, &sign, &from, &to));
}

/* The streaming engine makes every second step of x with the next one: x with what is owed to it, into `to`. */
static void settle(ht_engine *e, double *to) {
  ht_store_view *a = &e->store->view;
  ht_cuda_launch(e->cuda, e->narrow ? HT_KERNEL_cg_settle_narrow : HT_KERNEL_cg_settle, ht_cuda_over(a->padded / 2),
                 HT_ARGS(a, &e->v, &to));
}

/* Before r or p change for another reason than an iteration. */
static void settle_in_place(ht_engine *e) {
  if (e->v.told->owed) settle(e, e->v.x);
  e->v.told->owed = e->v.told->later = 0;
}

void ht_cuda_engine_set_iterate(ht_engine *e, const double *x) {
  e->v.told->owed = e->v.told->later = 0;
  move(e, HT_KERNEL_store_gather, 1, x, e->v.x);
}

void ht_cuda_engine_get_iterate(ht_engine *e, double *x) {
  const double *from = e->v.told->owed ? e->store->x : e->v.x;
  if (e->v.told->owed) settle(e, e->store->x);
  move(e, HT_KERNEL_store_scatter, -1, from, x);
}

void ht_cuda_engine_set_residual(ht_engine *e, const double *r) {
  settle_in_place(e);
  move(e, HT_KERNEL_store_gather, -1, r, e->v.r);
}

void ht_cuda_engine_get_residual(ht_engine *e, double *r) { move(e, HT_KERNEL_store_scatter, 1, e->v.r, r); }

void ht_cuda_engine_get_best(ht_engine *e, double *x) { move(e, HT_KERNEL_store_scatter, -1, e->v.best, x); }

int ht_cuda_engine_set_right_side(ht_engine *e, const double *b) {
  if (e->store) return 0;
  move(e, HT_KERNEL_store_gather, 1, b, e->v.b);
  return 1;
}

static void convert_direction(ht_engine *e, ht_kernel kernel) {
  ht_store_view *a = &e->store->view;
  ht_cuda_launch(e->cuda, kernel, ht_cuda_over(a->padded / 2), HT_ARGS(a, &e->v));
}

/* The direction in FP64, wherever it is kept. */
static const double *wide_direction(ht_engine *e) {
  if (e->narrow) convert_direction(e, HT_KERNEL_cg_widen);
  return e->v.p;
}

void ht_cuda_engine_get_direction(ht_engine *e, double *p) {
  if (ht_cuda_copy(e->cuda, e->padded * 8, wide_direction(e), p) != HT_OK) return; /* `failed` says so */
  if (!e->store || ht_cuda_store_fetch_exponents(e->store) != HT_OK) return;
  for (int64_t i = 0; i < e->padded; i++) p[i] = ldexp(p[i], -e->store->exponent[i]);
}

double ht_cuda_engine_direction_square(ht_engine *e) {
  const double *p = wide_direction(e);
  return ht_cuda_dot(e->ctx, e->padded, p, p);
}

static void note_levels(ht_engine *e, const uint8_t *block_level) {
  e->lowest = HT_LEVEL_64, e->highest = HT_LEVEL_16;
  for (int64_t b = 0; b < e->blocks; b++) {
    if (block_level[b] < e->lowest) e->lowest = block_level[b];
    if (block_level[b] > e->highest) e->highest = block_level[b];
  }
  e->uniform = e->lowest == e->highest ? e->highest : MIXED;
}

void ht_cuda_engine_set_levels(ht_engine *e, const uint8_t *block_level) {
  note_levels(e, block_level);
  if (e->uniform == MIXED) /* complete when it returns: the levels are the caller's */
    ht_cuda_copy(e->cuda, e->blocks, block_level, e->v.block_level);
  else
    ht_cuda_fill(e->cuda, e->blocks, e->uniform, e->v.block_level);
}

/* ---- a run ---- */

/* What an error of the scaled matrix may become in the caller's scale, squared: before anything is measured. */
static double widest_calibration(const ht_engine *e) {
  int exponent = e->store ? e->store->exponent_most : 0;
  return (double)((int64_t)1 << (exponent > 0 ? (exponent < 30 ? 2 * exponent : 60) : 0));
}

static int is_learned(const ht_engine *e, const ht_cg_state *s) { return s->decide_rule == HT_DECIDE_LEARNED && e->network.weights; }

static int64_t interval_of(const ht_engine *e, const ht_cg_state *s) { return e->interval > 0 ? e->interval : s->decide_every; }

/* A run that goes on after a pause looks when it would have looked without one: pauses depend on the clock, and change no bit. */
static int goes_on(const ht_engine *e, const ht_cg_state *s) {
  const ht_cuda_cg_scalars *told = e->v.told;
  return !s->fresh && s->decide_rule != HT_DECIDE_HOST && told->decide_rule == s->decide_rule && told->iteration == s->iteration;
}

/* Whether the paper's engine looks before its first product. */
static int begins_with_look(const ht_engine *e, const ht_cg_state *s) { return !e->store && is_learned(e, s) && e->next <= s->iteration; }

/* The streaming engine's network is a kernel of its own, for which the host plans. */
static int plans_looks(const ht_engine *e, const ht_cg_state *s) { return e->store && is_learned(e, s); }

/* When the device is to look by itself. */
static int64_t first_look(const ht_engine *e, const ht_cg_state *s) {
  if (plans_looks(e, s) || (s->decide_rule == HT_DECIDE_LEARNED && !is_learned(e, s))) return INT64_MAX;
  return begins_with_look(e, s) ? s->iteration + interval_of(e, s) : e->next;
}

static void stage_scalars(ht_engine *e, const ht_cg_state *s) {
  double widest = widest_calibration(e);
  const ht_cuda_cg_scalars *told = e->v.told;
  int same = goes_on(e, s), deciding = s->decide_rule != HT_DECIDE_HOST && s->decide_at < INT64_MAX;
  uint32_t in_force = (uint32_t)(1 << e->lowest | 1 << e->highest);
  int64_t first = s->fresh ? s->iteration : s->iteration + 1;
  if (!same) e->next = s->decide_at;
  e->staged->chosen[0] = HT_CHOSEN_CHANGED | (begins_with_look(e, s) ? 0 : in_force);
  e->staged->chosen[1] = 0;
  e->staged->scalars = (ht_cuda_cg_scalars){.iteration = first,
                                            .first = first,
                                            .norm_r = s->norm_r,
                                            .rz = s->rz,
                                            .pap = s->pap,
                                            .alpha = s->fresh ? 0 : s->alpha,
                                            .beta = s->fresh ? 0 : s->beta,
                                            .goal = s->goal,
                                            .replace_below = s->replace_below,
                                            .grow_above = s->grow_above,
                                            .iteration_end = s->iteration_end,
                                            .decide_at = first_look(e, s),
                                            .pause_at = s->pause_at,
                                            .capacity = e->capacity,
                                            .decide_rule = s->decide_rule,
                                            .decide_every = is_learned(e, s) ? interval_of(e, s) : s->decide_every,
                                            .floor = s->floor,
                                            .replacing = s->replacing,
                                            .lowest = HT_LEVEL_64,
                                            .lowest_before = HT_LEVEL_64,
                                            .recount = 1,
                                            .theta = s->theta,
                                            .eta = s->eta,
                                            .target = s->target,
                                            .uniform = deciding ? MIXED : e->uniform,
                                            .owed = told->owed,
                                            .later = told->later,
                                            .owed_alpha = told->owed_alpha,
                                            .owed_beta = told->owed_beta,
                                            .mean_norm2 = same ? told->mean_norm2 : 0,
                                            .calibration_16 = same ? told->calibration_16 : widest,
                                            .calibration_32 = same ? told->calibration_32 : widest};
}

/* All groups at one level, unless the policy tells them apart. That some are exact at a lower one is no reason: a look at each before its
 * loads makes 0.5 to 0.8 of the speed (27-point 64^3 and 160^3, 7-point 256^3). */
static int mode_of(const ht_engine *e) {
  int level = e->staged->scalars.uniform;
  return !e->store ? ht_cuda_paper_streams(e, level) : level == MIXED ? MODES - 1 : level;
}

static ht_status replay(ht_engine *e, CUgraphExec graph, int k) {
  const ht_cuda_driver *driver = e->cuda->driver;
  int entered = ht_cuda_enter(e->cuda);
  CUresult result = driver->cuGraphLaunch(graph, e->cuda->stream);
  if (result == CUDA_SUCCESS) result = driver->cuEventRecord(e->passed[k & 1], e->cuda->stream);
  if (result == CUDA_SUCCESS && k > 0) result = driver->cuEventSynchronize(e->passed[~k & 1]);
  ht_cuda_leave(e->cuda, entered);
  return ht_cuda_check(e->cuda, result, "replaying the iterations");
}

/* The longest run with decisions in it, where they are that frequent. */
static ht_status find_deciding(ht_engine *e, int mode, int64_t every, CUgraphExec *graph) {
  if (e->deciding && e->deciding_every != every) {
    HT_TRY(e->ctx, ht_cuda_synchronize(e->cuda));
    int entered = ht_cuda_enter(e->cuda);
    e->cuda->driver->cuGraphExecDestroy(e->deciding);
    ht_cuda_leave(e->cuda, entered);
    e->deciding = NULL;
  }
  e->deciding_every = every;
  if (!e->deciding) HT_TRY(e->ctx, capture(e, mode, LONGEST_RUN, every, &e->deciding));
  *graph = e->deciding;
  return HT_OK;
}

static ht_status find_run(ht_engine *e, int mode, int run, CUgraphExec *graph) {
  if (!e->graph[mode][run]) HT_TRY(e->ctx, capture(e, mode, run, 0, &e->graph[mode][run]));
  *graph = e->graph[mode][run];
  return HT_OK;
}

/* One replay ahead of the one that is waited for; after an event its kernels end at once. The streaming engine's network looks between two
 * replays, which end where it does, or in them: at the directions of iterations `next`, `next` + every, ... as if no event had come
 * between. */
static ht_status run_graphs(ht_engine *e, const ht_cg_state *s) {
  int planned = plans_looks(e, s), mode = mode_of(e);
  volatile int32_t *event = &e->v.told->event;
  int64_t at = planned && s->fresh ? s->iteration - 1 : s->iteration; /* whose direction stands: the first is made later */
  int64_t every = interval_of(e, s), first = e->next > s->iteration ? e->next : s->iteration, next = planned ? first : INT64_MAX;
  for (int k = 0; *event == HT_CG_CONTINUE; k++) {
    int run = LONGEST_RUN, deciding = at == next && every <= 1 << LONGEST_RUN && (1 << LONGEST_RUN) % every == 0;
    CUgraphExec graph;
    if (at == next && !deciding) HT_TRY(e->ctx, ht_cuda_decide(e));
    if (at == next) next += deciding ? 1 << LONGEST_RUN : every;
    while (run > 0 && at + (1 << run) > next) run--;
    HT_TRY(e->ctx, deciding ? find_deciding(e, mode, every, &graph) : find_run(e, mode, run, &graph));
    HT_TRY(e->ctx, replay(e, graph, k));
    at += 1 << run;
  }
  if (!planned) return HT_OK;
  HT_TRY(e->ctx, ht_cuda_synchronize(e->cuda));
  while (next > first && next - every >= e->v.told->iteration) next -= every; /* planned, but the event came first */
  e->next = next;
  return HT_OK;
}

static ht_status run_persistent(ht_engine *e) {
  ht_store_view *a = &e->store->view;
  int kept = units_kept(e, e->highest);
  ht_launch launch = {.grid = (unsigned)a->patches, .block = e->block, .shared_bytes = persistent_shared(e), .cooperative = 1};
  return ht_cuda_launch(e->cuda, persistent_kernel(e, e->highest), launch, HT_ARGS(a, &e->v, &kept));
}

static int is_persistent(const ht_engine *e) { return e->store && e->store->plan.engine == HT_STORE_ENGINE_PERSISTENT; }

static ht_status run(ht_engine *e, const ht_cg_state *s) {
  if (is_persistent(e)) return run_persistent(e);
  if (!e->store && s->fresh) HT_TRY(e->ctx, ht_cuda_paper_start(e));
  if (begins_with_look(e, s)) HT_TRY(e->ctx, ht_cuda_decide(e));
  return run_graphs(e, s);
}

/* The records since `first`: those that came with the event, and the rest of a run longer than any that a guard asks for. */
static ht_status fetch_records(ht_engine *e, ht_cg_state *s, int64_t first) {
  const double *device[] = {e->v.history, e->v.alphas, e->v.betas};
  double *host[] = {s->history, s->alphas, s->betas};
  int64_t end = s->iteration + 1 < e->capacity ? s->iteration + 1 : e->capacity,
          told = first + HT_CUDA_TOLD < end ? first + HT_CUDA_TOLD : end;
  for (int k = 0; k < 3 && first < end; k++) {
    int64_t late = !e->store && k > 0, skip = late && s->fresh; /* the paper's step lengths are those that led to the iteration */
    memcpy(host[k] + first + skip - late, e->v.told_records + k * HT_CUDA_TOLD + skip, (size_t)(told - first - skip) * 8);
    if (told < end) HT_TRY(e->ctx, ht_cuda_copy(e->cuda, (end - told) * 8, device[k] + told, host[k] + told - late));
  }
  return HT_OK;
}

/* Whether all blocks are at FP64 as they were before the run: then they need not be fetched. */
static int stays_whole(const ht_engine *e, const ht_cg_state *s) {
  int whole = s->decide_rule == HT_DECIDE_LEARNED && s->lowest == HT_LEVEL_64 && e->v.told->lowest_before == HT_LEVEL_64;
  for (int64_t b = 0; b < e->blocks && whole; b++) whole = s->block_level[b] == HT_LEVEL_64;
  return whole;
}

/* The scalars, the records, and what a policy on the host asked for: an event that brings no more than that needs no copy. */
static ht_status fetch(ht_engine *e, ht_cg_state *s, int64_t first) {
  const ht_cuda_cg_scalars *told = e->v.told;
  s->iteration = told->iteration;
  s->norm_r = told->norm_r;
  s->rz = told->rz;
  s->pap = told->pap;
  s->alpha = told->alpha;
  s->beta = told->beta;
  s->lowest = told->lowest;
  s->replacing = told->replacing;
  s->replaced = told->replaced;
  if (!plans_looks(e, s)) e->next = told->decide_at;
  memcpy(s->replacement, e->v.told_replacements, (size_t)told->replaced * sizeof *s->replacement);
  HT_TRY(e->ctx, fetch_records(e, s, first));
  s->fresh = 0;
  if (s->decide_rule != HT_DECIDE_HOST && s->block_level && !stays_whole(e, s)) {
    HT_TRY(e->ctx, ht_cuda_copy(e->cuda, e->blocks, e->v.block_level, s->block_level));
    if (!e->store) note_levels(e, s->block_level);
  }
  if (told->event != HT_CG_DECIDE || !s->block_norm2) return HT_OK;
  ht_launch look = {.grid = (unsigned)smaller((e->blocks + WARPS - 1) / WARPS, 4096), .block = THREADS};
  if (is_persistent(e)) HT_TRY(e->ctx, ht_cuda_launch(e->cuda, HT_KERNEL_cg_look, look, HT_ARGS(&e->store->view, &e->v)));
  HT_TRY(e->ctx, ht_cuda_copy(e->cuda, e->blocks * 8, e->v.block_norm2, s->block_norm2));
  return ht_cuda_copy(e->cuda, e->blocks * 8, e->v.block_max, s->block_max);
}

/* Matrix bytes: the groups that were read, and the rows' part by the highest level in use. */
static void add_bytes(const ht_engine *e, ht_cg_state *s, int64_t iterations) {
  static const double width[HT_LEVELS] = {HT_WARP * 4, HT_WARP * 8, HT_WARP * 16};
  const ht_store_view *a = &e->store->view;
  const ht_cuda_cg_scalars *told = e->v.told;
  double groups = told->level_groups[0] + told->level_groups[1] + told->level_groups[2];
  if (!(groups > 0)) { /* one level for all */
    s->bytes_level[e->highest] += (double)iterations * e->store->info.bytes_whole[e->highest];
    return;
  }
  double rest = (double)ht_cuda_store_bytes_beside(a) / (double)a->units; /* of a unit, beside its values */
  double rows = (double)iterations * ((double)a->padded * 8 + (double)a->slices * 16);
  for (int level = 0; level < HT_LEVELS; level++)
    s->bytes_level[level] += told->level_groups[level] * (width[level] + rest) + rows * told->level_groups[level] / groups;
}

/* The first step multiplies both by zero. */
static void clear_direction(ht_engine *e) {
  int64_t bytes = e->padded * 8;
  settle_in_place(e);
  ht_cuda_fill(e->cuda, bytes, 0, e->v.p);
  ht_cuda_fill(e->cuda, bytes, 0, e->v.s);
  for (int k = 0; k < 2 && e->v.narrow[k]; k++) ht_cuda_fill(e->cuda, bytes / 2, 0, e->v.narrow[k]);
}

/* The direction where the next run reads it. A step that is owed is found in another way there: it is made now. */
static void place_direction(ht_engine *e, int narrow) {
  if (narrow == e->narrow) return;
  settle_in_place(e);
  e->staged->scalars.owed = e->staged->scalars.later = 0;
  convert_direction(e, narrow ? HT_KERNEL_cg_narrow : HT_KERNEL_cg_widen);
  e->narrow = narrow;
}

ht_cg_event ht_cuda_engine_run(ht_engine *e, ht_cg_state *s) {
  int64_t first = s->fresh ? s->iteration : s->iteration + 1;
  if (s->fresh) clear_direction(e);
  stage_scalars(e, s);
  if (e->store && !is_persistent(e)) place_direction(e, is_narrow(mode_of(e)));
  e->v.told->event = HT_CG_CONTINUE;
  ht_status status = ht_cuda_copy_async(e->cuda, sizeof *e->staged, e->staged, e->v.scalars);
  if (status == HT_OK) status = run(e, s);
  if (status == HT_OK) status = ht_cuda_synchronize(e->cuda);
  if (status == HT_OK) status = fetch(e, s, first);
  if (status != HT_OK) return HT_CG_FAILED;
  if (e->store)
    add_bytes(e, s, s->iteration - first + 1);
  else
    ht_cuda_paper_add_bytes(e, s);
  return (ht_cg_event)e->v.told->event;
}
