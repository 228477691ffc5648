/* Records described by rows: clearing and JSON. SPDX-License-Identifier: BSD-3-Clause */
#include "base/fields.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void ht_fields_clear(const ht_report_info *fields, int count, void *record, size_t size) {
  memset(record, 0, size);
  for (int i = 0; i < count; i++) {
    void *field = (char *)record + fields[i].offset;
    if (fields[i].type == HT_REPORT_IS_REAL) *(double *)field = NAN;
    if (fields[i].type == HT_REPORT_IS_INTEGER) *(int64_t *)field = -1;
  }
}

/* Append to text[0..size) as snprintf would, keeping count of what would have been written. */
typedef struct {
  char *text;
  size_t size, used;
} buffer;

static void put(buffer *b, char c) {
  if (b->used + 1 < b->size) b->text[b->used] = c;
  b->used++;
}

static void put_text(buffer *b, const char *text) {
  while (*text) put(b, *text++);
}

static void put_string(buffer *b, const char *text) {
  put(b, '"');
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    char escape[8];
    if (c == '"' || c == '\\') {
      put(b, '\\');
      put(b, (char)c);
    } else if (c < 0x20) {
      snprintf(escape, sizeof escape, "\\u%04x", c);
      put_text(b, escape);
    } else
      put(b, (char)c);
  }
  put(b, '"');
}

static void put_value(buffer *b, const void *record, const ht_report_info *info) {
  const void *field = (const char *)record + info->offset;
  char number[40];
  switch (info->type) {
  case HT_REPORT_IS_REAL: {
    double v = *(const double *)field;
    snprintf(number, sizeof number, "%.17g", v);
    put_text(b, isfinite(v) ? number : "null");
    return;
  }
  case HT_REPORT_IS_INTEGER: {
    int64_t v = *(const int64_t *)field;
    snprintf(number, sizeof number, "%lld", (long long)v);
    put_text(b, v == -1 ? "null" : number);
    return;
  }
  case HT_REPORT_IS_STRING: put_string(b, field); return;
  case HT_REPORT_IS_OUTCOME: put_string(b, ht_outcome_name(*(const ht_outcome *)field)); return;
  }
}

size_t ht_fields_json(const ht_report_info *fields, int count, const void *record, char *text, size_t size) {
  buffer b = {text, size, 0};
  put_text(&b, "{");
  for (int i = 0; i < count; i++) {
    put_text(&b, i ? ",\n  " : "\n  ");
    put_string(&b, fields[i].name);
    put_text(&b, ": ");
    put_value(&b, record, &fields[i]);
  }
  put_text(&b, "\n}\n");
  if (size) text[b.used < size ? b.used : size - 1] = 0;
  return b.used;
}
