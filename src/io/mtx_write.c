/* Matrix Market text from matrices and blocks of vectors. SPDX-License-Identifier: BSD-3-Clause */
#include "io/mtx_write.h"
#include <stdio.h>
#include "io/number.h"
#include "io/text_write.h"

enum { INDEX_TEXT = 11, HEADER_TEXT = 160 };

typedef struct writer {
  ht_csr_view a;
  int symmetric;
} writer;

/* The row that holds nonzero k. */
static int64_t row_of(const ht_csr_view *a, int64_t k) {
  int64_t low = 0, high = a->n;
  while (low + 1 < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->row_start[middle] <= k)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* A symmetric matrix's upper triangle row by row is its lower triangle column by column, the usual order of such files. */
static size_t format_entries(const void *data, int64_t first, int64_t end, char *text) {
  const writer *w = data;
  char *p = text;
  if (first == end) return 0;
  for (int64_t k = first, i = row_of(&w->a, first); k < end; k++) {
    while (w->a.row_start[i + 1] <= k) i++;
    int64_t j = w->a.columns[k];
    if (w->symmetric && j < i) continue;
    p += ht_format_integer((w->symmetric ? j : i) + 1, p);
    *p++ = ' ';
    p += ht_format_integer((w->symmetric ? i : j) + 1, p);
    *p++ = ' ';
    p += ht_format_double(w->a.values[k], p);
    *p++ = '\n';
  }
  return (size_t)(p - text);
}

static int64_t count_upper(const ht_csr_view *a) {
  int64_t count = 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) count += a->columns[k] >= i;
  return count;
}

/* Exact symmetry does not say that the pattern is symmetric: a zero may lack its partner, and must then not be lost. */
static int pattern_is_symmetric(const ht_csr_view *a) {
  int64_t diagonal = 0, upper = count_upper(a);
  for (int64_t i = 0; i < a->n; i++) diagonal += ht_matrix_find(a, i, (int32_t)i) >= 0;
  if (2 * upper - diagonal != a->nnz) return 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      if (a->columns[k] > i && ht_matrix_find(a, a->columns[k], (int32_t)i) < 0) return 0;
  return 1;
}

ht_status ht_mtx_write_matrix(const ht_matrix *a, int gzip, ht_output *out) {
  writer w = {.a = ht_matrix_view(a)};
  w.symmetric = a->symmetry == HT_SYMMETRIC && pattern_is_symmetric(&w.a);
  char header[HEADER_TEXT];
  snprintf(header, sizeof header, "%%%%MatrixMarket matrix coordinate real %s\n%lld %lld %lld\n", w.symmetric ? "symmetric" : "general",
           (long long)a->n, (long long)a->n, (long long)(w.symmetric ? count_upper(&w.a) : a->nnz));
  return ht_text_write(out, gzip, header, a->nnz, 2 * INDEX_TEXT + HT_NUMBER_TEXT, format_entries, &w);
}

static size_t format_values(const void *data, int64_t first, int64_t end, char *text) {
  const double *values = data;
  char *p = text;
  for (int64_t k = first; k < end; k++) {
    p += ht_format_double(values[k], p);
    *p++ = '\n';
  }
  return (size_t)(p - text);
}

ht_status ht_mtx_write_block(int64_t n, int columns, const double *values, int gzip, ht_output *out) {
  char header[HEADER_TEXT];
  snprintf(header, sizeof header, "%%%%MatrixMarket matrix array real general\n%lld %d\n", (long long)n, columns);
  return ht_text_write(out, gzip, header, n * columns, HT_NUMBER_TEXT, format_values, values);
}
