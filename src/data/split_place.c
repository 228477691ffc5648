/* Placement of a slice's entries into groups.
 *
 * A run holds one diagonal of the slice (offset = column - lane) for all lanes and needs one index; a gather group takes the
 * next remaining entry of every lane and needs eight. Runs are taken in order of how many lanes have the offset, as many as
 * make runs * RUN_COST + gathers * GATHER_COST least, where gathers = the largest number of entries left in a lane.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_place.h"
#include <string.h>

/* Bytes of a group with index and exponent; a gather group also pays for its scattered loads, about 10 bytes' worth of time. */
enum { RUN_COST = 67, GATHER_COST = 81 + 10, FEW_RUNS = 256 };

int64_t ht_place_capacity(const ht_node_graph *graph) {
  int64_t longest = 0, sum = 0;
  for (int64_t i = 0; i < graph->nodes; i++) {
    int64_t length = graph->start[i + 1] - graph->start[i];
    if (length > longest) longest = length;
    sum += length;
  }
  return longest * HT_LANES < sum ? longest * HT_LANES : sum;
}

ht_status ht_place_create(ht_context *ctx, int64_t capacity, ht_place *place) {
  memset(place, 0, sizeof *place);
  place->capacity = capacity;
  place->slot_capacity = 64;
  while (place->slot_capacity < 2 * capacity) place->slot_capacity *= 2;
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->column, &place->column));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->group, &place->group));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->slot_of, &place->slot_of));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->found, &place->found));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->run_base, &place->run_base));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, place->slot_capacity, sizeof *place->slot, &place->slot));
  return HT_OK;
}

void ht_place_release(ht_context *ctx, ht_place *place) {
  ht_release(ctx, place->column);
  ht_release(ctx, place->group);
  ht_release(ctx, place->slot_of);
  ht_release(ctx, place->found);
  ht_release(ctx, place->run_base);
  ht_release(ctx, place->slot);
}

/* Entries of the eight nodes, columns in solver order. */
static void collect(ht_place *p, const ht_place_frame *f, int64_t node) {
  int64_t to = 0;
  for (int l = 0; l < HT_LANES; l++) {
    p->begin[l] = to;
    if (node + l >= f->graph->nodes) continue;
    int64_t old = ht_old_node(f->order, node + l), begin = f->graph->start[old], length = f->graph->start[old + 1] - begin;
    const int32_t *columns = f->graph->columns + begin;
    if (f->inverse)
      for (int64_t k = 0; k < length; k++) p->column[to + k] = f->inverse[columns[k]];
    else
      memcpy(p->column + to, columns, (size_t)length * sizeof *columns);
    to += length;
  }
  p->begin[HT_LANES] = to;
}

/* All lanes have the same offsets in the same order, as inside a stencil: every entry is in a run. */
static int place_uniform(ht_place *p, const ht_place_frame *f) {
  int64_t length = p->begin[1];
  if (length == 0 || length > UINT16_MAX) return 0;
  for (int l = 1; l < HT_LANES; l++)
    if (p->begin[l + 1] - p->begin[l] != length) return 0;
  int32_t different = 0;
  for (int l = 1; l < HT_LANES; l++) {
    const int32_t *lane = p->column + p->begin[l];
    for (int64_t k = 0; k < length; k++) different |= lane[k] - p->column[k] - l;
    if (different) return 0;
  }
  for (int64_t k = 0; k < length; k++)
    if (p->column[k] < f->low || p->column[k] + HT_LANES > f->high) return 0;
  p->runs = (int)length;
  p->gathers = 0;
  p->entries = HT_LANES * length;
  memcpy(p->run_base, p->column, (size_t)length * sizeof *p->run_base);
  for (int l = 0; l < HT_LANES; l++)
    for (int64_t k = 0; k < length; k++) p->group[p->begin[l] + k] = (int32_t)k;
  return 1;
}

static uint32_t find_slot(ht_place *p, int32_t offset, uint32_t mask) {
  uint32_t h = ((uint32_t)offset * 2654435769u) >> 7 & mask;
  while (p->slot[h].stamp == p->stamp && p->slot[h].offset != offset) h = (h + 1) & mask;
  return h;
}

/* Enter every entry's offset; returns the number of distinct ones. */
static int64_t count_offsets(ht_place *p, const ht_place_frame *f, int32_t *left) {
  int64_t found = 0;
  uint32_t mask = 63;
  while (mask + 1 < 2 * p->begin[HT_LANES]) mask = 2 * mask + 1;
  if (++p->stamp == 0) {
    memset(p->slot, 0, (size_t)p->slot_capacity * sizeof *p->slot);
    p->stamp = 1;
  }
  for (int l = 0; l < HT_LANES; l++) {
    left[l] = 0;
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      if (p->column[e] < f->low || p->column[e] >= f->high) {
        p->group[e] = -1;
        continue;
      }
      int32_t offset = p->column[e] - l;
      uint32_t h = find_slot(p, offset, mask);
      if (p->slot[h].stamp != p->stamp) {
        p->slot[h] = (ht_place_slot){.offset = offset, .stamp = p->stamp, .run = -1};
        p->found[found++] = h;
      }
      p->slot[h].lanes |= (uint8_t)(1u << l);
      p->slot[h].count++;
      p->slot_of[e] = h;
      p->group[e] = 0;
      left[l]++;
    }
    p->entries += left[l];
  }
  return found;
}

static int32_t largest(const int32_t *left) {
  int32_t most = 0;
  for (int l = 0; l < HT_LANES; l++)
    if (left[l] > most) most = left[l];
  return most;
}

/* Move the slots to be runs to the front of found[] (the others are lost from it), and return their number. */
static int64_t choose_runs(ht_place *p, const ht_place_frame *f, int64_t found, int32_t *left) {
  int64_t candidates = 0, best = 0;
  int32_t most = largest(left);
  /* Offsets of few lanes are worth trying only where the lanes differ much in length. */
  int fewest = (int64_t)most * HT_LANES > 2 * p->entries ? 1 : 3;
  for (int64_t k = 0; k < found; k++) {
    const ht_place_slot *slot = &p->slot[p->found[k]];
    if (slot->count >= fewest && slot->offset >= 0 && slot->offset + HT_LANES <= f->padded_nodes) p->found[candidates++] = p->found[k];
  }
  for (int64_t sorted = 0, count = HT_LANES; count > fewest; count--)
    for (int64_t k = sorted; k < candidates; k++) {
      uint32_t h = p->found[k];
      if (p->slot[h].count != count) continue;
      p->found[k] = p->found[sorted];
      p->found[sorted++] = h;
    }
  int64_t least = (int64_t)most * GATHER_COST;
  for (int64_t k = 0; k < candidates && k < UINT16_MAX; k++) {
    for (int l = 0; l < HT_LANES; l++) left[l] -= p->slot[p->found[k]].lanes >> l & 1;
    int64_t cost = (k + 1) * RUN_COST + (int64_t)largest(left) * GATHER_COST;
    if (cost <= least) {
      least = cost;
      best = k + 1;
    }
  }
  return best;
}

/* Ascending offsets where runs are few; a dense row may have thousands, whose order does not matter. */
static void number_runs(ht_place *p, int64_t runs) {
  for (int64_t k = 1; k < runs && runs <= FEW_RUNS; k++) {
    uint32_t h = p->found[k];
    int64_t to = k;
    for (; to > 0 && p->slot[p->found[to - 1]].offset > p->slot[h].offset; to--) p->found[to] = p->found[to - 1];
    p->found[to] = h;
  }
  for (int64_t k = 0; k < runs; k++) {
    p->slot[p->found[k]].run = (int32_t)k;
    p->run_base[k] = p->slot[p->found[k]].offset;
  }
  p->runs = (int)runs;
}

void ht_place_slice(ht_place *p, const ht_place_frame *f, int64_t node) {
  int32_t left[HT_LANES];
  collect(p, f, node);
  if (place_uniform(p, f)) return;
  p->entries = 0;
  int64_t found = count_offsets(p, f, left);
  number_runs(p, choose_runs(p, f, found, left));
  p->gathers = 0;
  for (int l = 0; l < HT_LANES; l++) {
    int32_t rank = 0;
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      if (p->group[e] < 0) continue;
      int32_t run = p->slot[p->slot_of[e]].run;
      p->group[e] = run >= 0 ? run : p->runs + rank++;
    }
    if (rank > p->gathers) p->gathers = rank;
  }
}

static void mark(uint64_t *seen, int64_t unknown) {
  int64_t b = unknown / HT_COLUMN_BLOCK;
  seen[b / 64] |= 1ull << (b % 64);
}

/* Runs whole: a lane without an entry reads x as well. */
void ht_place_mark(const ht_place *p, int block, uint64_t *seen) {
  for (int k = 0; k < p->runs; k++) {
    mark(seen, (int64_t)p->run_base[k] * block);
    mark(seen, (int64_t)(p->run_base[k] + HT_LANES) * block - 1);
  }
  for (int64_t e = 0; p->gathers > 0 && e < p->begin[HT_LANES]; e++) {
    if (p->group[e] < p->runs) continue;
    mark(seen, (int64_t)p->column[e] * block);
    mark(seen, (int64_t)p->column[e] * block + block - 1);
  }
}

int64_t ht_place_list_marks(uint64_t *seen, int64_t low, int64_t high, int32_t *out) {
  int64_t count = 0;
  for (int64_t word = low / HT_COLUMN_BLOCK / 64; word * HT_COLUMN_BLOCK * 64 < high; word++)
    for (; seen[word]; seen[word] &= seen[word] - 1, count++)
      if (out) out[count] = (int32_t)(word * 64 + __builtin_ctzll(seen[word]));
  return count;
}
