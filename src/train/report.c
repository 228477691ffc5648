/* The report of a training, from the one list. SPDX-License-Identifier: BSD-3-Clause */
#include "base/fields.h"
#include "halftone/train.h"

static const ht_report_info fields[] = {
#define HT_TRAIN_REAL(name, unit, help) {#name, HT_REPORT_IS_REAL, unit, help, offsetof(ht_train_report, name)},
#define HT_TRAIN_INTEGER(name, unit, help) {#name, HT_REPORT_IS_INTEGER, unit, help, offsetof(ht_train_report, name)},
#define HT_TRAIN_STRING(name, unit, help) {#name, HT_REPORT_IS_STRING, unit, help, offsetof(ht_train_report, name)},
#include "halftone/train_report.def"
#undef HT_TRAIN_REAL
#undef HT_TRAIN_INTEGER
#undef HT_TRAIN_STRING
};
enum { COUNT = sizeof fields / sizeof *fields };

int ht_train_report_count(void) { return COUNT; }
const ht_report_info *ht_train_report_at(int index) { return index >= 0 && index < COUNT ? &fields[index] : NULL; }
void ht_train_report_clear(ht_train_report *report) {
  if (report) ht_fields_clear(fields, COUNT, report, sizeof *report);
}
size_t ht_train_report_json(const ht_train_report *report, char *text, size_t size) {
  return ht_fields_json(fields, COUNT, report, text, size);
}
