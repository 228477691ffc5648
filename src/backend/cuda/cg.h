/* What the CG kernels share with the host: the scalars of a solve, which stay on the device between launches.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_CG_H
#define HT_BACKEND_CUDA_CG_H
#include "backend/cuda/network.h"
#include "backend/cuda/view.h"
#include "backend/replacement.h"

/* The persistent engine's sums: twice, as many copies of so many messages of 16 bytes of each block. */
enum { HT_MAIL_COPIES = 4, HT_MAIL_MESSAGES = 3, HT_MAIL_BYTES = 2 * HT_MAIL_COPIES * HT_MAIL_MESSAGES * HT_PATCHES_MOST * 16 };
enum { HT_CUDA_TOLD = 1024 }; /* records of a run that come with its event: a guard pauses an engine more often */

/* Of a warp's ring in shared memory (rings.def): its stages, and their barriers. Stages begin where 128 bytes do: bulk copies to elsewhere
 * cost a fifth of the speed. */
#define HT_RING_BYTES(level, indexed, units, stages) ((stages) * (units)*HT_WARP * 4 * ((1 << (level)) + (indexed)) + 128)

/* Fields as in ht_cg_state. */
typedef struct ht_cuda_cg_scalars {
  int64_t iteration, first; /* first: of the run */
  double norm_r, rz, pap, alpha, beta;
  double goal, replace_below, grow_above;
  int64_t iteration_end, decide_at, pause_at;
  int64_t capacity;
  int32_t event;         /* ht_cg_event; launches after an event do nothing */
  int32_t due;           /* the paper's engine: the next product is A x, for a replacement. Read with the event */
  int32_t looks;         /* the paper's engine: that a policy has taken in this run */
  int32_t recount;       /* the last of them was in the step before: tiles may have other levels than their heads say */
  int32_t decide_rule;   /* ht_decide_rule */
  int32_t floor;         /* lowest level that the rule may choose */
  int32_t lowest;        /* that a network has chosen since ||r|| was last compared with replace_below */
  int32_t lowest_before; /* and in this run until then */
  int32_t now;           /* the paper's engine: the lowest level that the last product was read at */
  int32_t replaced;      /* the paper's engine: residuals in this run */
  int64_t decide_every;
  double theta, eta, target;
  double calibration_16, calibration_32; /* squared: measured error over the blocks' estimate */
  double mean_norm2;                     /* of the last direction, over column blocks, under the rule `budget`; 0: not known yet */
  int32_t owed, later;                   /* streaming: a step of x that is still to be made; whether this iteration's is put off */
  double owed_alpha, owed_beta;
  int32_t uniform;         /* streaming: level of all blocks; -1: as block_level says */
  uint32_t finished;       /* blocks of the product that are through */
  double level_groups[3];  /* groups read at each level since the run began, for the bytes; the paper's engine: bytes */
  double product_bytes[3]; /* the paper's engine: of a product with the blocks' levels, where they are mixed */
  ht_cg_replacing replacing;
} ht_cuda_cg_scalars;

/* What the paper's engine has chosen at its last look and at the one before, in turns: look k's in chosen[k & 1]. A bit a level, and
 * whether any block has another one than before. */
enum { HT_CHOSEN_CHANGED = 1 << 3 };

/* As a run begins. */
typedef struct ht_cuda_cg_staged {
  ht_cuda_cg_scalars scalars;
  uint32_t chosen[2];
} ht_cuda_cg_staged;

typedef struct ht_cuda_cg_vectors {
  double *x, *r, *p, *s;
  /* The direction of the streaming engine while all products are read at 16 or at 32 bits: that of iteration k in narrow[k & 1], and the
   * one before it, which x may still be owed, in the other. */
  float *narrow[2];
  /* M^-1 of the scaled matrix: Jacobi's, or block-Jacobi's; both NULL: M = I in the caller's variables */
  const float *inverse_diagonal;
  const float *inverse_blocks; /* of column block c and its row i, entry j of the row's block at 64 (block c + j) + i */
  int32_t block;               /* unknowns a block; a column block holds as many whole ones as fit */
  uint8_t *block_level;        /* ht_level of each column block */
  double *block_norm2, *block_max;
  double *history, *alphas, *betas;
  double *sums; /* partial sums: arrays of the streaming engine's stride, or the persistent engine's messages */
  ht_cuda_cg_scalars *scalars;
  uint32_t *chosen;                     /* the paper's engine: 2; else NULL */
  ht_cuda_cg_scalars *told;             /* pinned: what the host sees of an event */
  double *told_records;                 /* pinned: HT_CUDA_TOLD of each of history, alphas and betas, from the run's first iteration on */
  double *b, *best;                     /* the paper's engine: the right-hand side, and the best x that it met at replacements */
  ht_cg_replacement *told_replacements; /* pinned: HT_CG_REPLACEMENTS */
  /* persistent engine */
  double *exchange; /* twice 2 a row: M^-1 r and M^-1 s of boundary rows */
  uint32_t *epochs; /* of what the blocks send next: sums, rows */
} ht_cuda_cg_vectors;

/* What the EvoCG paper's engine knows of each column block, besides the tiles. */
typedef struct ht_cuda_tiles_facts {
  int64_t padded, blocks;           /* padded: 64 a block */
  const float *error_16, *error_32; /* largest column errors */
  const double *inverse_diagonal;   /* NULL: M = I */
  const double *bytes;              /* that a product reads for it: `blocks` numbers for each level */
  int64_t row_blocks, tiles;
  double whole[3];    /* bytes in all */
  double *products;   /* p's of each row block, which the product leaves */
  ht_tile_head *head; /* with the levels of the last look that mixed some, and of its step */
  ht_cuda_network network;
} ht_cuda_tiles_facts;

#endif
