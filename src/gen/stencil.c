/* Stencils on grids: stencil2d, stencil3d, laplace27, laplace27e8, neumann. SPDX-License-Identifier: BSD-3-Clause */
#include "gen/gen.h"

#define COEFFICIENTS(X)                                                                                                                    \
  HT_GEN_CELLS_WITH(X, "constant|lognormal|jumps|anisotropic")                                                                             \
  X(REAL, anisotropy, 100, 1e-15, 1e15, AT_PREPARE, NULL, "factor on couplings along x", "coefficients=anisotropic")
#define STENCIL2D(X)                                                                                                                       \
  X(CHOICE, points, 0, 0, 1, AT_PREPARE, "5|9", "points of the stencil")                                                                   \
  HT_GEN_SIDES2(X, 200)                                                                                                                    \
  COEFFICIENTS(X)
#define STENCIL3D(X)                                                                                                                       \
  X(CHOICE, points, 3, 0, 3, AT_PREPARE, "7|15|19|27", "points of the stencil")                                                            \
  HT_GEN_SIDES3(X, 32)                                                                                                                     \
  COEFFICIENTS(X)
#define LAPLACE27(X) HT_GEN_SIDES3(X, 64)
#define NEUMANN(X)                                                                                                                         \
  X(CHOICE, points, 2, 0, 5, AT_PREPARE, "5|9|7|15|19|27", "points of the stencil; 5 and 9 are flat")                                      \
  HT_GEN_PLANE(X, 32, "nx=0 ny=0 nz=0")                                                                                                    \
  X(INTEGER, nz, 0, 0, 2147483647, AT_PREPARE, NULL, "points along z; 0 takes size", "points=7|15|19|27")                                  \
  COEFFICIENTS(X)
HT_OPTION_STRUCT(stencil2d_parameters, STENCIL2D);
HT_OPTION_STRUCT(stencil3d_parameters, STENCIL3D);
HT_OPTION_STRUCT(laplace27_parameters, LAPLACE27);
HT_OPTION_STRUCT(neumann_parameters, NEUMANN);

typedef struct weights {
  const double *k;  /* of the cells, or NULL: 1 everywhere */
  double factor[8]; /* of a direction, by its axes */
  double scale;
  int closed; /* nothing flows out of the grid */
} weights;

static double weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const weights *w = self;
  (void)rising;
  if (b < 0 && w->closed) return 0;
  double k = !w->k ? 1 : b < 0 ? w->k[a] : ht_gen_harmonic(w->k[a], w->k[b]);
  return w->scale * (w->factor[axes] * k);
}

static ht_status make(ht_context *ctx, int points, const ht_gen_field *field, double anisotropy, int closed, const char *source,
                      ht_matrix **matrix) {
  double along_x = field->coefficients == HT_GEN_ANISOTROPIC ? anisotropy : 1, *k = NULL;
  weights w = {.scale = 1, .closed = closed};
  for (int axes = 1; axes < 8; axes++) { /* a diagonal neighbour gets the mean of its axes' factors */
    int x = axes & 1, others = (axes >> 1 & 1) + (axes >> 2);
    w.factor[axes] = (x * along_x + others) / (x + others);
  }
  if (field->coefficients == HT_GEN_LOGNORMAL || field->coefficients == HT_GEN_JUMPS) HT_TRY(ctx, ht_gen_coefficients(ctx, field, &k));
  w.k = k;
  ht_gen_grid grid = {{field->n[0], field->n[1], field->n[2]}, points, weight, NULL, &w, 0};
  ht_status status = ht_gen_from_grid(ctx, &grid, source, matrix);
  ht_release(ctx, k);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static ht_status make_stencil2d(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const stencil2d_parameters *o = parameters;
  const int points[] = {5, 9};
  const int64_t n[3] = HT_GEN_N2(o);
  ht_gen_field field = HT_GEN_FIELD(o, n[0], n[1], n[2]);
  return make(ctx, points[o->points], &field, o->anisotropy, 0, source, matrix);
}

static ht_status make_stencil3d(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const stencil3d_parameters *o = parameters;
  const int points[] = {7, 15, 19, 27};
  const int64_t n[3] = HT_GEN_N3(o);
  ht_gen_field field = HT_GEN_FIELD(o, n[0], n[1], n[2]);
  return make(ctx, points[o->points], &field, o->anisotropy, 0, source, matrix);
}

static ht_status make_neumann(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const neumann_parameters *o = parameters;
  const int points[] = {5, 9, 7, 15, 19, 27};
  int64_t n[3] = HT_GEN_N3(o);
  if (o->points < 2) n[2] = 1;
  ht_gen_field field = HT_GEN_FIELD(o, n[0], n[1], n[2]);
  return make(ctx, points[o->points], &field, o->anisotropy, 1, source, matrix);
}

static ht_status laplace27(ht_context *ctx, const void *parameters, double scale, const char *source, ht_matrix **matrix) {
  const laplace27_parameters *o = parameters;
  weights w = {.factor = {1, 1, 1, 1, 1, 1, 1, 1}, .scale = scale};
  ht_gen_grid grid = {HT_GEN_N3(o), 27, weight, NULL, &w, 0};
  return ht_gen_from_grid(ctx, &grid, source, matrix);
}

static ht_status make_laplace27(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  return laplace27(ctx, parameters, 1, source, matrix);
}

static ht_status make_laplace27e8(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  return laplace27(ctx, parameters, 1e8, source, matrix);
}

static const ht_option_row stencil2d_rows[] = {
#define HT_OPTION_OWNER stencil2d_parameters
    STENCIL2D(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row stencil3d_rows[] = {
#define HT_OPTION_OWNER stencil3d_parameters
    STENCIL3D(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row laplace27_rows[] = {
#define HT_OPTION_OWNER laplace27_parameters
    LAPLACE27(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row neumann_rows[] = {
#define HT_OPTION_OWNER neumann_parameters
    NEUMANN(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

#define STENCIL_FORMULA                                                                                                                    \
  "a_ij = -w_ij for the neighbours j of point i (x fastest), a_ii = the sum of all w_ij, neighbours outside the grid (u = 0 there) "       \
  "included. w_ij = f_ij 2 k_i k_j / (k_i + k_j), the harmonic mean of the cells' coefficients; to outside, f k_i. constant: k = 1, so "   \
  "the diagonal is the number of neighbours of the full stencil and the off-diagonals are -1. lognormal: k = exp(sigma g), g normal. "     \
  "jumps: k is 1 or contrast by a coin for each block. anisotropic: k = 1, f = anisotropy along x, 1 along the others, the mean of its "   \
  "axes' factors for a diagonal neighbour."
#define STENCIL_SPD                                                                                                                        \
  "Irreducibly diagonally dominant with a positive diagonal: every row sum is 0 or, next to the boundary, positive, and the grid is "      \
  "connected. An M-matrix."

const ht_gen_kind ht_gen_stencil2d = {.name = "stencil2d",
                                      .summary = "2-D diffusion on a grid, Dirichlet, 5 or 9 points",
                                      .formula = STENCIL_FORMULA,
                                      .spd = STENCIL_SPD,
                                      HT_GEN_ROWS(stencil2d_rows),
                                      .fields = sizeof(stencil2d_parameters),
                                      .generate = make_stencil2d};
const ht_gen_kind ht_gen_stencil3d = {.name = "stencil3d",
                                      .summary = "3-D diffusion on a grid, Dirichlet, 7, 15, 19 or 27 points",
                                      .formula = STENCIL_FORMULA " The 15 points are the edges of Kuhn's split of a cube into tetrahedra.",
                                      .spd = STENCIL_SPD,
                                      HT_GEN_ROWS(stencil3d_rows),
                                      .fields = sizeof(stencil3d_parameters),
                                      .generate = make_stencil3d};
const ht_gen_kind ht_gen_laplace27 = {.name = "laplace27",
                                      .summary = "27-point Laplacian",
                                      .formula = "Diagonal 26, -1 for each of the 26 neighbours in the grid.",
                                      .spd = STENCIL_SPD,
                                      HT_GEN_ROWS(laplace27_rows),
                                      .fields = sizeof(laplace27_parameters),
                                      .generate = make_laplace27};
const ht_gen_kind ht_gen_laplace27e8 = {.name = "laplace27e8",
                                        .summary = "27-point Laplacian times 1e8: beyond the range of FP16",
                                        .formula = "1e8 times laplace27: diagonal 2.6e9, neighbours -1e8.",
                                        .spd = "A positive multiple of laplace27.",
                                        HT_GEN_ROWS(laplace27_rows),
                                        .fields = sizeof(laplace27_parameters),
                                        .generate = make_laplace27e8};
const ht_gen_kind ht_gen_neumann = {
    .name = "neumann",
    .summary = "singular diffusion with nothing flowing out: for tests of consistency",
    .formula = "As stencil2d and stencil3d with the weights to outside left out: all row sums are 0.",
    .spd = "Positive SEMIdefinite: a graph Laplacian of a connected grid; its null space is the constant vectors, so A x = b has "
           "solutions exactly when the entries of b sum to 0. A grid of one point gives the 1 x 1 zero matrix.",
    HT_GEN_ROWS(neumann_rows),
    .fields = sizeof(neumann_parameters),
    .generate = make_neumann};
