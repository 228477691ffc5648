/* Meshes: a grid is graded, its cells are split with random diagonals, holes are cut, inner vertices are moved.
 * In 2-D a cell becomes two triangles; in 3-D each face gets a diagonal and its triangles are joined to the cell's centre
 * (12 tetrahedra). Random diagonals make the number of neighbours vary, as a mesher's output does.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gen/mesh.h"
#include <math.h>
#include <string.h>
#include "gen/random.h"

enum { STREAM_DIAGONAL = 21, STREAM_HOLE = 22, STREAM_MOVE = 23, STREAM_ELEMENT = 24, MOST_HALVINGS = 8 };

/* What is needed while the mesh is made; vertices have their grid numbers: corners first, then centres. */
typedef struct maker {
  const ht_gen_mesh_shape *shape;
  ht_gen_mesh *mesh;
  int64_t side, corners, lattice; /* corners along a side and in all; holes along a side */
  unsigned char *halvings;        /* how often each vertex's displacement was halved */
  double *spacing;                /* the graded place of each half cell */
} maker;

/* Two or three, for whoever does not see that the parameters allow no other number. */
static int axes_of(int dimension) { return dimension == 3 ? 3 : 2; }

static int64_t corner_number(const maker *m, const int64_t at[3]) { return at[0] + m->side * (at[1] + m->side * at[2]); }

/* Place of a vertex in the grid before grading, in cells. */
static void grid_place(const maker *m, int64_t vertex, double place[3]) {
  int centre = vertex >= m->corners;
  int64_t side = centre ? m->shape->cells : m->side, i = centre ? vertex - m->corners : vertex;
  for (int d = 0; d < 3; d++) {
    place[d] = (double)(i % side) + (centre ? 0.5 : 0);
    i /= side;
  }
}

static double graded(const maker *m, double cells) {
  double t = cells / (double)m->shape->cells, rate = log(m->shape->grading);
  return rate == 0 ? t : expm1(rate * t) / expm1(rate);
}

static unsigned char faces_of(const maker *m, const double place[3]) {
  unsigned faces = 0;
  for (int d = 0; d < axes_of(m->shape->dimension); d++) {
    faces |= (unsigned)(place[d] == 0) << 2 * d;
    faces |= (unsigned)(place[d] == (double)m->shape->cells) << (2 * d + 1);
  }
  return (unsigned char)faces;
}

/* Vertices on the outer boundary stay, others move by up to `perturbation` spacings, as far as they are still allowed to. */
static void place_vertex(const maker *m, int64_t vertex, int moved, double *x) {
  double place[3], scale = 0;
  grid_place(m, vertex, place);
  if (moved && m->halvings[vertex] < MOST_HALVINGS && !faces_of(m, place)) scale = ldexp(m->shape->perturbation, -m->halvings[vertex]);
  for (int d = 0; d < axes_of(m->shape->dimension); d++) {
    if (scale == 0) {
      x[d] = m->spacing[(int64_t)(2 * place[d])];
      continue;
    }
    double random = 2 * ht_gen_uniform(m->shape->field.seed, STREAM_MOVE, (uint64_t)(3 * vertex + d)) - 1;
    x[d] = graded(m, place[d] + scale * random);
  }
}

/* One hole in each of the first cells of a lattice; holes keep apart from each other and from the outer boundary. */
static int in_hole(const maker *m, const double place[3]) {
  uint64_t seed = m->shape->field.seed, hole = 0;
  double distance2 = 0, lattice = (double)m->lattice;
  if (m->shape->holes == 0) return 0;
  for (int d = axes_of(m->shape->dimension) - 1; d >= 0; d--)
    hole = hole * (uint64_t)m->lattice + (uint64_t)(place[d] / (double)m->shape->cells * lattice);
  if (hole >= (uint64_t)m->shape->holes) return 0;
  for (int d = 0; d < axes_of(m->shape->dimension); d++) {
    double t = place[d] / (double)m->shape->cells * lattice;
    double off = t - floor(t) - 0.5 - 0.3 * (ht_gen_uniform(seed, STREAM_HOLE, 4 * hole + (uint64_t)d) - 0.5);
    distance2 += off * off;
  }
  double radius = 0.15 + 0.1 * ht_gen_uniform(seed, STREAM_HOLE, 4 * hole + 3);
  return distance2 < radius * radius;
}

/* Add an element unless it lies in a hole. */
static void add_element(maker *m, const int64_t cell[3], const int64_t *vertices) {
  ht_gen_mesh *mesh = m->mesh;
  int corners = mesh->dimension + 1;
  double centre[3] = {0, 0, 0}, place[3];
  for (int a = 0; a < corners; a++) {
    grid_place(m, vertices[a], place);
    for (int d = 0; d < 3; d++) centre[d] += place[d] / corners;
  }
  if (in_hole(m, centre)) return;
  const ht_gen_field *field = &m->shape->field;
  int64_t e = mesh->elements++;
  for (int a = 0; a < corners; a++) mesh->element[e * corners + a] = (int32_t)vertices[a];
  if (!mesh->k) return;
  if (field->coefficients == HT_GEN_LOGNORMAL && field->correlation == 0)
    mesh->k[e] = exp(field->sigma * ht_gen_normal(field->seed, STREAM_ELEMENT, (uint64_t)e));
  else
    mesh->k[e] = ht_gen_coefficient(field, cell[0], cell[1], cell[2]);
}

static int random_diagonal(const maker *m, int64_t corner, int axis) {
  return (int)(ht_gen_bits(m->shape->field.seed, STREAM_DIAGONAL, (uint64_t)(3 * corner + axis)) >> 63);
}

/* The four corners around a face, from its lowest: axes u and v span it. */
static void face_corners(const maker *m, const int64_t low[3], int u, int v, int64_t corners[4]) {
  int64_t at[3] = {low[0], low[1], low[2]};
  corners[0] = corner_number(m, at);
  at[u]++;
  corners[1] = corner_number(m, at);
  at[v]++;
  corners[2] = corner_number(m, at);
  at[u]--;
  corners[3] = corner_number(m, at);
}

static void split_face(maker *m, const int64_t cell[3], const int64_t low[3], int axis, int64_t centre) {
  static const int first[3] = {1, 0, 0}, second[3] = {2, 2, 1};
  int64_t c[4];
  face_corners(m, low, first[axis], second[axis], c);
  int other = random_diagonal(m, c[0], axis);
  const int64_t one[4] = {c[0], c[1], other ? c[3] : c[2], centre}, two[4] = {other ? c[1] : c[0], c[2], c[3], centre};
  add_element(m, cell, one);
  add_element(m, cell, two);
}

static void split_cell(maker *m, const int64_t cell[3]) {
  if (m->mesh->dimension == 2) {
    split_face(m, cell, cell, 2, -1);
    return;
  }
  int64_t cells = m->shape->cells, centre = m->corners + cell[0] + cells * (cell[1] + cells * cell[2]);
  for (int axis = 0; axis < 3; axis++)
    for (int upper = 0; upper < 2; upper++) {
      int64_t low[3] = {cell[0], cell[1], cell[2]};
      low[axis] += upper;
      split_face(m, cell, low, axis, centre);
    }
}

/* Cells come as a front that advances from the origin: the order of elements, and so of vertices. */
static void split_all(maker *m) {
  int64_t n = m->shape->cells, layers = m->mesh->dimension == 3 ? n : 1;
  for (int64_t level = 0; level <= (n - 1) * m->mesh->dimension; level++)
    for (int64_t z = 0; z < layers && z <= level; z++)
      for (int64_t y = 0; y < n && y + z <= level; y++) {
        int64_t cell[3] = {level - y - z, y, z};
        if (cell[0] < n) split_cell(m, cell);
      }
}

double ht_gen_simplex(int dimension, const double *x, const int32_t *v, double e[3][3]) {
  int axes = axes_of(dimension);
  for (int a = 0; a < axes; a++)
    for (int d = 0; d < axes; d++) e[a][d] = x[(int64_t)v[a + 1] * dimension + d] - x[(int64_t)v[0] * dimension + d];
  if (axes == 2) return e[0][0] * e[1][1] - e[0][1] * e[1][0];
  return e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) - e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
         e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0]);
}

/* Has the movement of its vertices taken more than nine tenths of the element's volume, or turned it over? */
static int squeezed(const maker *m, int64_t e, const double *moved) {
  const int32_t *v = m->mesh->element + e * (m->mesh->dimension + 1);
  double edges[3][3], before = ht_gen_simplex(m->mesh->dimension, m->mesh->x, v, edges);
  return !(ht_gen_simplex(m->mesh->dimension, moved, v, edges) / before >= 0.1);
}

/* Let the vertices of squeezed elements move half as far, and in the end not at all. Only what changed since the last
 * look is looked at. Returns how many elements were squeezed. */
static int64_t relax(ht_context *ctx, maker *m, unsigned char *changed, unsigned char *bad, double *moved) {
  ht_gen_mesh *mesh = m->mesh;
  int threads = ctx->threads, corners = mesh->dimension + 1;
  int64_t found = 0;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t v = 0; v < mesh->vertices; v++)
    if (changed[v]) place_vertex(m, v, 1, moved + v * mesh->dimension);
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : found)
  for (int64_t e = 0; e < mesh->elements; e++) {
    int look = 0;
    for (int a = 0; a < corners; a++) look |= changed[mesh->element[e * corners + a]];
    bad[e] = look && squeezed(m, e, moved);
    found += bad[e];
  }
  memset(changed, 0, (size_t)mesh->vertices);
  for (int64_t e = 0; e < mesh->elements && found; e++)
    for (int a = 0; a < corners && bad[e]; a++) {
      int32_t v = mesh->element[e * corners + a];
      m->halvings[v] = (unsigned char)(m->halvings[v] < MOST_HALVINGS ? m->halvings[v] + 1 : MOST_HALVINGS);
      changed[v] = 1;
    }
  return found;
}

static ht_status move_vertices(ht_context *ctx, maker *m) {
  ht_gen_mesh *mesh = m->mesh;
  unsigned char *changed = NULL, *bad = NULL;
  double *moved = NULL;
  ht_status status;
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, mesh->vertices, 1, &changed), end);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, mesh->elements, 1, &bad), end);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, mesh->vertices * mesh->dimension, sizeof *moved, &moved), end);
  memset(changed, 1, (size_t)mesh->vertices);
  while (relax(ctx, m, changed, bad, moved) > 0) continue;
  double *still = mesh->x;
  mesh->x = moved;
  moved = still;
end:
  ht_release(ctx, changed);
  ht_release(ctx, bad);
  ht_release(ctx, moved);
  return status;
}

static int32_t root_of(int32_t *parent, int32_t v) {
  while (parent[v] != v) v = parent[v] = parent[parent[v]];
  return v;
}

/* Leave out what a hole has cut off from the outer boundary: it would make the matrix singular. `parent` is a forest whose trees are the
 * connected parts. */
static ht_status drop_islands(ht_context *ctx, ht_gen_mesh *mesh) {
  int corners = mesh->dimension + 1;
  int32_t *parent;
  unsigned char *held;
  HT_TRY(ctx, ht_allocate(ctx, mesh->vertices, sizeof *parent, &parent));
  ht_status status = ht_allocate_zeroed(ctx, mesh->vertices, 1, &held);
  if (status != HT_OK) {
    ht_release(ctx, parent);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  for (int64_t v = 0; v < mesh->vertices; v++) parent[v] = (int32_t)v;
  for (int64_t e = 0; e < mesh->elements; e++)
    for (int a = 1; a < corners; a++) parent[root_of(parent, mesh->element[e * corners + a])] = root_of(parent, mesh->element[e * corners]);
  for (int64_t v = 0; v < mesh->vertices; v++)
    if (mesh->faces[v]) held[root_of(parent, (int32_t)v)] = 1;
  int64_t kept = 0;
  for (int64_t e = 0; e < mesh->elements; e++) {
    if (!held[root_of(parent, mesh->element[e * corners])]) continue;
    memmove(mesh->element + kept * corners, mesh->element + e * corners, (size_t)corners * sizeof *mesh->element);
    if (mesh->k) mesh->k[kept] = mesh->k[e];
    kept++;
  }
  mesh->elements = kept;
  ht_release(ctx, parent);
  ht_release(ctx, held);
  return HT_OK;
}

/* Number vertices as the elements name them; those never named go. */
static ht_status number_vertices(ht_context *ctx, ht_gen_mesh *mesh) {
  int d = mesh->dimension;
  int32_t *number;
  int64_t named = 0;
  HT_TRY(ctx, ht_allocate(ctx, mesh->vertices, sizeof *number, &number));
  for (int64_t v = 0; v < mesh->vertices; v++) number[v] = -1;
  for (int64_t k = 0; k < mesh->elements * (d + 1); k++) {
    int32_t *of = &number[mesh->element[k]];
    if (*of < 0) *of = (int32_t)named++;
    mesh->element[k] = *of;
  }
  double *x = NULL;
  unsigned char *faces = NULL;
  ht_status status = ht_allocate(ctx, named * d, sizeof *x, &x);
  if (status == HT_OK) status = ht_allocate(ctx, named, 1, &faces);
  for (int64_t v = 0; v < mesh->vertices && status == HT_OK; v++) {
    if (number[v] < 0) continue;
    memcpy(x + (int64_t)number[v] * d, mesh->x + v * d, (size_t)d * sizeof *x);
    faces[number[v]] = mesh->faces[v];
  }
  ht_release(ctx, number);
  if (status != HT_OK) {
    ht_release(ctx, x);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  ht_release(ctx, mesh->x);
  ht_release(ctx, mesh->faces);
  mesh->x = x;
  mesh->faces = faces;
  mesh->vertices = named;
  return HT_OK;
}

void ht_gen_mesh_release(ht_context *ctx, ht_gen_mesh *mesh) {
  ht_release(ctx, mesh->x);
  ht_release(ctx, mesh->faces);
  ht_release(ctx, mesh->element);
  ht_release(ctx, mesh->k);
  *mesh = (ht_gen_mesh){0};
}

static ht_status fill_mesh(ht_context *ctx, maker *m, int64_t elements) {
  ht_gen_mesh *mesh = m->mesh;
  HT_TRY(ctx, ht_allocate(ctx, elements * (mesh->dimension + 1), sizeof *mesh->element, &mesh->element));
  if (m->shape->field.coefficients != HT_GEN_CONSTANT) HT_TRY(ctx, ht_allocate(ctx, elements, sizeof *mesh->k, &mesh->k));
  HT_TRY(ctx, ht_allocate(ctx, mesh->vertices * mesh->dimension, sizeof *mesh->x, &mesh->x));
  HT_TRY(ctx, ht_allocate(ctx, mesh->vertices, 1, &mesh->faces));
  for (int64_t v = 0; v < mesh->vertices; v++) {
    double place[3];
    grid_place(m, v, place);
    mesh->faces[v] = faces_of(m, place);
    place_vertex(m, v, 0, mesh->x + v * mesh->dimension);
  }
  split_all(m);
  HT_TRY(ctx, move_vertices(ctx, m));
  HT_TRY(ctx, drop_islands(ctx, mesh));
  HT_TRY(ctx, number_vertices(ctx, mesh));
  return HT_OK;
}

ht_status ht_gen_mesh_create(ht_context *ctx, const ht_gen_mesh_shape *shape, ht_gen_mesh *mesh) {
  int d = shape->dimension;
  int64_t c = shape->cells, elements = 0, cells = d == 3 ? c * c * c : c * c, side = c + 1;
  *mesh = (ht_gen_mesh){.dimension = d};
  HT_TRY(ctx, ht_gen_rows_of(ctx, d == 3 ? 12 : 2, c, d == 3 ? c * c : c, &elements)); /* elements are counted in 32 bits, too */
  maker m = {.shape = shape, .mesh = mesh, .side = side, .corners = d == 3 ? side * side * side : side * side, .lattice = 1};
  while ((d == 3 ? m.lattice * m.lattice * m.lattice : m.lattice * m.lattice) < shape->holes) m.lattice++;
  mesh->vertices = m.corners + (d == 3 ? cells : 0);
  ht_status status = ht_allocate_zeroed(ctx, mesh->vertices, 1, &m.halvings);
  if (status == HT_OK) status = ht_allocate(ctx, 2 * side, sizeof *m.spacing, &m.spacing);
  for (int64_t k = 0; k < 2 * side && status == HT_OK; k++) m.spacing[k] = graded(&m, 0.5 * (double)k);
  if (status == HT_OK) status = fill_mesh(ctx, &m, elements);
  ht_release(ctx, m.halvings);
  ht_release(ctx, m.spacing);
  if (status != HT_OK) {
    ht_gen_mesh_release(ctx, mesh);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  return HT_OK;
}
