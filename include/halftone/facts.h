/* Facts about a matrix: structure, symmetry, values, spectrum, storage. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_FACTS_H
#define HALFTONE_FACTS_H
#include "halftone/matrix.h"
#include "halftone/report.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { HT_FACTS_BINS = 33 };

/* Every field is one row of facts.def (name, type, unit, help), as the fields of ht_report are of report.def. */
typedef struct ht_facts {
#define HT_FACT_REAL(name, unit, help) double name;
#define HT_FACT_INTEGER(name, unit, help) int64_t name;
#define HT_FACT_STRING(name, unit, help) char name[HT_REPORT_TEXT];
#include "halftone/facts.def"
#undef HT_FACT_REAL
#undef HT_FACT_INTEGER
#undef HT_FACT_STRING
  /* Rows by their own bandwidth max |i - j|: [0] counts rows with 0 (diagonal or empty), [k] those from 2^(k-1) to 2^k - 1. */
  int64_t rows_by_bandwidth[HT_FACTS_BINS];
} ht_facts;

/* Measure. `lanczos_steps` products with A, and as many with the Jacobi-scaled A, estimate the extreme eigenvalues from a
 * starting vector that is always the same; 0 leaves them out, and so does a matrix that is not symmetric. The split storage is built, to
 * see which values are exact in it, and given up again; then some 5 n doubles of memory are taken for the time of the call. Errors:
 * HT_NO_MEMORY, HT_INTERRUPTED (ht_context_request_stop). */
HT_API HT_MUST_CHECK ht_status ht_matrix_facts(const ht_matrix *matrix, int lanczos_steps, ht_facts *facts);

/* Walk all fields: index from 0 to ht_facts_count()-1; NULL outside. */
HT_API int ht_facts_count(void);
HT_API const ht_report_info *ht_facts_at(int index);
/* One JSON object of the listed fields, NUL-terminated; returns the length it needs (as snprintf does). */
HT_API size_t ht_facts_json(const ht_facts *facts, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
