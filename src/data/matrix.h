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
  int borrowed_pattern, borrowed_values;
  uint64_t version; /* changes with the values */
  /* symmetry: measured when the matrix is made */
  ht_symmetry symmetry;
  int64_t asymmetric_row, asymmetric_column; /* of the largest |a_ij - a_ji|, the first in row order; -1 when symmetric */
  double asymmetry;                          /* that difference */
  /* found on the way */
  double *diagonal;   /* owned; NULL: not known, then it has to be looked for */
  double norm_inf;    /* the largest sum of |a_ij| over a row; 0: not known */
  int64_t duplicates; /* entries that were summed away */
  char source[256];   /* file or generator it came from */
};

/* Take ownership of canonical CSR arrays from ht_allocate (freed on error too) and measure symmetry. */
ht_status ht_matrix_adopt(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                          ht_matrix **matrix);
/* The same for rows in any order: they are sorted, and duplicates summed in the order given. */
ht_status ht_matrix_adopt_rows(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                               ht_matrix **matrix);
/* Build canonical CSR from coordinate entries in any order, indices within 0..n-1; duplicates are summed in input order (a
 * stable sort), so the same input gives the same bits. When `mirror` is set, each off-diagonal entry stands for both
 * triangles; entries may stand in the lower or the upper triangle or some in each. When every off-diagonal pair is there
 * twice with the same value the matrix is taken as given, with a warning; when only some are, or values differ, it is
 * HT_BAD_MATRIX. The entry arrays come from ht_allocate and are released here as early as possible, also on error. */
ht_status ht_matrix_from_entries(ht_context *ctx, int64_t n, int64_t entries, int32_t *rows, int32_t *columns, double *values, int mirror,
                                 const char *source, ht_matrix **matrix);
static inline ht_csr_view ht_matrix_view(const ht_matrix *a) { return (ht_csr_view){a->n, a->nnz, a->row_start, a->columns, a->values}; }

/* The values of (A + A')/2 on the pattern of a nearly symmetric (or symmetric) A, bitwise symmetric; an entry without a
 * partner, which is then below the tolerance, becomes 0. `values` has nnz entries and may not be A's own. */
void ht_matrix_averaged_values(const ht_matrix *a, double *values);

/* ---- Steps of the above (rows.c, symmetry.c, matrix.c) ---- */

/* ht_matrix_adopt without measuring: the matrix counts as symmetric until ht_matrix_measure_symmetry. */
ht_status ht_matrix_wrap(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, int64_t duplicates,
                         const char *source, ht_matrix **matrix);

/* Sort each row by column, keeping the order of equal ones, and sum those; row_start is updated. *duplicates counts the
 * entries summed away, in the lower triangle and the diagonal only when `lower_only`. HT_BAD_MATRIX when a sum overflows. */
ht_status ht_rows_make_canonical(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, int lower_only,
                                 int64_t *duplicates);
/* The one warning that duplicates were summed; none when there were none. */
void ht_warn_of_duplicates(ht_context *ctx, const char *source, int64_t duplicates);
/* Whether a row adds up to 0 but for the rounding of its sum. */
int ht_matrix_row_adds_to_zero(const ht_matrix *a, int64_t row);
/* Position of (row, column), or -1. */
int64_t ht_matrix_find(const ht_csr_view *a, int64_t row, int32_t column);
/* Fill in a->symmetry, the asymmetric_ fields, a->diagonal and a->norm_inf. */
void ht_matrix_measure_symmetry(ht_matrix *a);
/* The largest sum of |a_ij| over a row. */
double ht_matrix_norm_inf(const ht_matrix *a);

#endif
