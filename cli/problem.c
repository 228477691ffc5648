/* Reading the problem, and making a right-hand side where none is given. SPDX-License-Identifier: BSD-3-Clause */
#include "problem.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double *vectors(int64_t n, int columns) {
  size_t size = sizeof(double);
  if ((uint64_t)n > SIZE_MAX / size / (size_t)columns) return NULL;
  return calloc((size_t)n * (size_t)columns, size);
}

/* Is A*ones zero but for rounding? Then ones would be a poor "known solution": A is singular, and b would be noise. */
static int is_zero_product(const cli_problem *p) {
  const int64_t *start;
  const double *values;
  double row_sum = 0, largest_b = 0, longest = 1;
  ht_matrix_csr(p->matrix, &start, NULL, &values);
  for (int64_t i = 0; i < p->n; i++) {
    double sum = 0;
    for (int64_t k = start[i]; k < start[i + 1]; k++) sum += fabs(values[k]);
    row_sum = fmax(row_sum, sum);
    largest_b = fmax(largest_b, fabs(p->b[i]));
    longest = fmax(longest, (double)(start[i + 1] - start[i]));
  }
  return row_sum > 0 && largest_b <= longest * DBL_EPSILON * row_sum;
}

/* The solution behind "A*ones" and "A*random:SEED". */
static ht_status read_known(ht_context *ctx, cli_problem *p, const char *word) {
  p->known = vectors(p->n, 1);
  if (!p->known) return HT_NO_MEMORY;
  return ht_vector_read(ctx, word, NULL, p->n, p->known);
}

static ht_status make_default_b(ht_context *ctx, cli_problem *p) {
  ht_status status = ht_vector_read(ctx, "A*ones", p->matrix, p->n, p->b);
  if (status != HT_OK) return status;
  p->origin = "b = A*1, so that the solution is known";
  if (!is_zero_product(p)) return read_known(ctx, p, "ones");
  /* The solution is known only up to a null vector, so no error is reported. */
  p->origin = "b = A*random, since A*1 = 0 shows that A is singular";
  return ht_vector_read(ctx, "A*random:1", p->matrix, p->n, p->b);
}

static ht_status read_b(ht_context *ctx, cli_problem *p, const char *b) {
  p->columns = 1;
  p->b = vectors(p->n, p->columns);
  if (!p->b) return HT_NO_MEMORY;
  if (!b) return make_default_b(ctx, p);
  p->origin = b;
  ht_status status = ht_vector_read(ctx, b, p->matrix, p->n, p->b);
  if (status == HT_OK && !strncmp(b, "A*", 2)) status = read_known(ctx, p, b + 2);
  return status;
}

static ht_status read_x(ht_context *ctx, cli_problem *p, const char *x0) {
  p->x = vectors(p->n, p->columns);
  if (!p->x) return HT_NO_MEMORY;
  return x0 ? ht_vector_read(ctx, x0, p->matrix, p->n, p->x) : HT_OK;
}

int problem_read(ht_context *ctx, const char *path, const char *b, const char *x0, cli_problem *p) {
  double begin = seconds_now();
  *p = (cli_problem){.path = path};
  int from_standard = !strcmp(path, "-") + (b && !strcmp(b, "-")) + (x0 && !strcmp(x0, "-"));
  if (from_standard > 1) return cli_bad("only one of the matrix, -b and -x0 can be read from standard input");
  ht_status status = ht_matrix_read(ctx, path, &p->matrix);
  if (status == HT_OK) {
    p->n = ht_matrix_rows(p->matrix);
    status = read_b(ctx, p, b);
  }
  if (status == HT_OK) status = read_x(ctx, p, x0);
  p->time_read_s = seconds_now() - begin;
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}

void problem_release(cli_problem *p) {
  free(p->b);
  free(p->x);
  free(p->known);
  ht_matrix_destroy(p->matrix);
}

/* Scaled by the largest entry, so that no square overflows. */
double problem_error(const cli_problem *p) {
  double largest = 0, error = 0, norm = 0;
  if (!p->known) return NAN;
  for (int64_t i = 0; i < p->n; i++) largest = fmax(largest, fmax(fabs(p->known[i]), fabs(p->x[i])));
  if (!isfinite(largest) || largest == 0) return NAN;
  for (int64_t i = 0; i < p->n; i++) {
    double e = (p->x[i] - p->known[i]) / largest, k = p->known[i] / largest;
    error += e * e;
    norm += k * k;
  }
  return norm > 0 ? sqrt(error / norm) : NAN;
}
