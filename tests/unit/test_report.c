/* A report is one JSON object by the letter of RFC 8259, whatever its texts hold and whatever the program's locale.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "base/number.h"
#include "halftone/options.h"
#include "halftone/report.h"

/* ---- a strict reader of one flat object: each function returns the text after what it read, NULL when it is not there ---- */

static const char *space(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *read_string(const char *at) {
  if (*at++ != '"') return NULL;
  while (*at != '"') {
    if ((unsigned char)*at < 0x20) return NULL;
    if (*at++ != '\\') continue;
    if (*at == 'u') {
      for (int k = 1; k <= 4; k++)
        if (!isxdigit((unsigned char)at[k])) return NULL;
      at += 5;
    } else if (*at && strchr("\"\\/bfnrt", *at))
      at++;
    else
      return NULL;
  }
  return at + 1;
}

static const char *read_digits(const char *at) { return isdigit((unsigned char)*at) ? at + strspn(at, "0123456789") : NULL; }

static const char *read_number(const char *at) {
  if (*at == '-') at++;
  at = *at == '0' ? at + 1 : read_digits(at);
  if (at && *at == '.') at = read_digits(at + 1);
  if (at && (*at == 'e' || *at == 'E')) {
    at++;
    if (*at == '-' || *at == '+') at++;
    at = read_digits(at);
  }
  return at;
}

static const char *read_value(const char *at) {
  if (*at == '"') return read_string(at);
  return strncmp(at, "null", 4) ? read_number(at) : at + 4;
}

static int is_object(const char *text, int members) {
  const char *at = space(text);
  if (*at++ != '{') return 0;
  for (int i = 0; i < members; i++) {
    if (i && *at++ != ',') return 0;
    at = read_string(space(at));
    if (!at || *space(at) != ':') return 0;
    at = read_value(space(space(at) + 1));
    if (!at) return 0;
    at = space(at);
  }
  return *at == '}' && !*space(at + 1);
}

static char text[65536];
static const char *json_of(const ht_report *report) {
  size_t length = ht_report_json(report, text, sizeof text);
  assert_int_equal(length, strlen(text));
  if (!is_object(text, ht_report_count())) fail_msg("this is not JSON:\n%s", text);
  return text;
}

/* ---- tests ---- */

static void a_cleared_report_knows_nothing(void **state) {
  (void)state;
  ht_report report;
  ht_report_clear(&report);
  assert_int_equal(report.outcome, HT_NOT_RUN);
  json_of(&report);
  assert_non_null(strstr(text, "\"outcome\": \"not_run\""));
}

static void numbers_round_trip(void **state) {
  (void)state;
  static const double values[] = {0, -0.0, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 1e15, 123456789, -2.5};
  ht_report report;
  ht_report_clear(&report);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    report.residual_true = values[i];
    const char *at = strstr(json_of(&report), "\"residual_true\": ");
    double back = strtod(at + strlen("\"residual_true\": "), NULL);
    assert_memory_equal(&back, &values[i], sizeof back);
  }
  static const double no_numbers[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    report.residual_true = no_numbers[i];
    assert_non_null(strstr(json_of(&report), "\"residual_true\": null"));
  }
  report.iterations = INT64_MAX;
  assert_non_null(strstr(json_of(&report), "\"iterations\": 9223372036854775807"));
}

static void texts_become_valid_json(void **state) {
  (void)state;
  static const struct {
    const char *given, *written;
  } cases[] = {
      {"plain", "\"plain\""},
      {"\"\\\t\x01\x7f", "\"\\\"\\\\\\u0009\\u0001\x7f\""},
      {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\""}, /* UTF-8 passes */
      {"Gr\xfc\xdf"                                                                             /* Latin-1 */
       "e",
       "\"Gr\\ufffd\\ufffde\""},
      {"\xc3", "\"\\ufffd\""},                                  /* cut short */
      {"\xe2\x82", "\"\\ufffd\\ufffd\""},                       /* cut short */
      {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                       /* overlong */
      {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* surrogate */
      {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond U+10FFFF */
  };
  ht_report report;
  ht_report_clear(&report);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(report.detail, sizeof report.detail, "%s", cases[i].given);
    if (!strstr(json_of(&report), cases[i].written)) fail_msg("case %zu is not written as %s:\n%s", i, cases[i].written, text);
  }
  memset(report.detail, '\x01', sizeof report.detail - 1); /* the longest text, all of it escaped */
  json_of(&report);
}

static void a_short_buffer_gets_the_beginning(void **state) {
  (void)state;
  ht_report report;
  char part[64];
  ht_report_clear(&report);
  json_of(&report);
  for (size_t size = 0; size <= sizeof part; size++) {
    memset(part, 'x', sizeof part);
    assert_int_equal(ht_report_json(&report, part, size), strlen(text));
    if (!size) continue;
    assert_int_equal(strlen(part), size - 1);
    assert_memory_equal(part, text, size - 1);
  }
}

/* A locale with a decimal comma, made here: few systems have one installed. */
static int enter_comma_locale(char *folder) {
  char command[200];
  if (!mkdtemp(folder)) return 0;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
  if (system(command) < 0 || setenv("LOCPATH", folder, 1)) return 0; /* localedef warns by its exit status too */
  return setlocale(LC_ALL, "de_DE.UTF-8") && !strcmp(localeconv()->decimal_point, ",");
}

static void numbers_do_not_follow_the_locale(void **state) {
  (void)state;
  char folder[] = "/tmp/halftone-locale-XXXXXX", command[100], value[64];
  int entered = enter_comma_locale(folder);
  if (entered) {
    ht_report report;
    ht_context *ctx;
    ht_options *options;
    ht_report_clear(&report);
    report.residual_true = 0.375;
    assert_non_null(strstr(json_of(&report), "\"residual_true\": 0.375"));
    assert_int_equal(ht_context_create(&ctx), HT_OK);
    assert_int_equal(ht_options_create(ctx, &options), HT_OK);
    assert_int_equal(ht_options_set(options, "rtol", "0.25"), HT_OK);
    assert_int_equal(ht_options_get(options, "rtol", value, sizeof value), HT_OK);
    assert_string_equal(value, "0.25");
    assert_int_equal(ht_options_set_real(options, "rtol", 0.125), HT_OK);
    assert_int_equal(ht_options_set(options, "rtol", "0,25"), HT_BAD_OPTION);
    ht_options_destroy(options);
    ht_context_destroy(ctx);
    assert_string_equal(localeconv()->decimal_point, ","); /* and the program's locale is as it was */
  }
  setlocale(LC_ALL, "C");
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
  if (!entered) skip();
}

static void shortest_text_reads_back(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *text;
  } cases[] = {{0.1, "0.1"}, {1e-10, "1e-10"}, {1.0 / 3, "0.3333333333333333"}, {0.1 + 0.2, "0.30000000000000004"}, {-0.0, "-0"}};
  char shortest[40];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ht_print_real_shortest(cases[i].value, shortest, sizeof shortest);
    assert_string_equal(shortest, cases[i].text);
    double back;
    assert_true(ht_parse_real(shortest, &back));
    assert_memory_equal(&back, &cases[i].value, sizeof back);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cleared_report_knows_nothing),   cmocka_unit_test(numbers_round_trip),
      cmocka_unit_test(texts_become_valid_json),          cmocka_unit_test(a_short_buffer_gets_the_beginning),
      cmocka_unit_test(numbers_do_not_follow_the_locale), cmocka_unit_test(shortest_text_reads_back),
  };
  return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
