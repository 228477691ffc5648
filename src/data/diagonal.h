/* The diagonal of a matrix, and what a positive definite matrix asks of it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_DIAGONAL_H
#define HT_DATA_DIAGONAL_H
#include "data/matrix.h"

/* n entries, 0 where none is stored. */
void ht_matrix_diagonal(const ht_matrix *matrix, double *diagonal);
/* A positive definite matrix has a positive diagonal; solvers divide by it. HT_BAD_MATRIX, with the row in the sentence,
 * when an entry is not positive or its reciprocal overflows. */
ht_status ht_matrix_check_diagonal(ht_context *ctx, const ht_matrix *matrix);

#endif
