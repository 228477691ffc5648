/* Graph Laplacians plus a shift. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include "gen/gen.h"
#include "gen/random.h"

enum { GEOMETRIC, PREFERENTIAL, SHORTCUTS };
enum { STREAM_POINT = 41, STREAM_TARGET = 42, STREAM_SHORTCUT = 43, STREAM_WEIGHT = 44 };

#define GRAPH(X)                                                                                                                           \
  X(CHOICE, graph, 0, 0, 2, AT_PREPARE, "geometric|preferential|shortcuts", "how vertices are joined")                                     \
  X(INTEGER, size, 10000, 1, 2147483647, AT_PREPARE, NULL, "vertices (shortcuts: rounded up to a square)")                                 \
  X(REAL, degree, 8, 1, 1000, AT_PREPARE, NULL, "mean number of neighbours", "graph=geometric|preferential")                               \
  X(REAL, probability, 0.1, 0, 1, AT_PREPARE, NULL, "chance that a vertex gets a shortcut", "graph=shortcuts")                             \
  X(REAL, sigma, 0, 0, 30, AT_PREPARE, NULL, "weights are exp(sigma g), g normal; 0: all are 1")                                           \
  X(REAL, shift, 1e-3, 1e-15, 1e15, AT_PREPARE, NULL, "added to the diagonal")                                                             \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(graph_parameters, GRAPH);

/* Neighbours of v are to[start[v]] .. to[start[v + 1]], ascending and distinct. */
typedef struct graph {
  const graph_parameters *o;
  int64_t vertices;
  int64_t *start;
  int32_t *to;
} graph;
typedef struct edge_list {
  int64_t count, capacity;
  int32_t (*ends)[2];
} edge_list;

static void add_edge(edge_list *edges, int64_t a, int64_t b) {
  if (a == b || edges->count == edges->capacity) return;
  edges->ends[edges->count][0] = (int32_t)a;
  edges->ends[edges->count++][1] = (int32_t)b;
}

static int ascending(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* From edges, each given once or more, to sorted lists of distinct neighbours. */
static ht_status join(ht_context *ctx, const edge_list *edges, graph *g) {
  HT_TRY(ctx, ht_allocate_zeroed(ctx, g->vertices + 2, sizeof *g->start, &g->start));
  HT_TRY(ctx, ht_allocate(ctx, 2 * edges->count, sizeof *g->to, &g->to));
  int64_t *at = g->start + 1, kept = 0, begin = 0;
  for (int64_t e = 0; e < edges->count; e++)
    for (int side = 0; side < 2; side++) at[edges->ends[e][side] + 1]++;
  for (int64_t v = 0; v < g->vertices; v++) at[v + 1] += at[v];
  for (int64_t e = 0; e < edges->count; e++)
    for (int side = 0; side < 2; side++) g->to[at[edges->ends[e][side]]++] = edges->ends[e][1 - side];
  for (int64_t v = 0; v < g->vertices; v++) { /* start[v + 1] is where v's neighbours end */
    int64_t end = g->start[v + 1];
    qsort(g->to + begin, (size_t)(end - begin), sizeof *g->to, ascending);
    int64_t first = kept;
    for (int64_t k = begin; k < end; k++)
      if (kept == first || g->to[kept - 1] != g->to[k]) g->to[kept++] = g->to[k];
    begin = end;
    g->start[v + 1] = kept;
  }
  return HT_OK;
}

/* Points in the unit square, sorted into bins of the radius' size; neighbours lie in the nine bins around. */
typedef struct bins {
  int64_t side;
  double radius2;
  int64_t *start;
  int32_t *point;
  double (*x)[2];
} bins;

static int64_t bin_of(const bins *b, const double x[2]) {
  return (int64_t)(x[0] * (double)b->side) + b->side * (int64_t)(x[1] * (double)b->side);
}

static ht_status fill_bins(ht_context *ctx, uint64_t seed, int64_t n, bins *b) {
  HT_TRY(ctx, ht_allocate(ctx, n, sizeof *b->x, &b->x));
  HT_TRY(ctx, ht_allocate(ctx, n, sizeof *b->point, &b->point));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, b->side * b->side + 2, sizeof *b->start, &b->start));
  int64_t *at = b->start + 1;
  for (int64_t i = 0; i < n; i++) {
    for (int d = 0; d < 2; d++) b->x[i][d] = ht_gen_uniform(seed, STREAM_POINT, (uint64_t)(2 * i + d));
    at[bin_of(b, b->x[i]) + 1]++;
  }
  for (int64_t k = 0; k < b->side * b->side; k++) at[k + 1] += at[k];
  for (int64_t i = 0; i < n; i++) b->point[at[bin_of(b, b->x[i])]++] = (int32_t)i;
  return HT_OK;
}

/* Edges from i to higher points within the radius; counted only when there is no list. */
static int64_t near_points(const bins *b, int64_t i, edge_list *edges) {
  int64_t bin = bin_of(b, b->x[i]), bx = bin % b->side, by = bin / b->side, count = 0;
  for (int64_t y = by > 0 ? by - 1 : 0; y <= by + 1 && y < b->side; y++)
    for (int64_t x = bx > 0 ? bx - 1 : 0; x <= bx + 1 && x < b->side; x++)
      for (int64_t k = b->start[x + b->side * y]; k < b->start[x + b->side * y + 1]; k++) {
        int64_t j = b->point[k];
        double dx = b->x[i][0] - b->x[j][0], dy = b->x[i][1] - b->x[j][1];
        if (j <= i || dx * dx + dy * dy > b->radius2) continue;
        count++;
        if (edges) add_edge(edges, i, j);
      }
  return count;
}

static ht_status reserve(ht_context *ctx, edge_list *edges, int64_t capacity) {
  edges->capacity = capacity;
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *edges->ends, &edges->ends));
  return HT_OK;
}

static ht_status geometric_edges(ht_context *ctx, const bins *b, int64_t n, edge_list *edges) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += near_points(b, i, NULL);
  HT_TRY(ctx, reserve(ctx, edges, count));
  for (int64_t i = 0; i < n; i++) near_points(b, i, edges);
  return HT_OK;
}

static ht_status geometric(ht_context *ctx, const graph *g, edge_list *edges) {
  bins b = {.radius2 = g->o->degree / (HT_GEN_PI * (double)g->vertices)};
  b.side = (int64_t)(1 / sqrt(b.radius2));
  if (b.side < 1) b.side = 1;
  ht_status status = fill_bins(ctx, (uint64_t)g->o->seed, g->vertices, &b);
  if (status == HT_OK) status = geometric_edges(ctx, &b, g->vertices, edges);
  ht_release(ctx, b.x);
  ht_release(ctx, b.point);
  ht_release(ctx, b.start);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* Barabasi and Albert: a new vertex takes ends of edges drawn at random, which favours vertices with many. */
static ht_status preferential(ht_context *ctx, const graph *g, edge_list *edges) {
  int64_t each = (int64_t)(g->o->degree / 2 + 0.5), draws = 0;
  if (each < 1) each = 1;
  HT_TRY(ctx, reserve(ctx, edges, g->vertices * each));
  for (int64_t v = 1; v < g->vertices; v++) {
    int64_t ends = 2 * edges->count; /* before v's own edges */
    for (int64_t k = 0; k < each && k < v; k++) {
      uint64_t draw = ht_gen_bits((uint64_t)g->o->seed, STREAM_TARGET, (uint64_t)draws++);
      int64_t end = ends ? (int64_t)(draw % (uint64_t)ends) : 0;
      add_edge(edges, v, ends ? edges->ends[end / 2][end % 2] : 0);
    }
  }
  return HT_OK;
}

/* Newman and Watts: a square grid with some edges to anywhere. */
static ht_status shortcuts(ht_context *ctx, const graph *g, edge_list *edges) {
  int64_t side = (int64_t)ceil(sqrt((double)g->vertices));
  uint64_t seed = (uint64_t)g->o->seed;
  HT_TRY(ctx, reserve(ctx, edges, 3 * g->vertices));
  for (int64_t v = 0; v < g->vertices; v++) {
    if (v % side + 1 < side) add_edge(edges, v, v + 1);
    if (v + side < g->vertices) add_edge(edges, v, v + side);
    if (ht_gen_uniform(seed, STREAM_SHORTCUT, 2 * (uint64_t)v) < g->o->probability)
      add_edge(edges, v, (int64_t)(ht_gen_bits(seed, STREAM_SHORTCUT, 2 * (uint64_t)v + 1) % (uint64_t)g->vertices));
  }
  return HT_OK;
}

/* One weight a pair, whichever end asks. */
static double weight_of(const graph_parameters *o, int64_t a, int64_t b) {
  uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
  return o->sigma == 0 ? 1 : exp(o->sigma * ht_gen_normal((uint64_t)o->seed, STREAM_WEIGHT, low << 31 | high));
}

static int64_t graph_row(const void *self, int64_t i, int32_t *columns, double *values) {
  const graph *g = self;
  int64_t begin = g->start[i], neighbours = g->start[i + 1] - begin, out = 0, place = 0;
  if (!columns) return neighbours + 1;
  double sum = 0;
  for (int64_t k = 0; k < neighbours; k++) {
    int32_t j = g->to[begin + k];
    double w = weight_of(g->o, i, j);
    if (j < i) place = k + 1;
    out = k + (j > i);
    columns[out] = j;
    values[out] = -w;
    sum += w;
  }
  columns[place] = (int32_t)i;
  values[place] = sum + g->o->shift;
  return neighbours + 1;
}

static ht_status make_graph(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const graph_parameters *o = parameters;
  graph g = {.o = o, .vertices = o->size};
  edge_list edges = {0};
  if (o->graph == SHORTCUTS) {
    int64_t side = (int64_t)ceil(sqrt((double)o->size));
    HT_TRY(ctx, ht_gen_rows_of(ctx, side, side, 1, &g.vertices));
  }
  ht_status status = o->graph == GEOMETRIC      ? geometric(ctx, &g, &edges)
                     : o->graph == PREFERENTIAL ? preferential(ctx, &g, &edges)
                                                : shortcuts(ctx, &g, &edges);
  if (status == HT_OK) status = join(ctx, &edges, &g);
  ht_release(ctx, edges.ends);
  if (status == HT_OK) status = ht_gen_build(ctx, g.vertices, graph_row, &g, source, matrix);
  ht_release(ctx, g.start);
  ht_release(ctx, g.to);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

static const ht_option_row graph_rows[] = {
#define HT_OPTION_OWNER graph_parameters
    GRAPH(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
const ht_gen_kind ht_gen_graph = {
    .name = "graph",
    .summary = "graph Laplacian plus shift: random geometric, preferential attachment, grid with shortcuts",
    .formula =
        "A = D - W + shift I, W the weights of the edges, D its row sums. geometric: points at random in the unit square, numbered at "
        "random, joined when closer than sqrt(degree / (pi n)). preferential: each new vertex draws degree/2 ends of earlier edges. "
        "shortcuts: a square grid, a vertex with the given chance joined to any other. Repeated edges count once.",
    .spd = "D - W is positive semidefinite (weights are positive); the shift is positive. Parts of the graph may be unconnected.",
    HT_GEN_ROWS(graph_rows),
    .fields = sizeof(graph_parameters),
    .generate = make_graph};
