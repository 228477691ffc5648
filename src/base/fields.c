/* Records described by rows: clearing and JSON. SPDX-License-Identifier: BSD-3-Clause */
#include "base/fields.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"

void ht_fields_clear(const ht_report_info *fields, int count, void *record, size_t size) {
  memset(record, 0, size);
  for (int i = 0; i < count; i++) {
    void *field = (char *)record + fields[i].offset;
    if (fields[i].type == HT_REPORT_IS_REAL) *(double *)field = NAN;
    if (fields[i].type == HT_REPORT_IS_INTEGER) *(int64_t *)field = -1;
    if (fields[i].type == HT_REPORT_IS_OUTCOME) *(ht_outcome *)field = HT_NOT_RUN;
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

/* Length of the UTF-8 character at `text`, or 0 when it is not one: text may come from file names, which are any bytes. */
static int utf8_length(const unsigned char *text) {
  static const struct {
    unsigned char first_low, first_high, second_low, second_high;
    int length;
  } forms[] = {{0x20, 0x7f, 0, 0xff, 1},    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
               {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
               {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    if (text[0] < forms[f].first_low || text[0] > forms[f].first_high) continue;
    if (text[1] < forms[f].second_low || text[1] > forms[f].second_high) return 0;
    for (int k = 2; k < forms[f].length; k++)
      if (text[k] < 0x80 || text[k] > 0xbf) return 0;
    return forms[f].length;
  }
  return 0;
}

static void put_string(buffer *b, const char *text) {
  put(b, '"');
  while (*text) {
    unsigned char c = (unsigned char)*text;
    int length = utf8_length((const unsigned char *)text);
    char escape[8];
    if (c == '"' || c == '\\') put(b, '\\');
    if (length == 0) { /* a control character, or a byte that is no text: the replacement character stands for it */
      snprintf(escape, sizeof escape, "\\u%04x", c < 0x20 ? c : 0xfffd);
      put_text(b, escape);
      text++;
    }
    for (; length > 0; length--) put(b, *text++);
  }
  put(b, '"');
}

size_t ht_json_string(const char *string, char *text, size_t size) {
  buffer b = {text, size, 0};
  put_string(&b, string);
  if (size) text[b.used < size ? b.used : size - 1] = 0;
  return b.used;
}

static void put_value(buffer *b, const void *record, const ht_report_info *info) {
  const void *field = (const char *)record + info->offset;
  char number[40];
  switch (info->type) {
  case HT_REPORT_IS_REAL: {
    double v = *(const double *)field;
    ht_print_real(v, 17, number, sizeof number);
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
  if (!text) size = 0;
  if (!record) count = 0;
  buffer b = {text, size, 0};
  put_text(&b, "{");
  for (int i = 0; i < count; i++) {
    put_text(&b, i ? ",\n  " : "\n  ");
    put_string(&b, fields[i].name);
    put_text(&b, ": ");
    put_value(&b, record, &fields[i]);
  }
  put_text(&b, "\n}\n");
  if (text && size) text[b.used < size ? b.used : size - 1] = 0;
  return b.used;
}
