/* Set-up time of the solver, by matrix: the first prepare in a process (which takes the device, too), later ones on a fresh solver whose
 * pattern the context has not met ("fresh") or has ("met": its ordering is found again), and one after new values on the same pattern. The
 * engines are chosen by size, as always. With --solve 1 the first solve on each fresh solver, too: of b = A times ones, from host memory;
 * and the ordering's part of "fresh".
 *
 *   setup [--backend NAME] [--threads N] [--repeats N] [--clock wall|cpu] [--solve 0|1] [--phases 0|1] RECIPE...      RECIPE: 'stencil3d
 * size=64 points=27'
 *
 * With tests/driver's libcuda in LD_LIBRARY_PATH and HT_FAKE_CUDA=timed it tells what the host's part of it costs on any machine: there
 * copies are the host's and kernels do nothing. Medians. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "base/kept.h"
#include "data/matrix.h"
#include "op/placed.h"
#include "program.h"

enum { MOST_REPEATS = 100 };

/* With --phases 1: what the set-up tells of its parts. */
static const char *telling; /* what is being prepared, or NULL */

static void tell(void *user, ht_log_level level, const char *message) {
  (void)user;
  if (level == HT_LOG_DEBUG && telling && !strncmp(message, "set-up:", 7)) printf("  %-10s %s\n", telling, message + 8);
}

static double prepare(ht_solver *solver, const char *what) {
  if (telling) telling = what;
  double start = now();
  require(ht_solver_prepare(solver));
  return now() - start;
}

static ht_solver *make_solver(const char *backend, const ht_matrix *matrix) {
  ht_options *options;
  ht_solver *solver;
  require(ht_options_create(ctx, &options));
  require(ht_options_set(options, "backend", backend));
  require(ht_solver_create(ctx, options, &solver));
  require(ht_solver_set_matrix(solver, matrix));
  ht_options_destroy(options);
  return solver;
}

static double solve(ht_solver *solver, const ht_matrix *matrix, double *ordering) {
  ht_report report;
  int64_t n = ht_matrix_rows(matrix);
  double *x = calloc((size_t)n, sizeof *x), *b = calloc((size_t)n, sizeof *b);
  if (!x || !b) exit(3);
  require(ht_vector_read(ctx, "A*ones", matrix, n, b));
  double start = now();
  require(ht_solver_solve(solver, 1, b, x, &report));
  double time = now() - start;
  *ordering = report.time_ordering_s;
  free(x);
  free(b);
  return time;
}

static double prepare_fresh(const char *backend, const ht_matrix *matrix, const char *what, ht_solver **solver) {
  *solver = make_solver(backend, matrix);
  return prepare(*solver, what);
}

/* New values from a CSR in the backend's memory, on a solver that is prepared; NAN where it takes none. */
static double prepare_on_device(const char *name, ht_solver *solver, const ht_matrix *matrix) {
  const ht_backend *backend;
  ht_csr_view a = ht_matrix_view(matrix);
  ht_placed_csr placed = {.view = {.n = 0}};
  require(ht_backend_find(ctx, name, &backend));
  require(ht_csr_place(ctx, backend, &a, &placed));
  if (telling) telling = "device";
  double start = now();
  ht_status status = ht_solver_set_device_csr(solver, placed.view.row_start, placed.view.columns, placed.view.values);
  double time = now() - start;
  if (status != HT_OK && status != HT_UNSUPPORTED && status != HT_BAD_ARGUMENT)
    require(status); /* a driver that is none has no device memory */
  ht_context_clear_error(ctx);
  ht_placed_csr_release(ctx, backend, &placed);
  return status == HT_OK ? time : NAN;
}

static void measure(const char *backend, const char *recipe, int repeats, int solving) {
  double fresh[MOST_REPEATS], met[MOST_REPEATS], update[MOST_REPEATS], solved[MOST_REPEATS] = {0}, device[MOST_REPEATS],
                                                                       ordering[MOST_REPEATS] = {0}, first = 0;
  const double *values;
  ht_solver *solver;
  ht_matrix *matrix = generate(recipe);
  for (int k = 0; k < repeats; k++) {
    ht_kept_forget(ctx);
    fresh[k] = prepare_fresh(backend, matrix, "fresh", &solver);
    if (k == 0) first = fresh[k];
    if (solving) solved[k] = solve(solver, matrix, &ordering[k]);
    ht_matrix_csr(matrix, NULL, NULL, &values);
    require(ht_matrix_set_values(matrix, values));
    update[k] = prepare(solver, "values");
    device[k] = strcmp(backend, "cuda") ? NAN : prepare_on_device(backend, solver, matrix);
    ht_solver_destroy(solver);
    met[k] = prepare_fresh(backend, matrix, "met", &solver);
    ht_solver_destroy(solver);
  }
  printf("%-50s %10lld %12lld %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f\n", recipe, (long long)ht_matrix_rows(matrix),
         (long long)ht_matrix_nonzeros(matrix), 1e3 * first, 1e3 * median(ordering, repeats), 1e3 * median(met, repeats),
         1e3 * median(fresh, repeats), 1e3 * median(update, repeats), 1e3 * median(device, repeats), 1e3 * median(solved, repeats));
  fflush(stdout);
  ht_matrix_destroy(matrix);
}

int main(int argc, char **argv) {
  const char *backend = "cuda";
  int threads = 0, repeats = 5, solving = 0, k = 1;
  for (; k + 1 < argc && !strncmp(argv[k], "--", 2); k += 2) {
    if (!strcmp(argv[k], "--backend"))
      backend = argv[k + 1];
    else if (!strcmp(argv[k], "--threads"))
      threads = atoi(argv[k + 1]);
    else if (!strcmp(argv[k], "--repeats"))
      repeats = atoi(argv[k + 1]);
    else if (!strcmp(argv[k], "--clock")) /* cpu: of all threads together; for busy machines, with --threads 1 */
      the_clock = strcmp(argv[k + 1], "cpu") ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    else if (!strcmp(argv[k], "--solve"))
      solving = atoi(argv[k + 1]);
    else if (!strcmp(argv[k], "--phases"))
      telling = atoi(argv[k + 1]) ? "fresh" : NULL;
    else
      break;
  }
  if (k >= argc || repeats < 1 || repeats > MOST_REPEATS) {
    fprintf(stderr,
            "usage: setup [--backend NAME] [--threads N] [--repeats N] [--clock wall|cpu] [--solve 0|1] [--phases 0|1] RECIPE...\n");
    return 2;
  }
  if (ht_context_create(&ctx) != HT_OK) return 3;
  require(ht_context_set_threads(ctx, threads));
  ht_context_set_log(ctx, tell, NULL, telling ? HT_LOG_DEBUG : HT_LOG_WARNING);
  printf("%-50s %10s %12s %10s %10s %10s %10s %10s %10s %10s\n", "milliseconds", "n", "nnz", "first", "ordering", "met", "fresh",
         "new values", "on device", "solve");
  for (; k < argc; k++) measure(backend, argv[k], repeats, solving);
  ht_context_destroy(ctx);
  return 0;
}
