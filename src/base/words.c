/* Texts that are cut at a word. SPDX-License-Identifier: BSD-3-Clause */
#include "base/words.h"
#include <stdio.h>
#include <string.h>

static const char DOTS[] = "...";
enum { DOTS_LENGTH = sizeof DOTS - 1 };

int ht_is_cut(const char *text) {
  size_t length = strlen(text);
  return length >= DOTS_LENGTH && !strcmp(text + length - DOTS_LENGTH, DOTS);
}

/* Behind a space; where a word takes more than half of the room, within it, but not within a character of UTF-8. */
static void cut(char *text, size_t size) {
  size_t most = size - 1 - DOTS_LENGTH, at = most;
  while (at > 0 && text[at - 1] != ' ') at--;
  if (at < most / 2)
    for (at = most; at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80;) at--;
  strcpy(text + at, DOTS);
}

void ht_add_words_of(char *text, size_t size, const char *format, va_list args) {
  size_t used = strlen(text);
  if (ht_is_cut(text)) return;
  int length = vsnprintf(text + used, size - used, format, args);
  if (length >= 0 && used + (size_t)length >= size) cut(text, size);
}

void ht_add_words(char *text, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ht_add_words_of(text, size, format, args);
  va_end(args);
}

void ht_print_words(char *text, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  *text = 0;
  ht_add_words_of(text, size, format, args);
  va_end(args);
}
