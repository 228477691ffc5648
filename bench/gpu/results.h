/* The rows of the benchmark: table, JSON and geometric means. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_RESULTS_H
#define BENCH_GPU_RESULTS_H
#include <stdint.h>

enum { RESULT_TEXT = 256 };

/* The only list of a row's fields, in the order of the JSON; README.md says what each is. Unknown reals are NaN: JSON null. */
#define RESULT_FIELDS(TEXT, INTEGER, REAL)                                                                                                 \
  TEXT(matrix)                                                                                                                             \
  TEXT(recipe)                                                                                                                             \
  TEXT(class)                                                                                                                              \
  INTEGER(n)                                                                                                                               \
  INTEGER(nnz)                                                                                                                             \
  TEXT(policy) TEXT(policy_chosen) TEXT(precond) TEXT(engine) TEXT(format) TEXT(ordering) TEXT(backend) TEXT(outcome) TEXT(error)          \
      REAL(residual_true) INTEGER(iterations) INTEGER(products) INTEGER(replacements) INTEGER(pairs) REAL(time_s) REAL(time_min_s)         \
          REAL(time_max_s) REAL(time_certificate_s) REAL(time_setup_s) REAL(time_ordering_s) REAL(time_prepare_s) REAL(us_per_iteration)   \
              REAL(speedup_cusparse) REAL(speedup_cusparse_min) REAL(speedup_cusparse_max) REAL(speedup_graph) REAL(speedup_graph_min)     \
                  REAL(speedup_graph_max) REAL(speedup_f64) REAL(speedup_f64_min) REAL(speedup_f64_max) REAL(speedup_cusparse_with_setup)  \
                      REAL(speedup_graph_with_setup) REAL(share_read_f64) REAL(share_read_f32) REAL(share_read_16)                         \
                          REAL(bytes_per_iteration) REAL(gbytes_per_s) REAL(share_of_read_bandwidth) REAL(floor_us_per_iteration)          \
                              REAL(bytes_matrix) REAL(bytes_csr) REAL(bytes_f64) REAL(bytes_f32) REAL(bytes_16) REAL(bytes_vectors)        \
                                  INTEGER(iterations_cusparse) REAL(time_cusparse_s) REAL(time_cusparse_min_s) REAL(time_cusparse_max_s)   \
                                      REAL(us_per_iteration_cusparse) REAL(residual_true_cusparse) INTEGER(iterations_graph)               \
                                          REAL(time_graph_s) REAL(time_graph_min_s) REAL(time_graph_max_s) REAL(us_per_iteration_graph)    \
                                              REAL(residual_true_graph) REAL(time_preprocess_s) INTEGER(averaged)

#define RESULT_IS_TEXT(name) char name[RESULT_TEXT];
#define RESULT_IS_INTEGER(name) int64_t name;
#define RESULT_IS_REAL(name) double name;
typedef struct result_row {
  RESULT_FIELDS(RESULT_IS_TEXT, RESULT_IS_INTEGER, RESULT_IS_REAL)
} result_row;

typedef struct results {
  char card[RESULT_TEXT], driver[RESULT_TEXT], commit[RESULT_TEXT], date[RESULT_TEXT], libraries[RESULT_TEXT], rhs[RESULT_TEXT],
      version[RESULT_TEXT];
  double read_bandwidth, copy_bandwidth; /* B/s */
  int count, room;
  result_row *rows;
} results;

void result_row_clear(result_row *row);                  /* NaN, -1 and "" */
int results_add(results *all, const result_row *row);    /* -1: memory is exhausted */
int results_write(const results *all, const char *path); /* replaces the file as a whole; -1: errno says why */
void results_print_head(void);
void results_print_row(const result_row *row);
void results_print_summary(const results *all);
void results_free(results *all);
#endif
