/* What a solve reports. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_REPORT_H
#define HALFTONE_REPORT_H
#include <stddef.h>
#include <stdint.h>
#include "halftone/status.h"
#ifdef __cplusplus
extern "C" {
#endif

#define HT_REPORT_TEXT 256

/* Every field is one row of report.def (name, type, unit, help); JSON, the command's table and this struct walk that list. */
typedef struct ht_report {
#define HT_REPORT_REAL(name, unit, help) double name;
#define HT_REPORT_INTEGER(name, unit, help) int64_t name;
#define HT_REPORT_STRING(name, unit, help) char name[HT_REPORT_TEXT];
#define HT_REPORT_OUTCOME(name, unit, help) ht_outcome name;
#include "halftone/report.def"
#undef HT_REPORT_REAL
#undef HT_REPORT_INTEGER
#undef HT_REPORT_STRING
#undef HT_REPORT_OUTCOME
} ht_report;

HT_API void ht_report_clear(ht_report *report); /* unknown numbers become NaN or -1, texts "", the outcome HT_NOT_RUN */

typedef enum ht_report_type { HT_REPORT_IS_REAL, HT_REPORT_IS_INTEGER, HT_REPORT_IS_STRING, HT_REPORT_IS_OUTCOME } ht_report_type;
typedef struct ht_report_info {
  const char *name;
  ht_report_type type;
  const char *unit, *help;
  size_t offset;
} ht_report_info;
/* Walk all fields: index from 0 to ht_report_count()-1; NULL outside. */
HT_API int ht_report_count(void);
HT_API const ht_report_info *ht_report_at(int index);
/* One JSON object, NUL-terminated, into the caller's buffer; returns the length it needs (as snprintf does). */
HT_API size_t ht_report_json(const ht_report *report, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
