/* The certificate. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/certificate.h"
#include <math.h>

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

static double matrix_norm_inf(const ht_matrix *a) {
  double largest = 0;
  int threads = a->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : largest) if (a->nnz > 20000)
  for (int64_t i = 0; i < a->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += fabs(a->values[k]);
    largest = fmax(largest, sum);
  }
  return largest;
}

/* A backend that works in the host's memory reads the matrix itself. Else the operator's product serves, and only a matrix that was
 * averaged for it is copied. */
ht_status ht_certifier_init(ht_certifier *c, ht_context *ctx, const ht_matrix *matrix, int averaged, ht_operator *op) {
  *c = (ht_certifier){.ctx = ctx, .op = op, .backend = op->backend, .norm_inf = matrix ? matrix_norm_inf(matrix) : NAN};
  HT_TRY(ctx, c->backend->memory_create(ctx, op->n * (int64_t)sizeof(double), &c->work));
  if (!matrix) return HT_OK;
  c->csr = op->csr;
  if (!averaged && !ht_backend_is_host(ctx, c->backend)) return HT_OK;
  const ht_csr_view view = ht_matrix_view(matrix);
  c->csr = &c->own.view;
  HT_TRY(ctx, ht_csr_place(ctx, c->backend, &view, &c->own));
  return HT_OK;
}

void ht_certifier_release(ht_certifier *c) {
  if (!c->backend) return;
  ht_placed_csr_release(c->ctx, c->backend, &c->own);
  c->backend->memory_release(c->ctx, c->work);
  *c = (ht_certifier){.ctx = NULL};
}

ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, int count, ht_reduction *more, double *norm) {
  double start = ht_seconds();
  ht_reduction all[HT_REDUCTIONS_MOST] = {{HT_DOT, r, r, 0}};
  if (c->csr) {
    c->backend->csr_residual(c->ctx, c->csr, x, b, r);
  } else {
    HT_TRY(c->ctx, c->op->apply(c->op, NULL, x, r, NULL));
    c->backend->xpby(c->ctx, c->op->n, b, -1, r);
  }
  for (int k = 0; k < count; k++) all[k + 1] = more[k];
  c->backend->reduce(c->ctx, c->op->n, count + 1, all);
  for (int k = 0; k < count; k++) more[k].result = all[k + 1].result;
  *norm = ht_norm2_of_square(c, r, all[0].result);
  c->products++;
  c->time_s += ht_seconds() - start;
  HT_TRY(c->ctx, c->backend->failed(c->ctx));
  return HT_OK;
}

double ht_certificate_bytes(const ht_certifier *c) {
  return c->csr ? (double)c->csr->nnz * (sizeof(double) + sizeof(int32_t)) + (double)c->csr->n * sizeof(int64_t) : (double)c->op->bytes;
}

double ht_backward_error(const ht_certifier *c, double r_norm_inf, double x_norm_inf, double b_norm_inf) {
  double scale = c->norm_inf * x_norm_inf + b_norm_inf;
  return scale > 0 ? r_norm_inf / scale : 0;
}
