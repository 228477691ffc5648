/* The certificate. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/certificate.h"
#include <math.h>

double ht_norm2(const ht_certifier *c, const double *x) {
  int64_t n = c->op->n;
  int exponent;
  double square = c->backend->dot(c->ctx, n, x, x);
  if (square > 1e-280 && square < 1e300) return sqrt(square);
  double largest = c->backend->norm_inf(c->ctx, n, x);
  if (!(largest > 0) || isinf(largest)) return largest;
  frexp(largest, &exponent);
  c->backend->shift(c->ctx, n, -exponent, x, c->work);
  return ldexp(sqrt(c->backend->dot(c->ctx, n, c->work, c->work)), exponent);
}

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

ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, double *norm) {
  double start = ht_seconds();
  if (c->csr) {
    c->backend->csr_residual(c->ctx, c->csr, x, b, r);
  } else {
    HT_TRY(c->ctx, c->op->apply(c->op, NULL, x, r, NULL));
    c->backend->xpby(c->ctx, c->op->n, b, -1, r);
  }
  *norm = ht_norm2(c, r);
  c->products++;
  c->time_s += ht_seconds() - start;
  HT_TRY(c->ctx, c->backend->failed(c->ctx));
  return HT_OK;
}

double ht_certificate_bytes(const ht_certifier *c) {
  return c->csr ? (double)c->csr->nnz * (sizeof(double) + sizeof(int32_t)) + (double)c->csr->n * sizeof(int64_t) : (double)c->op->bytes;
}

double ht_backward_error(const ht_certifier *c, const double *x, const double *b, const double *r) {
  int64_t n = c->op->n;
  const ht_backend *v = c->backend;
  double scale = c->norm_inf * v->norm_inf(c->ctx, n, x) + v->norm_inf(c->ctx, n, b);
  return scale > 0 ? v->norm_inf(c->ctx, n, r) / scale : 0;
}
