/* Texts in rooms that may be too small for them. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_WORDS_H
#define HT_BASE_WORDS_H
#include <stdarg.h>
#include <stddef.h>
#include "halftone/context.h"

/* As snprintf, but what does not fit ends at a word, with "...". size: 8 or more. */
void ht_print_words(char *text, size_t size, const char *format, ...) HT_PRINTF(3, 4);
/* The same behind what stands in `text`, unless that was cut: "one, two, ...". */
void ht_add_words(char *text, size_t size, const char *format, ...) HT_PRINTF(3, 4);
void ht_add_words_of(char *text, size_t size, const char *format, va_list args);
int ht_is_cut(const char *text);

#endif
