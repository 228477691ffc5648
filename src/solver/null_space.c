/* Null vectors that can be seen in a matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/null_space.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

/* Sum of the row and of its magnitudes. */
static void add_row(const ht_matrix *a, int64_t i, double *sum, double *size) {
  *sum = *size = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
    *sum += a->values[k];
    *size += fabs(a->values[k]);
  }
}

void ht_null_space_find(const ht_matrix *a, ht_null_space *space) {
  int64_t empty = 0, first = a->n, not_zero = 0;
  int threads = a->ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : empty, not_zero) reduction(min : first) if (a->nnz > 20000)
  for (int64_t i = 0; i < a->n; i++) {
    double sum, size;
    add_row(a, i, &sum, &size);
    not_zero += fabs(sum) > DBL_EPSILON * (double)(a->row_start[i + 1] - a->row_start[i]) * size;
    empty += size == 0;
    if (size == 0 && i < first) first = i;
  }
  *space = (ht_null_space){.empty_rows = empty, .first_empty = empty ? first : -1, .constant = a->n > 0 && !not_zero && empty < a->n};
}

double ht_null_space_part(const ht_null_space *space, const ht_matrix *a, const double *b, char *sentence, size_t size) {
  double sum = 0, largest = 0;
  int64_t where = -1;
  for (int64_t i = 0; i < a->n; i++) sum += b[i];
  for (int64_t i = space->first_empty; space->empty_rows && i < a->n; i++) {
    double row_sum, row_size;
    if (!(fabs(b[i]) > largest)) continue;
    add_row(a, i, &row_sum, &row_size);
    if (row_size > 0) continue;
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
