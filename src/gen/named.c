/* Matrices of the SuiteSparse collection that have a formula: jnlbrng, torsion, obstacle, fv, cvxbqp, trefethen.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "gen/gen.h"
#include "gen/random.h"

/* ---- The quadratic bound-constrained problems of More and Toraldo on a grid ---- */
#define JNLBRNG(X)                                                                                                                         \
  HT_GEN_SIDES2(X, 200)                                                                                                                    \
  X(REAL, eccentricity, 0.1, 0, 0.999, AT_PREPARE, NULL, "eccentricity of the bearing")                                                    \
  X(REAL, length, 20, 1e-3, 1e6, AT_PREPARE, NULL, "length of the bearing, with radius 1")                                                 \
  X(REAL, shift, 0.1, 1e-12, 1e6, AT_PREPARE, NULL, "added to the diagonal, twice on the boundary")
#define OBSTACLE(X)                                                                                                                        \
  HT_GEN_SIDES2(X, 200)                                                                                                                    \
  X(REAL, shift, 0.2, 1e-12, 1e6, AT_PREPARE, NULL, "added to the diagonal")
HT_OPTION_STRUCT(jnlbrng_parameters, JNLBRNG);
HT_OPTION_STRUCT(obstacle_parameters, OBSTACLE);

typedef struct bearing {
  int64_t n[2]; /* points along the bearing (fast) and around it */
  double h[2], eccentricity, shift;
} bearing;

/* The film's thickness cubed at point t around the bearing. */
static double film(const bearing *g, int64_t t) {
  double thickness = 1 + g->eccentricity * cos((double)t * g->h[1]);
  return thickness * thickness * thickness;
}

/* Each cell is two triangles: the one at its lower corner (t, y), and the one at its upper corner. An edge belongs to at
 * most one of each sort; a triangle's weight is the mean film over its corners. */
static double bearing_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const bearing *g = self;
  (void)rising;
  if (b < 0) return 0;
  int64_t y = a % g->n[0], t = a / g->n[0];
  int around = axes == 2;
  int64_t upper_t = t + around; /* where the edge ends: the corner of the upper triangle */
  double sum = 0;
  if (around ? y < g->n[0] - 1 : t < g->n[1] - 1) sum += (2 * film(g, t) + film(g, t + 1)) / 6;
  if (around ? y > 0 : t > 0) sum += (2 * film(g, upper_t) + film(g, upper_t - 1)) / 6;
  return around ? sum * (g->h[0] / g->h[1]) : sum * (g->h[1] / g->h[0]);
}

static int on_edge(int64_t i, const int64_t n[2]) {
  int64_t x = i % n[0], y = i / n[0];
  return x == 0 || y == 0 || x == n[0] - 1 || y == n[1] - 1;
}

static double bearing_shift(const void *self, int64_t i) {
  const bearing *g = self;
  return on_edge(i, g->n) ? 2 * g->shift : g->shift;
}

static ht_status make_jnlbrng(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const jnlbrng_parameters *o = parameters;
  const int64_t n[3] = HT_GEN_N2(o);
  HT_CHECK(ctx, n[0] > 1 && n[1] > 1, HT_BAD_OPTION, "jnlbrng needs at least 2 x 2 points, and was given %lld x %lld", (long long)n[0],
           (long long)n[1]);
  bearing g = {{n[0], n[1]}, {o->length / (double)(n[0] - 1), 2 * HT_GEN_PI / (double)(n[1] - 1)}, o->eccentricity, o->shift};
  ht_gen_grid grid = {{n[0], n[1], 1}, 5, bearing_weight, bearing_shift, &g, 0};
  return ht_gen_from_grid(ctx, &grid, source, matrix);
}

/* An edge counts 1/2 from each of its ends that lies inside. */
static double obstacle_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const obstacle_parameters *o = self;
  const int64_t n[3] = HT_GEN_N2(o);
  (void)axes;
  (void)rising;
  return b < 0 ? 0 : 0.5 * (!on_edge(a, n) + !on_edge(b, n));
}

static double obstacle_shift(const void *self, int64_t i) {
  (void)i;
  return ((const obstacle_parameters *)self)->shift;
}

static ht_status make_obstacle(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const obstacle_parameters *o = parameters;
  ht_gen_grid grid = {HT_GEN_N2(o), 5, obstacle_weight, obstacle_shift, o, 1};
  return ht_gen_from_grid(ctx, &grid, source, matrix);
}

/* ---- fv1, fv2, fv3 ---- */
#define FV(X)                                                                                                                              \
  HT_GEN_SIDES2(X, 98)                                                                                                                     \
  X(REAL, diagonal, 3.510152, 3, 6, AT_PREPARE, NULL, "the diagonal entry")
HT_OPTION_STRUCT(fv_parameters, FV);

static double fv_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  (void)self;
  (void)a;
  (void)b;
  (void)rising;
  return axes == 3 ? 0.25 : 0.5;
}

static double fv_shift(const void *self, int64_t i) {
  (void)i;
  return ((const fv_parameters *)self)->diagonal - 3; /* exact, and so is adding the weights' sum 3 again */
}

static ht_status make_fv(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const fv_parameters *o = parameters;
  ht_gen_grid grid = {HT_GEN_N2(o), 9, fv_weight, fv_shift, o, 0};
  return ht_gen_from_grid(ctx, &grid, source, matrix);
}

/* ---- cvxbqp1 ---- */
#define CVXBQP(X)                                                                                                                          \
  X(INTEGER, size, 50000, 1, 2147483647, AT_PREPARE, NULL, "unknowns")                                                                     \
  X(REAL, shift, 0.2, 1e-12, 1e6, AT_PREPARE, NULL, "added to the diagonal")
HT_OPTION_STRUCT(cvxbqp_parameters, CVXBQP);

static int64_t cvxbqp_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const cvxbqp_parameters *o = self;
  int64_t n = o->size, r = i + 1, terms[6];
  int count = 0;
  for (int m = 1; m <= 3; m++) /* the terms t with m t = r (mod n) */
    for (int64_t k = 0; k < m; k++) {
      int64_t t = (r + k * n) / m;
      int known = (r + k * n) % m != 0 || t > n;
      for (int q = 0; q < count; q++) known |= terms[q] == t;
      if (!known) terms[count++] = t;
    }
  ht_gen_sum row = {.count = 0};
  for (int q = 0; q < count; q++) {
    int64_t t = terms[q], of[3] = {t - 1, (2 * t - 1) % n, (3 * t - 1) % n};
    int times = (of[0] == i) + (of[1] == i) + (of[2] == i);
    for (int c = 0; c < 3; c++) ht_gen_add(&row, of[c], (double)(t * times)); /* whole numbers: exact in any order */
  }
  ht_gen_add(&row, i, o->shift);
  return ht_gen_give(&row, columns, values);
}

static ht_status make_cvxbqp(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const cvxbqp_parameters *o = parameters;
  return ht_gen_build(ctx, o->size, cvxbqp_row, o, source, matrix);
}

/* ---- Trefethen's primes ---- */
#define TREFETHEN(X) X(INTEGER, size, 20000, 1, 50000000, AT_PREPARE, NULL, "unknowns")
HT_OPTION_STRUCT(trefethen_parameters, TREFETHEN);

typedef struct primes {
  int64_t n;
  int32_t *prime;
} primes;

static int64_t trefethen_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const primes *p = self;
  int64_t count = 0, largest = 1;
  while (2 * largest <= i) largest *= 2;
  for (int64_t step = largest; step >= 1; step /= 2)
    if (step <= i) {
      if (columns) columns[count] = (int32_t)(i - step), values[count] = 1;
      count++;
    }
  if (columns) columns[count] = (int32_t)i, values[count] = p->prime[i];
  count++;
  for (int64_t step = 1; i + step < p->n; step *= 2) {
    if (columns) columns[count] = (int32_t)(i + step), values[count] = 1;
    count++;
  }
  return count;
}

/* The first n primes by Eratosthenes' sieve over the odd numbers; the n-th is below n (log n + log log n) for n >= 6. */
static ht_status sieve(ht_context *ctx, primes *p) {
  double n = (double)p->n;
  int64_t limit = p->n < 6 ? 14 : (int64_t)(n * (log(n) + log(log(n)))) + 1, found = 1;
  char *composite;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, limit / 2 + 1, 1, &composite)); /* entry k stands for 2k + 1 */
  p->prime[0] = 2;
  for (int64_t k = 1; k <= limit / 2 && found < p->n; k++) {
    if (composite[k]) continue;
    int64_t q = 2 * k + 1;
    p->prime[found++] = (int32_t)q;
    if (q > limit / q) continue;
    for (int64_t m = (q * q - 1) / 2; m <= limit / 2; m += q) composite[m] = 1;
  }
  ht_release(ctx, composite);
  return HT_OK;
}

static ht_status make_trefethen(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  primes p = {.n = ((const trefethen_parameters *)parameters)->size};
  HT_TRY(ctx, ht_allocate(ctx, p.n, sizeof *p.prime, &p.prime));
  ht_status status = sieve(ctx, &p);
  if (status == HT_OK) status = ht_gen_build(ctx, p.n, trefethen_row, &p, source, matrix);
  ht_release(ctx, p.prime);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static const ht_option_row jnlbrng_rows[] = {
#define HT_OPTION_OWNER jnlbrng_parameters
    JNLBRNG(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row obstacle_rows[] = {
#define HT_OPTION_OWNER obstacle_parameters
    OBSTACLE(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row fv_rows[] = {
#define HT_OPTION_OWNER fv_parameters
    FV(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row cvxbqp_rows[] = {
#define HT_OPTION_OWNER cvxbqp_parameters
    CVXBQP(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row trefethen_rows[] = {
#define HT_OPTION_OWNER trefethen_parameters
    TREFETHEN(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

#define OBSTACLE_FORMULA                                                                                                                   \
  "Five points on nx x ny points, boundary included: an edge has weight 1 between inner points, 1/2 to a boundary point, none along the "  \
  "boundary; a_ij = -weight, a_ii = the sum of i's weights + shift. The Hessian of the bound-constrained problem"
#define DOMINANT "A graph Laplacian with positive weights (semidefinite) plus a positive diagonal."

const ht_gen_kind ht_gen_jnlbrng = {
    .name = "jnlbrng",
    .summary = "journal bearing, 200 x 200 points: SuiteSparse's jnlbrng1 (to the 10 digits that file carries)",
    .formula =
        "Linear triangles for -div(w grad u), w = (1 + eccentricity cos t)^3, on (0, 2 pi) x (0, length), ny points around (t, slow) and "
        "nx along (fast), boundary points kept without a condition. With w_t at point t, the triangle at the lower corner of a cell has "
        "weight (2 w_t + w_{t+1})/6, that at the upper corner (2 w_{t+1} + w_t)/6, times h_y/h_t on edges around and h_t/h_y on edges "
        "along. Diagonal + shift, + 2 shift on the boundary. The Hessian of JNLBRNG1 in CUTEst.",
    .spd = DOMINANT,
    HT_GEN_ROWS(jnlbrng_rows),
    .fields = sizeof(jnlbrng_parameters),
    .generate = make_jnlbrng};
const ht_gen_kind ht_gen_torsion = {.name = "torsion",
                                    .summary = "elastic-plastic torsion, 200 x 200 points: SuiteSparse's torsion1",
                                    .formula = OBSTACLE_FORMULA " TORSION1 in CUTEst, whose torque enters the linear term only.",
                                    .spd = DOMINANT,
                                    HT_GEN_ROWS(obstacle_rows),
                                    .fields = sizeof(obstacle_parameters),
                                    .generate = make_obstacle};
const ht_gen_kind ht_gen_obstacle = {.name = "obstacle",
                                     .summary = "obstacle problem, 200 x 200 points: SuiteSparse's obstclae",
                                     .formula = OBSTACLE_FORMULA " OBSTCLAE in CUTEst: the same numbers as torsion.",
                                     .spd = DOMINANT,
                                     HT_GEN_ROWS(obstacle_rows),
                                     .fields = sizeof(obstacle_parameters),
                                     .generate = make_obstacle};
const ht_gen_kind ht_gen_fv = {.name = "fv",
                               .summary =
                                   "nine points with a given diagonal: SuiteSparse's fv1 (98, 3.510152), fv2 (99, 3.51005), fv3 (99, 3)",
                               .formula = "a_ii = diagonal, -1/2 for the neighbours along an axis, -1/4 for the diagonal ones.",
                               .spd = "The eight weights sum to 3: strictly diagonally dominant for diagonal > 3, irreducibly so for 3.",
                               HT_GEN_ROWS(fv_rows),
                               .fields = sizeof(fv_parameters),
                               .generate = make_fv};
const ht_gen_kind ht_gen_cvxbqp = {
    .name = "cvxbqp",
    .summary = "convex quadratic programme with scattered couplings: SuiteSparse's cvxbqp1",
    .formula = "A = sum over i = 1..n of i g_i g_i' + shift I, g_i = e_i + e_{(2i-1 mod n)+1} + e_{(3i-1 mod n)+1}.",
    .spd = "A sum of positive semidefinite terms plus a positive multiple of I.",
    HT_GEN_ROWS(cvxbqp_rows),
    .fields = sizeof(cvxbqp_parameters),
    .generate = make_cvxbqp};
const ht_gen_kind ht_gen_trefethen = {
    .name = "trefethen",
    .summary = "Trefethen's primes: SuiteSparse's Trefethen_20000 and its smaller ones",
    .formula = "a_ii = the i-th prime (2, 3, 5, ...), a_ij = 1 where |i - j| is 1, 2, 4, 8, ..., else 0.",
    .spd = "Row i is strictly dominant once its prime exceeds its 2 log2(n) or so ones: all but the first dozen rows. For the whole it is "
           "computed, not proved: the smallest eigenvalue is 1.12 for n = 150 and for n = 20,000 (SuiteSparse).",
    HT_GEN_ROWS(trefethen_rows),
    .fields = sizeof(trefethen_parameters),
    .generate = make_trefethen};
