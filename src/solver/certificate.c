/* The certificate. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/certificate.h"
#include <math.h>

double ht_norm_inf(int64_t n, const double *x) {
  double largest = 0;
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(x[i]) <= largest)) largest = fabs(x[i]); /* a NaN stays */
  return largest;
}

double ht_norm2(ht_context *ctx, const ht_backend *backend, int64_t n, const double *x) {
  double square = backend->dot(ctx, n, x, x);
  if (square > 1e-280 && square < 1e300) return sqrt(square);
  double largest = ht_norm_inf(n, x), sum = 0;
  if (!(largest > 0) || isinf(largest)) return largest;
  for (int64_t i = 0; i < n; i++) sum += (x[i] / largest) * (x[i] / largest);
  return largest * sqrt(sum);
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

void ht_certifier_init(ht_certifier *c, ht_context *ctx, const ht_matrix *matrix, ht_operator *op) {
  *c = (ht_certifier){.ctx = ctx, .matrix = matrix, .op = op, .backend = op->backend, .norm_inf = matrix ? matrix_norm_inf(matrix) : NAN};
}

ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, double *norm) {
  double start = ht_seconds();
  if (c->matrix) {
    ht_csr_view view = ht_matrix_view(c->matrix);
    c->backend->csr_residual(c->ctx, &view, x, b, r);
  } else {
    HT_TRY(c->ctx, c->op->apply(c->op, NULL, x, r, NULL));
    c->backend->xpby(c->ctx, c->op->n, b, -1, r);
  }
  *norm = ht_norm2(c->ctx, c->backend, c->op->n, r);
  c->products++;
  c->time_s += ht_seconds() - start;
  return HT_OK;
}

double ht_certificate_bytes(const ht_certifier *c) {
  return c->matrix ? (double)c->matrix->nnz * (sizeof(double) + sizeof(int32_t)) + (double)c->matrix->n * sizeof(int64_t)
                   : (double)c->op->bytes;
}

double ht_backward_error(const ht_certifier *c, const double *x, const double *b, const double *r) {
  int64_t n = c->op->n;
  double scale = c->norm_inf * ht_norm_inf(n, x) + ht_norm_inf(n, b);
  return scale > 0 ? ht_norm_inf(n, r) / scale : 0;
}
