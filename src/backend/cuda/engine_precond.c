/* M^-1 for the engines, of the scaled matrix and in FP32: a number a row for Jacobi, inverse blocks for block-Jacobi.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/engine.h"
#include <math.h>

enum { PARALLEL_FROM = 20000 };

static ht_status hand_over(ht_store *store, int64_t count, float *host, const float **device) {
  int64_t bytes = count * (int64_t)sizeof *host;
  ht_status status = ht_cuda_allocate(store->cuda, bytes, device);
  if (status == HT_OK) status = ht_cuda_send(store->cuda, bytes, host, (void *)(uintptr_t)*device);
  ht_release(store->ctx, host);
  return status;
}

ht_status ht_cuda_engine_invert(ht_engine *e) {
  int64_t padded = e->padded;
  return ht_cuda_launch(e->cuda, HT_KERNEL_store_invert, ht_cuda_over(padded),
                        HT_ARGS(&padded, &e->store->diagonal, &e->v.inverse_diagonal));
}

/* w = L^-1 S, which is the inverse of the scaled block's own factor: lower triangle, row-major with leading dimension `block`. */
static void invert_factor(const double *l, int64_t block, int64_t rows, const int16_t *exponent, double *w) {
  for (int64_t j = 0; j < rows; j++) {
    w[j * block + j] = ldexp(l[j * block + j], exponent[j]); /* the factor's diagonal is reciprocal */
    for (int64_t i = j + 1; i < rows; i++) {
      double sum = 0;
      for (int64_t m = j; m < i; m++) sum -= l[i * block + m] * w[m * block + j];
      w[i * block + j] = sum * l[i * block + i];
    }
  }
}

/* w'w rounded to FP32. What rounding may change in a row is made up for on its diagonal, so that the rounded block is positive definite
 * however ill-conditioned the exact one is. out: the block's first row; entry j of a row lies j column blocks of floats behind it. */
static void write_inverse(const double *w, int64_t block, int64_t rows, float *out) {
  for (int64_t i = 0; i < rows; i++) {
    double size = 0, diagonal = 0;
    for (int64_t j = 0; j < rows; j++) {
      double sum = 0;
      for (int64_t m = i > j ? i : j; m < rows; m++) sum += w[m * block + i] * w[m * block + j];
      out[j * HT_COLUMN_BLOCK + i] = (float)sum;
      size += fabs(sum);
      if (i == j) diagonal = sum;
    }
    out[i * HT_COLUMN_BLOCK + i] = (float)(diagonal + 2 * 0x1p-24 * size);
  }
}

static ht_status make_blocks(ht_store *store, const ht_engine_precond *precond, ht_cuda_cg_vectors *v) {
  int64_t n = store->view.n, block = store->block, count = store->view.padded * block;
  int threads = store->ctx->threads;
  float *inverse;
  HT_CHECK(store->ctx, precond->block == block && block <= HT_COLUMN_BLOCK, HT_INTERNAL,
           "the store was made for blocks of %lld unknowns, and the preconditioner has blocks of %lld", (long long)block,
           (long long)precond->block);
  HT_TRY(store->ctx, ht_cuda_store_fetch_exponents(store));
  HT_TRY(store->ctx, ht_allocate_zeroed(store->ctx, count, sizeof *inverse, &inverse));
#pragma omp parallel for schedule(static) num_threads(threads) if (count > PARALLEL_FROM)
  for (int64_t first = 0; first < n; first += block) {
    double w[HT_COLUMN_BLOCK * HT_COLUMN_BLOCK];
    int64_t rows = n - first < block ? n - first : block, at = store->rows->position[first];
    invert_factor(precond->factors + first * block, block, rows, store->exponent + at, w);
    write_inverse(w, block, rows, inverse + at / HT_COLUMN_BLOCK * HT_COLUMN_BLOCK * block + at % HT_COLUMN_BLOCK);
  }
  v->block = (int32_t)block;
  return hand_over(store, count, inverse, &v->inverse_blocks);
}

ht_status ht_cuda_engine_precondition(ht_engine *e, const ht_engine_precond *precond) {
  if (precond->block) return make_blocks(e->store, precond, &e->v);
  if (!precond->diagonal) return HT_OK;
  HT_TRY(e->ctx, ht_cuda_allocate(e->cuda, e->padded * 4, &e->v.inverse_diagonal));
  return ht_cuda_engine_invert(e);
}
