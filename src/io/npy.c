/* NumPy's array format (numpy/lib/format.py describes it). SPDX-License-Identifier: BSD-3-Clause */
#include "io/npy.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC = 6, HEADER_MAX = 4096 };

static uint32_t little16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static uint32_t little32(const unsigned char *p) { return little16(p) | little16(p + 2) << 16; }

/* Behind "'key':" and blanks, or NULL. */
static const char *find_key(const char *header, const char *key) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "'%s':", key);
  const char *p = strstr(header, quoted);
  if (!p) return NULL;
  for (p += strlen(quoted); *p == ' ';) p++;
  return p;
}

static ht_status parse_type(ht_context *ctx, ht_npy *a, const char *header) {
  const char *p = find_key(header, "descr");
  HT_CHECK(ctx, p, HT_BAD_FORMAT, "%s: the array's header has no 'descr'", a->name);
  HT_CHECK(ctx, *p == '\'', HT_UNSUPPORTED, "%s: arrays of records are not read; save plain numbers", a->name);
  char order = p[1];
  a->kind = order ? p[2] : 0;
  a->size = 0;
  const char *digits = p + (a->kind ? 3 : 2);
  for (; isdigit((unsigned char)*digits) && a->size < 1000000; digits++) a->size = 10 * a->size + (*digits - '0');
  HT_CHECK(ctx, *digits == '\'' && a->size > 0, HT_UNSUPPORTED, "%s: the array's type '%.*s' is not read; save it as float64", a->name,
           (int)(strcspn(p + 1, "',}") < 40 ? strcspn(p + 1, "',}") : 40), p + 1);
  int swapped = order == '>' && a->size > 1;
  HT_CHECK(ctx, !swapped, HT_UNSUPPORTED, "%s: big-endian arrays are not read; save it with .astype('<f8')", a->name);
  return HT_OK;
}

static ht_status parse_shape(ht_context *ctx, ht_npy *a, const char *header) {
  const char *p = find_key(header, "shape");
  HT_CHECK(ctx, p && *p == '(', HT_BAD_FORMAT, "%s: the array's header has no 'shape'", a->name);
  a->dimensions = 0;
  a->shape[0] = a->shape[1] = 1;
  for (p++; *p != ')'; p += *p == ',') {
    while (*p == ' ') p++;
    if (*p == ')') break;
    HT_CHECK(ctx, *p != '-', HT_BAD_FORMAT, "%s: the array's shape is negative", a->name);
    HT_CHECK(ctx, isdigit((unsigned char)*p), HT_BAD_FORMAT, "%s: the array's shape cannot be understood", a->name);
    HT_CHECK(ctx, a->dimensions < 2, HT_UNSUPPORTED, "%s: the array has more than two dimensions", a->name);
    int64_t extent = 0;
    for (; isdigit((unsigned char)*p); p++) extent = extent > INT64_MAX / 20 ? INT64_MAX / 2 : 10 * extent + (*p - '0');
    a->shape[a->dimensions++] = extent;
    HT_CHECK(ctx, *p == ',' || *p == ')', HT_BAD_FORMAT, "%s: the array's shape cannot be understood", a->name);
  }
  return HT_OK;
}

ht_status ht_npy_parse(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, ht_npy *a) {
  *a = (ht_npy){.name = name};
  HT_CHECK(ctx, size >= 12 && !memcmp(bytes, "\x93NUMPY", MAGIC), HT_BAD_FORMAT, "%s: this is no NumPy array, or it is truncated", name);
  int major = bytes[6];
  HT_CHECK(ctx, major >= 1 && major <= 3, HT_UNSUPPORTED, "%s: version %d of NumPy's array format is unknown", name, major);
  size_t start = major == 1 ? 10 : 12, length = major == 1 ? little16(bytes + 8) : little32(bytes + 8);
  HT_CHECK(ctx, length < HEADER_MAX && length <= size - start, HT_BAD_FORMAT, "%s: the array's header is truncated or too long", name);
  char header[HEADER_MAX];
  memcpy(header, bytes + start, length);
  header[length] = 0;
  HT_TRY(ctx, parse_type(ctx, a, header));
  const char *order = find_key(header, "fortran_order");
  HT_CHECK(ctx, order, HT_BAD_FORMAT, "%s: the array's header has no 'fortran_order'", name);
  a->fortran = !strncmp(order, "True", 4);
  HT_CHECK(ctx, a->fortran || !strncmp(order, "False", 5), HT_BAD_FORMAT, "%s: 'fortran_order' must be True or False in the array's header",
           a->name);
  HT_TRY(ctx, parse_shape(ctx, a, header));
  a->data = bytes + start + length;
  uint64_t room = size - start - length, width = (uint64_t)a->size * (a->kind == 'U' ? 4 : 1);
  /* Divide, since the product may overflow. */
  int fits = a->shape[0] == 0 || a->shape[1] == 0 || (uint64_t)a->shape[0] <= room / width / (uint64_t)a->shape[1];
  HT_CHECK(ctx, fits, HT_BAD_FORMAT, "%s: the array is truncated: its header promises more than the file holds", name);
  return HT_OK;
}

/* Arrays may lie at any address. */
static double load_double(const unsigned char *p) {
  double v;
  memcpy(&v, p, sizeof v);
  return v;
}
static float load_float(const unsigned char *p) {
  float v;
  memcpy(&v, p, sizeof v);
  return v;
}
static int64_t load_int64(const unsigned char *p) {
  int64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static int32_t load_int32(const unsigned char *p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

ht_status ht_npy_integers(ht_context *ctx, const ht_npy *a, int64_t *values) {
  HT_CHECK(ctx, a->kind == 'i' && (a->size == 8 || a->size == 4), HT_UNSUPPORTED, "%s: int32 or int64 is expected, and the type is %c%d",
           a->name, a->kind, a->size);
  int64_t count = ht_npy_count(a);
  for (int64_t k = 0; k < count; k++) values[k] = a->size == 8 ? load_int64(a->data + 8 * k) : load_int32(a->data + 4 * k);
  return HT_OK;
}

ht_status ht_npy_indices(ht_context *ctx, const ht_npy *a, int64_t limit, int32_t *values) {
  HT_CHECK(ctx, a->kind == 'i' && (a->size == 8 || a->size == 4), HT_UNSUPPORTED, "%s: int32 or int64 is expected, and the type is %c%d",
           a->name, a->kind, a->size);
  int64_t count = ht_npy_count(a);
  for (int64_t k = 0; k < count; k++) {
    int64_t index = a->size == 8 ? load_int64(a->data + 8 * k) : load_int32(a->data + 4 * k);
    HT_CHECK(ctx, index >= 0 && index < limit, HT_BAD_FORMAT, "%s: entry %lld, counted from 0, is %lld, not within 0 to %lld", a->name,
             (long long)k, (long long)index, (long long)limit - 1);
    values[k] = (int32_t)index;
  }
  return HT_OK;
}

static ht_status refuse_type(ht_context *ctx, const ht_npy *a) {
  HT_CHECK(ctx, a->kind != 'c', HT_UNSUPPORTED, "%s: complex numbers are not supported; only real ones are", a->name);
  HT_FAIL(ctx, HT_UNSUPPORTED, "%s: float64, float32, int64 or int32 is expected, and the type is %c%d; save it with .astype('<f8')",
          a->name, isprint((unsigned char)a->kind) ? a->kind : '?', a->size);
}

ht_status ht_npy_doubles(ht_context *ctx, const ht_npy *a, double *values) {
  int64_t count = ht_npy_count(a);
  if (a->kind == 'f' && a->size == 8)
    for (int64_t k = 0; k < count; k++) values[k] = load_double(a->data + 8 * k);
  else if (a->kind == 'f' && a->size == 4)
    for (int64_t k = 0; k < count; k++) values[k] = (double)load_float(a->data + 4 * k);
  else if (a->kind == 'i' && a->size == 8)
    for (int64_t k = 0; k < count; k++) values[k] = (double)load_int64(a->data + 8 * k);
  else if (a->kind == 'i' && a->size == 4)
    for (int64_t k = 0; k < count; k++) values[k] = (double)load_int32(a->data + 4 * k);
  else
    return refuse_type(ctx, a);
  for (int64_t k = 0; k < count; k++)
    HT_CHECK(ctx, isfinite(values[k]), HT_BAD_MATRIX, "%s: entry %lld, counted from 0, is %g, not finite", a->name, (long long)k,
             values[k]);
  return HT_OK;
}

void ht_npy_header(char header[HT_NPY_HEADER], const char *type, int fortran, const char *shape) {
  memset(header, ' ', HT_NPY_HEADER);
  memcpy(header, "\x93NUMPY\1\0", 8);
  header[8] = HT_NPY_HEADER - 10;
  header[9] = 0;
  char text[HT_NPY_HEADER];
  int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, fortran ? "True" : "False", shape);
  memcpy(header + 10, text, (size_t)length);
  header[HT_NPY_HEADER - 1] = '\n';
}
