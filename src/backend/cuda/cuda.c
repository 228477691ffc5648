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
    .memory_create = ht_cuda_memory_create,
    .memory_release = ht_cuda_memory_release,
    .upload = ht_cuda_upload,
    .download = ht_cuda_download,
    .reaches = ht_cuda_reaches,
    .isa = isa,
    .set_isa = set_isa,
    .cache_bytes = ht_cuda_cache_bytes,
    .csr_multiply = ht_cuda_csr_multiply,
    .csr_residual = ht_cuda_csr_residual,
    .tilecsc_multiply = ht_cuda_tilecsc_multiply,
    .dot = ht_cuda_dot,
    .axpy = ht_cuda_axpy,
    .xpby = ht_cuda_xpby,
    .scale_by = ht_cuda_scale_by,
    .copy = ht_cuda_copy_vector,
    .shift = ht_cuda_shift,
    .norm_inf = ht_cuda_norm_inf,
};
