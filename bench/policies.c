/* What policies cost by the model of time (ht_policy_time), on systems too small to measure: each believes in a cache that its matrix
 * leaves. Iterations and bytes are those of real, certified solves from random right-hand sides, and the same on every machine.
 *
 *   policies [--policies A,B,...] [--cache C] [--device 0|1] [--precond none,jacobi] FILE...
 *
 * C: the cache by the bytes that an iteration streams, 0.25 by default. With --device 1 the policies, and the model, take the CPU for a
 * device. FILE: a matrix, or a list (.txt) of lines NAME RECIPE such as
 * bench/evocg/train_universal.txt. Of each system: FP64's iterations, and by policy modelled time and iterations by FP64's; then
 * geometric means and worst. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "base/random.h"
#include "solver/chooser.h"
#include "train/price.h"
/* after what has parameters of the context's name */
#include "program.h"

enum { MOST_POLICIES = 16, MOST_ITERATIONS = 20000 };

typedef struct tally {
  double sum, worst, iterations, worst_iterations;
} tally;

static const char *policy[MOST_POLICIES];
static int policies, systems;
static tally tallies[MOST_POLICIES + 1];
static double cache = 0.25;
static int device;

/* ---- a system ---- */

static void set(ht_solver *solver, const char *name, const char *value) { require(ht_solver_set_option(solver, name, value)); }

static double sum_of(const double *bytes) { return bytes[0] + bytes[1] + bytes[2]; }

/* By FP64's solve, whose iterations are `iterations_64`, or 0 while that is made. Returns the modelled time, NAN where nothing is solved.
 */
static double measure(const ht_matrix *matrix, const char *name, const char *precond, int64_t *iterations_64, double *iterations) {
  int64_t n = ht_matrix_rows(matrix);
  ht_solver *solver;
  ht_report report;
  double *b = malloc((size_t)n * sizeof *b), *x = calloc((size_t)n, sizeof *x);
  char most[32];
  if (!b || !x) exit(3);
  for (int64_t i = 0; i < n; i++) b[i] = ht_random_uniform(20261130, (uint64_t)i);
  snprintf(most, sizeof most, "%lld", *iterations_64 ? 4 * (long long)*iterations_64 + 100 : (long long)MOST_ITERATIONS);
  require(ht_solver_create(ctx, NULL, &solver));
  set(solver, "backend", "cpu");
  set(solver, "policy", name);
  set(solver, "precond", precond);
  set(solver, "max-iterations", most);
  require(ht_solver_set_matrix(solver, matrix));
  require(ht_solver_prepare(solver));
  const ht_policy_facts *facts = ht_solver_facts(solver);
  require(ht_solver_pretend(solver, &(ht_pretence){.cache_bytes = cache * facts->bytes_streamed, .device = device}));
  require(ht_solver_solve(solver, 1, b, x, &report));
  if (!*iterations_64 && report.outcome == HT_CONVERGED) *iterations_64 = report.iterations;
  const ht_price price = {.facts = facts, .iterations_64 = *iterations_64, .n = n};
  const ht_stand end = {.iterations = report.iterations,
                        .exact_products = report.products - report.iterations,
                        .looks = ht_solver_looks(solver),
                        .bytes = sum_of(ht_solver_bytes(solver))};
  double time = report.outcome == HT_CONVERGED ? ht_price_cost(&price, &end) / ht_price_cost_64(&price) : NAN;
  *iterations = (double)report.iterations / (double)*iterations_64;
  ht_solver_destroy(solver);
  free(b), free(x);
  return time;
}

static void add(tally *t, double time, double iterations) {
  t->sum += log(time);
  t->iterations += log(iterations);
  t->worst = fmax(t->worst, time);
  t->worst_iterations = fmax(t->worst_iterations, iterations);
}

static void compare(const ht_matrix *matrix, const char *name, const char *precond) {
  int64_t iterations_64 = 0;
  double best = 1, most = 1, iterations;
  measure(matrix, "fixed:f64", precond, &iterations_64, &iterations);
  if (!iterations_64) return;
  printf("%-22s %-6s %5lld", name, precond, (long long)iterations_64);
  for (int k = 0; k < policies; k++) {
    double time = measure(matrix, policy[k], precond, &iterations_64, &iterations);
    if (isnan(time)) time = iterations = 4; /* as long as it was let */
    printf("  %5.3f (%5.3f)", time, iterations);
    add(&tallies[k], time, iterations);
    if (time < best) best = time, most = iterations;
  }
  add(&tallies[policies], best, most);
  printf("  %5.3f\n", best);
  fflush(stdout);
  systems++;
}

/* ---- systems ---- */

/* "stencil3d --points 27" as "stencil3d points=27". */
static ht_matrix *generate_words(const char *recipe) {
  char text[256];
  size_t used = 0;
  int value = 0;
  for (const char *at = recipe; *at && used + 2 < sizeof text; at += strspn(at, " \n")) {
    size_t length = strcspn(at, " \n");
    int name = !strncmp(at, "--", 2);
    if (used) text[used++] = value ? '=' : ' ';
    value = name;
    int written = snprintf(text + used, sizeof text - used, "%.*s", (int)length - 2 * name, at + 2 * name);
    used += (size_t)written;
    at += length;
  }
  text[used] = 0;
  return generate(text);
}

static void compare_all(const ht_matrix *matrix, const char *name, const char *preconds) {
  static const char *const all[] = {"none", "jacobi"};
  for (int k = 0; k < 2; k++)
    if (strstr(preconds, all[k])) compare(matrix, name, all[k]);
}

static void compare_list(const char *path, const char *preconds) {
  char line[512], name[64];
  FILE *file = fopen(path, "r");
  if (!file) exit(2);
  while (fgets(line, sizeof line, file)) {
    int end = 0;
    if (line[0] == '#' || sscanf(line, "%63s %n", name, &end) != 1) continue;
    ht_matrix *matrix = generate_words(line + end);
    compare_all(matrix, name, preconds);
    ht_matrix_destroy(matrix);
  }
  fclose(file);
}

static void compare_file(const char *path, const char *preconds) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t length = strlen(path);
  ht_matrix *matrix;
  if (length > 4 && !strcmp(path + length - 4, ".txt")) {
    compare_list(path, preconds);
    return;
  }
  require(ht_matrix_read(ctx, path, &matrix));
  compare_all(matrix, name, preconds);
  ht_matrix_destroy(matrix);
}

static void print_tallies(void) {
  static const char *const rows[] = {"time", "worst", "iterations", "worst"};
  if (!systems) return;
  for (int row = 0; row < 4; row++) {
    printf("%-35s", rows[row]);
    for (int k = 0; k <= policies; k++) {
      const tally *t = &tallies[k];
      const double value[] = {exp(t->sum / systems), t->worst, exp(t->iterations / systems), t->worst_iterations};
      printf("  %5.3f        ", value[row]);
    }
    printf("\n");
  }
}

int main(int argc, char **argv) {
  static char names[1024] = "fixed:f32,fixed:bf16,budget,auto,learned";
  const char *preconds = "none,jacobi";
  int at = 1;
  for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
    if (!strcmp(argv[at], "--policies")) snprintf(names, sizeof names, "%s", argv[at + 1]);
    if (!strcmp(argv[at], "--cache")) cache = atof(argv[at + 1]);
    if (!strcmp(argv[at], "--device")) device = atoi(argv[at + 1]);
    if (!strcmp(argv[at], "--precond")) preconds = argv[at + 1];
  }
  for (char *word = strtok(names, ","); word && policies < MOST_POLICIES; word = strtok(NULL, ",")) policy[policies++] = word;
  require(ht_context_create(&ctx));
  require(ht_context_set_threads(ctx, 1));
  printf("%-22s %-6s %5s", "", "", "FP64");
  for (int k = 0; k < policies; k++) {
    const char *slash = strrchr(policy[k], '/');
    printf("  %-13.13s", slash ? slash + 1 : policy[k]);
  }
  printf("  best, FP64 among them\n");
  for (; at < argc; at++) compare_file(argv[at], preconds);
  print_tallies();
  ht_context_destroy(ctx);
  return 0;
}
