/* SciPy's .npz files, made by hand here, and the zip and npy readers below them. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include "io/npy.h"
#include "support/random.h"
#include "support/texts.h"

static int open_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

/* ---- a small zip writer of our own, for the files that the library does not write ---- */

typedef struct {
  unsigned char bytes[8192], directory[1024];
  size_t size, directory_size;
  uint32_t members;
} archive;

static void put(unsigned char *to, size_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[(*at)++] = (unsigned char)(value >> 8 * i);
}

static void add(archive *z, const char *name, const void *data, size_t size, int deflated) {
  unsigned char packed[4096];
  size_t offset = z->size, length = strlen(name), packed_size = size;
  memcpy(packed, data, size);
  if (deflated) {
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (unsigned char *)data;
    s.avail_in = (uInt)size;
    s.next_out = packed;
    s.avail_out = sizeof packed;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    packed_size = s.total_out;
    deflateEnd(&s);
  }
  uint32_t crc = (uint32_t)crc32(0, data, (uInt)size);
  for (int central = 0; central < 2; central++) {
    unsigned char *to = central ? z->directory : z->bytes;
    size_t *at = central ? &z->directory_size : &z->size;
    put(to, at, central ? 0x02014b50u : 0x04034b50u, 4);
    if (central) put(to, at, 20, 2);
    put(to, at, 20, 2);
    put(to, at, 0, 2);
    put(to, at, deflated ? 8 : 0, 2);
    put(to, at, 0, 4);
    put(to, at, crc, 4);
    put(to, at, packed_size, 4);
    put(to, at, size, 4);
    put(to, at, length, 2);
    put(to, at, 0, 2);
    if (central) put(to, at, 0, 5), put(to, at, 0, 5);
    if (central) put(to, at, offset, 4);
    memcpy(to + *at, name, length);
    *at += length;
    if (central) continue;
    memcpy(to + *at, packed, packed_size);
    *at += packed_size;
  }
  z->members++;
}

static void add_array(archive *z, const char *name, const char *type, const char *shape, const void *data, size_t size, int deflated) {
  unsigned char bytes[2048];
  ht_npy_header((char *)bytes, type, 0, shape);
  memcpy(bytes + HT_NPY_HEADER, data, size);
  add(z, name, bytes, HT_NPY_HEADER + size, deflated);
}

static void finish(archive *z) {
  size_t start = z->size;
  memcpy(z->bytes + z->size, z->directory, z->directory_size);
  z->size += z->directory_size;
  put(z->bytes, &z->size, 0x06054b50u, 4);
  put(z->bytes, &z->size, 0, 4);
  put(z->bytes, &z->size, z->members, 2);
  put(z->bytes, &z->size, z->members, 2);
  put(z->bytes, &z->size, z->directory_size, 4);
  put(z->bytes, &z->size, start, 4);
  put(z->bytes, &z->size, 0, 2);
}

/* [4 1 0; 2 5 0; 0 3 6] */
typedef struct {
  const char *format;
  int wide, deflated; /* int64 indices; packed */
  const char *data_type;
} variant;

static void make(archive *z, variant v) {
  static const int32_t csr_start[] = {0, 2, 4, 6}, csr_index[] = {0, 1, 1, 0, 1, 2}; /* row 1 is not sorted */
  static const int32_t csc_start[] = {0, 2, 5, 6}, csc_index[] = {0, 1, 0, 1, 2, 2};
  static const int32_t row[] = {2, 0, 0, 1, 1, 2}, column[] = {2, 0, 1, 0, 1, 1};
  static const double csr[] = {4, 1, 5, 2, 3, 6}, csc[] = {4, 2, 1, 5, 3, 6}, coo[] = {6, 4, 1, 2, 5, 3};
  int is_csr = !strcmp(v.format, "csr"), is_csc = !strcmp(v.format, "csc");
  const double *values = is_csr ? csr : is_csc ? csc : coo;
  const int32_t *lists[2] = {is_csr ? csr_index : is_csc ? csc_index : row, is_csr ? csr_start : is_csc ? csc_start : column};
  const char *names[2] = {is_csr || is_csc ? "indices.npy" : "row.npy", is_csr || is_csc ? "indptr.npy" : "col.npy"};
  int lengths[2] = {6, is_csr || is_csc ? 4 : 6};
  memset(z, 0, sizeof *z);
  for (int l = 0; l < 2; l++) {
    int64_t wide[6];
    for (int i = 0; i < lengths[l]; i++) wide[i] = lists[l][i];
    char shape[16];
    snprintf(shape, sizeof shape, "(%d,)", lengths[l]);
    add_array(z, names[l], v.wide ? "<i8" : "<i4", shape, v.wide ? (const void *)wide : lists[l], (size_t)lengths[l] * (v.wide ? 8 : 4),
              v.deflated);
  }
  add_array(z, "format.npy", "|S3", "()", v.format, 3, v.deflated);
  add_array(z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, v.deflated);
  float single[6];
  int32_t integer[6];
  int64_t wide[6];
  for (int i = 0; i < 6; i++) wide[i] = integer[i] = (int32_t)(single[i] = (float)values[i]);
  const void *data = !strcmp(v.data_type, "<f4")   ? (const void *)single
                     : !strcmp(v.data_type, "<i4") ? (const void *)integer
                     : !strcmp(v.data_type, "<i8") ? (const void *)wide
                                                   : (const void *)values;
  add_array(z, "data.npy", v.data_type, "(6,)", data, 6 * (size_t)(v.data_type[2] - '0'), v.deflated);
  finish(z);
}

static void test_variants(void **state) {
  static const char *const formats[] = {"csr", "csc", "coo"}, *const types[] = {"<f8", "<f4", "<i8", "<i4"};
  static const int32_t columns[] = {0, 1, 0, 1, 1, 2};
  static const double values[] = {4, 1, 2, 5, 3, 6};
  for (int i = 0; i < 48; i++) {
    archive z;
    ht_matrix *a;
    make(&z, (variant){formats[i % 3], i / 3 % 2, i / 6 % 2, types[i / 12]});
    if (read_bytes(*state, z.bytes, z.size, &a) != HT_OK) fail_msg("variant %d: %s", i, ht_context_error(*state));
    assert_int_equal(ht_matrix_rows(a), 3);
    assert_int_equal(ht_matrix_nonzeros(a), 6);
    assert_memory_equal(a->columns, columns, sizeof columns);
    assert_memory_equal(a->values, values, sizeof values);
    ht_matrix_destroy(a);
  }
}

static void test_refused(void **state) {
  archive z;
  ht_matrix *a;
  double six[6] = {0};
  int32_t index[6] = {0};
#define REFUSED(status, words)                                                                                                             \
  do {                                                                                                                                     \
    finish(&z);                                                                                                                            \
    assert_int_equal(read_bytes(*state, z.bytes, z.size, &a), status);                                                                     \
    if (!strstr(ht_context_error(*state), words)) fail_msg("%s", ht_context_error(*state));                                                \
    memset(&z, 0, sizeof z);                                                                                                               \
  } while (0)
  memset(&z, 0, sizeof z);
  REFUSED(HT_BAD_FORMAT, "");
  add_array(&z, "data.npy", "<f8", "(6,)", six, sizeof six, 0);
  REFUSED(HT_BAD_FORMAT, "no member 'format.npy'");
  add_array(&z, "format.npy", "|S3", "()", "bsr", 3, 0);
  REFUSED(HT_UNSUPPORTED, "'bsr'");
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 4}, 16, 0);
  REFUSED(HT_BAD_MATRIX, "square");
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3000000000, 3000000000}, 16, 0);
  REFUSED(HT_UNSUPPORTED, "32-bit");
  add_array(&z, "format.npy", "|S3", "()", "coo", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", "<c16", "(3,)", six, sizeof six, 0);
  REFUSED(HT_UNSUPPORTED, "complex");
  add_array(&z, "format.npy", "|S3", "()", "coo", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", ">f8", "(6,)", six, sizeof six, 0);
  REFUSED(HT_UNSUPPORTED, "big-endian");
  index[3] = 3;
  add_array(&z, "format.npy", "|S3", "()", "coo", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", "<f8", "(6,)", six, sizeof six, 0);
  add_array(&z, "row.npy", "<i4", "(6,)", index, sizeof index, 0);
  REFUSED(HT_BAD_FORMAT, "entry 3, counted from 0, is 3");
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", "<f8", "(6,)", six, sizeof six, 0);
  add_array(&z, "indptr.npy", "<i4", "(4,)", (int32_t[4]){0, 4, 2, 6}, 16, 0);
  REFUSED(HT_BAD_FORMAT, "indptr");
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", "<f8", "(999999999999999999,)", six, sizeof six, 0);
  REFUSED(HT_BAD_FORMAT, "truncated");
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){-10, -10}, 16, 0);
  REFUSED(HT_BAD_MATRIX, "negative: (-10, -10)");
  static const char *const shapes[][2] = {{"(6, 1)", "it has 2"}, {"()", "it has 0"}, {"(-6,)", "shape is negative"}};
  for (int k = 0; k < 3; k++) {
    add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
    add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
    add_array(&z, "data.npy", "<f8", shapes[k][0], six, sizeof six, 0);
    REFUSED(HT_BAD_FORMAT, shapes[k][1]);
  }
  add_array(&z, "format.npy", "|S3", "()", "csr", 3, 0);
  add_array(&z, "shape.npy", "<i8", "(2,)", (int64_t[2]){3, 3}, 16, 0);
  add_array(&z, "data.npy", "|O", "(6,)", six, sizeof six, 0);
  REFUSED(HT_UNSUPPORTED, "the array's type '|O' is not read");
}

/* Any prefix and any changed byte: a matrix or a sentence, and never a changed value (the checksum sees it). */
static void test_damage(void **state) {
  for (int deflated = 0; deflated < 2; deflated++) {
    archive z, damaged;
    ht_matrix *a;
    make(&z, (variant){"csr", 0, deflated, "<f8"});
    for (size_t length = 0; length < z.size; length++) {
      unsigned char *copy = malloc(length + 1);
      memcpy(copy, z.bytes, length);
      if (read_bytes(*state, copy, length, &a) == HT_OK || a) fail_msg("%zu bytes were read", length);
      free(copy);
    }
    for (size_t at = 0; at < z.size; at++)
      for (int bit = 0; bit < 8; bit++) {
        damaged = z;
        damaged.bytes[at] ^= (unsigned char)(1 << bit);
        if (read_bytes(*state, damaged.bytes, damaged.size, &a) == HT_OK)
          assert_true(a->nnz == 6 && a->values[0] == 4 && a->values[5] == 6);
        ht_matrix_destroy(a);
      }
  }
}

/* ---- .npy ---- */

static size_t make_npy(unsigned char *bytes, const char *type, int fortran, const char *shape, const void *data, size_t size) {
  ht_npy_header((char *)bytes, type, fortran, shape);
  memcpy(bytes + HT_NPY_HEADER, data, size);
  return HT_NPY_HEADER + size;
}

static void test_vectors(void **state) {
  unsigned char bytes[512];
  double *values, six[6] = {1, 2, 3, 4, 5, 6}, by_column[6] = {1, 3, 5, 2, 4, 6};
  int columns;
#define READ(type, fortran, shape, data, n)                                                                                                \
  read_vector_bytes(*state, bytes, make_npy(bytes, type, fortran, shape, data, sizeof data), n, &columns, &values)
  assert_int_equal(READ("<f8", 0, "(6,)", six, 6), HT_OK);
  assert_int_equal(columns, 1);
  assert_memory_equal(values, six, sizeof six);
  ht_vector_free(*state, values);
  assert_int_equal(READ("<f8", 0, "(3, 2)", six, 3), HT_OK); /* rows lie one after the other */
  assert_int_equal(columns, 2);
  assert_memory_equal(values, by_column, sizeof six);
  ht_vector_free(*state, values);
  assert_int_equal(READ("<f8", 1, "(3, 2)", six, 3), HT_OK);
  assert_memory_equal(values, six, sizeof six);
  ht_vector_free(*state, values);
  assert_int_equal(READ("<f8", 0, "(1, 6)", six, 6), HT_OK); /* a row */
  assert_memory_equal(values, six, sizeof six);
  ht_vector_free(*state, values);
  int32_t integers[2] = {7, -8};
  assert_int_equal(READ("<i4", 0, "(2,)", integers, 2), HT_OK);
  assert_true(values[0] == 7 && values[1] == -8);
  ht_vector_free(*state, values);
  assert_int_equal(READ("<f8", 0, "(6,)", six, 5), HT_BAD_VECTOR);
  assert_int_equal(READ("<f8", 0, "(2, 3, 1)", six, 6), HT_UNSUPPORTED);
  assert_int_equal(READ("<f8", 0, "(7,)", six, 7), HT_BAD_FORMAT);
  assert_int_equal(READ("|b1", 0, "(6,)", six, 6), HT_UNSUPPORTED);
  six[4] = 1 / (six[0] - 1);
  assert_int_equal(READ("<f8", 0, "(6,)", six, 6), HT_BAD_VECTOR);
  assert_null(values);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(test_variants), TEST(test_refused), TEST(test_damage), TEST(test_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
