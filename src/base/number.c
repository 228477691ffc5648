/* Numbers as text in the C locale. SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Only the calling thread's locale changes, and only until it is set back. */
static locale_t enter(void) {
  pthread_once(&once, make_plain);
  return uselocale(plain);
}

void ht_print_real(double value, int digits, char *text, size_t size) {
  locale_t before = enter();
  snprintf(text, size, "%.*g", digits, value);
  uselocale(before);
}

void ht_print_real_shortest(double value, char *text, size_t size) {
  char full[32];
  double back;
  int digits = 6;
  do ht_print_real(value, digits, full, sizeof full);
  while (digits++ < 17 && !(ht_parse_real(full, &back) && back == value));
  snprintf(text, size, "%s", full);
}

int ht_parse_real(const char *text, double *value) {
  char *end;
  if (text[strspn(text, "+-.0123456789eE")]) return 0;
  locale_t before = enter();
  *value = strtod(text, &end);
  uselocale(before);
  return *text && !*end;
}

/* Another word in the plural where it ends in "ix" or, behind a consonant, in "y". */
ht_counted ht_plural(int64_t count, const char *thing) {
  ht_counted c;
  int length = (int)strlen(thing);
  int ix = length > 2 && !strcmp(thing + length - 2, "ix"),
      y = length > 1 && thing[length - 1] == 'y' && !strchr("aeiou", thing[length - 2]);
  if (count == 1)
    snprintf(c.text, sizeof c.text, "%s", thing);
  else
    snprintf(c.text, sizeof c.text, "%.*s%s", length - (ix ? 2 : y), thing, ix ? "ices" : y ? "ies" : "s");
  return c;
}

ht_counted ht_number_of(int64_t count, const char *thing) {
  ht_counted c;
  snprintf(c.text, sizeof c.text, "%lld %.40s", (long long)count, ht_plural(count, thing).text);
  return c;
}
