/* Walks over the rows of a matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/facts_scan.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include "halftone/precision.h"

static int is_exact(ht_precision p, double value) { return ht_precision_round(p, value) == value; }

static void scan_value(double value, ht_facts *f) {
  double magnitude = fabs(value);
  f->explicit_zeros += value == 0;
  f->exact_bf16 += is_exact(HT_BF16, value);
  f->exact_f16 += is_exact(HT_F16, value);
  f->exact_f32 += is_exact(HT_F32, value);
  if (value == 0) return;
  f->value_min = fmin(f->value_min, magnitude);
  f->value_max = fmax(f->value_max, magnitude);
}

static void scan_diagonal(int64_t row, double value, ht_facts *f) {
  f->diagonal_min = fmin(f->diagonal_min, value);
  f->diagonal_max = fmax(f->diagonal_max, value);
  f->diagonal_missing += value == 0;
  f->diagonal_negative += value < 0;
  if (value <= 0 && f->diagonal_bad_row < 0) f->diagonal_bad_row = row;
}

static int bin_of(int64_t bandwidth) {
  int bin = 0;
  while (bandwidth >> bin) bin++;
  return bin < HT_FACTS_BINS ? bin : HT_FACTS_BINS - 1;
}

static void scan_row(const ht_matrix *a, int64_t i, double *diagonal, ht_facts *f) {
  double others = 0;
  int64_t bandwidth = 0, length = a->row_start[i + 1] - a->row_start[i];
  diagonal[i] = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
    int64_t distance = a->columns[k] > i ? a->columns[k] - i : i - a->columns[k];
    scan_value(a->values[k], f);
    if (!distance)
      diagonal[i] = a->values[k];
    else
      others += fabs(a->values[k]);
    if (distance > bandwidth) bandwidth = distance;
  }
  scan_diagonal(i, diagonal[i], f);
  f->norm_inf = fmax(f->norm_inf, fabs(diagonal[i]) + others);
  /* `others` is rounded: only a margin above the rounding of that sum shows strict dominance, and only one below it that there is none. */
  double margin = (double)length * DBL_EPSILON;
  f->dominant_rows += diagonal[i] >= others * (1 - margin);
  f->strictly_dominant_rows += diagonal[i] > others * (1 + margin);
  f->zero_sum_rows += ht_matrix_row_adds_to_zero(a, i);
  f->empty_rows += !length;
  if (length < f->row_min) f->row_min = length;
  if (length > f->row_max) f->row_max = length;
  if (bandwidth > f->bandwidth) f->bandwidth = bandwidth;
  f->rows_by_bandwidth[bin_of(bandwidth)]++;
}

void ht_facts_scan_rows(const ht_matrix *a, double *diagonal, ht_facts *f) {
  f->n = a->n;
  f->nnz = a->nnz;
  f->explicit_zeros = f->empty_rows = f->row_max = f->bandwidth = 0;
  f->diagonal_missing = f->diagonal_negative = f->zero_sum_rows = f->dominant_rows = f->strictly_dominant_rows = 0;
  f->exact_bf16 = f->exact_f16 = f->exact_f32 = 0;
  f->row_min = a->n ? INT64_MAX : 0;
  f->row_mean = a->n ? (double)a->nnz / (double)a->n : 0;
  f->norm_inf = 0; /* value_min and the like are NaN so far, and fmin and fmax take the other number then */
  for (int64_t i = 0; i < a->n; i++) scan_row(a, i, diagonal, f);
}

static int has_entry(const ht_matrix *a, int64_t row, int64_t column) {
  int64_t low = a->row_start[row], high = a->row_start[row + 1];
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (a->columns[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < a->row_start[row + 1] && a->columns[low] == column;
}

static int64_t count_unmatched(const ht_matrix *a) {
  int64_t count = 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) count += !has_entry(a, a->columns[k], i);
  return count;
}

/* |v| / sqrt(d e) with d, e > 0, without a product that could overflow. */
static double coupling(double v, double d, double e) { return fabs(v) / sqrt(d) / sqrt(e); }

void ht_facts_scan_pairs(const ht_matrix *a, const double *diagonal, ht_facts *f) {
  static const char *const names[] = {"symmetric", "nearly_symmetric", "unsymmetric"};
  snprintf(f->symmetry, sizeof f->symmetry, "%s", names[a->symmetry]);
  f->asymmetry = a->asymmetry;
  f->asymmetry_row = a->asymmetric_row;
  f->asymmetry_column = a->asymmetric_column;
  /* Without explicit zeros, entries that are equal in pairs are there in pairs. */
  f->unmatched = a->symmetry == HT_SYMMETRIC && f->explicit_zeros == 0 ? 0 : count_unmatched(a);
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int64_t j = a->columns[k];
      if (j >= i || !(diagonal[i] > 0 && diagonal[j] > 0)) continue;
      double c = coupling(a->values[k], diagonal[i], diagonal[j]);
      if (c <= f->coupling_max) continue;
      f->coupling_max = c;
      f->coupling_row = i;
      f->coupling_column = j;
    }
}
