/* How symmetric a matrix is, and its average with its transpose. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "data/matrix.h"

enum { ROWS_AT_ONCE = 512, PARALLEL_NONZEROS = 20000 };

/* What a range of rows found. Differences come from upper entries against their partners and from entries alone. */
typedef struct finding {
  double largest; /* difference, the first in row order of several equal ones */
  int64_t row, column;
  int differs, far;
  int64_t matched, lower;
  double norm_inf;
} finding;

int64_t ht_matrix_find(const ht_csr_view *a, int64_t row, int32_t column) {
  int64_t low = a->row_start[row], length = a->row_start[row + 1] - low;
  while (length > 1) {
    int64_t half = length / 2;
    low += a->columns[low + half] <= column ? half : 0; /* no branch to mispredict */
    length -= half;
  }
  return length == 1 && a->columns[low] == column ? low : -1;
}

static double diagonal(const ht_csr_view *a, int64_t i) {
  int64_t k = ht_matrix_find(a, i, (int32_t)i);
  return k < 0 ? 0 : a->values[k];
}

/* Within 8 units in the last place of the larger, or of sqrt(a_ii a_jj), which bounds both in a positive definite matrix:
 * rounding in assembly is relative to what was added up, not to what is left after cancellation. */
static int is_near(const ht_csr_view *a, int64_t i, int64_t j, double v, double w) {
  double difference = fabs(v - w), larger = fmax(fabs(v), fabs(w));
  if (difference <= 8 * (nextafter(larger, INFINITY) - larger)) return 1;
  double scale = sqrt(fabs(diagonal(a, i))) * sqrt(fabs(diagonal(a, j)));
  return difference <= 8 * 0x1p-52 * scale;
}

static void compare(const ht_csr_view *a, int64_t i, int64_t j, double v, double w, finding *f) {
  if (v == w) return;
  double difference = fabs(v - w);
  f->differs = 1;
  if (!is_near(a, i, j, v, w)) f->far = 1;
  if (difference > f->largest) {
    f->largest = difference;
    f->row = i;
    f->column = j;
  }
}

/* Upper entries against their partners; lower ones too when `both`, which is needed only if some have none. */
static void look_at_row(const ht_csr_view *a, int64_t i, int both, double *diagonal, finding *f) {
  double sum = 0;
  if (diagonal) diagonal[i] = 0;
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
    int64_t j = a->columns[k];
    sum += fabs(a->values[k]);
    if (j == i && diagonal) diagonal[i] = a->values[k];
    if (j < i) f->lower++;
    if (j == i || (j < i && !both)) continue;
    int64_t partner = ht_matrix_find(a, j, (int32_t)i);
    f->matched += partner >= 0;
    compare(a, i, j, a->values[k], partner < 0 ? 0 : a->values[partner], f);
  }
  if (sum > f->norm_inf) f->norm_inf = sum;
}

/* Of two findings the larger difference counts; of equal ones the first in row order, whatever thread it came from. */
static void merge(finding *into, const finding *f) {
  into->differs |= f->differs;
  into->far |= f->far;
  into->matched += f->matched;
  into->lower += f->lower;
  into->norm_inf = fmax(into->norm_inf, f->norm_inf);
  if (f->row < 0 || f->largest < into->largest) return;
  if (f->largest == into->largest && into->row >= 0 && into->row <= f->row) return;
  into->largest = f->largest;
  into->row = f->row;
  into->column = f->column;
}

static finding look(const ht_csr_view *a, int threads, int both, double *diagonal) {
  finding all = {.row = -1, .column = -1};
#pragma omp parallel num_threads(threads)
  {
    finding mine = {.row = -1, .column = -1};
#pragma omp for schedule(dynamic, ROWS_AT_ONCE)
    for (int64_t i = 0; i < a->n; i++) look_at_row(a, i, both, diagonal, &mine);
#pragma omp critical
    merge(&all, &mine);
  }
  return all;
}

void ht_matrix_measure_symmetry(ht_matrix *a) {
  ht_csr_view view = ht_matrix_view(a);
  int threads = a->nnz > PARALLEL_NONZEROS ? a->ctx->threads : 1;
  if (!a->diagonal && ht_allocate(a->ctx, a->n, sizeof *a->diagonal, &a->diagonal) != HT_OK) ht_context_clear_error(a->ctx);
  finding f = look(&view, threads, 0, a->diagonal);
  /* Every lower entry is some upper one's partner unless the counts differ. */
  if (f.matched != f.lower) f = look(&view, threads, 1, a->diagonal);
  a->symmetry = f.far ? HT_UNSYMMETRIC : f.differs ? HT_NEARLY_SYMMETRIC : HT_SYMMETRIC;
  a->asymmetric_row = f.row;
  a->asymmetric_column = f.column;
  a->asymmetry = f.largest;
  a->norm_inf = f.norm_inf;
}

double ht_matrix_norm_inf(const ht_matrix *a) {
  double largest = 0;
  int threads = a->ctx->threads;
  if (a->norm_inf > 0) return a->norm_inf;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(max : largest) if (a->nnz > PARALLEL_NONZEROS)
  for (int64_t i = 0; i < a->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += fabs(a->values[k]);
    largest = fmax(largest, sum);
  }
  return largest;
}

void ht_matrix_averaged_values(const ht_matrix *a, double *values) {
  ht_csr_view view = ht_matrix_view(a);
  int threads = a->nnz > PARALLEL_NONZEROS ? a->ctx->threads : 1;
#pragma omp parallel for schedule(dynamic, ROWS_AT_ONCE) num_threads(threads)
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int64_t j = a->columns[k], partner = j == i ? k : ht_matrix_find(&view, j, (int32_t)i);
      values[k] = partner < 0 ? 0 : 0.5 * a->values[k] + 0.5 * a->values[partner]; /* halves first: no overflow */
    }
}
