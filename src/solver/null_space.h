/* Null vectors that can be seen in a matrix before any iteration. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_NULL_SPACE_H
#define HT_SOLVER_NULL_SPACE_H
#include <stddef.h>
#include "data/matrix.h"

typedef struct ht_null_space {
  int64_t empty_rows, first_empty; /* unit vectors: rows without a nonzero */
  int constant;                    /* every row adds up to zero within its rounding: the constant vector */
} ht_null_space;

int ht_row_is_empty(const ht_matrix *matrix, int64_t row);                                      /* no entry but zeros */
void ht_null_space_find(const ht_matrix *matrix, const double *diagonal, ht_null_space *space); /* diagonal: of the matrix */
/* 2-norm of the part of b in that space. No x can bring ||b - A x|| below it. `sentence` says which part it is. */
double ht_null_space_part(const ht_null_space *space, const ht_matrix *matrix, const double *b, char *sentence, size_t size);

#endif
