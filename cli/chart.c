/* Charts as inline SVG. SPDX-License-Identifier: BSD-3-Clause */
#include "chart.h"
#include <math.h>
#include <string.h>

enum {
  WIDTH = 640,
  LEFT = 70,
  RIGHT = 18,
  TOP = 12,
  BOTTOM = 46,
  TICKS = 6,
  BAR_ROW = 34,
  BAR_LEFT = 220,
  BAR_LETTERS = 32,
  BAR_RIGHT = 90
};

void html_text(FILE *file, const char *text) {
  for (; *text; text++) {
    switch (*text) {
    case '&': fputs("&amp;", file); break;
    case '<': fputs("&lt;", file); break;
    case '>': fputs("&gt;", file); break;
    case '"': fputs("&quot;", file); break;
    case '\'': fputs("&#39;", file); break;
    default:
      if ((unsigned char)*text >= 0x20 && *text != 0x7f) fputc(*text, file);
    }
  }
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that about TICKS of them fit. */
static double tick_step(double range) {
  double rough = range / TICKS, power = pow(10, floor(log10(rough))), lead = rough / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

chart_axis chart_linear(double low, double high, double unit, const char *label) {
  if (!(high > low)) high = low + unit;
  return (chart_axis){.low = low, .high = high, .unit = unit, .label = label};
}

chart_axis chart_count(double high, const char *label) {
  chart_axis axis = chart_linear(0, high, 1, label);
  axis.whole = 1;
  return axis;
}

chart_axis chart_logarithmic(double low, double high, const char *label) {
  double from = floor(log10(low) + 1e-9), to = ceil(log10(high) - 1e-9);
  return (chart_axis){.low = pow(10, from), .high = pow(10, to > from ? to : from + 1), .logarithmic = 1, .unit = 1, .label = label};
}

static double share(const chart_axis *axis, double value) {
  double s = axis->logarithmic ? log10(value / axis->low) / log10(axis->high / axis->low) : (value - axis->low) / (axis->high - axis->low);
  return s > 0 ? s < 1 ? s : 1 : 0; /* NaN too */
}

double chart_x(const cli_chart *c, double value) { return c->left + c->width * share(&c->x, value); }
double chart_y(const cli_chart *c, double value) {
  double down = share(&c->y, value);
  return c->top + c->height * (c->y.downwards ? down : 1 - down);
}

/* The first tick that is shown, and how to come from one to the next: by a factor or a sum. */
static double first_tick(const chart_axis *axis, double *step) {
  if (axis->logarithmic) {
    double decades = round(log10(axis->high / axis->low));
    *step = fmax(1, ceil(decades / 7));
    return axis->low;
  }
  *step = tick_step((axis->high - axis->low) / axis->unit) * axis->unit;
  if (axis->whole && *step < 1) *step = 1;
  return ceil(axis->low / *step - 1e-9) * *step;
}

static double next_tick(const chart_axis *axis, double tick, double step) { return axis->logarithmic ? tick * pow(10, step) : tick + step; }

static void tick_label(FILE *file, const chart_axis *axis, double tick) {
  double v = tick / axis->unit;
  int power = (int)lround(log10(tick));
  if (!axis->logarithmic)
    fprintf(file, "%.6g", fabs(v) < 1e-12 ? 0 : v);
  else if (power == 0)
    fputc('1', file);
  else
    fprintf(file, "10<tspan dy='-5' font-size='9'>%s%d</tspan>", power < 0 ? "\xe2\x88\x92" : "", power < 0 ? -power : power);
}

static void draw_x_axis(const cli_chart *c) {
  double step, bottom = c->top + c->height;
  double t = first_tick(&c->x, &step);
  while (t <= c->x.high * (1 + 1e-9)) {
    double x = chart_x(c, t);
    fprintf(c->file, "<line class='grid' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/><text x='%.1f' y='%.1f' text-anchor='middle'>", x, c->top,
            x, bottom, x, bottom + 16);
    tick_label(c->file, &c->x, t);
    fputs("</text>\n", c->file);
    t = next_tick(&c->x, t, step);
  }
  fprintf(c->file, "<text class='name' x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n", c->left + c->width / 2, bottom + 36,
          c->x.label);
}

static void draw_y_axis(const cli_chart *c) {
  double step, middle = c->top + c->height / 2;
  double t = first_tick(&c->y, &step);
  while (t <= c->y.high * (1 + 1e-9)) {
    double y = chart_y(c, t);
    fprintf(c->file, "<line class='grid' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/><text x='%.1f' y='%.1f' text-anchor='end'>", c->left, y,
            c->left + c->width, y, c->left - 7, y + 4);
    tick_label(c->file, &c->y, t);
    fputs("</text>\n", c->file);
    t = next_tick(&c->y, t, step);
  }
  fprintf(c->file, "<text class='name' x='15' y='%.1f' text-anchor='middle' transform='rotate(-90 15 %.1f)'>%s</text>\n", middle, middle,
          c->y.label);
}

static void open_picture(FILE *file, double height, const char *what) {
  fprintf(file, "<svg viewBox='0 0 %d %.0f' role='img' aria-label=\"", WIDTH, height);
  html_text(file, what);
  fputs("\">\n", file);
}

void chart_begin(cli_chart *c, FILE *file, const char *what, double height, chart_axis x, chart_axis y) {
  *c = (cli_chart){file, LEFT, TOP, WIDTH - LEFT - RIGHT, height - TOP - BOTTOM, x, y};
  open_picture(file, height, what);
  draw_x_axis(c);
  draw_y_axis(c);
}

void chart_end(const cli_chart *c) {
  fprintf(c->file, "<rect class='frame' x='%.1f' y='%.1f' width='%.1f' height='%.1f'/></svg>\n", c->left, c->top, c->width, c->height);
}

/* ---- marks ---- */

static int is_drawn(const cli_chart *c, double x, double y) {
  return isfinite(x) && isfinite(y) && (!c->y.logarithmic || y > 0) && (!c->x.logarithmic || x > 0);
}

/* A line of very many points: of those within half a unit of x the least and the largest are drawn, so that spikes stay. */
void chart_line(const cli_chart *c, const char *css, int64_t count, const double *x, const double *y) {
  int pen_down = 0;
  fprintf(c->file, "<path class='line %s' d='", css);
  for (int64_t i = 0, next; i < count; i = next) {
    next = i + 1;
    if (!is_drawn(c, x[i], y[i])) {
      pen_down = 0;
      continue;
    }
    double px = chart_x(c, x[i]), low = chart_y(c, y[i]), high = low, last = low;
    for (; next < count && is_drawn(c, x[next], y[next]) && chart_x(c, x[next]) < px + 0.5; next++) {
      last = chart_y(c, y[next]);
      low = fmin(low, last);
      high = fmax(high, last);
    }
    fprintf(c->file, "%c%.1f %.1f", pen_down ? 'L' : 'M', px, chart_y(c, y[i]));
    if (next > i + 1) fprintf(c->file, "V%.1fV%.1fV%.1f", low, high, last);
    pen_down = 1;
  }
  fputs("'/>\n", c->file);
}

void chart_level(const cli_chart *c, double y, const char *label) {
  double at = chart_y(c, y);
  fprintf(c->file, "<line class='level' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/><text x='%.1f' y='%.1f' text-anchor='start'>%s</text>\n",
          c->left, at, c->left + c->width, at, c->left + 6, at - 5, label);
}

void chart_point(const cli_chart *c, const char *css, double x, double y, const char *text) {
  if (!is_drawn(c, x, y)) return;
  fprintf(c->file, "<circle class='point %s' cx='%.1f' cy='%.1f' r='3.2'><title>", css, chart_x(c, x), chart_y(c, y));
  html_text(c->file, text);
  fputs("</title></circle>\n", c->file);
}

/* ---- bars ---- */

static double sum_of(const chart_bar *bar, int parts) {
  double sum = 0;
  for (int k = 0; k < parts; k++) sum += isfinite(bar->part[k]) ? bar->part[k] : 0;
  return sum;
}

static void draw_bar(FILE *file, const chart_bar *bar, int parts, const char *const *css, double y, double scale) {
  double x = BAR_LEFT;
  fprintf(file, "<text x='%d' y='%.1f' text-anchor='end'", BAR_LEFT - 8, y + 15);
  if (strlen(bar->name) > BAR_LETTERS) fprintf(file, " textLength='%d' lengthAdjust='spacingAndGlyphs'", BAR_LEFT - 12);
  fputc('>', file);
  html_text(file, bar->name);
  fputs("</text>\n", file);
  for (int k = 0; k < parts; k++) {
    if (!(bar->part[k] > 0) || !isfinite(bar->part[k])) continue;
    fprintf(file, "<rect class='%s' x='%.2f' y='%.1f' width='%.2f' height='22'><title>", css[k], x, y, bar->part[k] * scale);
    html_text(file, bar->text[k]);
    fputs("</title></rect>\n", file);
    x += bar->part[k] * scale;
  }
  fprintf(file, "<text x='%.1f' y='%.1f'>", x + 7, y + 15);
  html_text(file, bar->total);
  fputs("</text>\n", file);
}

void chart_bars(FILE *file, const char *what, int bars, const chart_bar *bar, int parts, const char *const *css) {
  double most = 0, width = WIDTH - BAR_LEFT - BAR_RIGHT;
  for (int i = 0; i < bars; i++) most = fmax(most, sum_of(&bar[i], parts));
  open_picture(file, bars * BAR_ROW + 8, what);
  for (int i = 0; i < bars; i++) draw_bar(file, &bar[i], parts, css, 6 + i * BAR_ROW, most > 0 ? width / most : 0);
  fputs("</svg>\n", file);
}
