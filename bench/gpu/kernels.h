/* What the benchmark launches itself: the scalars of the graph peer, Jacobi, and the bandwidth measurement.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H
#include <cuda_runtime_api.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The scalars of one CG run, in device memory. */
typedef struct cg_scalars {
  double rz, pap, alpha, minus_alpha, rz_new, rr, beta; /* rz = r'z, rr = r'r */
  int64_t count;                                        /* iterations done */
} cg_scalars;

/* alpha = rz / pap; 0 where that has no meaning, so that iterations after an exact solution change nothing. */
cudaError_t launch_alpha(cudaStream_t stream, cg_scalars *s);
/* beta = rz_new / rz, rz = rz_new, and history[count++] = rr. With rr_is_rz, rr is taken from rz_new first (no preconditioner). */
cudaError_t launch_beta(cudaStream_t stream, cg_scalars *s, double *history, int64_t capacity, int rr_is_rz);
/* z = d r, entry by entry. */
cudaError_t launch_scale(cudaStream_t stream, int64_t n, const double *d, const double *r, double *z);

/* Bytes a second, medians of five: a reading sum over `bytes`, and a copy of half of them onto the other half. */
cudaError_t measure_bandwidth(int64_t bytes, double *read, double *copy);

#ifdef __cplusplus
}
#endif
#endif
