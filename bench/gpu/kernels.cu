/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels.h"
#include <algorithm>

__global__ static void alpha_kernel(cg_scalars *s) {
  double alpha = s->pap > 0 ? s->rz / s->pap : 0;
  s->alpha = alpha;
  s->minus_alpha = -alpha;
}

__global__ static void beta_kernel(cg_scalars *s, double *history, int64_t capacity, int rr_is_rz) {
  if (rr_is_rz) s->rr = s->rz_new;
  s->beta = s->rz > 0 ? s->rz_new / s->rz : 0;
  s->rz = s->rz_new;
  if (s->count < capacity) history[s->count] = s->rr;
  s->count++;
}

__global__ static void scale_kernel(int64_t n, const double *d, const double *r, double *z) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = d[i] * r[i];
}

cudaError_t launch_alpha(cudaStream_t stream, cg_scalars *s) {
  alpha_kernel<<<1, 1, 0, stream>>>(s);
  return cudaGetLastError();
}

cudaError_t launch_beta(cudaStream_t stream, cg_scalars *s, double *history, int64_t capacity, int rr_is_rz) {
  beta_kernel<<<1, 1, 0, stream>>>(s, history, capacity, rr_is_rz);
  return cudaGetLastError();
}

cudaError_t launch_scale(cudaStream_t stream, int64_t n, const double *d, const double *r, double *z) {
  scale_kernel<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(n, d, r, z);
  return cudaGetLastError();
}

/* Four 16-byte loads in flight a thread. The sum is written only if it is a value that zeros cannot give: the loads stay. */
__global__ static void read_kernel(int64_t count, const double2 *a, double *sink) {
  int64_t stride = (int64_t)gridDim.x * blockDim.x, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0;
  for (; i + 3 * stride < count; i += 4 * stride) {
    double2 u = a[i], v = a[i + stride], w = a[i + 2 * stride], t = a[i + 3 * stride];
    sum += ((u.x + u.y) + (v.x + v.y)) + ((w.x + w.y) + (t.x + t.y));
  }
  for (; i < count; i += stride) sum += a[i].x + a[i].y;
  if (sum == 12345.678) *sink = sum;
}

__global__ static void copy_kernel(int64_t count, const double2 *a, double2 *b) {
  int64_t stride = (int64_t)gridDim.x * blockDim.x, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    double2 u = a[i], v = a[i + stride], w = a[i + 2 * stride], t = a[i + 3 * stride];
    b[i] = u;
    b[i + stride] = v;
    b[i + 2 * stride] = w;
    b[i + 3 * stride] = t;
  }
  for (; i < count; i += stride) b[i] = a[i];
}

#define TRY(call)                                                                                                                          \
  do {                                                                                                                                     \
    cudaError_t error_ = (call);                                                                                                           \
    if (error_ != cudaSuccess) return error_;                                                                                              \
  } while (0)

static cudaError_t median_rate(int64_t bytes, int blocks, double2 *memory, double *sink, int copy, cudaEvent_t start, cudaEvent_t end,
                               double *rate) {
  enum { REPEATS = 5 };
  float ms[REPEATS];
  int64_t count = bytes / (int64_t)sizeof(double2);
  for (int k = -2; k < REPEATS; k++) { /* two to warm up */
    TRY(cudaEventRecord(start, 0));
    if (copy)
      copy_kernel<<<blocks, 512>>>(count / 2, memory, memory + count / 2);
    else
      read_kernel<<<blocks, 512>>>(count, memory, sink);
    TRY(cudaGetLastError());
    TRY(cudaEventRecord(end, 0));
    TRY(cudaEventSynchronize(end));
    if (k >= 0) TRY(cudaEventElapsedTime(&ms[k], start, end));
  }
  std::sort(ms, ms + REPEATS);
  *rate = (double)bytes / (1e-3 * ms[REPEATS / 2]);
  return cudaSuccess;
}

static cudaError_t measure_with(int64_t bytes, double2 *memory, double *sink, cudaEvent_t start, cudaEvent_t end, double *read,
                                double *copy) {
  int device, processors;
  TRY(cudaGetDevice(&device));
  TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  TRY(cudaMemset(memory, 0, (size_t)bytes));
  TRY(median_rate(bytes, 4 * processors, memory, sink, 0, start, end, read));
  return median_rate(bytes, 4 * processors, memory, sink, 1, start, end, copy);
}

cudaError_t measure_bandwidth(int64_t bytes, double *read, double *copy) {
  double2 *memory = nullptr;
  double *sink = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  cudaError_t error = cudaMalloc(&memory, (size_t)bytes);
  if (error == cudaSuccess) error = cudaMalloc(&sink, sizeof *sink);
  if (error == cudaSuccess) error = cudaEventCreate(&start);
  if (error == cudaSuccess) error = cudaEventCreate(&end);
  if (error == cudaSuccess) error = measure_with(bytes, memory, sink, start, end, read, copy);
  if (end) cudaEventDestroy(end);
  if (start) cudaEventDestroy(start);
  cudaFree(sink);
  cudaFree(memory);
  return error;
}
