/* Reading the problem, and making a right-hand side where none is given. SPDX-License-Identifier: BSD-3-Clause */
#include "problem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "text.h"

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A row without a nonzero: the solution is known only up to a null vector. */
static int has_empty_row(const ht_matrix *matrix, int64_t n) {
  const int64_t *start;
  const double *values;
  ht_matrix_csr(matrix, &start, NULL, &values);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = start[i];
    while (k < start[i + 1] && values[k] == 0) k++;
    if (k == start[i + 1]) return 1;
  }
  return 0;
}

static ht_status read_b(ht_context *ctx, cli_problem *p, const char *b) {
  const char *source = b ? b : "A*ones";
  int constant = ht_matrix_rows_add_to_zero(p->matrix), unique = !constant && !has_empty_row(p->matrix, p->n), columns;
  p->origin = b ? b : unique ? "b = A*1, so that the solution is known" : "b = A*1";
  if (!b && constant) { /* A*1 would be noise */
    source = "A*random:1";
    p->origin = "b = A*random, since A*1 = 0 shows that A is singular";
  }
  ht_status status = ht_vector_read_block(ctx, source, p->matrix, p->n, &p->columns, &p->b);
  int has_known = unique && strncmp(source, "A*", 2) == 0;
  return status == HT_OK && has_known ? ht_vector_read_block(ctx, source + 2, NULL, p->n, &columns, &p->known) : status;
}

/* Starting vectors: one serves all columns. 0, or CLI_BAD after the sentence. */
static int read_x(ht_context *ctx, cli_problem *p, const char *x0) {
  double *start = NULL;
  int given = 0;
  size_t size = sizeof *p->x * (size_t)p->n;
  p->x = calloc((size_t)p->columns, size);
  if (!p->x) return cli_bad("memory is exhausted: there is none for the solution");
  if (!x0) return 0;
  ht_status status = ht_vector_read_block(ctx, x0, p->matrix, p->n, &given, &start);
  if (status != HT_OK) return cli_failed(ctx, status);
  int fits = given == 1 || given == p->columns;
  for (int64_t k = 0; fits && k < p->columns; k++) memcpy(p->x + k * p->n, start + (given == 1 ? 0 : k) * p->n, size);
  ht_vector_free(ctx, start);
  return fits ? 0
              : cli_bad("%s holds %d starting vectors for %s; give one, or as many", x0, given,
                        text_number_of(p->columns, "right-hand side").text);
}

/* Off the diagonal all in one triangle: 1 lower, -1 upper; 0 where both have entries, or none has. */
static int only_triangle(const cli_problem *p) {
  const int64_t *start;
  const int32_t *columns;
  int lower = 0, upper = 0;
  ht_matrix_csr(p->matrix, &start, &columns, NULL);
  for (int64_t i = 0; i < p->n && !(lower && upper); i++)
    for (int64_t k = start[i]; k < start[i + 1]; k++) {
      lower |= columns[k] < i;
      upper |= columns[k] > i;
    }
  return lower - upper;
}

/* SciPy's files cannot say that they hold a triangle for a symmetric matrix, as Matrix Market's can. */
static int check_triangles(const cli_problem *p) {
  size_t length = strlen(p->path);
  int npz = length > 4 && !strcmp(p->path + length - 4, ".npz");
  int triangle = npz && ht_matrix_symmetry(p->matrix) == HT_UNSYMMETRIC ? only_triangle(p) : 0;
  if (!triangle) return 0;
  return cli_bad("%s: only one triangle is stored: save %s", p->path, triangle > 0 ? "A + tril(A,-1).T" : "A + triu(A,1).T");
}

int problem_read(ht_context *ctx, const char *path, const char *b, const char *x0, cli_problem *p) {
  double begin = seconds_now();
  *p = (cli_problem){.ctx = ctx, .path = path};
  int from_standard = (strcmp(path, "-") == 0) + (b && strcmp(b, "-") == 0) + (x0 && strcmp(x0, "-") == 0);
  if (from_standard > 1) return cli_bad("only one of the matrix, -b and -x0 can be read from standard input");
  ht_status status = ht_matrix_read(ctx, path, &p->matrix);
  if (status == HT_OK) {
    p->n = ht_matrix_rows(p->matrix);
    if (check_triangles(p)) return CLI_BAD;
    status = read_b(ctx, p, b);
  }
  if (status != HT_OK) return cli_failed(ctx, status);
  int result = read_x(ctx, p, x0);
  p->time_read_s = seconds_now() - begin;
  return result;
}

void problem_release(cli_problem *p) {
  free(p->x);
  if (!p->ctx) return;
  ht_vector_free(p->ctx, p->b);
  ht_vector_free(p->ctx, p->known);
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
