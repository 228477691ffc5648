/* Inside of ht_matrix. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_MATRIX_H
#define HT_DATA_MATRIX_H
#include "base/context.h"
#include "backend/backend.h"
#include "halftone/matrix.h"

struct ht_matrix {
  ht_context *ctx;
  int64_t n, nnz;
  int64_t *row_start; /* owned unless borrowed */
  int32_t *columns;
  double *values;
  int borrowed;
  uint64_t version; /* changes with the values */
  /* symmetry: measured when the matrix is made */
  ht_symmetry symmetry;
  int64_t asymmetric_row, asymmetric_column; /* of the largest |a_ij - a_ji|, -1 when symmetric */
  double asymmetry;                          /* that difference */
  int64_t duplicates;                        /* entries that were summed away */
  char source[256];                          /* file or generator it came from */
};

/* Take ownership of canonical CSR arrays from ht_allocate (freed on error too) and measure symmetry. */
ht_status ht_matrix_adopt(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                          ht_matrix **matrix);
/* Build canonical CSR from coordinate entries in any order; duplicates are summed in input order (a stable sort), so the
 * same input gives the same bits. When `mirror` is set, each off-diagonal entry stands for both triangles. The entry arrays
 * come from ht_allocate and are released here as early as possible, also on error. */
ht_status ht_matrix_from_entries(ht_context *ctx, int64_t n, int64_t entries, int32_t *rows, int32_t *columns, double *values, int mirror,
                                 const char *source, ht_matrix **matrix);
static inline ht_csr_view ht_matrix_view(const ht_matrix *a) { return (ht_csr_view){a->n, a->nnz, a->row_start, a->columns, a->values}; }

#endif
