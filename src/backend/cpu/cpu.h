/* Functions of the CPU backend, one file each kind. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_CPU_H
#define HT_BACKEND_CPU_CPU_H
#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/split.h"

/* csr.c */
void ht_cpu_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y);
void ht_cpu_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r);
/* vector.c */
double ht_cpu_dot(ht_context *ctx, int64_t n, const double *x, const double *y);
void ht_cpu_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y);
void ht_cpu_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y);
void ht_cpu_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y);

#endif
