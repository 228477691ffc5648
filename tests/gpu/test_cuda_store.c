/* The CUDA backend's split storage against the CPU's CSR product, in both layouts and at every level. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gpu/gpu_helpers.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "backend/cuda/cuda.h"
#include "gpu/gpu_matrices.h"
#include "op/operator.h"
#include "solver/residual.h"

static const double roundoff = DBL_EPSILON / 2, roundoff_32 = FLT_EPSILON / 2, diagonal_32 = 0x1p-44; /* of its 45 bits behind the point */

static const struct layout {
  const char *name;
  int engine, ordering;
} layouts[] = {{"patches", HT_STORE_ENGINE_PERSISTENT, HT_ORDERING_AUTO},
               {"streaming", HT_STORE_ENGINE_STREAMING, HT_ORDERING_NATURAL},
               {"streaming, rcm", HT_STORE_ENGINE_STREAMING, HT_ORDERING_RCM}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, MIXED = HT_LEVELS, NO_LEVELS, CHOICES };

/* ---- what a product may be off by ---- */

/* By rows: A x; what FP64 may be off by, the diagonal at 32 bits, all at 32 bits, and 16 bits for each unit of their largest row error. */
typedef struct bounds {
  double *expected, *full, *diagonal, *narrow, *low;
} bounds;

static int scale_exponent(double diagonal) {
  int e = 0;
  if (!(diagonal > 0)) return 0;
  frexp(diagonal, &e);
  return e >= 0 ? e / 2 : -((1 - e) / 2);
}

static double *array(int64_t n) {
  double *x = calloc((size_t)n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

/* s_i near sqrt(a_ii), a power of two, as the store has it; the largest |a^_ij| off the diagonal is returned. */
static double scale_rows(const ht_csr_view *a, double *scale, double *diagonal) {
  double largest = 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      if (a->columns[k] == i) diagonal[i] = a->values[k];
  for (int64_t i = 0; i < a->n; i++) scale[i] = ldexp(1, scale_exponent(diagonal[i]));
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
      if (a->columns[k] != i) largest = fmax(largest, fabs(a->values[k]) / scale[i] / scale[a->columns[k]]);
  return largest;
}

/* FIXED rounds to 2^-32 of a power of two that is at most four times the largest value, FLOAT to FP32's roundoff. 32 bits take from the
 * diagonal what the row's entries lose of ones. */
static bounds make_bounds(gpu *g, const ht_csr_view *a, const double *x) {
  bounds b = {array(a->n), array(a->n), array(a->n), array(a->n), array(a->n)};
  double *scale = array(a->n), *diagonal = array(a->n), largest = scale_rows(a, scale, diagonal);
  g->cpu->csr_multiply(g->ctx, a, x, b.expected);
  for (int64_t i = 0; i < a->n; i++) {
    double magnitude = 0, square = 0, length = (double)(a->row_start[i + 1] - a->row_start[i]);
    b.narrow[i] = b.diagonal[i] = diagonal_32 * fabs(diagonal[i] * x[i]);
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int32_t j = a->columns[k];
      magnitude += fabs(a->values[k] * x[j]);
      square += scale[j] * x[j] * scale[j] * x[j];
      if (j == i) continue;
      double entry = fmax(roundoff_32 * fabs(a->values[k]), 0x1p-30 * largest * scale[i] * scale[j]);
      b.narrow[i] += entry * (fabs(x[j]) + fabs(x[i])); /* and by delta32 */
    }
    b.full[i] = 2 * (length + 4) * roundoff * magnitude;
    b.low[i] = scale[i] * sqrt(square) * (1 + roundoff_32);
  }
  free(scale), free(diagonal);
  return b;
}

static void free_bounds(bounds *b) { free(b->expected), free(b->full), free(b->diagonal), free(b->narrow), free(b->low); }

static void assert_product(const char *name, const struct layout *layout, int choice, const ht_store_info *info, const bounds *b, int64_t n,
                           const double *found) {
  for (int64_t i = 0; i < n; i++) {
    double allowed = b->full[i];
    if (choice == HT_LEVEL_32 || choice == MIXED) allowed += b->narrow[i];
    if (choice == HT_LEVEL_16 || choice == MIXED) allowed += b->low[i] * (double)info->error_16 + b->narrow[i];
    allowed *= 1 + 0x1p-20; /* errors of the errors */
    if (!(fabs(found[i] - b->expected[i]) <= allowed))
      fail_msg("%s, %s, level %d: row %lld is %.17g where %.17g is expected: off by %.3g, and %.3g are allowed", name, layout->name, choice,
               (long long)i, found[i], b->expected[i], fabs(found[i] - b->expected[i]), allowed);
  }
}

/* ---- products ---- */

static const uint8_t *choose_levels(int choice, int64_t blocks, uint8_t *level) {
  random_stream s = {9};
  for (int64_t b = 0; b < blocks; b++) level[b] = (uint8_t)(choice < MIXED ? choice : random_below(&s, HT_LEVELS));
  return choice == NO_LEVELS ? NULL : level;
}

static void multiply(gpu *g, ht_operator *op, int choice, const double *x, double *y) {
  double *device_x = gpu_copy(g, 8 * op->n, x), *device_y = gpu_copy(g, 8 * op->n, NULL);
  uint8_t *level = malloc((size_t)op->blocks);
  double bytes[HT_LEVELS] = {0};
  assert_non_null(level);
  assert_int_equal(op->apply(op, choose_levels(choice, op->blocks, level), device_x, device_y, bytes), HT_OK);
  assert_true(bytes[HT_LEVEL_16] + bytes[HT_LEVEL_32] + bytes[HT_LEVEL_64] > 0);
  gpu_fetch(g, 8 * op->n, device_y, y);
  g->cuda->memory_release(g->ctx, device_x);
  g->cuda->memory_release(g->ctx, device_y);
  free(level);
}

static ht_operator *make_store(gpu *g, const char *name, const struct layout *layout, int exactness_flags, const ht_matrix *a) {
  const ht_operator_options options = {.ordering = layout->ordering, .exactness_flags = exactness_flags};
  ht_operator *op;
  if (ht_operator_create_store(g->ctx, g->cuda, &options, layout->engine, 0, a, NULL, &op) != HT_OK)
    fail_msg("%s, %s: %s", name, layout->name, ht_context_error(g->ctx));
  return op;
}

static ht_store_info info_of(gpu *g, const ht_operator *op) {
  ht_store_info info;
  g->cuda->store_info(op->store, &info);
  return info;
}

static void products_are_close(gpu *g, const char *name, const struct layout *layout, ht_operator *op, const ht_matrix *a) {
  const ht_csr_view view = ht_matrix_view(a);
  double *x = array(a->n), *y = array(a->n), *again = array(a->n), *plain = array(a->n);
  ht_store_info info = info_of(g, op);
  random_vector(3, a->n, x);
  bounds b = make_bounds(g, &view, x);
  multiply(g, op, NO_LEVELS, x, plain);
  for (int choice = 0; choice < CHOICES; choice++) {
    multiply(g, op, choice, x, y);
    assert_product(name, layout, choice, &info, &b, a->n, y);
    multiply(g, op, choice, x, again);
    assert_memory_equal(y, again, (size_t)a->n * sizeof *y);
    if (choice == HT_LEVEL_64 || info.share_exact_16 == 1) assert_memory_equal(y, plain, (size_t)a->n * sizeof *y);
  }
  free_bounds(&b);
  free(x), free(y), free(again), free(plain);
}

/* b - A x with b near A x, against the host's in twice the precision. Both are rounded once, and what either has lost before is of the
 * order of the roundoff squared; a residual in FP64 would be off by some roundoff of sum |a||x|, which is all of it. */
static void residuals_are_doubled(gpu *g, const char *name, const struct layout *layout, ht_operator *op, const ht_matrix *a) {
  const ht_csr_view view = ht_matrix_view(a);
  double *x = array(a->n), *r = array(a->n), *expected = array(a->n);
  random_vector(5, a->n, x);
  bounds b = make_bounds(g, &view, x);
  double *device_x = gpu_copy(g, 8 * a->n, x), *device_b = gpu_copy(g, 8 * a->n, b.expected);
  g->cuda->store_residual(op->store, device_x, device_b, device_b);
  gpu_fetch(g, 8 * a->n, device_b, r);
  ht_residual_doubled(g->ctx, &view, x, b.expected, expected);
  for (int64_t i = 0; i < a->n; i++) {
    double length = (double)(a->row_start[i + 1] - a->row_start[i]);
    double allowed = 2 * roundoff * fabs(expected[i]) + 2 * length * roundoff * b.full[i] + DBL_MIN;
    if (!(fabs(r[i] - expected[i]) <= allowed))
      fail_msg("%s, %s: residual %lld is %.17g where %.17g is expected", name, layout->name, (long long)i, r[i], expected[i]);
  }
  free_bounds(&b);
  free(x), free(r), free(expected);
  g->cuda->memory_release(g->ctx, device_x);
  g->cuda->memory_release(g->ctx, device_b);
}

static void info_is_sane(const gpu_matrix *m, const struct layout *layout, const ht_operator *op, const ht_store_info *info) {
  double csr = 12 * (double)op->nnz + 8 * (double)(op->n + 1);
  assert_true(info->n == op->n && info->padded >= op->n && info->padded == 64 * info->blocks && info->blocks == op->blocks);
  assert_true(info->bytes == op->bytes && info->bytes > 0);
  if (m->compact && layout->engine == HT_STORE_ENGINE_STREAMING && (double)info->bytes > 1.1 * csr)
    fail_msg("%s, %s: %.3f times the bytes of CSR", m->name, layout->name, (double)info->bytes / csr);
  assert_true(0 < info->bytes_level[HT_LEVEL_16] && info->bytes_level[HT_LEVEL_16] <= info->bytes_level[HT_LEVEL_32]);
  assert_true(info->bytes_level[HT_LEVEL_32] <= info->bytes_level[HT_LEVEL_64]);
  assert_true(0 <= info->share_exact_16 && info->share_exact_16 <= info->share_exact_32 && info->share_exact_32 <= 1);
  assert_true(info->error_16 >= 0 && isfinite(info->error_16));
  if (info->share_exact_16 == 1) assert_true(info->error_16 == 0);
  assert_true(!strcmp(info->engine, "streaming") || layout->engine == HT_STORE_ENGINE_PERSISTENT);
}

static void every_matrix_at_every_level(void **state) {
  (void)state;
  gpu g = gpu_open();
  int in_patches = 0, exact = 0;
  for (int i = 0; i < GPU_MATRICES; i++) {
    ht_matrix *a = gpu_matrix_make(g.ctx, &gpu_matrices[i]);
    for (int k = 0; k < LAYOUTS; k++) {
      ht_operator *op = make_store(&g, gpu_matrices[i].name, &layouts[k], 1, a);
      ht_store_info info = info_of(&g, op);
      info_is_sane(&gpu_matrices[i], &layouts[k], op, &info);
      in_patches += !strcmp(info.engine, "persistent");
      exact += info.share_exact_16 == 1;
      products_are_close(&g, gpu_matrices[i].name, &layouts[k], op, a);
      residuals_are_doubled(&g, gpu_matrices[i].name, &layouts[k], op, a);
      ht_operator_destroy(op);
    }
    ht_matrix_destroy(a);
  }
  assert_true(in_patches >= GPU_MATRICES / 2 && in_patches < GPU_MATRICES);
  assert_true(exact >= 3); /* the constant stencils and their like */
  gpu_close(&g);
}

/* At 32 bits delta32 takes from the product with ones what the entries lose, but for what the diagonal's bits lose of it; with several
 * unknowns a node, in each of them what its own lose. Few blocks: groups that touch many are read whole here. */
static void constants_are_kept(gpu *g, const char *line, const ht_matrix *a, int unknowns, int own) {
  const ht_csr_view view = ht_matrix_view(a);
  double *ones = array(a->n), *y = array(a->n), lost = 0;
  for (int64_t k = 0; k < a->n; k++) ones[k] = k % unknowns == own;
  bounds b = make_bounds(g, &view, ones);
  for (int k = 0; k < LAYOUTS; k++) {
    ht_operator *op = make_store(g, line, &layouts[k], 1, a);
    multiply(g, op, HT_LEVEL_32, ones, y);
    for (int64_t r = own; r < a->n; r += unknowns) {
      double allowed = 2 * b.full[r] + b.diagonal[r];
      lost = fmax(lost, b.narrow[r] / allowed);
      if (!(fabs(y[r] - b.expected[r]) <= allowed))
        fail_msg("%s, %s: row %lld is off by %.3g", line, layouts[k].name, (long long)r, fabs(y[r] - b.expected[r]));
    }
    ht_operator_destroy(op);
  }
  assert_true(lost > 100); /* it is not by losing little that it is kept */
  free_bounds(&b);
  free(ones), free(y);
}

static void constants_are_kept_at_32_bits(void **state) {
  (void)state;
  static const struct {
    const char *line;
    int unknowns;
  } cases[] = {{"stencil3d size=15 points=7 coefficients=lognormal", 1},
               {"oil size=14", 1},
               {"fem2d size=20 numbering=random coefficients=lognormal", 1},
               {"elasticity3d size=4 coefficients=lognormal", 3}};
  gpu g = gpu_open();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_matrix *a;
    assert_int_equal(generate_line(g.ctx, cases[i].line, &a), HT_OK);
    for (int own = 0; own < cases[i].unknowns; own++) constants_are_kept(&g, cases[i].line, a, cases[i].unknowns, own);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Also where rows are short, or of very different length, and their neighbours lie anywhere. */
static void no_more_bytes_than_csr(void **state) {
  (void)state;
  static const struct {
    const char *line;
    int layout;
  } cases[] = {{"fem2d size=300 numbering=random coefficients=lognormal", 2},
               {"fem2d size=128 numbering=random coefficients=lognormal", 0},
               {"graph graph=preferential size=60000 sigma=1 seed=1", 0}};
  gpu g = gpu_open();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_matrix *a;
    assert_int_equal(generate_line(g.ctx, cases[i].line, &a), HT_OK);
    ht_operator *op = make_store(&g, cases[i].line, &layouts[cases[i].layout], 1, a);
    double bytes = (double)info_of(&g, op).bytes, csr = 12 * (double)a->nnz + 4 * (double)a->n;
    if (bytes > csr) fail_msg("%s: %.3f times the bytes of CSR", cases[i].line, bytes / csr);
    products_are_close(&g, cases[i].line, &layouts[cases[i].layout], op, a);
    ht_operator_destroy(op);
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Without the flags every group is read at the level that is asked for; the values are the same. */
static void flags_change_bytes_alone(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a;
  assert_int_equal(generate_line(g.ctx, "stencil3d size=15 points=7", &a), HT_OK);
  double *x = array(a->n), *y = array(a->n), *other = array(a->n);
  random_vector(4, a->n, x);
  for (int k = 0; k < LAYOUTS; k++) {
    ht_operator *with = make_store(&g, "flags", &layouts[k], 1, a), *without = make_store(&g, "no flags", &layouts[k], 0, a);
    assert_true(info_of(&g, with).bytes_level[HT_LEVEL_64] < info_of(&g, without).bytes_level[HT_LEVEL_64]);
    for (int choice = 0; choice < CHOICES; choice++) {
      multiply(&g, with, choice, x, y);
      multiply(&g, without, choice, x, other);
      assert_memory_equal(y, other, (size_t)a->n * sizeof *y);
    }
    ht_operator_destroy(with);
    ht_operator_destroy(without);
  }
  free(x), free(y), free(other);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* ---- new values ---- */

/* The same pattern with other values, and other scales of the rows. */
static ht_matrix *with_new_values(ht_context *ctx, const ht_matrix *a) {
  double *factor = array(a->n), *values = array(a->nnz);
  ht_matrix *other;
  random_stream s = {17};
  for (int64_t i = 0; i < a->n; i++) factor[i] = (1 + random_unit(&s)) * ldexp(1, (int)random_below(&s, 9) - 4);
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) values[k] = a->values[k] * (factor[i] * factor[a->columns[k]]);
  assert_int_equal(ht_matrix_create_csr(ctx, a->n, a->row_start, a->columns, values, HT_COPY, &other), HT_OK);
  free(factor), free(values);
  return other;
}

static void an_update_is_as_good_as_a_fresh_store(void **state) {
  (void)state;
  static const char *const skipped[] = {"wide", "graph graph=shortcuts size=70000 sigma=1"}; /* long to make, and nothing new */
  gpu g = gpu_open();
  for (int i = 0; i < GPU_MATRICES; i++) {
    if (!strcmp(gpu_matrices[i].name, skipped[0]) || !strcmp(gpu_matrices[i].name, skipped[1])) continue;
    ht_matrix *a = gpu_matrix_make(g.ctx, &gpu_matrices[i]), *b = with_new_values(g.ctx, a);
    double *x = array(a->n), *y = array(a->n), *fresh = array(a->n);
    random_vector(8, a->n, x);
    for (int k = 0; k < LAYOUTS; k++) {
      ht_operator *updated = make_store(&g, gpu_matrices[i].name, &layouts[k], 1, a), *made = make_store(&g, "fresh", &layouts[k], 1, b);
      assert_int_equal(updated->update(updated, b), HT_OK);
      products_are_close(&g, gpu_matrices[i].name, &layouts[k], updated, b);
      for (int choice = 0; choice < CHOICES; choice++) {
        multiply(&g, updated, choice, x, y);
        multiply(&g, made, choice, x, fresh);
        assert_memory_equal(y, fresh, (size_t)a->n * sizeof *y);
      }
      ht_store_info one = info_of(&g, updated), two = info_of(&g, made);
      assert_true(one.bytes == two.bytes && one.error_16 == two.error_16 && one.share_exact_16 == two.share_exact_16);
      assert_true(one.share_exact_32 == two.share_exact_32 && one.bytes_level[HT_LEVEL_64] == two.bytes_level[HT_LEVEL_64]);
      ht_operator_destroy(updated);
      ht_operator_destroy(made);
    }
    free(x), free(y), free(fresh);
    ht_matrix_destroy(a);
    ht_matrix_destroy(b);
  }
  gpu_close(&g);
}

/* Where rows are alike no index is stored, also where neighbours lie farther apart than 16 bits reach; the values are the same, also after
 * an update. most: bytes a nonzero that a product may read at 64 bits, 8 of them its value. */
static void alike_rows_need_no_indices(void **state) {
  (void)state;
  static const struct {
    const char *line;
    double most;
  } cases[] = {{"stencil3d size=32 points=27 coefficients=lognormal", 8.6},
               {"stencil3d size=64 points=7 coefficients=lognormal", 9},
               {"stencil2d nx=70000 ny=3 coefficients=lognormal", 9.6},
               {"elasticity3d size=16 coefficients=lognormal", 9.4}};
  gpu g = gpu_open();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_matrix *a;
    assert_int_equal(generate_line(g.ctx, cases[i].line, &a), HT_OK);
    ht_matrix *b = with_new_values(g.ctx, a);
    ht_operator *op = make_store(&g, cases[i].line, &layouts[1], 0, a);
    double bytes = info_of(&g, op).bytes_level[HT_LEVEL_64] / (double)a->nnz;
    if (!(bytes < cases[i].most)) fail_msg("%s: %.3f bytes a nonzero", cases[i].line, bytes);
    products_are_close(&g, cases[i].line, &layouts[1], op, a);
    assert_int_equal(op->update(op, b), HT_OK);
    products_are_close(&g, cases[i].line, &layouts[1], op, b);
    ht_operator_destroy(op);
    ht_matrix_destroy(a);
    ht_matrix_destroy(b);
  }
  gpu_close(&g);
}

/* The store is the same whatever the number of the host's threads. */
static void host_threads_change_nothing(void **state) {
  (void)state;
  gpu g = gpu_open();
  ht_matrix *a;
  assert_int_equal(generate_line(g.ctx, "fem2d size=110 numbering=random coefficients=lognormal", &a), HT_OK);
  double *x = array(a->n), *y = array(a->n), *other = array(a->n);
  random_vector(4, a->n, x);
  for (int k = 0; k < LAYOUTS; k++)
    for (int threads = 1; threads <= 3; threads++) {
      assert_int_equal(ht_context_set_threads(g.ctx, threads), HT_OK);
      ht_operator *op = make_store(&g, "threads", &layouts[k], 1, a);
      multiply(&g, op, MIXED, x, threads == 1 ? y : other);
      if (threads > 1) assert_memory_equal(y, other, (size_t)a->n * sizeof *y);
      ht_operator_destroy(op);
    }
  free(x), free(y), free(other);
  ht_matrix_destroy(a);
  gpu_close(&g);
}

/* ---- memory ---- */

/* Of the rows on their way the device holds 64 MiB, or all where they are fewer; and some counts. */
static double rows_on_their_way(const ht_matrix *a) {
  double rows = 12 * (double)a->nnz + 8 * (double)(a->n + 4096 * 160);
  return fmin(rows, 64 << 20) + (1 << 20);
}

/* While it is made, and while it takes new values, the device holds 1.1 times the finished storage at most, and what is no storage: the
 * work vectors of its products (what it keeps beyond info's bytes), and `beside`. */
static void little_memory_is_used(gpu *g, const char *name, const struct layout *layout, const ht_matrix *a, double beside) {
  ht_cuda *cuda = ht_cuda_of(g->ctx);
  ht_cuda_release_spares(cuda); /* of matrices before this one */
  int64_t before = cuda->bytes_most = cuda->bytes_now;
  ht_operator *op = make_store(g, name, layout, 1, a);
  double storage = (double)info_of(g, op).bytes, work = (double)(cuda->bytes_now - before) - storage;
  double most = (double)(g->cuda->memory_most(g->ctx) - before);
  assert_true(work >= 0);
  if (most > 1.1 * storage + work + beside)
    fail_msg("%s, %s: %.0f bytes were held at once for a store of %.0f and %.0f of work", name, layout->name, most, storage, work);
  cuda->bytes_most = cuda->bytes_now + cuda->bytes_spare;
  assert_int_equal(op->update(op, a), HT_OK);
  most = (double)(g->cuda->memory_most(g->ctx) - before);
  if (most > 1.1 * storage + work + beside)
    fail_msg("%s, %s: new values took %.0f bytes for a store of %.0f and %.0f of work", name, layout->name, most, storage, work);
  ht_operator_destroy(op);
  assert_int_equal(cuda->bytes_now, before);
}

static void memory_stays_near_the_store(void **state) {
  (void)state;
  static const char *const large[] = {"stencil3d size=100 points=27 coefficients=lognormal", "elasticity3d size=30",
                                      "fem3d size=50 numbering=random", "stencil3d size=130 points=7"};
  gpu g = gpu_open();
  for (int i = 0; i < GPU_MATRICES; i++) {
    ht_matrix *a = gpu_matrix_make(g.ctx, &gpu_matrices[i]);
    for (int k = 0; k < LAYOUTS; k++) little_memory_is_used(&g, gpu_matrices[i].name, &layouts[k], a, rows_on_their_way(a));
    ht_matrix_destroy(a);
  }
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    ht_matrix *a;
    assert_int_equal(generate_line(g.ctx, large[i], &a), HT_OK);
    for (int k = 0; k < LAYOUTS; k++) little_memory_is_used(&g, large[i], &layouts[k], a, rows_on_their_way(a));
    ht_matrix_destroy(a);
  }
  gpu_close(&g);
}

/* Where the store is large enough, the rows on their way are within the tenth, too. */
static void a_large_store_takes_a_tenth_more(void **state) {
  (void)state;
  static const char line[] = "stencil3d size=128 points=27 coefficients=lognormal";
  gpu g = gpu_open();
  ht_matrix *a;
  assert_int_equal(generate_line(g.ctx, line, &a), HT_OK);
  for (int k = 1; k < LAYOUTS; k++) little_memory_is_used(&g, line, &layouts[k], a, 0); /* too large for patches */
  ht_matrix_destroy(a);
  gpu_close(&g);
}

int main(void) {
  if (!gpu_present()) return GPU_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_matrix_at_every_level),           cmocka_unit_test(flags_change_bytes_alone),
      cmocka_unit_test(an_update_is_as_good_as_a_fresh_store), cmocka_unit_test(host_threads_change_nothing),
      cmocka_unit_test(memory_stays_near_the_store),           cmocka_unit_test(alike_rows_need_no_indices),
      cmocka_unit_test(constants_are_kept_at_32_bits),         cmocka_unit_test(no_more_bytes_than_csr),
      cmocka_unit_test(a_large_store_takes_a_tenth_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
