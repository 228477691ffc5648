/* Decimal text to double and back. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/convert.h"
#include "io/number.h"
#include "support/random.h"

/* Parse a C string; *used is the length of the number, -1 when there is none. */
static double parse(const char *text, int *used) {
  char buffer[4096] = {0};
  double value = -7;
  snprintf(buffer, sizeof buffer - HT_NUMBER_PAD, "%s\n", text);
  const char *end = ht_parse_double(buffer, &value);
  *used = end ? (int)(end - buffer) : -1;
  return value;
}

static void test_forms(void **state) {
  static const struct {
    const char *text;
    int used;
    double value;
  } cases[] = {
      {"1", 1, 1},
      {"-0", 2, -0.0},
      {"+2.5", 4, 2.5},
      {".5", 2, .5},
      {"5.", 2, 5},
      {"1e3", 3, 1000},
      {"1E+3", 4, 1000},
      {"1d3", 3, 1000},
      {"1.5D-02", 7, .015},
      {"1e", 1, 1},
      {"1e+", 1, 1},
      {"1x", 1, 1},
      {"1..2", 2, 1},
      {".", -1, -7},
      {"-", -1, -7},
      {"", -1, -7},
      {"nan", -1, -7},
      {"inf", -1, -7},
      {"1e400", 5, INFINITY},
      {"-1E9999", 7, -INFINITY},
      {"1e-400", 6, 0},
      {"0e99999999999999999999", 22, 0},
      {"0x10", 1, 0},
      {"--1", -1, -7},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int used;
    double value = parse(cases[i].text, &used);
    if (used != cases[i].used || memcmp(&value, &cases[i].value, sizeof value) != 0)
      fail_msg("'%s': %g, %d bytes", cases[i].text, value, used);
  }
}

static void check_like_strtod(const char *text) {
  int used;
  double value = parse(text, &used), expected = strtod(text, NULL);
  if (memcmp(&value, &expected, sizeof value) != 0 || used != (int)strlen(text)) fail_msg("%s: %a instead of %a", text, value, expected);
}

/* Halfway cases, the ends of the range, many digits. */
static void test_hard_cases(void **state) {
  static const char *const hard[] = {
      "9007199254740993",
      "9007199254740992.9999999999999999999999999999999",
      "9007199254740993.00000000000000000000000000001",
      "1.7976931348623158e308",
      "1.7976931348623159e308",
      "2.2250738585072011e-308",
      "4.9406564584124654e-324",
      "2.4703282292062327208e-324",
      "2.4703282292062328e-324",
      "1e23",
      "8.5e22",
      "123456789012345678901234567890",
      "0.000000000000000000000000000000000000000000123456789",
      "00000000000000000000000000000000000000001.5",
      "6.631236846766476e-316",
      "5e-324",
      "1e-22",
      "3.1415926535897932384626433832795028841971693993751",
      "179769313486231580793728971405301199252069012264752390332004544495176179865349768338004270583473493681874097135387853e192"};
  (void)state;
  for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) check_like_strtod(hard[i]);
  char text[1200] = "0.";
  memset(text + 2, '3', 1100);
  check_like_strtod(text);
  /* Exactly half between 1 and its neighbour, then a 1 far behind: up. */
  snprintf(text, sizeof text, "1.00000000000000011102230246251565404236316680908203125%0*d", 900, 1);
  check_like_strtod(text);
}

/* Any bits, and bits with short significands, in every scale; printed with 1 to 24 digits. */
static void test_random_against_strtod(void **state) {
  random_stream s = {1};
  (void)state;
  for (int i = 0; i < 300000; i++) {
    double v = ht_from_bits64(random_bits(&s));
    char text[64];
    if (!isfinite(v)) continue;
    snprintf(text, sizeof text, "%.*e", (int)random_below(&s, 24), v);
    check_like_strtod(text);
  }
}

static void check_round_trip(double v) {
  char text[HT_NUMBER_TEXT + 1], other[64];
  int used, length = ht_format_double(v, text);
  assert_true(length > 0 && length <= HT_NUMBER_TEXT);
  text[length] = 0;
  double back = parse(text, &used), reference = strtod(text, NULL);
  if (memcmp(&back, &v, sizeof v) != 0 || memcmp(&reference, &v, sizeof v) != 0 || used != length) fail_msg("%a became %s", v, text);
  /* No shorter: with one digit less than it has, the C library's best does not read back. */
  int digits = 0, trailing = 0;
  for (const char *p = text; *p && *p != 'e'; p++) {
    int is_digit = *p >= '0' && *p <= '9';
    if (is_digit && (digits || *p != '0')) digits++;
    if (is_digit) trailing = *p == '0' ? trailing + 1 : 0;
  }
  digits -= trailing < digits ? trailing : digits;
  if (digits < 2) return;
  snprintf(other, sizeof other, "%.*e", digits - 2, v);
  if (strtod(other, NULL) == v) fail_msg("%s is not the shortest: %s", text, other);
}

static void test_round_trip(void **state) {
  static const double some[] = {0,
                                -0.0,
                                1,
                                -1,
                                .1,
                                .3,
                                1e22,
                                1e23,
                                9007199254740993.,
                                5e-324,
                                2.2250738585072014e-308,
                                1.7976931348623157e308,
                                1e-5,
                                123456,
                                1e16,
                                1e17,
                                1e21,
                                4.35,
                                .0001,
                                1. / 3,
                                2e-44,
                                9.5367431640625e-07};
  random_stream s = {2};
  (void)state;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) check_round_trip(some[i]);
  for (int e = -1074; e <= 1023; e++) check_round_trip(ldexp(1, e)); /* uneven neighbours */
  for (int i = 0; i < 300000; i++) {
    uint64_t bits = random_bits(&s);
    if (i % 2) bits &= ~(((uint64_t)1 << random_below(&s, 53)) - 1);
    double v = ht_from_bits64(bits);
    if (isfinite(v)) check_round_trip(v);
  }
}

static void test_integers(void **state) {
  static const int64_t some[] = {0, 7, -7, 10, INT64_MAX, INT64_MIN, 1000000007};
  (void)state;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    char text[32], expected[32];
    text[ht_format_integer(some[i], text)] = 0;
    snprintf(expected, sizeof expected, "%lld", (long long)some[i]);
    assert_string_equal(text, expected);
  }
}

/* ---- the table, by integers of any length: little-endian words of 32 bits ---- */

enum { WORDS = 64 };

static void multiply(uint32_t *a, uint32_t by) {
  uint64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uint64_t)a[i] * by;
    a[i] = (uint32_t)carry;
    carry >>= 32;
  }
}

static int bit_length(const uint32_t *a) {
  int i = WORDS - 1;
  while (i > 0 && a[i] == 0) i--;
  return 32 * i + 32 - __builtin_clz(a[i]);
}

static int bit(const uint32_t *a, int i) { return i < 0 ? 0 : (int)(a[i / 32] >> (i % 32) & 1); }

/* product = p * (high * 2^64 + low) */
static void multiply_wide(const uint32_t *p, const uint64_t t[2], uint32_t *product) {
  uint32_t digits[4] = {(uint32_t)t[1], (uint32_t)(t[1] >> 32), (uint32_t)t[0], (uint32_t)(t[0] >> 32)};
  memset(product, 0, WORDS * sizeof *product);
  for (int d = 0; d < 4; d++) {
    uint64_t carry = 0;
    for (int i = 0; i + d < WORDS; i++) {
      carry += (uint64_t)p[i] * digits[d] + product[i + d];
      product[i + d] = (uint32_t)carry;
      carry >>= 32;
    }
  }
}

static void test_powers_of_ten(void **state) {
  uint32_t p[WORDS] = {1}, product[WORDS];
  (void)state;
  for (int q = 0; q <= -HT_POWER_MIN; q++, multiply(p, 5)) {
    int bits = bit_length(p);
    if (q <= HT_POWER_MAX) { /* the top 128 bits */
      uint64_t high = 0, low = 0;
      for (int i = 1; i <= 64; i++) high = high << 1 | (uint64_t)bit(p, bits - i);
      for (int i = 65; i <= 128; i++) low = low << 1 | (uint64_t)bit(p, bits - i);
      assert_true(ht_powers_of_ten[q - HT_POWER_MIN][0] == high && ht_powers_of_ten[q - HT_POWER_MIN][1] == low);
    }
    if (q == 0) continue;
    /* t <= 2^(127+bits)/p < t + 1, where t is the entry, less one where it was rounded up */
    const uint64_t *entry = ht_powers_of_ten[-q - HT_POWER_MIN];
    uint64_t t[2] = {entry[0], entry[1]}, next[2];
    if (q <= 27) t[0] -= t[1]-- == 0;
    next[1] = t[1] + 1;
    next[0] = t[0] + (next[1] == 0);
    multiply_wide(p, t, product);
    assert_true(bit_length(product) <= 127 + bits); /* below 2^(127+bits), which no multiple of 5 equals */
    multiply_wide(p, next, product);
    assert_true(bit_length(product) > 127 + bits);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),      cmocka_unit_test(test_hard_cases), cmocka_unit_test(test_random_against_strtod),
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_integers),   cmocka_unit_test(test_powers_of_ten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
