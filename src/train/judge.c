/* How a policy does when it is deployed: the likeliest actions, weights of 16 bits. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "train/rollout.h"
#include "train/saving.h"
#include "train/view.h"

static void decide(const ht_packed *packed, ht_lane *lane, ht_judgement *j) {
  ht_course *c = &lane->course;
  int width = packed->layer[HT_PACKED_LAYERS - 1].out, zeros = 0;
  while (zeros < HT_LEARNING_RISES - 1 && !(c->iteration >> zeros & 1)) zeros++;
  for (int64_t first = 0; first < c->environment->blocks; first += lane->rows.rows) {
    int64_t left = c->environment->blocks - first, rows = left < lane->rows.rows ? left : lane->rows.rows;
    ht_view_tiles(c, first, rows, packed->layer[0].in, lane->rows.activation[0]);
    ht_packed_forward(packed, rows, &lane->rows);
    for (int64_t b = 0; b < rows; b++) {
      const float *y = lane->rows.activation[HT_PACKED_LAYERS] + b * width;
      int best = 0;
      for (int a = 1; a < packed->actions; a++)
        if (y[a] > y[best]) best = a;
      uint8_t level = ht_view_level(best);
      if (c->iteration > 0 && level > c->level[first + b]) j->rises[zeros]++;
      c->level[first + b] = level;
    }
  }
}

void ht_judge(ht_rollout *r, const ht_packed *packed, int environment, int64_t interval, ht_judgement *j) {
  const ht_environment *e = r->environment[environment];
  ht_lane lane = r->judge;
  ht_course *c = &lane.course;
  double bytes = 0, read = 0;
  int64_t looks = 0, replacements = 0;
  *j = (ht_judgement){.iterations_64 = e->iterations_64, .true_64 = e->true_64};
  ht_course_begin(e, 0, c);
  while (!c->over && !ht_stop_requested(r->ctx)) {
    if (c->iteration % interval == 0) {
      decide(packed, &lane, j);
      looks++;
    }
    for (int64_t b = 0; b < e->blocks; b++) j->share[c->level[b]] += 1;
    bytes += ht_course_step(c, ht_most_iterations(e));
    read += c->read;
    replacements += c->replaced;
  }
  j->iterations = c->iteration;
  j->true_residual = ht_course_true_residual(c);
  j->reached = c->reached;
  for (int level = 0; level < HT_LEVELS; level++) j->share[level] /= (double)(e->blocks * (c->iteration > 0 ? c->iteration : 1));
  j->time = r->saving ? ht_saving_time(r->saving[environment], c, read, replacements, looks)
                      : bytes / (double)e->iterations_64 + 2 * ht_missing_progress(c);
}

/* A decision every 2^k iterations sees only the rises of iterations whose number ends in k zero bits or more. */
double ht_share_delayed(int count, const ht_judgement *judgement, int64_t interval) {
  int64_t all = 0, late = 0;
  for (int k = 0; k < count; k++)
    for (int z = 0; z < HT_LEARNING_RISES; z++) {
      all += judgement[k].rises[z];
      if ((int64_t)1 << z < interval) late += judgement[k].rises[z];
    }
  return all ? (double)late / (double)all : 0;
}

int64_t ht_longest_interval(int count, const ht_judgement *judgement) {
  static const double MOST_DELAYED = 0.1;
  int64_t best = 1;
  while (best < HT_LEARNED_LONGEST && ht_share_delayed(count, judgement, 2 * best) < MOST_DELAYED) best *= 2;
  return best;
}
