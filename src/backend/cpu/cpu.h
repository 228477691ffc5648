/* Functions of the CPU backend, one file each kind. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_CPU_H
#define HT_BACKEND_CPU_CPU_H
#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/split.h"

/* memory.c */
ht_status ht_cpu_open(ht_context *ctx, const char *device);
ht_status ht_cpu_failed(ht_context *ctx);
ht_status ht_cpu_memory_create(ht_context *ctx, int64_t bytes, void *memory);
ht_status ht_cpu_transfer(ht_context *ctx, int64_t bytes, const void *from, void *to);
int ht_cpu_reaches(ht_context *ctx, const void *memory);
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
void ht_cpu_copy(ht_context *ctx, int64_t n, const double *x, double *y);
void ht_cpu_shift(ht_context *ctx, int64_t n, int exponent, const double *x, double *y);
double ht_cpu_norm_inf(ht_context *ctx, int64_t n, const double *x);
void ht_cpu_reduce(ht_context *ctx, int64_t n, int count, ht_reduction *reductions);
/* cache.c */
int64_t ht_cpu_cache_bytes(void);
/* cg.c */
ht_status ht_cpu_cg_prepare(ht_context *ctx, const ht_split_view *a, ht_cg_plan **plan);
ht_cg_event ht_cpu_cg_run(ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state);
void ht_cpu_cg_release(ht_cg_plan *plan);

#endif
