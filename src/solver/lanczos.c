/* The Lanczos process without reorthogonalisation: three vectors, whatever the number of steps. Rounding makes copies of
 * converged Ritz values and delays others, but keeps them within the spectrum (Paige 1980), which is all that is asked here.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solver/lanczos.h"
#include <float.h>
#include <math.h>
#include "base/number.h"
#include "base/random.h"
#include "solver/tridiagonal.h"

/* Largest |w_i a_ij w_j|, as the exponent of a power of two. */
static int exponent_of(const ht_csr_view *a, const double *weight) {
  double largest = 0;
  int exponent = 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      double w = weight ? weight[i] * weight[a->columns[k]] : 1;
      largest = fmax(largest, fabs(a->values[k]) * w);
    }
  if (largest > 0 && isfinite(largest)) frexp(largest, &exponent);
  return exponent;
}

typedef struct process {
  ht_context *ctx;
  const ht_backend *cpu;
  const ht_csr_view *a;
  const double *weight;
  double scale;
  double *v, *previous, *w, *t; /* t: v, weighted and scaled */
} process;

/* w = 2^-e W A W v */
static void multiply(const process *p) {
  int64_t n = p->a->n;
  for (int64_t i = 0; i < n; i++) p->t[i] = p->v[i] * p->scale * (p->weight ? p->weight[i] : 1);
  p->cpu->csr_multiply(p->ctx, p->a, p->t, p->w);
  if (!p->weight) return;
  p->cpu->scale_by(p->ctx, n, p->weight, p->w, p->t);
  for (int64_t i = 0; i < n; i++) p->w[i] = p->t[i];
}

static ht_status iterate(const process *p, int steps, ht_lanczos *result) {
  double alpha[HT_LANCZOS_MOST], beta[HT_LANCZOS_MOST + 1], size = 0;
  int64_t n = p->a->n;
  int k = 0;
  beta[0] = 0;
  for (int64_t i = 0; i < n; i++) p->v[i] = ht_random_uniform(0, (uint64_t)i), p->previous[i] = 0;
  double norm = sqrt(p->cpu->dot(p->ctx, n, p->v, p->v));
  for (int64_t i = 0; i < n; i++) p->v[i] /= norm;
  for (; k < steps && k < n; k++) {
    if (ht_stop_requested(p->ctx))
      HT_FAIL(p->ctx, HT_INTERRUPTED, "the estimate of the eigenvalues was interrupted after %s", ht_number_of(k, "step").text);
    multiply(p);
    p->cpu->axpy(p->ctx, n, -beta[k], p->previous, p->w);
    alpha[k] = p->cpu->dot(p->ctx, n, p->w, p->v);
    p->cpu->axpy(p->ctx, n, -alpha[k], p->v, p->w);
    beta[k + 1] = sqrt(p->cpu->dot(p->ctx, n, p->w, p->w));
    size = fmax(size, fabs(alpha[k]) + beta[k] + beta[k + 1]);
    if (!isfinite(size) || beta[k + 1] <= 4 * DBL_EPSILON * size) { /* an invariant subspace, up to rounding */
      k += isfinite(size) != 0;
      break;
    }
    for (int64_t i = 0; i < n; i++) {
      p->previous[i] = p->v[i];
      p->v[i] = p->w[i] / beta[k + 1];
    }
  }
  result->steps = k;
  ht_tridiagonal_extremes(k, alpha, beta + 1, 0, &result->smallest, &result->largest);
  return HT_OK;
}

ht_status ht_lanczos_extremes(ht_context *ctx, const ht_csr_view *a, const double *weight, int steps, ht_lanczos *result) {
  process p = {.ctx = ctx, .a = a, .weight = weight};
  double *vectors;
  int exponent = exponent_of(a, weight);
  *result = (ht_lanczos){0, NAN, NAN};
  if (a->n == 0 || steps < 1) return HT_OK;
  HT_TRY(ctx, ht_backend_find(ctx, "cpu", &p.cpu));
  HT_CHECK(ctx, a->n <= INT64_MAX / 4, HT_NO_MEMORY, "%lld rows are too many", (long long)a->n);
  HT_TRY(ctx, ht_allocate(ctx, 4 * a->n, sizeof *vectors, &vectors));
  p.v = vectors;
  p.previous = vectors + a->n;
  p.w = vectors + 2 * a->n;
  p.t = vectors + 3 * a->n;
  p.scale = ldexp(1, -exponent);
  ht_status status = iterate(&p, steps < HT_LANCZOS_MOST ? steps : HT_LANCZOS_MOST, result);
  result->smallest = ldexp(result->smallest, exponent);
  result->largest = ldexp(result->largest, exponent);
  ht_release(ctx, vectors);
  return status == HT_OK ? HT_OK : ht_trace(ctx, status, __func__, __FILE__, __LINE__);
}
