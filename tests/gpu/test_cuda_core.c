/* The CUDA backend's vectors, products and errors against the CPU's. SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_helpers.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "data/tilecsc.h"
#include "support/generated.h"
#include "support/patterns.h"

static const double roundoff = DBL_EPSILON / 2;
static const int64_t sizes[] = {1, 2, 63, 64, 65, 1000, 1023, 1025, 12345, 262145, 3000001};
enum { SIZES = sizeof sizes / sizeof *sizes };

static double *numbers(uint64_t seed, int64_t n) {
  double *x = malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  random_vector(seed, n, x);
  return x;
}

static int same_bits(int64_t n, const double *x, const double *y) { return !memcmp(x, y, (size_t)n * sizeof *x); }

/* ---- vectors ---- */

typedef struct pair {
  int64_t n;
  double *x, *y, *result; /* host */
  double *dx, *dy;        /* device */
} pair;

static pair make_pair(gpu *g, int64_t n) {
  pair p = {.n = n, .x = numbers(1, n), .y = numbers(2, n), .result = numbers(3, n)};
  p.dx = gpu_copy(g, 8 * n, p.x);
  p.dy = gpu_copy(g, 8 * n, p.y);
  return p;
}

static void free_pair(gpu *g, pair *p) {
  g->cuda->memory_release(g->ctx, p->dx);
  g->cuda->memory_release(g->ctx, p->dy);
  free(p->x);
  free(p->y);
  free(p->result);
}

static void sums_agree_and_repeat(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SIZES; i++) {
    pair p = make_pair(&g, sizes[i]);
    double magnitude = 0;
    for (int64_t k = 0; k < p.n; k++) magnitude += fabs(p.x[k] * p.y[k]);
    double ours = g.cuda->dot(g.ctx, p.n, p.dx, p.dy), theirs = g.cpu->dot(g.ctx, p.n, p.x, p.y);
    assert_true(fabs(ours - theirs) <= 2 * (double)p.n * roundoff * magnitude);
    double *elsewhere = gpu_copy(&g, 8 * (p.n + 1), NULL); /* neither the time nor the address counts */
    assert_int_equal(g.cuda->upload(g.ctx, 8 * p.n, p.x, elsewhere + 1), HT_OK);
    double again = g.cuda->dot(g.ctx, p.n, elsewhere + 1, p.dy);
    assert_true(same_bits(1, &ours, &again));
    g.cuda->memory_release(g.ctx, elsewhere);
    free_pair(&g, &p);
  }
  assert_true(g.cuda->dot(g.ctx, 0, NULL, NULL) == 0);
  gpu_close(&g);
}

static void largest_entry_is_exact_and_nan_shows(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SIZES; i++) {
    pair p = make_pair(&g, sizes[i]);
    double largest = 0, found;
    for (int64_t k = 0; k < p.n; k++) largest = fmax(largest, fabs(p.x[k]));
    found = g.cuda->norm_inf(g.ctx, p.n, p.dx);
    assert_true(found == largest);
    p.x[p.n / 2] = -INFINITY;
    assert_int_equal(g.cuda->upload(g.ctx, 8 * p.n, p.x, p.dx), HT_OK);
    assert_true(g.cuda->norm_inf(g.ctx, p.n, p.dx) == INFINITY);
    p.x[p.n - 1] = -NAN;
    assert_int_equal(g.cuda->upload(g.ctx, 8 * p.n, p.x, p.dx), HT_OK);
    assert_true(isnan(g.cuda->norm_inf(g.ctx, p.n, p.dx)));
    assert_true(isnan(g.cuda->dot(g.ctx, p.n, p.dx, p.dy)));
    free_pair(&g, &p);
  }
  gpu_close(&g);
}

/* Taken together, of all kinds and in every number, they have the bits that they have alone; a NaN stays where it is. */
static void reductions_together(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SIZES; i++) {
    pair p = make_pair(&g, sizes[i]);
    double *broken = gpu_copy(&g, 8 * p.n, NULL);
    p.result[p.n / 2] = NAN;
    assert_int_equal(g.cuda->upload(g.ctx, 8 * p.n, p.result, broken), HT_OK);
    const ht_reduction on_device[HT_REDUCTIONS_MOST] = {
        {HT_DISTANCE_SQUARE, p.dx, p.dy, 0}, {HT_NORM_INF, p.dx, NULL, 0}, {HT_DOT, p.dx, p.dy, 0},
        {HT_DOT, p.dx, broken, 0},           {HT_DOT, p.dy, p.dy, 0},      {HT_NORM_INF, broken, NULL, 0},
        {HT_DISTANCE_SQUARE, p.dx, p.dx, 0}, {HT_NORM_INF, p.dy, NULL, 0}};
    const double *on_host[HT_REDUCTIONS_MOST][2] = {{p.x, p.y}, {p.x},      {p.x, p.y}, {p.x, p.result},
                                                    {p.y, p.y}, {p.result}, {p.x, p.x}, {p.y}};
    for (int count = 1; count <= HT_REDUCTIONS_MOST; count++) {
      ht_reduction all[HT_REDUCTIONS_MOST];
      memcpy(all, on_device, sizeof all);
      g.cuda->reduce(g.ctx, p.n, count, all);
      for (int k = 0; k < count; k++) {
        ht_reduction alone = on_device[k], expected = {on_device[k].kind, on_host[k][0], on_host[k][1], 0};
        g.cuda->reduce(g.ctx, p.n, 1, &alone);
        g.cpu->reduce(g.ctx, p.n, 1, &expected);
        assert_true(same_bits(1, &all[k].result, &alone.result));
        if (isnan(expected.result))
          assert_true(isnan(alone.result));
        else if (alone.kind == HT_NORM_INF)
          assert_true(alone.result == expected.result);
        else /* entries are within 1, differences within 2 */
          assert_true(fabs(alone.result - expected.result) <= 4 * 2 * (double)p.n * roundoff * (double)p.n);
      }
    }
    g.cuda->memory_release(g.ctx, broken);
    free_pair(&g, &p);
  }
  gpu_close(&g);
}

/* To the bit: a product and its sum are rounded once. */
static void updates_are_exact(void **state) {
  (void)state;
  gpu g = gpu_open();
  for (int i = 0; i < SIZES; i++) {
    pair p = make_pair(&g, sizes[i]);
    g.cuda->axpy(g.ctx, p.n, 0.3, p.dx, p.dy);
    for (int64_t k = 0; k < p.n; k++) p.y[k] = fma(0.3, p.x[k], p.y[k]);
    gpu_fetch(&g, 8 * p.n, p.dy, p.result);
    assert_true(same_bits(p.n, p.y, p.result));
    g.cuda->xpby(g.ctx, p.n, p.dx, -0.7, p.dy);
    for (int64_t k = 0; k < p.n; k++) p.y[k] = fma(-0.7, p.y[k], p.x[k]);
    gpu_fetch(&g, 8 * p.n, p.dy, p.result);
    assert_true(same_bits(p.n, p.y, p.result));
    g.cuda->scale_by(g.ctx, p.n, p.dx, p.dy, p.dy);
    for (int64_t k = 0; k < p.n; k++) p.y[k] *= p.x[k];
    gpu_fetch(&g, 8 * p.n, p.dy, p.result);
    assert_true(same_bits(p.n, p.y, p.result));
    g.cuda->shift(g.ctx, p.n, -1060, p.dy, p.dy); /* most become subnormal */
    for (int64_t k = 0; k < p.n; k++) p.y[k] = ldexp(p.y[k], -1060);
    gpu_fetch(&g, 8 * p.n, p.dy, p.result);
    assert_true(same_bits(p.n, p.y, p.result));
    g.cuda->copy(g.ctx, p.n, p.dx, p.dy);
    gpu_fetch(&g, 8 * p.n, p.dy, p.result);
    assert_true(same_bits(p.n, p.x, p.result));
    free_pair(&g, &p);
  }
  gpu_close(&g);
}

/* ---- CSR ---- */

typedef struct rows {
  ht_csr_view host, device;
  int64_t *row_start;
  int32_t *columns;
  double *values;
} rows;

/* Any pattern will do: up to twice `mean` entries a row, some rows empty. */
static rows make_rows(gpu *g, int64_t n, int64_t mean) {
  random_stream s = {(uint64_t)(n * 1000 + mean)};
  rows a = {.row_start = malloc((size_t)(n + 1) * sizeof(int64_t))};
  assert_non_null(a.row_start);
  a.row_start[0] = 0;
  for (int64_t i = 0; i < n; i++) a.row_start[i + 1] = a.row_start[i] + random_below(&s, 2 * mean + 1);
  int64_t nnz = a.row_start[n];
  a.columns = malloc((size_t)(nnz + 1) * sizeof(int32_t));
  assert_non_null(a.columns);
  for (int64_t k = 0; k < nnz; k++) a.columns[k] = (int32_t)random_below(&s, n);
  a.values = numbers(7, nnz + 1);
  a.host = (ht_csr_view){n, nnz, a.row_start, a.columns, a.values};
  a.device = (ht_csr_view){n, nnz, gpu_copy(g, 8 * (n + 1), a.row_start), gpu_copy(g, 4 * nnz, a.columns), gpu_copy(g, 8 * nnz, a.values)};
  return a;
}

static void free_rows(gpu *g, rows *a) {
  union {
    const void *given;
    void *owned;
  } device[] = {{a->device.row_start}, {a->device.columns}, {a->device.values}};
  for (int i = 0; i < 3; i++) g->cuda->memory_release(g->ctx, device[i].owned);
  free(a->row_start);
  free(a->columns);
  free(a->values);
}

/* Both sums of a row lie within its length times the roundoff of the exact one. `growth`: by how much a value in use may be greater
 * than the matrix's. */
static void assert_rows_close(const ht_csr_view *a, double growth, const double *x, const double *b, const double *found,
                              const double *expected) {
  for (int64_t i = 0; i < a->n; i++) {
    double magnitude = b ? fabs(b[i]) : 0;
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) magnitude += growth * fabs(a->values[k] * x[a->columns[k]]);
    assert_true(fabs(found[i] - expected[i]) <= 2 * (double)(a->row_start[i + 1] - a->row_start[i] + 1) * roundoff * magnitude);
  }
}

static void csr_agrees(gpu *g, int64_t n, int64_t mean) {
  rows a = make_rows(g, n, mean);
  pair p = make_pair(g, n);
  double *expected = numbers(4, n), *dr = gpu_copy(g, 8 * n, NULL), *again = numbers(5, n);
  g->cpu->csr_multiply(g->ctx, &a.host, p.x, expected);
  g->cuda->csr_multiply(g->ctx, &a.device, p.dx, dr);
  gpu_fetch(g, 8 * n, dr, p.result);
  assert_rows_close(&a.host, 1, p.x, NULL, p.result, expected);
  g->cuda->csr_multiply(g->ctx, &a.device, p.dx, dr);
  gpu_fetch(g, 8 * n, dr, again);
  assert_true(same_bits(n, p.result, again));
  g->cpu->csr_residual(g->ctx, &a.host, p.x, p.y, expected);
  g->cuda->csr_residual(g->ctx, &a.device, p.dx, p.dy, dr);
  gpu_fetch(g, 8 * n, dr, p.result);
  assert_rows_close(&a.host, 1, p.x, p.y, p.result, expected);
  g->cuda->csr_residual(g->ctx, &a.device, p.dx, p.dy, p.dy); /* in place */
  gpu_fetch(g, 8 * n, p.dy, again);
  assert_true(same_bits(n, p.result, again));
  g->cuda->memory_release(g->ctx, dr);
  free(expected);
  free(again);
  free_pair(g, &p);
  free_rows(g, &a);
}

static void csr_products_agree_and_repeat(void **state) {
  (void)state;
  gpu g = gpu_open();
  static const int64_t means[] = {1, 3, 9, 40, 200};
  for (int i = 0; i < SIZES && sizes[i] <= 12345; i++)
    for (int m = 0; m < 5; m++) csr_agrees(&g, sizes[i], means[m]);
  csr_agrees(&g, 300001, 5);
  gpu_close(&g);
}

/* ---- Tile-CSC ---- */

enum { TILE_ARRAYS = 9 };

static ht_tilecsc_view tiles_to_device(gpu *g, const ht_tilecsc *t, void **owned) {
  ht_tilecsc_view v = t->view;
  v.tile_row_start = owned[0] = gpu_copy(g, 8 * (v.row_blocks + 1), v.tile_row_start);
  v.head = owned[1] = gpu_copy(g, (int64_t)sizeof *v.head * v.tiles, v.head);
  v.row_index = owned[2] = gpu_copy(g, 2 * t->entries, v.row_index);
  v.exponent = owned[3] = gpu_copy(g, 2 * 64 * t->blocks, v.exponent);
  v.tile_column = NULL, v.tile_entry = NULL, v.column_start = NULL, v.scale = NULL; /* the device does without */
  v.value_f64 = owned[4] = gpu_copy(g, 8 * t->entries, v.value_f64);
  v.value_f32 = owned[5] = gpu_copy(g, 4 * t->entries, v.value_f32);
  v.lack[HT_LEVEL_16] = owned[7] = gpu_copy(g, 4 * 64 * t->blocks, v.lack[HT_LEVEL_16]);
  v.lack[HT_LEVEL_32] = owned[8] = gpu_copy(g, 4 * 64 * t->blocks, v.lack[HT_LEVEL_32]);
  v.value_bf16 = owned[6] = gpu_copy(g, 2 * t->entries, v.value_bf16);
  return v;
}

static void fill_levels(int choice, int64_t blocks, uint8_t *level) {
  random_stream s = {9};
  for (int64_t b = 0; b < blocks; b++) level[b] = (uint8_t)(choice < HT_LEVELS ? choice : random_below(&s, HT_LEVELS));
}

/* Stored values are the same on both sides, so that only the order of the sums differs. */
static void tilecsc_agrees(gpu *g, const ht_matrix *a, int tile_rows) {
  ht_tilecsc *t, *interleaved;
  ht_tilecsc_shape shape = {
      .rows = tile_rows, .most_rows = HT_TILECSC_INTERLEAVED_ROWS, .least_blocks = 2, .device_blocks = 2, .column_sums = 1};
  assert_int_equal(ht_tilecsc_create(g->ctx, a, &shape, &t), HT_OK);
  shape.interleaved = 1;
  assert_int_equal(ht_tilecsc_create(g->ctx, a, &shape, &interleaved), HT_OK);
  void *owned[TILE_ARRAYS];
  ht_tilecsc_view device = tiles_to_device(g, interleaved, owned);
  pair p = make_pair(g, a->n);
  double *expected = numbers(4, a->n), *again = numbers(4, a->n);
  uint8_t *level = malloc((size_t)t->blocks);
  assert_non_null(level);
  for (int choice = 0; choice <= HT_LEVELS + 1; choice++) { /* each level, a mixture, and none given */
    fill_levels(choice, t->blocks, level);
    int given = choice <= HT_LEVELS;
    uint8_t *device_level = gpu_copy(g, t->blocks, level);
    g->cpu->tilecsc_multiply(g->ctx, &t->view, given ? level : NULL, p.x, expected);
    g->cuda->tilecsc_multiply(g->ctx, &device, given ? device_level : NULL, p.dx, p.dy);
    gpu_fetch(g, 8 * a->n, p.dy, p.result);
    g->cuda->tilecsc_multiply(g->ctx, &device, given ? device_level : NULL, p.dx, p.dy);
    gpu_fetch(g, 8 * a->n, p.dy, again);
    assert_memory_equal(again, p.result, 8 * (size_t)a->n);
    ht_csr_view view = {a->n, a->nnz, a->row_start, a->columns, a->values};
    assert_rows_close(&view, 1 + 0x1p-8, p.x, NULL, p.result, expected); /* BF16 rounds by 2^-9 at most */
    g->cuda->memory_release(g->ctx, device_level);
  }
  for (int i = 0; i < TILE_ARRAYS; i++) g->cuda->memory_release(g->ctx, owned[i]);
  free(level);
  free(expected);
  free(again);
  free_pair(g, &p);
  ht_tilecsc_destroy(t);
  ht_tilecsc_destroy(interleaved);
}

static void tilecsc_products_agree(void **state) {
  (void)state;
  gpu g = gpu_open();
  static const int heights[] = {32, 128, 512, 0};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < SIZES && sizes[k] <= 1000; k++) {
      ht_matrix *a = pattern_matrix(g.ctx, PATTERN_DENSE_ROW, sizes[k], 3, 12);
      tilecsc_agrees(&g, a, heights[i]);
      ht_matrix_destroy(a);
    }
    ht_matrix *a;
    assert_int_equal(generate_line(g.ctx, "stencil2d size=151 points=9", &a), HT_OK);
    tilecsc_agrees(&g, a, heights[i]);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* ---- memory and errors ---- */

static void memory_is_zeroed_and_told_apart(void **state) {
  (void)state;
  gpu g = gpu_open();
  double host[65], *memory = gpu_copy(&g, sizeof host, NULL), *other = gpu_copy(&g, sizeof host, NULL);
  memset(host, 1, sizeof host);
  gpu_fetch(&g, sizeof host, memory, host);
  for (int i = 0; i < 65; i++) assert_true(host[i] == 0);
  random_vector(11, 65, host);
  double back[65];
  assert_int_equal(g.cuda->upload(g.ctx, sizeof host, host, memory), HT_OK);
  assert_int_equal(g.cuda->upload(g.ctx, sizeof host, memory, other), HT_OK); /* the caller's memory may be the device's */
  gpu_fetch(&g, sizeof host, other, back);
  assert_true(same_bits(65, host, back));
  assert_true(g.cuda->reaches(g.ctx, memory) && g.cuda->reaches(g.ctx, memory + 64));
  assert_false(g.cuda->reaches(g.ctx, host));
  assert_false(g.cuda->reaches(g.ctx, NULL));
  void *nothing = gpu_copy(&g, 0, NULL);
  assert_non_null(nothing);
  g.cuda->memory_release(g.ctx, nothing);
  g.cuda->memory_release(g.ctx, NULL);
  g.cuda->memory_release(g.ctx, memory);
  g.cuda->memory_release(g.ctx, other);
  gpu_close(&g);
}

static void too_much_memory_is_refused(void **state) {
  (void)state;
  gpu g = gpu_open();
  void *memory = &g;
  assert_int_equal(g.cuda->memory_create(g.ctx, INT64_C(1) << 50, &memory), HT_NO_MEMORY);
  assert_null(memory);
  assert_non_null(strstr(ht_context_error(g.ctx), "1125899906842624 bytes"));
  assert_int_equal(g.cuda->memory_create(g.ctx, -1, &memory), HT_NO_MEMORY);
  gpu_close(&g); /* the device works on */
}

static void devices_are_chosen_by_number(void **state) {
  (void)state;
  gpu g = gpu_open();
  const ht_backend *backend;
  void *device = g.ctx->device;
  assert_int_equal(ht_backend_find(g.ctx, "cuda", &backend), HT_OK);
  assert_ptr_equal(g.ctx->device, device);
  static const struct {
    const char *name;
    ht_status status;
  } wrong[] = {{"cuda:999", HT_UNSUPPORTED}, {"cuda:99999", HT_BAD_OPTION}, {"cuda:x", HT_BAD_OPTION},
               {"cuda:-1", HT_BAD_OPTION},   {"cuda:", HT_BAD_OPTION},      {"cuda1", HT_BAD_OPTION}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(ht_backend_find(g.ctx, wrong[i].name, &backend), wrong[i].status);
    assert_null(backend);
    assert_true(strlen(ht_context_error(g.ctx)) > 0);
  }
  assert_true(g.cuda->cache_bytes() > 0);
  gpu_close(&g);
}

static void note_launch(void *user, ht_log_level level, const char *message) {
  if (level == HT_LOG_DEBUG && strstr(message, "ht_")) snprintf(user, 256, "%s", message);
}

/* More shared memory than any device has: the launch fails, and with it the device of this context, and nothing else. */
static void a_failed_launch_is_told_once(void **state) {
  (void)state;
  gpu g = gpu_open();
  char last[256] = "";
  ht_context_set_log(g.ctx, note_launch, last, HT_LOG_DEBUG);
  double x[2] = {1, 2}, *memory = gpu_copy(&g, sizeof x, x);
  assert_true(g.cuda->dot(g.ctx, 2, memory, memory) == 5);
  assert_non_null(strstr(last, "ht_vector_reduce"));
  ht_tilecsc_view impossible = {.n = 1, .row_blocks = 1, .rows_per_block = 1 << 20};
  g.cuda->tilecsc_multiply(g.ctx, &impossible, NULL, memory, memory);
  assert_int_equal(g.cuda->failed(g.ctx), HT_DEVICE);
  assert_non_null(strstr(ht_context_error(g.ctx), "ht_tilecsc_multiply"));
  assert_true(isnan(g.cuda->dot(g.ctx, 2, memory, memory)));
  assert_true(isnan(g.cuda->norm_inf(g.ctx, 2, memory)));
  g.cuda->axpy(g.ctx, 2, 1.0, memory, memory);
  void *more;
  assert_int_equal(g.cuda->memory_create(g.ctx, 8, &more), HT_DEVICE);
  assert_int_equal(g.cuda->download(g.ctx, 8, memory, x), HT_DEVICE);
  ht_context_clear_error(g.ctx);
  assert_int_equal(g.cuda->failed(g.ctx), HT_DEVICE);
  g.cuda->memory_release(g.ctx, memory);
  ht_context_destroy(g.ctx);
  gpu other = gpu_open();
  gpu_close(&other);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_agree_and_repeat),
      cmocka_unit_test(largest_entry_is_exact_and_nan_shows),
      cmocka_unit_test(reductions_together),
      cmocka_unit_test(updates_are_exact),
      cmocka_unit_test(csr_products_agree_and_repeat),
      cmocka_unit_test(tilecsc_products_agree),
      cmocka_unit_test(memory_is_zeroed_and_told_apart),
      cmocka_unit_test(too_much_memory_is_refused),
      cmocka_unit_test(devices_are_chosen_by_number),
      cmocka_unit_test(a_failed_launch_is_told_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
