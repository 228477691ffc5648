/* Decimal text to double and back. SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading: Clinger's fast path, then Eisel and Lemire's method ("Number parsing at a gigabyte per second", Software: Practice
 * and Experience 51, 2021), then the C library for what is left (subnormal results, and numbers of more than 19 digits that
 * 19 digits do not decide). Writing: Giulietti's Schubfach ("The Schubfach way to render doubles", 2020). */
#define _GNU_SOURCE
#include "io/number.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/convert.h"

__extension__ typedef unsigned __int128 uint128;

/* A decimal as it was written: significand * 10^exponent, where `digits` of `first..` may be more than fit. */
typedef struct decimal {
  uint64_t significand; /* the first 19 significant digits */
  int64_t exponent;
  int truncated; /* digits other than 0 were left out of the significand */
  int negative;
  const char *begin, *end; /* its text, the sign left out */
} decimal;

/* ---- reading ---- */

static inline unsigned digit(char c) { return (unsigned)(unsigned char)c - '0'; }

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline int eight_digits(const char *p, uint64_t *chunk) {
  memcpy(chunk, p, 8);
  return ((*chunk & 0xf0f0f0f0f0f0f0f0u) | (((*chunk + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4)) == 0x3333333333333333u;
}

/* Three multiplications: pairs, quadruples, all. */
static inline uint64_t value_of_eight(uint64_t chunk) {
  chunk = (chunk & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
  chunk = (chunk & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
  return (chunk & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}
#else
static inline int eight_digits(const char *p, uint64_t *chunk) { return (void)p, (void)chunk, 0; }
static inline uint64_t value_of_eight(uint64_t chunk) { return chunk; }
#endif

static inline const char *scan_digits(const char *p, uint64_t *significand) {
  uint64_t w = *significand, chunk;
  while (eight_digits(p, &chunk)) {
    w = w * 100000000 + value_of_eight(chunk);
    p += 8;
  }
  for (unsigned d; (d = digit(*p)) < 10; p++) w = w * 10 + d;
  *significand = w;
  return p;
}

/* Fill in the exponent after the letter; without digits behind it the letter does not belong to the number. */
static const char *scan_exponent(const char *p, int64_t *exponent) {
  const char *q = p + 1;
  int negative = *q == '-';
  if (*q == '-' || *q == '+') q++;
  if (digit(*q) > 9) return p;
  int64_t e = 0;
  for (unsigned d; (d = digit(*q)) < 10; q++)
    if (e < 100000000) e = e * 10 + d;
  *exponent += negative ? -e : e;
  return q;
}

/* More than 19 digits overflowed the significand: read it again, the first 19 significant ones only. */
static void scan_long(decimal *number, const char *end_of_digits) {
  int64_t skipped = 0, kept = 0, fraction = 0, point = 0;
  uint64_t w = 0;
  number->truncated = 0;
  for (const char *p = number->begin; p < end_of_digits; p++) {
    if (*p == '.') {
      point = 1;
      continue;
    }
    unsigned d = digit(*p);
    if (kept < 19) {
      w = w * 10 + d;
      kept += kept > 0 || d > 0;
      fraction += point;
    } else {
      skipped += !point;
      number->truncated |= d != 0;
    }
  }
  number->significand = w;
  number->exponent = skipped - fraction;
}

/* Returns NULL when there is no number. */
static inline const char *scan(const char *p, decimal *number) {
  number->negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  number->begin = p;
  number->significand = 0;
  number->truncated = 0;
  p = scan_digits(p, &number->significand);
  int64_t digits = p - number->begin, fraction = 0;
  if (*p == '.') {
    const char *start = ++p;
    p = scan_digits(p, &number->significand);
    fraction = p - start;
    digits += fraction;
  }
  if (digits == 0) return NULL;
  number->exponent = -fraction;
  if (digits > 19) scan_long(number, p);
  if ((*p | 32) == 'e' || (*p | 32) == 'd') p = scan_exponent(p, &number->exponent);
  number->end = p;
  return p;
}

/* w * 10^q for w != 0 and -342 <= q <= 308, by Eisel and Lemire; 0 when the result may be subnormal. */
static int approximate(uint64_t w, int64_t q, double *value) {
  int zeros = __builtin_clzll(w);
  w <<= zeros;
  const uint64_t *power = ht_powers_of_ten[q - HT_POWER_MIN];
  uint128 product = (uint128)w * power[0];
  uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
  if ((high & 0x1ff) == 0x1ff) { /* the bits below the significand do not decide: use the power's second word */
    uint64_t more = (uint64_t)((uint128)w * power[1] >> 64);
    low += more;
    high += low < more;
  }
  int upper = (int)(high >> 63), shift = upper + 9;
  uint64_t m = high >> shift; /* 54 bits: one more than the significand, for rounding */
  int64_t exponent = (q * 217706 >> 16) + 63 + upper - zeros + 1023;
  if (exponent <= 0) return 0;
  /* An exact half is possible for small powers only: then to even. */
  if (low <= 1 && q >= -4 && q <= 23 && (m & 3) == 1 && m << shift == high) m &= ~(uint64_t)1;
  m = (m + (m & 1)) >> 1;
  if (m >= (uint64_t)1 << 53) {
    m = (uint64_t)1 << 52;
    exponent++;
  }
  *value = exponent >= 2047 ? INFINITY : ht_from_bits64((uint64_t)exponent << 52 | (m & 0xfffffffffffffu));
  return 1;
}

/* By the C library, on a copy with at most 800 significant digits: 767 decide, and a final 1 stands for the rest. */
static double slow(const decimal *number) {
  char text[840];
  int length = 0, rest = 0, point = 0;
  int64_t exponent = 0;
  const char *p = number->begin;
  for (; digit(*p) < 10 || *p == '.'; p++) {
    if (*p == '.') {
      if (point) break;
      point = 1;
      continue;
    }
    if (length >= 800) {
      rest |= *p != '0';
      exponent += !point;
    } else {
      if (length > 0 || *p != '0') text[length++] = *p;
      exponent -= point;
    }
  }
  if (length == 0) return 0;
  if (rest) {
    text[length++] = '1';
    exponent--;
  }
  if (p < number->end) scan_exponent(p, &exponent);
  if (exponent > 100000) exponent = 100000;
  if (exponent < -1000000) exponent = -1000000;
  text[length++] = 'e';
  length += ht_format_integer(exponent, text + length);
  text[length] = 0;
  /* The C locale, or a decimal comma would end the number; glibc allocates nothing for it. */
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  double value = strtod_l(text, NULL, c);
  freelocale(c);
  return value;
}

static const double small_power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const char *ht_parse_double(const char *text, double *value) {
  decimal number;
  const char *end = scan(text, &number);
  if (!end) return NULL;
  uint64_t w = number.significand;
  int64_t q = number.exponent;
  double v, next;
  if (w == 0 && !number.truncated)
    v = 0;
  else if (!number.truncated && w <= (uint64_t)1 << 53 && q >= -22 && q <= 22)
    v = q < 0 ? (double)w / small_power[-q] : (double)w * small_power[q]; /* both exact, so one rounding */
  else if (q > 308)
    v = INFINITY; /* w >= 1 */
  else if (q < -342)
    v = 0; /* w < 10^19: below half of the smallest subnormal */
  else if (!approximate(w, q, &v) || (number.truncated && (!approximate(w + 1, q, &next) || next != v)))
    v = slow(&number);
  *value = number.negative ? -v : v;
  return end;
}

/* ---- writing ---- */

int ht_format_integer(int64_t value, char *text) {
  char reversed[20];
  int length = 0, count = 0;
  uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do reversed[count++] = (char)('0' + v % 10);
  while (v /= 10);
  if (value < 0) text[length++] = '-';
  while (count) text[length++] = reversed[--count];
  return length;
}

/* (power * c) / 2^128, the last bit set when anything was cut off: enough to compare with the interval's ends. */
static uint64_t round_to_odd(const uint64_t power[2], uint64_t c) {
  uint128 x = (uint128)power[1] * c, y = (uint128)power[0] * c + (uint64_t)(x >> 64);
  return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

/* The shortest significand * 10^exponent inside the rounding interval of `value` > 0, nearest to it among those. */
static uint64_t shortest(double value, int *exponent) {
  uint64_t bits = ht_bits64(value), fraction = bits & 0xfffffffffffffu;
  int biased = (int)(bits >> 52);
  uint64_t c = biased ? fraction | (uint64_t)1 << 52 : fraction;
  int q = (biased ? biased : 1) - 1075;
  *exponent = 0;
  if (q <= 0 && q > -53 && (c & (((uint64_t)1 << -q) - 1)) == 0) return c >> -q; /* an integer */
  int even = (c & 1) == 0, close = fraction == 0 && biased > 1;                  /* below a power of two the neighbour is nearer */
  int k = close ? (q * 1262611 - 524031) >> 22 : (q * 1262611) >> 22;            /* floor(log10(width)) */
  int h = q + ((-k * 1741647) >> 19) + 1;
  const uint64_t *t = ht_powers_of_ten[-k - HT_POWER_MIN];
  uint64_t power[2] = {t[0], t[1]};
  if (-k < -27 || -k > 55) power[0] += ++power[1] == 0; /* this method wants the power rounded up */
  uint64_t lower = round_to_odd(power, (4 * c - 2 + close) << h) + !even, upper = round_to_odd(power, (4 * c + 2) << h) - !even;
  uint64_t middle = round_to_odd(power, 4 * c << h), s = middle / 4;
  *exponent = k;
  if (s >= 10) { /* one digit less? */
    uint64_t tenth = s / 10;
    int down = lower <= 40 * tenth, up = 40 * tenth + 40 <= upper;
    if (down != up) {
      *exponent = k + 1;
      return tenth + up;
    }
  }
  int down = lower <= 4 * s, up = 4 * s + 4 <= upper;
  if (down != up) return s + up;
  return s + (middle > 4 * s + 2 || (middle == 4 * s + 2 && (s & 1)));
}

int ht_format_double(double value, char *text) {
  char *p = text, digits[20];
  if (ht_bits64(value) >> 63) *p++ = '-';
  if (value == 0) {
    *p++ = '0';
    return (int)(p - text);
  }
  int exponent;
  uint64_t significand = shortest(fabs(value), &exponent);
  for (; significand % 10 == 0; exponent++) significand /= 10;
  int count = ht_format_integer((int64_t)significand, digits), point = count + exponent; /* 0.digits * 10^point */
  if (point > 0 && point <= 17) {
    for (int i = 0; i < count || i < point; i++) {
      if (i == point) *p++ = '.';
      *p++ = i < count ? digits[i] : '0';
    }
  } else if (point <= 0 && point > -4) {
    *p++ = '0';
    *p++ = '.';
    for (int i = 0; i < -point; i++) *p++ = '0';
    memcpy(p, digits, (size_t)count);
    p += count;
  } else {
    *p++ = digits[0];
    if (count > 1) *p++ = '.';
    memcpy(p, digits + 1, (size_t)count - 1);
    p += count - 1;
    *p++ = 'e';
    p += ht_format_integer(point - 1, p);
  }
  return (int)(p - text);
}
