/* A device that is none: a backend whose memory the host cannot touch, on top of the CPU's. Its addresses are not valid ones, so that a
 * host access crashes; each function takes only memory that the device owns, and fails the test for any other. Its store and engine are
 * the CPU's split storage and fused loop. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TEST_REMOTE_H
#define HT_TEST_REMOTE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "data/split.h"
#include "op/operator.h"
#include "policy/policy.h"
#include "solver/loop.h"

enum { REMOTE_MOST = 256 };

static struct {
  const ht_backend *cpu;
  struct {
    char *memory;
    int64_t bytes;
  } block[REMOTE_MOST];
  int64_t alive;        /* bytes */
  int64_t limit;        /* bytes there are */
  int runs, fail_after; /* engine runs and products so far; the device is lost after so many, when positive */
  int transfers, decisions;
  int directions; /* that the host fetched */
  int waits;      /* times that the host waited for sums */
  ht_status status;
} remote;

/* ---- memory ---- */

/* An address with this bit is in no one's memory. */
static const uintptr_t REMOTE_BIT = (uintptr_t)1 << 62;

static char *remote_flip(const void *p) { return (char *)((uintptr_t)p ^ REMOTE_BIT); }

static int remote_owns(const void *p, int64_t bytes) {
  const char *at = remote_flip(p);
  for (int k = 0; k < REMOTE_MOST; k++)
    if (remote.block[k].memory && at >= remote.block[k].memory && at + bytes <= remote.block[k].memory + remote.block[k].bytes) return 1;
  return 0;
}

/* What the CPU can read and write. */
static void *remote_real(const void *p, int64_t bytes) {
  if (!remote_owns(p, bytes)) fail_msg("the device was given %p with %lld bytes, which it does not own", p, (long long)bytes);
  return remote_flip(p);
}

static void *remote_vector(const double *p, int64_t n) { return remote_real(p, n * (int64_t)sizeof *p); }
static void *remote_any(const void *p, int64_t bytes) { return remote_owns(p, bytes) ? remote_flip(p) : (char *)(uintptr_t)p; }

static ht_status remote_open(ht_context *ctx, const char *device) {
  HT_CHECK(ctx, !*device || !strcmp(device, "0"), HT_UNSUPPORTED, "there is no device %s; use --backend cpu", device);
  return HT_OK;
}

static ht_status remote_failed(ht_context *ctx) {
  if (remote.status != HT_OK) HT_FAIL(ctx, remote.status, "the device was lost");
  return HT_OK;
}

static ht_status remote_create(ht_context *ctx, int64_t bytes, void *memory) {
  int k = 0;
  memcpy(memory, &(void *){NULL}, sizeof(void *));
  HT_CHECK(ctx, !remote.limit || remote.alive + bytes <= remote.limit, HT_NO_MEMORY,
           "%lld bytes of device memory were asked for; use a smaller problem", (long long)bytes);
  while (k < REMOTE_MOST && remote.block[k].memory) k++;
  assert_true(k < REMOTE_MOST);
  remote.block[k].memory = calloc(1, bytes ? (size_t)bytes : 1);
  remote.block[k].bytes = bytes;
  remote.alive += bytes;
  char *at = remote_flip(remote.block[k].memory);
  memcpy(memory, &at, sizeof at);
  return HT_OK;
}

static void remote_release(ht_context *ctx, void *memory) {
  (void)ctx;
  for (int k = 0; memory && k < REMOTE_MOST; k++) {
    if (remote.block[k].memory != remote_flip(memory)) continue;
    free(remote.block[k].memory);
    remote.alive -= remote.block[k].bytes;
    remote.block[k].memory = NULL;
    return;
  }
  if (memory) fail_msg("the device was asked to release %p, which it does not own", memory);
}

static ht_status remote_upload(ht_context *ctx, int64_t bytes, const void *from, void *to) {
  (void)ctx;
  remote.transfers++;
  memcpy(remote_real(to, bytes), remote_any(from, bytes), (size_t)bytes);
  return HT_OK;
}

static ht_status remote_download(ht_context *ctx, int64_t bytes, const void *from, void *to) {
  (void)ctx;
  remote.transfers++;
  memcpy(remote_any(to, bytes), remote_real(from, bytes), (size_t)bytes);
  return HT_OK;
}

static int remote_reaches(ht_context *ctx, const void *memory) {
  (void)ctx;
  return remote_owns(memory, 1);
}

/* A lost device: what it does from then on is NaN. */
static int remote_is_lost(void) {
  if (remote.fail_after > 0 && ++remote.runs >= remote.fail_after) remote.status = HT_INTERNAL;
  return remote.status != HT_OK;
}

/* ---- products and vector operations ---- */

static const char *remote_isa(void) { return "a device that is none"; }
static int64_t remote_cache(void) { return 0; }

static ht_csr_view remote_csr(const ht_csr_view *a) {
  return (ht_csr_view){a->n, a->nnz, remote_real(a->row_start, (a->n + 1) * 8), remote_real(a->columns, a->nnz * 4),
                       remote_real(a->values, a->nnz * 8)};
}

static void remote_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y) {
  ht_csr_view view = remote_csr(a);
  remote.cpu->csr_multiply(ctx, &view, remote_vector(x, a->n), remote_vector(y, a->n));
  if (remote_is_lost()) *(double *)remote_vector(y, 1) = NAN;
}

static void remote_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r) {
  ht_csr_view view = remote_csr(a);
  remote.cpu->csr_residual(ctx, &view, remote_vector(x, a->n), remote_vector(b, a->n), remote_vector(r, a->n));
}

static void remote_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y) {
  ht_tilecsc_view v = *a;
  v.tile_row_start = remote_real(a->tile_row_start, (a->row_blocks + 1) * 8);
  v.tile_column = remote_real(a->tile_column, a->tiles * 4);
  v.tile_entry = remote_real(a->tile_entry, (a->tiles + 1) * 8);
  int64_t entries = v.tile_entry[a->tiles];
  v.column_start = remote_real(a->column_start, a->tiles * (HT_COLUMN_BLOCK + 1) * 4);
  v.row_index = remote_real(a->row_index, entries * 2);
  v.scale = remote_real(a->scale, (a->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK * HT_COLUMN_BLOCK * 8);
  if (a->lack_16) v.lack_16 = remote_real(a->lack_16, (a->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK * HT_COLUMN_BLOCK * 4);
  v.value_f64 = remote_real(a->value_f64, entries * 8);
  v.value_f32 = remote_real(a->value_f32, entries * 4);
  v.value_bf16 = remote_real(a->value_bf16, entries * 2);
  if (a->lack_16) v.lack_16 = remote_real(a->lack_16, a->n * 4);
  if (level) level = remote_real(level, (a->n + HT_COLUMN_BLOCK - 1) / HT_COLUMN_BLOCK);
  remote.cpu->tilecsc_multiply(ctx, &v, level, remote_vector(x, a->n), remote_vector(y, a->n));
}

static double remote_dot(ht_context *ctx, int64_t n, const double *x, const double *y) {
  remote.waits++;
  return remote.cpu->dot(ctx, n, remote_vector(x, n), remote_vector(y, n));
}

static void remote_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y) {
  remote.cpu->axpy(ctx, n, a, remote_vector(x, n), remote_vector(y, n));
}

static void remote_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y) {
  remote.cpu->xpby(ctx, n, remote_vector(x, n), b, remote_vector(y, n));
}

static void remote_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y) {
  remote.cpu->scale_by(ctx, n, remote_vector(d, n), remote_vector(x, n), remote_vector(y, n));
}

static void remote_copy(ht_context *ctx, int64_t n, const double *x, double *y) {
  remote.cpu->copy(ctx, n, remote_vector(x, n), remote_vector(y, n));
}

static void remote_shift(ht_context *ctx, int64_t n, int exponent, const double *x, double *y) {
  remote.cpu->shift(ctx, n, exponent, remote_vector(x, n), remote_vector(y, n));
}

static double remote_norm_inf(ht_context *ctx, int64_t n, const double *x) {
  remote.waits++;
  return remote.cpu->norm_inf(ctx, n, remote_vector(x, n));
}

static void remote_reduce(ht_context *ctx, int64_t n, int count, ht_reduction *r) {
  remote.waits++;
  assert_in_range(count, 1, HT_REDUCTIONS_MOST);
  for (int k = 0; k < count; k++) {
    ht_reduction one = r[k];
    one.x = remote_vector(one.x, n);
    if (one.kind != HT_NORM_INF) one.y = remote_vector(one.y, n);
    remote.cpu->reduce(ctx, n, 1, &one);
    r[k].result = one.result;
  }
}

/* ---- store ---- */

struct ht_store {
  ht_context *ctx;
  ht_operator *op;
  ht_store_options options;
};

static ht_matrix remote_matrix(ht_context *ctx, const ht_csr_view *a) {
  return (ht_matrix){.ctx = ctx,
                     .n = a->n,
                     .nnz = a->nnz,
                     .row_start = (int64_t *)(uintptr_t)a->row_start,
                     .columns = (int32_t *)(uintptr_t)a->columns,
                     .values = (double *)(uintptr_t)a->values};
}

static void remote_store_plan(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_store_engine asked, ht_store_plan *plan) {
  (void)ctx, (void)a, (void)block;
  int streaming = asked == HT_STORE_ENGINE_STREAMING;
  *plan = (ht_store_plan){streaming ? HT_STORE_ENGINE_STREAMING : HT_STORE_ENGINE_PERSISTENT, streaming ? 0 : HT_COLUMN_BLOCK};
}

static ht_status remote_store_create(ht_context *ctx, const ht_csr_view *a, const ht_store_options *options, ht_store **store) {
  const ht_operator_options o = {.exactness_flags = options->exactness_flags, .ordering = HT_ORDERING_NATURAL}; /* its own */
  ht_matrix matrix = remote_matrix(ctx, a);
  ht_store *made = calloc(1, sizeof *made);
  *store = NULL;
  assert_non_null(made);
  made->ctx = ctx;
  made->options = *options;
  ht_status status = ht_operator_create_split(ctx, remote.cpu, &o, &matrix, &made->op);
  if (status == HT_OK)
    *store = made;
  else
    free(made);
  return status;
}

static ht_status remote_store_set_values(ht_store *store, const ht_csr_view *a, const double *diagonal) {
  (void)diagonal;
  ht_matrix matrix = remote_matrix(store->ctx, a);
  return store->op->update(store->op, &matrix);
}

static void remote_store_info(const ht_store *store, ht_store_info *info) {
  const ht_split_view *a = store->op->split;
  *info = (ht_store_info){.n = a->n, .padded = a->padded, .blocks = a->blocks, .bytes = store->op->bytes};
  for (int64_t t = 0; t < a->tiles; t++) {
    const ht_tile *tile = &a->tile[t];
    for (int level = 0; level < HT_LEVELS; level++) info->bytes_level[level] += (double)ht_split_tile_bytes(a, tile, (ht_level)level);
    info->share_exact_16 += tile->exact == HT_LEVEL_16 ? (double)tile->nonzeros / (double)store->op->nnz : 0;
    info->share_exact_32 += tile->exact <= HT_LEVEL_32 ? (double)tile->nonzeros / (double)store->op->nnz : 0;
  }
  for (int64_t b = 0; b < a->blocks; b++) {
    info->error_16 = fmaxf(info->error_16, a->column_error[HT_LEVEL_16][b]);
    info->error_32 = fmaxf(info->error_32, a->column_error[HT_LEVEL_32][b]);
  }
  info->engine = store->options.plan.engine == HT_STORE_ENGINE_STREAMING ? "streaming" : "persistent";
}

static void remote_store_multiply(ht_store *store, const uint8_t *block_level, const double *x, double *y) {
  int64_t n = store->op->n;
  assert_int_equal(store->op->apply(store->op, block_level, remote_vector(x, n), remote_vector(y, n), NULL), HT_OK);
}

static void remote_store_release(ht_store *store) {
  ht_operator_destroy(store->op);
  free(store);
}

/* ---- engine ---- */

struct ht_engine {
  ht_store *store;
  ht_loop *loop;
  ht_network network; /* weights NULL: none */
  int64_t next;       /* iteration that the network looks at next */
};

static ht_status remote_engine_create(ht_store *store, const ht_engine_precond *precond, int64_t capacity, ht_engine **engine) {
  ht_engine *made = calloc(1, sizeof *made);
  *engine = NULL;
  assert_non_null(made);
  made->store = store;
  ht_status status = ht_loop_create_fused(store->ctx, store->op, precond->diagonal, capacity, &made->loop);
  if (status == HT_OK)
    *engine = made;
  else
    free(made);
  return status;
}

/* All but what the engine itself owns. */
static ht_cg_state remote_merge(const ht_cg_state *scalars, const ht_cg_state *own) {
  ht_cg_state s = *scalars;
  s.n = own->n;
  s.x = own->x;
  s.r = own->r;
  s.p = own->p;
  s.s = own->s;
  s.z = own->z;
  s.inverse_diagonal = own->inverse_diagonal;
  s.tile_level = own->tile_level;
  return s;
}

static void remote_get_direction(ht_engine *e, double *p) {
  const ht_loop *loop = e->loop;
  for (int64_t i = 0; i < loop->op->split->padded; i++) p[i] = ldexp(loop->state.p[i], -ht_split_exponent(loop->op->split, i));
}

/* The blocks' levels by the network, as the EvoCG paper's state is defined. */
static void remote_ask_network(ht_engine *engine, uint8_t *level) {
  int64_t blocks = engine->loop->op->blocks;
  double *p = calloc((size_t)blocks * HT_COLUMN_BLOCK, sizeof *p);
  assert_non_null(p);
  remote_get_direction(engine, p);
  for (int64_t b = 0; b < blocks; b++) {
    float state[HT_COLUMN_BLOCK], logit[HT_LEVELS];
    double square = 0;
    for (int i = 0; i < HT_COLUMN_BLOCK; i++) square += p[b * HT_COLUMN_BLOCK + i] * p[b * HT_COLUMN_BLOCK + i];
    for (int i = 0; i < HT_COLUMN_BLOCK; i++) state[i] = (float)(p[b * HT_COLUMN_BLOCK + i] / fmax(sqrt(square), 1e-30));
    ht_network_forward(&engine->network, 1, state, logit, NULL);
    level[b] = logit[0] >= logit[1] && logit[0] >= logit[2] ? HT_LEVEL_64 : logit[1] >= logit[2] ? HT_LEVEL_32 : HT_LEVEL_16;
  }
  free(p);
}

static inline ht_status remote_set_network(ht_engine *e, const float *weights, int inputs, int hidden, int actions, int64_t interval) {
  HT_CHECK(e->loop->ctx, hidden <= 64 && !strcmp(e->loop->name, "fused"), HT_UNSUPPORTED, "the network has %d units", hidden);
  assert_int_equal(interval, 0);
  assert_int_equal(actions, HT_LEVELS);
  size_t bytes = (size_t)ht_network_size(inputs, hidden, actions) * sizeof *weights;
  free(e->network.weights);
  e->network = (ht_network){inputs, hidden, actions, malloc(bytes)};
  assert_non_null(e->network.weights);
  memcpy(e->network.weights, weights, bytes);
  return HT_OK;
}

static void remote_decide(ht_engine *engine, const ht_cg_state *asked) {
  ht_loop *loop = engine->loop;
  ht_cg_state *s = &loop->state;
  ht_policy policy;
  char why[256];
  remote.decisions++;
  ht_policy_options options = {.budget_theta = asked->theta, .budget_eta = asked->eta};
  snprintf(options.policy, sizeof options.policy, "%s", asked->decide_rule == HT_DECIDE_RULE ? "rule" : "budget");
  assert_int_equal(ht_policy_create(loop->ctx, &options, NULL, NULL, &policy, why), HT_OK);
  ht_policy_view view = {.iteration = s->iteration,
                         .blocks = loop->op->blocks,
                         .residual = s->norm_r,
                         .residual_target = asked->target,
                         .alpha = s->alpha,
                         .direction_norm2 = s->block_norm2,
                         .direction_max = s->block_max,
                         .error_16 = loop->op->column_error[HT_LEVEL_16],
                         .error_f32 = loop->op->column_error[HT_LEVEL_32],
                         .measured_16 = sqrt(s->error2[HT_LEVEL_16]),
                         .measured_f32 = sqrt(s->error2[HT_LEVEL_32])};
  if (asked->decide_rule == HT_DECIDE_LEARNED)
    remote_ask_network(engine, loop->block_level);
  else
    policy.decide(&policy, &view, loop->block_level);
  for (int64_t b = 0; b < loop->op->blocks; b++) {
    if (loop->block_level[b] < asked->floor) loop->block_level[b] = (uint8_t)asked->floor;
    if (loop->block_level[b] < s->lowest) s->lowest = loop->block_level[b];
  }
  loop->calls->levels_changed(loop);
}

static ht_cg_event remote_engine_run(ht_engine *engine, ht_cg_state *state) {
  ht_loop *loop = engine->loop;
  ht_cg_state asked = *state, own = loop->state;
  ht_cg_event event;
  if (remote_is_lost()) return HT_CG_NONFINITE;
  loop->state = remote_merge(state, &own);
  loop->state.lowest = HT_LEVEL_64;
  if (asked.decide_rule == HT_DECIDE_LEARNED && asked.fresh) engine->next = asked.decide_at;
  for (;;) {
    ht_cg_state *s = &loop->state;
    if (asked.decide_rule == HT_DECIDE_LEARNED)
      s->decide_at = engine->next;
    else if (asked.decide_rule != HT_DECIDE_HOST)
      for (int64_t next = s->fresh ? s->iteration : s->iteration + 1; s->decide_at < next;) s->decide_at += asked.decide_every;
    event = loop->calls->run(loop);
    if (event != HT_CG_DECIDE || asked.decide_rule == HT_DECIDE_HOST) break;
    remote_decide(engine, &asked);
    engine->next = loop->state.iteration + asked.decide_every;
  }
  *state = remote_merge(&loop->state, &asked);
  loop->state = own; /* scalars and records are the caller's */
  state->decide_at = asked.decide_at;
  if (asked.decide_rule != HT_DECIDE_HOST) memcpy(state->block_level, loop->block_level, (size_t)loop->op->blocks);
  return event;
}

static void remote_set_levels(ht_engine *engine, const uint8_t *block_level) {
  memcpy(engine->loop->block_level, block_level, (size_t)engine->loop->op->blocks);
  engine->loop->calls->levels_changed(engine->loop);
}

static void remote_set_iterate(ht_engine *e, const double *x) { e->loop->calls->set_iterate(e->loop, remote_vector(x, e->loop->op->n)); }
static void remote_get_iterate(ht_engine *e, double *x) { e->loop->calls->get_iterate(e->loop, remote_vector(x, e->loop->op->n)); }
static void remote_set_residual(ht_engine *e, const double *r) { e->loop->calls->set_residual(e->loop, remote_vector(r, e->loop->op->n)); }
static void remote_get_residual(ht_engine *e, double *r) { e->loop->calls->get_residual(e->loop, remote_vector(r, e->loop->op->n)); }
static void remote_fetch_direction(ht_engine *e, double *p) {
  remote.directions++;
  remote_get_direction(e, p);
}
static double remote_direction_square(ht_engine *e) { return e->loop->calls->direction_square(e->loop); }

static void remote_engine_release(ht_engine *engine) {
  ht_loop_destroy(engine->loop);
  free(engine->network.weights);
  free(engine);
}

/* ---- the table ---- */

#define REMOTE_TABLE(table_name)                                                                                                           \
  {                                                                                                                                        \
    .name = table_name, .open = remote_open, .failed = remote_failed, .memory_create = remote_create, .memory_release = remote_release,    \
    .upload = remote_upload, .download = remote_download, .reaches = remote_reaches, .isa = remote_isa, .cache_bytes = remote_cache,       \
    .csr_multiply = remote_csr_multiply, .csr_residual = remote_csr_residual, .tilecsc_multiply = remote_tilecsc_multiply,                 \
    .dot = remote_dot, .axpy = remote_axpy, .xpby = remote_xpby, .scale_by = remote_scale_by, .copy = remote_copy, .shift = remote_shift,  \
    .norm_inf = remote_norm_inf, .reduce = remote_reduce, .store_plan = remote_store_plan, .store_create = remote_store_create,            \
    .store_set_values = remote_store_set_values, .store_info = remote_store_info, .store_multiply = remote_store_multiply,                 \
    .store_release = remote_store_release, .engine_create = remote_engine_create, .engine_run = remote_engine_run,                         \
    .engine_set_levels = remote_set_levels, .engine_set_iterate = remote_set_iterate, .engine_get_iterate = remote_get_iterate,            \
    .engine_set_residual = remote_set_residual, .engine_get_residual = remote_get_residual,                                                \
    .engine_direction_square = remote_direction_square, .engine_get_direction = remote_fetch_direction,                                    \
    .engine_release = remote_engine_release                                                                                                \
  }

static const ht_backend remote_backend = REMOTE_TABLE("remote"), remote_cuda = REMOTE_TABLE("cuda");

/* A fresh device, found by "remote" or, for `auto`, by "cuda". */
static void remote_install(ht_context *ctx, const ht_backend *table) {
  ht_backend_set_extra(NULL);
  memset(&remote, 0, sizeof remote);
  assert_int_equal(ht_backend_find(ctx, "cpu", &remote.cpu), HT_OK);
  ht_backend_set_extra(table);
}

#endif
