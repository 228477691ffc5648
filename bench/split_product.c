/* Products of the split storage at each level against the plain CSR product, in one run: time and bytes a nonzero, bandwidth as
 * a share of what a plain read of memory reaches, and the set-up in products.
 *
 *   split_product [--isa NAME] [--threads N] [--scale F] [--only K] [--best 1] [--setups N] [--clock wall|cpu] [RECIPE...]
 *
 * --clock cpu: the processor time of all threads together, for busy machines, with --threads 1. F: size of the matrices, 1 by default.
 * RECIPE: 'stencil3d size=64 points=27', a test problem instead of the five of this file. Medians of interleaved repetitions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "data/order.h"
#include "base/kept.h"
#include "data/split.h"
#include "program.h"

enum { REPEATS = 9, MOST_SETUPS = 1000 };

typedef struct csr {
  const char *name;
  int64_t n, nnz;
  int64_t *start;
  int32_t *columns;
  double *values;
} csr;

static void *memory(int64_t bytes) {
  void *p = malloc((size_t)bytes + 1);
  if (!p) exit(3);
  return p;
}

/* ---- matrices ---- */

static uint64_t hash(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
  return h ^ h >> 32;
}

/* Couplings are lognormal, symmetric in i and j; dominant() then sets the diagonal, so that the matrix is positive definite. */
static double value(int64_t i, int64_t j) {
  uint64_t h = hash((uint64_t)(i < j ? i : j), (uint64_t)(i < j ? j : i));
  double u = ((double)(h >> 40) + 1) * 0x1p-24, v = (double)(h & 0xffffff) * 0x1p-24;
  double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
  return -exp(normal);
}

/* From the context, as the library's own matrices are. */
static void *array(int64_t count, size_t size) {
  void *p;
  require(ht_allocate(ctx, count, size, &p));
  return p;
}

static csr start_matrix(const char *name, int64_t n, int64_t capacity) {
  csr a = {name, n, 0, array(n + 1, 8), array(capacity, 4), array(capacity, 8)};
  a.start[0] = 0;
  return a;
}

static void add(csr *a, int64_t i, int64_t j) {
  a->columns[a->nnz] = (int32_t)j;
  a->values[a->nnz++] = value(i, j);
}

static void dominant(csr *a) {
  for (int64_t i = 0; i < a->n; i++) {
    double sum = 0;
    for (int64_t k = a->start[i]; k < a->start[i + 1]; k++) sum += a->columns[k] == i ? 0 : fabs(a->values[k]);
    for (int64_t k = a->start[i]; k < a->start[i + 1]; k++)
      if (a->columns[k] == i) a->values[k] = 1.001 * sum;
  }
}

/* 7 or 27 points, `unknowns` a point. */
static csr stencil(const char *name, int64_t m, int points, int unknowns) {
  csr a = start_matrix(name, m * m * m * unknowns, m * m * m * points * unknowns * unknowns);
  for (int64_t p = 0; p < m * m * m; p++)
    for (int c = 0; c < unknowns; c++) {
      for (int64_t d = 0; d < 27; d++) {
        int64_t dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1, x = p % m + dx, y = p / m % m + dy, z = p / (m * m) + dz;
        if (x < 0 || y < 0 || z < 0 || x >= m || y >= m || z >= m || (points == 7 && dx * dx + dy * dy + dz * dz > 1)) continue;
        for (int e = 0; e < unknowns; e++) add(&a, p * unknowns + c, ((z * m + y) * m + x) * unknowns + e);
      }
      a.start[p * unknowns + c + 1] = a.nnz;
    }
  return a;
}

/* Serendipity elements with eight nodes, numbered line by line as in Higham's gallery. */
static int64_t wathen_node(int64_t m, int64_t x, int64_t y) { /* half steps; -1 in the middle of an element */
  if (x % 2 && y % 2) return -1;
  return y / 2 * (3 * m + 2) + (y % 2 ? 2 * m + 1 + x / 2 : x);
}
static csr wathen(int64_t m) {
  int64_t n = 3 * m * m + 4 * m + 1;
  csr a = start_matrix("wathen", n, n * 21);
  for (int64_t y = 0; y <= 2 * m; y++)
    for (int64_t x = 0; x <= 2 * m; x++) {
      int64_t i = wathen_node(m, x, y);
      if (i < 0) continue;
      int64_t rx = x % 2 ? 1 : 2, ry = y % 2 ? 1 : 2; /* reach of the elements around */
      for (int64_t v = y - ry < 0 ? 0 : y - ry; v <= y + ry && v <= 2 * m; v++)
        for (int64_t u = x - rx < 0 ? 0 : x - rx; u <= x + rx && u <= 2 * m; u++)
          if (wathen_node(m, u, v) >= 0) add(&a, i, wathen_node(m, u, v));
      a.start[i + 1] = a.nnz;
    }
  return a;
}

static int by_column(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* A point in every cell of a cube, coupled to the points within `reach` cells, numbered at random: what a mesher may give. */
static csr mesh(int64_t m, double reach) {
  int64_t n = m * m * m;
  csr a = start_matrix("random mesh", n, n * 40);
  int32_t *number = memory(n * 4), *point = memory(n * 4);
  float *at = memory(n * 12);
  for (int64_t p = 0; p < n; p++) {
    number[p] = (int32_t)p;
    int64_t cell[3] = {p % m, p / m % m, p / (m * m)};
    for (int c = 0; c < 3; c++) at[p * 3 + c] = (float)((double)cell[c] + (double)(hash((uint64_t)p, (uint64_t)c) & 0xffff) * 0x1p-16);
  }
  for (int64_t p = n - 1; p > 0; p--) {
    int64_t q = (int64_t)(hash((uint64_t)p, 7) % (uint64_t)(p + 1));
    int32_t keep = number[p];
    number[p] = number[q];
    number[q] = keep;
  }
  for (int64_t p = 0; p < n; p++) point[number[p]] = (int32_t)p;
  for (int64_t i = 0; i < n; i++) {
    int64_t p = point[i], first = a.nnz;
    for (int64_t d = 0; d < 125; d++) {
      int64_t x = p % m + d % 5 - 2, y = p / m % m + d / 5 % 5 - 2, z = p / (m * m) + d / 25 - 2;
      if (x < 0 || y < 0 || z < 0 || x >= m || y >= m || z >= m) continue;
      int64_t q = (z * m + y) * m + x;
      float r2 = 0;
      for (int c = 0; c < 3; c++) r2 += (at[p * 3 + c] - at[q * 3 + c]) * (at[p * 3 + c] - at[q * 3 + c]);
      if (q == p || r2 < (float)(reach * reach)) a.columns[a.nnz++] = number[q];
    }
    qsort(a.columns + first, (size_t)(a.nnz - first), 4, by_column);
    for (int64_t k = first; k < a.nnz; k++) a.values[k] = value(i, a.columns[k]);
    a.start[i + 1] = a.nnz;
  }
  free(number);
  free(point);
  free(at);
  return a;
}

/* ---- measurement ---- */

static int setups = 3;
static int quickest; /* take the least of the repetitions instead of the median: for a machine that others use */

static double usual(double *times, int count) {
  double middle = median(times, count);
  return quickest ? times[0] : middle;
}

/* GB/s of reading 512 MB with all threads. */
static double read_bandwidth(void) {
  const int64_t n = 1 << 26, part = 1 << 14;
  double *a = array(n, 8), times[REPEATS], sum = 0;
  int threads = ht_context_threads(ctx);
  memset(a, 0, (size_t)n * 8);
  for (int r = 0; r < REPEATS; r++) {
    double start = now();
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sum)
    for (int64_t k = 0; k < n / part; k++) {
      double s[32] = {0};
      for (int64_t i = k * part; i < (k + 1) * part; i += 32)
        for (int j = 0; j < 32; j++) s[j] += a[i + j];
      for (int j = 0; j < 32; j++) sum += s[j];
    }
    times[r] = now() - start;
  }
  ht_release(ctx, a);
  return sum == 0 ? (double)n * 8e-9 / usual(times, REPEATS) : 0;
}

/* Of all bits: two builds that print the same numbers multiply alike. */
static unsigned long long bits_of(const double *y, int64_t n) {
  uint64_t h = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, y + i, sizeof bits);
    h = hash(h, bits);
  }
  return h;
}

static void discard(ht_split *split, ht_node_graph *graph, int32_t *order) {
  ht_split_destroy(split);
  ht_node_graph_release(ctx, graph);
  ht_release(ctx, order);
}

static void measure(const csr *a, double bandwidth) {
  const ht_backend *cpu;
  ht_csr_view view = {a->n, a->nnz, a->start, a->columns, a->values};
  ht_node_graph graph;
  ht_split *split;
  int32_t *order;
  require(ht_backend_find(ctx, "cpu", &cpu));
  double setup[MOST_SETUPS], update[MOST_SETUPS], ordering[MOST_SETUPS];
  for (int r = 0; r < setups; r++) {
    ht_kept_forget(ctx);
    double start = now();
    require(ht_node_graph_create(ctx, &view, &graph));
    double graph_done = now();
    require(ht_order_auto(ctx, &graph, HT_ROOT_FAR, NULL, &order));
    double order_done = now();
    ht_split_options options = {.exactness_flags = 1, .order = order};
    require(ht_split_create(ctx, &view, &graph, &options, &split));
    double created = now();
    require(ht_split_set_values(split, &view, &graph));
    update[r] = now() - created;
    ordering[r] = order_done - graph_done;
    setup[r] = created - start - ordering[r];
    if (r < setups - 1) discard(split, &graph, order);
  }

  const ht_split_view *v = &split->view;
  int64_t encodings[HT_ENCODINGS] = {0}, runs = 0;
  for (int64_t t = 0; t < v->tiles; t++) encodings[v->tile[t].encoding]++;
  for (int64_t s = 0; s < v->slices; s++) runs += v->slice[s].runs;
  double *x = memory((v->padded + 8) * 8), *y = memory((v->padded + 8) * 8), times[HT_LEVELS + 1][REPEATS], bytes[HT_LEVELS] = {0};
  uint8_t *level = memory(v->tiles);
  unsigned long long product[HT_LEVELS] = {0};
  for (int64_t i = 0; i < v->padded; i++) x[i] = i < v->n ? 1 + 1e-3 * (double)(i % 100) : 0;
  for (int r = -1; r < REPEATS; r++)
    for (int l = 0; l <= HT_LEVELS; l++) {
      if (l < HT_LEVELS) memset(level, l, (size_t)v->tiles);
      double start = now();
      if (l < HT_LEVELS)
        cpu->split_multiply(ctx, v, level, x, y);
      else
        cpu->csr_multiply(ctx, &view, x, y);
      if (r >= 0) times[l][r] = now() - start;
      if (l < HT_LEVELS) product[l] = bits_of(y, v->n);
    }
  double nnz = (double)a->nnz, csr_time = usual(times[HT_LEVELS], REPEATS);
  printf("%-14s n %8lld  nnz/row %5.1f  block %d  %s  stored %5.2f B/nnz  groups: %2.0f%% runs, %2.0f%% full  tiles FIXED/FLOAT/RAW "
         "%lld/%lld/%lld\n",
         a->name, (long long)a->n, nnz / (double)a->n, v->block,
         order          ? "rcm    "
         : split->order ? "sorted "
                        : "natural",
         (double)split->bytes / nnz, 100.0 * (double)runs / (double)v->groups,
         100 * nnz / (double)(v->groups * v->block * v->block * HT_LANES), (long long)encodings[0], (long long)encodings[1],
         (long long)encodings[2]);
  double csr_bytes = nnz * 12 + (double)a->n * 24;
  printf("  %-6s %8.3f ms %7.3f ns/nnz %6.1f GB/s\n", "csr", csr_time * 1e3, csr_time * 1e9 / nnz, csr_bytes * 1e-9 / csr_time);
  double before = 0;
  for (int l = HT_LEVEL_64; l >= HT_LEVEL_16; l--) {
    double t = usual(times[l], REPEATS);
    bytes[l] = (double)v->padded * 16;
    for (int64_t k = 0; k < v->tiles; k++) bytes[l] += (double)ht_split_tile_bytes(v, &v->tile[k], (ht_level)l);
    printf("  %-6s %8.3f ms %7.3f ns/nnz %6.1f GB/s  %3.0f%% of read  %4.2fx csr",
           l == 2   ? "64"
           : l == 1 ? "32"
                    : "16",
           t * 1e3, t * 1e9 / nnz, bytes[l] * 1e-9 / t, 100 * bytes[l] * 1e-9 / t / bandwidth, csr_time / t);
    printf(before > 0 ? "  %4.2fx the level above\n" : "\n", before / t);
    before = t;
  }
  printf("  bits of the products %016llx %016llx %016llx\n", product[0], product[1], product[2]);
  double t64 = usual(times[HT_LEVEL_64], REPEATS);
  double made = usual(setup, setups), updated = usual(update, setups), ordered = usual(ordering, setups);
  printf("  set-up %.1f ms, %.1f FP64 products (new values %.1f), ordering %.1f\n", made * 1e3, made / t64, updated / t64, ordered / t64);
  free(x);
  free(y);
  free(level);
  discard(split, &graph, order);
}

static void measure_recipe(const char *recipe, double bandwidth) {
  ht_matrix *matrix = generate(recipe);
  csr a = {.name = recipe, .n = ht_matrix_rows(matrix), .nnz = ht_matrix_nonzeros(matrix)};
  const int64_t *start;
  const int32_t *columns;
  const double *values;
  ht_matrix_csr(matrix, &start, &columns, &values);
  a.start = (int64_t *)start, a.columns = (int32_t *)columns, a.values = (double *)values; /* read only */
  measure(&a, bandwidth);
  ht_matrix_destroy(matrix);
}

static void measure_own(int k, double scale, double bandwidth) {
  double edge = cbrt(scale);
  csr a = k == 0   ? stencil("27-point", (int64_t)(96 * edge), 27, 1)
          : k == 1 ? stencil("7-point", (int64_t)(128 * edge), 7, 1)
          : k == 2 ? stencil("elasticity", (int64_t)(40 * edge), 27, 3)
          : k == 3 ? wathen((int64_t)(577 * sqrt(scale)))
                   : mesh((int64_t)(80 * edge), 1.6);
  dominant(&a);
  measure(&a, bandwidth);
  ht_release(ctx, a.start);
  ht_release(ctx, a.columns);
  ht_release(ctx, a.values);
}

int main(int argc, char **argv) {
  const ht_backend *cpu;
  double scale = 1;
  int only = -1, k = 1;
  if (ht_context_create(&ctx) != HT_OK) return 3;
  require(ht_backend_find(ctx, "cpu", &cpu));
  for (; k + 1 < argc && !strncmp(argv[k], "--", 2); k += 2) {
    if (!strcmp(argv[k], "--isa")) require(cpu->set_isa(ctx, argv[k + 1]));
    if (!strcmp(argv[k], "--threads")) require(ht_context_set_threads(ctx, atoi(argv[k + 1])));
    if (!strcmp(argv[k], "--scale")) scale = atof(argv[k + 1]);
    if (!strcmp(argv[k], "--best")) quickest = atoi(argv[k + 1]);
    if (!strcmp(argv[k], "--only")) only = atoi(argv[k + 1]);
    if (!strcmp(argv[k], "--clock") && !strcmp(argv[k + 1], "cpu")) the_clock = CLOCK_PROCESS_CPUTIME_ID;
    if (!strcmp(argv[k], "--setups")) setups = atoi(argv[k + 1]);
  }
  if (setups < 1 || setups > MOST_SETUPS) return 2;
  double bandwidth = read_bandwidth();
  printf("%s, %d threads, memory read %.1f GB/s\n", cpu->isa(), ht_context_threads(ctx), bandwidth);
  for (int recipe = k; recipe < argc; recipe++) {
    measure_recipe(argv[recipe], bandwidth);
    fflush(stdout);
  }
  for (int own = 0; own < 5 && k == argc; own++) {
    if (only >= 0 && own != only) continue;
    measure_own(own, scale, bandwidth);
    printf("  memory read %.1f GB/s\n", bandwidth = read_bandwidth());
    fflush(stdout);
  }
  ht_context_destroy(ctx);
  return 0;
}
