/* CG on the GPU: halftone against cuSPARSE + cuBLAS in the CUDA sample's form and in a CUDA graph, and against programs of others,
 * interleaved in one run.
 * README.md says what is measured and how. usage: bench_gpu_cg --help
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <halftone/halftone.h>
#include "clock.h"
#include "kernels.h"
#include "library_cg.h"
#include "peer_process.h"
#include "problem.h"
#include "results.h"
#include "settings.h"

enum { PEERS = 2, SAMPLE = 0, GRAPH = 1, LEAST_AVERAGED = 50 };
static const double RTOL = 1e-10;
/* What bounds an iteration where memory's speed does not (README.md, "Bytes"): an exchange between all multiprocessors, in seconds, and
 * the bytes that L2 holds, at its speed. */
static const double EXCHANGE = 1.65e-6, CHIP_BYTES = 48e6, CHIP_BANDWIDTH = 8e12;

/* One of the solvers that are compared on a matrix. */
typedef struct contestant {
  int alive;
  double times[MOST_PAIRS], us[MOST_PAIRS];
  library_run run;    /* a peer's last */
  const char *policy; /* ours: as given; a program's name; NULL for a library */
  int is_program;
  peer_process *program;
  ht_solver *solver;
  ht_report report;   /* ours: the last */
  double prepare_s;   /* wall time of ht_solver_prepare */
  double error_known; /* of the solve that warms up */
  char error[RESULT_TEXT];
} contestant;

typedef struct bench {
  settings set;
  ht_context *ctx;
  library *lib;
  results all;
  /* of the present matrix */
  const problem *what;
  ht_matrix *matrix;
  double *host_b, *host_x, *device_b, *device_x;
  library_cg *cg;
  contestant who[PEERS + MOST_POLICIES + MOST_PROGRAMS]; /* libraries, ours, programs */
  int pairs;                                             /* measured */
  double product_us;                                     /* cuSPARSE's, alone; NaN: not known */
} bench;

static const char *why(const bench *t, ht_status status) {
  const char *sentence = ht_context_error(t->ctx);
  return sentence[0] ? sentence : ht_status_text(status);
}

static int contestants(const bench *t) { return PEERS + t->set.policy_count + t->set.program_count; }

/* ---- Our solver ---- */

/* {matrix} in a policy stands for the matrix's name, so that each has a policy file of its own. */
static void name_policy(const char *policy, const char *matrix, char *name, size_t size) {
  static const char mark[] = "{matrix}";
  const char *at = strstr(policy, mark);
  if (at)
    snprintf(name, size, "%.*s%s%s", (int)(at - policy), policy, matrix, at + sizeof mark - 1);
  else
    snprintf(name, size, "%s", policy);
}

/* fixed:f64 is FP64 as stored; `+exact` lets tiles that fewer bytes hold exactly be read so. */
static ht_status set_policy(ht_options *options, const char *policy, const char *matrix) {
  static const char exact[] = "+exact";
  char name[RESULT_TEXT];
  name_policy(policy, matrix, name, sizeof name);
  size_t length = strlen(name), cut = sizeof exact - 1;
  if (length > cut && !strcmp(name + length - cut, exact)) name[length - cut] = 0;
  ht_status status = ht_options_set(options, "policy", name);
  if (status == HT_OK && !strcmp(policy, "fixed:f64")) status = ht_options_set(options, "exactness-flags", "off");
  return status;
}

static ht_status set_given(const settings *set, ht_options *options) {
  for (int i = 0; i < set->option_count; i++) {
    char name[64];
    size_t length = strcspn(set->options[i], "=");
    snprintf(name, sizeof name, "%.*s", (int)length, set->options[i]);
    ht_status status = ht_options_set(options, name, set->options[i] + length + 1);
    if (status != HT_OK) return status;
  }
  return HT_OK;
}

static ht_status set_options(const settings *set, ht_options *options, const char *policy, const char *matrix) {
  ht_status status = set_policy(options, policy, matrix);
  const char *const pairs[][2] = {{"backend", set->backend}, {"precond", set->precond}, {"engine", set->engine}};
  for (int i = 0; i < 3 && status == HT_OK; i++) status = ht_options_set(options, pairs[i][0], pairs[i][1]);
  if (status == HT_OK) status = ht_options_set_real(options, "rtol", RTOL);
  if (status == HT_OK) status = ht_options_set_integer(options, "max-iterations", set->max_iterations);
  if (status == HT_OK) status = set_given(set, options);
  return status;
}

static ht_status make_solver(bench *t, contestant *c) {
  ht_options *options = NULL;
  ht_status status = ht_options_create(t->ctx, &options);
  if (status == HT_OK) status = set_options(&t->set, options, c->policy, t->what->name);
  if (status == HT_OK) status = ht_solver_create(t->ctx, options, &c->solver);
  ht_options_destroy(options);
  if (status == HT_OK) status = ht_solver_set_matrix(c->solver, t->matrix);
  double start = seconds_now();
  if (status == HT_OK) status = ht_solver_prepare(c->solver);
  c->prepare_s = seconds_now() - start;
  return status;
}

static int run_ours(bench *t, contestant *c, double *time_s, double *us) {
  int64_t n = ht_matrix_rows(t->matrix);
  int on_host = !strcmp(t->set.vectors, "host");
  double *b = on_host ? t->host_b : t->device_b, *x = on_host ? t->host_x : t->device_x;
  if (on_host)
    memset(x, 0, (size_t)n * sizeof *x);
  else if (cudaMemset(x, 0, (size_t)n * sizeof *x) != cudaSuccess) {
    snprintf(c->error, sizeof c->error, "cudaMemset failed");
    return -1;
  }
  cudaError_t error = cudaDeviceSynchronize();
  ht_report_clear(&c->report);
  ht_status status = error == cudaSuccess ? ht_solver_solve(c->solver, 1, b, x, &c->report) : HT_OK;
  if (error != cudaSuccess || status != HT_OK) {
    snprintf(c->error, sizeof c->error, "%.250s", error != cudaSuccess ? cudaGetErrorString(error) : why(t, status));
    return -1;
  }
  const ht_report *r = &c->report;
  double certificate = isfinite(r->time_certificate_s) ? r->time_certificate_s : 0;
  *time_s = r->time_solve_s;
  *us = r->iterations > 0 ? 1e6 * (r->time_solve_s - certificate) / (double)r->iterations : NAN;
  return 0;
}

/* Of the last solve. */
static double error_against_ones(bench *t) {
  int64_t n = ht_matrix_rows(t->matrix);
  double sum = 0;
  if (strcmp(t->set.rhs, "A*ones") != 0) return NAN;
  if (strcmp(t->set.vectors, "host") != 0 &&
      cudaMemcpy(t->host_x, t->device_x, (size_t)n * sizeof *t->host_x, cudaMemcpyDeviceToHost) != cudaSuccess)
    return NAN;
  for (int64_t i = 0; i < n; i++) sum += (t->host_x[i] - 1) * (t->host_x[i] - 1);
  return sqrt(sum / (double)n);
}

/* ---- Every contestant ---- */

static int run_peer(bench *t, contestant *c, int index, double *time_s, double *us) {
  int failed = c->is_program     ? peer_process_solve(c->program, &c->run)
               : index == SAMPLE ? library_cg_sample(t->cg, RTOL, &c->run)
                                 : library_cg_graph(t->cg, RTOL, &c->run);
  if (failed) {
    snprintf(c->error, sizeof c->error, "%.250s", c->is_program ? peer_process_error() : library_error());
    return -1;
  }
  *time_s = c->run.time_s;
  *us = c->run.us_per_iteration;
  return 0;
}

/* A contestant that fails leaves the race and keeps its sentence. */
static void run_one(bench *t, int index, int pair) {
  contestant *c = &t->who[index];
  if (!c->alive) return;
  int ours = c->policy && !c->is_program;
  int failed = ours ? run_ours(t, c, &c->times[pair], &c->us[pair]) : run_peer(t, c, index, &c->times[pair], &c->us[pair]);
  if (!failed) return;
  c->alive = 0;
  fprintf(stderr, "%s, %s: %s\n", t->what->name, c->policy ? c->policy : index == SAMPLE ? "sample" : "graph", c->error);
}

/* Once to warm up, then in turns, every second time backwards; as many pairs as fit in the time for a matrix. */
static void run_pairs(bench *t) {
  double start = seconds_now();
  for (int i = 0; i < contestants(t); i++) {
    contestant *c = &t->who[i];
    run_one(t, i, 0);
    c->error_known = c->policy && !c->is_program && c->alive ? error_against_ones(t) : NAN;
  }
  double one = seconds_now() - start, left = t->set.seconds - one;
  double fit = floor(left / (one > 0 ? one : 1e-9));
  t->pairs = fit >= t->set.pairs ? t->set.pairs : fit >= 1 ? (int)fit : 1;
  if (fit < 1) return; /* what was meant to warm up is then the only measurement */
  for (int pair = 0; pair < t->pairs; pair++)
    for (int i = 0; i < contestants(t); i++) run_one(t, pair % 2 ? contestants(t) - 1 - i : i, pair);
}

/* ---- Rows ---- */

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void spread(const double *values, int count, double *median, double *low, double *high) {
  double sorted[MOST_PAIRS];
  memcpy(sorted, values, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, ascending);
  double middle = count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
  if (median) *median = middle;
  if (low) *low = sorted[0];
  if (high) *high = sorted[count - 1];
}

static void ratios(const bench *t, const contestant *base, const contestant *c, double setup, double *median, double *low, double *high) {
  double ratio[MOST_PAIRS];
  if (!base->alive || !c->alive) return;
  for (int i = 0; i < t->pairs; i++) ratio[i] = base->times[i] / (c->times[i] + setup);
  spread(ratio, t->pairs, median, low, high);
}

/* Which share of the nonzeros the loop read at 8, 4 and 2 bytes, from the report's bytes. An entry costs the bytes of its level and an
 * overhead (index, exponent, padding) that is the same at every level: what the storage takes above 8. The certificate's products
 * with CSR are taken out of the FP64 bytes first. */
static void level_shares(const ht_report *r, double share[3]) {
  const double width[3] = {8, 4, 2};
  double certificates = (double)(r->products - r->iterations) * (12 * (double)r->nnz + 8 * (double)r->n);
  double overhead = fmax(r->bytes_per_nonzero - 8, 2), sum = 0;
  double bytes[3] = {fmax(r->bytes_f64 - certificates, 0), r->bytes_f32, r->bytes_16};
  for (int k = 0; k < 3; k++) {
    share[k] = bytes[k] / (width[k] + overhead);
    sum += share[k];
  }
  for (int k = 0; k < 3; k++) share[k] /= sum; /* NaN where the report has no bytes */
}

static void fill_bytes(const bench *t, const contestant *c, result_row *row) {
  double share[3], nnz = (double)row->nnz, n = (double)row->n;
  if (!strcmp(c->policy, "fixed:f64")) {
    share[0] = 1;
    share[1] = share[2] = 0;
  } else
    level_shares(&c->report, share);
  row->share_read_f64 = share[0];
  row->share_read_f32 = share[1];
  row->share_read_16 = share[2];
  row->bytes_per_iteration = nnz * (8 * share[0] + 4 * share[1] + 2 * share[2] + 2) + 8 * 8 * n;
  row->gbytes_per_s = row->bytes_per_iteration / row->us_per_iteration * 1e-3;
  row->share_of_read_bandwidth = 1e9 * row->gbytes_per_s / t->all.read_bandwidth;
  double on_chip = fmin(row->bytes_per_iteration, CHIP_BYTES);
  row->floor_us = 1e6 * (EXCHANGE + on_chip / CHIP_BANDWIDTH + (row->bytes_per_iteration - on_chip) / t->all.read_bandwidth);
  row->bytes_csr = 12 * nnz + 4 * (n + 1);
}

#define COPY_TEXT(to, from) snprintf((to), sizeof(to), "%.255s", (from))

static void fill_report(const contestant *c, result_row *row) {
  const ht_report *r = &c->report;
  COPY_TEXT(row->policy_chosen, r->policy_chosen);
  COPY_TEXT(row->engine, r->engine);
  COPY_TEXT(row->format, r->format);
  COPY_TEXT(row->ordering, r->ordering);
  COPY_TEXT(row->backend, r->backend);
  COPY_TEXT(row->outcome, ht_outcome_name(r->outcome));
  row->residual_true = r->residual_true;
  row->error_known = c->error_known;
  row->iterations = r->iterations;
  row->products = r->products;
  row->replacements = r->replacements;
  row->time_certificate_s = r->time_certificate_s;
  row->time_setup_s = r->time_setup_s;
  row->time_ordering_s = r->time_ordering_s;
  row->time_prepare_s = c->prepare_s;
  row->bytes_matrix = r->bytes_matrix >= 0 ? (double)r->bytes_matrix : NAN;
  row->bytes_device_peak = r->bytes_device_peak > 0 ? (double)r->bytes_device_peak : NAN;
  row->bytes_f64 = r->bytes_f64;
  row->bytes_f32 = r->bytes_f32;
  row->bytes_16 = r->bytes_16;
  row->bytes_vectors = r->bytes_vectors;
}

/* A program's row has what it told; bytes and what else is in a report stay unknown. */
static void fill_program(const contestant *c, result_row *row) {
  COPY_TEXT(row->engine, "program");
  COPY_TEXT(row->outcome, ht_outcome_name(c->run.converged ? HT_CONVERGED : HT_ITERATION_LIMIT));
  row->residual_true = c->run.residual_true;
  row->iterations = c->run.iterations;
  row->time_setup_s = row->time_prepare_s = c->prepare_s;
}

static void fill_peers(const bench *t, result_row *row) {
  const contestant *sample = &t->who[SAMPLE], *graph = &t->who[GRAPH];
  if (sample->alive) {
    row->iterations_cusparse = sample->run.iterations;
    row->residual_true_cusparse = sample->run.residual_true;
    spread(sample->times, t->pairs, &row->time_cusparse_s, &row->time_cusparse_min_s, &row->time_cusparse_max_s);
    spread(sample->us, t->pairs, &row->us_per_iteration_cusparse, NULL, NULL);
  }
  if (graph->alive) {
    row->iterations_graph = graph->run.iterations;
    row->residual_true_graph = graph->run.residual_true;
    spread(graph->times, t->pairs, &row->time_graph_s, &row->time_graph_min_s, &row->time_graph_max_s);
    spread(graph->us, t->pairs, &row->us_per_iteration_graph, NULL, NULL);
  }
  if (t->cg) row->time_preprocess_s = library_cg_preprocess_s(t->cg);
  row->us_product_cusparse = t->product_us;
}

static const contestant *own_f64(const bench *t) {
  for (int i = PEERS; i < contestants(t); i++)
    if (!strcmp(t->who[i].policy, "fixed:f64") && t->who[i].alive) return &t->who[i];
  return NULL;
}

/* Averaged are runs that converge in FP64 after 50 iterations or more: the sample's where it ran, else our own. */
static int is_averaged(const bench *t, const contestant *c) {
  const contestant *sample = &t->who[SAMPLE], *own = own_f64(t);
  int64_t iterations = sample->alive ? sample->run.iterations : own ? own->report.iterations : c->report.iterations;
  int converged = sample->alive ? sample->run.converged : own ? own->report.outcome == HT_CONVERGED : 1;
  int this_one = c->is_program ? c->run.converged : c->report.outcome == HT_CONVERGED;
  return converged && iterations >= LEAST_AVERAGED && this_one;
}

static void add_row(bench *t, const contestant *c) {
  result_row row;
  const contestant *own = own_f64(t), *sample = &t->who[SAMPLE], *graph = &t->who[GRAPH];
  result_row_clear(&row);
  COPY_TEXT(row.matrix, t->what->name);
  snprintf(row.recipe, sizeof row.recipe, "%.255s", t->what->recipe);
  COPY_TEXT(row.class, t->what->class);
  COPY_TEXT(row.policy, c->policy);
  COPY_TEXT(row.precond, t->set.precond);
  COPY_TEXT(row.error, c->error);
  row.n = t->matrix ? ht_matrix_rows(t->matrix) : -1;
  row.nnz = t->matrix ? ht_matrix_nonzeros(t->matrix) : -1;
  if (c->alive || sample->alive) row.pairs = t->pairs;
  fill_peers(t, &row);
  row.averaged = 0;
  if (c->alive) {
    if (c->is_program)
      fill_program(c, &row);
    else
      fill_report(c, &row);
    spread(c->times, t->pairs, &row.time_s, &row.time_min_s, &row.time_max_s);
    spread(c->us, t->pairs, &row.us_per_iteration, NULL, NULL);
    ratios(t, sample, c, 0, &row.speedup_cusparse, &row.speedup_cusparse_min, &row.speedup_cusparse_max);
    ratios(t, graph, c, 0, &row.speedup_graph, &row.speedup_graph_min, &row.speedup_graph_max);
    if (own) ratios(t, own, c, 0, &row.speedup_f64, &row.speedup_f64_min, &row.speedup_f64_max);
    ratios(t, sample, c, row.time_setup_s, &row.speedup_cusparse_with_setup, NULL, NULL);
    ratios(t, graph, c, row.time_setup_s, &row.speedup_graph_with_setup, NULL, NULL);
    if (!c->is_program) fill_bytes(t, c, &row);
    row.averaged = is_averaged(t, c);
  }
  results_print_row(&row);
  if (results_add(&t->all, &row)) fprintf(stderr, "memory is exhausted: a row is lost\n");
}

/* ---- One matrix ---- */

static int load(bench *t) {
  ht_context_clear_error(t->ctx);
  ht_status status = problem_make(t->ctx, t->what, &t->matrix);
  int64_t n = status == HT_OK ? ht_matrix_rows(t->matrix) : 0;
  size_t bytes = (size_t)n * sizeof(double);
  cudaError_t error = cudaSuccess;
  if (status == HT_OK) {
    t->host_b = malloc(bytes);
    t->host_x = malloc(bytes);
    status = t->host_b && t->host_x ? HT_OK : HT_NO_MEMORY;
  }
  if (status == HT_OK) status = ht_vector_read(t->ctx, t->set.rhs, t->matrix, n, t->host_b);
  if (status == HT_OK) error = cudaMalloc((void **)&t->device_b, bytes);
  if (status == HT_OK && error == cudaSuccess) error = cudaMalloc((void **)&t->device_x, bytes);
  if (status == HT_OK && error == cudaSuccess) error = cudaMemcpy(t->device_b, t->host_b, bytes, cudaMemcpyHostToDevice);
  if (status == HT_OK && error == cudaSuccess) return 0;
  const char *sentence = status != HT_OK ? why(t, status) : cudaGetErrorString(error);
  fprintf(stderr, "%s: %s\n", t->what->name, sentence);
  for (int i = PEERS; i < contestants(t); i++) snprintf(t->who[i].error, sizeof t->who[i].error, "%.250s", sentence);
  return -1;
}

static void enter_peers(bench *t) {
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;
  if (!t->set.peers) return;
  ht_matrix_csr(t->matrix, &row_start, &columns, &values);
  int failed = library_cg_create(t->lib, ht_matrix_rows(t->matrix), ht_matrix_nonzeros(t->matrix), row_start, columns, values, t->host_b,
                                 !strcmp(t->set.precond, "jacobi"), t->set.max_iterations, &t->cg);
  if (failed) fprintf(stderr, "%s, peers: %s\n", t->what->name, library_error());
  t->who[SAMPLE].alive = t->who[GRAPH].alive = !failed;
  if (!failed && library_cg_product(t->cg, &t->product_us)) fprintf(stderr, "%s, product: %s\n", t->what->name, library_error());
}

/* They read the problem from one file, which is gone when all have. */
static void enter_programs(bench *t) {
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;
  char path[4096];
  if (!t->set.program_count) return;
  ht_matrix_csr(t->matrix, &row_start, &columns, &values);
  int failed = problem_file_write(ht_matrix_rows(t->matrix), ht_matrix_nonzeros(t->matrix), row_start, columns, values, t->host_b, path,
                                  sizeof path);
  for (int i = 0; i < t->set.program_count; i++) {
    contestant *c = &t->who[PEERS + t->set.policy_count + i];
    double start = seconds_now();
    c->alive = !failed && !peer_process_start(t->set.programs[i].command, path, t->set.precond, RTOL, t->set.max_iterations, &c->program);
    c->prepare_s = seconds_now() - start;
    if (c->alive) continue;
    snprintf(c->error, sizeof c->error, "%.250s", peer_process_error());
    fprintf(stderr, "%s, %s: %s\n", t->what->name, c->policy, c->error);
  }
  if (!failed) unlink(path);
}

static void enter_ours(bench *t) {
  for (int i = PEERS; i < PEERS + t->set.policy_count; i++) {
    contestant *c = &t->who[i];
    ht_context_clear_error(t->ctx);
    ht_status status = make_solver(t, c);
    c->alive = status == HT_OK;
    if (c->alive) continue;
    snprintf(c->error, sizeof c->error, "%.250s", why(t, status));
    fprintf(stderr, "%s, %s: %s\n", t->what->name, c->policy, c->error);
  }
}

static void unload(bench *t) {
  for (int i = PEERS; i < contestants(t); i++) {
    ht_solver_destroy(t->who[i].solver);
    peer_process_stop(t->who[i].program);
  }
  library_cg_destroy(t->cg);
  cudaFree(t->device_b);
  cudaFree(t->device_x);
  free(t->host_b);
  free(t->host_x);
  ht_matrix_destroy(t->matrix);
  t->cg = NULL;
  t->device_b = t->device_x = t->host_b = t->host_x = NULL;
  t->matrix = NULL;
}

static void measure(bench *t, const problem *what, int keep) {
  t->what = what;
  t->pairs = 0;
  t->product_us = NAN;
  memset(t->who, 0, sizeof t->who);
  for (int i = 0; i < t->set.policy_count; i++) t->who[PEERS + i].policy = t->set.policies[i];
  for (int i = 0; i < t->set.program_count; i++) {
    contestant *c = &t->who[PEERS + t->set.policy_count + i];
    c->policy = t->set.programs[i].name;
    c->is_program = 1;
  }
  if (!load(t)) {
    enter_peers(t);
    enter_programs(t);
    enter_ours(t);
    run_pairs(t);
  }
  if (keep)
    for (int i = PEERS; i < contestants(t); i++) add_row(t, &t->who[i]);
  unload(t);
}

/* ---- The run ---- */

static void read_driver(char *text, size_t size) {
  int version = 0;
  FILE *f = popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null", "r");
  text[0] = 0;
  if (f) {
    if (!fgets(text, (int)size, f)) text[0] = 0;
    pclose(f);
  }
  text[strcspn(text, "\r\n")] = 0;
  if (!text[0] && cudaDriverGetVersion(&version) == cudaSuccess) snprintf(text, size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

static int describe(bench *t) {
  struct cudaDeviceProp device;
  int sparse = 0, blas = 0, runtime = 0;
  time_t now = time(NULL);
  struct tm utc;
  cudaError_t error = cudaGetDeviceProperties(&device, 0);
  if (error != cudaSuccess) {
    fprintf(stderr, "no CUDA device can be used: %s\n", cudaGetErrorString(error));
    return -1;
  }
  COPY_TEXT(t->all.card, device.name);
  read_driver(t->all.driver, sizeof t->all.driver);
  COPY_TEXT(t->all.commit, t->set.commit);
  COPY_TEXT(t->all.rhs, t->set.rhs);
  COPY_TEXT(t->all.version, ht_version());
  if (!gmtime_r(&now, &utc) || !strftime(t->all.date, sizeof t->all.date, "%Y-%m-%d", &utc)) return -1;
  cusparseGetProperty(MAJOR_VERSION, &sparse);
  int sparse_minor = 0, blas_minor = 0;
  cusparseGetProperty(MINOR_VERSION, &sparse_minor);
  cublasGetProperty(MAJOR_VERSION, &blas);
  cublasGetProperty(MINOR_VERSION, &blas_minor);
  cudaRuntimeGetVersion(&runtime);
  snprintf(t->all.libraries, sizeof t->all.libraries, "CUDA %d.%d, cuSPARSE %d.%d, cuBLAS %d.%d", runtime / 1000, runtime % 1000 / 10,
           sparse, sparse_minor, blas, blas_minor);
  error = measure_bandwidth((int64_t)2 << 30, &t->all.read_bandwidth, &t->all.copy_bandwidth);
  if (error != cudaSuccess) {
    fprintf(stderr, "the bandwidth cannot be measured: %s\n", cudaGetErrorString(error));
    return -1;
  }
  printf("%s, driver %s, %s, halftone %s (%s), %s; read %.0f GB/s, copy %.0f GB/s\n", t->all.card, t->all.driver, t->all.libraries,
         t->all.version, t->all.commit, t->all.date, 1e-9 * t->all.read_bandwidth, 1e-9 * t->all.copy_bandwidth);
  return 0;
}

static void save(const bench *t, const char *path) {
  if (results_write(&t->all, path)) fprintf(stderr, "%s cannot be written: %s\n", path, strerror(errno));
}

static int run_all(bench *t, const problem_list *list) {
  static const problem warm_up = {"warm-up", "", "stencil2d --points 5 --size 48"};
  char path[4096];
  double start = seconds_now();
  if (library_open(&t->lib)) {
    fprintf(stderr, "%s\n", library_error());
    return 1;
  }
  if (describe(t)) return 1;
  if (t->set.out)
    snprintf(path, sizeof path, "%s", t->set.out);
  else
    snprintf(path, sizeof path, "bench/results/h200-cg-%.20s.json", t->all.date);
  measure(t, &warm_up, 0); /* modules, handles and clocks: nothing of the first use is counted against anyone */
  results_print_head();
  for (int i = 0; i < list->count; i++) {
    if (seconds_now() - start > t->set.total_seconds) {
      fprintf(stderr, "the time is over: %s and %d more are left out\n", list->items[i].name, list->count - i - 1);
      break;
    }
    measure(t, &list->items[i], 1);
    save(t, path); /* after each matrix, so that a run that is cut off leaves what it has */
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) { /* a fault in a kernel spoils the device for the rest of the process */
      fprintf(stderr, "the device is lost after %s: %s\n", list->items[i].name, cudaGetErrorString(error));
      break;
    }
  }
  results_print_summary(&t->all);
  printf("written to %s\n", path);
  return t->all.count ? 0 : 1;
}

int main(int argc, char **argv) {
  static bench t;
  problem_list list = {0};
  if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(SETTINGS_HELP, stdout) < 0;
  int result = settings_parse(argc, argv, &t.set, &list) ? 2 : ht_context_create(&t.ctx) == HT_OK ? 0 : 1;
  if (!result) result = run_all(&t, &list);
  library_close(t.lib);
  ht_context_destroy(t.ctx);
  results_free(&t.all);
  free(list.items);
  return result;
}
