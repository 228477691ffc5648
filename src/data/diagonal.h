/* The diagonal of a matrix, and what a positive definite matrix asks of it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_DIAGONAL_H
#define HT_DATA_DIAGONAL_H
#include "data/matrix.h"

/* n entries, 0 where none is stored. */
void ht_matrix_diagonal(const ht_matrix *matrix, double *diagonal);
/* The first row whose diagonal entry is not positive (the matrix is then not positive definite), with that entry in
 * *value; -1 when there is none. */
int64_t ht_matrix_bad_diagonal(const ht_matrix *matrix, double *value);
/* The same as an error, and that every reciprocal is finite: HT_BAD_MATRIX with the row in the sentence. */
ht_status ht_matrix_check_diagonal(ht_context *ctx, const ht_matrix *matrix);

#endif
