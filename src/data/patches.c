/* Compact patches of rows: coordinates from the graph, then bisection. SPDX-License-Identifier: BSD-3-Clause */
#include "data/patches.h"
#include <string.h>

enum { AXES = 3 };

typedef struct patcher {
  const ht_csr_view *a;
  int64_t rows;
  int32_t *coordinate[AXES];
  int32_t *order, *scratch, *count; /* n each; count: n + 2 */
} patcher;

/* ---- coordinates ---- */

/* Breadth-first distances from `root`; the components after its own are joined on, farther out. queue: n entries. */
static void find_distances(const ht_csr_view *a, int32_t root, int32_t *distance, int32_t *queue) {
  int64_t head = 0, tail = 0, next = 0;
  memset(distance, 255, (size_t)a->n * sizeof *distance);
  for (int32_t start = root, base = 0; tail < a->n; start = (int32_t)next) {
    distance[start] = base;
    queue[tail++] = start;
    while (head < tail) {
      int32_t v = queue[head++];
      for (int64_t k = a->row_start[v]; k < a->row_start[v + 1]; k++) {
        int32_t w = a->columns[k];
        if (distance[w] >= 0) continue;
        distance[w] = distance[v] + 1;
        queue[tail++] = w;
      }
    }
    base = distance[queue[tail - 1]] + 1;
    while (next < a->n && distance[next] >= 0) next++;
  }
}

/* The row whose nearest landmark is farthest away. */
static int32_t farthest(int64_t n, int axes, int32_t *const *distance, const int32_t *also) {
  int32_t best = 0, best_distance = -1;
  for (int64_t i = 0; i < n; i++) {
    int32_t nearest = also ? also[i] : INT32_MAX;
    for (int k = 0; k < axes; k++)
      if (distance[k][i] < nearest) nearest = distance[k][i];
    if (nearest > best_distance) {
      best_distance = nearest;
      best = (int32_t)i;
    }
  }
  return best;
}

/* The second landmark lies opposite the first, on the same axis: it only helps to choose the others. */
static void find_coordinates(patcher *p) {
  int64_t n = p->a->n;
  find_distances(p->a, 0, p->scratch, p->order);
  int32_t first = p->order[n - 1];
  find_distances(p->a, first, p->coordinate[0], p->order);
  find_distances(p->a, p->order[n - 1], p->scratch, p->order);
  for (int k = 1; k < AXES; k++) find_distances(p->a, farthest(n, k, p->coordinate, p->scratch), p->coordinate[k], p->order);
}

/* ---- bisection ---- */

static int longest_axis(const patcher *p, int64_t begin, int64_t end, int32_t *low, int32_t *high) {
  int best = 0;
  int32_t extent = -1;
  for (int k = 0; k < AXES; k++) {
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (int64_t i = begin; i < end; i++) {
      int32_t c = p->coordinate[k][p->order[i]];
      if (c < least) least = c;
      if (c > most) most = c;
    }
    if (most - least <= extent) continue;
    extent = most - least;
    best = k;
    *low = least;
    *high = most;
  }
  return best;
}

/* Puts the `left` rows of the smallest coordinates first; rows of the same coordinate stay in order. */
static void divide(patcher *p, int64_t begin, int64_t end, int64_t left) {
  int32_t low = 0, high = 0;
  const int32_t *c = p->coordinate[longest_axis(p, begin, end, &low, &high)];
  memset(p->count, 0, ((size_t)(high - low) + 1) * sizeof *p->count);
  for (int64_t i = begin; i < end; i++) p->count[c[p->order[i]] - low]++;
  int32_t cut = low;
  int64_t below = 0;
  while (below + p->count[cut - low] <= left && cut < high) below += p->count[cut++ - low];
  int64_t ties = left - below, to_left = begin, to_right = begin + left;
  for (int64_t i = begin; i < end; i++) {
    int32_t row = p->order[i];
    int goes_left = c[row] < cut || (c[row] == cut && ties-- > 0);
    p->scratch[goes_left ? to_left++ : to_right++] = row;
  }
  memcpy(p->order + begin, p->scratch + begin, (size_t)(end - begin) * sizeof *p->order);
}

/* Recursion as deep as log2 of the patches. */
static void bisect(patcher *p, int64_t begin, int64_t end) {
  int64_t patches = (end - begin + p->rows - 1) / p->rows;
  if (patches <= 1) return;
  int64_t left = patches / 2 * p->rows;
  divide(p, begin, end, left);
  bisect(p, begin, begin + left);
  bisect(p, begin + left, end);
}

ht_status ht_order_patches(ht_context *ctx, const ht_csr_view *a, int64_t rows, int32_t *order) {
  patcher p = {.a = a, .rows = rows, .order = order};
  ht_status status = HT_OK;
  for (int k = 0; k < AXES; k++) HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(int32_t), &p.coordinate[k]), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n, sizeof(int32_t), &p.scratch), done);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, a->n + 2, sizeof(int32_t), &p.count), done);
  if (a->n > rows) find_coordinates(&p);
  for (int64_t i = 0; i < a->n; i++) order[i] = (int32_t)i;
  bisect(&p, 0, a->n);
done:
  for (int k = 0; k < AXES; k++) ht_release(ctx, p.coordinate[k]);
  ht_release(ctx, p.scratch);
  ht_release(ctx, p.count);
  return status;
}
