/* Which backend a problem is solved on. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_CHOOSE_BACKEND_H
#define HT_SOLVER_CHOOSE_BACKEND_H
#include "backend/backend.h"
#include "solver/options.h"

/* HT_ENGINE_...: one that only a device has. */
int ht_engine_is_a_gpus(int engine);
/* By options->solve.backend. nnz: of the matrix, -1 for the caller's operator. A name gives that backend, opened, or the error that says
 * why not, and an empty `why`. "auto" gives cuda where there is one that the options and the size suit, else cpu, and no error:
 * `why` (HT_REPORT_TEXT) says what was chosen, and why. */
ht_status ht_choose_backend(ht_context *ctx, const struct ht_options *options, int64_t nnz, const ht_backend **backend, char *why);
/* After a backend that auto chose has failed: cpu, and why. The error is taken from the context. */
ht_status ht_choose_cpu_instead(ht_context *ctx, const ht_backend **backend, char *why);

#endif
