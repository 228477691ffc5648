/* Wathen's random finite element matrix. SPDX-License-Identifier: BSD-3-Clause */
#include "gen/gen.h"
#include "gen/random.h"

#define WATHEN(X)                                                                                                                          \
  X(INTEGER, nx, 100, 1, 2147483647, AT_PREPARE, NULL, "elements along x")                                                                 \
  X(INTEGER, ny, 100, 1, 2147483647, AT_PREPARE, NULL, "elements along y")                                                                 \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(wathen_parameters, WATHEN);

/* 45 times the consistent mass matrix of the 8-node serendipity element for density 1, nodes numbered around the element:
 * 0 upper right corner, 1 upper middle, 2 upper left, 3 left middle, 4 lower left, 5 lower middle, 6 lower right, 7 right. */
static const signed char element_mass[8][8] = {
    {6, -6, 2, -8, 3, -8, 2, -6}, {-6, 32, -6, 20, -8, 16, -8, 20}, {2, -6, 6, -6, 2, -8, 3, -8}, {-8, 20, -6, 32, -6, 20, -8, 16},
    {3, -8, 2, -6, 6, -6, 2, -8}, {-8, 16, -8, 20, -6, 32, -6, 20}, {2, -8, 3, -8, 2, -6, 6, -6}, {-6, 20, -8, 16, -8, 20, -6, 32},
};
/* The nodes' places in half elements from the element's lower left corner. */
static const signed char place[8][2] = {{2, 2}, {1, 2}, {0, 2}, {0, 1}, {0, 0}, {1, 0}, {2, 0}, {2, 1}};

/* Rows of nodes alternate: 2 nx + 1 nodes on the lines between elements, nx + 1 half way. */
static int64_t node_index(int64_t nx, int64_t x, int64_t y) { return y / 2 * (3 * nx + 2) + (y % 2 ? 2 * nx + 1 + x / 2 : x); }

static int64_t wathen_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const wathen_parameters *o = self;
  int64_t in_pair = i % (3 * o->nx + 2), half = in_pair > 2 * o->nx;
  int64_t x = half ? 2 * (in_pair - 2 * o->nx - 1) : in_pair, y = i / (3 * o->nx + 2) * 2 + half;
  ht_gen_sum row = {.count = 0};
  for (int64_t ey = (y - 1) / 2; ey <= y / 2; ey++)
    for (int64_t ex = (x - 1) / 2; ex <= x / 2; ex++) {
      if (ex < 0 || ey < 0 || ex >= o->nx || ey >= o->ny) continue;
      int a = 0;
      while (a < 8 && (2 * ex + place[a][0] != x || 2 * ey + place[a][1] != y)) a++;
      if (a == 8) continue;
      double density = 100 * ht_gen_uniform((uint64_t)o->seed, 0, (uint64_t)(ey * o->nx + ex));
      for (int b = 0; b < 8; b++)
        ht_gen_add(&row, node_index(o->nx, 2 * ex + place[b][0], 2 * ey + place[b][1]), density * element_mass[a][b] / 45);
    }
  return ht_gen_give(&row, columns, values);
}

static ht_status make_wathen(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const wathen_parameters *o = parameters;
  int64_t n = 0;
  HT_TRY(ctx, ht_gen_rows_of(ctx, 3 * o->nx + 2, o->ny + 1, 1, &n)); /* bounds the number below, and its intermediate values */
  HT_TRY(ctx, ht_gen_build(ctx, 3 * o->nx * o->ny + 2 * o->nx + 2 * o->ny + 1, wathen_row, o, source, matrix));
  return HT_OK;
}

static const ht_option_row wathen_rows[] = {
#define HT_OPTION_OWNER wathen_parameters
    WATHEN(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
const ht_gen_kind ht_gen_wathen = {
    .name = "wathen",
    .summary = "consistent mass matrix of serendipity elements with random densities (Higham's gallery)",
    .formula = "A = sum over nx x ny elements of rho_e M, M the 8 x 8 consistent mass matrix of the 8-node serendipity quadrilateral "
               "(entries such as 6/45, -6/45, 32/45), rho_e = 100 u_e with u_e uniform in (0, 1). n = 3 nx ny + 2 nx + 2 ny + 1; nodes "
               "numbered line by line, as in Higham's gallery('wathen', nx, ny).",
    .spd = "M is the Gram matrix of linearly independent shape functions, so positive definite; the densities are positive and every node "
           "belongs to an element. The Jacobi-scaled matrix has eigenvalues within [0.25, 4.5] (Wathen 1987).",
    HT_GEN_ROWS(wathen_rows),
    .fields = sizeof(wathen_parameters),
    .generate = make_wathen};
