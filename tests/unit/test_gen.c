/* Every kind of test problem: symmetric to the bit, positive definite, the same on any number of threads; known rows;
 * bad parameters and exhausted memory. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/convert.h"
#include "data/matrix.h"
#include "gen/random.h"
#include "halftone/precision.h"
#include "support/failing.h"
#include "support/generated.h"

enum { MOST_ROWS = 1100 };

static const char *const cases[] = {
    "stencil2d size=1",
    "stencil2d nx=9 ny=7",
    "stencil2d size=16 points=9 coefficients=lognormal sigma=2 correlation=3",
    "stencil2d nx=1 ny=5 points=9",
    "stencil2d size=12 coefficients=anisotropic anisotropy=1e-3",
    "stencil3d size=6",
    "stencil3d nx=7 ny=5 nz=3 points=7 coefficients=lognormal",
    "stencil3d size=7 points=15 coefficients=jumps contrast=1e6",
    "stencil3d nx=1 ny=2 nz=9 points=19 coefficients=lognormal",
    "laplace27 size=5",
    "laplace27 size=6",
    "laplace27e8 size=5",
    "laplace27e8 size=4",
    "wathen nx=1 ny=1",
    "wathen nx=5 ny=4",
    "wathen nx=7 ny=3 seed=9",
    "jnlbrng size=9",
    "jnlbrng nx=10 ny=12 eccentricity=0.9",
    "torsion size=9",
    "torsion nx=4 ny=6",
    "obstacle size=1",
    "obstacle nx=8 ny=11",
    "fv size=9",
    "fv nx=10 ny=3 diagonal=3",
    "cvxbqp size=1",
    "cvxbqp size=2",
    "cvxbqp size=63",
    "cvxbqp size=120",
    "trefethen size=1",
    "trefethen size=65",
    "trefethen size=300",
    "radiation size=9",
    "radiation nx=10 ny=4 nz=3",
    "rhd size=9",
    "rhd nx=4 ny=10 nz=3 absorption=0",
    "oil size=9",
    "oil nx=10 ny=6 nz=4 correlation=1",
    "weather size=9",
    "weather nx=6 ny=8 nz=1",
    "weather nx=4 ny=5 nz=10 slope=1",
    "elasticity3d size=1",
    "elasticity3d nx=3 ny=2 nz=4 coefficients=lognormal",
    "elasticity3d nx=5 ny=4 nz=2 poisson=0.49",
    "mass size=1 dimension=2",
    "mass size=6 coefficients=lognormal",
    "mass size=7 element=p1 coefficients=jumps",
    "mass size=12 dimension=2 element=p1",
    "biharmonic size=1",
    "biharmonic nx=13 ny=9",
    "biharmonic size=12 boundary=clamped coefficients=lognormal",
    "fem2d size=2",
    "fem2d size=20 numbering=random coefficients=lognormal",
    "fem2d size=9 order=2 grading=100",
    "fem2d size=9 order=2 form=mass",
    "fem2d size=16 holes=16 perturbation=0.5 coefficients=jumps",
    "fem3d size=1",
    "fem3d size=6 coefficients=lognormal correlation=2",
    "fem3d size=4 order=2 numbering=random",
    "fem3d size=3 order=2 form=mass holes=1",
    "fem3d size=7 holes=8 perturbation=0.5 grading=1",
    "graph size=1",
    "graph size=400 sigma=1",
    "graph size=333 graph=preferential sigma=2 degree=5",
    "graph size=200 graph=shortcuts",
    "hilbert size=8",
    "hilbert size=9",
    "hilbert size=65 shift=1e-6",
    "spd size=1",
    "spd size=65 spectrum=outlier condition=1e10",
    "spd size=64 spectrum=arithmetic reflections=5",
    "kernel size=65",
    "kernel size=40 kernel=rbf dimension=1",
    "neumann size=5 coefficients=lognormal",
    "neumann size=6 points=9",
};
enum { CASES = sizeof cases / sizeof *cases };

static int make_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int free_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static ht_matrix *make(ht_context *ctx, const char *line) {
  ht_matrix *a;
  ht_status status = generate_line(ctx, line, &a);
  if (status != HT_OK) fail_msg("%s: %s", line, ht_context_error(ctx));
  return a;
}

/* a_ij, 0 where nothing is stored. */
static double entry(const ht_matrix *a, int64_t i, int64_t j) {
  for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
    if (a->columns[k] == j) return a->values[k];
  return 0;
}

static double *dense(const ht_matrix *a) {
  double *full = calloc((size_t)(a->n * a->n), sizeof *full);
  assert_non_null(full);
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) full[i * a->n + a->columns[k]] = a->values[k];
  return full;
}

/* Cholesky in place, lower triangle; returns the row whose pivot is not positive, or n. */
static int64_t factor(int64_t n, double *l) {
  for (int64_t j = 0; j < n; j++) {
    double pivot = l[j * n + j];
    for (int64_t k = 0; k < j; k++) pivot -= l[j * n + k] * l[j * n + k];
    if (!(pivot > 0)) return j;
    l[j * n + j] = sqrt(pivot);
    for (int64_t i = j + 1; i < n; i++) {
      double sum = l[i * n + j];
      for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = sum / l[j * n + j];
    }
  }
  return n;
}

static void every_kind_has_cases_and_words(void **state) {
  (void)state;
  for (int g = 0; g < ht_generator_count(); g++) {
    const ht_generator_info *info = ht_generator_at(g);
    int found = 0;
    for (int c = 0; c < CASES; c++) found += !strncmp(cases[c], info->name, strlen(info->name)) && cases[c][strlen(info->name)] == ' ';
    if (found < 2) fail_msg("%s has %d cases in this test", info->name, found);
    assert_true(strlen(info->summary) > 10 && strlen(info->formula) > 20 && strlen(info->spd) > 20);
    assert_true(info->parameters > 0 && info->parameters <= 20);
    for (int p = 0; p < info->parameters; p++) {
      const ht_option_info *parameter = ht_generator_parameter(g, p);
      assert_true(strlen(parameter->default_value) > 0 && strlen(parameter->help) > 5);
      assert_null(strchr(parameter->name, '_'));
      assert_true((parameter->choices != NULL) == (parameter->type == HT_OPTION_CHOICE));
    }
    assert_null(ht_generator_parameter(g, info->parameters));
    assert_null(ht_generator_parameter(g, -1));
  }
  assert_null(ht_generator_at(ht_generator_count()));
  assert_null(ht_generator_at(-1));
}

/* The kind at a small size with one more word or two; NULL: refused. */
static ht_matrix *make_small(ht_context *ctx, int g, const char *choice, const ht_option_info *with, double value) {
  char line[200];
  ht_matrix *a;
  const char *name = ht_generator_at(g)->name;
  int used = snprintf(line, sizeof line, "%s%s%s", name, strcmp(name, "wathen") != 0 ? " size=9" : " nx=4 ny=4", choice);
  if (with) snprintf(line + used, sizeof line - (size_t)used, " %s=%.9g", with->name, value);
  return generate_line(ctx, line, &a) == HT_OK ? a : NULL;
}

static int is_same(const ht_matrix *a, const ht_matrix *b) {
  return a->n == b->n && a->nnz == b->nnz && !memcmp(a->columns, b->columns, (size_t)a->nnz * sizeof *a->columns) &&
         !memcmp(a->values, b->values, (size_t)a->nnz * sizeof *a->values);
}

/* Another value of the number, accepted, gives another matrix: one of a few at least, since all seeds but one may draw the same holes. */
static void check_effect(ht_context *ctx, int g, const char *choice, const ht_option_info *p) {
  double usual = strtod(p->default_value, NULL);
  const double of_integer[] = {usual + 1, usual - 1, usual + 2, usual + 5}, of_real[] = {1.7 * usual + 0.01, 0.5 * usual + 1e-3};
  int whole = p->type == HT_OPTION_INTEGER, accepted = 0, changed = 0;
  ht_matrix *plain = make_small(ctx, g, choice, NULL, 0);
  assert_non_null(plain);
  for (int k = 0; k < (whole ? 4 : 2); k++) {
    ht_matrix *a = make_small(ctx, g, choice, p, whole ? of_integer[k] : of_real[k]);
    accepted += a != NULL;
    changed += a && !is_same(a, plain);
    ht_matrix_destroy(a);
  }
  ht_matrix_destroy(plain);
  if (accepted && !changed) fail_msg("%s%s: --%s is accepted and changes nothing", ht_generator_at(g)->name, choice, p->name);
}

static void what_is_accepted_changes_the_matrix(void **state) {
  for (int g = 0; g < ht_generator_count(); g++)
    for (int p = 0; p < ht_generator_at(g)->parameters; p++) {
      const ht_option_info *info = ht_generator_parameter(g, p);
      if (info->choices || !strcmp(info->name, "size") || !strcmp(ht_generator_at(g)->name, "wathen")) continue;
      check_effect(*state, g, "", info);
      for (int c = 0; c < ht_generator_at(g)->parameters; c++) {
        const ht_option_info *choice = ht_generator_parameter(g, c);
        for (const char *word = choice->choices; word && *word; word += strcspn(word, "|") + (word[strcspn(word, "|")] == '|')) {
          char text[64];
          snprintf(text, sizeof text, " %s=%.*s", choice->name, (int)strcspn(word, "|"), word);
          check_effect(*state, g, text, info);
        }
      }
    }
  static const char *const in_vain[] = {"stencil2d seed=1", "mass dimension=2 nz=3", "stencil3d size=3 nx=2 ny=2 nz=2",
                                        "graph graph=shortcuts degree=4"};
  for (size_t k = 0; k < sizeof in_vain / sizeof *in_vain; k++) {
    ht_matrix *a;
    assert_int_equal(generate_line(*state, in_vain[k], &a), HT_BAD_OPTION);
    assert_non_null(strstr(ht_context_error(*state), "has an effect only with"));
  }
}

static void every_kind_is_canonical_and_symmetric_to_the_bit(void **state) {
  for (int c = 0; c < CASES; c++) {
    ht_matrix *a = make(*state, cases[c]);
    assert_in_range(a->n, 1, MOST_ROWS);
    assert_int_equal(a->nnz, a->row_start[a->n]);
    assert_int_equal(a->symmetry, HT_SYMMETRIC);
    for (int64_t i = 0; i < a->n; i++)
      for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
        int64_t j = a->columns[k];
        if (j < 0 || j >= a->n || (k > a->row_start[i] && a->columns[k - 1] >= j)) fail_msg("%s: row %d is not in order", cases[c], (int)i);
        if (!isfinite(a->values[k])) fail_msg("%s: (%d, %d) is %g", cases[c], (int)i, (int)j, a->values[k]);
        if (ht_bits64(a->values[k]) != ht_bits64(entry(a, j, i))) fail_msg("%s: (%d, %d) is not symmetric", cases[c], (int)i, (int)j);
      }
    ht_matrix_destroy(a);
  }
}

/* Of D^-1/2 A D^-1/2, so that values from 1e-12 to 1e12 do not hide a bad pivot; the singular kind gets 1e-8 on top. */
static void every_kind_is_positive_definite(void **state) {
  for (int c = 0; c < CASES; c++) {
    ht_matrix *a = make(*state, cases[c]);
    double *l = dense(a);
    int64_t n = a->n;
    for (int64_t i = 0; i < n; i++)
      if (!(entry(a, i, i) > 0)) fail_msg("%s: diagonal %d is %g", cases[c], (int)i, entry(a, i, i));
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) l[i * n + j] /= sqrt(entry(a, i, i) * entry(a, j, j));
    for (int64_t i = 0; i < n && !strncmp(cases[c], "neumann", 7); i++) l[i * n + i] += 1e-8;
    int64_t bad = factor(n, l);
    if (bad < n) fail_msg("%s: pivot %d of %d is not positive", cases[c], (int)bad, (int)n);
    free(l);
    ht_matrix_destroy(a);
  }
}

static void threads_do_not_change_a_bit(void **state) {
  ht_context *ctx = *state;
  for (int c = 0; c < CASES; c++) {
    assert_int_equal(ht_context_set_threads(ctx, 1), HT_OK);
    ht_matrix *one = make(ctx, cases[c]);
    for (int threads = 2; threads <= 3; threads++) {
      assert_int_equal(ht_context_set_threads(ctx, threads), HT_OK);
      ht_matrix *more = make(ctx, cases[c]);
      assert_int_equal(one->nnz, more->nnz);
      assert_memory_equal(one->row_start, more->row_start, (size_t)(one->n + 1) * sizeof *one->row_start);
      assert_memory_equal(one->columns, more->columns, (size_t)one->nnz * sizeof *one->columns);
      assert_memory_equal(one->values, more->values, (size_t)one->nnz * sizeof *one->values);
      ht_matrix_destroy(more);
    }
    ht_matrix_destroy(one);
  }
}

static void seeds_give_other_matrices(void **state) {
  ht_matrix *a = make(*state, "wathen nx=4 ny=4 seed=1"), *b = make(*state, "wathen nx=4 ny=4 seed=2");
  assert_memory_not_equal(a->values, b->values, (size_t)a->nnz * sizeof *a->values);
  ht_matrix_destroy(a);
  ht_matrix_destroy(b);
}

/* ---- Known rows ---- */
static void constant_stencils_have_their_entries(void **state) {
  static const struct {
    const char *line;
    int points;
    int64_t centre;
  } all[] = {{"stencil2d size=5 points=5", 5, 12},
             {"stencil2d size=5 points=9", 9, 12},
             {"stencil3d size=5 points=7", 7, 62},
             {"stencil3d size=5 points=15", 15, 62},
             {"stencil3d size=5 points=19", 19, 62},
             {"stencil3d size=5 points=27", 27, 62},
             {"laplace27 size=5", 27, 62}};
  for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
    ht_matrix *a = make(*state, all[s].line);
    int64_t i = all[s].centre;
    assert_int_equal(a->row_start[i + 1] - a->row_start[i], all[s].points);
    for (int64_t k = 0; k < a->nnz; k++) {
      assert_true(a->values[k] == -1 || a->values[k] == all[s].points - 1);
      assert_true(ht_precision_round(HT_BF16, a->values[k]) == a->values[k]);
    }
    for (int64_t r = 0; r < a->n; r++) assert_true(entry(a, r, r) == all[s].points - 1);
    ht_matrix_destroy(a);
  }
}

static void lognormal_values_are_inexact_below_fp64(void **state) {
  static const char *const lines[] = {"stencil3d size=9 coefficients=lognormal", "stencil3d size=9 points=7 coefficients=lognormal",
                                      "wathen nx=9 ny=8", "fem3d size=6 coefficients=lognormal",
                                      "elasticity3d size=4 coefficients=lognormal"};
  for (size_t s = 0; s < sizeof lines / sizeof *lines; s++) {
    ht_matrix *a = make(*state, lines[s]);
    int64_t exact = 0;
    for (int64_t k = 0; k < a->nnz; k++) exact += ht_precision_round(HT_F32, a->values[k]) == a->values[k];
    if (exact * 20 > a->nnz) fail_msg("%s: %d of %d values are exact in f32", lines[s], (int)exact, (int)a->nnz);
    ht_matrix_destroy(a);
  }
}

/* The loops of gallery('wathen', nx, ny) as published, with our densities. */
static void wathen_is_the_published_matrix(void **state) {
  static const double e1[4][4] = {{6, -6, 2, -8}, {-6, 32, -6, 20}, {2, -6, 6, -6}, {-8, 20, -6, 32}};
  static const double e2[4][4] = {{3, -8, 2, -6}, {-8, 16, -8, 20}, {2, -8, 3, -8}, {-6, 20, -8, 16}};
  enum { NX = 3, NY = 2, N = 3 * NX * NY + 2 * NX + 2 * NY + 1 };
  double full[N][N] = {{0}};
  for (int j = 1; j <= NY; j++)
    for (int i = 1; i <= NX; i++) {
      int nn[8];
      nn[0] = 3 * j * NX + 2 * i + 2 * j + 1;
      nn[1] = nn[0] - 1;
      nn[2] = nn[1] - 1;
      nn[3] = (3 * j - 1) * NX + 2 * j + i - 1;
      nn[4] = 3 * (j - 1) * NX + 2 * i + 2 * j - 3;
      nn[5] = nn[4] + 1;
      nn[6] = nn[5] + 1;
      nn[7] = nn[3] + 1;
      double rho = 100 * ht_gen_uniform(2, 0, (uint64_t)((j - 1) * NX + i - 1));
      for (int r = 0; r < 8; r++)
        for (int c = 0; c < 8; c++) {
          double e = r < 4 && c < 4 ? e1[r][c] : r >= 4 && c >= 4 ? e1[r - 4][c - 4] : r < 4 ? e2[r][c - 4] : e2[c][r - 4];
          full[nn[r] - 1][nn[c] - 1] += rho * e / 45;
        }
    }
  ht_matrix *a = make(*state, "wathen nx=3 ny=2 seed=2");
  assert_int_equal(a->n, N);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) assert_true(fabs(entry(a, i, j) - full[i][j]) <= 4 * 0x1p-53 * (fabs(full[i][j]) + 100));
  ht_matrix_destroy(a);
}

/* Counts and last primes as the SuiteSparse collection lists them. */
static void trefethen_is_the_collections(void **state) {
  static const struct {
    const char *line;
    int64_t n, nnz;
    double last;
  } all[] = {{"trefethen size=20", 20, 158, 71}, {"trefethen size=700", 700, 12654, 5279}, {"trefethen", 20000, 554466, 224737}};
  for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
    ht_matrix *a = make(*state, all[s].line);
    assert_int_equal(a->n, all[s].n);
    assert_int_equal(a->nnz, all[s].nnz);
    assert_true(entry(a, 0, 0) == 2 && entry(a, 1, 1) == 3 && entry(a, 9, 9) == 29 && entry(a, a->n - 1, a->n - 1) == all[s].last);
    assert_true(entry(a, 16, 0) == 1 && entry(a, 3, 0) == 0 && entry(a, 8, 9) == 1);
    ht_matrix_destroy(a);
  }
}

static void biharmonic_has_thirteen_points(void **state) {
  ht_matrix *a = make(*state, "biharmonic size=9"), *clamped = make(*state, "biharmonic size=9 boundary=clamped");
  int64_t i = 40;
  assert_int_equal(a->row_start[i + 1] - a->row_start[i], 13);
  assert_true(entry(a, i, i) == 20 && entry(a, i, i + 1) == -8 && entry(a, i, i + 10) == 2 && entry(a, i, i + 18) == 1);
  assert_true(entry(a, 0, 0) == 18 && entry(clamped, 0, 0) == 22 && entry(clamped, 4, 4) == 21 && entry(clamped, i, i) == 20);
  ht_matrix_destroy(a);
  ht_matrix_destroy(clamped);
}

/* Nothing is stored of a rigid motion: rows whose nodes do not touch the clamped face map it to 0. */
static void elasticity_does_not_feel_rigid_motions(void **state) {
  enum { NX = 4, NY = 3 };
  ht_matrix *a = make(*state, "elasticity3d nx=4 ny=3 nz=2 coefficients=lognormal");
  double mode[3] = {0};
  for (int64_t i = 0; i < a->n; i++) {
    if (i / 3 % NX == 0) continue; /* next to the clamped face */
    for (int motion = 0; motion < 6; motion++) {
      double sum = 0, size = 0;
      for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
        int64_t node = a->columns[k] / 3, p = a->columns[k] % 3;
        double x[3] = {(double)(node % NX + 1), (double)(node / NX % (NY + 1)), (double)(node / NX / (NY + 1))};
        for (int d = 0; d < 3; d++) mode[d] = motion < 3 ? d == motion : 0;
        if (motion >= 3) {
          mode[(motion + 1) % 3] = -x[(motion + 2) % 3];
          mode[(motion + 2) % 3] = x[(motion + 1) % 3];
        }
        sum += a->values[k] * mode[p];
        size += fabs(a->values[k] * mode[p]);
      }
      assert_true(fabs(sum) <= 100 * 0x1p-53 * size);
    }
  }
  ht_matrix_destroy(a);
}

/* The constant function has mass 1 in each cell. */
static void mass_adds_up_to_the_volume(void **state) {
  static const char *const lines[] = {"mass size=5", "mass size=5 element=p1", "mass size=5 dimension=2",
                                      "mass size=5 dimension=2 element=p1"};
  for (int s = 0; s < 4; s++) {
    ht_matrix *a = make(*state, lines[s]);
    double sum = 0, volume = s < 2 ? 125 : 25;
    for (int64_t k = 0; k < a->nnz; k++) sum += a->values[k];
    assert_true(fabs(sum - volume) <= (double)a->nnz * 0x1p-53 * volume);
    ht_matrix_destroy(a);
  }
}

static void neumann_rows_sum_to_zero(void **state) {
  ht_matrix *a = make(*state, "neumann size=5 coefficients=lognormal points=27");
  for (int64_t i = 0; i < a->n; i++) {
    double sum = 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) sum += a->values[k];
    assert_true(fabs(sum) <= 27 * 0x1p-53 * 2 * entry(a, i, i));
  }
  ht_matrix_destroy(a);
}

static void solve_factored(int64_t n, const double *l, double *x) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < i; k++) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (int64_t i = n - 1; i >= 0; i--) {
    for (int64_t k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

/* x' A x, with A x in y. */
static double energy_of(const ht_matrix *a, const double *x, double *y) {
  double sum = 0;
  assert_int_equal(ht_matrix_multiply(a, x, y), HT_OK);
  for (int64_t i = 0; i < a->n; i++) sum += x[i] * y[i];
  return sum;
}

/* The smallest lambda with K x = lambda M x, by inverse iteration. */
static double lowest_frequency(ht_context *ctx, const char *mesh) {
  char line[200];
  snprintf(line, sizeof line, "%s form=stiffness", mesh);
  ht_matrix *k = make(ctx, line);
  snprintf(line, sizeof line, "%s form=mass", mesh);
  ht_matrix *m = make(ctx, line);
  double *l = dense(k), *x = calloc((size_t)k->n, sizeof *x), *y = calloc((size_t)k->n, sizeof *y), lambda = 0;
  assert_true(x && y && k->n == m->n && factor(k->n, l) == k->n);
  for (int64_t i = 0; i < k->n; i++) x[i] = 1;
  for (int step = 0; step < 30; step++) {
    lambda = energy_of(k, x, y) / energy_of(m, x, y); /* leaves M x in y */
    double largest = 0;
    for (int64_t i = 0; i < k->n; i++) largest = fmax(largest, fabs(y[i]));
    for (int64_t i = 0; i < k->n; i++) x[i] = y[i] / largest;
    solve_factored(k->n, l, x);
  }
  free(l);
  free(x);
  free(y);
  ht_matrix_destroy(k);
  ht_matrix_destroy(m);
  return lambda;
}

/* On the unit square and cube it is 2 pi^2 and 3 pi^2, approached from above: stiffness, mass, mesh and numbering together. */
static void finite_elements_find_the_frequency_of_a_membrane(void **state) {
  double square = 2 * HT_GEN_PI * HT_GEN_PI, cube = 3 * HT_GEN_PI * HT_GEN_PI;
  double linear = lowest_frequency(*state, "fem2d size=16 holes=0 grading=3");
  double quadratic = lowest_frequency(*state, "fem2d size=9 holes=0 grading=3 order=2 numbering=random");
  double linear3 = lowest_frequency(*state, "fem3d size=6 holes=0 grading=2");
  double quadratic3 = lowest_frequency(*state, "fem3d size=3 holes=0 grading=1 order=2 numbering=random");
  assert_true(linear > square && linear < 1.03 * square);
  assert_true(quadratic > square && quadratic < 1.001 * square);
  assert_true(linear3 > cube && linear3 < 1.15 * cube);
  assert_true(quadratic3 > cube && quadratic3 < 1.01 * cube);
}

/* ---- Requests that must be refused ---- */
static void bad_requests_are_refused_with_a_sentence(void **state) {
  static const struct {
    const char *line, *word;
  } all[] = {
      {"stencil3", "stencil3d"},           {"xyzzy", "halftone gen --list"},         {"wathen n=3", "nx"},
      {"wathen seeed=3", "seed"},          {"wathen qqqqqqqq=3", "help gen"},        {"stencil3d points=5", "7|15|19|27"},
      {"stencil3d size=0", "between"},     {"stencil3d size=-4", "between"},         {"stencil3d size=3.5", "whole"},
      {"stencil3d size=abc", "number"},    {"stencil3d sigma=nan", "number"},        {"stencil3d size=2000", "2147483647"},
      {"stencil2d size=46341", "at most"}, {"wathen nx=2147483647 ny=9", "at most"}, {"elasticity3d size=1000", "at most"},
      {"mass size=1500", "at most"},       {"biharmonic size=100000", "at most"},    {"fem3d size=600", "at most"},
      {"fem2d size=1", "larger"},          {"trefethen size=5e8", "between"},        {"graph size=2147483647 graph=shortcuts", "at most"},
      {"spd size=46341", "between"},       {"jnlbrng nx=1 ny=5", "at least 2 x 2"},  {"radiation size=5000", "at most"},
      {"weather size=3000", "at most"},
  };
  for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
    ht_matrix *a = NULL;
    ht_status status = generate_line(*state, all[s].line, &a);
    if (status != HT_BAD_OPTION) fail_msg("%s gave status %d", all[s].line, status);
    if (!strstr(ht_context_error(*state), all[s].word))
      fail_msg("%s: '%s' does not say '%s'", all[s].line, ht_context_error(*state), all[s].word);
    assert_null(a);
  }
}

static void exhausted_memory_leaks_nothing(void **state) {
  (void)state;
  failing_allocator memory;
  ht_context *ctx;
  assert_int_equal(failing_context(&memory, &ctx), HT_OK);
  for (int c = 0; c < CASES; c++)
    for (long n = 0;; n++) {
      ht_matrix *a = NULL;
      memory.fail_at = memory.requests + n;
      ht_status status = generate_line(ctx, cases[c], &a);
      if (status == HT_OK) {
        assert_true(n >= 3);
        ht_matrix_destroy(a);
        break;
      }
      if (status != HT_NO_MEMORY || a || memory.alive != 1)
        fail_msg("%s, request %ld: status %d, %ld blocks alive", cases[c], n, status, memory.alive);
    }
  memory.fail_at = -1;
  ht_context_destroy(ctx);
  assert_int_equal(memory.alive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_has_cases_and_words),
      cmocka_unit_test(what_is_accepted_changes_the_matrix),
      cmocka_unit_test(every_kind_is_canonical_and_symmetric_to_the_bit),
      cmocka_unit_test(every_kind_is_positive_definite),
      cmocka_unit_test(threads_do_not_change_a_bit),
      cmocka_unit_test(seeds_give_other_matrices),
      cmocka_unit_test(constant_stencils_have_their_entries),
      cmocka_unit_test(lognormal_values_are_inexact_below_fp64),
      cmocka_unit_test(wathen_is_the_published_matrix),
      cmocka_unit_test(trefethen_is_the_collections),
      cmocka_unit_test(biharmonic_has_thirteen_points),
      cmocka_unit_test(elasticity_does_not_feel_rigid_motions),
      cmocka_unit_test(mass_adds_up_to_the_volume),
      cmocka_unit_test(neumann_rows_sum_to_zero),
      cmocka_unit_test(finite_elements_find_the_frequency_of_a_membrane),
      cmocka_unit_test(bad_requests_are_refused_with_a_sentence),
      cmocka_unit_test(exhausted_memory_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, make_context, free_context);
}
