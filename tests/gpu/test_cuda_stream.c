/* The caller's stream: what the caller enqueues there before and after a solve needs no synchronisation.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_helpers.h"
#include <stdlib.h>
#include "backend/cuda/cuda.h"
#include "data/matrix.h"
#include "halftone/halftone.h"
#include "support/generated.h"
#include "support/random.h"

#define OK(call) assert_int_equal((call), HT_OK)
#define DONE(call) assert_int_equal((call), CUDA_SUCCESS)
enum { LARGE = 1 << 30, FILLS = 40 /* of so many bytes: some milliseconds */ };

static double *array(int64_t n) {
  double *x = calloc((size_t)n, sizeof *x);
  assert_non_null(x);
  return x;
}

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

static ht_solver *make_solver(gpu *g, const ht_matrix *a, const char *engine) {
  ht_options *options;
  ht_solver *solver;
  OK(ht_options_create(g->ctx, &options));
  OK(ht_options_set(options, "backend", "cuda"));
  OK(ht_options_set(options, "engine", engine));
  OK(ht_solver_create(g->ctx, options, &solver));
  ht_options_destroy(options);
  OK(ht_solver_set_matrix(solver, a));
  OK(ht_solver_prepare(solver));
  return solver;
}

/* b and x are made on the stream by work that takes far longer than a solve needs to begin, and are wrong until then. The solve's x is
 * copied by work that is enqueued when it returns. */
static void solves_between(gpu *g, CUstream stream, const char *engine) {
  const ht_cuda_driver *driver = ht_cuda_of(g->ctx)->driver;
  ht_matrix *a;
  OK(generate_line(g->ctx, "stencil3d size=24 points=27", &a));
  int64_t bytes = 8 * a->n;
  double *b = array(a->n), *expected = array(a->n), *found = array(a->n), *wrong = array(a->n);
  random_vector(5, a->n, b);
  random_vector(6, a->n, wrong);
  ht_solver *solver = make_solver(g, a, engine);
  ht_report report;
  OK(ht_solver_solve(solver, 1, b, expected, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  double *from = gpu_copy(g, bytes, b), *device_b = gpu_copy(g, bytes, wrong), *device_x = gpu_copy(g, bytes, wrong),
         *copy = gpu_copy(g, bytes, NULL);
  void *large = gpu_copy(g, LARGE, NULL);
  int entered = ht_cuda_enter(ht_cuda_of(g->ctx));
  for (int k = 0; k < FILLS; k++) DONE(driver->cuMemsetD8Async(address(large), (unsigned char)k, LARGE, stream));
  DONE(driver->cuMemcpyAsync(address(device_b), address(from), (size_t)bytes, stream));
  DONE(driver->cuMemsetD8Async(address(device_x), 0, (size_t)bytes, stream));
  OK(ht_solver_solve(solver, 1, device_b, device_x, &report));
  assert_int_equal(report.outcome, HT_CONVERGED);
  DONE(driver->cuMemcpyAsync(address(copy), address(device_x), (size_t)bytes, stream));
  DONE(driver->cuStreamSynchronize(stream));
  ht_cuda_leave(ht_cuda_of(g->ctx), entered);
  gpu_fetch(g, bytes, copy, found);
  assert_memory_equal(found, expected, (size_t)bytes);
  void *device[] = {from, device_b, device_x, copy, large};
  for (size_t k = 0; k < sizeof device / sizeof *device; k++) g->cuda->memory_release(g->ctx, device[k]);
  free(b), free(expected), free(found), free(wrong);
  ht_solver_destroy(solver);
  ht_matrix_destroy(a);
}

static void a_solve_waits_for_its_stream(void **state) {
  (void)state;
  static const char *const engines[] = {"textbook", "persistent", "streaming"};
  gpu g = gpu_open();
  ht_cuda *cuda = ht_cuda_of(g.ctx);
  CUstream stream;
  int entered = ht_cuda_enter(cuda);
  DONE(cuda->driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); /* so that nothing else orders it */
  ht_cuda_leave(cuda, entered);
  OK(ht_context_set_cuda_stream(g.ctx, stream));
  for (int k = 0; k < 3; k++) solves_between(&g, stream, engines[k]);
  OK(ht_context_set_cuda_stream(g.ctx, NULL));
  entered = ht_cuda_enter(cuda);
  DONE(cuda->driver->cuStreamDestroy(stream));
  ht_cuda_leave(cuda, entered);
  solves_between(&g, CU_STREAM_LEGACY, "persistent"); /* our own stream takes turns with the default one */
  gpu_close(&g);
}

/* Given first, the stream's device is taken; a stream that is being captured is refused, and so is one of another context. */
static void streams_are_checked(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_cuda *cuda = ht_cuda_of(g.ctx);
  const ht_cuda_driver *driver = cuda->driver;
  CUstream stream;
  CUgraph graph;
  ht_context *other;
  int entered = ht_cuda_enter(cuda);
  DONE(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(ht_context_create(&other));
  DONE(driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_int_equal(ht_context_set_cuda_stream(other, stream), HT_BAD_ARGUMENT);
  assert_non_null(strstr(ht_context_error(other), "captured"));
  DONE(driver->cuStreamEndCapture(stream, &graph));
  DONE(driver->cuGraphDestroy(graph));
  assert_int_equal(ht_context_set_cuda_stream(other, CU_STREAM_LEGACY), HT_BAD_ARGUMENT);
  assert_null(other->device);
  OK(ht_context_set_cuda_stream(other, stream));
  assert_true(ht_cuda_of(other)->context == cuda->context && ht_cuda_of(other)->stream == stream);
  OK(ht_context_set_cuda_stream(other, CU_STREAM_PER_THREAD));
  OK(ht_context_set_cuda_stream(other, NULL));
  ht_context_destroy(other);
  DONE(driver->cuStreamDestroy(stream));
  ht_cuda_leave(cuda, entered);
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_solve_waits_for_its_stream),
      cmocka_unit_test(streams_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
