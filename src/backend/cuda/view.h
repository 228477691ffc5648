/* The store as kernels see it: plain structs that host code (C11) fills and device code (C++) reads. All pointers are the device's.
 *
 * Rows are in solver order, padded to whole column blocks, and scaled symmetrically by powers of two as in ht_split_view. A slice is
 * what one warp multiplies: 32 >> lanes_log2 rows, 1 << lanes_log2 lanes each. Its off-diagonal entries form groups of four a lane, each
 * with a 16-bit index: column = base + index, the base being the group's. With patches a column is a place in the patch's own list: its
 * rows first, then its halo. A lane without an entry holds value 0 and index 0. Entry e of a row (diagonal not counted) belongs to its lane
 * (e / 2) & (lanes - 1), and a lane takes its entries in order, unless entries of a group lie too far apart: then it waits for the next
 * group.
 *
 * Where rows are alike, as a stencil's are, a slice is stored by offsets and needs no indices: slot k of all its rows has the column lead +
 * offset[k], the lead of a row being the first row of its node. A row without an entry there holds value 0. A lane owns four consecutive
 * slots of a whole group, and two of a half one. Slices with the same offsets share one list of them, which stays in cache.
 *
 * A group is stored as two units of two entries a lane, the last of a slice as one where that suffices. Unit u owns the words 32 u to
 * 32 u + 31 of head and mid (two 16-bit numbers each) and of tail (two 32-bit numbers each). In a whole group at unit u a lane's
 * words are 32 u + 2 lane and the next, in a half one 32 u + lane. info[u] describes the group that begins at unit u. Indices lie as heads
 * do, in units of their own, because slices by offsets have none; a group's base stands where its first unit of them is counted.
 *
 * With patches of HT_RAGGED_SLICES_MOST slices at most (but not of 17 to 20: store_rows.c) each of them ends with a ragged unit, which
 * has no empty places: behind all units lie its entries that are there, the first ones of the lanes, then the second ones, and `has` tells
 * whose they are. Entry e of a row belongs to lane e & (lanes - 1) there. It is a group of its own, described behind all units.
 *
 * Values: head, mid and tail as in ht_split_view, for each group FIXED (with its exponent), FLOAT or RAW. At the 16-bit level a FLOAT
 * group is read at 32 bits, because BF16 would lose more than FIXED ever does; a RAW group is read whole at every level. The diagonal
 * stands apart, each level with its own delta, which makes it agree with A on the constant vector; delta32, where a node has several
 * unknowns, in the row's own unknown on each of their constant vectors, the translations of elasticity. Scaled it lies between 1/2 and 2:
 * 64 and 32 bits share 32 bits of it, which the tail leads to A's own and the mid to that with delta32; 16 bits have another number, in
 * FP32 with delta16, or with patches what it differs by in BF16. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_VIEW_H
#define HT_BACKEND_CUDA_VIEW_H
#include <stdint.h>
#include "backend/tiles.h"

enum {
  HT_WARP = 32,
  HT_GROUP_ENTRIES = 4,   /* a lane */
  HT_EXPONENT_BIAS = 8,   /* of ht_group_info.exponent: |a^| may exceed 1 where A is not positive definite */
  HT_EXPONENT_MOST = 200, /* smaller values are FLOAT or RAW */
  HT_LANES_LOG2_MOST = 5,
  HT_SORTED_MOST = 256, /* entries of a row that ht_store_sort takes: longer ones come sorted */
  HT_PATCHES_MOST = 160,
  HT_NARROW_SLICES_MOST = 64, /* where the persistent engine has four rows a thread or fewer */
  HT_RAGGED_SLICES_MOST = 32, /* where it has two or one */
  HT_PATCH_SLICES_MOST = 128, /* 16 warps of the persistent engine take 8 each */
  HT_NO_ROW_16 = 65535,
  HT_SUMS = 5 /* rz, pap, rms, sms, rr of an iteration */
};

enum { HT_GROUP_FIXED, HT_GROUP_FLOAT, HT_GROUP_RAW };

enum { HT_DIAGONAL_BITS = 29, HT_MID_BITS = 16, HT_TAIL_BITS = 24 /* the last of FP64's, of a number from 1/2 on */ };

enum { HT_SPAN_MOST = 15 };

/* What the kernels that build a store count, each 64 bits. */
enum {
  HT_COUNT_EXACT_16,                     /* entries exact in 16 bits, */
  HT_COUNT_EXACT_32,                     /* and in at most 32 */
  HT_COUNT_READ,                         /* what the groups read when 16, 32, 64 bits are asked for, in entries of 16 bits */
  HT_COUNT_CONSTANT = HT_COUNT_READ + 3, /* rows that keep constants: A times ones is little of their diagonal */
  HT_COUNT_FILL,                         /* so many are sums */
  HT_COUNT_ERROR_16 = HT_COUNT_FILL,     /* largest column errors: the bits of a float */
  HT_COUNT_ERROR_32,
  HT_COUNT_WRONG,    /* entries that do not come back to the bit */
  HT_COUNT_EXPONENT, /* largest exponent of a row's scale, + HT_EXPONENT_RANGE */
  HT_COUNT_BAD,      /* padded - i for the first row i that cannot be scaled; 0: all can */
  /* of a CSR that lies on the device */
  HT_COUNT_OTHER, /* rows and entries that show another pattern */
  HT_COUNT_NOT_FINITE,
  HT_COUNT_UNSYMMETRIC,  /* entries above the diagonal that are not like the one below */
  HT_COUNT_NOT_POSITIVE, /* of the diagonal */
  HT_COUNT_ZERO_SUMS,    /* rows that add up to zero */
  HT_COUNT_LOWER,        /* entries below the diagonal, */
  HT_COUNT_MATCHED,      /* and above it, with a partner */
  HT_COUNT_NORM_INF,     /* the bits of a double, as the next two */
  HT_COUNT_MOST,         /* of the diagonal */
  HT_COUNT_LEAST,        /* of what is positive there, the bits inverted */
  HT_COUNTS
};
enum { HT_EXPONENT_RANGE = 2048, HT_SCALE_MOST = 510 /* kernels square scales in FP64 */ };

typedef struct ht_group_info {
  uint8_t exponent;     /* + HT_EXPONENT_BIAS */
  uint8_t encoding : 2; /* HT_GROUP_... */
  uint8_t exact : 2;    /* the level that is exact (ht_level) */
  uint8_t span : 4;     /* by indices: column blocks from the base on that the group touches; HT_SPAN_MOST: as many or more */
} ht_group_info;

typedef struct ht_slice_info {
  uint32_t unit;  /* first */
  uint32_t index; /* first unit of its indices; by offsets: a quarter of its place in `offset`; with ragged units its first ragged entry */
  int32_t row;    /* first */
  uint16_t units; /* ragged ones not counted */
  uint8_t lanes_log2;
  uint8_t encoding : 4;             /* the highest HT_GROUP_... of its groups */
  uint8_t by_offset : 1, owner : 1; /* owner: the first slice with these offsets */
} ht_slice_info;

/* What is learned of a slice before it is stored. */
typedef struct ht_slice_count {
  uint64_t hash; /* of its offsets; 0: by indices */
  uint32_t units, ragged_entries;
} ht_slice_count;

/* Lanes, a bit each, that have a first and a second entry in a ragged unit. */
typedef struct ht_lanes {
  uint32_t first, second;
} ht_lanes;

typedef struct ht_store_view {
  int64_t n, padded, slices, units, index_units, offsets, blocks;
  int32_t node;               /* rows of a node, whose lead is the first of them: 1, or unknowns that share their neighbours */
  const ht_slice_info *slice; /* slices + 1: of the last one only `unit` and `row` count */
  ht_group_info *info;
  uint32_t *index; /* two 16-bit indices a lane, as head and mid */
  int32_t *base;   /* index_units; with patches NULL: all 0 */
  int32_t *offset; /* each list of them from a multiple of four on */
  uint32_t *head, *mid;
  int64_t *tail;              /* two 32-bit tails a lane */
  int32_t *diagonal;          /* HT_DIAGONAL_BITS behind the point, */
  int16_t *diagonal_mid;      /* 16 more at 32 bits, */
  int32_t *diagonal_tail;     /* and at 64 HT_TAIL_BITS more, most of which reach back over the delta */
  float *diagonal_16;         /* NULL with patches: then */
  uint16_t *rest_16;          /* BF16 */
  const int16_t *exponent;    /* of s_i, 0 in the padding; NULL with patches */
  float *error_16, *error_32; /* largest column error of each block */
  const int32_t *order;       /* padded: solver order to the caller's, -1 in the padding; NULL where 16 bits reach: */
  const uint16_t *order_16;   /* HT_NO_ROW_16 in the padding */
  /* patches, or 0 and NULL */
  int64_t patches, patch_rows;
  const int32_t *patch_slice; /* patches + 1 */
  const int32_t *halo_start;  /* patches + 1 */
  const int32_t *halo;        /* rows in solver order, ascending in each patch; NULL where 16 bits reach and */
  const uint16_t *halo_16;    /* patches have HT_NARROW_SLICES_MOST slices at most */
  const int16_t *scale;       /* padded: twice the exponent of s_i, and 1 where another patch has the row in its halo */
  int64_t ragged;             /* ragged units a slice: 0 or 1 */
  int64_t ragged_entries;
  ht_lanes *has; /* slices */
} ht_store_view;

/* What the build kernels work on: some rows of the CSR. */
typedef struct ht_rows_view {
  int64_t first_slice, slices;
  const int64_t *start;    /* of the slices' rows in solver order, from the first slice's first row on */
  const int32_t *columns;  /* in solver order, ascending */
  const int32_t *position; /* n: the caller's order to the solver's; NULL where that is the same */
  const double *values;
} ht_rows_view;

/* A CSR in the caller's order that lies on the device: ht_csr_view. */
typedef struct ht_taken_view {
  int64_t n, nnz;
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;
} ht_taken_view;

/* Interleaved Tile-CSC: as in ht_tilecsc_view. */
typedef struct ht_cuda_tiles {
  int64_t n;
  int32_t rows_per_block;
  const int64_t *tile_row_start;
  const ht_tile_head *head;
  const uint16_t *index;
  const int16_t *exponent;
  const float *lack[2]; /* of the levels below FP64 */
  const int32_t *order; /* of x and y: as in ht_tilecsc_view, or NULL where they are as the tiles are */
  const double *value_f64;
  const float *value_f32;
  const uint16_t *value_bf16;
} ht_cuda_tiles;

#endif
