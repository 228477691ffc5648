/* Block Jacobi: M holds the diagonal blocks of A, each factored by dense Cholesky. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "data/diagonal.h"
#include "precond/precond.h"

/* Enough to hide a small coupling, small enough that the factors stay below the matrix's size. */
enum { DEFAULT_BLOCK = 8, PARALLEL_FROM = 20000 };

typedef struct {
  ht_precond base;
  int64_t block, blocks;
  double *factors; /* block x block each, row-major lower triangle, reciprocals on the diagonal */
} block_jacobi;

static int64_t rows_of(const block_jacobi *b, int64_t k) {
  int64_t left = b->base.n - k * b->block;
  return left < b->block ? left : b->block;
}

/* Forward and backward substitution in z. Row i of `l` starts at l + i*ld. */
static void solve_block(const double *l, int64_t ld, int64_t rows, const double *r, double *z) {
  for (int64_t i = 0; i < rows; i++) {
    double sum = r[i];
    for (int64_t j = 0; j < i; j++) sum -= l[i * ld + j] * z[j];
    z[i] = sum * l[i * ld + i];
  }
  for (int64_t i = rows - 1; i >= 0; i--) {
    z[i] *= l[i * ld + i];
    for (int64_t j = 0; j < i; j++) z[j] -= l[i * ld + j] * z[i];
  }
}

static void apply(ht_precond *self, const double *r, double *z) {
  const block_jacobi *b = (const block_jacobi *)self;
  int threads = self->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (self->n * b->block > PARALLEL_FROM)
  for (int64_t k = 0; k < b->blocks; k++)
    solve_block(b->factors + k * b->block * b->block, b->block, rows_of(b, k), r + k * b->block, z + k * b->block);
}

/* The lower triangle of block k of the matrix, the rest 0. */
static void gather_block(const block_jacobi *b, const ht_matrix *a, int64_t k, double *l) {
  int64_t first = k * b->block, rows = rows_of(b, k);
  memset(l, 0, (size_t)(b->block * b->block) * sizeof *l);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t e = a->row_start[first + i]; e < a->row_start[first + i + 1] && a->columns[e] <= first + i; e++)
      if (a->columns[e] >= first) l[i * b->block + a->columns[e] - first] = a->values[e];
}

/* In place. 0 when a pivot is not above what rounding leaves of zero, or its reciprocal overflows. */
static int cholesky(double *l, int64_t ld, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) {
    double diagonal = l[i * ld + i], pivot = diagonal;
    for (int64_t j = 0; j < i; j++) {
      double sum = l[i * ld + j];
      for (int64_t m = 0; m < j; m++) sum -= l[i * ld + m] * l[j * ld + m];
      sum *= l[j * ld + j];
      l[i * ld + j] = sum;
      pivot -= sum * sum;
    }
    if (!(pivot > (double)rows * 0x1p-53 * diagonal)) return 0;
    l[i * ld + i] = 1 / sqrt(pivot);
  }
  return 1;
}

/* Only the diagonal of the block, for blocks that are not positive definite. */
static void use_diagonal(const block_jacobi *b, const ht_matrix *a, int64_t k, double *l) {
  gather_block(b, a, k, l);
  for (int64_t i = 0; i < b->block; i++)
    for (int64_t j = 0; j < i; j++) l[i * b->block + j] = 0;
  for (int64_t i = 0; i < rows_of(b, k); i++) l[i * b->block + i] = 1 / sqrt(l[i * b->block + i]);
}

static ht_status update(ht_precond *self, const ht_matrix *matrix) {
  block_jacobi *b = (block_jacobi *)self;
  int threads = self->ctx->threads;
  int64_t fallbacks = 0;
  HT_TRY(self->ctx, ht_precond_check_update(self, matrix));
  HT_TRY(self->ctx, ht_matrix_check_diagonal(self->ctx, matrix));
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : fallbacks) if (self->n * b->block > PARALLEL_FROM)
  for (int64_t k = 0; k < b->blocks; k++) {
    double *l = b->factors + k * b->block * b->block;
    gather_block(b, matrix, k, l);
    if (cholesky(l, b->block, rows_of(b, k))) continue;
    use_diagonal(b, matrix, k, l);
    fallbacks++;
  }
  self->note[0] = 0;
  if (fallbacks)
    snprintf(self->note, sizeof self->note, "block-jacobi, %lld of %lld blocks not positive definite: their diagonal was used",
             (long long)fallbacks, (long long)b->blocks);
  return HT_OK;
}

static void destroy(ht_precond *self) {
  ht_release(self->ctx, ((block_jacobi *)self)->factors);
  ht_release(self->ctx, self);
}

int64_t ht_precond_block(const ht_precond_options *options, int64_t n, int unknowns_per_node) {
  int64_t block = options->precond_block ? options->precond_block : unknowns_per_node > 1 ? unknowns_per_node : DEFAULT_BLOCK;
  return block < n ? block : n;
}

void ht_block_jacobi_view(const ht_precond *precond, ht_engine_precond *view) {
  const block_jacobi *b = (const block_jacobi *)precond;
  *view = (ht_engine_precond){.block = b->block, .factors = b->factors};
}

ht_status ht_precond_create_block_jacobi(ht_context *ctx, const ht_backend *backend, const ht_precond_options *options,
                                         const ht_matrix *matrix, int unknowns_per_node, ht_precond **precond) {
  ht_status status;
  block_jacobi *self;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *self, &self));
  self->block = ht_precond_block(options, matrix->n, unknowns_per_node);
  self->blocks = (matrix->n + self->block - 1) / self->block;
  int64_t entries = self->blocks * self->block * self->block;
  self->base = (ht_precond){.ctx = ctx,
                            .backend = backend,
                            .name = "block-jacobi",
                            .n = matrix->n,
                            .nnz = matrix->nnz,
                            .bytes = entries * 8,
                            .apply = apply,
                            .update = update,
                            .destroy = destroy};
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, entries, sizeof *self->factors, &self->factors), fail);
  HT_TRY_GOTO(ctx, status, update(&self->base, matrix), fail);
  *precond = &self->base;
  return HT_OK;
fail:
  destroy(&self->base);
  return status;
}
