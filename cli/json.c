/* JSON for machines. SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fields.h"
#include "cli.h"

static void quote(FILE *file, const char *string) {
  size_t size = ht_json_string(string, NULL, 0) + 1;
  char *text = cli_allocate(size);
  ht_json_string(string, text, size);
  fputs(text, file);
  free(text);
}

void json_key(cli_json *json, const char *key) {
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
  json_key(json, key);
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
  json_key(json, key);
  quote(json->file, text);
}

void json_real(cli_json *json, const char *key, double value) {
  json_key(json, key);
  if (isfinite(value))
    fprintf(json->file, "%.17g", value);
  else
    fputs("null", json->file);
}

void json_integer(cli_json *json, const char *key, int64_t value) {
  json_key(json, key);
  fprintf(json->file, "%lld", (long long)value);
}

void json_number(cli_json *json, const char *key, const char *text) {
  json_key(json, key);
  fputs(text, json->file);
}

void json_flag(cli_json *json, const char *key, int value) {
  json_key(json, key);
  fputs(value ? "true" : "false", json->file);
}

void json_members(cli_json *json, const char *object) {
  const char *first = strchr(object, '{'), *last = strrchr(object, '}');
  if (!first || !last) return;
  first += 1 + strspn(first + 1, " \n");
  while (last > first && strchr(" \n", last[-1])) last--;
  if (last == first) return;
  json_key(json, NULL);
  fwrite(first, 1, (size_t)(last - first), json->file);
}
