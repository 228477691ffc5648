/* Structs that a list of rows describes (report.def, facts.def): clearing them and writing them as JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_FIELDS_H
#define HT_BASE_FIELDS_H
#include <stddef.h>
#include "halftone/report.h"

/* Numbers that are not known become NaN or -1, texts "", outcomes HT_NOT_RUN. */
void ht_fields_clear(const ht_report_info *fields, int count, void *record, size_t size);
/* One JSON object, NUL-terminated; returns the length it needs, as snprintf does. */
size_t ht_fields_json(const ht_report_info *fields, int count, const void *record, char *text, size_t size);
/* A string with its quotes; what is not UTF-8 becomes U+FFFD, so that it always parses. Returns as ht_fields_json. */
size_t ht_json_string(const char *string, char *text, size_t size);

#endif
