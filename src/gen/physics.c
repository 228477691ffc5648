/* Grid problems made after applications: radiation, rhd, oil, weather. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "gen/gen.h"
#include "gen/random.h"

enum { STREAM_BLOB = 11, STREAM_LAYER = 12, STREAM_ROCK = 13, STREAM_BARRIER = 14 };

typedef struct medium {
  int64_t n[3];
  double *k;        /* of each cell */
  double factor[3]; /* of the couplings along each axis */
  double shift;
} medium;

/* The centre of cell i in the unit cube. */
static void place(const int64_t n[3], int64_t i, double at[3]) {
  int64_t cell[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
  for (int d = 0; d < 3; d++) at[d] = ((double)cell[d] + 0.5) / (double)n[d];
}

static double medium_shift(const void *self, int64_t i) {
  (void)i;
  return ((const medium *)self)->shift;
}

static double dirichlet_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const medium *m = self;
  (void)rising;
  return m->factor[axes / 2] * (b < 0 ? m->k[a] : ht_gen_harmonic(m->k[a], m->k[b]));
}

static ht_status allocate_medium(ht_context *ctx, medium *m, int64_t *cells) {
  HT_TRY(ctx, ht_gen_rows_of(ctx, m->n[0], m->n[1], m->n[2], cells));
  HT_TRY(ctx, ht_allocate(ctx, *cells, sizeof *m->k, &m->k));
  return HT_OK;
}

/* Build from the filled medium and release it. */
static ht_status finish_medium(ht_context *ctx, medium *m, const ht_gen_grid *grid, const char *source, ht_matrix **matrix) {
  ht_status status = ht_gen_from_grid(ctx, grid, source, matrix);
  ht_release(ctx, m->k);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- radiation and rhd: a hot region behind a front ---- */
#define RADIATION(X)                                                                                                                       \
  HT_GEN_SIDES3(X, 32)                                                                                                                     \
  X(REAL, peak, 1e12, 1e-100, 1e100, AT_PREPARE, NULL, "diffusivity behind the front")                                                     \
  X(REAL, floor, 1e-12, 1e-100, 1e100, AT_PREPARE, NULL, "diffusivity ahead of it")                                                        \
  X(REAL, width, 0.06, 1e-3, 10, AT_PREPARE, NULL, "width of the front, the domain being 1")                                               \
  X(REAL, jump, 1e-2, 1e-15, 1, AT_PREPARE, NULL, "factor inside blobs of a second material")                                              \
  HT_GEN_SEED(X)
#define RHD(X)                                                                                                                             \
  HT_GEN_SIDES3(X, 32)                                                                                                                     \
  X(REAL, absorption, 3e4, 0, 1e15, AT_PREPARE, NULL, "sigma; 3e4 suits 32^3, 1e6 128^3")                                                  \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(radiation_parameters, RADIATION);
HT_OPTION_STRUCT(rhd_parameters, RHD);

/* 1 behind the wavy front, 0 ahead of it. */
static double front(const double at[3], double width) {
  double distance = at[0] - 0.5 + 0.1 * sin(2 * HT_GEN_PI * at[1]) * cos(2 * HT_GEN_PI * at[2]);
  return 1 / (1 + exp(distance / width));
}

/* Blobs of an eighth of the side, one block in four. */
static int in_blob(uint64_t seed, const double at[3]) {
  uint64_t block = 0;
  for (int d = 0; d < 3; d++) block = block * 8 + (uint64_t)(at[d] * 8);
  return ht_gen_bits(seed, STREAM_BLOB, block) >> 62 == 0;
}

static ht_status make_radiation(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const radiation_parameters *o = parameters;
  medium m = {.n = HT_GEN_N3(o), .factor = {1, 1, 1}};
  int64_t cells = 0;
  HT_TRY(ctx, allocate_medium(ctx, &m, &cells));
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < cells; i++) {
    double at[3];
    place(m.n, i, at);
    double hot = front(at, o->width);
    m.k[i] = exp(hot * log(o->peak) + (1 - hot) * log(o->floor)) * (in_blob((uint64_t)o->seed, at) ? o->jump : 1);
  }
  ht_gen_grid grid = {{m.n[0], m.n[1], m.n[2]}, 7, dirichlet_weight, NULL, &m, 0};
  return finish_medium(ctx, &m, &grid, source, matrix);
}

static ht_status make_rhd(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const rhd_parameters *o = parameters;
  medium m = {.n = HT_GEN_N3(o)};
  int64_t cells = 0;
  HT_TRY(ctx, allocate_medium(ctx, &m, &cells));
  double h[3] = {1 / (double)m.n[0], 1 / (double)m.n[1], 1 / (double)m.n[2]}, volume = h[0] * h[1] * h[2];
  for (int d = 0; d < 3; d++) m.factor[d] = volume / (h[d] * h[d]);
  m.shift = o->absorption * volume;
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < cells; i++) {
    double at[3];
    place(m.n, i, at);
    double temperature = 2e-2 + (1 - 2e-2) * front(at, 0.06);
    m.k[i] = 1e9 * temperature * temperature * temperature * (in_blob((uint64_t)o->seed, at) ? 1e-2 : 1);
  }
  ht_gen_grid grid = {{m.n[0], m.n[1], m.n[2]}, 7, dirichlet_weight, medium_shift, &m, 0};
  return finish_medium(ctx, &m, &grid, source, matrix);
}

/* ---- oil: layered permeability with channels ---- */
#define OIL(X)                                                                                                                             \
  X(INTEGER, size, 48, 1, 2147483647, AT_PREPARE, NULL, "cells along each side", "nx=0 ny=0 nz=0")                                         \
  X(INTEGER, nx, 0, 0, 2147483647, AT_PREPARE, NULL, "cells along x; 0 takes size")                                                        \
  X(INTEGER, ny, 0, 0, 2147483647, AT_PREPARE, NULL, "cells along y; 0 takes size")                                                        \
  X(INTEGER, nz, 0, 0, 2147483647, AT_PREPARE, NULL, "layers; 0 takes size")                                                               \
  X(REAL, sigma, 2.3, 0, 10, AT_PREPARE, NULL, "standard deviation of the logarithm of the permeability")                                  \
  X(INTEGER, correlation, 8, 0, 2147483647, AT_PREPARE, NULL, "cells over which a layer's rock is alike")                                  \
  X(REAL, accumulation, 1e-2, 1e-12, 1e12, AT_PREPARE, NULL, "compressibility term on the diagonal")                                       \
  HT_GEN_SEED(X)
HT_OPTION_STRUCT(oil_parameters, OIL);

typedef struct reservoir {
  medium m;
  uint64_t seed;
} reservoir;

/* Layers differ with 0.6 of the variance, the rock inside a layer with 0.4; in half of the layers a winding channel of a
 * tenth of the width is 100 times as permeable. */
static double permeability(const oil_parameters *o, const int64_t n[3], int64_t i) {
  double at[3];
  place(n, i, at);
  int64_t z = i / n[0] / n[1], layer[3] = {z, 0, 0}, rock[3] = {i % n[0], i / n[0] % n[1], z * (o->correlation > 1 ? o->correlation : 1)};
  uint64_t seed = (uint64_t)o->seed;
  double g = sqrt(0.6) * ht_gen_noise(seed, STREAM_LAYER, 1, layer) + sqrt(0.4) * ht_gen_noise(seed, STREAM_ROCK, o->correlation, rock);
  double phase = ht_gen_uniform(seed, STREAM_LAYER, (uint64_t)z);
  double channel = fabs(at[1] - 0.5 - 0.25 * sin(2 * HT_GEN_PI * (at[0] + phase)));
  return exp(o->sigma * g) * (phase < 0.5 && channel < 0.05 ? 100 : 1);
}

/* Cells of 20 x 10 x 2: areas over distances are 1, 4 and 100. Vertical permeability is a tenth, or a thousandth through
 * the layers that are barriers. No flow to outside. */
static double oil_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const reservoir *r = self;
  (void)rising;
  if (b < 0) return 0;
  double k = ht_gen_harmonic(r->m.k[a], r->m.k[b]);
  if (axes != 4) return r->m.factor[axes / 2] * k;
  int64_t layer = a / r->m.n[0] / r->m.n[1];
  return r->m.factor[2] * k * (ht_gen_bits(r->seed, STREAM_BARRIER, (uint64_t)layer) >> 62 ? 1e-1 : 1e-3);
}

static ht_status make_oil(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const oil_parameters *o = parameters;
  reservoir r = {{.n = HT_GEN_N3(o), .factor = {1, 4, 100}, .shift = o->accumulation}, (uint64_t)o->seed};
  int64_t cells = 0;
  HT_TRY(ctx, allocate_medium(ctx, &r.m, &cells));
  int threads = ctx->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < cells; i++) r.m.k[i] = permeability(o, r.m.n, i);
  ht_gen_grid grid = {{r.m.n[0], r.m.n[1], r.m.n[2]}, 7, oil_weight, medium_shift, &r, 0};
  return finish_medium(ctx, &r.m, &grid, source, matrix);
}

/* ---- weather: Helmholtz on thin layers over terrain ---- */
#define WEATHER(X)                                                                                                                         \
  HT_GEN_SIDES3(X, 48)                                                                                                                     \
  X(REAL, step, 20, 1e-3, 1e4, AT_PREPARE, NULL, "time step in seconds")                                                                   \
  X(REAL, spacing, 2000, 1, 1e6, AT_PREPARE, NULL, "horizontal spacing in metres")                                                         \
  X(REAL, slope, 0.1, 0, 1, AT_PREPARE, NULL, "steepest slope of the terrain")
HT_OPTION_STRUCT(weather_parameters, WEATHER);

typedef struct air {
  int64_t n[3];
  double spacing, slope, reach; /* reach: how far sound goes in the implicit part of a step */
} air;

/* Layers grow geometrically from 40 to 1200 metres. */
static double thickness(const air *g, int64_t layer) { return 40 * pow(30, g->n[2] > 1 ? (double)layer / (double)(g->n[2] - 1) : 0); }

/* Slope along the axis (0, 1) under the cell; follows the hills, fades upwards. */
static double terrain(const air *g, int64_t cell, int axis) {
  double at[3];
  place(g->n, cell, at);
  return g->slope * cos(2 * HT_GEN_PI * 3 * at[axis]) * sin(2 * HT_GEN_PI * 2 * at[1 - axis] + 0.7) * exp(-3 * at[2]);
}

static double weather_weight(const void *self, int64_t a, int64_t b, int axes, int rising) {
  const air *g = self;
  if (b < 0) return 0;
  int64_t sheet = g->n[0] * g->n[1];
  double below = thickness(g, a / sheet), above = thickness(g, b / sheet), reach2 = g->reach * g->reach;
  double flat = reach2 / (g->spacing * g->spacing) * below;
  switch (axes) {
  case 1:
  case 2: return flat;
  case 3: return 0.01 * flat;
  case 4: return reach2 / (0.5 * (below + above));
  default: { /* the mixed derivative couples the two diagonals of a vertical face with opposite signs */
    double mixed = 0.25 * reach2 / g->spacing * 0.5 * (terrain(g, a, axes == 6) + terrain(g, b, axes == 6));
    return rising ? mixed : -mixed;
  }
  }
}

static double weather_shift(const void *self, int64_t i) {
  const air *g = self;
  return thickness(g, i / (g->n[0] * g->n[1]));
}

static ht_status make_weather(ht_context *ctx, const void *parameters, const char *source, ht_matrix **matrix) {
  const weather_parameters *o = parameters;
  air g = {HT_GEN_N3(o), o->spacing, o->slope, 340 * 0.55 * o->step};
  ht_gen_grid grid = {{g.n[0], g.n[1], g.n[2]}, 19, weather_weight, weather_shift, &g, 0};
  return ht_gen_from_grid(ctx, &grid, source, matrix);
}

static const ht_option_row radiation_rows[] = {
#define HT_OPTION_OWNER radiation_parameters
    RADIATION(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row rhd_rows[] = {
#define HT_OPTION_OWNER rhd_parameters
    RHD(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row oil_rows[] = {
#define HT_OPTION_OWNER oil_parameters
    OIL(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};
static const ht_option_row weather_rows[] = {
#define HT_OPTION_OWNER weather_parameters
    WEATHER(HT_OPTION_ROW)
#undef HT_OPTION_OWNER
};

#define DIRICHLET_SPD "Irreducibly diagonally dominant with a positive diagonal: positive weights, Dirichlet on all sides."
const ht_gen_kind ht_gen_radiation = {
    .name = "radiation",
    .summary = "radiation-like diffusion: values from 1e-12 to 1e12 across a front, with jumps",
    .formula =
        "Seven points, weights 2 D_i D_j / (D_i + D_j), D_i to outside, a_ii their sum. D = peak^s floor^(1-s), s = 1/(1 + exp(d/width)), "
        "d = x - 1/2 + 0.1 sin(2 pi y) cos(2 pi z); times `jump` in one of four blocks of an eighth of the side.",
    .spd = DIRICHLET_SPD,
    HT_GEN_ROWS(radiation_rows),
    .fields = sizeof(radiation_parameters),
    .generate = make_radiation};
const ht_gen_kind ht_gen_rhd = {
    .name = "rhd",
    .summary = "radiation hydrodynamics: -div(D grad u) + sigma u with D = 1e9 T^3",
    .formula =
        "Finite volumes on the unit cube: weights (volume / h_d^2) 2 D_i D_j / (D_i + D_j), diagonal + absorption * volume. T goes from 1 "
        "to 0.02 over the front of `radiation` (width 0.06), D = 1e9 T^3, a hundredth of it in one of four blocks.",
    .spd = DIRICHLET_SPD,
    HT_GEN_ROWS(rhd_rows),
    .fields = sizeof(rhd_parameters),
    .generate = make_rhd};
const ht_gen_kind ht_gen_oil = {
    .name = "oil",
    .summary = "reservoir pressure: layered lognormal permeability, channels, barriers, high contrast",
    .formula =
        "Two-point flux on cells of 20 x 10 x 2: weights 1, 4, 100 along x, y, z times 2 K_i K_j / (K_i + K_j); vertically also 1e-1, or "
        "1e-3 above one of four layers. K = exp(sigma (sqrt(0.6) g_layer + sqrt(0.4) g_cell)), g_cell alike over `correlation` cells "
        "of its layer, times 100 in winding channels. No flow to outside; diagonal + accumulation.",
    .spd = "A graph Laplacian with positive weights (semidefinite) plus the accumulation, which is positive, times I.",
    HT_GEN_ROWS(oil_rows),
    .fields = sizeof(oil_parameters),
    .generate = make_oil};
const ht_gen_kind ht_gen_weather = {
    .name = "weather",
    .summary = "implicit sound waves in thin layers over terrain: strong vertical coupling, 19 points, no seed",
    .formula =
        "(H + r^2 L) u with r = 340 * 0.55 * step, H the layer's thickness h (40 to 1200 m, geometric). Edges: r^2 h / spacing^2 along x "
        "and "
        "y, a hundredth of it on horizontal diagonals, r^2 / (mean h) along z, and on the diagonals of vertical faces +-m, m = r^2 s / "
        "(4 spacing) from the terrain's slope s (mixed derivative). An edge of weight w adds |w| to both diagonal entries and -w off it.",
    .spd = "A sum of |w| (e_i - sign(w) e_j)(e_i - sign(w) e_j)' (semidefinite) plus the positive diagonal H.",
    HT_GEN_ROWS(weather_rows),
    .fields = sizeof(weather_parameters),
    .generate = make_weather};
