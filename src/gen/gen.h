/* Test problems: a family is one file with its parameter lists and its rows; list.def is the only list of kinds.
 *
 * To add a kind: declare its parameters with one list (base/option.h), write a function that gives row i, and describe both
 * in an ht_gen_kind; add its name to list.def. Help, documentation and tests follow from that.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_GEN_GEN_H
#define HT_GEN_GEN_H
#include "base/option_table.h"
#include "data/matrix.h"
#include "halftone/generate.h"

typedef struct ht_gen_kind {
  const char *name, *summary, *formula, *spd;
  const ht_option_row *rows;
  int row_count;
  size_t fields; /* size of the parameters' struct */
  /* `parameters` is that struct; `source` is the recipe as text, for ht_matrix's record of its origin. */
  ht_status (*generate)(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix);
} ht_gen_kind;

#define HT_GEN_ROWS(table) .rows = (table), .row_count = (int)(sizeof(table) / sizeof *(table))

/* ---- Parameters that several kinds share ---- */
#define HT_GEN_PLANE(X, side, needs)                                                                                                       \
  X(INTEGER, size, side, 1, 2147483647, AT_PREPARE, NULL, "points along each side", needs)                                                 \
  X(INTEGER, nx, 0, 0, 2147483647, AT_PREPARE, NULL, "points along x; 0 takes size")                                                       \
  X(INTEGER, ny, 0, 0, 2147483647, AT_PREPARE, NULL, "points along y; 0 takes size")
#define HT_GEN_SIDES2(X, side) HT_GEN_PLANE(X, side, "nx=0 ny=0")
#define HT_GEN_SIDES3(X, side)                                                                                                             \
  HT_GEN_PLANE(X, side, "nx=0 ny=0 nz=0")                                                                                                  \
  X(INTEGER, nz, 0, 0, 2147483647, AT_PREPARE, NULL, "points along z; 0 takes size")
#define HT_GEN_SEED_WITH(X, needs)                                                                                                         \
  X(INTEGER, seed, 1, 0, 9e15, AT_PREPARE, NULL, "random numbers: the same seed gives the same matrix", needs)
#define HT_GEN_SEED(X) HT_GEN_SEED_WITH(X, NULL)
#define HT_GEN_FIELD_OF(X, choices)                                                                                                        \
  X(CHOICE, coefficients, 0, 0, 3, AT_PREPARE, choices, "the coefficient k of each cell")                                                  \
  X(REAL, sigma, 1, 0, 30, AT_PREPARE, NULL, "standard deviation of log k", "coefficients=lognormal")                                      \
  X(REAL, contrast, 1e4, 1e-15, 1e15, AT_PREPARE, NULL, "k is 1 or this, by blocks", "coefficients=jumps")                                 \
  X(INTEGER, correlation, 0, 0, 2147483647, AT_PREPARE, NULL,                                                                              \
    "cells over which k is alike; 0: each cell alone (lognormal), an eighth of the side (jumps)", "coefficients=lognormal|jumps")
/* Random numbers are in the coefficients alone. */
#define HT_GEN_CELLS_WITH(X, choices)                                                                                                      \
  HT_GEN_FIELD_OF(X, choices)                                                                                                              \
  HT_GEN_SEED_WITH(X, "coefficients=lognormal|jumps")
#define HT_GEN_CELLS(X) HT_GEN_CELLS_WITH(X, "constant|lognormal|jumps")

#define HT_GEN_N2(o)                                                                                                                       \
  { (o)->nx ? (o)->nx : (o)->size, (o)->ny ? (o)->ny : (o)->size, 1 }
#define HT_GEN_N3(o)                                                                                                                       \
  { (o)->nx ? (o)->nx : (o)->size, (o)->ny ? (o)->ny : (o)->size, (o)->nz ? (o)->nz : (o)->size }

/* a*b*c as a number of rows; HT_BAD_OPTION when it is more than a matrix can have. */
ht_status ht_gen_rows_of(ht_context *ctx, int64_t a, int64_t b, int64_t c, int64_t *rows);

/* ---- Coefficient fields (field.c) ---- */
enum { HT_GEN_CONSTANT, HT_GEN_LOGNORMAL, HT_GEN_JUMPS, HT_GEN_ANISOTROPIC };
typedef struct ht_gen_field {
  int coefficients;
  double sigma, contrast;
  int64_t correlation, n[3];
  uint64_t seed;
} ht_gen_field;
#define HT_GEN_FIELD(o, nx, ny, nz)                                                                                                        \
  { (o)->coefficients, (o)->sigma, (o)->contrast, (o)->correlation, {nx, ny, nz}, (uint64_t)(o)->seed }
/* A normal variable a cell, standard deviation 1, alike over `correlation` cells. `stream` tells independent fields apart. */
double ht_gen_noise(uint64_t seed, uint64_t stream, int64_t correlation, const int64_t at[3]);
double ht_gen_coefficient(const ht_gen_field *field, int64_t x, int64_t y, int64_t z);
/* The coefficients of all cells, x fastest, in an array from ht_allocate. */
ht_status ht_gen_coefficients(ht_context *ctx, const ht_gen_field *field, double **k);

/* ---- From rows to CSR (rows.c) ---- */
/* Give row i: write its columns, ascending, and values, and return how many; with columns == NULL count only.
 * Called from several threads, twice a row. */
typedef int64_t (*ht_gen_row_fn)(const void *self, int64_t i, int32_t *columns, double *values);
ht_status ht_gen_build(ht_context *ctx, int64_t n, ht_gen_row_fn row, const void *self, const char *source, ht_matrix **matrix);
/* The same where the t-th row that `row` gives has number order[t]: it may walk its data in their order. */
ht_status ht_gen_build_permuted(ht_context *ctx, int64_t n, const int32_t *order, ht_gen_row_fn row, const void *self, const char *source,
                                ht_matrix **matrix);

/* A row that is summed from elements; starts as all zeros. Terms of one column are added in the order they come. */
enum { HT_GEN_WIDEST = 256, HT_GEN_SLOTS = 512 };
typedef struct ht_gen_sum {
  int count;
  int32_t columns[HT_GEN_WIDEST];
  double values[HT_GEN_WIDEST];
  int16_t slots[HT_GEN_SLOTS]; /* hash table: 1 + place of a column, 0: free */
} ht_gen_sum;
void ht_gen_add(ht_gen_sum *row, int64_t column, double value);
/* Write the row with ascending columns, unless columns is NULL; returns its length. */
int64_t ht_gen_give(const ht_gen_sum *row, int32_t *columns, double *values);

/* ---- Sums over the edges of a grid (grid.c) ----
 * A = sum over edges of |w| (e_i - s e_j)(e_i - s e_j)' + diag(shift), s = sign(w); an edge to outside adds |w| to its
 * point alone. Each term is positive semidefinite, which is why these matrices are. The weight is asked for once a pair,
 * from the end with the lower index, so both triangles get the same bits. */
typedef struct ht_gen_grid {
  int64_t n[3];
  int points; /* 5, 7, 9, 15, 19, 27: which neighbours */
  /* Weight of the edge from a to b = a + offset (indices; b = -1: outside). `axes`: |dx| + 2 |dy| + 4 |dz|;
   * `rising`: whether the offset's components have one sign. */
  double (*weight)(const void *self, int64_t a, int64_t b, int axes, int rising);
  double (*shift)(const void *self, int64_t i); /* or NULL */
  const void *self;
  int drop_zeros; /* edges of weight 0 are not stored */
} ht_gen_grid;
ht_status ht_gen_from_grid(ht_context *ctx, const ht_gen_grid *grid, const char *source, ht_matrix **matrix);

static inline double ht_gen_harmonic(double a, double b) { return 2 * (a * b) / (a + b); }

#endif
