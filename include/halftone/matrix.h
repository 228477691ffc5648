/* Matrices and vectors in host memory. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_MATRIX_H
#define HALFTONE_MATRIX_H
#include <stdint.h>
#include "halftone/context.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A square sparse matrix in canonical CSR: FP64 values, both triangles stored, columns ascending and distinct within
 * each row, indices from 0. Pattern and values are immutable but for ht_matrix_set_values. */
typedef struct ht_matrix ht_matrix;

typedef enum ht_copy_mode {
  HT_COPY,  /* the library copies the arrays */
  HT_BORROW /* the caller keeps the arrays alive and unchanged until the matrix is destroyed; they must be canonical */
} ht_copy_mode;

/* How far the stored values are from symmetric. */
typedef enum ht_symmetry {
  HT_SYMMETRIC,        /* a_ij and a_ji are the same bits */
  HT_NEARLY_SYMMETRIC, /* they differ by at most 8 units in the last place of the larger, or of sqrt(a_ii a_jj), which
                          bounds both when A is positive definite; solvers use the average */
  HT_UNSYMMETRIC
} ht_symmetry;

/* Make a matrix from CSR arrays in host memory: row_start has n+1 entries from 0 to nnz, columns and values nnz.
 * Rows need not be sorted with HT_COPY; duplicates are summed. Cost with HT_COPY: 12 bytes a nonzero.
 * Errors: HT_BAD_ARGUMENT, HT_BAD_MATRIX (index out of range, value not finite: the sentence names row and column),
 * HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_matrix_create_csr(ht_context *ctx, int64_t n, const int64_t *row_start, const int32_t *columns,
                                                    const double *values, ht_copy_mode mode, ht_matrix **matrix);
HT_API void ht_matrix_destroy(ht_matrix *matrix); /* NULL is allowed */

/* Read a matrix file: Matrix Market (.mtx, .mtx.gz, "-" for standard input) or SciPy .npz. The format is told from the
 * content. Errors: HT_BAD_FILE, HT_BAD_FORMAT (file and line), HT_BAD_MATRIX, HT_UNSUPPORTED, HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_matrix_read(ht_context *ctx, const char *path, ht_matrix **matrix);
/* Write by the path's ending: .mtx, .mtx.gz (symmetric matrices as one triangle, round-trip exact), .npz; "-" is standard
 * output, as .mtx. The file is replaced atomically: on any error the old file, or none, is there. */
HT_API HT_MUST_CHECK ht_status ht_matrix_write(const ht_matrix *matrix, const char *path);

/* New values (copied) on the same pattern, in the order of ht_matrix_csr: ascending columns in each row, duplicates summed, whatever order
 * HT_COPY was given; symmetry is measured again. Errors: HT_BAD_MATRIX when one is
 * not finite, HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_matrix_set_values(ht_matrix *matrix, const double *values);

HT_API int64_t ht_matrix_rows(const ht_matrix *matrix);
HT_API int64_t ht_matrix_nonzeros(const ht_matrix *matrix);
HT_API ht_symmetry ht_matrix_symmetry(const ht_matrix *matrix);
/* 1 when every row adds up to 0 but for rounding, as for a pure Neumann problem: then A is singular, with the constant vector in its
 * null space. Ends at the first row that does not. */
HT_API int ht_matrix_rows_add_to_zero(const ht_matrix *matrix);
/* Borrowed views of the arrays, valid until the matrix is destroyed; any pointer may be NULL. */
HT_API void ht_matrix_csr(const ht_matrix *matrix, const int64_t **row_start, const int32_t **columns, const double **values);

/* y = A x in FP64 with the matrix as given; host memory, length n each, y and x distinct. */
HT_API HT_MUST_CHECK ht_status ht_matrix_multiply(const ht_matrix *matrix, const double *x, double *y);

/* Read a vector of length n into the caller's array: a Matrix Market array or coordinate file, .npy, "-" for standard input,
 * or one of the words "ones", "A*ones", "A*random:SEED", "random:SEED" (A* needs `matrix`, else NULL is allowed; random
 * entries are uniform in [-1, 1) and depend on SEED, a whole number, and their index alone).
 * Errors: HT_BAD_VECTOR when the length is not n. */
HT_API HT_MUST_CHECK ht_status ht_vector_read(ht_context *ctx, const char *source, const ht_matrix *matrix, int64_t n, double *values);
/* The same for several right-hand sides: an n x k file gives *columns = k and the block, column-major, to be freed with
 * ht_vector_free; a word gives one column. */
HT_API HT_MUST_CHECK ht_status ht_vector_read_block(ht_context *ctx, const char *source, const ht_matrix *matrix, int64_t n, int *columns,
                                                    double **values);
HT_API void ht_vector_free(ht_context *ctx, double *values); /* NULL is allowed */
/* Write by the path's ending (.mtx, .mtx.gz, .npy; "-" is standard output, as .mtx), replacing the file atomically. columns > 1:
 * column-major block. */
HT_API HT_MUST_CHECK ht_status ht_vector_write(ht_context *ctx, const char *path, int64_t n, int columns, const double *values);

#ifdef __cplusplus
}
#endif
#endif
