/* The certificate: FP64 residuals of the original matrix. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_CERTIFICATE_H
#define HT_SOLVER_CERTIFICATE_H
#include "op/operator.h"

typedef struct ht_certifier {
  ht_context *ctx;
  const ht_matrix *matrix; /* as given, not averaged; NULL for the caller's operator */
  ht_operator *op;
  const ht_backend *backend;
  double norm_inf; /* of the matrix, NaN when not known */
  int64_t products;
  double time_s;
} ht_certifier;

void ht_certifier_init(ht_certifier *c, ht_context *ctx, const ht_matrix *matrix, ht_operator *op);
/* r = b - A x, and its 2-norm. */
ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, double *norm);
/* Matrix bytes that one residual reads. */
double ht_certificate_bytes(const ht_certifier *c);
/* ||r||_inf / (||A||_inf ||x||_inf + ||b||_inf): the normwise backward error (Rigal and Gaches 1967). */
double ht_backward_error(const ht_certifier *c, const double *x, const double *b, const double *r);
/* The 2-norm, without overflow or underflow for any finite values. */
double ht_norm2(ht_context *ctx, const ht_backend *backend, int64_t n, const double *x);
double ht_norm_inf(int64_t n, const double *x);

#endif
