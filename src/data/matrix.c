/* ht_matrix: canonical CSR. SPDX-License-Identifier: BSD-3-Clause */
#include "data/matrix.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static uint64_t next_version(void) {
  static atomic_ullong counter;
  return atomic_fetch_add(&counter, 1) + 1;
}

/* Position of column `c` in row `r`, or -1. */
static int64_t find_entry(const ht_matrix *a, int64_t r, int32_t c) {
  int64_t low = a->row_start[r], high = a->row_start[r + 1];
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->columns[middle] < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low < a->row_start[r + 1] && a->columns[low] == c ? low : -1;
}

/* Largest |a_ij - a_ji| and whether it is within 8 units in the last place of the larger. */
static void measure_symmetry(ht_matrix *a) {
  a->symmetry = HT_SYMMETRIC;
  a->asymmetric_row = a->asymmetric_column = -1;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int64_t j = a->columns[k];
      if (j == i) continue;
      int64_t t = find_entry(a, j, (int32_t)i);
      double v = a->values[k], w = t < 0 ? 0 : a->values[t], difference = fabs(v - w);
      if (v == w) continue;
      double larger = fmax(fabs(v), fabs(w));
      int near = difference <= 8 * (nextafter(larger, INFINITY) - larger);
      if (!near)
        a->symmetry = HT_UNSYMMETRIC;
      else if (a->symmetry == HT_SYMMETRIC)
        a->symmetry = HT_NEARLY_SYMMETRIC;
      if (difference > a->asymmetry) {
        a->asymmetry = difference;
        a->asymmetric_row = i;
        a->asymmetric_column = j;
      }
    }
}

ht_status ht_matrix_adopt(ht_context *ctx, int64_t n, int64_t *row_start, int32_t *columns, double *values, const char *source,
                          ht_matrix **matrix) {
  ht_matrix *a;
  *matrix = NULL;
  ht_status status = ht_allocate_zeroed(ctx, 1, sizeof *a, &a);
  if (status != HT_OK) {
    ht_release(ctx, row_start);
    ht_release(ctx, columns);
    ht_release(ctx, values);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  *a = (ht_matrix){
      .ctx = ctx, .n = n, .nnz = row_start[n], .row_start = row_start, .columns = columns, .values = values, .version = next_version()};
  snprintf(a->source, sizeof a->source, "%s", source);
  measure_symmetry(a);
  *matrix = a;
  return HT_OK;
}

void ht_matrix_destroy(ht_matrix *a) {
  if (!a) return;
  if (!a->borrowed) {
    ht_release(a->ctx, a->row_start);
    ht_release(a->ctx, a->columns);
    ht_release(a->ctx, a->values);
  }
  ht_release(a->ctx, a);
}

int64_t ht_matrix_rows(const ht_matrix *a) { return a->n; }
int64_t ht_matrix_nonzeros(const ht_matrix *a) { return a->nnz; }
ht_symmetry ht_matrix_symmetry(const ht_matrix *a) { return a->symmetry; }

void ht_matrix_csr(const ht_matrix *a, const int64_t **row_start, const int32_t **columns, const double **values) {
  if (row_start) *row_start = a->row_start;
  if (columns) *columns = a->columns;
  if (values) *values = a->values;
}

ht_status ht_matrix_multiply(const ht_matrix *a, const double *x, double *y) {
  const ht_backend *cpu;
  HT_TRY(a->ctx, ht_backend_find(a->ctx, "cpu", &cpu));
  ht_csr_view view = ht_matrix_view(a);
  cpu->csr_multiply(a->ctx, &view, x, y);
  return HT_OK;
}
