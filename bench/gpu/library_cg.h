/* The peers: CG on cuSPARSE and cuBLAS, twice. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_LIBRARY_CG_H
#define BENCH_GPU_LIBRARY_CG_H
#include <stdint.h>

typedef struct library library;       /* handles, stream, workspace: one a process */
typedef struct library_cg library_cg; /* one matrix with its vectors on the device */

typedef struct library_run {
  int64_t iterations;
  int converged;
  double time_s;           /* the loop; of the graph form scaled from the iterations replayed to those needed */
  double us_per_iteration; /* of the graph form: replays alone */
  double residual_true;    /* ||b - A x|| / ||b||, outside the time */
} library_run;

/* All return 0, or -1 with the sentence in library_error(). */
const char *library_error(void);
int library_open(library **lib);
void library_close(library *lib);

/* Copy A (host CSR) and b (host) to the device and let cuSPARSE analyse A. jacobi: M = diag(A), else none. */
int library_cg_create(library *lib, int64_t n, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values,
                      const double *b, int jacobi, int64_t max_iterations, library_cg **cg);
void library_cg_destroy(library_cg *cg);
double library_cg_preprocess_s(const library_cg *cg); /* buffer, analysis and the first product */

/* Microseconds of one product alone, of many behind each other. */
int library_cg_product(library_cg *cg, double *us);
/* The CUDA sample's form: scalars read by the host, two dots an iteration (three with Jacobi). */
int library_cg_sample(library_cg *cg, double rtol, library_run *run);
/* The same calls with scalars on the device, `chunk` iterations captured in a graph that is replayed. */
int library_cg_graph(library_cg *cg, double rtol, library_run *run);
#endif
