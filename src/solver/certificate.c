/* The certificate. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/certificate.h"
#include <float.h>
#include <math.h>
#include "solver/residual.h"

/* Rounding that is within this share of what a residual is measured by leaves its norm as it is. */
static const double SMALL = 0.1;

double ht_norm2_of_square(const ht_certifier *c, const double *x, double square) {
  int64_t n = c->op->n;
  int exponent;
  if (square > HT_SQUARE_LEAST && square < HT_SQUARE_MOST) return sqrt(square);
  double largest = c->backend->norm_inf(c->ctx, n, x);
  if (!(largest > 0) || isinf(largest)) return largest;
  frexp(largest, &exponent);
  c->backend->shift(c->ctx, n, -exponent, x, c->work);
  return ldexp(sqrt(c->backend->dot(c->ctx, n, c->work, c->work)), exponent);
}

double ht_norm2(const ht_certifier *c, const double *x) { return ht_norm2_of_square(c, x, c->backend->dot(c->ctx, c->op->n, x, x)); }

/* A backend that works in the host's memory reads the matrix itself. Else the operator's product serves, and only a matrix that was
 * averaged for it is copied. */
ht_status ht_certifier_init(ht_certifier *c, ht_context *ctx, const ht_matrix *matrix, int averaged, ht_operator *op) {
  *c =
      (ht_certifier){.ctx = ctx, .op = op, .backend = op->backend, .matrix = matrix, .norm_inf = matrix ? ht_matrix_norm_inf(matrix) : NAN};
  HT_TRY(ctx, c->backend->memory_create(ctx, op->n * (int64_t)sizeof(double), &c->work));
  if (!matrix) return HT_OK;
  int is_host = ht_backend_is_host(ctx, c->backend);
  c->csr = op->csr;
  if (!is_host && (averaged || !op->store)) HT_TRY(ctx, ht_allocate(ctx, 3 * op->n, sizeof(double), &c->host));
  if (!averaged && !is_host) return HT_OK;
  const ht_csr_view view = ht_matrix_view(matrix);
  c->csr = &c->own.view;
  HT_TRY(ctx, ht_csr_place(ctx, c->backend, &view, &c->own));
  return HT_OK;
}

void ht_certifier_release(ht_certifier *c) {
  if (!c->backend) return;
  ht_placed_csr_release(c->ctx, c->backend, &c->own);
  c->backend->memory_release(c->ctx, c->work);
  ht_release(c->ctx, c->host);
  *c = (ht_certifier){.ctx = NULL};
}

static ht_status reduce(ht_certifier *c, double *r, int count, ht_reduction *more, double *norm) {
  ht_reduction all[HT_REDUCTIONS_MOST] = {{HT_DOT, r, r, 0}};
  for (int k = 0; k < count; k++) all[k + 1] = more[k];
  c->backend->reduce(c->ctx, c->op->n, count + 1, all);
  for (int k = 0; k < count; k++) more[k].result = all[k + 1].result;
  *norm = ht_norm2_of_square(c, r, all[0].result);
  c->products++;
  HT_TRY(c->ctx, c->backend->failed(c->ctx));
  return HT_OK;
}

/* A store's residuals are in twice the precision. */
static int uses_store(const ht_certifier *c) { return c->op->store && !c->csr; }

static ht_status residual(ht_certifier *c, const double *x, const double *b, double *r) {
  if (c->csr) {
    c->backend->csr_residual(c->ctx, c->csr, x, b, r);
  } else if (uses_store(c)) {
    c->backend->store_residual(c->op->store, x, b, r);
  } else {
    HT_TRY(c->ctx, c->op->apply(c->op, NULL, x, r, NULL));
    c->backend->xpby(c->ctx, c->op->n, b, -1, r);
  }
  return HT_OK;
}

/* The rounding of b - A x in FP64 is about || |A| |x| || eps, at most ||A||_inf ||x|| eps, times what the length of a row adds. Nearly
 * all residuals are settled by ||x||_inf, which a claim brings along. */
static int rounding_matters(const ht_certifier *c, const double *x, int count, const ht_reduction *more, double measure) {
  double most = SMALL * measure / (4 * DBL_EPSILON * c->norm_inf);
  if (!c->matrix || c->norm_inf == 0 || uses_store(c)) return 0;
  for (int k = 0; k < count; k++)
    if (more[k].kind == HT_NORM_INF && more[k].x == x && more[k].result * sqrt((double)c->op->n) <= most) return 0;
  return !(ht_norm2(c, x) <= most);
}

/* On the host, for every backend: it is rare where the matrix is not a store's. */
static ht_status residual_closely(ht_certifier *c, const double *x, const double *b, double *r) {
  int64_t n = c->op->n, bytes = n * (int64_t)sizeof(double);
  const ht_csr_view a = ht_matrix_view(c->matrix);
  if (!c->host) {
    ht_residual_doubled(c->ctx, &a, x, b, r);
    return HT_OK;
  }
  HT_TRY(c->ctx, c->backend->download(c->ctx, bytes, x, c->host));
  HT_TRY(c->ctx, c->backend->download(c->ctx, bytes, b, c->host + n));
  ht_residual_doubled(c->ctx, &a, c->host, c->host + n, c->host + 2 * n);
  HT_TRY(c->ctx, c->backend->upload(c->ctx, bytes, c->host + 2 * n, r));
  return HT_OK;
}

ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, int count, ht_reduction *more, double *norm) {
  double start = ht_seconds();
  HT_TRY(c->ctx, residual(c, x, b, r));
  HT_TRY(c->ctx, reduce(c, r, count, more, norm));
  if (*norm <= c->goal && rounding_matters(c, x, count, more, c->goal)) {
    HT_TRY(c->ctx, residual_closely(c, x, b, r));
    HT_TRY(c->ctx, reduce(c, r, count, more, norm));
  }
  c->time_s += ht_seconds() - start;
  return HT_OK;
}

ht_status ht_certify_closely(ht_certifier *c, const double *x, const double *b, double *r, double *norm) {
  double start = ht_seconds();
  HT_TRY(c->ctx, residual(c, x, b, r));
  HT_TRY(c->ctx, reduce(c, r, 0, NULL, norm));
  if (isfinite(*norm) && rounding_matters(c, x, 0, NULL, *norm)) {
    HT_TRY(c->ctx, residual_closely(c, x, b, r));
    HT_TRY(c->ctx, reduce(c, r, 0, NULL, norm));
  }
  c->time_s += ht_seconds() - start;
  return HT_OK;
}

double ht_certificate_bytes(const ht_certifier *c) {
  return c->csr ? (double)c->csr->nnz * (sizeof(double) + sizeof(int32_t)) + (double)c->csr->n * sizeof(int64_t) : (double)c->op->bytes;
}

double ht_backward_error(const ht_certifier *c, double r_norm_inf, double x_norm_inf, double b_norm_inf) {
  double scale = c->norm_inf * x_norm_inf + b_norm_inf;
  return isfinite(scale) && scale > 0 ? r_norm_inf / scale : NAN;
}
