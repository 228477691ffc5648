/* Writing one JSON object, member by member. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_JSON_H
#define HALFTONE_CLI_JSON_H
#include <stdint.h>
#include <stdio.h>

typedef struct cli_json {
  FILE *file;
  int depth, members; /* members written so far at this depth: 0 or more */
} cli_json;

void json_begin(cli_json *json, FILE *file); /* the outermost object */
void json_finish(cli_json *json);
/* A member each; key NULL inside an array. Numbers that are not finite become null. */
void json_open(cli_json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(cli_json *json, char bracket);                 /* '}' or ']' */
void json_text(cli_json *json, const char *key, const char *text);
void json_real(cli_json *json, const char *key, double value);
void json_integer(cli_json *json, const char *key, int64_t value);
void json_number(cli_json *json, const char *key, const char *text); /* a finite number, already as text */
void json_flag(cli_json *json, const char *key, int value);
/* A member whose value the caller prints to json->file: what is long, on one line. */
void json_key(cli_json *json, const char *key);
/* The members of an object that the library wrote, as members here. */
void json_members(cli_json *json, const char *object);

#endif
