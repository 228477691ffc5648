/* The engines' preconditioner. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_ENGINE_PRECOND_H
#define HT_BACKEND_CUDA_ENGINE_PRECOND_H
#include "backend/cuda/cg.h"
#include "backend/cuda/store.h"

/* Fills inverse_diagonal, or inverse_blocks and sets block; none of them for M = I. */
ht_status ht_cuda_engine_precondition(ht_store *store, const ht_engine_precond *precond, ht_cuda_cg_vectors *v);

#endif
