/* Status codes, outcomes and their sentences. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_STATUS_H
#define HALFTONE_STATUS_H

#if defined(__GNUC__)
#define HT_API __attribute__((visibility("default")))
#define HT_MUST_CHECK __attribute__((warn_unused_result))
#define HT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define HT_API
#define HT_MUST_CHECK
#define HT_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. HT_OK is 0. After every other value the objects passed in can be used again or destroyed, an object that
 * was to be made is NULL, arrays that were to be filled hold anything, and the context keeps the sentence (ht_context_error).
 * "Did not converge" is not an error: it is an ht_outcome in the report. */
typedef enum ht_status {
#define HT_STATUS(name, text) HT_##name,
#include "halftone/status.def"
#undef HT_STATUS
} ht_status;

/* How a solve ended. Only HT_CONVERGED means that the FP64 true residual of the original matrix meets the tolerance. */
typedef enum ht_outcome {
#define HT_OUTCOME(name, key, text) HT_##name,
#include "halftone/outcome.def"
#undef HT_OUTCOME
} ht_outcome;

HT_API const char *ht_status_name(ht_status status);    /* "HT_NO_MEMORY" */
HT_API const char *ht_status_text(ht_status status);    /* "memory is exhausted" */
HT_API const char *ht_outcome_name(ht_outcome outcome); /* "converged": the key used in JSON */
HT_API const char *ht_outcome_text(ht_outcome outcome); /* one sentence */

#ifdef __cplusplus
}
#endif
#endif
