/* SPDX-License-Identifier: BSD-3-Clause */
#include "results.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void result_row_clear(result_row *row) {
#define FIELD_TEXT(name, help) row->name[0] = 0;
#define FIELD_INTEGER(name, help) row->name = -1;
#define FIELD_REAL(name, help) row->name = NAN;
#include "results.def"
#undef FIELD_TEXT
#undef FIELD_INTEGER
#undef FIELD_REAL
}

int results_add(results *all, const result_row *row) {
  if (all->count == all->room) {
    int room = all->room ? 2 * all->room : 64;
    result_row *more = realloc(all->rows, (size_t)room * sizeof *more);
    if (!more) return -1;
    all->rows = more;
    all->room = room;
  }
  all->rows[all->count++] = *row;
  return 0;
}

void results_free(results *all) { free(all->rows); }

/* ---- JSON ---- */

static void write_text(FILE *f, const char *text) {
  fputc('"', f);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\') fputc('\\', f);
    if (*c < 0x20)
      fprintf(f, "\\u%04x", *c);
    else
      fputc(*c, f);
  }
  fputc('"', f);
}

static void write_real(FILE *f, double value) {
  if (isfinite(value))
    fprintf(f, "%.9g", value);
  else
    fputs("null", f);
}

static void write_name(FILE *f, int *first, const char *name) {
  fprintf(f, "%s\"%s\": ", *first ? "{" : ", ", name);
  *first = 0;
}

static void write_row(FILE *f, const result_row *row) {
  int first = 1;
#define FIELD_TEXT(name, help) write_name(f, &first, #name), write_text(f, row->name);
#define FIELD_INTEGER(name, help) write_name(f, &first, #name), fprintf(f, "%lld", (long long)row->name);
#define FIELD_REAL(name, help) write_name(f, &first, #name), write_real(f, row->name);
#include "results.def"
#undef FIELD_TEXT
#undef FIELD_INTEGER
#undef FIELD_REAL
  fputc('}', f);
}

/* ---- Geometric means of one class and policy ---- */

typedef struct means {
  int rows, averaged;
  double cusparse, graph, f64, share; /* NaN where there is nothing to average */
} means;

typedef struct mean {
  double sum;
  int count;
} mean;

static void mean_add(mean *m, double value) {
  if (!(value > 0) || !isfinite(value)) return;
  m->sum += log(value);
  m->count++;
}
static double mean_value(const mean *m) { return m->count ? exp(m->sum / m->count) : NAN; }

static int same_group(const result_row *a, const result_row *b) {
  return !strcmp(a->class, b->class) && !strcmp(a->policy, b->policy) && !strcmp(a->precond, b->precond);
}

static means means_of(const results *all, const result_row *group) {
  mean cusparse = {0}, graph = {0}, f64 = {0}, share = {0};
  means m = {0};
  for (int i = 0; i < all->count; i++) {
    const result_row *row = &all->rows[i];
    if (!same_group(row, group)) continue;
    m.rows++;
    if (row->averaged != 1) continue;
    m.averaged++;
    mean_add(&cusparse, row->speedup_cusparse);
    mean_add(&graph, row->speedup_graph);
    mean_add(&f64, row->speedup_f64);
    mean_add(&share, row->share_of_read_bandwidth);
  }
  m.cusparse = mean_value(&cusparse);
  m.graph = mean_value(&graph);
  m.f64 = mean_value(&f64);
  m.share = mean_value(&share);
  return m;
}

/* A group is told by its first row. */
static int is_first(const results *all, int index) {
  for (int i = 0; i < index; i++)
    if (same_group(&all->rows[i], &all->rows[index])) return 0;
  return 1;
}

static void write_summary(FILE *f, const results *all) {
  const char *between = "\n  ";
  fputs(" \"summary\": [", f);
  for (int i = 0; i < all->count; i++) {
    if (!is_first(all, i)) continue;
    means m = means_of(all, &all->rows[i]);
    fprintf(f, "%s{\"class\": ", between);
    write_text(f, all->rows[i].class);
    fputs(", \"policy\": ", f);
    write_text(f, all->rows[i].policy);
    fputs(", \"precond\": ", f);
    write_text(f, all->rows[i].precond);
    fprintf(f, ", \"rows\": %d, \"averaged\": %d, \"speedup_cusparse\": ", m.rows, m.averaged);
    write_real(f, m.cusparse);
    fputs(", \"speedup_graph\": ", f);
    write_real(f, m.graph);
    fputs(", \"speedup_f64\": ", f);
    write_real(f, m.f64);
    fputs(", \"share_of_read_bandwidth\": ", f);
    write_real(f, m.share);
    fputc('}', f);
    between = ",\n  ";
  }
  fputs("\n ]\n}\n", f);
}

static void write_all(FILE *f, const results *all) {
  const struct {
    const char *name, *text;
  } head[] = {{"card", all->card},           {"driver", all->driver}, {"commit", all->commit},  {"date", all->date},
              {"libraries", all->libraries}, {"rhs", all->rhs},       {"version", all->version}};
  fputs("{\n", f);
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
    fprintf(f, " \"%s\": ", head[i].name);
    write_text(f, head[i].text);
    fputs(",\n", f);
  }
  fputs(" \"read_bandwidth_gbytes_per_s\": ", f);
  write_real(f, all->read_bandwidth * 1e-9);
  fputs(",\n \"copy_bandwidth_gbytes_per_s\": ", f);
  write_real(f, all->copy_bandwidth * 1e-9);
  fputs(",\n \"rows\": [", f);
  for (int i = 0; i < all->count; i++) {
    fputs(i ? ",\n  " : "\n  ", f);
    write_row(f, &all->rows[i]);
  }
  fputs("\n ],\n", f);
  write_summary(f, all);
}

int results_write(const results *all, const char *path) {
  char beside[4096];
  if (snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside) return -1;
  FILE *f = fopen(beside, "w");
  if (!f) return -1;
  write_all(f, all);
  int bad = ferror(f);
  if (fclose(f) || bad) return -1;
  return rename(beside, path);
}

/* ---- Table ---- */

void results_print_head(void) {
  printf("%-24s %-15s %8s %9s  %5s %9s %8s  | %5s %8s  %5s %8s  | %7s %7s %6s  %5s %6s %5s  %8s %-10s %s\n", "matrix", "policy", "n", "nnz",
         "it", "time ms", "us/it", "it", "sample", "it", "graph", "xsample", "xgraph", "xf64", "GB/s", "share", "floor", "setup ms",
         "engine", "outcome, residual");
  fflush(stdout);
}

void results_print_row(const result_row *r) {
  if (r->error[0]) {
    printf("%-24.24s %-15s %s\n", r->matrix, r->policy, r->error);
    fflush(stdout);
    return;
  }
  printf(
      "%-24.24s %-15s %8lld %9lld  %5lld %9.3f %8.2f  | %5lld %8.2f  %5lld %8.2f  | %7.2f %7.2f %6.2f  %5.0f %5.1f%% %5.1f  %8.2f %-10.10s "
      "%s %.1e%s\n",
      r->matrix, r->policy, (long long)r->n, (long long)r->nnz, (long long)r->iterations, 1e3 * r->time_s, r->us_per_iteration,
      (long long)r->iterations_cusparse, r->us_per_iteration_cusparse, (long long)r->iterations_graph, r->us_per_iteration_graph,
      r->speedup_cusparse, r->speedup_graph, r->speedup_f64, r->gbytes_per_s, 100 * r->share_of_read_bandwidth, r->floor_us,
      1e3 * r->time_setup_s, r->engine, r->outcome, r->residual_true, r->averaged == 1 ? "" : " (not averaged)");
  fflush(stdout);
}

void results_print_summary(const results *all) {
  printf("\ngeometric means: class, policy, rows averaged of all, against sample, graph, own fixed:f64; share of read bandwidth\n");
  for (int i = 0; i < all->count; i++) {
    if (!is_first(all, i)) continue;
    means m = means_of(all, &all->rows[i]);
    printf("%-10s %-15s %-7s %3d of %3d  %7.2f %7.2f %7.2f  %5.1f%%\n", all->rows[i].class, all->rows[i].policy, all->rows[i].precond,
           m.averaged, m.rows, m.cusparse, m.graph, m.f64, 100 * m.share);
  }
  fflush(stdout);
}
