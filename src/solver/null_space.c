/* Null vectors that can be seen in a matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/null_space.h"
#include <math.h>
#include <stdio.h>

enum { PARALLEL_FROM = 20000 };

int ht_row_is_empty(const ht_matrix *a, int64_t i) {
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
    if (a->values[k] != 0) return 0;
  return 1;
}

void ht_null_space_find(const ht_matrix *a, const double *diagonal, ht_null_space *space) {
  *space = (ht_null_space){.first_empty = -1, .constant = ht_matrix_rows_add_to_zero(a)};
  int64_t empty = 0, first = a->n;
#pragma omp parallel for schedule(static) num_threads(a->ctx->threads) reduction(+ : empty) reduction(min : first) if (a->n > PARALLEL_FROM)
  for (int64_t i = 0; i < a->n; i++) {
    if (diagonal[i] != 0 || !ht_row_is_empty(a, i)) continue;
    empty++;
    if (i < first) first = i;
  }
  space->empty_rows = empty;
  if (empty) space->first_empty = first;
  if (space->empty_rows == a->n) space->constant = 0;
}

double ht_null_space_part(const ht_null_space *space, const ht_matrix *a, const double *b, char *sentence, size_t size) {
  double sum = 0, largest = 0;
  int64_t where = -1;
  for (int64_t i = 0; i < a->n; i++) sum += b[i];
  for (int64_t i = space->first_empty; space->empty_rows && i < a->n; i++) {
    if (!(fabs(b[i]) > largest) || !ht_row_is_empty(a, i)) continue;
    largest = fabs(b[i]);
    where = i;
  }
  double constant = space->constant ? fabs(sum) / sqrt((double)a->n) : 0;
  if (constant > largest)
    snprintf(sentence, size, "every row of A adds up to 0 and b does not: its entries add up to %.3e; subtract their mean from b", sum);
  else if (where >= 0)
    snprintf(sentence, size, "row %lld of A, counted from 1, is empty and b has %.3e there; b is inconsistent", (long long)where + 1,
             b[where]);
  return fmax(constant, largest);
}
