/* Sums a column, added in the order of the chunks. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_sums.h"
#include <sched.h>
#include <string.h>

enum { SLOTS_A_THREAD = 2 };

static double *part_of(const ht_sums *s, int64_t slot) { return s->part + slot * s->width * HT_LEVEL_64; }

ht_status ht_sums_create(ht_context *ctx, int64_t columns, int64_t width, ht_sums *s) {
  *s = (ht_sums){.columns = columns, .slots = (int64_t)SLOTS_A_THREAD * ctx->threads, .width = width, .adding = ATOMIC_FLAG_INIT};
  HT_TRY(ctx, ht_allocate(ctx, columns * HT_LEVEL_64, sizeof *s->total, &s->total));
  HT_TRY(ctx, ht_allocate(ctx, s->slots, sizeof *s->range, &s->range));
  HT_TRY(ctx, ht_allocate(ctx, s->slots, sizeof *s->ready, &s->ready));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, s->slots * HT_LEVEL_64 * width, sizeof *s->part, &s->part));
  ht_sums_reset(ctx, s);
  return HT_OK;
}

void ht_sums_release(ht_context *ctx, ht_sums *s) {
  ht_release(ctx, s->total);
  ht_release(ctx, s->range);
  ht_release(ctx, (void *)s->ready);
  ht_release(ctx, s->part);
}

void ht_sums_reset(const ht_context *ctx, ht_sums *s) {
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (s->columns > 20000)
  for (int64_t i = 0; i < s->columns * HT_LEVEL_64; i++) s->total[i] = 0;
  for (int64_t slot = 0; slot < s->slots; slot++) atomic_store(&s->ready[slot], -1);
  atomic_store(&s->begun, 0);
  atomic_store(&s->added, 0);
}

static int next_is_ready(const ht_sums *s) {
  int64_t chunk = atomic_load(&s->added);
  return atomic_load(&s->ready[chunk % s->slots]) == chunk;
}

/* Whoever comes adds what is due, unless another is at it. That one looks again when it is done, so that nothing is left behind. */
static void add_due(ht_sums *s) {
  while (next_is_ready(s) && !atomic_flag_test_and_set(&s->adding)) {
    for (; next_is_ready(s); atomic_fetch_add(&s->added, 1)) {
      int64_t slot = atomic_load(&s->added) % s->slots;
      const ht_sums_range *range = &s->range[slot];
      double *part = part_of(s, slot), *total = s->total + range->low * HT_LEVEL_64;
      for (int64_t i = 0; i < range->count * HT_LEVEL_64; i++) total[i] += part[i];
      memset(part, 0, (size_t)(range->count * HT_LEVEL_64) * sizeof *part);
    }
    atomic_flag_clear(&s->adding);
  }
}

int64_t ht_sums_begin(ht_sums *s, double **part) {
  int64_t chunk = atomic_fetch_add(&s->begun, 1);
  while (chunk >= atomic_load(&s->added) + s->slots) { /* the slot's last chunk waits for a slower one */
    add_due(s);
    sched_yield();
  }
  *part = part_of(s, chunk % s->slots);
  return chunk;
}

void ht_sums_end(ht_sums *s, int64_t chunk, ht_sums_range range) {
  s->range[chunk % s->slots] = range;
  atomic_store(&s->ready[chunk % s->slots], chunk);
  add_due(s);
}
