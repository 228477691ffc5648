/* Decimal text to double and back, both exact. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_NUMBER_H
#define HT_IO_NUMBER_H
#include <stdint.h>

enum {
  HT_NUMBER_PAD = 8,   /* readable bytes the parser needs behind the text */
  HT_NUMBER_TEXT = 32, /* bytes ht_format_double may write */
  HT_POWER_MIN = -342,
  HT_POWER_MAX = 324
};
extern const uint64_t ht_powers_of_ten[HT_POWER_MAX - HT_POWER_MIN + 1][2];

/* Read [+-]digits[.digits][exponent] at `text`; the exponent's letter is e, E, d or D. The nearest double, ties to even; too
 * large gives infinity. Returns the first byte behind the number, or NULL when none is there ("nan" and "inf" are no
 * numbers here). The text must end in a byte that cannot belong to a number, with HT_NUMBER_PAD readable bytes behind. */
const char *ht_parse_double(const char *text, double *value);

/* Write the shortest decimal that reads back to the same double; finite values only. Returns its length; no final NUL. */
int ht_format_double(double value, char *text);
/* The same for an integer. */
int ht_format_integer(int64_t value, char *text);

#endif
