/* Numbers as text, the same in every locale: programs that embed the library may have set one with a decimal comma.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_NUMBER_H
#define HT_BASE_NUMBER_H
#include <stddef.h>
#include <stdint.h>

/* As snprintf "%.*g" in the C locale. */
void ht_print_real(double value, int digits, char *text, size_t size);
/* The shortest of them that reads back as the same number. */
void ht_print_real_shortest(double value, char *text, size_t size);
/* "1 matrix", "2 matrices": what there are, counted. */
typedef struct ht_counted {
  char text[64];
} ht_counted;
ht_counted ht_number_of(int64_t count, const char *thing);
ht_counted ht_plural(int64_t count, const char *thing); /* the word alone */
/* A decimal number that is the whole text, in the C locale; 0 where it is none, as a hexadecimal one or "inf". */
int ht_parse_real(const char *text, double *value);

#endif
