/* Vector passes of the CG engine for any processor. SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/cg_vector.tmpl.h"

const ht_cg_kernels ht_cpu_cg_portable = {update, reduce};
