/* Memory that runs out at the n-th request, for every n: an error, nothing left behind. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "support/failing.h"
#include "support/texts.h"

enum { N = 60 };

static failing_allocator memory;

/* A file's bytes, read once for all. */
typedef struct {
  const char *path;
  char *bytes;
  size_t size;
} sample;
static sample samples[] = {{.path = "test_io_alloc.mtx"}, {.path = "test_io_alloc.mtx.gz"}, {.path = "test_io_alloc.npz"}};
static sample vectors[] = {{.path = "test_io_vector.mtx"}, {.path = "test_io_vector.mtx.gz"}, {.path = "test_io_vector.npy"}};

typedef ht_status (*action)(ht_context *ctx, const void *data);

/* Refuse request 0, 1, 2, ... until the action succeeds. */
static void run(action act, const void *data, const char *what) {
  for (long n = 0;; n++) {
    ht_context *ctx;
    assert_int_equal(failing_context(&memory, &ctx), HT_OK);
    assert_int_equal(ht_context_set_threads(ctx, 2), HT_OK);
    memory.fail_at = memory.requests + n;
    ht_status status = act(ctx, data);
    if (memory.alive != 1) fail_msg("%s: %ld blocks are left after request %ld failed", what, memory.alive - 1, n);
    if (status != HT_OK && (status != HT_NO_MEMORY || !*ht_context_error(ctx)))
      fail_msg("%s: request %ld: %s: %s", what, n, ht_status_name(status), ht_context_error(ctx));
    ht_context_destroy(ctx);
    if (status == HT_OK) {
      assert_true(n > 0);
      return;
    }
  }
}

static ht_status read_sample(ht_context *ctx, const void *data) {
  const sample *s = data;
  ht_matrix *a;
  ht_status status = read_bytes(ctx, s->bytes, s->size, &a);
  assert_true((status == HT_OK) == (a != NULL));
  ht_matrix_destroy(a);
  return status;
}

static ht_status read_file(ht_context *ctx, const void *data) {
  ht_matrix *a;
  ht_status status = ht_matrix_read(ctx, data, &a);
  ht_matrix_destroy(a);
  return status;
}

static ht_status read_vector_sample(ht_context *ctx, const void *data) {
  const sample *s = data;
  double *values;
  int columns;
  ht_status status = read_vector_bytes(ctx, s->bytes, s->size, N, &columns, &values);
  ht_vector_free(ctx, values);
  return status;
}

static ht_status read_product(ht_context *ctx, const void *data) {
  ht_matrix *a;
  double *values = NULL;
  int columns;
  ht_status status = read_bytes(ctx, samples[0].bytes, samples[0].size, &a);
  if (status == HT_OK) status = ht_vector_read_block(ctx, data, a, N, &columns, &values);
  ht_vector_free(ctx, values);
  ht_matrix_destroy(a);
  return status;
}

/* The path must not exist after an error. */
static ht_status write_matrix(ht_context *ctx, const void *path) {
  ht_matrix *a;
  unlink(path);
  ht_status status = read_bytes(ctx, samples[0].bytes, samples[0].size, &a);
  if (status == HT_OK) status = ht_matrix_write(a, path);
  if (status != HT_OK) assert_int_equal(access(path, F_OK), -1);
  unlink(path);
  ht_matrix_destroy(a);
  return status;
}

static ht_status make_csr(ht_context *ctx, const void *mode) {
  static const int64_t start[] = {0, 2, 4};
  static const int32_t sorted[] = {0, 1, 0, 1};
  static const double values[] = {4, 1, 1, 4};
  ht_matrix *a;
  ht_status status = ht_matrix_create_csr(ctx, 2, start, sorted, values, *(const ht_copy_mode *)mode, &a);
  if (status == HT_OK) status = ht_matrix_set_values(a, values);
  ht_matrix_destroy(a);
  return status;
}

static void test_reading(void **state) {
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    run(read_sample, &samples[i], samples[i].path);
    run(read_vector_sample, &vectors[i], vectors[i].path);
  }
  static const sample triangles = {"mixed triangles", SYMMETRIC "3 3 3\n2 1 1\n2 3 1\n1 1 1\n", 71};
  sample s = triangles;
  s.size = strlen(s.bytes);
  run(read_sample, &s, s.path);
  s.bytes = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n0\n3\n";
  s.size = strlen(s.bytes);
  run(read_sample, &s, "array");
  run(read_product, "A*random:1", "A*random");
}

static void test_writing(void **state) {
  (void)state;
  for (size_t i = 0; i < 3; i++) run(write_matrix, samples[i].path, samples[i].path);
}

static void test_from_file(void **state) {
  ht_context *ctx;
  ht_matrix *a;
  (void)state;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  assert_int_equal(read_bytes(ctx, samples[0].bytes, samples[0].size, &a), HT_OK);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(ht_matrix_write(a, samples[i].path), HT_OK);
    run(read_file, samples[i].path, samples[i].path);
    unlink(samples[i].path);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
}

static void test_csr(void **state) {
  ht_copy_mode copy = HT_COPY, borrow = HT_BORROW;
  (void)state;
  run(make_csr, &copy, "copy");
  run(make_csr, &borrow, "borrow");
}

/* A matrix with unsorted rows longer than the short sort takes, and a vector, in every format. */
static int make_samples(void **state) {
  ht_context *ctx;
  ht_matrix *a;
  double x[N];
  char *text = malloc(200000), *p = text;
  (void)state;
  p += sprintf(p, "%s%d %d %d\n", GENERAL, N, N, N * N);
  for (int k = 0; k < N * N; k++) p += sprintf(p, "%d %d %d.5\n", k % N + 1, (k / N * 7 + k) % N + 1, k);
  if (ht_context_create(&ctx) != HT_OK || read_text(ctx, text, &a) != HT_OK) return 1;
  free(text);
  if (ht_vector_read(ctx, "random:1", NULL, N, x) != HT_OK) return 1;
  for (int i = 0; i < 3; i++) {
    if (ht_matrix_write(a, samples[i].path) != HT_OK || ht_vector_write(ctx, vectors[i].path, N, 1, x) != HT_OK) return 1;
    samples[i].bytes = slurp(samples[i].path, &samples[i].size);
    vectors[i].bytes = slurp(vectors[i].path, &vectors[i].size);
    unlink(samples[i].path);
    unlink(vectors[i].path);
  }
  ht_matrix_destroy(a);
  ht_context_destroy(ctx);
  return 0;
}

static int free_samples(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    free(samples[i].bytes);
    free(vectors[i].bytes);
  }
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reading), cmocka_unit_test(test_writing), cmocka_unit_test(test_from_file),
                                     cmocka_unit_test(test_csr)};
  return cmocka_run_group_tests(tests, make_samples, free_samples);
}
