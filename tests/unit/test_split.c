/* The split storage: exact decoding, products at every level, and the patterns that break storage formats.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/convert.h"
#include "data/order.h"
#include "data/split.h"
#include "halftone/context.h"

/* ---- matrices ---- */

typedef struct csr {
  int64_t n;
  int64_t *start;
  int32_t *columns;
  double *values;
} csr;

static uint64_t seed = 1;
static double uniform(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 11) * 0x1p-53;
}

static csr csr_new(int64_t n, int64_t capacity) {
  csr a = {n, calloc((size_t)n + 1, 8), malloc((size_t)capacity * 4 + 4), malloc((size_t)capacity * 8 + 8)};
  return a;
}
static void csr_free(csr *a) {
  free(a->start);
  free(a->columns);
  free(a->values);
}
static ht_csr_view view_of(const csr *a) { return (ht_csr_view){a->n, a->start[a->n], a->start, a->columns, a->values}; }
static void append(csr *a, int64_t row, int64_t column, double v) {
  int64_t k = a->start[row + 1] ? a->start[row + 1] : a->start[row];
  a->columns[k] = (int32_t)column;
  a->values[k] = v;
  a->start[row + 1] = k + 1;
}
static void end_row(csr *a, int64_t row) {
  if (!a->start[row + 1]) a->start[row + 1] = a->start[row];
}

/* A value that depends on the unordered pair, so that the matrix is symmetric. */
static double pair_value(int64_t i, int64_t j) {
  uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i), h = low * 0x9e3779b97f4a7c15u ^ (high * 0xc2b2ae3d27d4eb4fu);
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 32;
  double v = (double)(h >> 11) * 0x1p-53;
  return i == j ? 30 + v : -(0.05 + v);
}

static csr banded(int64_t n) {
  csr a = csr_new(n, n * 7);
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = -3; d <= 3; d++)
      if (i + d >= 0 && i + d < n) append(&a, i, i + d, pair_value(i, i + d));
  return a;
}

/* 27-point stencil on m x m x m with `unknowns` a point. */
static csr stencil(int64_t m, int unknowns) {
  csr a = csr_new(m * m * m * unknowns, m * m * m * 27 * unknowns * unknowns);
  for (int64_t p = 0; p < m * m * m; p++)
    for (int c = 0; c < unknowns; c++)
      for (int64_t d = 0; d < 27; d++) {
        int64_t x = p % m + d % 3 - 1, y = p / m % m + d / 3 % 3 - 1, z = p / (m * m) + d / 9 - 1;
        if (x < 0 || y < 0 || z < 0 || x >= m || y >= m || z >= m) continue;
        for (int e = 0; e < unknowns; e++)
          append(&a, p * unknowns + c, ((z * m + y) * m + x) * unknowns + e,
                 pair_value(p * unknowns + c, ((z * m + y) * m + x) * unknowns + e));
      }
  return a;
}

/* Symmetric random pattern: i and j couple when a hash of the pair says so; about `degree` entries a row, any row length. */
static csr scattered(int64_t n, double degree) {
  csr a = csr_new(n, n * n < 4000000 ? n * n : 4000000);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++)
      if (i == j || pair_value(i + n, j + n) > -0.05 - degree / (double)n) append(&a, i, j, pair_value(i, j));
    end_row(&a, i);
  }
  return a;
}

static csr arrow(int64_t n) {
  csr a = csr_new(n, 3 * n);
  for (int64_t j = 0; j < n; j++) append(&a, 0, j, pair_value(0, j) * (j ? 1 : (double)n));
  for (int64_t i = 1; i < n; i++) {
    append(&a, i, 0, pair_value(i, 0));
    append(&a, i, i, pair_value(i, i));
  }
  return a;
}

/* ---- a plain decoder ---- */

static double decode(const ht_split_view *v, const ht_tile *t, int64_t group, int64_t k, ht_level level) {
  double e = t->encoding == HT_FIXED ? v->exponent[group] : 0;
  int64_t head = v->head[k], mid = level >= HT_LEVEL_32 ? v->mid[k] : 0, tail = level == HT_LEVEL_64 ? v->tail[k] : 0;
  if (t->encoding == HT_FIXED) return ldexp((double)(((head * 65536) + mid) * 4294967296 + tail), (int)(-63 - e));
  if (t->encoding == HT_RAW)
    return ht_from_bits64((uint64_t)(uint16_t)v->head[k] << 48 | (uint64_t)(uint16_t)v->mid[k] << 32 | (uint32_t)v->tail[k]);
  float f = ht_from_bits32(((uint32_t)(uint16_t)v->head[k] << 16) + (uint32_t)(int32_t)mid);
  return ht_from_bits64(ht_bits64((double)f) + (uint64_t)tail);
}

typedef void (*entry_fn)(void *user, int64_t tile, int64_t row, int64_t column, double value);

/* A unit of number k of the tile's delta16 or delta32, and what is added by it to one of the nodes' own entries. */
static double correction_unit(const ht_split_view *v, const ht_tile *t, int64_t k, ht_level level) {
  return ldexp(1, -15 - v->delta_exponent[level][t->slice + k / (v->block * v->block * HT_LANES)]);
}

static double correction(const ht_split_view *v, const ht_tile *t, int64_t k, ht_level level) {
  return level < HT_LEVEL_64 && v->delta[level] ? v->delta[level][t->delta + k] * correction_unit(v, t, k, level) : 0;
}

static void walk(const ht_split_view *v, int64_t tile, ht_level level, entry_fn fn, void *user) {
  const ht_tile *t = &v->tile[tile];
  int64_t group = t->group, index = t->index, b = v->block, size = b * b * HT_LANES;
  level = ht_tile_level(t, level);
  for (int64_t s = t->slice; s < t->slice + t->slices; s++) {
    int64_t node = t->row / b + (s - t->slice) * HT_LANES;
    for (int64_t g = 0; g < v->slice[s].runs + v->slice[s].gathers; g++, group++) {
      int gather = g >= v->slice[s].runs;
      for (int64_t k = 0; k < size; k++) {
        int64_t lane = k % HT_LANES, column = t->window + (gather ? v->index[index + lane] : v->index[index] + lane);
        fn(user, tile, (node + lane) * b + k / HT_LANES / b, column * b + k / HT_LANES % b, decode(v, t, group, group * size + k, level));
      }
      index += gather ? HT_LANES : 1;
    }
  }
  assert_int_equal(group, t->group + t->groups);
  assert_int_equal(index, t[1].index);
  for (int64_t k = t->exception; level == HT_LEVEL_64 && k < t->exception + t->exceptions; k++)
    fn(user, tile, t->row + v->exception[k].row, v->exception[k].column, v->exception[k].value);
  for (int64_t k = 0; k < t->rows * b; k++) {
    int64_t first = t->row + (k / size * HT_LANES + k % HT_LANES) * b; /* of the node */
    double added = correction(v, t, k, level);
    if (added != 0) fn(user, tile, first + k % size / HT_LANES / b, first + k / HT_LANES % b, added);
  }
}

static int exponent_of(const ht_split_view *v, int64_t i) { return v->scale_exponent ? v->scale_exponent[i] : v->uniform_exponent; }

typedef struct check {
  const csr *a;
  const ht_split *split;
  int64_t *inverse; /* caller's to solver */
  double *sum;      /* decoded value of each CSR entry */
  uint8_t *touched; /* of the tile being walked */
} check;

static int64_t entry_of(const check *c, int64_t row, int64_t column) {
  const int32_t *order = c->split->order;
  int64_t r = order ? order[row] : row, j = order ? order[column] : column;
  for (int64_t k = c->a->start[r]; k < c->a->start[r + 1]; k++)
    if (c->a->columns[k] == j) return k;
  return -1;
}

static void collect(void *user, int64_t tile, int64_t row, int64_t column, double value) {
  check *c = user;
  (void)tile;
  assert_true(column >= 0 && column < c->split->view.padded);
  assert_true(c->touched[column / HT_COLUMN_BLOCK]); /* lanes without an entry read x too */
  if (value == 0) return;
  assert_true(row < c->a->n && column < c->a->n);
  int64_t k = entry_of(c, row, column);
  assert_true(k >= 0);
  c->sum[k] += value;
}

static void check_exact(check *c) {
  const ht_split_view *v = &c->split->view;
  int64_t nnz = c->a->start[c->a->n], counted = 0, row = 0;
  memset(c->sum, 0, (size_t)nnz * sizeof(double));
  for (int64_t t = 0; t < v->tiles; t++) {
    const ht_tile *tile = &v->tile[t];
    memset(c->touched, 0, (size_t)v->blocks);
    for (int64_t k = tile->touch; k < tile->touch + tile->touches; k++) c->touched[v->touched[k]] = 1;
    if (!tile->accumulate) {
      assert_int_equal(tile->row, row);
      row += tile->rows;
    }
    counted += tile->nonzeros;
    walk(v, t, HT_LEVEL_64, collect, c);
  }
  assert_int_equal(row, v->padded);
  assert_int_equal(counted, nnz);
  for (int64_t i = 0; i < c->a->n; i++)
    for (int64_t k = c->a->start[i]; k < c->a->start[i + 1]; k++) {
      int e = exponent_of(v, c->inverse[i]) + exponent_of(v, c->inverse[c->a->columns[k]]);
      double back = ldexp(c->sum[k], e);
      if (back != c->a->values[k]) print_error("row %lld entry %lld: %a is %a\n", (long long)i, (long long)k, c->a->values[k], back);
      assert_true(back == c->a->values[k]);
    }
}

/* ---- products ---- */

typedef struct reference {
  const double *x;
  double *y, *magnitude;
} reference;

static void multiply_entry(void *user, int64_t tile, int64_t row, int64_t column, double value) {
  reference *r = user;
  (void)tile;
  r->y[row] += value * r->x[column];
  r->magnitude[row] += fabs(value * r->x[column]);
}

static const ht_backend *backend(ht_context *ctx) {
  const ht_backend *b;
  assert_int_equal(ht_backend_find(ctx, "cpu", &b), HT_OK);
  return b;
}

static void check_products(ht_context *ctx, const check *c) {
  static const char *const isas[] = {"portable", "avx2", "avx512"};
  const ht_split_view *v = &c->split->view;
  size_t n = (size_t)v->padded;
  double *x = calloc(n, 8), *y = calloc(n, 8), *again = calloc(n, 8), *want = calloc(n, 8), *magnitude = calloc(n, 8);
  uint8_t *level = malloc((size_t)v->tiles + 1);
  int64_t longest = 0;
  for (int64_t i = 0; i < c->a->n; i++)
    if (c->a->start[i + 1] - c->a->start[i] > longest) longest = c->a->start[i + 1] - c->a->start[i];
  for (int64_t i = 0; i < c->a->n; i++) x[i] = uniform() - 0.5;
  for (int mode = 0; mode < 4; mode++) { /* three levels, and mixed ones */
    memset(want, 0, n * 8);
    memset(magnitude, 0, n * 8);
    for (int64_t t = 0; t < v->tiles; t++) {
      level[t] = (uint8_t)(mode < 3 ? mode : t % 3);
      reference r = {x, want, magnitude};
      walk(v, t, (ht_level)level[t], multiply_entry, &r);
    }
    for (int k = 0; k < 3; k++) {
      if (backend(ctx)->set_isa(ctx, isas[k]) != HT_OK) continue;
      assert_int_equal(ht_context_set_threads(ctx, 1), HT_OK);
      for (size_t i = 0; i < n; i++) y[i] = again[i] = NAN;
      backend(ctx)->split_multiply(ctx, v, level, x, y);
      assert_int_equal(ht_context_set_threads(ctx, 2), HT_OK);
      backend(ctx)->split_multiply(ctx, v, level, x, again);
      assert_memory_equal(y, again, n * 8);
      double u = 0x1p-53 * 2 * (double)(longest + 4); /* both sums are rounded */
      for (size_t i = 0; i < n; i++) assert_true(fabs(y[i] - want[i]) <= u * magnitude[i]);
    }
  }
  assert_int_equal(backend(ctx)->set_isa(ctx, "auto"), HT_OK);
  free(x), free(y), free(again), free(want), free(magnitude), free(level);
}

/* ---- what is measured ---- */

/* Column errors against the exact values: level sums collected a CSR entry; a node's own entry that is not stored may hold delta16 or
 * delta32. */
typedef struct level_sums {
  check *c;
  double *entry, *own; /* own: block entries a row */
} level_sums;

static void collect_level(void *user, int64_t tile, int64_t row, int64_t column, double value) {
  level_sums *s = user;
  (void)tile;
  if (value == 0) return;
  int64_t k = entry_of(s->c, row, column);
  int64_t block = s->c->split->view.block;
  if (k >= 0) {
    s->entry[k] += value;
    return;
  }
  assert_int_equal(row / block, column / block);
  s->own[row * block + column % block] += value;
}

/* delta16 and delta32 give the rows' sums with each component's constant vector back, up to their own rounding. */
static void check_constants(const check *c, int level, const double *sum, const double *size) {
  const ht_split_view *v = &c->split->view;
  int64_t b = v->block, group = b * b * HT_LANES;
  if (!v->delta[level]) return;
  double *bound = calloc((size_t)(v->padded * b), 8);
  for (int64_t t = 0; t < v->tiles; t++)
    for (int64_t k = 0; k < v->tile[t].rows * b; k++) {
      int64_t row = v->tile[t].row + (k / group * HT_LANES + k % HT_LANES) * b + k % group / HT_LANES / b;
      bound[row * b + k / HT_LANES % b] +=
          correction_unit(v, &v->tile[t], k, (ht_level)level); /* half a unit, but for what is just too large */
    }
  for (int64_t i = 0; i < c->a->n * b; i++) assert_true(fabs(sum[i]) <= bound[i] + 0x1p-45 * size[i] || size[i] > 1e3);
  free(bound);
}

static void check_errors(check *c) {
  const ht_split_view *v = &c->split->view;
  size_t nnz = (size_t)c->a->start[c->a->n], rows = (size_t)v->padded;
  int64_t block = v->block;
  double *entry = calloc(nnz + 1, 8), *own = calloc(rows * 3, 8), *error2 = calloc(rows, 8);
  double *row_sum = calloc(rows * 3, 8), *row_size = calloc(rows * 3, 8); /* over the columns of each component */
  int shared = 0;
  for (int64_t t = 0; t < v->tiles; t++) shared |= v->tile[t].accumulate;
  for (int level = HT_LEVEL_16; level < HT_LEVEL_64; level++) {
    memset(entry, 0, nnz * 8);
    memset(own, 0, rows * 3 * 8);
    memset(error2, 0, rows * 8);
    memset(row_sum, 0, rows * 3 * 8);
    memset(row_size, 0, rows * 3 * 8);
    level_sums sums = {c, entry, own};
    for (int64_t t = 0; t < v->tiles; t++) walk(v, t, (ht_level)level, collect_level, &sums);
    for (int64_t i = 0; i < c->a->n; i++) {
      int64_t row = c->inverse[i], first = row / block * block;
      for (int64_t j = 0; j < block; j++) {
        error2[first + j] += own[row * block + j] * own[row * block + j];
        row_sum[row * block + j] -= own[row * block + j];
      }
      for (int64_t k = c->a->start[i]; k < c->a->start[i + 1]; k++) {
        int64_t column = c->inverse[c->a->columns[k]], at = row * block + column % block;
        int shift = exponent_of(v, column) - exponent_of(v, first + column % block);
        double lost = c->sum[k] - entry[k];
        error2[column] += lost * lost;
        row_sum[at] += ldexp(lost, shift);
        row_size[at] += ldexp(fabs(c->sum[k]), shift);
      }
    }
    for (int64_t b = 0; b < v->blocks; b++) {
      double largest = 0;
      for (int64_t j = b * HT_COLUMN_BLOCK; j < (b + 1) * HT_COLUMN_BLOCK; j++) largest = fmax(largest, error2[j]);
      if (level == HT_LEVEL_16) largest = fmax(largest, pow((double)v->column_error[HT_LEVEL_32][b], 2));
      /* Tiles that share rows count their own entries' correction apart from each other. */
      if (!shared) assert_true(fabs(v->column_error[level][b] - sqrt(largest)) <= 1e-6 * sqrt(largest) + 1e-300);
    }
    check_constants(c, level, row_sum, row_size);
  }
  free(entry), free(own), free(error2), free(row_sum), free(row_size);
}

/* ---- everything about one matrix ---- */

static ht_split *create(ht_context *ctx, const csr *a, const int32_t *order, int64_t tile_rows, int flags) {
  ht_csr_view view = view_of(a);
  ht_node_graph graph;
  ht_split *split;
  ht_split_options options = {.tile_rows = tile_rows, .exactness_flags = flags, .order = order};
  assert_int_equal(ht_node_graph_create(ctx, &view, &graph), HT_OK);
  assert_int_equal(ht_split_create(ctx, &view, &graph, &options, &split), HT_OK);
  ht_node_graph_release(ctx, &graph);
  return split;
}

static void check_split(ht_context *ctx, const csr *a, const ht_split *split) {
  check c = {.a = a, .split = split};
  c.inverse = malloc((size_t)a->n * 8 + 8);
  c.sum = malloc((size_t)a->start[a->n] * 8 + 8);
  c.touched = malloc((size_t)split->view.blocks + 1);
  for (int64_t i = 0; i < a->n; i++) c.inverse[split->order ? split->order[i] : i] = i;
  check_exact(&c);
  check_errors(&c);
  check_products(ctx, &c);
  free(c.inverse), free(c.sum), free(c.touched);
}

/* In natural, reversed-Cuthill-McKee and shuffled order, with tiles of several sizes. */
static void check_matrix(ht_context *ctx, const csr *a) {
  ht_csr_view view = view_of(a);
  ht_node_graph graph;
  assert_int_equal(ht_node_graph_create(ctx, &view, &graph), HT_OK);
  int32_t *order = malloc((size_t)graph.nodes * 4 + 4);
  for (int kind = 0; kind < 3; kind++) {
    if (kind == 1) assert_int_equal(ht_order_rcm(ctx, &graph, HT_ROOT_FAR, order), HT_OK);
    for (int64_t i = 0; kind == 2 && i < graph.nodes; i++) order[i] = (int32_t)i;
    for (int64_t i = graph.nodes - 1; kind == 2 && i > 0; i--) {
      int64_t j = (int64_t)(uniform() * (double)(i + 1));
      int32_t keep = order[i];
      order[i] = order[j];
      order[j] = keep;
    }
    ht_split *split = create(ctx, a, kind ? order : NULL, kind == 0 ? 0 : 128, 1);
    check_split(ctx, a, split);
    ht_split_destroy(split);
  }
  free(order);
  ht_node_graph_release(ctx, &graph);
}

static ht_context *context(void) {
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  return ctx;
}

static void test_sizes(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 63, 64, 65, 200, 1000};
  ht_context *ctx = context();
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    csr a = banded(sizes[k]);
    check_matrix(ctx, &a);
    csr_free(&a);
  }
  ht_context_destroy(ctx);
}

static void test_patterns(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr list[] = {scattered(300, 3), scattered(700, 20), scattered(65, 64), arrow(2000), stencil(11, 1)};
  for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
    check_matrix(ctx, &list[k]);
    csr_free(&list[k]);
  }
  ht_context_destroy(ctx);
}

static void count_groups(const ht_split *split, int64_t *runs, int64_t *gathers) {
  *runs = *gathers = 0;
  for (int64_t k = 0; k < split->view.slices; k++) {
    *runs += split->view.slice[k].runs;
    *gathers += split->view.slice[k].gathers;
  }
}

/* Rows that are taken as they stand are placed by merging, rows in an order that is given by hashing: both find all runs that pay. */
static void test_runs_are_found_in_any_order(void **state) {
  ht_context *ctx = context();
  csr matrices[] = {banded(500), stencil(9, 1), scattered(600, 7)};
  (void)state;
  for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++) {
    csr *a = &matrices[k];
    int32_t *order = malloc((size_t)a->n * 4);
    int64_t runs[2], gathers[2];
    for (int64_t i = 0; i < a->n; i++) order[i] = (int32_t)i;
    for (int given = 0; given < 2; given++) {
      ht_split *split = create(ctx, a, given ? order : NULL, 0, 1);
      count_groups(split, &runs[given], &gathers[given]);
      ht_split_destroy(split);
    }
    assert_true(runs[0] >= (a->n + 7) / 8);                                                 /* the diagonal at least */
    assert_true(llabs(runs[0] - runs[1]) + llabs(gathers[0] - gathers[1]) <= runs[0] / 50); /* ties fall otherwise */
    free(order);
    csr_free(a);
  }
  ht_context_destroy(ctx);
}

static void test_node_blocks(void **state) {
  (void)state;
  ht_context *ctx = context();
  for (int unknowns = 2; unknowns <= 3; unknowns++) {
    csr a = stencil(7, unknowns);
    ht_split *split = create(ctx, &a, NULL, 0, 1);
    assert_int_equal(split->view.block, unknowns);
    assert_true((double)split->bytes < 9.5 * (double)a.start[a.n]);
    ht_split_destroy(split);
    check_matrix(ctx, &a);
    /* Some entries of some nodes missing: still nearly full blocks. */
    int64_t to = 0, begin = 0;
    for (int64_t i = 0; i < a.n; i++) {
      int64_t end = a.start[i + 1];
      for (int64_t k = begin; k < end; k++) {
        if (a.columns[k] != i && uniform() < 0.01) continue;
        a.columns[to] = a.columns[k];
        a.values[to++] = a.values[k];
      }
      begin = end;
      a.start[i + 1] = to;
    }
    check_matrix(ctx, &a);
    csr_free(&a);
  }
  ht_context_destroy(ctx);
}

static int count_encoding(const ht_split *s, ht_encoding e) {
  int count = 0;
  for (int64_t t = 0; t < s->view.tiles; t++) count += s->view.tile[t].encoding == e;
  return count;
}

static void test_values(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = stencil(10, 1);
  size_t nnz = (size_t)a.start[a.n];
  double *plain = malloc(nnz * 8);
  memcpy(plain, a.values, nnz * 8);
  /* Huge, tiny, and rows of very different scale. */
  static const double factors[] = {1e300, 1e-300, 1e-307};
  for (int k = 0; k < 3; k++) {
    for (size_t e = 0; e < nnz; e++) a.values[e] = plain[e] * factors[k];
    check_matrix(ctx, &a);
  }
  for (int64_t i = 0; i < a.n; i++)
    for (int64_t e = a.start[i]; e < a.start[i + 1]; e++)
      a.values[e] = ldexp(plain[e], (int)(i * 37 % 400 - 200 + a.columns[e] * 37 % 400 - 200));
  check_matrix(ctx, &a);
  /* A few cancelled entries are exceptions; many make the tiles FLOAT; values over the whole range make them RAW. */
  static const struct {
    double share, junk;
    ht_encoding encoding;
  } junks[] = {{0.004, 1.23456789e-17, HT_FIXED}, {0.3, 1.23456789e-17, HT_FLOAT}, {0.3, 1.23456789e-200, HT_RAW}};
  for (int k = 0; k < 3; k++) {
    for (size_t e = 0; e < nnz; e++) a.values[e] = plain[e] > 0 || uniform() > junks[k].share ? plain[e] : junks[k].junk * plain[e];
    ht_split *split = create(ctx, &a, NULL, 0, 1);
    assert_true(count_encoding(split, junks[k].encoding) > split->view.tiles / 2);
    ht_split_destroy(split);
    check_matrix(ctx, &a);
  }
  free(plain);
  csr_free(&a);
  ht_context_destroy(ctx);
}

/* Matrices that are not positive definite are stored exactly too; so are values that no scaling can save. */
static void test_odd_values(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = scattered(150, 8);
  for (int kind = 0; kind < 4; kind++) {
    for (int64_t i = 0; i < a.n; i++)
      for (int64_t k = a.start[i]; k < a.start[i + 1]; k++) {
        int64_t j = a.columns[k];
        double v = pair_value(i, j);
        if (kind == 0) v = i == j ? (i % 3 ? -v : 0) : 100 * v;
        if (kind == 1) v = i == j ? 1e-300 : v * 1e300;
        if (kind == 2) v = i % 5 == 0 || j % 5 == 0 ? 0 : v;
        if (kind == 3) v = i == j ? v * 1e100 : 4e-320;
        a.values[k] = v;
      }
    check_matrix(ctx, &a);
  }
  csr_free(&a);
  ht_context_destroy(ctx);
}

static void test_exact_levels(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = stencil(9, 1);
  for (int64_t k = 0; k < a.start[a.n]; k++) a.values[k] = a.values[k] > 0 ? 26 : -1;
  for (int flags = 0; flags < 2; flags++) {
    ht_split *split = create(ctx, &a, NULL, 0, flags);
    if (flags) assert_null(split->view.delta[HT_LEVEL_16]);
    for (int64_t t = 0; t < split->view.tiles; t++) assert_int_equal(split->view.tile[t].exact, flags ? HT_LEVEL_16 : HT_LEVEL_64);
    check_split(ctx, &a, split);
    ht_split_destroy(split);
  }
  csr_free(&a);
  ht_context_destroy(ctx);
}

/* Columns spread over more than one window: a dense first row and column, and a narrow band beside a far one. */
static void test_windows(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = arrow(300000);
  ht_split *split = create(ctx, &a, NULL, 0, 1);
  double *x = malloc(300032 * 8), *y = malloc(300032 * 8), *want = calloc(300032, 8), *size = calloc(300032, 8);
  uint8_t *level = malloc((size_t)split->view.tiles);
  int64_t shared = 0;
  for (int64_t i = 0; i < 300032; i++) x[i] = i < a.n ? uniform() : 0;
  for (int64_t t = 0; t < split->view.tiles; t++) {
    level[t] = HT_LEVEL_64;
    shared += split->view.tile[t].accumulate;
    reference r = {x, want, size};
    walk(&split->view, t, HT_LEVEL_64, multiply_entry, &r);
  }
  assert_true(shared > 0);
  backend(ctx)->split_multiply(ctx, &split->view, level, x, y);
  for (int64_t i = 0; i < 300032; i++) assert_true(fabs(y[i] - want[i]) <= 0x1p-52 * 300004 * size[i]);
  for (int64_t i = 0; i < a.n; i++) want[i] = 0;
  for (int64_t i = 0; i < a.n; i++)
    for (int64_t k = a.start[i]; k < a.start[i + 1]; k++)
      want[i] += ldexp(a.values[k], -exponent_of(&split->view, i) - exponent_of(&split->view, a.columns[k])) * x[a.columns[k]];
  for (int64_t i = 0; i < 300032; i++) assert_true(fabs(y[i] - want[i]) <= 0x1p-52 * 300004 * size[i]);
  ht_split_destroy(split);
  csr_free(&a);
  a = csr_new(140000, 140000 * 3);
  for (int64_t i = 0; i < a.n; i++)
    for (int64_t j = i % 70000; j < a.n; j += 70000) append(&a, i, j, pair_value(i, j));
  split = create(ctx, &a, NULL, 0, 1);
  check_split(ctx, &a, split);
  ht_split_destroy(split);
  csr_free(&a);
  free(x), free(y), free(want), free(size), free(level);
  ht_context_destroy(ctx);
}

static void test_new_values(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = scattered(500, 9);
  ht_split *split = create(ctx, &a, NULL, 128, 1);
  for (int round = 0; round < 3; round++) {
    for (int64_t k = 0; k < a.start[a.n]; k++) a.values[k] = round == 1 ? 1 + (double)(k % 3) : a.values[k] * (1 + uniform());
    ht_csr_view view = view_of(&a);
    ht_node_graph graph;
    assert_int_equal(ht_node_graph_create(ctx, &view, &graph), HT_OK);
    assert_int_equal(ht_split_set_values(split, &view, &graph), HT_OK);
    ht_node_graph_release(ctx, &graph);
    check_split(ctx, &a, split);
  }
  ht_split_destroy(split);
  csr_free(&a);
  ht_context_destroy(ctx);
}

/* The same bits with one thread and with two. */
static void test_threads(void **state) {
  (void)state;
  ht_context *ctx = context();
  csr a = stencil(14, 1);
  assert_int_equal(ht_context_set_threads(ctx, 1), HT_OK);
  ht_split *one = create(ctx, &a, NULL, 64, 1);
  assert_int_equal(ht_context_set_threads(ctx, 2), HT_OK);
  ht_split *two = create(ctx, &a, NULL, 64, 1);
  const ht_split_view *v = &one->view, *w = &two->view;
  size_t values = (size_t)v->groups * HT_LANES;
  assert_int_equal(v->groups, w->groups);
  assert_memory_equal(v->head, w->head, values * 2);
  assert_memory_equal(v->mid, w->mid, values * 2);
  assert_memory_equal(v->tail, w->tail, values * 4);
  assert_memory_equal(v->exponent, w->exponent, (size_t)v->groups);
  assert_memory_equal(v->index, w->index, (size_t)v->tile[v->tiles].index * 2);
  assert_memory_equal(v->touched, w->touched, (size_t)v->tile[v->tiles].touch * 4);
  for (int l = 0; l < 2; l++) assert_memory_equal(v->delta[l], w->delta[l], (size_t)v->tile[v->tiles].delta * 2);
  for (int l = 0; l < 2; l++) assert_memory_equal(v->column_error[l], w->column_error[l], (size_t)v->blocks * 4);
  ht_split_destroy(one);
  ht_split_destroy(two);
  csr_free(&a);
  ht_context_destroy(ctx);
}

/* ---- memory ---- */

static long allowed, live;
static void *counted_allocate(void *user, size_t bytes) {
  (void)user;
  if (allowed-- <= 0) return NULL;
  live++;
  return malloc(bytes);
}
static void counted_release(void *user, void *memory) {
  (void)user;
  if (memory) live--;
  free(memory);
}

static void test_allocation_fails(void **state) {
  (void)state;
  ht_allocator allocator = {counted_allocate, counted_release, NULL};
  csr a = scattered(200, 6);
  ht_csr_view view = view_of(&a);
  int done = 0;
  for (long limit = 1; !done && limit < 200; limit++) {
    ht_context *ctx;
    ht_node_graph graph;
    ht_split *split = NULL;
    int32_t *order = NULL;
    allowed = 1;
    assert_int_equal(ht_context_create_with(&allocator, &ctx), HT_OK);
    assert_int_equal(ht_context_set_threads(ctx, 2), HT_OK); /* scratch is allocated a thread */
    allowed = limit;
    ht_status status = ht_node_graph_create(ctx, &view, &graph);
    if (status == HT_OK) status = ht_order_auto(ctx, &graph, HT_ROOT_FAR, NULL, &order);
    ht_split_options options = {.exactness_flags = 1, .order = order};
    if (status == HT_OK) status = ht_split_create(ctx, &view, &graph, &options, &split);
    assert_true(status == HT_OK || (status == HT_NO_MEMORY && !split));
    done = status == HT_OK;
    ht_split_destroy(split);
    ht_node_graph_release(ctx, &graph);
    ht_release(ctx, order);
    ht_context_destroy(ctx);
    assert_int_equal(live, 0);
  }
  assert_true(done);
  csr_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),        cmocka_unit_test(test_patterns),         cmocka_unit_test(test_runs_are_found_in_any_order),
      cmocka_unit_test(test_node_blocks),  cmocka_unit_test(test_values),           cmocka_unit_test(test_odd_values),
      cmocka_unit_test(test_exact_levels), cmocka_unit_test(test_windows),          cmocka_unit_test(test_new_values),
      cmocka_unit_test(test_threads),      cmocka_unit_test(test_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
