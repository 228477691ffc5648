/* The choice of the backend. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/choose_backend.h"
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/words.h"
#include "halftone/report.h"
#include "precond/precond.h"

/* Below this a solve on the CPU ends before a GPU has taken the matrix in: set-up and one solve on 16 cores took as long as on an H200
 * at 2,000 (unstructured mesh), 12,000 (27 points) and 15,000 (5 points) nonzeros (docs/decisions/0004). */
static const int64_t LEAST_NONZEROS = 15000;

int ht_engine_is_a_gpus(int engine) { return engine == HT_ENGINE_PERSISTENT || engine == HT_ENGINE_STREAMING || engine == HT_ENGINE_PAPER; }

/* What the options or the problem leave to the CPU alone, as the end of a sentence; NULL where it is all the same. */
static const char *only_on_cpu(const struct ht_options *o, int64_t nnz) {
  const ht_precond_entry *precond = ht_precond_at(o->precond.precond);
  if (nnz < 0) return "the caller's operator works in the host's memory";
  int in_engine = o->op.format == HT_FORMAT_SPLIT && o->solve.engine != HT_ENGINE_TEXTBOOK;
  if (precond && (precond->place == HT_PRECOND_HOST || (precond->place == HT_PRECOND_HOST_OR_ENGINE && !in_engine)))
    return "the preconditioner works there only";
  if (o->op.isa) return "an instruction set is asked for";
  if (o->solve.engine == HT_ENGINE_FUSED) return "the engine fused works there only";
  return NULL;
}

static ht_status check_named(ht_context *ctx, const struct ht_options *o, int64_t nnz, const ht_backend *backend) {
  int is_host = ht_backend_is_host(ctx, backend);
  HT_CHECK(ctx, is_host || nnz >= 0, HT_UNSUPPORTED,
           "the caller's operator works in the host's memory, which the %s backend does not; use --backend cpu", backend->name);
  HT_CHECK(ctx, backend->store_create || !ht_engine_is_a_gpus(o->solve.engine), HT_BAD_OPTION,
           "the engines persistent, streaming and paper are a GPU's, and the backend is %s; use --engine auto", backend->name);
  int possible = o->op.format == HT_FORMAT_CSR       ? backend->csr_multiply != NULL
                 : o->op.format == HT_FORMAT_TILECSC ? backend->tilecsc_multiply != NULL
                                                     : backend->store_create || is_host;
  HT_CHECK(ctx, possible, HT_UNSUPPORTED, "the %s backend has no such storage; use another --format or --backend cpu", backend->name);
  return HT_OK;
}

static ht_status take(ht_context *ctx, const struct ht_options *o, int64_t nnz, const char *name, const ht_backend **backend) {
  HT_TRY(ctx, ht_backend_find(ctx, name, backend));
  HT_TRY(ctx, check_named(ctx, o, nnz, *backend));
  return HT_OK;
}

/* The error's sentence, without what it advises, becomes the reason. */
static void take_error(ht_context *ctx, const char *before, char *why) {
  const char *error = ht_context_error(ctx);
  ht_print_words(why, HT_REPORT_TEXT, "%s%.*s", before, (int)strcspn(error, ";"), error);
  ht_context_clear_error(ctx);
}

ht_status ht_choose_cpu_instead(ht_context *ctx, const ht_backend **backend, char *why) {
  take_error(ctx, "cpu: ", why);
  HT_TRY(ctx, ht_backend_find(ctx, "cpu", backend));
  return HT_OK;
}

ht_status ht_choose_backend(ht_context *ctx, const struct ht_options *o, int64_t nnz, const ht_backend **backend, char *why) {
  const char *reason = only_on_cpu(o, nnz);
  why[0] = 0;
  *backend = NULL;
  if (strcmp(o->solve.backend, "auto") != 0) {
    HT_TRY(ctx, take(ctx, o, nnz, o->solve.backend, backend));
    return HT_OK;
  }
  if (ht_engine_is_a_gpus(o->solve.engine)) {
    HT_TRY(ctx, take(ctx, o, nnz, "cuda", backend));
    snprintf(why, HT_REPORT_TEXT, "cuda: the engine asked for works there only");
    return HT_OK;
  }
  if (reason) {
    snprintf(why, HT_REPORT_TEXT, "cpu: %s", reason);
  } else if (nnz < LEAST_NONZEROS) {
    snprintf(why, HT_REPORT_TEXT, "cpu: the matrix has %s, fewer than the %lld from which a GPU gains", ht_number_of(nnz, "nonzero").text,
             (long long)LEAST_NONZEROS);
  } else if (take(ctx, o, nnz, "cuda", backend) == HT_OK) {
    snprintf(why, HT_REPORT_TEXT, "cuda: the matrix has %s, enough for a GPU to gain", ht_number_of(nnz, "nonzero").text);
    return HT_OK;
  } else {
    take_error(ctx, "cpu: no CUDA device: ", why);
  }
  HT_TRY(ctx, ht_backend_find(ctx, "cpu", backend));
  return HT_OK;
}
