/* Functions of the CPU backend, one file each kind. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_CPU_H
#define HT_BACKEND_CPU_CPU_H
#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/split.h"

/* csr.c */
void ht_cpu_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y);
void ht_cpu_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r);
/* tilecsc.c */
void ht_cpu_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y);
/* vector.c */
double ht_cpu_dot(ht_context *ctx, int64_t n, const double *x, const double *y);
void ht_cpu_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y);
void ht_cpu_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y);
void ht_cpu_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y);
/* cache.c */
int64_t ht_cpu_cache_bytes(void);
/* cg.c */
ht_status ht_cpu_cg_prepare(ht_context *ctx, const ht_split_view *a, ht_cg_plan **plan);
ht_cg_event ht_cpu_cg_run(ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state);
void ht_cpu_cg_release(ht_cg_plan *plan);

#endif
