/* Incomplete Cholesky with zero fill: level-scheduled factorisation and triangular solves. Everything inside is in the
 * level sets' numbering, so that each set is a range of rows and each solve reads the factor from end to end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "factor/ic0.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "data/diagonal.h"
#include "factor/levels.h"

/* A strict triangle by rows. */
typedef struct {
  int64_t *start;
  int32_t *columns;
  double *values;
} triangle;

struct ht_ic0 {
  ht_context *ctx;
  int64_t n;
  ht_levels levels;
  triangle lower, upper; /* L and its transpose, the same values */
  double *inverse;       /* 1 / l_kk */
  double *scale;         /* 1 / sqrt(a_kk) */
  double *work;          /* n */
  double first_shift, shift;
  int breakdowns;
  struct { /* which way of solving is faster, see ht_ic0_solve */
    int64_t solves, next, interval;
    double serial_s;
    int share;
  } trial;
};

static int threads_for(const ht_ic0 *f) { return f->ctx->threads < f->levels.useful_threads ? f->ctx->threads : f->levels.useful_threads; }

/* ---- pattern ---- */

static int ascending(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Insertion sort where rows are short: they are nearly sorted. */
static void sort_columns(int32_t *columns, int64_t count) {
  enum { SHORT_ROW = 48 };
  if (count > SHORT_ROW) {
    qsort(columns, (size_t)count, sizeof *columns, ascending);
    return;
  }
  for (int64_t k = 1; k < count; k++) {
    int32_t c = columns[k];
    int64_t at = k;
    for (; at > 0 && columns[at - 1] > c; at--) columns[at] = columns[at - 1];
    columns[at] = c;
  }
}

static int64_t lower_count(const ht_matrix *a, int64_t i) {
  int64_t k = a->row_start[i];
  while (k < a->row_start[i + 1] && a->columns[k] < i) k++;
  return k - a->row_start[i];
}

static ht_status allocate_triangle(ht_context *ctx, int64_t n, int64_t nnz, triangle *t) {
  HT_TRY(ctx, ht_allocate(ctx, nnz, sizeof *t->columns, &t->columns));
  HT_TRY(ctx, ht_allocate(ctx, nnz, sizeof *t->values, &t->values));
  if (!t->start) HT_TRY(ctx, ht_allocate(ctx, n + 1, sizeof *t->start, &t->start));
  return HT_OK;
}

static ht_status build_pattern(ht_ic0 *f, const ht_matrix *a) {
  const ht_levels *l = &f->levels;
  HT_TRY(f->ctx, ht_allocate(f->ctx, f->n + 1, sizeof *f->lower.start, &f->lower.start));
  f->lower.start[0] = 0;
  for (int64_t k = 0; k < f->n; k++) f->lower.start[k + 1] = f->lower.start[k] + lower_count(a, l->order[k]);
  int64_t nnz = f->lower.start[f->n];
  HT_TRY(f->ctx, allocate_triangle(f->ctx, f->n, nnz, &f->lower));
  HT_TRY(f->ctx, allocate_triangle(f->ctx, f->n, nnz, &f->upper));
  for (int64_t k = 0; k < f->n; k++) {
    int64_t begin = f->lower.start[k], count = f->lower.start[k + 1] - begin;
    const int32_t *old = a->columns + a->row_start[l->order[k]];
    for (int64_t e = 0; e < count; e++) f->lower.columns[begin + e] = l->position[old[e]];
    sort_columns(f->lower.columns + begin, count);
  }
  return HT_OK;
}

/* The transpose, indices and values: entries of a row of it come in ascending order. */
static void transpose(ht_ic0 *f) {
  const triangle *l = &f->lower;
  triangle *u = &f->upper;
  int64_t n = f->n;
  for (int64_t k = 0; k <= n; k++) u->start[k] = 0;
  for (int64_t e = 0; e < l->start[n]; e++) u->start[l->columns[e] + 1]++;
  for (int64_t k = 0; k < n; k++) u->start[k + 1] += u->start[k];
  for (int64_t k = 0; k < n; k++)
    for (int64_t e = l->start[k]; e < l->start[k + 1]; e++) {
      int64_t at = u->start[l->columns[e]]++;
      u->columns[at] = (int32_t)k;
      u->values[at] = l->values[e];
    }
  for (int64_t k = n; k > 0; k--) u->start[k] = u->start[k - 1];
  u->start[0] = 0;
}

/* ---- values ---- */

/* The first entry from `low` on, before `high`, whose column is not below c. */
static int64_t find_column(const int32_t *columns, int64_t low, int64_t high, int32_t c) {
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (columns[middle] < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* sum - (row k of L up to column c)(row c of L)'. The row that is much the shorter is walked, so that a dense row, which many rows need,
 * costs each of them what they have themselves. Either way the terms come in the same order, and those left out are zero. */
static double minus_rows(const triangle *l, int64_t k, int64_t row_end, int32_t c, double sum, const double *w) {
  enum { MUCH = 16 };
  int64_t m = l->start[c], end = l->start[c + 1], e = l->start[k];
  if (end - m <= MUCH * (row_end - e)) {
    for (; m < end; m++) sum -= w[l->columns[m]] * l->values[m];
    return sum;
  }
  for (; e < row_end; e++) {
    m = find_column(l->columns, m, end, l->columns[e]);
    if (m < end && l->columns[m] == l->columns[e]) sum -= l->values[e] * l->values[m];
  }
  return sum;
}

/* Row k of L from the rows before it; `w` is a row of n zeros, and is again on return. Returns the pivot l_kk^2. */
static double factor_row(ht_ic0 *f, const ht_matrix *a, int64_t k, double shift, double *w) {
  const int32_t *position = f->levels.position, *columns = f->lower.columns;
  const int64_t *start = f->lower.start;
  double *values = f->lower.values;
  int64_t i = f->levels.order[k], first = a->row_start[i], last = first + start[k + 1] - start[k];
  for (int64_t e = first; e < last; e++) {
    int32_t c = position[a->columns[e]];
    w[c] = a->values[e] * f->scale[k] * f->scale[c];
  }
  double pivot = 1 + shift;
  for (int64_t e = start[k]; e < start[k + 1]; e++) {
    int32_t c = columns[e];
    double sum = minus_rows(&f->lower, k, e, c, w[c], w) * f->inverse[c];
    w[c] = values[e] = sum;
    pivot -= sum * sum;
  }
  for (int64_t e = start[k]; e < start[k + 1]; e++) w[columns[e]] = 0;
  return pivot;
}

/* Below this a pivot is what rounding left of zero. */
static double least_pivot(const ht_ic0 *f, int64_t k, double shift) {
  return (double)(f->lower.start[k + 1] - f->lower.start[k] + 1) * 0x1p-53 * (1 + shift);
}

typedef struct {
  ht_ic0 *factor;
  const ht_matrix *matrix;
  double shift;
  double *rows; /* n zeros a thread */
  atomic_int broken, stopped;
} attempt;

static int is_over(const attempt *t) {
  return atomic_load_explicit(&t->broken, memory_order_relaxed) || atomic_load_explicit(&t->stopped, memory_order_relaxed);
}

/* Any breakdown ends the attempt, and a request to stop. */
static void factor_rows(void *user, int piece, int64_t first, int64_t last) {
  enum { POLL_EVERY = 1024 }; /* rows; a power of two */
  attempt *t = user;
  ht_ic0 *f = t->factor;
  for (int64_t k = first; k < last && !is_over(t); k++) {
    if (k % POLL_EVERY == 0 && ht_set_up_is_over(f->ctx)) atomic_store_explicit(&t->stopped, 1, memory_order_relaxed);
    double pivot = factor_row(f, t->matrix, k, t->shift, t->rows + piece * f->n);
    if (pivot > least_pivot(f, k, t->shift))
      f->inverse[k] = 1 / sqrt(pivot);
    else
      atomic_store_explicit(&t->broken, 1, memory_order_relaxed);
  }
}

/* *broken: a pivot broke down. */
static ht_status factorise(ht_ic0 *f, const ht_matrix *a, double shift, double *rows, int threads, int *broken) {
  attempt t = {.factor = f, .matrix = a, .shift = shift, .rows = rows};
  ht_levels_forward(&f->levels, f->lower.start, threads, factor_rows, &t);
  HT_CHECK(f->ctx, !atomic_load(&t.stopped), HT_INTERRUPTED, "the incomplete Cholesky factorisation was not finished");
  *broken = atomic_load(&t.broken);
  return HT_OK;
}

/* Fill scale, and the largest sum of a row of the scaled matrix. */
static ht_status scale_rows(ht_ic0 *f, const ht_matrix *a, double *scale, double *largest_sum) {
  const int32_t *position = f->levels.position;
  HT_TRY(f->ctx, ht_matrix_check_diagonal(f->ctx, a));
  for (int64_t i = 0; i < f->n; i++) scale[position[i]] = 1 / sqrt(a->values[a->row_start[i] + lower_count(a, i)]);
  *largest_sum = 0;
  for (int64_t i = 0; i < f->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      sum += fabs(a->values[k] * scale[position[i]] * scale[position[a->columns[k]]]);
    HT_CHECK(f->ctx, sum < 1e300, HT_BAD_MATRIX,
             "row %lld, counted from 1, is so much larger than its diagonal that scaling overflows; no positive definite matrix does that",
             (long long)i + 1);
    if (sum > *largest_sum) *largest_sum = sum;
  }
  return HT_OK;
}

/* Twofold growth finds a shift near the least that works. Where the matrix is far from positive definite it would take
 * long; a shift beyond the largest row sum makes the matrix diagonally dominant, and then the factorisation exists. */
static double next_shift(double shift, int breakdowns, double largest_sum) {
  enum { PATIENCE = 16 };
  return breakdowns < PATIENCE ? fmax(2 * shift, 1e-3) : 2 * largest_sum;
}

static ht_status compute(ht_ic0 *f, const ht_matrix *a) {
  int threads = threads_for(f);
  double *scale, *rows = NULL, largest_sum = 0;
  ht_status status;
  HT_TRY(f->ctx, ht_allocate(f->ctx, f->n, sizeof *scale, &scale));
  HT_TRY_GOTO(f->ctx, status, scale_rows(f, a, scale, &largest_sum), done);
  HT_TRY_GOTO(f->ctx, status, ht_allocate_zeroed(f->ctx, f->n * threads, sizeof *rows, &rows), done);
  double *old = f->scale;
  f->scale = scale;
  scale = old;
  f->shift = f->first_shift;
  for (f->breakdowns = 0;; f->breakdowns++) {
    int broken;
    HT_TRY_GOTO(f->ctx, status, factorise(f, a, f->shift, rows, threads, &broken), done);
    if (!broken) break;
    if (f->shift >= 2 * largest_sum && f->breakdowns > 16)
      HT_FAIL_GOTO(f->ctx, status, done, HT_INTERNAL, "ic0 broke down on a diagonally dominant matrix");
    f->shift = next_shift(f->shift, f->breakdowns, largest_sum);
  }
  transpose(f);
done:
  ht_release(f->ctx, rows);
  ht_release(f->ctx, scale);
  return status;
}

/* ---- objects ---- */

ht_status ht_ic0_create(ht_context *ctx, const ht_matrix *matrix, double shift, ht_ic0 **factor) {
  ht_status status;
  ht_ic0 *f;
  *factor = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *f, &f));
  f->ctx = ctx;
  f->n = matrix->n;
  f->first_shift = shift;
  HT_TRY_GOTO(ctx, status, ht_levels_create(ctx, f->n, matrix->row_start, matrix->columns, &f->levels), fail);
  HT_TRY_GOTO(ctx, status, build_pattern(f, matrix), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, f->n, sizeof *f->inverse, &f->inverse), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, f->n, sizeof *f->work, &f->work), fail);
  HT_TRY_GOTO(ctx, status, compute(f, matrix), fail);
  *factor = f;
  return HT_OK;
fail:
  ht_ic0_destroy(f);
  return status;
}

ht_status ht_ic0_update(ht_ic0 *f, const ht_matrix *matrix) {
  HT_TRY(f->ctx, compute(f, matrix));
  return HT_OK;
}

static void release_triangle(ht_context *ctx, triangle *t) {
  ht_release(ctx, t->start);
  ht_release(ctx, t->columns);
  ht_release(ctx, t->values);
}

void ht_ic0_destroy(ht_ic0 *f) {
  if (!f) return;
  ht_levels_destroy(f->ctx, &f->levels);
  release_triangle(f->ctx, &f->lower);
  release_triangle(f->ctx, &f->upper);
  ht_release(f->ctx, f->inverse);
  ht_release(f->ctx, f->scale);
  ht_release(f->ctx, f->work);
  ht_release(f->ctx, f);
}

ht_ic0_facts ht_ic0_describe(const ht_ic0 *f) {
  int64_t nnz = f->lower.start[f->n];
  return (ht_ic0_facts){.shift = f->shift,
                        .breakdowns = f->breakdowns,
                        .levels = f->levels.levels,
                        .bytes = 2 * nnz * 12 + 2 * (f->n + 1) * 8 + f->n * (4 + 4 + 8 + 8 + 8),
                        .nonzeros = nnz + f->n};
}

/* ---- solves ---- */

static inline double minus_row(const triangle *t, int64_t k, double sum, const double *y) {
  for (int64_t e = t->start[k]; e < t->start[k + 1]; e++) sum -= t->values[e] * y[t->columns[e]];
  return sum;
}

typedef struct {
  const ht_ic0 *factor;
  const double *r;
  double *y, *z;
} solve;

static void forward_rows(void *user, int piece, int64_t first, int64_t last) {
  (void)piece;
  const solve *s = user;
  const ht_ic0 *f = s->factor;
  for (int64_t k = first; k < last; k++) s->y[k] = minus_row(&f->lower, k, f->scale[k] * s->r[f->levels.order[k]], s->y) * f->inverse[k];
}

static void backward_rows(void *user, int piece, int64_t first, int64_t last) {
  (void)piece;
  const solve *s = user;
  const ht_ic0 *f = s->factor;
  for (int64_t k = last - 1; k >= first; k--) {
    s->y[k] = minus_row(&f->upper, k, s->y[k], s->y) * f->inverse[k];
    s->z[f->levels.order[k]] = f->scale[k] * s->y[k];
  }
}

/* Sharing the level sets pays on an idle machine; on a busy one every set waits for a thread that has no core, and the
 * solve takes many times as long. So both ways are timed, one after the other, and again ever more rarely. The bits are the
 * same either way. */
void ht_ic0_solve(ht_ic0 *f, const double *r, double *z) {
  enum { FIRST_INTERVAL = 16, MOST_INTERVAL = 4096 };
  int most = threads_for(f);
  int64_t turn = f->trial.solves++ - f->trial.next;
  int threads = turn == 1 || (turn != 0 && f->trial.share) ? most : 1;
  double begin = turn >= 0 ? ht_seconds() : 0;
  solve s = {f, r, f->work, z};
  ht_levels_forward(&f->levels, f->lower.start, threads, forward_rows, &s);
  ht_levels_backward(&f->levels, f->upper.start, threads, backward_rows, &s);
  if (turn == 0) f->trial.serial_s = ht_seconds() - begin;
  if (turn != 1) return;
  int64_t interval = f->trial.interval ? 2 * f->trial.interval : FIRST_INTERVAL;
  f->trial.share = most > 1 && ht_seconds() - begin < f->trial.serial_s;
  f->trial.interval = interval < MOST_INTERVAL ? interval : MOST_INTERVAL;
  f->trial.next = f->trial.solves + f->trial.interval;
}
