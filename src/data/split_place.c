/* Placement of a slice's entries into groups.
 *
 * A run holds one diagonal of the slice (offset = column - lane) for all lanes and needs one index; a gather group takes the
 * next remaining entry of every lane and needs eight. Runs are taken in order of how many lanes have the offset, as many as
 * make runs * RUN_COST + gathers * GATHER_COST least, where gathers = the largest number of entries left in a lane.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_place.h"
#include <string.h>

/* Bytes of a group with index and exponent; a gather group also pays for its scattered loads, about 10 bytes' worth of time. */
enum { RUN_COST = 67, GATHER_COST = 81 + 10 };

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
  place->node = -1;
  place->slot_capacity = 64;
  while (place->slot_capacity < 2 * capacity) place->slot_capacity *= 2;
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->column, &place->column));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->previous, &place->previous));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->group, &place->group));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->offset, &place->offset));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->candidate, &place->candidate));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->run_base, &place->run_base));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, place->slot_capacity, sizeof *place->slot, &place->slot));
  return HT_OK;
}

void ht_place_release(ht_context *ctx, ht_place *place) {
  ht_release(ctx, place->column);
  ht_release(ctx, place->previous);
  ht_release(ctx, place->group);
  ht_release(ctx, place->offset);
  ht_release(ctx, place->candidate);
  ht_release(ctx, place->run_base);
  ht_release(ctx, place->slot);
}

/* Entries of the eight nodes, columns in solver order. Returns whether the lanes have as many as those of the slice before. */
static int collect(ht_place *p, const ht_place_frame *f, int64_t node) {
  int64_t to = 0;
  int alike = 1;
  int32_t *column = p->previous;
  p->previous = p->column;
  p->column = column;
  for (int l = 0; l < HT_LANES; l++) {
    alike &= p->begin[l] == to;
    p->begin[l] = to;
    if (node + l >= f->graph->nodes) continue;
    int64_t old = ht_old_node(f->order, node + l), begin = f->graph->start[old], length = f->graph->start[old + 1] - begin;
    const int32_t *columns = f->graph->columns + begin;
    for (int64_t k = 0; k < length; k++) column[to + k] = f->inverse ? f->inverse[columns[k]] : columns[k];
    to += length;
  }
  alike &= p->begin[HT_LANES] == to;
  p->begin[HT_LANES] = to;
  return alike;
}

/* The slice is the one before moved by HT_LANES nodes, as in most of a stencil: so is its placement. */
static int place_alike(ht_place *p, const ht_place_frame *f, int64_t node) {
  int32_t different = 0;
  if (p->node != node - HT_LANES || !f->whole) return 0;
  for (int64_t e = 0; e < p->begin[HT_LANES]; e++) different |= p->column[e] - p->previous[e] - HT_LANES;
  for (int k = 0; k < p->runs; k++) different |= p->run_base[k] + 2 * HT_LANES > f->padded_nodes;
  if (different) return 0;
  for (int k = 0; k < p->runs; k++) p->run_base[k] += HT_LANES;
  return 1;
}

/* ---- offsets of a slice: each with the lanes that have it ---- */

static uint32_t find_slot(ht_place *p, int32_t offset, uint32_t mask) {
  uint32_t h = ((uint32_t)offset * 2654435769u) >> 7 & mask;
  while (p->slot[h].stamp == p->stamp && p->offset[p->slot[h].offset].base != offset) h = (h + 1) & mask;
  return h;
}

static uint32_t start_table(ht_place *p) {
  uint32_t mask = 63;
  while (mask + 1 < 2 * p->begin[HT_LANES]) mask = 2 * mask + 1;
  if (++p->stamp == 0) {
    memset(p->slot, 0, (size_t)p->slot_capacity * sizeof *p->slot);
    p->stamp = 1;
  }
  return mask;
}

/* Rows in any order: by a hash table. Entries get the number of their offset, or -1 when they are of another window. */
static int64_t hash_offsets(ht_place *p, const ht_place_frame *f) {
  int64_t found = 0;
  uint32_t mask = start_table(p);
  for (int l = 0; l < HT_LANES; l++)
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      p->group[e] = -1;
      if (p->column[e] < f->low || p->column[e] >= f->high) continue;
      int32_t base = p->column[e] - l;
      ht_place_slot *slot = &p->slot[find_slot(p, base, mask)];
      if (slot->stamp != p->stamp) {
        *slot = (ht_place_slot){p->stamp, (int32_t)found};
        p->offset[found++] = (ht_place_offset){.base = base};
      }
      p->offset[slot->offset].lanes |= (uint8_t)(1u << l);
      p->group[e] = slot->offset;
    }
  return found;
}

/* Ascending rows: by merging the lanes, which is quicker the more offsets they share. */
static int64_t merge_offsets(ht_place *p, const ht_place_frame *f) {
  int64_t found = 0, at[HT_LANES];
  int32_t head[HT_LANES]; /* offset of the lane's next entry */
  for (int l = 0; l < HT_LANES; l++) {
    at[l] = p->begin[l];
    for (; at[l] < p->begin[l + 1] && p->column[at[l]] < f->low; at[l]++) p->group[at[l]] = -1;
    head[l] = at[l] < p->begin[l + 1] && p->column[at[l]] < f->high ? p->column[at[l]] - l : INT32_MAX;
  }
  for (;;) {
    int32_t base = head[0];
    for (int l = 1; l < HT_LANES; l++) base = head[l] < base ? head[l] : base;
    if (base == INT32_MAX) break;
    ht_place_offset *offset = &p->offset[found];
    *offset = (ht_place_offset){.base = base};
    for (int l = 0; l < HT_LANES; l++) {
      if (head[l] != base) continue;
      offset->lanes |= (uint8_t)(1u << l);
      p->group[at[l]++] = (int32_t)found;
      head[l] = at[l] < p->begin[l + 1] && p->column[at[l]] < f->high ? p->column[at[l]] - l : INT32_MAX;
    }
    found++;
  }
  for (int l = 0; l < HT_LANES; l++)
    for (; at[l] < p->begin[l + 1]; at[l]++) p->group[at[l]] = -1;
  return found;
}

/* ---- runs among the offsets ---- */

static int32_t largest(const int32_t *left) {
  int32_t most = 0;
  for (int l = 0; l < HT_LANES; l++)
    if (left[l] > most) most = left[l];
  return most;
}

static void count_lanes(ht_place *p, int64_t found, int32_t *left) {
  p->entries = 0;
  for (int l = 0; l < HT_LANES; l++) left[l] = 0;
  for (int64_t k = 0; k < found; k++) {
    for (int l = 0; l < HT_LANES; l++) left[l] += p->offset[k].lanes >> l & 1;
    p->offset[k].run = -1;
    p->entries += __builtin_popcount(p->offset[k].lanes);
  }
}

/* Offsets that may be runs, those of most lanes first, into candidate[]. Offsets of few lanes are worth trying only where the
 * lanes differ much in length. */
static int64_t list_candidates(ht_place *p, const ht_place_frame *f, int64_t found, int32_t most) {
  int fewest = (int64_t)most * HT_LANES > 2 * p->entries ? 1 : 3;
  int64_t of_count[HT_LANES + 2] = {0}, candidates = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t k = 0; k < found; k++) {
      const ht_place_offset *o = &p->offset[k];
      int count = __builtin_popcount(o->lanes);
      if (count < fewest || o->base < 0 || o->base + HT_LANES > f->padded_nodes) continue;
      if (pass == 0)
        of_count[HT_LANES - count + 1]++;
      else
        p->candidate[of_count[HT_LANES - count]++] = (int32_t)k;
    }
    for (int c = 0; pass == 0 && c <= HT_LANES; c++) of_count[c + 1] += of_count[c];
    if (pass == 0) candidates = of_count[HT_LANES];
  }
  return candidates;
}

static void choose_runs(ht_place *p, const ht_place_frame *f, int64_t found) {
  int32_t left[HT_LANES];
  count_lanes(p, found, left);
  int64_t candidates = list_candidates(p, f, found, largest(left)), best = 0, least = (int64_t)largest(left) * GATHER_COST;
  for (int64_t k = 0; k < candidates && k < UINT16_MAX; k++) {
    for (int l = 0; l < HT_LANES; l++) left[l] -= p->offset[p->candidate[k]].lanes >> l & 1;
    int64_t cost = (k + 1) * RUN_COST + (int64_t)largest(left) * GATHER_COST;
    if (cost <= least) {
      least = cost;
      best = k + 1;
    }
  }
  for (int64_t k = 0; k < best; k++) p->offset[p->candidate[k]].run = 0;
  p->runs = 0;
  for (int64_t k = 0; k < found; k++) {
    if (p->offset[k].run < 0) continue;
    p->offset[k].run = p->runs;
    p->run_base[p->runs++] = p->offset[k].base;
  }
}

static void number_groups(ht_place *p) {
  p->gathers = 0;
  for (int l = 0; l < HT_LANES; l++) {
    int32_t rank = 0;
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++) {
      if (p->group[e] < 0) continue;
      int32_t run = p->offset[p->group[e]].run;
      p->group[e] = run >= 0 ? run : p->runs + rank++;
    }
    if (rank > p->gathers) p->gathers = rank;
  }
}

void ht_place_slice(ht_place *p, const ht_place_frame *f, int64_t node) {
  int alike = collect(p, f, node) && place_alike(p, f, node);
  p->node = f->whole ? node : -1;
  if (alike) return;
  int ascending = !f->inverse && !f->graph->permuted;
  choose_runs(p, f, ascending ? merge_offsets(p, f) : hash_offsets(p, f));
  number_groups(p);
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
