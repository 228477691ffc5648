/* The rows of the benchmark: table, JSON and geometric means. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_RESULTS_H
#define BENCH_GPU_RESULTS_H
#include <stdint.h>

enum { RESULT_TEXT = 256 };

typedef struct result_row {
#define FIELD_TEXT(name, help) char name[RESULT_TEXT];
#define FIELD_INTEGER(name, help) int64_t name;
#define FIELD_REAL(name, help) double name;
#include "results.def"
#undef FIELD_TEXT
#undef FIELD_INTEGER
#undef FIELD_REAL
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
