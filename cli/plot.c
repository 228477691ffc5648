/* A plot in plain characters. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "show.h"
#include "text.h"

enum { WIDTH = 60, HEIGHT = 8 };

/* Row of a residual, 0 at the top; low and high are powers of ten. */
static int row_of(double residual, double low, double high) {
  double share = (high - log10(residual)) / (high - low);
  return (int)fmin(HEIGHT - 1, fmax(0, floor(share * HEIGHT)));
}

static int find_range(const double *history, int64_t count, double tolerance, double *low, double *high) {
  double least = tolerance > 0 ? tolerance : INFINITY, most = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!(history[i] > 0) || isinf(history[i])) continue;
    least = fmin(least, history[i]);
    most = fmax(most, history[i]);
  }
  *low = floor(log10(least));
  *high = ceil(log10(most));
  return most > 0 && *high > *low;
}

/* Mark, in each column, every row between the least and the largest residual of its iterations: spikes stay visible. */
static void draw_column(char canvas[HEIGHT][WIDTH + 1], int column, const double *history, int64_t from, int64_t to, double low,
                        double high) {
  int top = HEIGHT, bottom = -1;
  for (int64_t i = from; i < to; i++) {
    if (!(history[i] > 0) || isinf(history[i])) continue;
    int row = row_of(history[i], low, high);
    if (row < top) top = row;
    if (row > bottom) bottom = row;
  }
  for (int row = top; row <= bottom; row++) canvas[row][column] = '*';
}

void plot_convergence(FILE *file, const double *history, int64_t count, double tolerance, const char *note) {
  char canvas[HEIGHT][WIDTH + 1];
  double low, high;
  if (count < 3 || !find_range(history, count, tolerance, &low, &high)) return;
  int columns = count < WIDTH ? (int)count : WIDTH, goal = tolerance > 0 ? row_of(tolerance, low, high) : -1;
  for (int row = 0; row < HEIGHT; row++) {
    memset(canvas[row], row == goal ? '-' : ' ', (size_t)columns);
    canvas[row][columns] = 0;
  }
  for (int c = 0; c < columns; c++) {
    int64_t from = count / columns * c + count % columns * c / columns,
            to = count / columns * (c + 1) + count % columns * (c + 1) / columns;
    draw_column(canvas, c, history, from, to, low, high);
  }
  for (int row = 0; row < HEIGHT; row++) {
    char label[16] = "";
    if (row == 0) snprintf(label, sizeof label, "1e%+03.0f", high);
    if (row == HEIGHT - 1) snprintf(label, sizeof label, "1e%+03.0f", low);
    size_t used = strlen(canvas[row]);
    while (used && canvas[row][used - 1] == ' ') canvas[row][--used] = 0;
    line(file, row ? NULL : "convergence", "%5s |%s%s%s", label, canvas[row], row == goal ? " tolerance" : "", row ? "" : note);
  }
}
