/* The report's fields and its JSON form. SPDX-License-Identifier: BSD-3-Clause */
#include "halftone/report.h"
#include "base/fields.h"

static const ht_report_info fields[] = {
#define HT_REPORT_REAL(name, unit, help) {#name, HT_REPORT_IS_REAL, unit, help, offsetof(ht_report, name)},
#define HT_REPORT_INTEGER(name, unit, help) {#name, HT_REPORT_IS_INTEGER, unit, help, offsetof(ht_report, name)},
#define HT_REPORT_STRING(name, unit, help) {#name, HT_REPORT_IS_STRING, unit, help, offsetof(ht_report, name)},
#define HT_REPORT_OUTCOME(name, unit, help) {#name, HT_REPORT_IS_OUTCOME, unit, help, offsetof(ht_report, name)},
#include "halftone/report.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };

int ht_report_count(void) { return FIELDS; }
const ht_report_info *ht_report_at(int index) { return index >= 0 && index < FIELDS ? &fields[index] : NULL; }

void ht_report_clear(ht_report *report) {
  if (report) ht_fields_clear(fields, FIELDS, report, sizeof *report);
}

size_t ht_report_json(const ht_report *report, char *text, size_t size) { return ht_fields_json(fields, FIELDS, report, text, size); }
