/* New values from a CSR that lies on the device: the same answer, to the bit, as from a matrix with these values, and nothing believed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_solves.h"

/* A CSR on the device, and the host's arrays that it was made of. */
typedef struct device_csr {
  int64_t n, nnz, *start, *on_start;
  int32_t *columns, *on_columns;
  double *values, *on_values;
} device_csr;

static void *copy_of(const void *from, size_t bytes) {
  void *to = malloc(bytes);
  assert_non_null(to);
  return memcpy(to, from, bytes);
}

static void upload(gpu *g, const device_csr *d) {
  OK(g->cuda->upload(g->ctx, (d->n + 1) * 8, d->start, d->on_start));
  OK(g->cuda->upload(g->ctx, d->nnz * 4, d->columns, d->on_columns));
  OK(g->cuda->upload(g->ctx, d->nnz * 8, d->values, d->on_values));
}

static device_csr place(gpu *g, const ht_matrix *a) {
  device_csr d = {.n = a->n, .nnz = a->nnz};
  d.start = copy_of(a->row_start, (size_t)(a->n + 1) * 8);
  d.columns = copy_of(a->columns, (size_t)a->nnz * 4);
  d.values = copy_of(a->values, (size_t)a->nnz * 8);
  d.on_start = gpu_copy(g, (d.n + 1) * 8, d.start);
  d.on_columns = gpu_copy(g, d.nnz * 4, d.columns);
  d.on_values = gpu_copy(g, d.nnz * 8, d.values);
  return d;
}

static void discard(gpu *g, device_csr *d) {
  g->cuda->memory_release(g->ctx, d->on_start);
  g->cuda->memory_release(g->ctx, d->on_columns);
  g->cuda->memory_release(g->ctx, d->on_values);
  free(d->start), free(d->columns), free(d->values);
}

/* D A D with another D of powers of two and other numbers. */
static ht_matrix *with_other_values(gpu *g, const ht_matrix *a) {
  double *factor = array(a->n), *values = array(a->nnz);
  ht_matrix *other;
  for (int64_t i = 0; i < a->n; i++) factor[i] = (1.5 + sin(0.7 * (double)i)) * ldexp(1, (int)(i % 7) - 3);
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) values[k] = a->values[k] * (factor[i] * factor[a->columns[k]]);
  OK(ht_matrix_create_csr(g->ctx, a->n, a->row_start, a->columns, values, HT_COPY, &other));
  free(factor), free(values);
  return other;
}

static void solves_alike(gpu *g, const char *line, const setting *settings) {
  ht_matrix *a = generate(g, line), *b = with_other_values(g, a);
  device_csr d = place(g, b);
  double *right = right_hand_side(b), *x = array(a->n), *expected = array(a->n), *again = array(a->n);
  ht_report fresh = solve_once(g, b, settings, right, expected);
  ht_solver *solver = make_solver(g, a, settings);
  OK(ht_solver_prepare(solver));
  if (ht_solver_set_device_csr(solver, d.on_start, d.on_columns, d.on_values) != HT_OK) fail_msg("%s: %s", line, ht_context_error(g->ctx));
  ht_report report = solve_with(g, solver, right, x);
  assert_int_equal(report.outcome, fresh.outcome);
  assert_int_equal(report.iterations, fresh.iterations);
  assert_memory_equal(x, expected, (size_t)a->n * 8);
  if (fresh.outcome == HT_CONVERGED) assert_true(meets_tolerance(g, b, right, x));
  assert_true(report.backward_error == fresh.backward_error);
  OK(ht_solver_set_device_csr(solver, d.on_start, d.on_columns, d.on_values)); /* and once more */
  solve_with(g, solver, right, again);
  assert_memory_equal(again, expected, (size_t)a->n * 8);
  OK(ht_solver_prepare(solver)); /* back to the matrix's own */
  double *own = right_hand_side(a);
  memset(x, 0, (size_t)a->n * 8);
  memset(expected, 0, (size_t)a->n * 8);
  solve_with(g, solver, own, x);
  solve_once(g, a, settings, own, expected);
  assert_memory_equal(x, expected, (size_t)a->n * 8);
  ht_solver_destroy(solver);
  discard(g, &d);
  free(right), free(x), free(expected), free(again), free(own);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
}

static void values_from_the_device_are_as_good(void **state) {
  (void)state;
  static const char *const lines[] = {"stencil3d size=20 points=27", /* exact, and then not */
                                      "stencil3d size=64 points=27 coefficients=lognormal",
                                      "fem2d size=60 numbering=random",
                                      "wathen nx=40 ny=30",
                                      "elasticity3d size=8",
                                      "fem3d order=2 size=8 numbering=random"};
  gpu g = gpu_open();
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    for (int engine = 1; engine < ENGINES; engine++)
      for (int jacobi = 0; jacobi < 2; jacobi++)
        solves_alike(
            &g, lines[i],
            SETTINGS({"backend", "cuda"}, {"engine", engines[engine]}, {"precond", jacobi ? "jacobi" : "none"}, {"max-iterations", "400"}));
  gpu_close(&g);
}

enum {
  SOUND,
  NOT_A_NUMBER,
  UNSYMMETRIC,
  NEGATIVE,
  OTHER_COLUMN,
  OTHER_ROWS,
  WILD_COLUMN,
  WILD_ROWS,
  UNSORTED,
  TWICE,
  NO_NEIGHBOURS,
  SPOILS
};

static void swap_entries(device_csr *d, int64_t k, int64_t l) {
  int32_t column = d->columns[k];
  double value = d->values[k];
  d->columns[k] = d->columns[l], d->values[k] = d->values[l];
  d->columns[l] = column, d->values[l] = value;
}

static ht_status spoilt(gpu *g, ht_solver *solver, const ht_matrix *a, device_csr *d, int spoil) {
  int64_t row = a->n / 2, begin = a->row_start[row], last = a->row_start[row + 1] - 1;
  memcpy(d->start, a->row_start, (size_t)(a->n + 1) * 8);
  memcpy(d->columns, a->columns, (size_t)a->nnz * 4);
  memcpy(d->values, a->values, (size_t)a->nnz * 8);
  if (spoil == NOT_A_NUMBER) d->values[begin] = NAN;
  if (spoil == UNSYMMETRIC) d->values[begin] = nextafter(d->values[begin], 0);
  if (spoil == OTHER_COLUMN) d->columns[last]++;
  if (spoil == OTHER_ROWS) d->start[row]++;
  if (spoil == WILD_COLUMN) d->columns[begin] = INT32_MAX;
  if (spoil == WILD_ROWS) d->start[row] = INT64_MAX / 2;
  if (spoil == UNSORTED) swap_entries(d, begin, last);
  if (spoil == TWICE) d->columns[begin + 1] = d->columns[begin];
  for (int64_t i = 0; spoil == NO_NEIGHBOURS && i < a->n; i++) /* no group of the store has an entry */
    for (int64_t k = d->start[i]; k < d->start[i + 1]; k++) d->columns[k] = (int32_t)i;
  for (int64_t k = begin; spoil == NEGATIVE && k <= last; k++)
    if (a->columns[k] == row) d->values[k] = -d->values[k];
  upload(g, d);
  return ht_solver_set_device_csr(solver, d->on_start, d->on_columns, d->on_values);
}

static void nothing_is_believed(void **state) {
  (void)state;
  static const ht_status expected[SPOILS] = {HT_OK,           HT_BAD_MATRIX,   HT_BAD_MATRIX,   HT_BAD_MATRIX,
                                             HT_BAD_ARGUMENT, HT_BAD_ARGUMENT, HT_BAD_ARGUMENT, HT_BAD_ARGUMENT,
                                             HT_BAD_ARGUMENT, HT_BAD_ARGUMENT, HT_BAD_ARGUMENT};
  static const char *const lines[] = {"stencil3d size=12 points=7 coefficients=lognormal", "fem2d size=40 numbering=random"};
  gpu g = gpu_open();
  for (int i = 0; i < 2; i++)
    for (int engine = 1; engine < ENGINES; engine++) {
      ht_matrix *a = generate(&g, lines[i]);
      device_csr d = place(&g, a);
      double *b = right_hand_side(a), *x = array(a->n);
      ht_solver *solver = make_solver(&g, a, SETTINGS({"backend", "cuda"}, {"engine", engines[engine]}));
      for (int spoil = 0; spoil < SPOILS; spoil++) {
        ht_status status = spoilt(&g, solver, a, &d, spoil);
        int pattern = spoil >= OTHER_COLUMN; /* a moved entry may show as one without a partner first */
        if (status != expected[spoil] && !(pattern && status == HT_BAD_MATRIX))
          fail_msg("%s, %s, %d: status %d: %s", lines[i], engines[engine], spoil, (int)status, ht_context_error(g.ctx));
        ht_context_clear_error(g.ctx);
        memset(x, 0, (size_t)a->n * 8);
        assert_int_equal(solve_with(&g, solver, b, x).outcome, HT_CONVERGED); /* the matrix's own values serve */
        assert_true(meets_tolerance(&g, a, b, x));
      }
      assert_int_equal(ht_solver_set_device_csr(solver, d.start, d.columns, d.values), HT_BAD_ARGUMENT); /* the host's memory */
      ht_context_clear_error(g.ctx);
      ht_solver_destroy(solver);
      discard(&g, &d);
      free(b), free(x);
      ht_matrix_destroy(a);
    }
  gpu_close(&g);
}

/* Where rounding could be what meets the tolerance, the certificate reads the values that are solved with, not the matrix's. */
static void the_certificate_reads_these_values(void **state) {
  (void)state;
  gpu g = gpu_open();
  const setting *settings = SETTINGS({"backend", "cuda"}, {"rtol", "1e-15"}, {"precond", "jacobi"}, {"max-iterations", "200"});
  ht_matrix *a = generate(&g, "stencil3d size=16 points=27 coefficients=lognormal"), *b = with_other_values(&g, a);
  device_csr d = place(&g, b);
  double *right = right_hand_side(b), *x = array(a->n), *expected = array(a->n);
  ht_report fresh = solve_once(&g, b, settings, right, expected);
  ht_solver *solver = make_solver(&g, a, settings);
  OK(ht_solver_set_device_csr(solver, d.on_start, d.on_columns, d.on_values));
  ht_report report = solve_with(&g, solver, right, x);
  assert_int_equal(report.outcome, fresh.outcome);
  assert_true(report.residual_true == fresh.residual_true);
  assert_memory_equal(x, expected, (size_t)a->n * 8);
  ht_solver_destroy(solver);
  discard(&g, &d);
  free(right), free(x), free(expected);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_from_the_device_are_as_good), cmocka_unit_test(nothing_is_believed),
                                     cmocka_unit_test(the_certificate_reads_these_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
