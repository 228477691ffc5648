/* Linear and quadratic finite elements on unstructured meshes: fem2d, fem3d. SPDX-License-Identifier: BSD-3-Clause */
#include "gen/mesh.h"
#include "gen/random.h"

enum { STREAM_NUMBERING = 31, MOST_NODES = 10 };

#define FEM(X, side, hole_count)                                                                                                           \
  X(INTEGER, order, 1, 1, 2, AT_PREPARE, NULL, "1: linear, 2: quadratic elements")                                                         \
  X(INTEGER, size, side, 1, 32767, AT_PREPARE, NULL, "cells along each side of the grid the mesh is made from")                            \
  X(INTEGER, holes, hole_count, 0, 100000, AT_PREPARE, NULL, "circles or spheres cut out")                                                 \
  X(REAL, grading, 10, 1, 1e6, AT_PREPARE, NULL, "largest over smallest spacing along a side, small at the origin")                        \
  X(REAL, perturbation, 0.25, 0, 0.5, AT_PREPARE, NULL, "how far inner vertices are moved, in spacings")                                   \
  X(CHOICE, numbering, 0, 0, 1, AT_PREPARE, "mesh|random", "order of the unknowns")                                                        \
  X(CHOICE, form, 0, 0, 1, AT_PREPARE, "stiffness|mass", "which matrix")                                                                   \
  HT_GEN_FIELD_OF(X, "constant|lognormal|jumps")                                                                                           \
  HT_GEN_SEED(X)
#define FEM2D(X) FEM(X, 64, 5)
#define FEM3D(X) FEM(X, 16, 4)
HT_OPTION_STRUCT(fem_parameters, FEM2D); /* both lists have the same fields */

/* A mesh with its unknowns. Local nodes of an element: its vertices, then, for order 2, its edges (a, b), a < b, in the
 * order of pair_a and pair_b. */
typedef struct space {
  const fem_parameters *o;
  ht_gen_mesh mesh;
  int nodes;                                  /* of an element */
  int pair_a[MOST_NODES], pair_b[MOST_NODES]; /* the vertices a local node lies between; equal for a vertex */
  int64_t unknowns;
  int32_t *unknown;    /* of each vertex (order 1) or of each element's nodes (order 2); -1: held at 0 */
  int32_t *order;      /* the number of each unknown, counted in mesh order; NULL: that count */
  int64_t *user_start; /* elements that each unknown, in mesh order, belongs to */
  int32_t *user;
} space;

static int32_t unknown_of(const space *s, int64_t e, int node) {
  if (s->o->order == 2) return s->unknown[e * s->nodes + node];
  return s->unknown[s->mesh.element[e * s->nodes + node]];
}

/* The volume V of an element, and G_ab = V grad(lambda_a) . grad(lambda_b) for the row a = `only`, or all rows if -1. */
static double gradients(const ht_gen_mesh *mesh, int64_t e, int only, double g[4][4]) {
  int d = mesh->dimension;
  double edge[3][3], slope[4][3] = {{0}};
  double det = ht_gen_simplex(d, mesh->x, mesh->element + e * (d + 1), edge), inverse = 1 / det;
  double volume = (det < 0 ? -det : det) / (d == 3 ? 6 : 2);
  for (int a = 0; a < d; a++) { /* the inverse of the matrix of edges, by its cofactors */
    const double *u = edge[(a + 1) % d], *v = edge[(a + 2) % 3];
    double *out = slope[a + 1];
    if (d == 2) {
      out[0] = (a == 0 ? u[1] : -u[1]) * inverse;
      out[1] = (a == 0 ? -u[0] : u[0]) * inverse;
    } else {
      out[0] = (u[1] * v[2] - u[2] * v[1]) * inverse;
      out[1] = (u[2] * v[0] - u[0] * v[2]) * inverse;
      out[2] = (u[0] * v[1] - u[1] * v[0]) * inverse;
    }
    for (int axis = 0; axis < 3; axis++) slope[0][axis] -= out[axis];
  }
  for (int a = only < 0 ? 0 : only; a <= (only < 0 ? d : only); a++)
    for (int b = 0; b <= d; b++) g[a][b] = volume * (slope[a][0] * slope[b][0] + slope[a][1] * slope[b][1] + slope[a][2] * slope[b][2]);
  return volume;
}

/* Mean over a d-simplex of a product of barycentric coordinates, given the number of times each occurs:
 * d! prod(times!) / (d + sum)!. */
static double mean_of(int d, const int times[4]) {
  double value = 1;
  int sum = 0;
  for (int a = 0; a <= d; a++)
    for (int t = 1; t <= times[a]; t++) {
      sum++;
      value *= (double)t / (d + sum);
    }
  return value;
}

static double mean2(int d, int a, int b) {
  int times[4] = {0};
  times[a]++;
  times[b]++;
  return mean_of(d, times);
}

/* Integral of grad phi_i . grad phi_j for quadratic functions: lambda_a (2 lambda_a - 1) at vertices, 4 lambda_a lambda_b on
 * edges. */
static double quadratic_stiffness(const space *s, int i, int j, double g[4][4]) {
  int d = s->mesh.dimension, a = s->pair_a[i], b = s->pair_b[i], p = s->pair_a[j], q = s->pair_b[j];
  double mean = 1.0 / (d + 1);
  if (p == q) return g[a][p] * (16 * mean2(d, a, p) - 8 * mean + 1); /* i <= j: two vertices */
  if (a == b) return 4 * (g[a][q] * (4 * mean2(d, a, p) - mean) + g[a][p] * (4 * mean2(d, a, q) - mean));
  return 16 * (g[b][q] * mean2(d, a, p) + g[b][p] * mean2(d, a, q) + g[a][q] * mean2(d, b, p) + g[a][p] * mean2(d, b, q));
}

/* phi_i as a sum of two monomials: (c0, times0) + (c1, times1). */
static void monomials(const space *s, int i, double c[2], int times[2][4]) {
  for (int t = 0; t < 8; t++) times[t / 4][t % 4] = 0;
  int a = s->pair_a[i], b = s->pair_b[i], vertex = a == b;
  times[0][a]++;
  if (s->o->order == 2) times[0][b]++;
  times[1][a]++;
  c[0] = s->o->order == 1 ? 1 : vertex ? 2 : 4;
  c[1] = s->o->order == 2 && vertex ? -1 : 0;
}

static double mean_product(const space *s, int i, int j) {
  double ci[2], cj[2], sum = 0;
  int ti[2][4], tj[2][4], times[4];
  monomials(s, i, ci, ti);
  monomials(s, j, cj, tj);
  for (int k = 0; k < 4; k++) {
    double c = ci[k / 2] * cj[k % 2];
    for (int a = 0; a < 4; a++) times[a] = ti[k / 2][a] + tj[k % 2][a];
    if (c != 0) sum += c * mean_of(s->mesh.dimension, times);
  }
  return sum;
}

/* G is symmetric to the bit, since products and this sum commute; the longer formulas always get i <= j. */
static double element_entry(const space *s, int i, int j, double volume, double g[4][4]) {
  int low = i < j ? i : j, high = i < j ? j : i;
  if (s->o->form) return volume * mean_product(s, low, high);
  return s->o->order == 1 ? g[i][j] : quadratic_stiffness(s, low, high, g);
}

/* Row order[t], where order is the random numbering if there is one. */
static int64_t fem_row(const void *self, int64_t t, int32_t *columns, double *values) {
  const space *s = self;
  int64_t i = s->order ? s->order[t] : t;
  ht_gen_sum row = {.count = 0};
  for (int64_t u = s->user_start[t]; u < s->user_start[t + 1]; u++) {
    int64_t e = s->user[u];
    double g[4][4] = {{0}}, volume = 0, k = s->mesh.k ? s->mesh.k[e] : 1;
    int own = 0;
    while (unknown_of(s, e, own) != i) own++;
    if (columns) volume = gradients(&s->mesh, e, s->o->order == 1 ? own : -1, g);
    for (int node = 0; node < s->nodes; node++) {
      int32_t column = unknown_of(s, e, node);
      if (column >= 0) ht_gen_add(&row, column, columns ? k * element_entry(s, own, node, volume, g) : 0);
    }
  }
  return ht_gen_give(&row, columns, values);
}

/* List for each of `targets` numbers the elements that name it; names[e * width + a] < 0 is nobody. Ascending. */
static ht_status list_users(ht_context *ctx, int64_t elements, int width, const int32_t *names, const int32_t *through, int64_t targets,
                            int64_t **start, int32_t **user) {
  HT_TRY(ctx, ht_allocate_zeroed(ctx, targets + 2, sizeof **start, start));
  int64_t *at = *start + 1; /* at[t] becomes the place of t's next user, and in the end start[t + 1] */
  for (int64_t k = 0; k < elements * width; k++) {
    int32_t name = through ? through[names[k]] : names[k];
    if (name >= 0) at[name + 1]++;
  }
  for (int64_t t = 0; t < targets; t++) at[t + 1] += at[t];
  HT_TRY(ctx, ht_allocate(ctx, at[targets], sizeof **user, user));
  for (int64_t k = 0; k < elements * width; k++) {
    int32_t name = through ? through[names[k]] : names[k];
    if (name >= 0) (*user)[at[name]++] = (int32_t)(k / width);
  }
  return HT_OK;
}

/* ---- Numbering ---- */
static void shuffle(const space *s, int32_t *order) {
  for (int64_t i = 0; i < s->unknowns; i++) order[i] = (int32_t)i;
  for (int64_t i = s->unknowns - 1; i > 0; i--) {
    int64_t j = (int64_t)(ht_gen_bits((uint64_t)s->o->seed, STREAM_NUMBERING, (uint64_t)i) % (uint64_t)(i + 1));
    int32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

static ht_status number_at_random(ht_context *ctx, space *s, int64_t entries) {
  HT_TRY(ctx, ht_allocate(ctx, s->unknowns, sizeof *s->order, &s->order));
  shuffle(s, s->order);
  for (int64_t k = 0; k < entries; k++)
    if (s->unknown[k] >= 0) s->unknown[k] = s->order[s->unknown[k]];
  return HT_OK;
}

static ht_status number_vertices(ht_context *ctx, space *s, int32_t **unknown) {
  HT_TRY(ctx, ht_allocate(ctx, s->mesh.vertices, sizeof **unknown, unknown));
  for (int64_t v = 0; v < s->mesh.vertices; v++) (*unknown)[v] = s->mesh.faces[v] ? -1 : (int32_t)s->unknowns++;
  return HT_OK;
}

/* Edges from the mesh's vertices to higher ones: neighbours of v are list[start[v]] .. ascending; unknown[k] numbers them. */
typedef struct edges {
  int64_t *user_start, *start;
  int32_t *user, *list, *unknown;
} edges;

static int64_t higher_neighbours(const space *s, const edges *n, int64_t v, int32_t *columns) {
  double unused[HT_GEN_WIDEST];
  int corners = s->mesh.dimension + 1;
  ht_gen_sum row = {.count = 0};
  for (int64_t u = n->user_start[v]; u < n->user_start[v + 1]; u++)
    for (int a = 0; a < corners; a++) {
      int32_t other = s->mesh.element[n->user[u] * (int64_t)corners + a];
      if (other > v) ht_gen_add(&row, other, 0);
    }
  return ht_gen_give(&row, columns, unused);
}

static ht_status list_edges(ht_context *ctx, space *s, edges *n) {
  int64_t vertices = s->mesh.vertices;
  HT_TRY(ctx, list_users(ctx, s->mesh.elements, s->mesh.dimension + 1, s->mesh.element, NULL, vertices, &n->user_start, &n->user));
  HT_TRY(ctx, ht_allocate(ctx, vertices + 1, sizeof *n->start, &n->start));
  n->start[0] = 0;
  for (int64_t v = 0; v < vertices; v++) n->start[v + 1] = n->start[v] + higher_neighbours(s, n, v, NULL);
  HT_CHECK(ctx, n->start[vertices] + vertices <= INT32_MAX, HT_BAD_OPTION,
           "a matrix has at most %d rows here, and this mesh has %lld nodes: ask for a smaller size", INT32_MAX,
           (long long)(n->start[vertices] + vertices));
  HT_TRY(ctx, ht_allocate(ctx, n->start[vertices], sizeof *n->list, &n->list));
  HT_TRY(ctx, ht_allocate(ctx, n->start[vertices], sizeof *n->unknown, &n->unknown));
  for (int64_t v = 0; v < vertices; v++) {
    higher_neighbours(s, n, v, n->list + n->start[v]);
    for (int64_t k = n->start[v]; k < n->start[v + 1]; k++) /* an edge within one outer face is held */
      n->unknown[k] = s->mesh.faces[v] & s->mesh.faces[n->list[k]] ? -1 : (int32_t)s->unknowns++;
  }
  return HT_OK;
}

static int32_t edge_unknown(const edges *n, int32_t a, int32_t b) {
  int32_t low = a < b ? a : b, high = a < b ? b : a;
  int64_t k = n->start[low];
  while (n->list[k] != high) k++;
  return n->unknown[k];
}

/* Vertices first, then edges: what most codes that add midpoints do. */
static ht_status number_quadratic(ht_context *ctx, space *s, const int32_t *of_vertex, edges *n) {
  int corners = s->mesh.dimension + 1;
  HT_TRY(ctx, list_edges(ctx, s, n));
  HT_TRY(ctx, ht_allocate(ctx, s->mesh.elements * s->nodes, sizeof *s->unknown, &s->unknown));
  for (int64_t e = 0; e < s->mesh.elements; e++) {
    const int32_t *v = s->mesh.element + e * corners;
    for (int node = 0; node < s->nodes; node++)
      s->unknown[e * s->nodes + node] = node < corners ? of_vertex[v[node]] : edge_unknown(n, v[s->pair_a[node]], v[s->pair_b[node]]);
  }
  return HT_OK;
}

static void release_edges(ht_context *ctx, edges *n) {
  ht_release(ctx, n->user_start);
  ht_release(ctx, n->user);
  ht_release(ctx, n->start);
  ht_release(ctx, n->list);
  ht_release(ctx, n->unknown);
}

static ht_status number_unknowns(ht_context *ctx, space *s) {
  int32_t *of_vertex = NULL;
  HT_TRY(ctx, number_vertices(ctx, s, &of_vertex));
  if (s->o->order == 1) {
    s->unknown = of_vertex;
    return HT_OK;
  }
  edges n = {0};
  ht_status status = number_quadratic(ctx, s, of_vertex, &n);
  release_edges(ctx, &n);
  ht_release(ctx, of_vertex);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static void list_local_nodes(space *s) {
  int corners = s->mesh.dimension + 1;
  for (int a = 0; a < corners; a++) s->pair_a[a] = s->pair_b[a] = a;
  s->nodes = corners;
  for (int a = 0; a < corners && s->o->order == 2; a++)
    for (int b = a + 1; b < corners; b++) {
      s->pair_a[s->nodes] = a;
      s->pair_b[s->nodes++] = b;
    }
}

static ht_status assemble(ht_context *ctx, space *s, const char *source, ht_matrix **matrix) {
  list_local_nodes(s);
  HT_TRY(ctx, number_unknowns(ctx, s));
  HT_CHECK(ctx, s->unknowns > 0, HT_BAD_OPTION, "size %lld leaves no unknown inside the boundary: ask for a larger one",
           (long long)s->o->size);
  const int32_t *names = s->o->order == 1 ? s->mesh.element : s->unknown, *through = s->o->order == 1 ? s->unknown : NULL;
  HT_TRY(ctx, list_users(ctx, s->mesh.elements, s->nodes, names, through, s->unknowns, &s->user_start, &s->user));
  if (s->o->numbering) HT_TRY(ctx, number_at_random(ctx, s, s->o->order == 1 ? s->mesh.vertices : s->mesh.elements * s->nodes));
  HT_TRY(ctx, ht_gen_build_permuted(ctx, s->unknowns, s->order, fem_row, s, source, matrix));
  return HT_OK;
}

static ht_status make_fem(ht_context *ctx, int dimension, const fem_parameters *o, const char *source, ht_matrix **matrix) {
  space s = {.o = o};
  ht_gen_mesh_shape shape = {dimension,  o->size,         o->holes,
                             o->grading, o->perturbation, HT_GEN_FIELD(o, o->size, o->size, dimension == 3 ? o->size : 1)};
  HT_TRY(ctx, ht_gen_mesh_create(ctx, &shape, &s.mesh));
  ht_status status = assemble(ctx, &s, source, matrix);
  ht_gen_mesh_release(ctx, &s.mesh);
  ht_release(ctx, s.unknown);
  ht_release(ctx, s.order);
  ht_release(ctx, s.user_start);
  ht_release(ctx, s.user);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static ht_status make_fem2d(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  return make_fem(ctx, 2, parameters, source, matrix);
}

static ht_status make_fem3d(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  return make_fem(ctx, 3, parameters, source, matrix);
}

static const ht_option_row fem2d_rows[] = {
#define HT_OPTION_OWNER fem_parameters
    FEM2D(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row fem3d_rows[] = {
#define HT_OPTION_OWNER fem_parameters
    FEM3D(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

#define FEM_FORMULA                                                                                                                        \
  "a_ij = sum over elements of k_e integral grad phi_i . grad phi_j (form mass: phi_i phi_j), integrated exactly; order 1 or 2. Mesh: a "  \
  "grid graded geometrically towards the origin, cells split with random diagonals, elements inside the holes taken out, inner vertices "  \
  "moved at random by up to `perturbation` spacings (half as far, again and again, where an element would keep less than a tenth of its "  \
  "volume). Unknowns on the outer boundary are eliminated; holes have natural conditions. lognormal without correlation draws k for each " \
  "element. numbering mesh: vertices as the elements name them, a front advancing from the origin, then edges; random: a permutation. "
#define FEM_SPD                                                                                                                            \
  "Stiffness: the energy integral of k |grad u|^2 vanishes for constants only, and every connected part of the mesh touches the outer "    \
  "boundary (parts that a hole cuts off are left out), where u = 0. Mass: a Gram matrix. All volumes are checked to be positive."
const ht_gen_kind ht_gen_fem2d = {.name = "fem2d",
                                  .summary = "unstructured triangles, linear or quadratic: graded, perturbed, with holes",
                                  .formula = FEM_FORMULA "Two triangles a cell.",
                                  .spd = FEM_SPD,
                                  HT_GEN_ROWS(fem2d_rows),
                                  .fields = sizeof(fem_parameters),
                                  .generate = make_fem2d};
const ht_gen_kind ht_gen_fem3d = {.name = "fem3d",
                                  .summary = "unstructured tetrahedra, linear or quadratic: graded, perturbed, with holes",
                                  .formula = FEM_FORMULA "Twelve tetrahedra a cell, around its centre.",
                                  .spd = FEM_SPD,
                                  HT_GEN_ROWS(fem3d_rows),
                                  .fields = sizeof(fem_parameters),
                                  .generate = make_fem3d};
