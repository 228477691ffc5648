/* The backend table, and the plain views that `data`, `op` and `policy` fill for it. Algorithms are written against this
 * table and never see a device pointer's arithmetic. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_BACKEND_H
#define HT_BACKEND_BACKEND_H
#include <stdint.h>
#include "backend/learning.h"
#include "backend/replacement.h"
#include "backend/tiles.h"
#include "base/context.h"
#include "base/fingerprint.h"

/* Widths that every view shares. */
enum {
  HT_LANES = 8,         /* rows (or nodes) a slice of the split storage holds */
  HT_COLUMN_BLOCK = 64, /* unknowns that share one precision decision; vectors in solver order are padded to it */
};

/* How many segments of the split storage a product reads: 2, 4 or 8 bytes a value. */
typedef enum ht_level { HT_LEVEL_16, HT_LEVEL_32, HT_LEVEL_64, HT_LEVELS } ht_level;

/* ---- CSR: the plain reference ---- */
typedef struct ht_csr_view {
  int64_t n, nnz;
  const int64_t *row_start;
  const int32_t *columns;
  const double *values;
} ht_csr_view;

/* a_ii, found by bisection: columns ascend in a row. 0 where there is none. The steps are sums, not branches, which nothing foretells. */
static inline double ht_csr_diagonal(const ht_csr_view *a, int64_t i) {
  int64_t at = a->row_start[i], end = a->row_start[i + 1];
  for (int64_t left = end - at; left > 1; left -= left / 2) at += a->columns[at + left / 2 - 1] < i ? left / 2 : 0;
  if (at < end && a->columns[at] < i) at++;
  return at < end && a->columns[at] == i ? a->values[at] : 0;
}

/* ---- Tile-CSC: the EvoCG paper's storage (section 3.2), the baseline ----
 * Tiles of R rows x 64 columns; non-empty tiles in CSR order of row blocks. Inside a tile CSC: column_start has 65 entries
 * a tile (relative to the tile's first entry), columns padded to even length with sentinel row R (value 0). Three value
 * streams hold the same entries; the narrow ones are divided by the column's power-of-two scale. Interleaved: tiles.h. */
typedef struct ht_tilecsc_view {
  int64_t n, row_blocks, tiles;
  int32_t rows_per_block;         /* R, 32..16384 */
  const int64_t *tile_row_start;  /* row_blocks + 1 */
  const int32_t *tile_column;     /* column block of each tile */
  const int64_t *tile_entry;      /* first entry of each tile, tiles + 1 */
  const uint32_t *column_start;   /* 65 a tile: without padding where entries are interleaved */
  const ht_tile_head *head;       /* interleaved: of each tile; else NULL */
  const uint16_t *row_index;      /* row inside the block, R = sentinel; interleaved: ht_tilecsc_index */
  const double *scale;            /* a power of two a column of the matrix, to the end of the last column block */
  const int16_t *exponent;        /* its logarithm */
  const float *lack[HT_LEVEL_64]; /* what rounding to a level takes from a column's sum, by its scale: added to a_jj there; or NULL */
  const int32_t *order;           /* interleaved: order[new] = old, where unknowns were reordered for tiles; else NULL */
  const double *value_f64;
  const float *value_f32;
  const uint16_t *value_bf16;
} ht_tilecsc_view;

/* Bytes that a product reads of a tile with so many entries. */
static inline double ht_tilecsc_tile_bytes(const ht_tilecsc_view *a, int64_t entries, ht_level level) {
  static const int value_bytes[HT_LEVELS] = {2, 4, 8};
  int rest = a->head ? (int)sizeof *a->head : (HT_COLUMN_BLOCK + 1) * 4 + 12;
  return (double)(entries * (value_bytes[level] + 2) + rest);
}

/* ---- Split storage: one copy of the values, read at 2, 4 or 8 bytes ----
 *
 * Everything is in solver order (permuted, padded with zero rows to whole column blocks) and scaled symmetrically by
 * powers of two, A^ = S^-1 A S^-1 with s_i near sqrt(a_ii), so that |a^_ij| <= 1 for a positive definite A.
 *
 * A tile is a block of consecutive rows, stored slice by slice. A slice is HT_LANES consecutive rows (block = 1) or nodes
 * of `block` consecutive rows each. Its entries form groups, one entry (or block x block entries) a lane:
 *   run groups first:  lane l has column (node) base + l: one index a group;
 *   gather groups:     lane l has its own index: HT_LANES indices a group.
 * An index is 16-bit, relative to the tile's window: column = window + index (in nodes when block > 1).
 * A lane without an entry holds value 0 and a valid index. A run's base + l stays inside the vector.
 * Values of a group: block*block*HT_LANES consecutive numbers, ordered [row in block][column in block][lane].
 *
 * FIXED encoding, group exponent e: a^ = 2^-e * (head*2^48 + mid*2^32 + tail) * 2^-63, head and mid and tail signed
 *   (int16, int16, int32: each the rounded remainder of the one before), so 16 bits give head*2^(-15-e), 32 bits
 *   (head*2^16+mid)*2^(-31-e), and all bits a^ exactly, but for the entries on the tile's exception list, where the
 *   double `value` is to be added: a^ = decoded + value, exactly.
 * FLOAT encoding: head = BF16 rounded from the FP32 rounding of a^, mid and tail integer remainders of the bit patterns
 *   (FP32 bits = (head<<16) + mid; FP64 bits = bits((double)FP32) + tail). Exponent unused (0).
 * RAW encoding: head, mid, tail are the bits of the double, from the top; no lower level exists. */
typedef enum ht_encoding { HT_FIXED, HT_FLOAT, HT_RAW, HT_ENCODINGS } ht_encoding;

typedef struct ht_slice {
  uint16_t runs, gathers; /* numbers of groups */
} ht_slice;

typedef struct ht_exception {
  int32_t row;    /* from the tile's first row */
  int32_t column; /* in solver order, absolute */
  double value;
} ht_exception;

typedef struct ht_tile {
  int64_t row;           /* first row; a multiple of HT_LANES * block */
  int64_t rows;          /* rows in the tile: slices * HT_LANES * block; the last tile's run to the end of the padding */
  int64_t slice, slices; /* into slice[] */
  int64_t group;         /* first group: exponent[group], values from group * block^2 * HT_LANES */
  int64_t groups;
  int64_t index;  /* into index[] */
  int64_t window; /* column (node) that index 0 stands for */
  int64_t exception, exceptions;
  int64_t touch, touches; /* into touched[]: column blocks this tile reads */
  int64_t delta;          /* into delta[level]: rows * block */
  int64_t nonzeros;       /* true entries, padding not counted */
  uint8_t encoding;       /* ht_encoding */
  uint8_t exact;          /* lowest ht_level whose value equals the FP64 one for every entry; HT_LEVEL_64 for RAW */
  uint8_t accumulate;     /* the tile has the rows of the tile before it, other columns, and adds to its product */
} ht_tile;

typedef struct ht_split_view {
  int64_t n, padded;                     /* unknowns; length of vectors in solver order, a multiple of HT_COLUMN_BLOCK */
  int block;                             /* unknowns a node that share one index: 1, 2 or 3 */
  int64_t tiles, slices, groups, blocks; /* blocks = padded / HT_COLUMN_BLOCK */
  const ht_tile *tile;                   /* tiles + 1: of the last one only the offsets (slice, group, index, touch, delta) count */
  const ht_slice *slice;
  const uint16_t *index;
  const uint8_t *exponent;
  const int16_t *head, *mid;
  const int32_t *tail;
  const ht_exception *exception;
  const int32_t *touched;
  /* delta[level] (or NULL), called delta16 and delta32, is added to each node's own block x block entries at that level, tile by tile, so
   * that A_level w = A w for the scaled constant vector w of each component: the rounding then acts like a change of the couplings, not of
   * the near-null space. Of a slice block*block*HT_LANES numbers, ordered like a group's values, in units of
   * 2^(-15 - delta_exponent[level][slice]). */
  const int16_t *delta[HT_LEVEL_64];
  const uint8_t *delta_exponent[HT_LEVEL_64];
  /* Largest 2-norm over the block's columns of (A^ - A^level), for HT_LEVEL_16 and HT_LEVEL_32, that of 16 bits never below that of 32;
   * blocks entries each. */
  const float *column_error[HT_LEVEL_64];
  /* y = S A^ S x. Exponent of s_i in solver order, or NULL when all are uniform_exponent. */
  const int16_t *scale_exponent;
  int uniform_exponent;
} ht_split_view;

/* The level that a tile is read at when `asked` is wanted: never above the one that is exact, always full for RAW. */
static inline ht_level ht_tile_level(const ht_tile *t, ht_level asked) {
  return t->encoding == HT_RAW ? HT_LEVEL_64 : asked < (ht_level)t->exact ? asked : (ht_level)t->exact;
}

/* Of s_i, i in solver order. */
static inline int ht_split_exponent(const ht_split_view *a, int64_t i) {
  return a->scale_exponent ? a->scale_exponent[i] : a->uniform_exponent;
}

/* ---- The fused CG engine ----
 * State of one CG solve in solver order on scaled quantities: x^ = S x, r^ = S^-1 r, p^ = S p. The same struct drives the
 * textbook loop (in the caller's order, unscaled); the controller above reads the scalars only. */
typedef enum ht_cg_event {
  HT_CG_CONTINUE,  /* nothing yet: never returned by a run */
  HT_CG_REACHED,   /* norm_r <= goal */
  HT_CG_LIMIT,     /* iteration >= iteration_end */
  HT_CG_DECIDE,    /* iteration >= decide_at: the policy wants to look */
  HT_CG_CURVATURE, /* p'Ap <= 0 */
  HT_CG_NONFINITE, /* a scalar is NaN or infinite */
  HT_CG_DROPPED,   /* norm_r <= replace_below */
  HT_CG_GREW,      /* norm_r > grow_above */
  HT_CG_PAUSE,     /* iteration >= pause_at: time limit, callbacks, stop flag, progress */
  HT_CG_FAILED     /* the operator or preconditioner reported an error (status in the context) */
} ht_cg_event;

_Static_assert(HT_LEVEL_64 == (ht_level)HT_REPLACES_NONE, "replacement.h counts levels as this does");

/* LEARNED: the engine's network (engine_set_network). */
typedef enum ht_decide_rule { HT_DECIDE_HOST, HT_DECIDE_RULE, HT_DECIDE_BUDGET, HT_DECIDE_LEARNED } ht_decide_rule;

typedef struct ht_cg_plan ht_cg_plan; /* the backend's own */

typedef struct ht_cg_state {
  int64_t n;                      /* length of the vectors, padding included */
  double *x, *r, *p, *s;          /* iterate, residual, direction, A p */
  double *z;                      /* M^-1 r; textbook loop only */
  const double *inverse_diagonal; /* M^-1 of Jacobi on the scaled matrix; NULL: M = I in the caller's variables */
  const uint8_t *tile_level;      /* ht_level of each tile */
  /* scalars of the last iteration; norms are 2-norms in the caller's variables */
  int64_t iteration;
  double norm_r, rz, pap, alpha, beta;
  int fresh; /* set by the controller: r is new, start with p = M^-1 r */
  /* events */
  double goal, replace_below, grow_above;
  int64_t iteration_end, decide_at, pause_at;
  /* A policy that a device engine applies by itself, so that the host need not look: from decide_at on every decide_every iterations.
   * HT_DECIDE_HOST: the engine stops with HT_CG_DECIDE instead. */
  int decide_rule; /* ht_decide_rule */
  int64_t decide_every;
  double theta, eta, target; /* of the budget: see policy/policy.c */
  int floor;                 /* lowest ht_level that such a policy may choose */
  int lowest;                /* HT_DECIDE_LEARNED: lowest ht_level that was chosen in a run since ||r|| last met replace_below, or FP64 */
  /* Where replacement stands, which an engine that decides or replaces by itself follows during a run. One that was given the right-hand
   * side (engine_set_right_side) replaces the residual where that is allowed, and tells. A run in which the last one was no good - the
   * level is to be given up, or the direction - ends with HT_CG_DROPPED. */
  ht_cg_replacing replacing;
  int replaced;
  ht_cg_replacement replacement[HT_CG_REPLACEMENTS];
  uint8_t *block_level; /* host memory, one ht_level a block: a run with such a policy leaves its last levels here */
  /* records, one entry an iteration, index = iteration; capacity entries */
  int64_t capacity;
  double *history, *alphas, *betas;
  /* filled when the run ends with HT_CG_DECIDE: of the current p in the caller's scale, a column block each */
  double *block_norm2, *block_max;
  double *block_direction;       /* p itself, HT_COLUMN_BLOCK entries a block, 0 behind the last unknown; NULL: nobody asks for it */
  double error2[HT_LEVEL_64];    /* ||(A - A_level) p||^2 in the caller's scale, measured on some tiles; NaN where unknown */
  double bytes_level[HT_LEVELS]; /* matrix bytes read: the loops add to it */
} ht_cg_state;

/* ---- A backend's own split storage ----
 * A backend whose hardware wants another layout than ht_split_view builds its own from the CSR and keeps it behind this handle. The
 * encodings and levels mean the same. It holds the matrix to the bit, so that products at HT_LEVEL_64 certify. */
typedef struct ht_store ht_store;

typedef enum ht_store_engine { HT_STORE_ENGINE_AUTO, HT_STORE_ENGINE_PERSISTENT, HT_STORE_ENGINE_STREAMING } ht_store_engine;

/* The preconditioner that an engine applies by itself, in host memory and the caller's order and scale: block-Jacobi where block > 0,
 * Jacobi where there is a diagonal, else none. */
typedef struct ht_engine_precond {
  const double *diagonal; /* of A; an entry that is not positive takes 1 */
  int64_t block;          /* consecutive unknowns; the last block may be smaller */
  /* Cholesky factor L of each diagonal block of A: block x block, row-major lower triangle, reciprocals on the diagonal */
  const double *factors;
} ht_engine_precond;

/* How the backend would lay out a matrix of this size: asked before the ordering is made, because a persistent engine wants the rows
 * in compact patches of patch_rows rows each. Blocks of unknowns stay together in a column block of HT_COLUMN_BLOCK rows, which holds as
 * many whole ones as fit; what is left of it is padding. */
typedef struct ht_store_plan {
  ht_store_engine engine; /* never AUTO */
  int64_t patch_rows;     /* a multiple of HT_COLUMN_BLOCK; 0 for the streaming engine */
} ht_store_plan;

typedef struct ht_store_options {
  ht_store_plan plan;
  int64_t block;          /* consecutive unknowns that stay together: 1 to HT_COLUMN_BLOCK */
  int node;               /* consecutive unknowns that share their neighbours: 1 where that is not so */
  const int32_t *order;   /* of the blocks, order[new] = old; with patches, each takes what fits its patch_rows; NULL: natural. Copied */
  int exactness_flags;    /* 0: every group is taken to need all bits */
  const double *diagonal; /* of A */
  /* For what the context keeps of patterns, or NULL: the pattern's fingerprint, and what `order` was made by */
  const ht_fingerprint *pattern;
  int ordering;              /* as it was asked for */
  const char *ordering_name; /* what came of it */
} ht_store_options;

typedef struct ht_store_info {
  int64_t n, padded, blocks;             /* as in ht_split_view */
  int64_t bytes;                         /* stored in all */
  double bytes_level[HT_LEVELS];         /* that store_multiply reads with every block at this level */
  double bytes_whole[HT_LEVELS];         /* that an engine does, which then reads what is exact at a lower one like the rest */
  double share_exact_16, share_exact_32; /* of the nonzeros */
  double share_constant;                 /* of the rows: A times ones is little of the diagonal there */
  double share_gathered;                 /* of what is stored: columns found by indices, not by offsets that rows share */
  float error_16, error_32;              /* largest column errors of the lower levels, against the scaled matrix */
  const char *engine;                    /* "persistent", "streaming" */
} ht_store_info;

/* What a backend sees in a CSR in its memory: numbers of what must not be, and what the host would have found on its way. */
typedef struct ht_csr_facts {
  int64_t other; /* rows and entries that show that the pattern is not the store's */
  int64_t wrong; /* entries that are not so in the pattern, or leave the range of FP64 when they are scaled */
  int64_t not_finite, unsymmetric, not_positive; /* entries; not_positive: of the diagonal */
  int zero_sums;                                 /* every row adds up to zero but for rounding */
  double norm_inf, diagonal_least, diagonal_most;
} ht_csr_facts;

/* The CG engine of a store: vectors stay with the engine, scalars travel in ht_cg_state. */
typedef struct ht_engine ht_engine;

/* ---- Sums that are taken together ----
 * x'y, the largest |x_i|, or ||x - y||^2. A NaN among the entries shows in the result. */
typedef enum ht_reduction_kind { HT_DOT, HT_NORM_INF, HT_DISTANCE_SQUARE } ht_reduction_kind;

enum { HT_REDUCTIONS_MOST = 8 };

typedef struct ht_reduction {
  ht_reduction_kind kind;
  const double *x, *y; /* y: not for HT_NORM_INF */
  double result;
} ht_reduction;

/* ---- The table ----
 * Vectors that are given to a product or a vector operation lie in the backend's memory; ht_context carries the device that is in
 * use. A device that fails records its error in the context; sums are NaN from then on, and `failed` says so. */
typedef struct ht_backend {
  const char *name;
  /* Take a device ("" or its number); HT_UNSUPPORTED with a sentence when there is none that can be used. CPU: nothing to do. */
  ht_status (*open)(ht_context *ctx, const char *device);
  /* HT_OK, or the error of the first call that failed. */
  ht_status (*failed)(ht_context *ctx);
  /* One line about the driver and the devices that `open` would find; it takes none. NULL where there is nothing to tell. */
  void (*about)(ht_context *ctx, char *text, size_t size);
  /* As ht_context_set_cuda_stream. NULL where there are no streams. */
  ht_status (*set_stream)(ht_context *ctx, void *stream);
  /* Memory: `bytes` zeroed bytes. Copies are complete when they return; `from` and `to` may also be the caller's memory, wherever
   * that lies. */
  ht_status (*memory_create)(ht_context *ctx, int64_t bytes, void *memory);
  void (*memory_release)(ht_context *ctx, void *memory); /* NULL is allowed */
  /* Bytes of the device's memory that the context held at once, at most. NULL where the memory is the host's. */
  int64_t (*memory_most)(ht_context *ctx);
  ht_status (*upload)(ht_context *ctx, int64_t bytes, const void *from, void *to);
  ht_status (*download)(ht_context *ctx, int64_t bytes, const void *from, void *to);
  /* Whether products and vector operations can take this pointer as it is. A backend that reaches the context itself works in the
   * host's memory, and the host may touch what memory_create gives. */
  int (*reaches)(ht_context *ctx, const void *memory);
  const char *(*isa)(void); /* instruction set in use: "avx512", "avx2", "portable" */
  /* Force an instruction set ("auto" for the best this processor has). HT_UNSUPPORTED when the processor lacks it. */
  ht_status (*set_isa)(ht_context *ctx, const char *name);
  /* Bytes of the last-level cache: below it, values stay on chip and low precision saves nothing. */
  int64_t (*cache_bytes)(void);
  /* y = A x; deterministic, independent of the number of threads. */
  void (*csr_multiply)(ht_context *ctx, const ht_csr_view *a, const double *x, double *y);
  /* r = b - A x in the caller's order. */
  void (*csr_residual)(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r);
  /* In the caller's order. level: one ht_level a column block, in the backend's memory, or NULL for FP64. tilecsc_interleaved: it takes
   * interleaved storage alone, and of it of the tiles head alone, and not scale. */
  void (*tilecsc_multiply)(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y);
  int tilecsc_interleaved;
  /* y^ = A^ x^ in solver order; tile_level: one ht_level a tile. */
  void (*split_multiply)(ht_context *ctx, const ht_split_view *a, const uint8_t *tile_level, const double *x, double *y);
  /* Vector operations over fixed chunks: the sums do not depend on the number of threads. */
  double (*dot)(ht_context *ctx, int64_t n, const double *x, const double *y);
  void (*axpy)(ht_context *ctx, int64_t n, double a, const double *x, double *y);            /* y += a x */
  void (*xpby)(ht_context *ctx, int64_t n, const double *x, double b, double *y);            /* y = x + b y */
  void (*scale_by)(ht_context *ctx, int64_t n, const double *d, const double *x, double *y); /* y = d .* x */
  void (*copy)(ht_context *ctx, int64_t n, const double *x, double *y);                      /* y = x */
  void (*shift)(ht_context *ctx, int64_t n, int exponent, const double *x, double *y);       /* y = 2^exponent x, as ldexp; y may be x */
  double (*norm_inf)(ht_context *ctx, int64_t n, const double *x);                           /* NaN where an entry is */
  /* Up to HT_REDUCTIONS_MOST of them over vectors of n, each to the bits that it has alone: a device is waited for once. */
  void (*reduce)(ht_context *ctx, int64_t n, int count, ht_reduction *reductions);
  /* The fused loop on the split storage; NULL where the backend has none. A plan holds what depends on the pattern and the
   * number of threads; run works until an event and allocates nothing. A resumed run takes the pending step first. */
  ht_status (*cg_prepare)(ht_context *ctx, const ht_split_view *a, ht_cg_plan **plan);
  ht_cg_event (*cg_run)(ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state);
  void (*cg_release)(ht_cg_plan *plan); /* NULL is allowed */
  /* The backend's own split storage and its engine; NULL where the backend works on ht_split_view. The CSR lies in host memory;
   * store_multiply takes vectors in the caller's order, unscaled; block_level (host memory) NULL: FP64. engine_blocks: the engine takes
   * block-Jacobi, with blocks of the size that the store was made for. */
  void (*store_plan)(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_store_engine asked, ht_store_plan *plan);
  /* The ordering's name where the context knows how to arrange a store of this pattern with these options: store_create then needs no
   * order. NULL: it does not. */
  const char *(*store_met)(ht_context *ctx, const ht_store_options *options);
  ht_status (*store_create)(ht_context *ctx, const ht_csr_view *a, const ht_store_options *options, ht_store **store);
  ht_status (*store_set_values)(ht_store *store, const ht_csr_view *a, const double *diagonal);
  /* The same from a CSR in the backend's memory, whose pattern is compared. The store is spoilt where a number of the facts is not zero,
   * and on error: new values mend it. NULL where the backend cannot. */
  ht_status (*store_take)(ht_store *store, const ht_csr_view *a, ht_csr_facts *facts);
  void (*store_info)(const ht_store *store, ht_store_info *info);
  void (*store_multiply)(ht_store *store, const uint8_t *block_level, const double *x, double *y);
  /* r = b - A x in the same order and scale, each row summed as if in 106 bits and rounded once. r may be b. */
  void (*store_residual)(ht_store *store, const double *x, const double *b, double *r);
  void (*store_release)(ht_store *store);
  int engine_blocks;
  ht_status (*engine_create)(ht_store *store, const ht_engine_precond *precond, int64_t capacity, ht_engine **engine);
  /* After store_take: M^-1 anew where it is diagonal. *same 0: the engine does not suit the store's new values, and is to be made again. */
  ht_status (*engine_renew)(ht_engine *engine, int *same);
  /* The EvoCG paper's engine, the textbook loop on a device: on Tile-CSC, whose arrays lie in the backend's memory and are borrowed, in the
   * caller's order and scale. column_error, as in ht_tilecsc, and diagonal lie in host memory. NULL where the backend has none. */
  ht_status (*engine_create_on_tiles)(ht_context *ctx, const ht_tilecsc_view *a, const float *const column_error[HT_LEVEL_64],
                                      const double *diagonal, int64_t capacity, ht_engine **engine);
  /* For HT_DECIDE_LEARNED: a network that chooses the level of each column block from its 64 entries of the direction, in the caller's
   * scale and divided by their norm; its actions are FP64, FP32 and 16 bits. weights: as in ht_network, in host memory, not kept. interval:
   * iterations between two decisions, 0 for the state's decide_every. HT_UNSUPPORTED where the engine takes no network of that shape. NULL
   * where the backend has no such thing. */
  ht_status (*engine_set_network)(ht_engine *engine, const float *weights, int inputs, int hidden, int actions, int64_t interval);
  /* As cg_run; the records (history, alphas, betas) and block statistics go to state's arrays in host memory when a run ends, and the
   * matrix bytes that it read are added to bytes_level. */
  ht_cg_event (*engine_run)(ht_engine *engine, ht_cg_state *state);
  void (*engine_set_levels)(ht_engine *engine, const uint8_t *block_level); /* host memory, one ht_level a block */
  /* Vectors in the caller's order and scale, in the backend's memory. */
  void (*engine_set_iterate)(ht_engine *engine, const double *x);
  void (*engine_get_iterate)(ht_engine *engine, double *x);
  void (*engine_set_residual)(ht_engine *engine, const double *r);
  void (*engine_get_residual)(ht_engine *engine, double *r);
  /* For ht_cg_state.replacing. Returns whether the engine replaces. NULL: no engine of the backend does. */
  int (*engine_set_right_side)(ht_engine *engine, const double *b);
  /* The iterate of its replacements with the least residual, where that is below replacing.best as the run began. */
  void (*engine_get_best)(ht_engine *engine, double *x);
  double (*engine_direction_square)(ht_engine *engine); /* p'p of the scaled direction */
  /* p in solver order, padding included, and the caller's scale, into host memory. NULL: the engine cannot. */
  void (*engine_get_direction)(ht_engine *engine, double *p);
  void (*engine_release)(ht_engine *engine); /* NULL is allowed */
  /* Training of precision policies on the device: many solves at once, and proximal policy optimisation over their transitions. All
   * pointers are to host memory, and nothing is kept. HT_UNSUPPORTED where the settings are more than the device takes. NULL where the
   * backend has no such thing. */
  ht_status (*learner_create)(ht_context *ctx, const ht_learner_settings *settings, int matrices, const ht_learner_system *system,
                              ht_learner **learner);
  /* Most iterations of an episode with this matrix. */
  void (*learner_set_limit)(ht_learner *learner, int matrix, int64_t iterations);
  /* The reward time of a matrix: of each of its right-hand sides; iterations from one decision to the next. Before the first episode. */
  ht_status (*learner_set_saving)(ht_learner *learner, int matrix, const ht_learner_side *side, int64_t interval);
  /* The network's weights in ht_network's order, Adam's moments and number of steps. */
  ht_status (*learner_set_network)(ht_learner *learner, const float *weights, const float *first, const float *second, int64_t steps);
  ht_status (*learner_get_network)(ht_learner *learner, float *weights, float *first, float *second, int64_t *steps);
  ht_status (*learner_set_lane)(ht_learner *learner, int lane, const ht_learner_lane *from);
  ht_status (*learner_get_lane)(ht_learner *learner, int lane, ht_learner_lane *to); /* into the vectors that it points to */
  /* The next transitions; finished, of as many as there are transitions: the episodes that ended, by lane and time. */
  ht_status (*learner_collect)(ht_learner *learner, ht_episode *finished, int64_t *count);
  /* All epochs over them, as ht_ppo_update. */
  ht_status (*learner_update)(ht_learner *learner, uint64_t seed, ht_ppo_loss *mean);
  ht_status (*learner_judge)(ht_learner *learner, int matrix, const ht_learner_trial *trial, ht_learner_judgement *judgement);
  void (*learner_release)(ht_learner *learner); /* NULL is allowed */
} ht_backend;

/* Whether the backend works in the host's memory. */
static inline int ht_backend_is_host(ht_context *ctx, const ht_backend *backend) { return backend->reaches(ctx, ctx); }

/* By name ("cpu", "cuda", "cuda:1"), opened; HT_UNSUPPORTED when it is not compiled in or finds no device, HT_BAD_OPTION with the
 * known names otherwise. */
ht_status ht_backend_find(ht_context *ctx, const char *name, const ht_backend **backend);
/* Whether the cuda backend is compiled in, its driver and its devices, or why there are none; no error is left behind. */
void ht_backend_about_cuda(ht_context *ctx, char *text, size_t size);
/* For tests: one more backend, found by its name before all others. NULL takes it away. */
void ht_backend_set_extra(const ht_backend *backend);

#endif
