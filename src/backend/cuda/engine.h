/* The CG engines' host side: what its files share. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_ENGINE_H
#define HT_BACKEND_CUDA_ENGINE_H
#include "backend/cuda/cg.h"
#include "backend/cuda/network.h"
#include "backend/cuda/store.h"

enum {
  HT_ENGINE_MIXED = -1,
  HT_ENGINE_MODES = HT_LEVELS + 1,
  HT_ENGINE_RUNS = 4 /* graphs of 1, 2, 4 and 8 iterations */
};

struct ht_engine {
  ht_context *ctx;
  ht_cuda *cuda;
  ht_store *store; /* NULL: the EvoCG paper's engine, on `tiles` */
  ht_cuda_cg_vectors v;
  ht_cuda_cg_staged *staged; /* pinned, behind v.told: scalars on their way to the device */
  int64_t padded, blocks;    /* of the vectors */
  int64_t capacity;
  int uniform;         /* level of all blocks, or HT_ENGINE_MIXED */
  int lowest, highest; /* of any block */
  /* streaming and the paper's: made when they are first needed, by what groups are read at (the paper's: whether it
   * is streamed) and by
   * log2 of the iterations */
  CUgraphExec graph[HT_ENGINE_MODES][HT_ENGINE_RUNS];
  CUevent passed[2];
  int narrow; /* streaming: where the direction is, in v.narrow or in v.p */
  int update_blocks, multiply_blocks[HT_ENGINE_MODES], precondition_blocks, stride; /* precondition_blocks: 0 where M is diagonal */
  /* persistent */
  unsigned block;
  int rows;       /* a thread */
  int long_halos; /* whether they are collected in shared memory */
  int exact;      /* all values were exact at 16 bits when it was made: it has a kernel for that */
  /* the paper's */
  ht_tilecsc_view tiles;
  ht_cuda_tiles_facts facts;
  int wide; /* the step for long vectors */
  ht_launch step;
  /* a learned policy: HT_DECIDE_LEARNED */
  ht_cuda_network network;
  int64_t interval;     /* K*: iterations between two decisions; 0: as the state says */
  int64_t next;         /* iteration whose direction is looked at next */
  CUgraphExec deciding; /* streaming: the longest run, with a decision before each deciding_every-th iteration; NULL: not made yet */
  int64_t deciding_every;
};

/* engine.c */
ht_status ht_cuda_engine_allocate(ht_engine *engine); /* vectors and records, by padded, blocks and capacity */
void ht_cuda_engine_forget_graphs(ht_engine *engine); /* the iterations' kernels are to be launched in another way */
/* engine_precond.c: makes inverse_diagonal, or inverse_blocks and block; none of them for M = I */
ht_status ht_cuda_engine_precondition(ht_engine *engine, const ht_engine_precond *precond);
ht_status ht_cuda_engine_invert(ht_engine *engine); /* inverse_diagonal, from the store's diagonal */
/* paper.c: on an engine that is allocated */
ht_status ht_cuda_paper_start(ht_engine *engine);                   /* the residual's first direction */
ht_status ht_cuda_paper_iteration(ht_engine *engine, int streamed); /* product and step: captured */
int ht_cuda_paper_streams(const ht_engine *engine, int level);      /* whether the matrix is, at a level or HT_ENGINE_MIXED */
void ht_cuda_paper_add_bytes(const ht_engine *engine, ht_cg_state *state);
void ht_cuda_paper_release(ht_engine *engine);
/* network.c */
ht_status ht_cuda_decide(ht_engine *engine); /* a level for each block, from the direction as it stands */

#endif
