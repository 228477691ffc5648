/* The CUDA backend's table. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cuda/cuda.h"

/* Instruction sets are the processor's: any choice is as good as another here. */
static const char *isa(void) { return "cuda"; }

static ht_status set_isa(ht_context *ctx, const char *name) {
  (void)ctx;
  (void)name;
  return HT_OK;
}

const ht_backend ht_backend_cuda = {
    .name = "cuda",
    .open = ht_cuda_open,
    .failed = ht_cuda_failed,
    .about = ht_cuda_about,
    .set_stream = ht_cuda_set_stream,
    .memory_create = ht_cuda_memory_create,
    .memory_release = ht_cuda_memory_release,
    .memory_most = ht_cuda_memory_most,
    .upload = ht_cuda_upload,
    .download = ht_cuda_download,
    .reaches = ht_cuda_reaches,
    .isa = isa,
    .set_isa = set_isa,
    .cache_bytes = ht_cuda_cache_bytes,
    .csr_multiply = ht_cuda_csr_multiply,
    .csr_residual = ht_cuda_csr_residual,
    .tilecsc_multiply = ht_cuda_tilecsc_multiply,
    .tilecsc_interleaved = 1,
    .dot = ht_cuda_dot,
    .axpy = ht_cuda_axpy,
    .xpby = ht_cuda_xpby,
    .scale_by = ht_cuda_scale_by,
    .copy = ht_cuda_copy_vector,
    .shift = ht_cuda_shift,
    .norm_inf = ht_cuda_norm_inf,
    .reduce = ht_cuda_reduce,
    .store_plan = ht_cuda_store_plan,
    .store_met = ht_cuda_store_met,
    .store_create = ht_cuda_store_create,
    .store_take = ht_cuda_store_take,
    .engine_renew = ht_cuda_engine_renew,
    .store_set_values = ht_cuda_store_set_values,
    .store_info = ht_cuda_store_info,
    .store_multiply = ht_cuda_store_multiply,
    .store_release = ht_cuda_store_release,
    .engine_blocks = 1,
    .engine_create = ht_cuda_engine_create,
    .engine_create_on_tiles = ht_cuda_engine_create_on_tiles,
    .engine_set_network = ht_cuda_engine_set_network,
    .engine_run = ht_cuda_engine_run,
    .engine_set_levels = ht_cuda_engine_set_levels,
    .engine_set_iterate = ht_cuda_engine_set_iterate,
    .engine_get_iterate = ht_cuda_engine_get_iterate,
    .engine_set_residual = ht_cuda_engine_set_residual,
    .engine_get_residual = ht_cuda_engine_get_residual,
    .engine_get_direction = ht_cuda_engine_get_direction,
    .engine_direction_square = ht_cuda_engine_direction_square,
    .engine_release = ht_cuda_engine_release,
    .learner_create = ht_cuda_learner_create,
    .learner_set_limit = ht_cuda_learner_set_limit,
    .learner_set_network = ht_cuda_learner_set_network,
    .learner_get_network = ht_cuda_learner_get_network,
    .learner_set_lane = ht_cuda_learner_set_lane,
    .learner_get_lane = ht_cuda_learner_get_lane,
    .learner_collect = ht_cuda_learner_collect,
    .learner_update = ht_cuda_learner_update,
    .learner_judge = ht_cuda_learner_judge,
    .learner_release = ht_cuda_learner_release,
};
