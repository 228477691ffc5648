/* The charts of the page. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "chart.h"
#include "cli.h"
#include "page.h"
#include "text.h"

enum { HEIGHT = 340, PRECISION_HEIGHT = 290, MAP_COLUMNS = 160, MAP_ROWS = 96, TIME_PARTS = 5, BYTE_PARTS = 4 };

static const char *const level_css[RUN_LEVELS] = {"m0", "m4", "m8"};
static const char *const level_name[RUN_LEVELS] = {"16 bits", "32 bits", "FP64"};

static double unit_of_time(double most, const char **name) {
  *name = most >= 1 ? "time [s]" : most >= 1e-3 ? "time [ms]" : "time [\xc2\xb5s]";
  return most >= 1 ? 1 : most >= 1e-3 ? 1e-3 : 1e-6;
}

static void css_of_run(int index, char css[16]) { snprintf(css, 16, "s%d%s", index % 6, index < 6 ? "" : " dash"); }

/* ---- residuals ---- */

static void widen(double value, double *low, double *high) {
  if (!(value > 0) || !isfinite(value)) return;
  *low = fmin(*low, value);
  *high = fmax(*high, value);
}

static chart_axis residual_axis(int runs, const cli_run *run) {
  double low = INFINITY, high = 0;
  for (int i = 0; i < runs; i++) {
    if (!run[i].has_trace) continue;
    for (int64_t k = 0; k < run[i].history; k++) widen(run[i].history_residual[k], &low, &high);
    for (int64_t k = 0; k < run[i].residuals; k++) widen(run[i].residual[k], &low, &high);
    widen(run[i].report.tolerance, &low, &high);
  }
  return high > 0 ? chart_logarithmic(low, high, "residual / ||b||") : chart_logarithmic(0.1, 1, "residual / ||b||");
}

/* The recursive residuals as a line, the true ones as circles. */
static void draw_run(const cli_chart *chart, const cli_run *run, int index, int against_time) {
  char css[16], text[160];
  double *x = cli_allocate(((size_t)run->history + 1) * sizeof *x);
  css_of_run(index, css);
  for (int64_t k = 0; k < run->history; k++) x[k] = against_time ? run_time_at(run, run->history_at[k]) : run->history_at[k];
  chart_line(chart, css, run->history, x, run->history_residual);
  free(x);
  for (int64_t k = 0; k < run->residuals; k++) {
    double at = run->residual_at[k];
    snprintf(text, sizeof text, "true residual %s at iteration %.0f (%.40s)", text_residual(run->residual[k]).text, at,
             run->residual_why[k]);
    css_of_run(index % 6, css); /* a circle is not dashed */
    chart_point(chart, css, against_time ? run_time_at(run, at) : at, run->residual[k], text);
  }
}

static void residual_figure(FILE *file, int runs, const cli_run *run, int against_time) {
  cli_chart chart;
  const char *name = "iteration";
  double most = 0, unit = 1, tolerance = NAN;
  for (int i = 0; i < runs; i++) {
    if (!run[i].has_trace) continue;
    most = fmax(most, against_time ? run_time_at(&run[i], INFINITY) : run_last_iteration(&run[i]));
    tolerance = fmin(tolerance, run[i].report.tolerance);
  }
  if (against_time) unit = unit_of_time(most, &name);
  fprintf(file, "<figure><h3>Residual against %s</h3>\n", against_time ? "time" : "iterations");
  chart_begin(&chart, file, against_time ? "residuals against time" : "residuals against iterations", HEIGHT,
              against_time ? chart_linear(0, most, unit, name) : chart_count(most, name), residual_axis(runs, run));
  if (tolerance > 0) chart_level(&chart, tolerance, "tolerance");
  for (int i = 0; i < runs; i++)
    if (run[i].has_trace) draw_run(&chart, &run[i], i, against_time);
  chart_end(&chart);
  fputs("</figure>\n", file);
}

void page_residuals(FILE *file, int runs, const cli_run *run) {
  char css[16];
  int several = 0;
  fputs("<h2>Residuals</h2>\n<div>", file);
  for (int i = 0; i < runs; i++) {
    if (!run[i].has_trace) continue;
    snprintf(css, sizeof css, "b%d%s", i % 6, i < 6 ? "" : " again");
    page_key(file, css, run[i].label);
    several |= run[i].report.columns > 1;
  }
  fprintf(file,
          "</div>\n<p>Lines: the loop's recursive residual. Circles: the true residual, where it was computed.%s</p>\n<div class='row'>\n",
          several ? " Of several right-hand sides the last is shown." : "");
  residual_figure(file, runs, run, 0);
  residual_figure(file, runs, run, 1);
  fputs("</div>\n", file);
}

/* ---- precisions of one run ---- */

/* Share of the blocks that a change reads at levels up to this one. */
static double share_up_to(const cli_run *run, int64_t change, int level) {
  const double *count = run->count + change * run->groups * RUN_LEVELS;
  double part = 0, all = 0;
  for (int64_t k = 0; k < run->groups * RUN_LEVELS; k++) {
    all += count[k];
    part += k % RUN_LEVELS <= level ? count[k] : 0;
  }
  return part / all;
}

/* Everything below the share of blocks at levels up to `level`, as steps. Wide levels are drawn first, narrow ones over them. */
static void draw_area(const cli_chart *chart, const cli_run *run, int level) {
  double bottom = chart_y(chart, 0);
  fprintf(chart->file, "<path class='%s' d='M%.1f %.1f", level_css[level], chart_x(chart, 0), bottom);
  for (int64_t k = 0; k < run->changes; k++)
    fprintf(chart->file, "H%.1fV%.1f", chart_x(chart, run->change_at[k]), chart_y(chart, 100 * share_up_to(run, k, level)));
  fprintf(chart->file, "H%.1fV%.1fZ'/>\n", chart_x(chart, run_last_iteration(run)), bottom);
}

static void mix_figure(FILE *file, const cli_run *run) {
  cli_chart chart;
  fputs("<figure><h3>Precision mix over the iterations</h3>\n", file);
  chart_begin(&chart, file, "share of the column blocks at each precision, over the iterations", PRECISION_HEIGHT,
              chart_count(run_last_iteration(run), "iteration"), chart_linear(0, 100, 1, "share of blocks [%]"));
  for (int level = RUN_64; level >= RUN_16; level--) draw_area(&chart, run, level);
  chart_end(&chart);
  fputs("</figure>\n", file);
}

/* Mean level of the groups of a row, on the scale of the colours. */
static int colour_at(const cli_run *run, int64_t change, int64_t from, int64_t to) {
  const double *count = run->count + (change * run->groups + from) * RUN_LEVELS;
  double sum = 0, all = 0;
  for (int64_t k = 0; k < (to - from) * RUN_LEVELS; k++) {
    sum += (double)(k % RUN_LEVELS) * count[k];
    all += count[k];
  }
  return (int)lround(sum / all * (PAGE_MAP_COLOURS - 1) / RUN_64);
}

typedef struct map {
  int rows, columns;
  unsigned char colour[MAP_ROWS][MAP_COLUMNS];
} map;

static void fill_map(const cli_run *run, map *m) {
  double last = run_last_iteration(run);
  m->rows = run->groups < MAP_ROWS ? (int)run->groups : MAP_ROWS;
  m->columns = last < MAP_COLUMNS ? (int)last : MAP_COLUMNS;
  for (int c = 0; c < m->columns; c++) {
    int64_t change = run_change_at(run, last * (c + 0.5) / m->columns);
    for (int r = 0; r < m->rows; r++)
      m->colour[r][c] = (unsigned char)colour_at(run, change < 0 ? 0 : change, run->groups * r / m->rows, run->groups * (r + 1) / m->rows);
  }
}

/* All cells of one colour as one path; neighbours in a row are one rectangle. Both edges are rounded, not a width: the next one begins
 * where this one ends. */
static void draw_colour(const cli_chart *chart, const map *m, int colour) {
  double w = chart->width / m->columns, h = chart->height / m->rows;
  int begun = 0;
  for (int r = 0; r < m->rows; r++)
    for (int c = 0, next; c < m->columns; c = next) {
      next = c + 1;
      if (m->colour[r][c] != colour) continue;
      while (next < m->columns && m->colour[r][next] == colour) next++;
      if (!begun++) fprintf(chart->file, "<path class='m%d' shape-rendering='crispEdges' d='", colour);
      double left = chart->left + c * w, top = chart->top + r * h;
      fprintf(chart->file, "M%.1f %.1fH%.1fV%.1fH%.1fz", left, top, chart->left + next * w, top + h, left);
    }
  if (begun) fputs("'/>\n", chart->file);
}

static void map_figure(FILE *file, const cli_run *run) {
  cli_chart chart;
  map *m = cli_allocate(sizeof *m);
  fputs("<figure><h3>Precision over the matrix</h3>\n", file);
  chart_axis y = chart_count((double)run->blocks, "column block of 64 unknowns");
  y.downwards = 1;
  fill_map(run, m);
  chart_begin(&chart, file, "precision of each column block, over the iterations", PRECISION_HEIGHT,
              chart_count(run_last_iteration(run), "iteration"), y);
  for (int colour = 0; colour < PAGE_MAP_COLOURS; colour++) draw_colour(&chart, m, colour);
  chart_end(&chart);
  fputs("</figure>\n", file);
  free(m);
}

/* The level that all blocks are read at from the first iteration to the last; -1 where there is more to see. */
static int only_level(const cli_run *run) {
  if (!run->blocks) return RUN_64;
  for (int level = 0; level < RUN_LEVELS && run->changes == 1; level++)
    if (share_up_to(run, 0, level) == 1) return level == 0 || share_up_to(run, 0, level - 1) == 0 ? level : -1;
  return -1;
}

static void precision_words(FILE *file, const cli_run *run, int only) {
  if (!run->blocks) fputs("This storage has no levels: everything is read in FP64. ", file);
  if (run->blocks && only >= 0) fprintf(file, "All column blocks are read at %s, from the first iteration to the last. ", level_name[only]);
  if (run->blocks) fputs("This is what policy and guard ask for; tiles that are exact at fewer bits are read at those. ", file);
  if (only < 0) fputs("Colours between those of the legend are mixes. ", file);
  if (run->levels_at_run_ends) fputs("The device chose the levels by itself: they are known where its runs ended. ", file);
}

void page_precision(FILE *file, const cli_run *run) {
  int only = only_level(run);
  fputs("<h2>Precision: ", file);
  html_text(file, run->label);
  fputs("</h2>\n<div>", file);
  for (int level = 0; level < RUN_LEVELS && only < 0; level++) page_key(file, level_css[level], level_name[level]);
  fputs("</div>\n<p>", file);
  precision_words(file, run, only);
  fputs("</p>\n", file);
  if (only >= 0) return;
  fputs("<div class='row'>\n", file);
  mix_figure(file, run);
  map_figure(file, run);
  fputs("</div>\n", file);
}

/* ---- bars ---- */

static double known(double value) { return value > 0 && isfinite(value) ? value : 0; }

typedef struct bar_data {
  double part[TIME_PARTS];
  char text[TIME_PARTS][64], total[64];
} bar_data;

static void add_texts(bar_data *data, chart_bar *bar, int parts, const char *const *name, cli_text (*format)(double), const cli_run *run) {
  double sum = 0;
  for (int k = 0; k < parts; k++) {
    snprintf(data->text[k], sizeof data->text[k], "%s: %.40s", name[k], format(data->part[k]).text);
    sum += data->part[k];
  }
  snprintf(data->total, sizeof data->total, "%s", format(sum).text);
  *bar = (chart_bar){run->label, data->total, data->part, (const char(*)[64])data->text};
}

static void figure_of_bars(FILE *file, const char *title, int runs, const chart_bar *bar, int parts, const char *const *css,
                           const char *const *name) {
  fprintf(file, "<figure><h3>%s</h3><div>", title);
  for (int k = 0; k < parts; k++) page_key(file, css[k], name[k]);
  fputs("</div>\n", file);
  chart_bars(file, title, runs, bar, parts, css);
  fputs("</figure>\n", file);
}

static void time_figure(FILE *file, int runs, const cli_run *run) {
  static const char *const css[] = {"bv", "b4", "b2", "b0", "b1"}, *const name[] = {"read", "ordering", "set-up", "loop", "certificate"};
  bar_data data[PAGE_RUNS_MOST];
  chart_bar bar[PAGE_RUNS_MOST];
  for (int i = 0; i < runs; i++) {
    const ht_report *r = &run[i].report;
    const double part[] = {known(r->time_read_s), known(r->time_ordering_s), known(r->time_setup_s - known(r->time_ordering_s)),
                           known(r->time_solve_s - known(r->time_certificate_s)), known(r->time_certificate_s)};
    memcpy(data[i].part, part, sizeof part);
    add_texts(&data[i], &bar[i], TIME_PARTS, name, text_seconds, &run[i]);
  }
  figure_of_bars(file, "Time by phase", runs, bar, TIME_PARTS, css, name);
}

static void bytes_figure(FILE *file, int runs, const cli_run *run) {
  static const char *const css[] = {"m8", "m4", "m0", "bv"}, *const name[] = {"matrix at FP64", "at 32 bits", "at 16 bits", "vectors"};
  bar_data data[PAGE_RUNS_MOST];
  chart_bar bar[PAGE_RUNS_MOST];
  for (int i = 0; i < runs; i++) {
    const ht_report *r = &run[i].report;
    const double part[] = {known(r->bytes_f64), known(r->bytes_f32), known(r->bytes_16), known(r->bytes_vectors)};
    memcpy(data[i].part, part, sizeof part);
    add_texts(&data[i], &bar[i], BYTE_PARTS, name, text_bytes, &run[i]);
  }
  figure_of_bars(file, "Bytes by precision", runs, bar, BYTE_PARTS, css, name);
}

void page_bars(FILE *file, int runs, const cli_run *run) {
  fputs("<h2>Time and bytes</h2>\n<div class='row'>\n", file);
  time_figure(file, runs, run);
  bytes_figure(file, runs, run);
  fputs("</div>\n", file);
}
