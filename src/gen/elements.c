/* Structured finite elements and the biharmonic operator: elasticity3d, mass, biharmonic. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "gen/gen.h"

/* Cells around node (x, y, z) of a grid of cells c, in ascending order; `corner` is the node's place in the cell, a bit an axis. */
typedef struct cell_ref {
  int64_t cell[3], index;
  int corner;
} cell_ref;

static int cells_around(const int64_t c[3], const int64_t node[3], cell_ref *out) {
  int count = 0;
  for (int back = 7; back >= 0; back--) {
    int64_t cell[3];
    int inside = 1;
    for (int d = 0; d < 3; d++) {
      cell[d] = node[d] - (back >> d & 1);
      inside &= cell[d] >= 0 && cell[d] < c[d];
    }
    if (inside) out[count++] = (cell_ref){{cell[0], cell[1], cell[2]}, cell[0] + c[0] * (cell[1] + c[1] * cell[2]), back};
  }
  return count;
}

/* ---- Linear elasticity on cubes ---- */
#define ELASTICITY(X)                                                                                                                      \
  X(INTEGER, size, 16, 1, 2147483647, AT_PREPARE, NULL, "elements along each side", "nx=0 ny=0 nz=0")                                      \
  X(INTEGER, nx, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along x; 0 takes size")                                                     \
  X(INTEGER, ny, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along y; 0 takes size")                                                     \
  X(INTEGER, nz, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along z; 0 takes size")                                                     \
  X(REAL, young, 1, 1e-100, 1e100, AT_PREPARE, NULL, "Young's modulus, times k of the element")                                            \
  X(REAL, poisson, 0.3, 0, 0.499, AT_PREPARE, NULL, "Poisson's ratio")                                                                     \
  HT_GEN_CELLS(X)
HT_OPTION_STRUCT(elasticity_parameters, ELASTICITY);

typedef struct solid {
  int64_t c[3];
  const double *modulus; /* of each element */
  double stiffness[24][24];
} solid;

/* Integral over the unit cube of (d phi_a / d x_p) (d phi_b / d x_q): a product over the axes, so zeros come out as zeros. */
static double gradient_product(int a, int p, int b, int q) {
  double product = 1;
  for (int axis = 0; axis < 3; axis++) {
    int upper_a = a >> axis & 1, upper_b = b >> axis & 1;
    double slope_a = upper_a ? 1 : -1, slope_b = upper_b ? 1 : -1;
    if (axis == p && axis == q)
      product *= slope_a * slope_b;
    else if (axis == p)
      product *= slope_a / 2;
    else if (axis == q)
      product *= slope_b / 2;
    else
      product *= upper_a == upper_b ? 1.0 / 3 : 1.0 / 6;
  }
  return product;
}

/* The unit cube's stiffness for modulus 1:
 * K_(a,p),(b,q) = integral of lambda d_p a d_q b + mu d_q a d_p b + mu delta_pq grad a . grad b. */
static void cube_stiffness(double poisson, double stiffness[24][24]) {
  double lambda = poisson / ((1 + poisson) * (1 - 2 * poisson)), mu = 1 / (2 * (1 + poisson));
  for (int row = 0; row < 24; row++)
    for (int column = row; column < 24; column++) {
      int a = row / 3, p = row % 3, b = column / 3, q = column % 3;
      double sum = lambda * gradient_product(a, p, b, q) + mu * gradient_product(a, q, b, p);
      if (p == q)
        for (int axis = 0; axis < 3; axis++) sum += mu * gradient_product(a, axis, b, axis);
      stiffness[row][column] = stiffness[column][row] = sum;
    }
}

/* The face x = 0 is clamped, so nodes are counted from x = 1. */
static int64_t elasticity_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const solid *s = self;
  int64_t node = i / 3, nx = s->c[0], ny = s->c[1] + 1, at[3] = {node % nx + 1, node / nx % ny, node / nx / ny};
  cell_ref cells[8];
  int count = cells_around(s->c, at, cells);
  ht_gen_sum row = {.count = 0};
  for (int e = 0; e < count; e++) {
    const double *k = s->stiffness[3 * cells[e].corner + i % 3];
    for (int b = 0; b < 8; b++) {
      int64_t x = cells[e].cell[0] + (b & 1), y = cells[e].cell[1] + (b >> 1 & 1), z = cells[e].cell[2] + (b >> 2);
      if (x == 0) continue;
      int64_t column = 3 * (x - 1 + nx * (y + ny * z));
      for (int q = 0; q < 3; q++) ht_gen_add(&row, column + q, s->modulus[cells[e].index] * k[3 * b + q]);
    }
  }
  return ht_gen_give(&row, columns, values);
}

static ht_status make_elasticity3d(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const elasticity_parameters *o = parameters;
  solid s = {.c = HT_GEN_N3(o)};
  int64_t n = 0;
  double *modulus;
  HT_TRY(ctx, ht_gen_rows_of(ctx, 3 * s.c[0], s.c[1] + 1, s.c[2] + 1, &n));
  ht_gen_field field = HT_GEN_FIELD(o, s.c[0], s.c[1], s.c[2]);
  HT_TRY(ctx, ht_gen_coefficients(ctx, &field, &modulus));
  for (int64_t e = 0; e < s.c[0] * s.c[1] * s.c[2]; e++) modulus[e] *= o->young;
  s.modulus = modulus;
  cube_stiffness(o->poisson, s.stiffness);
  ht_status status = ht_gen_build(ctx, n, elasticity_row, &s, source, matrix);
  ht_release(ctx, modulus);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- Consistent mass matrices ---- */
#define MASS(X)                                                                                                                            \
  X(CHOICE, element, 0, 0, 1, AT_PREPARE, "q1|p1", "multilinear on cells, or linear on the simplices of Kuhn's split")                     \
  X(INTEGER, dimension, 3, 2, 3, AT_PREPARE, NULL, "2 or 3")                                                                               \
  X(INTEGER, size, 32, 1, 2147483647, AT_PREPARE, NULL, "elements along each side", "nx=0 ny=0 nz=0")                                      \
  X(INTEGER, nx, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along x; 0 takes size")                                                     \
  X(INTEGER, ny, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along y; 0 takes size")                                                     \
  X(INTEGER, nz, 0, 0, 2147483647, AT_PREPARE, NULL, "elements along z; 0 takes size", "dimension=3")                                      \
  HT_GEN_CELLS(X)
HT_OPTION_STRUCT(mass_parameters, MASS);

typedef struct body {
  int64_t c[3], nodes[3];
  int dimension;
  const double *density;
  double cell[8][8]; /* mass matrix of a cell by the corners' bits; 0 where they share no element */
} body;

static int bits(int mask) { return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1); }

/* Along each axis 1/3 for the same side and 1/6 for the other. */
static double q1_mass(int dimension, int a, int b) { return ldexp(1, dimension - bits(a ^ b)) / pow(6, dimension); }

/* Kuhn's simplices are the paths from corner 0 to the opposite one, an axis at a time: d! of them with volume 1/d!. Those
 * through a and b number a!(b-a)!(d-b)! in bits when a is part of b; each has mass V (1 + delta) / ((d+1)(d+2)). */
static double p1_mass(int dimension, int a, int b) {
  static const double factorial[] = {1, 1, 2, 6};
  int low = bits(a) <= bits(b) ? a : b, high = low == a ? b : a;
  if ((low & high) != low) return 0;
  double paths = factorial[bits(low)] * factorial[bits(high) - bits(low)] * factorial[dimension - bits(high)];
  return paths * (a == b ? 2 : 1) / (factorial[dimension] * (dimension + 1) * (dimension + 2));
}

static int64_t mass_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const body *m = self;
  int64_t nx = m->nodes[0], ny = m->nodes[1], at[3] = {i % nx, i / nx % ny, i / nx / ny};
  cell_ref cells[8];
  int count = cells_around(m->c, at, cells);
  ht_gen_sum row = {.count = 0};
  for (int e = 0; e < count; e++)
    for (int b = 0; b < 1 << m->dimension; b++) {
      double mass = m->cell[cells[e].corner][b];
      if (mass == 0) continue;
      int64_t x = cells[e].cell[0] + (b & 1), y = cells[e].cell[1] + (b >> 1 & 1), z = cells[e].cell[2] + (b >> 2);
      ht_gen_add(&row, x + nx * (y + ny * z), m->density[cells[e].index] * mass);
    }
  return ht_gen_give(&row, columns, values);
}

static ht_status make_mass(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const mass_parameters *o = parameters;
  body m = {.c = HT_GEN_N3(o), .dimension = (int)o->dimension};
  if (m.dimension == 2) m.c[2] = 1;
  for (int d = 0; d < 3; d++) m.nodes[d] = d < m.dimension ? m.c[d] + 1 : 1;
  for (int a = 0; a < 1 << m.dimension; a++)
    for (int b = 0; b < 1 << m.dimension; b++) m.cell[a][b] = o->element ? p1_mass(m.dimension, a, b) : q1_mass(m.dimension, a, b);
  int64_t n = 0;
  double *density;
  HT_TRY(ctx, ht_gen_rows_of(ctx, m.nodes[0], m.nodes[1], m.nodes[2], &n));
  ht_gen_field field = HT_GEN_FIELD(o, m.c[0], m.c[1], m.c[2]);
  HT_TRY(ctx, ht_gen_coefficients(ctx, &field, &density));
  m.density = density;
  ht_status status = ht_gen_build(ctx, n, mass_row, &m, source, matrix);
  ht_release(ctx, density);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- Biharmonic ---- */
#define BIHARMONIC(X)                                                                                                                      \
  HT_GEN_SIDES2(X, 64)                                                                                                                     \
  X(CHOICE, boundary, 0, 0, 1, AT_PREPARE, "supported|clamped", "how the plate is held")                                                   \
  HT_GEN_CELLS(X)
HT_OPTION_STRUCT(biharmonic_parameters, BIHARMONIC);

typedef struct plate {
  int64_t n[2];
  const double *k;
  int clamped;
} plate;

/* Row i of the five-point Laplacian. */
static int laplacian_row(const int64_t n[2], int64_t i, int64_t columns[5], double values[5]) {
  int64_t x = i % n[0], y = i / n[0];
  int count = 0;
  const struct {
    int inside;
    int64_t step;
  } neighbours[5] = {{y > 0, -n[0]}, {x > 0, -1}, {1, 0}, {x < n[0] - 1, 1}, {y < n[1] - 1, n[0]}};
  for (int k = 0; k < 5; k++)
    if (neighbours[k].inside) {
      columns[count] = i + neighbours[k].step;
      values[count++] = neighbours[k].step == 0 ? 4 : -1;
    }
  return count;
}

static int64_t biharmonic_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const plate *p = self;
  int64_t middle[5], end[5];
  double left[5], right[5];
  ht_gen_sum row = {.count = 0};
  int count = laplacian_row(p->n, i, middle, left);
  for (int m = 0; m < count; m++) {
    int ends = laplacian_row(p->n, middle[m], end, right);
    for (int e = 0; e < ends; e++) ht_gen_add(&row, end[e], left[m] * p->k[middle[m]] * right[e]);
  }
  if (p->clamped) ht_gen_add(&row, i, 2 * (5 - count) * p->k[i]);
  return ht_gen_give(&row, columns, values);
}

static ht_status make_biharmonic(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const biharmonic_parameters *o = parameters;
  const int64_t n[3] = HT_GEN_N2(o);
  ht_gen_field field = HT_GEN_FIELD(o, n[0], n[1], 1);
  double *k;
  HT_TRY(ctx, ht_gen_coefficients(ctx, &field, &k));
  plate p = {{n[0], n[1]}, k, o->boundary};
  ht_status status = ht_gen_build(ctx, n[0] * n[1], biharmonic_row, &p, source, matrix);
  ht_release(ctx, k);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static const ht_option_row elasticity_rows[] = {
#define HT_OPTION_OWNER elasticity_parameters
    ELASTICITY(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row mass_rows[] = {
#define HT_OPTION_OWNER mass_parameters
    MASS(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row biharmonic_rows[] = {
#define HT_OPTION_OWNER biharmonic_parameters
    BIHARMONIC(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

const ht_gen_kind ht_gen_elasticity3d = {
    .name = "elasticity3d",
    .summary = "linear elasticity, trilinear hexahedra, 3 unknowns a node, one face clamped",
    .formula =
        "Sum over unit cubes of young k_e K, K the 24 x 24 stiffness of the trilinear cube for modulus 1 and the given Poisson ratio. "
        "Unknowns (u, v, w) of a node together, their 3 x 3 blocks stored whole; nodes of the face x = 0 are clamped and eliminated: n = 3 "
        "nx (ny+1) (nz+1).",
    .spd = "The elastic energy is positive but for rigid motions, and none of these is zero on the clamped face (Korn's inequality).",
    HT_GEN_ROWS(elasticity_rows),
    .fields = sizeof(elasticity_parameters),
    .generate = make_elasticity3d};
const ht_gen_kind ht_gen_mass = {
    .name = "mass",
    .summary = "consistent finite element mass matrices on a grid, Q1 or P1",
    .formula =
        "a_ij = sum over elements of k_e integral phi_i phi_j, unit cells. q1: a product over the axes of 1/3 (same side) or 1/6. p1: "
        "(1 + delta_ij) V / ((d+1)(d+2)) for each simplex of volume V = 1/d! that holds both; 7 or 15 entries a row. No boundary "
        "condition.",
    .spd = "The Gram matrix of linearly independent functions with positive densities. Jacobi-scaled eigenvalues lie within fixed bounds.",
    HT_GEN_ROWS(mass_rows),
    .fields = sizeof(mass_parameters),
    .generate = make_mass};
const ht_gen_kind ht_gen_biharmonic = {
    .name = "biharmonic",
    .summary = "bending of a plate, 13 points",
    .formula = "A = L D L, L the five-point Laplacian (4, -1; Dirichlet), D = diag(k): entries 20, -8, 2, 1 inside for k = 1. clamped: + 2 "
               "k_i for "
               "each side of the plate that point i lies next to.",
    .spd = "L is nonsingular and D positive, so L D L is positive definite; the clamped term is a non-negative diagonal.",
    HT_GEN_ROWS(biharmonic_rows),
    .fields = sizeof(biharmonic_parameters),
    .generate = make_biharmonic};
