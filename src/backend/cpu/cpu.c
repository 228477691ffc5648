/* The CPU backend's table. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/cpu.h"

const ht_backend ht_backend_cpu = {
    .name = "cpu",
    .isa = ht_cpu_isa_name,
    .set_isa = ht_cpu_set_isa,
    .cache_bytes = ht_cpu_cache_bytes,
    .csr_multiply = ht_cpu_csr_multiply,
    .csr_residual = ht_cpu_csr_residual,
    .tilecsc_multiply = ht_cpu_tilecsc_multiply,
    .split_multiply = ht_cpu_split_multiply,
    .dot = ht_cpu_dot,
    .axpy = ht_cpu_axpy,
    .xpby = ht_cpu_xpby,
    .scale_by = ht_cpu_scale_by,
    .cg_prepare = ht_cpu_cg_prepare,
    .cg_run = ht_cpu_cg_run,
    .cg_release = ht_cpu_cg_release,
};
