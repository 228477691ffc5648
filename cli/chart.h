/* Charts as inline SVG: a frame with axes, and what is drawn into it. Colours are classes that the page's style sheet defines.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_CHART_H
#define HALFTONE_CLI_CHART_H
#include <stdint.h>
#include <stdio.h>

typedef struct chart_axis {
  double low, high;  /* of what is shown */
  int logarithmic;   /* then both are above 0 */
  double unit;       /* ticks show value / unit */
  int downwards;     /* a y axis whose low end is at the top, as the rows of a matrix */
  int whole;         /* counts: no ticks between whole numbers */
  const char *label; /* plain text, already fit for HTML */
} chart_axis;

typedef struct cli_chart {
  FILE *file;
  double left, top, width, height; /* of the frame, inside the picture */
  chart_axis x, y;
} cli_chart;

/* Text with what HTML would take for itself escaped, and control characters left out. */
void html_text(FILE *file, const char *text);

/* Axes for values from low to high; the logarithmic one ends at powers of ten. */
chart_axis chart_linear(double low, double high, double unit, const char *label);
chart_axis chart_count(double high, const char *label); /* whole numbers from 0 */
chart_axis chart_logarithmic(double low, double high, const char *label);

/* `what`: for those who cannot see the picture. */
void chart_begin(cli_chart *chart, FILE *file, const char *what, double height, chart_axis x, chart_axis y);
void chart_end(const cli_chart *chart);
double chart_x(const cli_chart *chart, double value); /* clamped into the frame */
double chart_y(const cli_chart *chart, double value);
/* Points in ascending x; those that are not finite, or not above 0 on a logarithmic axis, are gaps. */
void chart_line(const cli_chart *chart, const char *css, int64_t count, const double *x, const double *y);
void chart_level(const cli_chart *chart, double y, const char *label); /* a dashed line across */
/* A point, with a text that appears under the pointer. */
void chart_point(const cli_chart *chart, const char *css, double x, double y, const char *text);

/* Horizontal bars, one a row, of stacked parts. */
typedef struct chart_bar {
  const char *name, *total; /* beside it */
  const double *part;       /* not finite: nothing is drawn */
  const char (*text)[64];   /* of each part, under the pointer */
} chart_bar;
void chart_bars(FILE *file, const char *what, int bars, const chart_bar *bar, int parts, const char *const *part_css);

#endif
