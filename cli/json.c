/* JSON for machines. Texts from the command line may hold any bytes: what is not UTF-8 becomes U+FFFD, so that the object
 * always parses. SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"
#include <math.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at s, or 0. */
static int utf8_length(const unsigned char *s) {
  int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) return 0; /* overlong, surrogates */
  if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))) return 0;
  return n;
}

static void quote(FILE *file, const char *text) {
  fputc('"', file);
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    int n = utf8_length(s);
    if (*s == '"' || *s == '\\')
      fprintf(file, "\\%c", *s);
    else if (*s < 0x20 || *s == 0x7f)
      fprintf(file, "\\u%04x", *s);
    else if (n)
      fwrite(s, 1, (size_t)n, file);
    else
      fputs("\\ufffd", file);
    s += n ? n : 1;
  }
  fputc('"', file);
}

static void member(cli_json *json, const char *key) {
  fprintf(json->file, "%s\n%*s", json->members++ ? "," : "", 2 * json->depth, "");
  if (!key) return;
  quote(json->file, key);
  fputs(": ", json->file);
}

void json_begin(cli_json *json, FILE *file) {
  *json = (cli_json){.file = file, .depth = 1};
  fputc('{', file);
}

void json_finish(cli_json *json) { fputs("\n}\n", json->file); }

void json_open(cli_json *json, const char *key, char bracket) {
  member(json, key);
  fputc(bracket, json->file);
  json->depth++;
  json->members = 0;
}

void json_close(cli_json *json, char bracket) {
  json->depth--;
  if (json->members) fprintf(json->file, "\n%*s", 2 * json->depth, "");
  fputc(bracket, json->file);
  json->members = 1;
}

void json_text(cli_json *json, const char *key, const char *text) {
  member(json, key);
  quote(json->file, text);
}

void json_real(cli_json *json, const char *key, double value) {
  member(json, key);
  if (isfinite(value))
    fprintf(json->file, "%.17g", value);
  else
    fputs("null", json->file);
}

void json_integer(cli_json *json, const char *key, int64_t value) {
  member(json, key);
  fprintf(json->file, "%lld", (long long)value);
}

void json_number(cli_json *json, const char *key, const char *text) {
  member(json, key);
  fputs(text, json->file);
}

void json_flag(cli_json *json, const char *key, int value) {
  member(json, key);
  fputs(value ? "true" : "false", json->file);
}

void json_members(cli_json *json, const char *object) {
  const char *first = strchr(object, '{'), *last = strrchr(object, '}');
  if (!first || !last) return;
  first += 1 + strspn(first + 1, " \n");
  while (last > first && strchr(" \n", last[-1])) last--;
  if (last == first) return;
  member(json, NULL);
  fwrite(first, 1, (size_t)(last - first), json->file);
}
