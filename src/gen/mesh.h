/* Unstructured meshes of triangles and tetrahedra. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_GEN_MESH_H
#define HT_GEN_MESH_H
#include "gen/gen.h"

typedef struct ht_gen_mesh_shape {
  int dimension;
  int64_t cells;       /* of the grid it starts from, along each side */
  int64_t holes;       /* circles or spheres taken out */
  double grading;      /* largest over smallest spacing; the small ones are at the origin */
  double perturbation; /* of inner vertices, in spacings */
  ht_gen_field field;  /* coefficient of the elements */
} ht_gen_mesh_shape;

typedef struct ht_gen_mesh {
  int dimension;
  int64_t vertices, elements;
  double *x;            /* `dimension` a vertex */
  unsigned char *faces; /* of each vertex: bits 2d and 2d+1 say that it lies on the lower and upper face of axis d */
  int32_t *element;     /* dimension + 1 vertices each */
  double *k;            /* coefficient of each element, or NULL: 1 */
} ht_gen_mesh;

/* Vertices are numbered as the elements first name them; every vertex is used and every part touches the outer boundary. */
ht_status ht_gen_mesh_create(ht_context *ctx, const ht_gen_mesh_shape *shape, ht_gen_mesh *mesh);
void ht_gen_mesh_release(ht_context *ctx, ht_gen_mesh *mesh);
/* Coordinates of an element's vertices to det, the determinant of its edge vectors (dimension! times the signed volume). */
double ht_gen_simplex(int dimension, const double *x, const int32_t *vertices, double edges[3][3]);

#endif
