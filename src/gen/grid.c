/* Matrices that are sums over the edges of a grid. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include "gen/gen.h"

typedef struct offset {
  int d[3], axes, rising;
  int64_t step; /* in the index */
} offset;
typedef struct grid_rows {
  const ht_gen_grid *grid;
  int count; /* half of them lie before the point itself */
  offset offsets[27];
} grid_rows;

/* Is (dx, dy, dz) a neighbour in this stencil? */
static int belongs(int points, const int d[3]) {
  int distance = abs(d[0]) + abs(d[1]) + abs(d[2]);
  if (distance == 0 || ((points == 5 || points == 9) && d[2])) return 0;
  switch (points) {
  case 5:
  case 7: return distance == 1;
  case 15: /* the edges of Kuhn's split of a cube into six tetrahedra: components of one sign */
    return (d[0] >= 0 && d[1] >= 0 && d[2] >= 0) || (d[0] <= 0 && d[1] <= 0 && d[2] <= 0);
  case 19: return distance <= 2;
  default: return 1;
  }
}

/* Ascending in the index, z slowest. */
static void list_offsets(grid_rows *rows) {
  const int64_t *n = rows->grid->n;
  for (int z = -1; z <= 1; z++)
    for (int y = -1; y <= 1; y++)
      for (int x = -1; x <= 1; x++) {
        int d[3] = {x, y, z};
        if (!belongs(rows->grid->points, d)) continue;
        int rising = (x >= 0 && y >= 0 && z >= 0) || (x <= 0 && y <= 0 && z <= 0);
        rows->offsets[rows->count++] = (offset){{x, y, z}, abs(x) + 2 * abs(y) + 4 * abs(z), rising, x + n[0] * (y + n[1] * z)};
      }
}

/* Both ends ask from the lower one. */
static double edge_weight(const ht_gen_grid *grid, const offset *o, int64_t i, int64_t j) {
  if (j < 0) return grid->weight(grid->self, i, -1, o->axes, o->rising);
  return j > i ? grid->weight(grid->self, i, j, o->axes, o->rising) : grid->weight(grid->self, j, i, o->axes, o->rising);
}

static int64_t grid_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const grid_rows *rows = self;
  const ht_gen_grid *grid = rows->grid;
  const int64_t *n = grid->n, at[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
  double diagonal = 0;
  int64_t count = 0, place = 0;
  for (int k = 0; k < rows->count; k++) {
    const offset *o = &rows->offsets[k];
    if (2 * k == rows->count) place = count++;
    int inside = 1;
    for (int d = 0; d < 3; d++) inside &= (uint64_t)(at[d] + o->d[d]) < (uint64_t)n[d];
    if (!columns && !grid->drop_zeros) { /* the pattern tells the length */
      count += inside;
      continue;
    }
    double w = edge_weight(grid, o, i, inside ? i + o->step : -1);
    diagonal += fabs(w);
    if (!inside || (grid->drop_zeros && w == 0)) continue;
    if (columns) {
      columns[count] = (int32_t)(i + o->step);
      values[count] = -w;
    }
    count++;
  }
  if (columns) {
    columns[place] = (int32_t)i;
    values[place] = diagonal + (grid->shift ? grid->shift(grid->self, i) : 0);
  }
  return count;
}

ht_status ht_gen_from_grid(ht_context *ctx, const ht_gen_grid *grid, const char *source, ht_matrix **matrix) {
  grid_rows rows = {.grid = grid};
  int64_t n = 0;
  HT_TRY(ctx, ht_gen_rows_of(ctx, grid->n[0], grid->n[1], grid->n[2], &n));
  list_offsets(&rows);
  HT_TRY(ctx, ht_gen_build(ctx, n, grid_row, &rows, source, matrix));
  return HT_OK;
}
