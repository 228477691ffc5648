/* NumPy's array format, the part that SciPy's files and plain vectors use. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_NPY_H
#define HT_IO_NPY_H
#include "base/context.h"

enum { HT_NPY_HEADER = 128 };

typedef struct ht_npy {
  const char *name; /* for messages */
  char kind;        /* 'f', 'i', 'u', 'S', 'U': as in NumPy's type strings */
  int size;         /* bytes an element (characters, for 'U') */
  int fortran;
  int dimensions;   /* 0, 1 or 2 */
  int64_t shape[2]; /* 1 where there is no such dimension */
  const unsigned char *data;
} ht_npy;

/* Look at `size` bytes; the array's data stays there. Errors: HT_BAD_FORMAT, HT_UNSUPPORTED. */
ht_status ht_npy_parse(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, ht_npy *array);
static inline int64_t ht_npy_count(const ht_npy *a) { return a->shape[0] * a->shape[1]; }
/* Elements as they lie in the file, converted. HT_UNSUPPORTED for other types than real numbers (integers, for the second). */
ht_status ht_npy_doubles(ht_context *ctx, const ht_npy *array, double *values);
ht_status ht_npy_integers(ht_context *ctx, const ht_npy *array, int64_t *values);
/* The same, each from 0 to limit - 1; HT_BAD_MATRIX otherwise. */
ht_status ht_npy_indices(ht_context *ctx, const ht_npy *array, int64_t limit, int32_t *values);
/* Write a header of HT_NPY_HEADER bytes; `type` such as "<f8", shape in NumPy's words such as "(3,)". */
void ht_npy_header(char header[HT_NPY_HEADER], const char *type, int fortran, const char *shape);

#endif
