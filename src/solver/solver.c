/* The solver object: prepare once, solve many times. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/context.h"
#include "base/words.h"
#include "data/diagonal.h"
#include "data/split.h"
#include "halftone/version.h"
#include "solver/choose_backend.h"
#include "solver/solver_internal.h"

enum { PARALLEL_FROM = 20000 }; /* rows */

/* ---- life ---- */

ht_status ht_solver_create(ht_context *ctx, const ht_options *options, ht_solver **solver) {
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, solver);
  ht_solver *s;
  *solver = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *s, &s));
  s->ctx = ctx;
  if (options)
    s->options = *options;
  else
    ht_options_set_defaults(&s->options);
  s->options.ctx = ctx;
  s->guard.ctx = ctx;
  *solver = s;
  return HT_OK;
}

void ht_solver_forget_loop(ht_solver *s) {
  ht_guard_release(&s->guard);
  ht_loop_destroy(s->loop);
  s->loop = NULL;
  s->columns = 0; /* their history was the loop's */
}

static void forget_precond(ht_solver *s) {
  ht_precond_destroy(s->precond);
  s->precond = NULL;
}

void ht_solver_forget(ht_solver *s) {
  ht_solver_forget_loop(s);
  forget_precond(s);
  ht_operator_destroy(s->op);
  s->op = NULL;
  ht_learned_release(s->ctx, s->policy_read);
  s->policy_read = NULL;
  s->prepared = 0;
}

void ht_solver_destroy(ht_solver *s) {
  if (!s) return;
  ht_solver_forget(s);
  ht_learned_release(s->ctx, s->policy_given);
  ht_release(s->ctx, s->averaged.values);
  ht_release(s->ctx, s->own_diagonal);
  ht_release(s->ctx, s->column_reports);
  ht_release(s->ctx, s);
}

ht_status ht_solver_set_option(ht_solver *s, const char *name, const char *value) {
  HT_NEED(NULL, s);
  HT_NEED(s->ctx, name);
  HT_NEED(s->ctx, value);
  HT_TRY(s->ctx, ht_options_set(&s->options, name, value));
  for (int i = 0; i < ht_option_count(); i++)
    if (!strcmp(ht_option_at(i)->name, name) && ht_option_at(i)->when == HT_AT_PREPARE) s->prepared = 0;
  return HT_OK;
}

static ht_status set_problem(ht_solver *s, int64_t n, const double *diagonal) {
  double *copy = NULL;
  if (diagonal) {
    HT_TRY(s->ctx, ht_allocate(s->ctx, n, sizeof *copy, &copy)); /* before anything changes: a failure leaves the old problem */
    memcpy(copy, diagonal, (size_t)n * sizeof *copy);
  }
  ht_solver_forget(s);
  ht_release(s->ctx, s->own_diagonal);
  s->diagonal = s->own_diagonal = copy;
  s->n = n;
  return HT_OK;
}

ht_status ht_solver_set_matrix(ht_solver *s, const ht_matrix *matrix) {
  HT_NEED(NULL, s);
  HT_CHECK(s->ctx, matrix, HT_BAD_ARGUMENT, "the matrix must not be NULL");
  HT_TRY(s->ctx, set_problem(s, matrix->n, NULL));
  s->matrix = matrix;
  s->apply = NULL;
  return HT_OK;
}

ht_status ht_solver_set_operator(ht_solver *s, int64_t n, ht_apply_fn apply, void *user, const double *diagonal) {
  HT_NEED(NULL, s);
  HT_CHECK(s->ctx, n > 0 && apply, HT_BAD_ARGUMENT, "an operator needs a positive size and a function, and has size %lld", (long long)n);
  HT_TRY(s->ctx, set_problem(s, n, diagonal));
  s->matrix = NULL;
  s->apply = apply;
  s->apply_user = user;
  return HT_OK;
}

void ht_solver_set_progress(ht_solver *s, ht_progress_fn fn, void *user) {
  if (!s) return;
  s->progress = fn;
  s->progress_user = user;
}

void ht_solver_set_policy(ht_solver *s, ht_policy_fn fn, void *user) {
  if (!s) return;
  s->policy_fn = fn;
  s->policy_user = user;
  s->prepared = 0;
}

void ht_solver_set_chooser(ht_solver *s, const ht_policy_chooser *chooser) {
  s->chooser = *chooser;
  s->prepared = 0;
}

void ht_solver_set_learned(ht_solver *s, ht_learned *learned) {
  ht_learned_release(s->ctx, s->policy_given);
  s->policy_given = learned;
  s->prepared = 0;
}

const ht_policy_facts *ht_solver_facts(const ht_solver *s) { return &s->facts; }

const double *ht_solver_bytes(const ht_solver *s) { return s->loop->state.bytes_level; }

int64_t ht_solver_looks(const ht_solver *s) { return s->guard.looks; }

/* ---- prepare ---- */

static void refuse(ht_solver *s, ht_outcome outcome, const char *format, ...) HT_PRINTF(3, 4);
static void refuse(ht_solver *s, ht_outcome outcome, const char *format, ...) {
  va_list args;
  va_start(args, format);
  s->refused = outcome;
  *s->refusal = 0;
  ht_add_words_of(s->refusal, sizeof s->refusal, format, args);
  va_end(args);
}

static void warn_singular(ht_solver *s) {
  if (s->null_space.empty_rows)
    ht_log(s->ctx, HT_LOG_WARNING,
           "the matrix is singular: row %lld, counted from 1, is empty (empty rows in all: %lld); a consistent b is solved all the same",
           (long long)s->null_space.first_empty + 1, (long long)s->null_space.empty_rows);
  if (s->null_space.constant)
    ht_log(s->ctx, HT_LOG_WARNING, "the matrix is singular: every row adds up to 0; a consistent b is solved all the same");
}

/* A matrix that cannot be positive definite is an outcome, known before the first product. Empty rows are let through:
 * such a system may be consistent. */
static void inspect_matrix(ht_solver *s) {
  const ht_matrix *a = s->matrix;
  s->refused = HT_CONVERGED;
  if (a->symmetry == HT_UNSYMMETRIC) {
    refuse(s, HT_NOT_SYMMETRIC, "entries (%lld,%lld) and (%lld,%lld), counted from 1, differ by %g", (long long)a->asymmetric_row + 1,
           (long long)a->asymmetric_column + 1, (long long)a->asymmetric_column + 1, (long long)a->asymmetric_row + 1, a->asymmetry);
    return;
  }
  ht_null_space_find(a, s->diagonal, &s->null_space);
  int64_t bad = a->n, empty_rows = s->null_space.empty_rows;
  const double *d = s->diagonal;
#pragma omp parallel for schedule(static) num_threads(s->ctx->threads) reduction(min : bad) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++)
    if (!(d[i] > 0 || (d[i] == 0 && empty_rows && ht_row_is_empty(a, i))) && i < bad) bad = i;
  if (bad < a->n)
    refuse(s, HT_INDEFINITE, "the diagonal entry of row %lld, counted from 1, is %g", (long long)bad + 1, d[bad]);
  else
    warn_singular(s);
}

/* CG needs a matrix that is symmetric to the bit: the average with the transpose. The certificate uses the matrix as given. */
static ht_status choose_symmetric(ht_solver *s) {
  int nearly = s->matrix && s->matrix->symmetry == HT_NEARLY_SYMMETRIC;
  double *values = NULL;
  if (nearly) HT_TRY(s->ctx, ht_allocate(s->ctx, s->matrix->nnz, sizeof *values, &values)); /* first: the operator may read the old ones */
  ht_release(s->ctx, s->averaged.values);
  s->averaged.values = NULL;
  s->symmetric = s->matrix;
  if (!nearly) return HT_OK;
  ht_matrix_averaged_values(s->matrix, values);
  s->averaged = *s->matrix;
  s->averaged.values = values;
  s->averaged.symmetry = HT_SYMMETRIC;
  s->averaged.diagonal = NULL; /* the matrix's own; half of the smallest numbers is not exact */
  s->averaged.norm_inf = 0;
  s->symmetric = &s->averaged;
  ht_log(
      s->ctx, HT_LOG_WARNING,
      "the matrix is symmetric but for rounding: entry (%lld,%lld), counted from 1, differs from its partner by %g; their average is used, "
      "and the residual is certified with the matrix as given",
      (long long)s->matrix->asymmetric_row + 1, (long long)s->matrix->asymmetric_column + 1, s->matrix->asymmetry);
  return HT_OK;
}

/* The streaming engine reads each block at its own level, and decides by a network of its own: it is taken for a policy that wants that. */
static ht_status choose_store_engine(ht_solver *s, int *engine) {
  ht_learned **learned = s->policy_given ? &s->policy_given : &s->policy_read;
  int asked = s->options.solve.engine, tiles = 0;
  if (asked == HT_ENGINE_AUTO && !s->policy_fn && !s->chooser.choose && s->backend->engine_set_network)
    HT_TRY(s->ctx, ht_policy_wants_tiles(s->ctx, &s->options.policy, learned, &tiles));
  *engine = asked == HT_ENGINE_PERSISTENT           ? HT_STORE_ENGINE_PERSISTENT
            : asked == HT_ENGINE_STREAMING || tiles ? HT_STORE_ENGINE_STREAMING
                                                    : HT_STORE_ENGINE_AUTO;
  return HT_OK;
}

/* Unknowns a block of block-Jacobi where the backend's engine is to apply it: its order keeps them together. Else 0. */
static int64_t engine_block(const ht_solver *s) {
  const ht_precond_options *o = &s->options.precond;
  const ht_csr_view a = ht_matrix_view(s->symmetric);
  if (o->precond != HT_PRECOND_BLOCK_JACOBI || !s->backend->engine_blocks || s->options.solve.engine == HT_ENGINE_TEXTBOOK) return 0;
  return ht_precond_block(o, s->n, ht_node_unknowns(s->ctx, &a));
}

static int is_paper(const ht_solver *s) { return s->options.solve.engine == HT_ENGINE_PAPER && s->options.op.format == HT_FORMAT_AUTO; }

/* NULL: not known. */
static const double *diagonal_of_symmetric(const ht_solver *s) { return s->symmetric == s->matrix ? s->diagonal : NULL; }

static ht_status make_operator(ht_solver *s) {
  const ht_operator_options *o = &s->options.op;
  if (s->apply) return ht_operator_create_callback(s->ctx, s->n, s->apply, s->apply_user, &s->op);
  if (o->format == HT_FORMAT_CSR) return ht_operator_create_csr(s->ctx, s->backend, s->symmetric, &s->op);
  if (o->format == HT_FORMAT_TILECSC || is_paper(s)) return ht_operator_create_tilecsc(s->ctx, s->backend, o, s->symmetric, &s->op);
  if (s->backend->store_create) {
    int engine;
    HT_TRY(s->ctx, choose_store_engine(s, &engine));
    return ht_operator_create_store(s->ctx, s->backend, o, engine, engine_block(s), s->symmetric, diagonal_of_symmetric(s), &s->op);
  }
  return ht_operator_create_split(s->ctx, s->backend, o, s->symmetric, &s->op);
}

/* The caller's operator takes Jacobi from the caller's diagonal; the other preconditioners need a matrix. */
static ht_status make_precond(ht_solver *s) {
  ht_precond_options o = s->options.precond;
  int unknowns = s->op->unknowns_per_node > 1 ? s->op->unknowns_per_node : 1;
  if (s->apply) return ht_precond_create_diagonal(s->ctx, s->backend, s->n, o.precond == HT_PRECOND_NONE ? NULL : s->diagonal, &s->precond);
  if (s->null_space.empty_rows && o.precond != HT_PRECOND_NONE) {
    if (o.precond != HT_PRECOND_JACOBI)
      ht_log(s->ctx, HT_LOG_WARNING, "a matrix with empty rows has no such preconditioner; jacobi is used");
    return ht_precond_create_diagonal(s->ctx, s->backend, s->n, s->diagonal, &s->precond);
  }
  if (o.precond == HT_PRECOND_JACOBI && s->op->store && s->op->backend->engine_run && s->options.solve.engine != HT_ENGINE_TEXTBOOK)
    return ht_precond_create_engine_jacobi(s->ctx, s->backend, s->symmetric, &s->precond);
  if (s->op->engine_block) return ht_precond_create_block_jacobi(s->ctx, s->backend, &o, s->symmetric, unknowns, &s->precond);
  return ht_precond_create(s->ctx, s->backend, &o, s->symmetric, unknowns, &s->precond);
}

static int is_block_jacobi(const ht_solver *s) { return !strcmp(s->precond->name, "block-jacobi"); }

static int64_t history_capacity(const ht_solver *s) {
  int64_t limit = s->options.solve.max_iterations ? s->options.solve.max_iterations : HT_MOST_DEFAULT_ITERATIONS;
  return (limit < 1000000 ? limit : 1000000) + 1;
}

static ht_status make_engine_loop(ht_solver *s, int jacobi) {
  ht_engine_precond precond = {.diagonal = jacobi ? s->diagonal : NULL};
  if (is_block_jacobi(s)) ht_block_jacobi_view(s->precond, &precond);
  return ht_loop_create_engine(s->ctx, s->op, &precond, history_capacity(s), &s->loop);
}

static int can_be_paper(const ht_solver *s, int diagonal_only) {
  return diagonal_only && s->op->tiles && s->op->backend->engine_create_on_tiles;
}

/* The engines run the split storage, or a backend's own, with a diagonal preconditioner, a backend's also with block-Jacobi, and the
 * paper's Tile-CSC where it is asked for; everything else runs the textbook loop. */
static ht_status make_loop(ht_solver *s) {
  static const char *const names[] = {"auto", "fused", "textbook", "persistent", "streaming", "paper"};
  int wanted = s->options.solve.engine, jacobi = !strcmp(s->precond->name, "jacobi");
  int diagonal_only = jacobi || !strcmp(s->precond->name, "none");
  int fused = diagonal_only && s->op->split && s->op->backend->cg_run;
  int own = (diagonal_only || (s->op->engine_block && is_block_jacobi(s))) && s->op->store && s->op->backend->engine_run;
  HT_CHECK(s->ctx,
           wanted == HT_ENGINE_AUTO || wanted == HT_ENGINE_TEXTBOOK ||
               (wanted == HT_ENGINE_FUSED   ? fused
                : wanted == HT_ENGINE_PAPER ? can_be_paper(s, diagonal_only)
                                            : own),
           HT_BAD_OPTION,
           "the engine %s needs --format %s, --precond %s and a backend that has it, and has %s, %s and %s; use --engine auto",
           names[wanted], wanted == HT_ENGINE_PAPER ? "tilecsc" : "split",
           wanted == HT_ENGINE_FUSED || wanted == HT_ENGINE_PAPER ? "none or jacobi" : "none, jacobi or block-jacobi", s->op->format,
           s->precond->name, s->op->backend->name);
  if ((own && wanted != HT_ENGINE_TEXTBOOK) || wanted == HT_ENGINE_PAPER) return make_engine_loop(s, jacobi);
  if (fused && wanted != HT_ENGINE_TEXTBOOK)
    return ht_loop_create_fused(s->ctx, s->op, jacobi ? s->diagonal : NULL, history_capacity(s), &s->loop);
  return ht_loop_create_textbook(s->ctx, s->op, s->precond, history_capacity(s), &s->loop);
}

/* The textbook loop cannot look at a store's direction block by block: the order of the unknowns there is the store's own. */
static int sees_blocks(const ht_solver *s) { return s->op->blocks > 0 && (!s->op->store || s->loop->engine); }

static void gather_store_facts(const ht_solver *s, ht_policy_facts *f) {
  ht_store_info info;
  s->op->backend->store_info(s->op->store, &info);
  memcpy(f->bytes_level, s->loop->engine ? info.bytes_whole : info.bytes_level, sizeof f->bytes_level);
  f->bytes_streamed = f->bytes_level[HT_LEVEL_64] + s->loop->vector_bytes;
  f->error_16 = info.error_16;
  f->error_32 = info.error_32;
  f->share_exact_16 = info.share_exact_16;
  f->share_exact_32 = info.share_exact_32;
  f->keeps_constants = info.share_constant >= 0.5;
  f->gathers = info.share_gathered * f->nonzeros;
}

static double bytes_at(const ht_split_view *a, ht_level level) {
  double bytes = 0;
  for (int64_t t = 0; t < a->tiles; t++) bytes += (double)ht_split_tile_bytes(a, &a->tile[t], ht_tile_level(&a->tile[t], level));
  return bytes;
}

/* NAN where there is none. */
static double diagonal_range(const ht_solver *s) {
  double least = INFINITY, most = 0;
  const double *d = s->diagonal;
#pragma omp parallel for schedule(static) num_threads(s->ctx->threads) reduction(min                                                       \
                                                                                 : least) reduction(max                                    \
                                                                                                    : most) if (s->n > PARALLEL_FROM)
  for (int64_t i = 0; i < (d ? s->n : 0); i++) {
    if (d[i] > 0 && d[i] < least) least = d[i];
    if (d[i] > most) most = d[i];
  }
  return most > 0 ? most / least : NAN;
}

ht_policy_facts ht_solver_facts_of(const ht_solver *s) {
  const ht_split_view *a = s->op->split;
  ht_policy_facts f = {
      .levels = sees_blocks(s), .share_exact_16 = NAN, .share_exact_32 = NAN, .cache_bytes = (double)s->op->backend->cache_bytes()};
  f.bytes_streamed = (double)s->op->bytes + s->loop->vector_bytes;
  f.bytes_vectors = s->loop->vector_bytes;
  f.nonzeros = (double)s->op->nnz;
  f.nonzeros_per_row = (double)s->op->nnz / (double)s->n;
  for (int level = 0; level < HT_LEVELS; level++) f.bytes_level[level] = (double)s->op->bytes;
  f.unknowns_per_node = s->op->unknowns_per_node;
  f.slenderness = s->op->slenderness;
  f.device = s->op->store != NULL;
  f.diagonal_range = diagonal_range(s);
  f.preconditioned = strcmp(s->precond->name, "none") != 0;
  if (f.device) gather_store_facts(s, &f);
  if (!a || !s->op->nnz) return f;
  double exact_16 = 0, exact_32 = 0;
  for (int64_t t = 0; t < a->tiles; t++) {
    if (a->tile[t].exact == HT_LEVEL_16) exact_16 += (double)a->tile[t].nonzeros;
    if (a->tile[t].exact <= HT_LEVEL_32) exact_32 += (double)a->tile[t].nonzeros;
  }
  for (int level = 0; level < HT_LEVELS; level++) f.bytes_level[level] = bytes_at(a, (ht_level)level);
  for (int64_t k = 0; k < a->slices; k++) f.gathers += (double)a->slice[k].gathers * HT_LANES * a->block * a->block;
  f.gathers = fmin(f.gathers, f.nonzeros); /* there is padding among them */
  for (int64_t b = 0; b < a->blocks; b++) {
    f.error_16 = fmax(f.error_16, a->column_error[HT_LEVEL_16][b]);
    f.error_32 = fmax(f.error_32, a->column_error[HT_LEVEL_32][b]);
  }
  f.share_exact_16 = exact_16 / (double)s->op->nnz;
  f.share_exact_32 = exact_32 / (double)s->op->nnz;
  return f;
}

/* New values on the old pattern: the ordering and the analyses of the pattern are kept. */
static ht_status update_values(ht_solver *s) {
  s->op->diagonal = diagonal_of_symmetric(s);
  HT_TRY(s->ctx, s->op->update(s->op, s->symmetric));
  if (!s->precond->update || s->null_space.empty_rows)
    forget_precond(s); /* make_precond chooses again */
  else
    HT_TRY(s->ctx, s->precond->update(s->precond, s->symmetric));
  return HT_OK;
}

/* Where the engine can decide by the policy's network it does, and the direction stays with it. */
static ht_status give_network(ht_solver *s, ht_policy *p) {
  const ht_backend *backend = s->op->backend;
  if (!p->learned || !p->by_network || p->window || !s->loop->engine || !backend->engine_set_network) return HT_OK;
  const ht_network *n = &p->learned->network;
  ht_status status = backend->engine_set_network(s->loop->engine, n->weights, n->inputs, n->hidden, n->actions, 0);
  if (status == HT_OK)
    p->rule = HT_DECIDE_LEARNED;
  else if (status != HT_UNSUPPORTED) /* that is no reason to refuse: the host decides */
    return ht_trace(s->ctx, status, __func__, __FILE__, __LINE__);
  else
    ht_context_clear_error(s->ctx);
  return HT_OK;
}

/* The policy that the options name, or another. */
static ht_status make_named(ht_solver *s, const char *name) {
  ht_policy_options options = s->options.policy;
  if (name) snprintf(options.policy, sizeof options.policy, "%s", name);
  HT_TRY(s->ctx,
         ht_policy_create(s->ctx, &options, &s->facts, s->policy_given ? &s->policy_given : &s->policy_read, &s->guard.asked, s->why));
  return HT_OK;
}

static ht_status make_policy(ht_solver *s, const char *pretended) {
  ht_policy *p = &s->guard.asked;
  const ht_operator *op = s->op;
  s->why[0] = 0;
  if (s->policy_fn)
    ht_policy_create_user(s->policy_fn, s->policy_user, p);
  else if (s->chooser.choose && !pretended)
    HT_TRY(s->ctx, ht_policy_create_chosen(s->ctx, &s->chooser, &s->options.policy, &s->facts, p));
  else
    HT_TRY(s->ctx, make_named(s, pretended));
  HT_CHECK(s->ctx, (!p->decide && !p->window) || !op->blocks || sees_blocks(s), HT_BAD_OPTION,
           "the policy %s looks at the direction block by block, which the textbook loop cannot on the %s backend's storage; use --engine "
           "auto, or a fixed policy",
           p->name, op->backend->name);
  HT_TRY(s->ctx, give_network(s, p));
  if (p->rule == HT_DECIDE_LEARNED) return HT_OK;
  int possible = !s->loop->engine || op->backend->engine_get_direction;
  HT_CHECK(s->ctx, !p->sees_direction || !p->by_network || possible, HT_UNSUPPORTED,
           "the policy %s looks at the direction itself, which the engine %s of the %s backend does not give; use --backend cpu", p->name,
           s->loop->name, op->backend->name);
  if (p->sees_direction && possible && op->blocks && !s->loop->state.block_direction) HT_TRY(s->ctx, ht_loop_keep_direction(s->loop));
  return HT_OK;
}

ht_status ht_solver_make_policy(ht_solver *s) { return make_policy(s, NULL); }

/* A device's store counts this where it is filled. */
static int keeps_constants(const ht_solver *s) {
  static const double LITTLE = 0.125;
  const ht_matrix *a = s->matrix;
  int64_t rows = 0;
  for (int64_t i = 0; i < s->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += a->values[k];
    rows += fabs(sum) < LITTLE * s->diagonal[i];
  }
  return 2 * rows >= s->n;
}

ht_status ht_solver_pretend(ht_solver *s, const ht_pretence *pretence) {
  ht_policy_facts *f = &s->facts;
  if (pretence->cache_bytes > 0) f->cache_bytes = pretence->cache_bytes;
  if (!s->op->store) f->device = pretence->device;
  if (pretence->device && !s->op->store) f->keeps_constants = keeps_constants(s);
  ht_policy_release(s->ctx, &s->guard.asked);
  HT_TRY(s->ctx, make_policy(s, pretence->policy));
  return HT_OK;
}

ht_status ht_solver_make_loop(ht_solver *s) {
  ht_guard *g = &s->guard;
  HT_TRY(s->ctx, make_loop(s));
  ht_lap(s->ctx, HT_PHASE_engine);
  *g = (ht_guard){
      .ctx = s->ctx, .loop = s->loop, .matrix = s->matrix, .null_space = &s->null_space, .options = &s->options.solve, .known = &s->facts};
  HT_TRY(s->ctx, ht_guard_allocate(g, s->symmetric != s->matrix));
  if (s->options.solve.trace) HT_TRY(s->ctx, ht_recorder_create(s->ctx, s->op->blocks, &g->recorder));
  ht_lap(s->ctx, HT_PHASE_guard);
  return HT_OK;
}

static ht_status make_all(ht_solver *s) {
  if (s->op) HT_TRY(s->ctx, update_values(s));
  if (!s->op) HT_TRY(s->ctx, make_operator(s));
  ht_lap(s->ctx, HT_PHASE_storing);
  if (!s->precond) HT_TRY(s->ctx, make_precond(s));
  ht_lap(s->ctx, HT_PHASE_precond);
  HT_TRY(s->ctx, ht_solver_make_loop(s));
  s->facts = ht_solver_facts_of(s);
  HT_TRY(s->ctx, ht_solver_make_policy(s));
  ht_lap(s->ctx, HT_PHASE_policy);
  HT_TRY(s->ctx, s->backend->failed(s->ctx));
  return HT_OK;
}

/* On the backend that is asked for. Where auto chose one that then fails, its memory too small or the device in use, the CPU takes over. */
static ht_status make_somewhere(ht_solver *s) {
  if (!s->op) HT_TRY(s->ctx, ht_choose_backend(s->ctx, &s->options, s->matrix ? s->matrix->nnz : -1, &s->backend, s->why_backend));
  ht_status status = make_all(s);
  int on_gpu_only = ht_engine_is_a_gpus(s->options.solve.engine);
  int elsewhere =
      !on_gpu_only && s->why_backend[0] && !ht_backend_is_host(s->ctx, s->backend) && (status == HT_NO_MEMORY || status == HT_UNSUPPORTED);
  if (status == HT_OK || !elsewhere) return status;
  ht_log(s->ctx, HT_LOG_WARNING, "the %s backend cannot take the matrix, and the CPU is used: %s", s->backend->name,
         ht_context_error(s->ctx));
  ht_solver_forget(s);
  HT_TRY(s->ctx, ht_choose_cpu_instead(s->ctx, &s->backend, s->why_backend));
  return make_all(s);
}

static ht_status read_diagonal(ht_solver *s) {
  if (!s->matrix) return HT_OK;
  s->diagonal = s->matrix->diagonal;
  if (s->diagonal) return HT_OK;
  if (!s->own_diagonal) HT_TRY(s->ctx, ht_allocate(s->ctx, s->n, sizeof(double), &s->own_diagonal));
  ht_matrix_diagonal(s->matrix, s->own_diagonal);
  s->diagonal = s->own_diagonal;
  return HT_OK;
}

int ht_solver_limit_threads(ht_solver *s) {
  int threads = s->ctx->threads;
  if (s->matrix) s->ctx->threads = ht_threads_worth(s->ctx, 12 * (double)s->matrix->nnz + 9 * 8 * (double)s->n);
  return threads;
}

/* Set-up that was told to stop, or had no time left, is an outcome like that of a solve; the next solve sets up again. */
static ht_status refuse_unfinished(ht_solver *s) {
  if (ht_stop_requested(s->ctx))
    refuse(s, HT_STOPPED, "stopped on request before the first iteration: %s", ht_context_error(s->ctx));
  else
    refuse(s, HT_TIME_LIMIT, "the set-up took longer than %.3g s: %s", s->options.solve.time_limit, ht_context_error(s->ctx));
  ht_context_clear_error(s->ctx);
  return HT_OK;
}

static ht_status prepare(ht_solver *s) {
  double start = ht_seconds();
  ht_laps_begin(s->ctx);
  int same_pattern = s->prepared && s->matrix;
  s->prepared = 0;
  HT_TRY(s->ctx, read_diagonal(s));
  s->refused = HT_CONVERGED;
  if (s->matrix) inspect_matrix(s);
  HT_TRY(s->ctx, choose_symmetric(s));
  ht_lap(s->ctx, HT_PHASE_checks);
  ht_solver_forget_loop(s);
  if (!same_pattern || s->refused != HT_CONVERGED) ht_solver_forget(s);
  if (s->refused == HT_CONVERGED) {
    s->ctx->set_up_end = s->options.solve.time_limit > 0 ? start + s->options.solve.time_limit : 0;
    ht_status status = make_somewhere(s);
    s->ctx->set_up_end = 0;
    if (status != HT_OK) {
      ht_solver_forget(s);
      if (status == HT_INTERRUPTED) return refuse_unfinished(s);
      return ht_trace(s->ctx, status, __func__, __FILE__, __LINE__);
    }
  }
  s->version = s->matrix ? s->matrix->version : 0;
  s->prepared = 1;
  ht_laps_tell(s->ctx);
  s->time_setup_s = ht_seconds() - start;
  return HT_OK;
}

ht_status ht_solver_prepare(ht_solver *s) {
  HT_NEED(NULL, s);
  HT_CHECK(s->ctx, s->matrix || s->apply, HT_BAD_ARGUMENT,
           "the solver has no matrix: call ht_solver_set_matrix or ht_solver_set_operator first");
  if (s->options.solve.threads) HT_TRY(s->ctx, ht_context_set_threads(s->ctx, (int)s->options.solve.threads));
  int threads = ht_solver_limit_threads(s);
  ht_status status = prepare(s);
  s->ctx->threads = threads;
  if (status != HT_OK) return ht_trace(s->ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- solve ---- */

/* What holds for the solver, whatever the right-hand side. */
static void describe(const ht_solver *s, ht_report *r) {
  const ht_operator *op = s->op;
  r->n = s->n;
  r->nnz = s->matrix ? s->matrix->nnz : -1;
  r->columns = 1;
  r->threads = s->ctx->threads;
  r->time_setup_s = s->time_setup_s;
  snprintf(r->policy, sizeof r->policy, "%s",
           s->policy_fn             ? "custom"
           : s->guard.asked.learned ? s->guard.asked.name
                                    : s->options.policy.policy);
  snprintf(r->version, sizeof r->version, "%s", ht_version());
  if (!op) return; /* refused: nothing was chosen */
  r->share_exact_16 = s->facts.share_exact_16;
  r->share_exact_f32 = s->facts.share_exact_32;
  r->time_ordering_s = op->time_ordering_s;
  r->bytes_matrix = op->bytes;
  if (op->backend->memory_most) r->bytes_device_peak = op->backend->memory_most(s->ctx);
  r->bytes_per_nonzero = op->nnz ? (double)op->bytes / (double)op->nnz : NAN;
  snprintf(r->policy_chosen, sizeof r->policy_chosen, "%s", s->why);
  snprintf(r->precond, sizeof r->precond, "%s%s%s", s->precond->name, s->precond->note[0] ? ": " : "", s->precond->note);
  snprintf(r->engine, sizeof r->engine, "%s", s->loop->name);
  snprintf(r->ordering, sizeof r->ordering, "%s", op->ordering ? op->ordering : "natural");
  snprintf(r->format, sizeof r->format, "%s", op->format);
  snprintf(r->backend, sizeof r->backend, "%s", op->backend->name);
  snprintf(r->backend_chosen, sizeof r->backend_chosen, "%s", s->why_backend);
  snprintf(r->isa, sizeof r->isa, "%s", op->backend->isa());
}

static ht_status solve_column(ht_solver *s, const double *b, double *x, ht_report *r) {
  describe(s, r);
  if (s->refused != HT_CONVERGED) {
    r->outcome = s->refused;
    r->iterations = 0;
    r->time_solve_s = 0;
    snprintf(r->detail, sizeof r->detail, "%s", s->refusal);
    return HT_OK;
  }
  int64_t asked = s->options.policy.policy_interval, own = s->guard.asked.interval;
  s->guard.policy_interval = asked ? asked : own ? own : HT_USUAL_INTERVAL;
  s->guard.asked.theta = s->options.policy.budget_theta;
  s->guard.asked.eta = s->options.policy.budget_eta;
  s->guard.progress = s->progress;
  s->guard.progress_user = s->progress_user;
  HT_TRY(s->ctx, ht_guard_solve(&s->guard, b, x, r));
  return HT_OK;
}

/* Numbers that a column does not have add nothing; where one is unknown, so is the largest. */
static void add_count(int64_t *sum, int64_t part) {
  if (part >= 0) *sum = (*sum >= 0 ? *sum : 0) + part;
}

static void add_real(double *sum, double part) {
  if (!isnan(part)) *sum = (isnan(*sum) ? 0 : *sum) + part;
}

static void keep_largest(double *largest, double other) {
  if (!isnan(*largest) && !(other <= *largest)) *largest = other;
}

static void add_column(ht_report *all, const ht_report *one) {
  double *sums[] = {&all->time_solve_s, &all->time_certificate_s, &all->bytes_f64, &all->bytes_f32, &all->bytes_16, &all->bytes_vectors};
  const double parts[] = {one->time_solve_s, one->time_certificate_s, one->bytes_f64, one->bytes_f32, one->bytes_16, one->bytes_vectors};
  for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) add_real(sums[k], parts[k]);
  add_count(&all->iterations, one->iterations);
  add_count(&all->products, one->products);
  add_count(&all->replacements, one->replacements);
  add_count(&all->restores, one->restores);
  add_count(&all->left_to_f64, one->left_to_f64);
  all->columns++;
  if (one->outcome != HT_CONVERGED && all->outcome == HT_CONVERGED) {
    all->outcome = one->outcome;
    memcpy(all->detail, one->detail, sizeof all->detail);
  }
  keep_largest(&all->residual_true, one->residual_true);
  keep_largest(&all->residual_recursive, one->residual_recursive);
  keep_largest(&all->backward_error, one->backward_error);
}

/* Reports that say that nothing has been solved yet: what is left of them when a column fails. */
static ht_status reset_reports(ht_solver *s, int columns) {
  s->columns = 0;
  if (columns > s->report_capacity) {
    ht_release(s->ctx, s->column_reports);
    s->report_capacity = 0;
    HT_TRY(s->ctx, ht_allocate(s->ctx, columns, sizeof(ht_report), &s->column_reports));
    s->report_capacity = columns;
  }
  for (int k = 0; k < columns; k++) ht_report_clear(&s->column_reports[k]);
  s->columns = columns;
  return HT_OK;
}

ht_status ht_solver_solve(ht_solver *s, int columns, const double *b, double *x, ht_report *report) {
  HT_NEED(NULL, s);
  HT_CHECK(s->ctx, columns > 0 && b && x, HT_BAD_ARGUMENT,
           "solve needs at least one right-hand side and two arrays, and was given %d columns", columns);
  if (!s->prepared || (s->matrix && s->version != s->matrix->version)) HT_TRY(s->ctx, ht_solver_prepare(s));
  HT_TRY(s->ctx, reset_reports(s, columns));
  int threads = ht_solver_limit_threads(s);
  ht_status status = HT_OK;
  for (int k = 0; k < columns && status == HT_OK; k++)
    status = solve_column(s, b + (int64_t)k * s->n, x + (int64_t)k * s->n, &s->column_reports[k]);
  s->ctx->threads = threads;
  if (status != HT_OK) return ht_trace(s->ctx, status, __func__, __FILE__, __LINE__);
  if (!report) return HT_OK;
  *report = s->column_reports[0];
  for (int k = 1; k < columns; k++) add_column(report, &s->column_reports[k]);
  return HT_OK;
}

const ht_report *ht_solver_column_report(const ht_solver *s, int column) {
  return s && column >= 0 && column < s->columns ? &s->column_reports[column] : NULL;
}

int64_t ht_solver_history(const ht_solver *s, const double **history) {
  if (history) *history = NULL;
  if (!s || !history || !s->loop || !s->columns || s->column_reports[s->columns - 1].iterations < 0) return 0; /* refused, or not solved */
  const ht_cg_state *state = &s->loop->state;
  *history = state->history;
  return state->iteration + 1 < state->capacity ? state->iteration + 1 : state->capacity;
}

const ht_solve_trace *ht_solver_trace(const ht_solver *s) {
  if (!s || !s->guard.recorder || !s->columns || s->column_reports[s->columns - 1].iterations < 0) return NULL;
  return ht_recorder_view(s->guard.recorder);
}
