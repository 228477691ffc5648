/* The certificate: FP64 residuals of the original matrix. Vectors lie in the backend's memory. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_CERTIFICATE_H
#define HT_SOLVER_CERTIFICATE_H
#include "op/operator.h"
#include "op/placed.h"

#define HT_SQUARE_LEAST 1e-280 /* sums of squares within these have lost nothing to the ends of the range */
#define HT_SQUARE_MOST 1e300

typedef struct ht_certifier {
  ht_context *ctx;
  ht_operator *op;
  const ht_backend *backend;
  const ht_csr_view *csr;  /* the matrix as given, not averaged; NULL: the operator holds it to the bit, or is the caller's */
  ht_placed_csr own;       /* where `csr` is no one else's */
  double *work;            /* n entries, for norms at the ends of the range */
  const ht_matrix *matrix; /* as given, in the host's memory; NULL for the caller's operator */
  double *host;            /* 3n entries, where the host computes residuals of vectors that it cannot touch; else NULL */
  double norm_inf;         /* of the matrix, NaN when not known */
  double goal;             /* a residual that is not above it grants "converged" */
  int64_t products;
  double time_s;
} ht_certifier;

/* matrix: as given, NULL for the caller's operator. `averaged`: the operator was made of other values. The certifier is released on
 * error too. */
ht_status ht_certifier_init(ht_certifier *c, ht_context *ctx, const ht_matrix *matrix, int averaged, ht_operator *op);
void ht_certifier_release(ht_certifier *c); /* one that is zeroed is allowed */
/* r = b - A x, and its 2-norm. `more`: up to HT_REDUCTIONS_MOST - 1 reductions, `count` of them, that are taken along once r is there.
 * A norm that meets the goal is not owed to rounding: where the rounding of the products could be what meets it, r is computed again in
 * twice the precision. Nothing is known of the rounding inside a caller's operator: what it returns is taken for A x. */
ht_status ht_certify(ht_certifier *c, const double *x, const double *b, double *r, int count, ht_reduction *more, double *norm);
/* The same for a residual that is to be told: rounding must be small against the norm itself. */
ht_status ht_certify_closely(ht_certifier *c, const double *x, const double *b, double *r, double *norm);
/* Matrix bytes that one residual reads. */
double ht_certificate_bytes(const ht_certifier *c);
/* ||r||_inf / (||A||_inf ||x||_inf + ||b||_inf): the normwise backward error (Rigal and Gaches 1967); NaN where ||A||_inf is
 * not known or not finite. */
double ht_backward_error(const ht_certifier *c, double r_norm_inf, double x_norm_inf, double b_norm_inf);
/* The 2-norm, without overflow or underflow for any finite values. */
double ht_norm2(const ht_certifier *c, const double *x);
/* The same where x'x is known. */
double ht_norm2_of_square(const ht_certifier *c, const double *x, double square);

#endif
