/* What the CUDA backend's host side gives to the kernels that build its store, on a driver that is none: rows in solver order, sorted
 * columns and values, slices, halos. The launches are looked into as they happen. SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dlfcn.h>
#include "backend/cuda/store.h"
#include "base/kept.h"
#include "data/diagonal.h"
#include "data/matrix.h"
#include "data/patches.h"
#include "data/split.h"
#include "support/generated.h"
#include "support/patterns.h"

/* What every test begins with. */
typedef struct device {
  ht_context *ctx;
  const ht_backend *cuda;
} device;

static struct {
  const ht_matrix *matrix;
  int counted, filled; /* slices looked at */
} seen;

static int64_t length_of(const ht_matrix *a, int32_t row) { return row < 0 ? 0 : a->row_start[row + 1] - a->row_start[row]; }

static double value_at(const ht_matrix *a, int32_t row, int32_t column) {
  const ht_csr_view view = ht_matrix_view(a);
  for (int64_t k = view.row_start[row]; k < view.row_start[row + 1]; k++)
    if (view.columns[k] == column) return view.values[k];
  fail_msg("row %d has no column %d", row, column);
  return 0;
}

/* On the device: 16 bits where they reach. */
static int32_t callers_row(const ht_store_view *v, int64_t i) {
  return !v->order_16 ? v->order[i] : v->order_16[i] == HT_NO_ROW_16 ? -1 : v->order_16[i];
}

/* Columns ascend by their place, which makes them distinct; with their number and values that leaves only the row itself. */
static void check_row(const ht_store_view *v, const ht_rows_view *rows, int64_t place, int64_t local) {
  int64_t begin = rows->start[local] - rows->start[0], end = rows->start[local + 1] - rows->start[0];
  int32_t row = callers_row(v, place);
  assert_int_equal(end - begin, length_of(seen.matrix, row));
  for (int64_t k = begin; k < end; k++) {
    double value = value_at(seen.matrix, row, callers_row(v, rows->columns[k]));
    if (rows->values) assert_true(value == rows->values[k]);
    if (k > begin) assert_true(rows->columns[k - 1] < rows->columns[k]);
  }
}

static void check_rows(const ht_store_view *v, const ht_rows_view *rows, int *slices) {
  assert_int_equal(rows->first_slice, *slices);
  int64_t first = v->slice[rows->first_slice].row, end = v->slice[rows->first_slice + rows->slices].row;
  for (int64_t i = first; i < end; i++) check_row(v, rows, i, i - first);
  *slices += (int)rows->slices;
}

/* What the kernel of that name does. */
static void sort_rows(const ht_rows_view *rows, int64_t count, const int32_t *from) {
  int32_t *columns = (int32_t *)(uintptr_t)rows->columns;
  double *values = (double *)(uintptr_t)rows->values;
  for (int64_t i = 0; i < count; i++) {
    int64_t begin = rows->start[i] - rows->start[0], end = rows->start[i + 1] - rows->start[0];
    for (int64_t k = begin; k < end; k++) {
      int32_t column = rows->position[from[k]];
      double value = values ? values[k] : 0;
      int64_t to = k;
      for (; end - begin <= HT_SORTED_MOST && to > begin && columns[to - 1] > column; to--) {
        columns[to] = columns[to - 1];
        if (values) values[to] = values[to - 1];
      }
      columns[to] = column;
      if (values) values[to] = value;
    }
  }
}

static void look(const char *kernel, void **args) {
  const ht_store_view *v = args[0];
  if (!strcmp(kernel, "ht_store_sort")) sort_rows(args[1], *(const int64_t *)args[2], *(const int32_t **)args[3]);
  if (!strcmp(kernel, "ht_store_count")) {
    check_rows(v, args[1], &seen.counted);
    memset(*(ht_slice_count **)args[2] + ((const ht_rows_view *)args[1])->first_slice, 0,
           (size_t)((const ht_rows_view *)args[1])->slices * sizeof(ht_slice_count));
  }
  if (!strcmp(kernel, "ht_store_fill")) check_rows(v, args[1], &seen.filled);
}

static void check_halos(const ht_store *store, const ht_matrix *a) {
  const ht_store_view *v = &store->view;
  uint8_t *wanted = malloc((size_t)v->padded), *boundary = calloc((size_t)v->padded, 1);
  assert_true(wanted && boundary);
  for (int64_t p = 0; p < v->patches; p++) {
    int64_t begin = p * v->patch_rows, end = begin + v->patch_rows, at = v->halo_start[p];
    memset(wanted, 0, (size_t)v->padded);
    for (int64_t i = begin; i < end; i++)
      for (int64_t k = store->rows->order[i] < 0 ? 0 : a->row_start[store->rows->order[i]];
           store->rows->order[i] >= 0 && k < a->row_start[store->rows->order[i] + 1]; k++) {
        int32_t c = store->rows->position[a->columns[k]];
        if (c < begin || c >= end) wanted[c] = boundary[c] = 1;
      }
    for (int64_t i = 0; i < v->padded; i++)
      if (wanted[i]) assert_true(at < v->halo_start[p + 1] && (v->halo_16 ? v->halo_16[at++] : v->halo[at++]) == i);
    assert_int_equal(at, v->halo_start[p + 1]);
  }
  for (int64_t i = 0; i < (v->patches ? v->padded : 0); i++) assert_int_equal(boundary[i], v->scale[i]); /* without its exponents */
  free(wanted), free(boundary);
}

static void check_order(const ht_store *store, int64_t block) {
  const ht_store_view *v = &store->view;
  for (int64_t i = 0; i < v->padded; i++) assert_true(store->rows->order[i] < 0 || store->rows->position[store->rows->order[i]] == i);
  for (int64_t i = 0; i < v->n; i++) assert_true(store->rows->order[store->rows->position[i]] == i);
  for (int64_t i = 0; i < v->padded; i++) assert_int_equal(callers_row(v, i), store->rows->order[i]);
  for (int64_t i = 0; i < v->n; i++) { /* a block's rows lie one after the other, in one column block */
    int32_t first = store->rows->position[i / block * block];
    assert_true(store->rows->position[i] == first + i % block && store->rows->position[i] / HT_COLUMN_BLOCK == first / HT_COLUMN_BLOCK);
  }
  for (int64_t s = 0; s < v->slices; s++) {
    int rows = HT_WARP >> v->slice[s].lanes_log2;
    assert_true(v->slice[s + 1].row == v->slice[s].row + rows && v->slice[s].row % rows == 0);
  }
  assert_true(v->slice[0].row == 0 && v->slice[v->slices].row == v->padded);
}

/* Patches of what stays together, as the operator orders them. */
static void order_patches(ht_context *ctx, const ht_csr_view *a, const ht_store_options *options, int32_t *order) {
  ht_node_graph g;
  assert_int_equal(ht_block_graph_create(ctx, a, options->block, &g), HT_OK);
  const ht_csr_view graph = {.n = g.nodes, .nnz = g.start[g.nodes], .row_start = g.start, .columns = g.columns};
  int64_t patch_blocks = options->plan.patch_rows / HT_COLUMN_BLOCK * (HT_COLUMN_BLOCK / options->block);
  assert_int_equal(ht_order_patches(ctx, &graph, patch_blocks, order), HT_OK);
  ht_node_graph_release(ctx, &g);
}

static double *diagonal_of(const ht_matrix *a) {
  double *diagonal = malloc((size_t)a->n * sizeof *diagonal);
  assert_non_null(diagonal);
  ht_matrix_diagonal(a, diagonal);
  return diagonal;
}

/* A matrix that stores are made of, and looked into. */
typedef struct problem {
  ht_matrix *a;
  ht_csr_view view;
  double *diagonal;
} problem;

static problem problem_of(const device *d, const char *line) {
  problem p;
  assert_int_equal(generate_line(d->ctx, line, &p.a), HT_OK);
  p.view = ht_matrix_view(p.a);
  p.diagonal = diagonal_of(p.a);
  return p;
}

static void forget(problem *p) {
  free(p->diagonal);
  ht_matrix_destroy(p->a);
}

static void watch(const ht_matrix *a) {
  seen.matrix = a;
  seen.counted = seen.filled = 0;
}

static ht_store *store_of(const device *d, const problem *p, const ht_store_options *options) {
  ht_store *store;
  watch(p->a);
  assert_int_equal(d->cuda->store_create(d->ctx, &p->view, options, &store), HT_OK);
  return store;
}

static void (**hook(void))(const char *, void **) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(driver);
  void (**launched)(const char *, void **) = dlsym(driver, "fake_cuda_launched");
  assert_non_null(launched);
  return launched;
}

static int set_up(void **state) {
  static device d;
  if (ht_context_create(&d.ctx) != HT_OK) return 1;
  *state = &d;
  if (ht_backend_find(d.ctx, "cuda", &d.cuda) != HT_OK) return 1;
  *hook() = look;
  return 0;
}

static int tear_down(void **state) {
  ht_context_destroy(((device *)*state)->ctx);
  return 0;
}

static ht_store_options streamed(const problem *p) {
  return (ht_store_options){.plan = {.engine = HT_STORE_ENGINE_STREAMING}, .block = 1, .node = 1, .diagonal = p->diagonal};
}

enum { NATURAL, BACKWARDS };

static void check_store(const device *d, const problem *p, ht_store_engine engine, int64_t block, int way) {
  int64_t blocks = (p->a->n + block - 1) / block;
  int32_t *order = malloc((size_t)blocks * sizeof *order);
  ht_store_options options = {
      .block = block, .node = 1, .order = way == BACKWARDS ? order : NULL, .exactness_flags = 1, .diagonal = p->diagonal};
  assert_non_null(order);
  for (int64_t i = 0; i < blocks; i++) order[i] = (int32_t)(blocks - 1 - i);
  d->cuda->store_plan(d->ctx, &p->view, block, engine, &options.plan);
  if (options.plan.patch_rows) {
    order_patches(d->ctx, &p->view, &options, order);
    options.order = order;
  }
  ht_store *store = store_of(d, p, &options);
  assert_true(seen.counted == store->view.slices && seen.filled == store->view.slices);
  check_order(store, block);
  check_halos(store, p->a);
  seen.filled = 0;
  assert_int_equal(d->cuda->store_set_values(store, &p->view, p->diagonal), HT_OK);
  assert_true(seen.counted == store->view.slices && seen.filled == store->view.slices);
  d->cuda->store_release(store);
  free(order);
}

static void stores_are_arranged(void **state) {
  const device *d = *state;
  static const char *const lines[] = {"stencil3d size=20 points=27",
                                      "fem2d size=60 numbering=random coefficients=lognormal",
                                      "graph graph=preferential size=30000",
                                      "trefethen size=1",
                                      "trefethen size=65",
                                      "elasticity3d size=7",
                                      "stencil3d size=64 points=27" /* several blocks and buffers */};
  static const int64_t blocks[] = {1, 3, 33};
  *hook() = look;
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
    for (int threads = k + 1 < sizeof lines / sizeof *lines ? 1 : 2; threads <= 2; threads++) { /* the largest once */
      assert_int_equal(ht_context_set_threads(d->ctx, threads), HT_OK);
      problem p = problem_of(d, lines[k]);
      for (size_t j = 0; j < sizeof blocks / sizeof *blocks; j++) {
        check_store(d, &p, HT_STORE_ENGINE_AUTO, blocks[j], NATURAL);
        check_store(d, &p, HT_STORE_ENGINE_STREAMING, blocks[j], NATURAL);
        check_store(d, &p, HT_STORE_ENGINE_STREAMING, blocks[j], BACKWARDS);
      }
      forget(&p);
    }
}

static ht_store *make_kept(const device *d, const problem *p, const int32_t *order, int engine, const char *name) {
  const ht_fingerprint print = ht_fingerprint_of(d->ctx, p->a->n, p->a->row_start, p->a->columns);
  ht_store_options options = {.block = 1, .node = 1, .order = order, .diagonal = p->diagonal, .pattern = &print, .ordering_name = name};
  d->cuda->store_plan(d->ctx, &p->view, 1, (ht_store_engine)engine, &options.plan);
  const char *met = d->cuda->store_met(d->ctx, &options);
  assert_true((met != NULL) == !name);
  ht_store *store = store_of(d, p, &options);
  assert_int_equal(seen.filled, store->view.slices);
  assert_int_equal(seen.counted, name ? store->view.slices : 0);
  return store;
}

/* A pattern that was met is neither arranged nor counted again, whoever else uses the arrangement; another pattern is. */
static void arrangements_are_kept(void **state) {
  const device *d = *state;
  problem a = problem_of(d, "fem2d size=60 numbering=random seed=3"),
          again = problem_of(d, "fem2d size=60 numbering=random seed=3 coefficients=lognormal"),
          other = problem_of(d, "fem2d size=60 numbering=random seed=4");
  int32_t *order = malloc((size_t)a.a->n * sizeof *order);
  assert_non_null(order);
  for (int64_t i = 0; i < a.a->n; i++) order[i] = (int32_t)(a.a->n - 1 - i);
  for (int engine = HT_STORE_ENGINE_PERSISTENT; engine <= HT_STORE_ENGINE_STREAMING; engine++) {
    ht_store *first = make_kept(d, &a, order, engine, "backwards"), *second = make_kept(d, &again, NULL, engine, NULL);
    assert_true(second->rows == first->rows && second->view.slices == first->view.slices && second->view.units == first->view.units);
    assert_true(second->plan.engine == first->plan.engine && second->plan.patch_rows == first->plan.patch_rows);
    d->cuda->store_release(first);
    check_order(second, 1);
    check_halos(second, again.a);
    ht_kept_forget(d->ctx);
    check_order(second, 1);
    ht_store *third = make_kept(d, &other, NULL, engine, "natural");
    assert_true(third->rows != second->rows);
    d->cuda->store_release(second);
    d->cuda->store_release(third);
  }
  free(order);
  forget(&a), forget(&again), forget(&other);
}

/* Rows that are not as long as those that were arranged are refused before any of them is read beyond its end. */
static void other_rows_are_refused(void **state) {
  const device *d = *state;
  problem p = problem_of(d, "fem2d size=40 numbering=random seed=3");
  int64_t *start = malloc((size_t)(p.a->n + 1) * sizeof *start);
  assert_non_null(start);
  memcpy(start, p.a->row_start, (size_t)(p.a->n + 1) * sizeof *start);
  start[p.a->n / 2]++;
  const ht_csr_view wrong = {p.a->n, p.a->nnz, start, p.a->columns, p.a->values};
  const ht_store_options options = streamed(&p);
  ht_store *store = store_of(d, &p, &options);
  assert_int_equal(d->cuda->store_set_values(store, &wrong, p.diagonal), HT_INTERNAL);
  ht_context_clear_error(d->ctx);
  seen.filled = 0;
  assert_int_equal(d->cuda->store_set_values(store, &p.view, p.diagonal), HT_OK);
  d->cuda->store_release(store);
  free(start);
  forget(&p);
}

/* While a store is built the device holds the store, one block of rows, and where each row lies. */
static void little_memory_is_used(void **state) {
  const device *d = *state;
  ht_context *ctx = d->ctx;
  const ht_backend *cuda = d->cuda;
  problem p = problem_of(d, "stencil3d size=64 points=27");
  const ht_store_options options = streamed(&p);
  int64_t before = ht_cuda_of(ctx)->bytes_now, n = p.a->n;
  assert_true(before > 0 && cuda->memory_most(ctx) == before);
  ht_store *store = store_of(d, &p, &options);
  assert_true(ht_cuda_of(ctx)->bytes_now > before + 12 * n);
  assert_in_range(cuda->memory_most(ctx) - ht_cuda_of(ctx)->bytes_now, 44 << 20, (48 << 20) + 4 * n); /* all columns and two windows */
  cuda->store_release(store);
  assert_int_equal(ht_cuda_of(ctx)->bytes_now, before);
  ht_cuda *card = ht_cuda_of(ctx); /* what was given back waits for the next store, */
  assert_in_range(card->bytes_spare, 1, 64 << 20);
  void *block, *again;
  assert_int_equal(ht_cuda_allocate(card, 5 << 20, &block), HT_OK);
  memset(block, 1, 5 << 20);
  ht_cuda_release(card, block);
  assert_int_equal(ht_cuda_allocate(card, (5 << 20) - 100, &again), HT_OK); /* and are found and cleared again */
  assert_true(again == block && ((char *)again)[0] == 0 && ((char *)again)[(5 << 20) - 101] == 0);
  ht_cuda_release(card, again);
  for (int k = 0; k < 40; k++) {
    assert_int_equal(ht_cuda_allocate(card, (int64_t)(k + 1) << 20, &block), HT_OK);
    ht_cuda_release(card, block);
    assert_in_range(card->bytes_spare, 1, 64 << 20);
  }
  ht_cuda_release_spares(card);
  assert_true(card->bytes_spare == 0 && card->bytes_now == before);
  forget(&p);
}

/* Quadratic tetrahedra have rows of 65 and of 23 entries: those get more lanes, as far as there is a warp for each slice. */
static void long_rows_get_lanes(void **state) {
  enum { LONGEST = 24 }; /* pairs of entries a lane; one lane a row would have 32 */
  const device *d = *state;
  problem p = problem_of(d, "fem3d order=2 size=16");
  ht_store_options options = {.block = 1, .node = 1, .diagonal = p.diagonal};
  int32_t *order = malloc((size_t)p.a->n * sizeof *order);
  assert_non_null(order);
  d->cuda->store_plan(d->ctx, &p.view, 1, HT_STORE_ENGINE_PERSISTENT, &options.plan);
  order_patches(d->ctx, &p.view, &options, order);
  options.order = order;
  ht_store *store = store_of(d, &p, &options);
  assert_in_range(store->rows->patch_slices_most, 1, HT_NARROW_WARPS);
  for (int64_t s = 0; s < store->view.slices; s++)
    for (int64_t i = store->rows->slice[s].row; i < store->rows->slice[s + 1].row; i++)
      assert_in_range(length_of(p.a, store->rows->order[i]), 0, 1 + ((2 * LONGEST) << store->rows->slice[s].lanes_log2));
  d->cuda->store_release(store);
  free(order);
  forget(&p);
}

/* As the device counts, with patches: places that are left empty are in whole units alone. */
static void count_units(const char *kernel, void **args) {
  look(kernel, args);
  if (strcmp(kernel, "ht_store_count")) return;
  const ht_store_view *v = args[0];
  const ht_rows_view *rows = args[1];
  for (int64_t s = rows->first_slice; s < rows->first_slice + rows->slices; s++) {
    int64_t lanes = 1 << v->slice[s].lanes_log2, steps = 0, ragged = 0;
    for (int64_t i = v->slice[s].row; i < v->slice[s + 1].row; i++)
      if (steps * lanes < length_of(seen.matrix, callers_row(v, i)) - 1)
        steps = (length_of(seen.matrix, callers_row(v, i)) - 1 + lanes - 1) / lanes;
    int64_t units = v->ragged ? (steps > 2 ? (steps - 1) / 2 : 0) : (steps + 1) / 2;
    for (int64_t i = v->slice[s].row; i < v->slice[s + 1].row; i++) {
      int64_t rest = length_of(seen.matrix, callers_row(v, i)) - 1 - 2 * lanes * units;
      ragged += rest > 0 ? rest : 0;
    }
    (*(ht_slice_count **)args[2])[s] = (ht_slice_count){.units = (uint32_t)units, .ragged_entries = (uint32_t)ragged};
  }
}

/* Each entry has a place, and the store takes the bytes of CSR at most: also where halos have nearly all rows, which are of very different
 * length, or where rows are short. */
static void no_more_bytes_than_csr(void **state) {
  static const char *const lines[] = {"graph graph=preferential size=60000 sigma=1 seed=1",
                                      "fem2d size=128 numbering=random",
                                      "fem2d size=250 numbering=random",
                                      "fem3d order=2 size=16",
                                      "trefethen size=20000",
                                      "wathen nx=100 ny=100",
                                      "stencil2d size=200",
                                      "stencil3d size=32 points=7"};
  const device *d = *state;
  *hook() = count_units;
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    problem p = problem_of(d, lines[k]);
    ht_store_options options = {.block = 1, .node = 1, .diagonal = p.diagonal};
    ht_store_info info;
    int32_t *order = malloc((size_t)p.a->n * sizeof *order);
    assert_non_null(order);
    d->cuda->store_plan(d->ctx, &p.view, 1, HT_STORE_ENGINE_AUTO, &options.plan);
    assert_true(options.plan.patch_rows > 0);
    order_patches(d->ctx, &p.view, &options, order);
    options.order = order;
    ht_store *store = store_of(d, &p, &options);
    d->cuda->store_info(store, &info);
    double csr = 12 * (double)p.a->nnz + 4 * (double)p.a->n;
    assert_true(ht_cuda_store_entries(&store->view) >= p.a->nnz - p.a->n);
    if ((double)info.bytes > csr) fail_msg("%s: %.3f times the bytes of CSR", lines[k], (double)info.bytes / csr);
    d->cuda->store_release(store);
    free(order);
    forget(&p);
  }
}

enum { UNITS = 3 };

/* A store of UNITS units a slice, all of them exact at 16 bits. */
static void count_as_exact(const char *kernel, void **args) {
  if (!strcmp(kernel, "ht_store_count")) {
    const ht_rows_view *rows = args[1];
    for (int64_t s = 0; s < rows->slices; s++) (*(ht_slice_count **)args[2])[rows->first_slice + s] = (ht_slice_count){.units = UNITS};
  }
  if (!strcmp(kernel, "ht_store_fill"))
    for (int level = 0; level < HT_LEVELS; level++)
      (*(unsigned long long **)args[5])[2 + level] += 2 * HT_WARP * UNITS * (unsigned long long)((const ht_rows_view *)args[1])->slices;
}

/* store_multiply reads exact groups at their level, the engines read whole products at one. The diagonal takes 8 bytes a row at 64 bits, 6
 * at 32, and 4 at 16, with patches 6. */
static void bytes_of_whole_products(void **state) {
  static const struct {
    ht_store_plan plan;
    int diagonal_16;
  } cases[] = {{{.engine = HT_STORE_ENGINE_STREAMING}, 4}, {{.engine = HT_STORE_ENGINE_PERSISTENT, .patch_rows = HT_COLUMN_BLOCK}, 6}};
  const device *d = *state;
  ht_store_info info;
  *hook() = count_as_exact;
  problem p = problem_of(d, "stencil2d size=64");
  ht_store_options options = streamed(&p);
  options.exactness_flags = 1;
  for (int k = 0; k < 2; k++) {
    options.plan = cases[k].plan;
    ht_store *store = store_of(d, &p, &options);
    d->cuda->store_info(store, &info);
    double values = HT_WARP * 4 * (double)store->view.units, rows = (double)info.padded;
    assert_true((store->view.patches > 0) == (cases[k].plan.patch_rows > 0));
    assert_true(values > 0 && info.bytes_whole[HT_LEVEL_16] == info.bytes_level[HT_LEVEL_16]);
    assert_true(info.bytes_level[HT_LEVEL_32] == info.bytes_level[HT_LEVEL_16] + (6 - cases[k].diagonal_16) * rows);
    assert_true(info.bytes_level[HT_LEVEL_64] == info.bytes_level[HT_LEVEL_32] + (8 - 6) * rows);
    assert_true(info.bytes_whole[HT_LEVEL_32] == info.bytes_level[HT_LEVEL_32] + values);
    assert_true(info.bytes_whole[HT_LEVEL_64] == info.bytes_level[HT_LEVEL_64] + 3 * values);
    d->cuda->store_release(store);
  }
  forget(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  setenv("HT_FAKE_CUDA", "h200", 1);
  const struct CMUnitTest tests[] = {TEST(stores_are_arranged),   TEST(arrangements_are_kept), TEST(other_rows_are_refused),
                                     TEST(little_memory_is_used), TEST(long_rows_get_lanes),   TEST(bytes_of_whole_products),
                                     TEST(no_more_bytes_than_csr)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
