/* Null vectors that can be seen in a matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/null_space.h"
#include <math.h>
#include <stdio.h>

int ht_row_is_empty(const ht_matrix *a, int64_t i) {
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
    if (a->values[k] != 0) return 0;
  return 1;
}

void ht_null_space_find(const ht_matrix *a, ht_null_space *space) {
  *space = (ht_null_space){.first_empty = -1, .constant = ht_matrix_rows_add_to_zero(a)};
  for (int64_t i = 0; i < a->n; i++)
    if (ht_row_is_empty(a, i) && space->empty_rows++ == 0) space->first_empty = i;
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
