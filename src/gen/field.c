/* Coefficient fields: constant, lognormal, jumping. SPDX-License-Identifier: BSD-3-Clause */
#include "gen/gen.h"
#include "gen/random.h"

enum { STREAM_CELL = 1 };

/* A lattice point as one counter. */
static uint64_t lattice_counter(const int64_t at[3]) {
  return (uint64_t)at[0] + ht_random_mix((uint64_t)at[1] + ht_random_mix((uint64_t)at[2]));
}

/* Between lattice points the normal values are interpolated linearly and divided by the 2-norm of the weights, which keeps
 * the standard deviation 1 everywhere. */
double ht_gen_noise(uint64_t seed, uint64_t stream, int64_t correlation, const int64_t at[3]) {
  if (correlation <= 1) return ht_gen_normal(seed, stream, lattice_counter(at));
  double t[3], sum = 0, squares = 0;
  int64_t base[3];
  for (int d = 0; d < 3; d++) {
    base[d] = at[d] / correlation;
    t[d] = (double)(at[d] % correlation) / (double)correlation;
  }
  for (int corner = 0; corner < 8; corner++) {
    int64_t point[3];
    double weight = 1;
    for (int d = 0; d < 3; d++) {
      int upper = corner >> d & 1;
      point[d] = base[d] + upper;
      weight *= upper ? t[d] : 1 - t[d];
    }
    if (weight == 0) continue;
    sum += weight * ht_gen_normal(seed, stream, lattice_counter(point));
    squares += weight * weight;
  }
  return sum / sqrt(squares);
}

/* Blocks of an eighth of each side unless a length is given. */
static double jumping(const ht_gen_field *field, const int64_t at[3]) {
  int64_t block[3];
  for (int d = 0; d < 3; d++) {
    int64_t length = field->correlation ? field->correlation : (field->n[d] + 7) / 8;
    block[d] = at[d] / length;
  }
  return ht_gen_bits(field->seed, STREAM_CELL, lattice_counter(block)) >> 63 ? field->contrast : 1;
}

double ht_gen_coefficient(const ht_gen_field *field, int64_t x, int64_t y, int64_t z) {
  int64_t at[3] = {x, y, z};
  if (field->coefficients == HT_GEN_LOGNORMAL) return exp(field->sigma * ht_gen_noise(field->seed, STREAM_CELL, field->correlation, at));
  if (field->coefficients == HT_GEN_JUMPS) return jumping(field, at);
  return 1;
}

ht_status ht_gen_coefficients(ht_context *ctx, const ht_gen_field *field, double **k) {
  int64_t cells = 0, nx = field->n[0], ny = field->n[1];
  HT_TRY(ctx, ht_gen_rows_of(ctx, nx, ny, field->n[2], &cells));
  HT_TRY(ctx, ht_allocate(ctx, cells, sizeof **k, k));
  double *out = *k;
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < cells; i++) out[i] = ht_gen_coefficient(field, i % nx, i / nx % ny, i / nx / ny);
  return HT_OK;
}
