/* What the CUDA backend makes of a driver that refuses, in every way a driver can: a sentence, nothing left behind, and a caller whose
 * current context is as it was. Each case runs in a process of its own, as the driver is loaded once a process.
 * SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <cuda.h>
#include "backend/backend.h"
#include "halftone/halftone.h"
#include "support/failing.h"
#include "support/generated.h"

#define EXPECT(condition)                                                                                                                  \
  do {                                                                                                                                     \
    if (!(condition)) return (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), 1);                                  \
  } while (0)

typedef struct run {
  failing_allocator allocator;
  ht_context *ctx;
  const ht_backend *cuda;
} run;

static void in_child(const char *mode, int (*work)(run *r, const char *argument), const char *argument) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    run r = {.cuda = NULL};
    setenv("HT_FAKE_CUDA", mode, 1);
    if (failing_context(&r.allocator, &r.ctx) != HT_OK) _exit(2);
    int wrong = work(&r, argument);
    if (!wrong) ht_context_destroy(r.ctx);
    if (!wrong && r.allocator.alive) wrong = (fprintf(stderr, "%s: %ld blocks left\n", mode, r.allocator.alive), 1);
    _exit(wrong);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("driver that is '%s': see above", mode);
}

/* A function of the driver's that tells about it. */
static void find_fake(const char *name, void *function) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol = driver ? dlsym(driver, name) : NULL;
  memcpy(function, &symbol, sizeof symbol);
}

/* Nothing of the driver's is held, and the caller's current context is what it was. */
static int all_given_back(int depth) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  EXPECT(driver);
  int *alive = dlsym(driver, "fake_cuda_alive"), *retained = dlsym(driver, "fake_cuda_retained"), (*now)(void);
  find_fake("fake_cuda_depth", &now);
  EXPECT(alive && *alive == 0 && retained && *retained == 0 && now() == depth);
  return 0;
}

static int is_refused(run *r, const char *words) {
  EXPECT(ht_backend_find(r->ctx, "cuda", &r->cuda) == HT_UNSUPPORTED);
  EXPECT(!r->cuda && !r->ctx->device);
  if (!strstr(ht_context_error(r->ctx), words)) return (fprintf(stderr, "'%s' lacks '%s'\n", ht_context_error(r->ctx), words), 1);
  EXPECT(strstr(ht_context_error(r->ctx), "cpu backend"));
  EXPECT(ht_backend_find(r->ctx, "cuda", &r->cuda) == HT_UNSUPPORTED);
  char text[1024] = "";
  ht_context_clear_error(r->ctx);
  ht_backend_about_cuda(r->ctx, text, sizeof text);
  EXPECT(strstr(text, "compiled in") && !*ht_context_error(r->ctx));
  return all_given_back(0);
}

static void refusals_are_sentences(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"old", "is for CUDA 11.8, and 12.0 is the oldest"},
      {"lacking", "lacks cuLaunchKernelEx"},
      {"none", "sees no GPU"},
      {"mismatch", "does not start: error 803"},
      {"exclusive", "used by another process"},
      {"full", "not enough free memory"},
      {"full_later", "12345 of"},
      {"unpinned", "host memory that the GPU can reach"},
      {"weak", "compute capability 7.4, and 8.0 is the least"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) in_child(cases[i][0], is_refused, cases[i][1]);
}

static int works(run *r, const char *name) {
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK);
  void *device = r->ctx->device, *memory;
  EXPECT(ht_backend_find(r->ctx, "cuda", &r->cuda) == HT_OK && r->ctx->device == device);
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK && r->ctx->device == device);
  const ht_backend *other;
  EXPECT(ht_backend_find(r->ctx, strcmp(name, "cuda:1") ? "cuda:1" : "cuda:0", &other) == HT_UNSUPPORTED);
  EXPECT(strstr(ht_context_error(r->ctx), "a context of its own"));
  double x[3] = {1, 2, 3}, y[3] = {0};
  EXPECT(r->cuda->memory_create(r->ctx, sizeof x, &memory) == HT_OK);
  EXPECT(r->cuda->upload(r->ctx, sizeof x, x, memory) == HT_OK && r->cuda->download(r->ctx, sizeof y, memory, y) == HT_OK && y[2] == 3);
  r->cuda->axpy(r->ctx, 3, 2.0, memory, memory);
  r->cuda->csr_multiply(r->ctx, &(ht_csr_view){.n = 3}, memory, memory);
  EXPECT(r->cuda->failed(r->ctx) == HT_OK);
  void *more = memory;
  EXPECT(r->cuda->memory_create(r->ctx, INT64_C(1) << 40, &more) == HT_NO_MEMORY && !more);
  EXPECT(strstr(ht_context_error(r->ctx), "1099511627776 bytes") && r->cuda->failed(r->ctx) == HT_OK);
  r->cuda->memory_release(r->ctx, memory);
  char text[1024] = "";
  ht_backend_about_cuda(r->ctx, text, sizeof text);
  EXPECT(strstr(text, "driver for CUDA 12.4; 2 GPUs; 0: Fake 0, 16.0 GiB, 4 multiprocessors, capability 9.4; 1: Fake 1"));
  return 0;
}

static int works_and_gives_back(run *r, const char *name) {
  if (works(r, name)) return 1;
  ht_context_destroy(r->ctx);
  if (all_given_back(0)) return 1;
  EXPECT(failing_context(&r->allocator, &r->ctx) == HT_OK);
  return works(r, name); /* another context, the same driver */
}

/* Without a number the caller's context is used, and left as it was. */
static int uses_the_callers_context(run *r, const char *name) {
  if (works(r, name)) return 1;
  ht_context_destroy(r->ctx);
  if (all_given_back(1)) return 1;
  EXPECT(failing_context(&r->allocator, &r->ctx) == HT_OK);
  return 0;
}

static int follows_the_caller(run *r, const char *name) {
  const ht_backend *other;
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK); /* device 1: that of the current context */
  EXPECT(ht_backend_find(r->ctx, "cuda:1", &other) == HT_OK && ht_backend_find(r->ctx, "cuda:0", &other) == HT_UNSUPPORTED);
  return 0;
}

static void devices_are_taken_and_given_back(void **state) {
  (void)state;
  in_child("fine", works_and_gives_back, "cuda");
  in_child("fine", works_and_gives_back, "cuda:1");
  in_child("caller", follows_the_caller, "cuda");
  in_child("caller", uses_the_callers_context, "cuda:1");
  in_child("caller", uses_the_callers_context, "cuda:0"); /* its context is on the other device: the primary one is pushed over it */
}

/* ---- the caller's stream ---- */

static void *(*stream_at)(int number);
static int (*work_of)(int number);

static int refuses_stream(run *r, void *stream, const char *words) {
  EXPECT(ht_context_set_cuda_stream(r->ctx, stream) == HT_BAD_ARGUMENT);
  if (!strstr(ht_context_error(r->ctx), words)) return (fprintf(stderr, "'%s' lacks '%s'\n", ht_context_error(r->ctx), words), 1);
  ht_context_clear_error(r->ctx);
  return 0;
}

/* Launches, copies and fills go to that stream, and to no other. */
static int works_on(run *r, int number) {
  int before[5];
  for (int k = 0; k < 5; k++) before[k] = work_of(k);
  double x[3] = {1, 2, 3}, *memory;
  EXPECT(r->cuda->memory_create(r->ctx, sizeof x, &memory) == HT_OK && r->cuda->upload(r->ctx, sizeof x, x, memory) == HT_OK);
  r->cuda->axpy(r->ctx, 3, 2.0, memory, memory);
  r->cuda->dot(r->ctx, 3, memory, memory);
  r->cuda->memory_release(r->ctx, memory);
  for (int k = 0; k < 5; k++) EXPECT(work_of(k) - before[k] == (k == number ? 4 : 0));
  return 0;
}

static int follows_the_stream(run *r, const char *name) {
  EXPECT(ht_context_set_cuda_stream(r->ctx, NULL) == HT_OK && !r->ctx->device);
  char text[1024];
  ht_backend_about_cuda(r->ctx, text, sizeof text); /* loads the driver */
  find_fake("fake_cuda_stream", &stream_at);
  find_fake("fake_cuda_work", &work_of);
  EXPECT(stream_at && work_of);
  if (refuses_stream(r, stream_at(4), "captured") || refuses_stream(r, CU_STREAM_LEGACY, "NULL")) return 1;
  EXPECT(!r->ctx->device);
  EXPECT(ht_context_set_cuda_stream(r->ctx, stream_at(1)) == HT_OK && r->ctx->device); /* the stream's device */
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK);
  if (works_on(r, 1)) return 1;
  if (refuses_stream(r, stream_at(2), "another GPU than number 0") || refuses_stream(r, stream_at(3), "another CUDA context of GPU 0") ||
      refuses_stream(r, stream_at(4), "captured") || refuses_stream(r, &r, "does not know the stream") || works_on(r, 1))
    return 1;
  EXPECT(ht_context_set_cuda_stream(r->ctx, NULL) == HT_OK);
  if (works_on(r, 0)) return 1;
  EXPECT(ht_context_set_cuda_stream(r->ctx, stream_at(1)) == HT_OK);
  ht_context_destroy(r->ctx);
  if (all_given_back(0)) return 1;
  EXPECT(failing_context(&r->allocator, &r->ctx) == HT_OK);
  EXPECT(ht_context_set_cuda_stream(r->ctx, stream_at(2)) == HT_OK && ht_backend_find(r->ctx, "cuda:1", &r->cuda) == HT_OK);
  return works_on(r, 2);
}

/* Without a driver there is none. */
static int has_no_stream(run *r, const char *words) {
  EXPECT(ht_context_set_cuda_stream(r->ctx, r) == HT_UNSUPPORTED);
  EXPECT(strstr(ht_context_error(r->ctx), words) && !r->ctx->device);
  return 0;
}

static void the_callers_stream_is_followed(void **state) {
  (void)state;
  in_child("fine", follows_the_stream, "cuda");
  in_child("old", has_no_stream, "is for CUDA 11.8");
}

/* The first failure is kept, later calls do nothing, sums are NaN. */
static int is_told(run *r, const char *words) {
  void *memory, *more;
  double x[2] = {0};
  EXPECT(ht_backend_find(r->ctx, "cuda", &r->cuda) == HT_OK);
  EXPECT(r->cuda->memory_create(r->ctx, 64, &memory) == HT_OK);
  EXPECT(isnan(r->cuda->dot(r->ctx, 8, memory, memory)));
  EXPECT(r->cuda->failed(r->ctx) == HT_DEVICE);
  if (!strstr(ht_context_error(r->ctx), words)) return (fprintf(stderr, "'%s' lacks '%s'\n", ht_context_error(r->ctx), words), 1);
  EXPECT(isnan(r->cuda->norm_inf(r->ctx, 8, memory)));
  r->cuda->shift(r->ctx, 8, 3, memory, memory);
  r->cuda->copy(r->ctx, 2, memory, x);
  EXPECT(r->cuda->memory_create(r->ctx, 8, &more) == HT_DEVICE && !more);
  EXPECT(r->cuda->upload(r->ctx, 16, x, memory) == HT_DEVICE);
  ht_context_clear_error(r->ctx);
  EXPECT(ht_backend_find(r->ctx, "cuda", &r->cuda) == HT_DEVICE);
  EXPECT(strstr(ht_context_error(r->ctx), words));
  EXPECT(ht_backend_find(r->ctx, "cpu", &r->cuda) == HT_OK);
  r->cuda = NULL;
  return 0;
}

static void failures_are_told_once(void **state) {
  (void)state;
  in_child("lost", is_told, "the device fell over");
  in_child("refused", is_told, "launching ht_vector_reduce (1 blocks of 256 threads, 0 bytes shared)");
  in_child("foreign", is_told, "launching ht_vector_reduce");
}

static int survives_without_memory(run *r, const char *name) {
  r->allocator.fail_at = r->allocator.requests;
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_NO_MEMORY && !r->ctx->device);
  r->allocator.fail_at = -1;
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK);
  return 0;
}

static void host_memory_may_end(void **state) {
  (void)state;
  in_child("fine", survives_without_memory, "cuda");
}

/* ---- training ---- */

/* By either reward: all in one launch, and parts that are read together. */
static int make_learner(run *r, int saves, ht_learner **learner) {
  static const int64_t row_start[] = {0, 1, 2, 3}, touch_start[] = {0, 1, 2};
  static const int32_t columns[] = {0, 1, 2}, part[] = {0, 0, 1}, touched[] = {0, 0};
  static const double values[] = {1, 1, 1, 2, 2, 2, 3, 3, 3}, right_side[] = {1, 2, 3}, fallen[] = {1, 1e-11};
  const ht_learner_system whole = {.n = 3,
                                   .row_start = row_start,
                                   .columns = columns,
                                   .values = values,
                                   .right_sides = right_side,
                                   .sides = 1,
                                   .parts = 2,
                                   .part = part,
                                   .touch_start = touch_start,
                                   .touched = touched};
  const ht_learner_system systems[] = {whole, whole};
  const ht_learner_side side = {.fallen = fallen, .iterations = 1};
  const ht_learner_settings settings = {
      .ppo = {0.2, 0.25, 0.02, 1e-4, 0.5, 2, 3, 0, 0}, .hidden = 9, .lanes = 4, .steps = 2, .most_rows = 1, .rtol = 1e-10, .saves = saves};
  ht_status status = r->cuda->learner_create(r->ctx, &settings, 2, systems, learner);
  if (status != HT_OK || !saves) return status;
  status = r->cuda->learner_set_saving(*learner, 1, &side, 1);
  if (status == HT_OK) return HT_OK;
  r->cuda->learner_release(*learner);
  *learner = NULL;
  return status;
}

/* Whichever request is refused, nothing is left behind. */
static int makes_learners(run *r, const char *name) {
  EXPECT(ht_backend_find(r->ctx, name, &r->cuda) == HT_OK);
  long before = r->allocator.alive;
  for (int saves = 0; saves < 2; saves++) {
    ht_learner *learner = NULL;
    ht_status status = HT_NO_MEMORY;
    for (long n = 0; status == HT_NO_MEMORY; n++) {
      r->allocator.fail_at = r->allocator.requests + n;
      status = make_learner(r, saves, &learner);
      r->allocator.fail_at = -1;
      EXPECT(status == HT_OK || (!learner && r->allocator.alive == before));
    }
    EXPECT(status == HT_OK);
    r->cuda->learner_release(learner);
    EXPECT(r->allocator.alive == before);
  }
  ht_context_destroy(r->ctx);
  if (all_given_back(0)) return 1;
  EXPECT(failing_context(&r->allocator, &r->ctx) == HT_OK);
  return 0;
}

/* A GPU that was not asked for and does not serve is no reason to fail. */
static int trains_on_the_cpu(run *r, const char *backend) {
  ht_matrix *matrix;
  ht_trainer *t;
  ht_train_report report;
  EXPECT(generate_line(r->ctx, "stencil2d size=15", &matrix) == HT_OK && ht_trainer_create(r->ctx, &t) == HT_OK);
  EXPECT(ht_trainer_set_option(t, "reward", "paper") == HT_OK && ht_trainer_set_option(t, "episodes", "2") == HT_OK);
  EXPECT(ht_trainer_set_option(t, "backend", backend) == HT_OK && ht_trainer_add_matrix(t, matrix, "generated") == HT_OK);
  ht_status status = ht_trainer_run(t, &report);
  if (!strcmp(backend, "auto"))
    EXPECT(status == HT_OK && !strcmp(report.backend, "cpu"));
  else
    EXPECT(status == HT_DEVICE || status == HT_UNSUPPORTED);
  ht_trainer_destroy(t);
  ht_matrix_destroy(matrix);
  return 0;
}

static void training_does_without_a_device(void **state) {
  (void)state;
  in_child("fine", makes_learners, "cuda");
  static const char *const modes[] = {"none", "full_later", "refused", "lost"};
  for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
    in_child(modes[k], trains_on_the_cpu, "auto");
    in_child(modes[k], trains_on_the_cpu, "cuda");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals_are_sentences),
      cmocka_unit_test(devices_are_taken_and_given_back),
      cmocka_unit_test(the_callers_stream_is_followed),
      cmocka_unit_test(failures_are_told_once),
      cmocka_unit_test(host_memory_may_end),
      cmocka_unit_test(training_does_without_a_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
