/* Placement of a slice's entries into groups.
 *
 * A run holds one diagonal of the slice (offset = column - lane) for all lanes and needs one index; a gather group takes the
 * next remaining entry of every lane and needs eight. Runs are taken in order of how many lanes have the offset, as many as
 * make runs * RUN_COST + gathers * GATHER_COST least, where gathers = the largest number of entries left in a lane.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_internal.h"
#include <string.h>

/* Bytes of a group with index and exponent; a gather group also pays for its scattered loads, about 10 bytes' worth of time. */
enum { RUN_COST = 67, GATHER_COST = 81 + 10, MOST_KEPT = 1024 /* entries of a pattern worth keeping */ };
enum { FILTER = 8 /* places an entry */ };
/* Numbers of offsets: the first stands for all that are no run. */
enum { PLAIN, FIRST };

int64_t ht_place_capacity(const ht_context *ctx, const ht_node_graph *graph) {
  int64_t longest = 0, sum = graph->start[graph->nodes];
#pragma omp parallel for schedule(static) num_threads(ctx->threads) reduction(max : longest) if (graph->nodes > 20000)
  for (int64_t i = 0; i < graph->nodes; i++)
    if (graph->start[i + 1] - graph->start[i] > longest) longest = graph->start[i + 1] - graph->start[i];
  return longest * HT_LANES < sum ? longest * HT_LANES : sum;
}

static int32_t *give(ht_placement *p, int64_t capacity, int32_t *memory) {
  p->column = memory;
  p->group = memory + capacity;
  p->run_column = memory + 2 * capacity;
  return memory + 3 * capacity;
}

ht_status ht_place_create(ht_context *ctx, int64_t capacity, ht_place *place) {
  int64_t kept = capacity < MOST_KEPT ? capacity : MOST_KEPT;
  memset(place, 0, sizeof *place);
  place->slots = 64;
  while (place->slots < 2 * capacity) place->slots *= 2;
  HT_TRY(ctx, ht_allocate(ctx, 3 * (capacity + HT_PLACE_KEPT * kept), sizeof *place->memory, &place->memory));
  HT_TRY(ctx, ht_allocate(ctx, capacity + FIRST, sizeof *place->offset, &place->offset));
  HT_TRY(ctx, ht_allocate(ctx, capacity, sizeof *place->candidate, &place->candidate));
  HT_TRY(ctx, ht_allocate_zeroed(ctx, place->slots, sizeof *place->slot, &place->slot));
  HT_TRY(ctx, ht_allocate(ctx, place->slots * FILTER / 2, sizeof *place->filter, &place->filter));
  place->offset[PLAIN] = (ht_place_offset){.run = -1};
  for (int k = 0; k < 256; k++) place->lanes_of[k] = (uint8_t)__builtin_popcount((unsigned)k);
  int32_t *next = give(&place->own, capacity, place->memory);
  for (int k = 0; k < HT_PLACE_KEPT; k++) next = give(&place->kept[k], kept, next);
  return HT_OK;
}

void ht_place_release(ht_context *ctx, ht_place *place) {
  ht_release(ctx, place->memory);
  ht_release(ctx, place->offset);
  ht_release(ctx, place->candidate);
  ht_release(ctx, place->slot);
  ht_release(ctx, place->filter);
}

/* ---- the entries, and whether they were placed before ---- */

/* Entries of the eight nodes. */
static void collect(ht_placement *p, const ht_place_frame *f, int64_t node) {
  int64_t to = 0;
  int32_t first = (int32_t)node;
  for (int l = 0; l < HT_LANES; l++) {
    p->begin[l] = to;
    if (node + l >= f->graph->nodes) continue;
    int64_t old = ht_old_node(f->order, node + l), begin = f->graph->start[old], length = f->graph->start[old + 1] - begin;
    const int32_t *columns = f->graph->columns + begin;
    if (f->inverse)
      for (int64_t k = 0; k < length; k++) p->column[to + k] = f->inverse[columns[k]] - first;
    else
      for (int64_t k = 0; k < length; k++) p->column[to + k] = columns[k] - first;
    to += length;
  }
  p->begin[HT_LANES] = to;
}

/* Far from both ends of the vector no run can leave it: the placement depends on the pattern alone. Of ascending rows the ends are enough.
 */
static int is_inside(const ht_placement *p, const ht_place_frame *f, int64_t node) {
  int32_t low = 0, high = 0;
  int ascending = !f->inverse && !f->graph->permuted;
  for (int l = 0; l < HT_LANES; l++) {
    int64_t begin = p->begin[l], end = p->begin[l + 1], step = ascending && end - begin > 1 ? end - 1 - begin : 1;
    for (int64_t e = begin; e < end; e += step) {
      low = p->column[e] < low ? p->column[e] : low;
      high = p->column[e] > high ? p->column[e] : high;
    }
  }
  return node + low >= HT_LANES && node + high + HT_LANES < f->padded_nodes;
}

/* Of a pattern: from some of its entries. */
static uint32_t key_of(const ht_placement *p) {
  int64_t entries = p->begin[HT_LANES];
  uint32_t key = (uint32_t)entries * 2654435769u;
  for (int k = 0; k < 4; k++) key = (key ^ (uint32_t)p->column[(entries - 1) * k / 3]) * 2246822519u;
  return key;
}

/* Where a placement of this pattern is kept; *again: the pattern that came here before was this one, by its key. */
static ht_placement *kept_at(ht_place *s, int *again) {
  uint32_t key = key_of(&s->own), place = key >> 16 & (HT_PLACE_KEPT - 1);
  *again = s->key[place] == key;
  s->key[place] = key;
  return &s->kept[place];
}

static int same_pattern(const ht_placement *a, const ht_placement *b) {
  return !memcmp(a->begin, b->begin, sizeof a->begin) && !memcmp(a->column, b->column, (size_t)a->begin[HT_LANES] * sizeof *a->column);
}

static void keep(const ht_placement *from, ht_placement *to) {
  memcpy(to->begin, from->begin, sizeof to->begin);
  to->entries = from->entries;
  to->runs = from->runs;
  to->gathers = from->gathers;
  memcpy(to->column, from->column, (size_t)from->begin[HT_LANES] * sizeof *to->column);
  memcpy(to->group, from->group, (size_t)from->begin[HT_LANES] * sizeof *to->group);
  memcpy(to->run_column, from->run_column, (size_t)from->runs * sizeof *to->run_column);
}

/* ---- offsets of a slice: each with the lanes that have it ---- */

/* The columns that count, from the slice's first node. */
typedef struct range {
  int64_t low, high;
} range;

static int32_t largest(const int32_t *left) {
  int32_t most = 0;
  for (int l = 0; l < HT_LANES; l++) most = left[l] > most ? left[l] : most;
  return most;
}

/* Offsets of few lanes are worth trying as runs only where the lanes differ much in length. */
static int fewest_lanes(const int32_t *left) {
  int64_t entries = 0;
  for (int l = 0; l < HT_LANES; l++) entries += left[l];
  return (int64_t)largest(left) * HT_LANES > 2 * entries ? 1 : 3;
}

static inline uint32_t hash(int32_t offset) { return ((uint32_t)offset * 2654435769u) >> 7; }

/* Smallest power of two above `times` the number of entries, less one. */
static uint32_t table_mask(const ht_placement *p, int64_t times) {
  uint32_t mask = 63;
  while (mask + 1 < times * p->begin[HT_LANES]) mask = 2 * mask + 1;
  return mask;
}

static ht_place_slot *find_slot(const ht_place *s, int32_t offset, uint32_t mask) {
  uint32_t h = hash(offset) & mask;
  while (s->slot[h].stamp == s->stamp && s->offset[s->slot[h].offset].base != offset) h = (h + 1) & mask;
  return &s->slot[h];
}

/* Which lanes have an entry on an offset that falls on each place of the filter; left[] the number of entries of each lane. */
static inline __attribute__((always_inline)) void fill_filter(ht_place *s, const range *in, uint32_t mask, int32_t *left) {
  const ht_placement *p = &s->own;
  uint8_t *filter = s->filter; /* locals: a byte that is written might be any of the others */
  memset(filter, 0, mask + 1);
  for (int l = 0; l < HT_LANES; l++) {
    const int32_t *column = p->column;
    int32_t count = 0;
    for (int64_t e = p->begin[l], end = p->begin[l + 1]; e < end; e++) {
      int counts = !in || (column[e] >= in->low && column[e] < in->high);
      filter[hash(column[e] - l) & mask] |= (uint8_t)(counts << l);
      count += counts;
    }
    left[l] = count;
  }
}

/* Whether runs of at most `most` lanes may save what they cost. For `saved` groups less they have to cover what every lane has beyond the
 * rest; as long as 8 RUN_COST > most * GATHER_COST that takes ever more of them, unless lanes are short. */
static int runs_may_pay(const int32_t *left, int64_t most) {
  int64_t longest = largest(left), slack = HT_LANES * longest, loss = HT_LANES * RUN_COST - most * GATHER_COST;
  if (loss <= 0) return 1;
  for (int l = 0; l < HT_LANES; l++) slack -= left[l];
  for (int64_t saved = 1; saved <= longest && saved * loss <= slack * RUN_COST; saved++) {
    int64_t covered = 0;
    for (int l = 0; l < HT_LANES; l++) covered += left[l] > longest - saved ? left[l] - (longest - saved) : 0;
    if (covered <= most * (saved * GATHER_COST / RUN_COST)) return 1;
  }
  return 0;
}

/* Most slices of an unstructured mesh have one run, the diagonal, or, in a window without it, none: a filter that counts lanes, or more,
 * shows it, and the groups are then the entries' places. Returns 0 where other runs may pay. `in` NULL: all entries are of this window. */
static inline __attribute__((always_inline)) int place_diagonal(ht_place *s, const range *in) {
  ht_placement *p = &s->own;
  const int64_t low = in ? in->low : 0, high = in ? in->high : 0;
  const int32_t *column = p->column; /* locals: a byte that is written might be any of the others */
  uint8_t *filter = s->filter;
  uint32_t mask = table_mask(p, FILTER);
  int32_t left[HT_LANES], most = 0, diagonals = 0;
  memset(filter, 0, mask + 1);
  for (int l = 0; l < HT_LANES; l++) {
    int32_t count = 0;
    for (int64_t e = p->begin[l], end = p->begin[l + 1]; e < end; e++) {
      int within = (!in) | ((column[e] >= low) & (column[e] < high)), plain = within & (column[e] != l);
      uint8_t *at = &filter[hash(column[e] - l) & mask];
      *at = (uint8_t)(*at + plain);
      most = *at > most ? *at : most;
      count += plain;
      diagonals += within - plain;
    }
    left[l] = count;
  }
  if (diagonals % HT_LANES != 0 || runs_may_pay(left, most)) return 0;
  p->runs = diagonals / HT_LANES;
  p->run_column[0] = 0;
  p->entries = diagonals;
  p->gathers = largest(left);
  for (int l = 0; l < HT_LANES; l++) {
    int32_t *group = p->group, next = p->runs;
    p->entries += left[l];
    for (int64_t e = p->begin[l], end = p->begin[l + 1]; e < end; e++) {
      int within = (!in) | ((column[e] >= low) & (column[e] < high)), plain = within & (column[e] != l);
      group[e] = plain ? next : within - 1;
      next += plain;
    }
  }
  return 1;
}

/* Rows in any order: by a hash table. Most offsets of an unstructured mesh are found in one or two lanes and cannot become runs:
 * a filter without branches tells so of nearly all, and only the others enter the table. Entries get the number of their offset,
 * or PLAIN, or -1 when they are of another window. `in` NULL: all are of this one. */
static inline __attribute__((always_inline)) int64_t hash_offsets(ht_place *s, const range *in, int32_t *left) {
  const ht_placement *p = &s->own;
  int64_t found = FIRST;
  uint32_t mask = table_mask(p, 2), filter_mask = table_mask(p, FILTER);
  fill_filter(s, in, filter_mask, left);
  int fewest = fewest_lanes(left);
  if (++s->stamp == 0) {
    memset(s->slot, 0, (size_t)s->slots * sizeof *s->slot);
    s->stamp = 1;
  }
  for (int l = 0; l < HT_LANES; l++) {
    const int32_t *column = p->column;
    const uint8_t *filter = s->filter;
    int32_t *group = p->group;
    for (int64_t e = p->begin[l], end = p->begin[l + 1]; e < end; e++) {
      int32_t base = column[e] - l;
      if (in && (column[e] < in->low || column[e] >= in->high)) {
        group[e] = -1;
        continue;
      }
      group[e] = PLAIN;
      if (s->lanes_of[filter[hash(base) & filter_mask]] < fewest) continue;
      ht_place_slot *slot = find_slot(s, base, mask);
      if (slot->stamp != s->stamp) {
        *slot = (ht_place_slot){s->stamp, (int32_t)found};
        s->offset[found++] = (ht_place_offset){.base = base, .run = -1};
      }
      s->offset[slot->offset].lanes |= (uint8_t)(1u << l);
      s->offset[slot->offset].count++;
      group[e] = slot->offset;
    }
  }
  return found;
}

/* Offset of a lane's entry, or INT32_MAX past the last that counts. */
static inline int32_t head_of(const ht_placement *p, int l, int64_t e, range in) {
  return e < p->begin[l + 1] && p->column[e] < in.high ? p->column[e] - l : INT32_MAX;
}

/* Ascending rows: by merging the lanes, which is quicker the more offsets they share. */
static int64_t merge_offsets(ht_place *s, range in, int32_t *left) {
  ht_placement *p = &s->own;
  int64_t found = FIRST, at[HT_LANES];
  int32_t head[HT_LANES];
  for (int l = 0; l < HT_LANES; l++) {
    for (at[l] = p->begin[l]; at[l] < p->begin[l + 1] && p->column[at[l]] < in.low; at[l]++) p->group[at[l]] = -1;
    head[l] = head_of(p, l, at[l], in);
  }
  for (;; found++) {
    int32_t base = head[0];
    for (int l = 1; l < HT_LANES; l++) base = head[l] < base ? head[l] : base;
    if (base == INT32_MAX) break;
    ht_place_offset *offset = &s->offset[found];
    *offset = (ht_place_offset){.base = base, .run = -1};
    for (int l = 0; l < HT_LANES; l++) {
      if (head[l] != base) continue;
      offset->lanes |= (uint8_t)(1u << l);
      offset->count++;
      p->group[at[l]++] = (int32_t)found;
      left[l]++;
      head[l] = head_of(p, l, at[l], in);
    }
  }
  for (int l = 0; l < HT_LANES; l++)
    for (; at[l] < p->begin[l + 1]; at[l]++) p->group[at[l]] = -1;
  return found;
}

/* ---- runs among the offsets ---- */

/* Offsets that may be runs, those of most lanes first. */
static int64_t list_candidates(ht_place *s, int64_t node, int64_t padded_nodes, int64_t found, int fewest) {
  int64_t candidates = 0, sorted = 0;
  for (int64_t k = FIRST; k < found; k++) {
    const ht_place_offset *o = &s->offset[k];
    if (o->count >= fewest && node + o->base >= 0 && node + o->base + HT_LANES <= padded_nodes) s->candidate[candidates++] = (int32_t)k;
  }
  for (int count = HT_LANES; count > fewest; count--)
    for (int64_t k = sorted; k < candidates; k++) {
      int32_t o = s->candidate[k];
      if (s->offset[o].count != count) continue;
      s->candidate[k] = s->candidate[sorted];
      s->candidate[sorted++] = o;
    }
  return candidates;
}

static void choose_runs(ht_place *s, int64_t node, int64_t padded_nodes, int64_t found, int32_t *left) {
  ht_placement *p = &s->own;
  p->entries = 0;
  for (int l = 0; l < HT_LANES; l++) p->entries += left[l];
  int64_t candidates = list_candidates(s, node, padded_nodes, found, fewest_lanes(left)), least = (int64_t)largest(left) * GATHER_COST;
  p->runs = 0;
  for (int64_t k = 0; k < candidates && k < UINT16_MAX; k++) {
    for (int l = 0; l < HT_LANES; l++) left[l] -= s->offset[s->candidate[k]].lanes >> l & 1;
    int64_t cost = (k + 1) * RUN_COST + (int64_t)largest(left) * GATHER_COST;
    if (cost > least) continue;
    least = cost;
    p->runs = (int32_t)k + 1;
  }
  for (int32_t k = 0; k < p->runs; k++) {
    s->offset[s->candidate[k]].run = k;
    p->run_column[k] = s->offset[s->candidate[k]].base;
  }
}

/* Without branches where all entries count: which are of a run is hard to foretell. */
static inline __attribute__((always_inline)) void number_groups(ht_place *s, int whole) {
  ht_placement *p = &s->own;
  const ht_place_offset *offset = s->offset;
  int32_t *group = p->group, runs = p->runs, most = 0;
  for (int l = 0; l < HT_LANES; l++) {
    int32_t next = runs;
    for (int64_t e = p->begin[l], end = p->begin[l + 1]; e < end; e++) {
      if (!whole && group[e] == -1) continue;
      int32_t run = offset[group[e]].run, is_plain = run < 0;
      group[e] = is_plain ? next : run;
      next += is_plain;
    }
    most = next > most ? next : most;
  }
  p->gathers = most > runs ? most - runs : 0;
}

static void place_entries(ht_place *s, const ht_place_frame *f, int64_t node) {
  range in = {f->low - node, f->high - node};
  int32_t left[HT_LANES] = {0};
  int64_t found;
  if (!f->inverse && !f->graph->permuted)
    found = merge_offsets(s, in, left);
  else if (f->whole ? place_diagonal(s, NULL) : place_diagonal(s, &in))
    return;
  else
    found = f->whole ? hash_offsets(s, NULL, left) : hash_offsets(s, &in, left);
  choose_runs(s, node, f->padded_nodes, found, left);
  if (f->whole)
    number_groups(s, 1);
  else
    number_groups(s, 0);
}

void ht_place_slice(ht_place *s, const ht_place_frame *f, int64_t node) {
  collect(&s->own, f, node);
  s->node = node;
  int64_t entries = s->own.begin[HT_LANES];
  ht_placement *kept = NULL;
  int again = 0;
  if (f->whole && entries > 0 && entries <= MOST_KEPT) {
    kept = kept_at(s, &again);
    s->now = kept;
    if (same_pattern(kept, &s->own) && is_inside(&s->own, f, node)) return;
  }
  place_entries(s, f, node);
  s->now = &s->own;
  /* Most patterns of an unstructured mesh never come back. */
  if (again && is_inside(&s->own, f, node)) keep(&s->own, kept);
}

int ht_place_remember(const ht_place *s, int block, uint8_t *group) {
  const ht_placement *p = s->now;
  const int32_t *from = p->group;
  if ((block > 1 && p != &s->own) || p->runs + p->gathers > HT_ELSEWHERE) return 0;
  for (int64_t e = 0, end = p->begin[HT_LANES]; e < end; e++) group[e] = (uint8_t)from[e]; /* -1 becomes HT_ELSEWHERE */
  return 1;
}

void ht_place_recall(ht_place *s, const ht_place_frame *f, int64_t node, const ht_slice *slice, const uint8_t *group) {
  ht_placement *p = &s->own;
  collect(p, f, node);
  s->node = node;
  s->now = p;
  p->runs = slice->runs;
  p->gathers = slice->gathers;
  p->entries = 0;
  for (int64_t e = 0; e < p->begin[HT_LANES]; e++) {
    p->group[e] = group[e] == HT_ELSEWHERE ? -1 : group[e];
    p->entries += group[e] != HT_ELSEWHERE;
  }
  for (int l = 0; l < HT_LANES && p->runs > 0; l++)
    for (int64_t e = p->begin[l]; e < p->begin[l + 1]; e++)
      if (group[e] < p->runs) p->run_column[group[e]] = p->column[e] - l;
}

/* The column blocks that gather groups read. No branches: which entries are of a run, or of another window, is hard to foretell. Locals,
 * for a byte that is written might be any of the others. */
static inline __attribute__((always_inline)) void mark_gathers(const ht_place *place, const int block, uint8_t *seen, uint64_t nowhere) {
  const ht_placement *p = place->now;
  const int32_t *column = p->column, *group = p->group, runs = p->runs;
  int64_t node = place->node;
  for (int64_t e = 0, end = p->begin[HT_LANES]; e < end; e++) {
    uint64_t first = (uint64_t)((node + column[e]) * block), last = first + (unsigned)block - 1, other = (uint64_t)(group[e] >= runs) - 1;
    seen[(first / HT_COLUMN_BLOCK & ~other) | (nowhere & other)] = 1;
    if (block > 1) seen[(last / HT_COLUMN_BLOCK & ~other) | (nowhere & other)] = 1;
  }
}

/* Runs whole: a lane without an entry reads x as well. */
void ht_place_mark(const ht_place *place, int block, uint8_t *seen, int64_t nowhere) {
  const ht_placement *p = place->now;
  for (int k = 0, runs = p->runs; k < runs; k++) {
    seen[(place->node + p->run_column[k]) * block / HT_COLUMN_BLOCK] = 1;
    seen[((place->node + p->run_column[k] + HT_LANES) * block - 1) / HT_COLUMN_BLOCK] = 1;
  }
  if (p->gathers == 0) return;
  if (block == 1) mark_gathers(place, 1, seen, (uint64_t)nowhere);
  if (block == 2) mark_gathers(place, 2, seen, (uint64_t)nowhere);
  if (block == 3) mark_gathers(place, 3, seen, (uint64_t)nowhere);
}

int64_t ht_place_list_marks(uint8_t *seen, int64_t low, int64_t high, int32_t *out) {
  int64_t count = 0;
  for (int64_t b = low / HT_COLUMN_BLOCK; b * HT_COLUMN_BLOCK < high; b++) {
    out[count] = (int32_t)b;
    count += seen[b];
    seen[b] = 0;
  }
  return count;
}
