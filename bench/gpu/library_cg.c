/* SPDX-License-Identifier: BSD-3-Clause */
#include "library_cg.h"
#include <cublas_v2.h>
#include <cusparse.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"
#include "kernels.h"

enum { CHUNK = 20, CHUNK_HUGE = 10, HUGE_NONZEROS = 20000000, WORKSPACE = 32 << 20 };

struct library {
  cudaStream_t stream;
  cublasHandle_t blas;
  cusparseHandle_t sparse;
  void *workspace; /* given to cuBLAS, so that a captured dot does not allocate */
};

struct library_cg {
  library *lib;
  int n, jacobi, chunk;
  int64_t max_iterations, capacity;
  int32_t *row_start, *columns;
  double *values, *diagonal;
  double *b, *x, *r, *p, *s, *z; /* z is r where there is no preconditioner */
  cusparseSpMatDescr_t A;
  cusparseDnVecDescr_t of_x, of_p, of_s;
  void *buffer;
  double norm_b, preprocess_s;
  cg_scalars *scalars;
  double *history; /* r'r after each iteration */
  double *last_rr; /* page-locked: what the graph's last node copies to the host */
  cudaGraphExec_t exec;
};

static char message[512];
const char *library_error(void) { return message; }

static int failed(const char *call, const char *why, int line) {
  snprintf(message, sizeof message, "library_cg.c:%d: %.300s failed: %.150s", line, call, why);
  return -1;
}
#define CUDA(call)                                                                                                                         \
  do {                                                                                                                                     \
    cudaError_t error_ = (call);                                                                                                           \
    if (error_ != cudaSuccess) return failed(#call, cudaGetErrorString(error_), __LINE__);                                                 \
  } while (0)
#define BLAS(call)                                                                                                                         \
  do {                                                                                                                                     \
    cublasStatus_t error_ = (call);                                                                                                        \
    if (error_ != CUBLAS_STATUS_SUCCESS) return failed(#call, cublasGetStatusString(error_), __LINE__);                                    \
  } while (0)
#define SPARSE(call)                                                                                                                       \
  do {                                                                                                                                     \
    cusparseStatus_t error_ = (call);                                                                                                      \
    if (error_ != CUSPARSE_STATUS_SUCCESS) return failed(#call, cusparseGetErrorString(error_), __LINE__);                                 \
  } while (0)
#define TRY(call)                                                                                                                          \
  do {                                                                                                                                     \
    if (call) return -1;                                                                                                                   \
  } while (0)

static int open_handles(library *lib) {
  CUDA(cudaStreamCreateWithFlags(&lib->stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc(&lib->workspace, WORKSPACE));
  BLAS(cublasCreate(&lib->blas));
  BLAS(cublasSetStream(lib->blas, lib->stream));
  BLAS(cublasSetWorkspace(lib->blas, lib->workspace, WORKSPACE)); /* after the stream, which takes a workspace away */
  SPARSE(cusparseCreate(&lib->sparse));
  SPARSE(cusparseSetStream(lib->sparse, lib->stream));
  return 0;
}

int library_open(library **lib) {
  *lib = calloc(1, sizeof **lib);
  if (!*lib) return failed("calloc", "memory is exhausted", __LINE__);
  if (open_handles(*lib)) {
    library_close(*lib);
    *lib = NULL;
    return -1;
  }
  return 0;
}

void library_close(library *lib) {
  if (!lib) return;
  if (lib->sparse) cusparseDestroy(lib->sparse);
  if (lib->blas) cublasDestroy(lib->blas);
  cudaFree(lib->workspace);
  if (lib->stream) cudaStreamDestroy(lib->stream);
  free(lib);
}

/* y = A x; alpha and beta are the host's constants, in the graph form too. */
static int product(library_cg *cg, cusparseDnVecDescr_t x) {
  const double one = 1, zero = 0;
  SPARSE(cusparseSpMV(cg->lib->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, cg->A, x, &zero, cg->of_s, CUDA_R_64F,
                      CUSPARSE_SPMV_CSR_ALG1, cg->buffer));
  return 0;
}

static int copy_vector(library_cg *cg, double *to, const double *from) {
  CUDA(cudaMemcpyAsync(to, from, (size_t)cg->n * sizeof *to, cudaMemcpyDeviceToDevice, cg->lib->stream));
  return 0;
}

/* ---- Set-up ---- */

static int upload_rows(library_cg *cg, const int64_t *row_start) {
  size_t bytes = ((size_t)cg->n + 1) * sizeof(int32_t);
  int32_t *narrow = malloc(bytes);
  if (!narrow) return failed("malloc", "memory is exhausted", __LINE__);
  for (int i = 0; i <= cg->n; i++) narrow[i] = (int32_t)row_start[i];
  cudaError_t error = cudaMalloc((void **)&cg->row_start, bytes);
  if (error == cudaSuccess) error = cudaMemcpy(cg->row_start, narrow, bytes, cudaMemcpyHostToDevice);
  free(narrow);
  CUDA(error);
  return 0;
}

static int upload_diagonal(library_cg *cg, const int64_t *row_start, const int32_t *columns, const double *values) {
  size_t bytes = (size_t)cg->n * sizeof(double);
  double *inverse = calloc((size_t)cg->n, sizeof *inverse);
  if (!inverse) return failed("calloc", "memory is exhausted", __LINE__);
  int bad = 0;
  for (int i = 0; i < cg->n; i++) {
    for (int64_t k = row_start[i]; k < row_start[i + 1]; k++)
      if (columns[k] == i) inverse[i] = values[k] > 0 ? 1 / values[k] : 0;
    if (!(inverse[i] > 0)) bad = 1;
  }
  cudaError_t error = bad ? cudaSuccess : cudaMalloc((void **)&cg->diagonal, bytes);
  if (!bad && error == cudaSuccess) error = cudaMemcpy(cg->diagonal, inverse, bytes, cudaMemcpyHostToDevice);
  free(inverse);
  if (bad) return failed("Jacobi", "a diagonal entry is not positive", __LINE__);
  CUDA(error);
  return 0;
}

static int upload(library_cg *cg, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values, const double *b) {
  size_t vector = (size_t)cg->n * sizeof(double);
  TRY(upload_rows(cg, row_start));
  if (cg->jacobi) TRY(upload_diagonal(cg, row_start, columns, values));
  CUDA(cudaMalloc((void **)&cg->columns, (size_t)nnz * sizeof *columns));
  CUDA(cudaMemcpy(cg->columns, columns, (size_t)nnz * sizeof *columns, cudaMemcpyHostToDevice));
  CUDA(cudaMalloc((void **)&cg->values, (size_t)nnz * sizeof *values));
  CUDA(cudaMemcpy(cg->values, values, (size_t)nnz * sizeof *values, cudaMemcpyHostToDevice));
  double **vectors[] = {&cg->b, &cg->x, &cg->r, &cg->p, &cg->s};
  for (int k = 0; k < 5; k++) CUDA(cudaMalloc((void **)vectors[k], vector));
  if (cg->jacobi) CUDA(cudaMalloc((void **)&cg->z, vector));
  CUDA(cudaMemcpy(cg->b, b, vector, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(cg->p, 0, vector));
  CUDA(cudaMalloc((void **)&cg->scalars, sizeof *cg->scalars));
  CUDA(cudaMemset(cg->scalars, 0, sizeof *cg->scalars));
  CUDA(cudaMalloc((void **)&cg->history, (size_t)cg->capacity * sizeof *cg->history));
  CUDA(cudaMallocHost((void **)&cg->last_rr, sizeof *cg->last_rr));
  CUDA(cudaDeviceSynchronize());
  return 0;
}

static int analyse(library_cg *cg, int64_t nnz) {
  const double one = 1, zero = 0;
  size_t bytes = 0;
  SPARSE(cusparseCreateCsr(&cg->A, cg->n, cg->n, nnz, cg->row_start, cg->columns, cg->values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&cg->of_x, cg->n, cg->x, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&cg->of_p, cg->n, cg->p, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&cg->of_s, cg->n, cg->s, CUDA_R_64F));
  double start = seconds_now();
  SPARSE(cusparseSpMV_bufferSize(cg->lib->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, cg->A, cg->of_p, &zero, cg->of_s, CUDA_R_64F,
                                 CUSPARSE_SPMV_CSR_ALG1, &bytes));
  CUDA(cudaMalloc(&cg->buffer, bytes + 16)); /* never of size 0 */
  SPARSE(cusparseSpMV_preprocess(cg->lib->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, cg->A, cg->of_p, &zero, cg->of_s, CUDA_R_64F,
                                 CUSPARSE_SPMV_CSR_ALG1, cg->buffer));
  TRY(product(cg, cg->of_p));
  CUDA(cudaStreamSynchronize(cg->lib->stream));
  cg->preprocess_s = seconds_now() - start;
  BLAS(cublasDnrm2(cg->lib->blas, cg->n, cg->b, 1, &cg->norm_b));
  if (!(cg->norm_b > 0) || !isfinite(cg->norm_b)) return failed("||b||", "it is zero or not finite", __LINE__);
  return 0;
}

/* ---- The graph form ---- */

static int capture_iteration(library_cg *cg) {
  cublasHandle_t blas = cg->lib->blas;
  cudaStream_t stream = cg->lib->stream;
  cg_scalars *s = cg->scalars; /* device addresses: only their offsets are used here */
  const double *z = cg->jacobi ? cg->z : cg->r;
  TRY(product(cg, cg->of_p));
  BLAS(cublasDdot(blas, cg->n, cg->p, 1, cg->s, 1, &s->pap));
  CUDA(launch_alpha(stream, s));
  BLAS(cublasDaxpy(blas, cg->n, &s->alpha, cg->p, 1, cg->x, 1));
  BLAS(cublasDaxpy(blas, cg->n, &s->minus_alpha, cg->s, 1, cg->r, 1));
  if (cg->jacobi) {
    CUDA(launch_scale(stream, cg->n, cg->diagonal, cg->r, cg->z));
    BLAS(cublasDdot(blas, cg->n, cg->r, 1, cg->r, 1, &s->rr));
  }
  BLAS(cublasDdot(blas, cg->n, cg->r, 1, z, 1, &s->rz_new));
  CUDA(launch_beta(stream, s, cg->history, cg->capacity, !cg->jacobi));
  BLAS(cublasDscal(blas, cg->n, &s->beta, cg->p, 1));
  return 0;
}

/* p += z needs the constant 1 as a scalar on the device, or the host's; cuBLAS reads the host's at capture. */
static int capture_direction(library_cg *cg) {
  const double one = 1;
  BLAS(cublasSetPointerMode(cg->lib->blas, CUBLAS_POINTER_MODE_HOST));
  BLAS(cublasDaxpy(cg->lib->blas, cg->n, &one, cg->jacobi ? cg->z : cg->r, 1, cg->p, 1));
  BLAS(cublasSetPointerMode(cg->lib->blas, CUBLAS_POINTER_MODE_DEVICE));
  return 0;
}

static int capture_chunk(library_cg *cg) {
  for (int k = 0; k < cg->chunk; k++) {
    TRY(capture_iteration(cg));
    TRY(capture_direction(cg));
  }
  CUDA(cudaMemcpyAsync(cg->last_rr, &cg->scalars->rr, sizeof(double), cudaMemcpyDeviceToHost, cg->lib->stream));
  return 0;
}

static int capture(library_cg *cg) {
  cudaGraph_t graph = NULL;
  BLAS(cublasSetPointerMode(cg->lib->blas, CUBLAS_POINTER_MODE_DEVICE));
  CUDA(cudaStreamBeginCapture(cg->lib->stream, cudaStreamCaptureModeThreadLocal));
  int result = capture_chunk(cg);
  cudaError_t ended = cudaStreamEndCapture(cg->lib->stream, &graph); /* also after a failure: the stream leaves the capture */
  cublasStatus_t mode = cublasSetPointerMode(cg->lib->blas, CUBLAS_POINTER_MODE_HOST);
  if (!result && ended == cudaSuccess) ended = cudaGraphInstantiate(&cg->exec, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  TRY(result);
  CUDA(ended);
  BLAS(mode);
  CUDA(cudaGraphUpload(cg->exec, cg->lib->stream));
  CUDA(cudaStreamSynchronize(cg->lib->stream));
  return 0;
}

static int build(library_cg *cg, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values, const double *b) {
  TRY(upload(cg, nnz, row_start, columns, values, b));
  TRY(analyse(cg, nnz));
  return capture(cg);
}

int library_cg_create(library *lib, int64_t n, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values,
                      const double *b, int jacobi, int64_t max_iterations, library_cg **cg) {
  *cg = NULL;
  if (n < 1 || n >= INT_MAX || nnz < 1 || nnz > INT_MAX) return failed("32-bit CSR", "n or nnz is out of its range", __LINE__);
  library_cg *c = calloc(1, sizeof *c);
  if (!c) return failed("calloc", "memory is exhausted", __LINE__);
  c->lib = lib;
  c->n = (int)n;
  c->jacobi = jacobi;
  c->chunk = nnz >= HUGE_NONZEROS ? CHUNK_HUGE : CHUNK;
  c->max_iterations = max_iterations;
  c->capacity = max_iterations + c->chunk;
  if (build(c, nnz, row_start, columns, values, b)) {
    library_cg_destroy(c);
    return -1;
  }
  *cg = c;
  return 0;
}

void library_cg_destroy(library_cg *cg) {
  if (!cg) return;
  if (cg->exec) cudaGraphExecDestroy(cg->exec);
  if (cg->of_x) cusparseDestroyDnVec(cg->of_x);
  if (cg->of_p) cusparseDestroyDnVec(cg->of_p);
  if (cg->of_s) cusparseDestroyDnVec(cg->of_s);
  if (cg->A) cusparseDestroySpMat(cg->A);
  void *device[] = {cg->row_start, cg->columns, cg->values, cg->diagonal, cg->b,       cg->x,      cg->r,
                    cg->p,         cg->s,       cg->z,      cg->buffer,   cg->scalars, cg->history};
  for (size_t k = 0; k < sizeof device / sizeof *device; k++) cudaFree(device[k]);
  if (cg->last_rr) cudaFreeHost(cg->last_rr);
  free(cg);
}

double library_cg_preprocess_s(const library_cg *cg) { return cg->preprocess_s; }

/* ---- Runs ---- */

/* x = 0, r = b, p = z: outside the time. */
static int start_run(library_cg *cg, double *rz) {
  CUDA(cudaMemsetAsync(cg->x, 0, (size_t)cg->n * sizeof *cg->x, cg->lib->stream));
  TRY(copy_vector(cg, cg->r, cg->b));
  if (cg->jacobi) CUDA(launch_scale(cg->lib->stream, cg->n, cg->diagonal, cg->r, cg->z));
  TRY(copy_vector(cg, cg->p, cg->jacobi ? cg->z : cg->r));
  BLAS(cublasDdot(cg->lib->blas, cg->n, cg->r, 1, cg->jacobi ? cg->z : cg->r, 1, rz));
  CUDA(cudaDeviceSynchronize());
  return 0;
}

static int true_residual(library_cg *cg, double *residual) {
  const double minus_one = -1;
  double norm = 0;
  TRY(copy_vector(cg, cg->r, cg->b));
  TRY(product(cg, cg->of_x));
  BLAS(cublasDaxpy(cg->lib->blas, cg->n, &minus_one, cg->s, 1, cg->r, 1));
  BLAS(cublasDnrm2(cg->lib->blas, cg->n, cg->r, 1, &norm));
  *residual = norm / cg->norm_b;
  return 0;
}

/* One iteration; rz and rr come in from the one before. */
static int sample_iteration(library_cg *cg, double *rz, double *rr) {
  cublasHandle_t blas = cg->lib->blas;
  const double one = 1;
  double pap = 0, rz_new = 0;
  TRY(product(cg, cg->of_p));
  BLAS(cublasDdot(blas, cg->n, cg->p, 1, cg->s, 1, &pap));
  double alpha = *rz / pap, minus_alpha = -alpha;
  BLAS(cublasDaxpy(blas, cg->n, &alpha, cg->p, 1, cg->x, 1));
  BLAS(cublasDaxpy(blas, cg->n, &minus_alpha, cg->s, 1, cg->r, 1));
  if (cg->jacobi) {
    CUDA(launch_scale(cg->lib->stream, cg->n, cg->diagonal, cg->r, cg->z));
    BLAS(cublasDdot(blas, cg->n, cg->r, 1, cg->r, 1, rr));
  }
  BLAS(cublasDdot(blas, cg->n, cg->r, 1, cg->jacobi ? cg->z : cg->r, 1, &rz_new));
  if (!cg->jacobi) *rr = rz_new;
  double beta = rz_new / *rz;
  *rz = rz_new;
  BLAS(cublasDscal(blas, cg->n, &beta, cg->p, 1));
  BLAS(cublasDaxpy(blas, cg->n, &one, cg->jacobi ? cg->z : cg->r, 1, cg->p, 1));
  return 0;
}

int library_cg_product(library_cg *cg, double *us) {
  enum { WARM = 5, PRODUCTS = 50 };
  double start = 0;
  for (int k = 0; k < WARM + PRODUCTS; k++) {
    if (k == WARM) {
      CUDA(cudaStreamSynchronize(cg->lib->stream));
      start = seconds_now();
    }
    TRY(product(cg, cg->of_p));
  }
  CUDA(cudaStreamSynchronize(cg->lib->stream));
  *us = 1e6 * (seconds_now() - start) / PRODUCTS;
  return 0;
}

int library_cg_sample(library_cg *cg, double rtol, library_run *run) {
  double rz = 0, rr = cg->norm_b * cg->norm_b, goal = rtol * rtol * rr;
  int64_t k = 0;
  TRY(start_run(cg, &rz));
  double start = seconds_now();
  for (; rr > goal && k < cg->max_iterations; k++) TRY(sample_iteration(cg, &rz, &rr)); /* a NaN ends it too */
  CUDA(cudaStreamSynchronize(cg->lib->stream));
  run->time_s = seconds_now() - start;
  run->iterations = k;
  run->converged = rr <= goal;
  run->us_per_iteration = k ? 1e6 * run->time_s / (double)k : NAN;
  return true_residual(cg, &run->residual_true);
}

/* The first iteration whose norm met the goal, from the history on the device. */
static int count_iterations(library_cg *cg, int64_t replayed, double goal, library_run *run) {
  double *history = malloc((size_t)replayed * sizeof *history);
  if (!history) return failed("malloc", "memory is exhausted", __LINE__);
  cudaError_t error = cudaMemcpy(history, cg->history, (size_t)replayed * sizeof *history, cudaMemcpyDeviceToHost);
  int64_t k = 0;
  if (error == cudaSuccess)
    while (k < replayed && !(history[k] <= goal)) k++;
  free(history);
  CUDA(error);
  run->converged = k < replayed && k < cg->max_iterations;
  run->iterations = run->converged ? k + 1 : replayed < cg->max_iterations ? replayed : cg->max_iterations;
  return 0;
}

int library_cg_graph(library_cg *cg, double rtol, library_run *run) {
  cg_scalars initial = {0};
  double rr = cg->norm_b * cg->norm_b, goal = rtol * rtol * rr;
  int64_t replayed = 0;
  TRY(start_run(cg, &initial.rz));
  initial.rr = rr;
  CUDA(cudaMemcpy(cg->scalars, &initial, sizeof initial, cudaMemcpyHostToDevice));
  CUDA(cudaDeviceSynchronize());
  double start = seconds_now();
  for (; rr > goal && replayed < cg->max_iterations; replayed += cg->chunk) {
    CUDA(cudaGraphLaunch(cg->exec, cg->lib->stream));
    CUDA(cudaStreamSynchronize(cg->lib->stream));
    rr = *(volatile double *)cg->last_rr;
  }
  double elapsed = seconds_now() - start;
  TRY(count_iterations(cg, replayed, goal, run));
  run->us_per_iteration = 1e6 * elapsed / (double)replayed;
  run->time_s = 1e-6 * run->us_per_iteration * (double)run->iterations;
  return true_residual(cg, &run->residual_true);
}
