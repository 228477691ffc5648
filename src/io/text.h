/* Text as blocks of whole lines, so that many threads can parse without looking for the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_TEXT_H
#define HT_IO_TEXT_H
#include "io/input.h"

enum { HT_TEXT_PIECES = 64 };

/* Whole lines: the last byte is '\n'. */
typedef struct ht_piece {
  const char *begin, *end;
  int64_t lines;
} ht_piece;

/* Some megabytes of the text, cut into pieces at line ends; HT_NUMBER_PAD bytes behind the text are readable. */
typedef struct ht_block {
  char *text;
  size_t capacity, size; /* size: whole lines only; 0 is the end of the text */
  size_t left;           /* bytes of an unfinished line behind them */
  int64_t lines;
  int pieces;
  ht_piece piece[HT_TEXT_PIECES];
} ht_block;

typedef struct ht_text {
  ht_input *input;
  ht_block block[2];
  int current;  /* block[current] is being parsed while the other one is filled */
  size_t at;    /* next byte of the current block, while lines are taken one by one */
  int64_t line; /* number of the line that starts there, from 1 */
  int ended;
  int carriage_returns; /* lines end in '\r' alone, as on old Macs */
} ht_text;

ht_status ht_text_open(ht_input *input, ht_text *text);
void ht_text_close(ht_text *text);
/* The next line, for headers: *line ends in '\n'; NULL at the end of the text. Valid until the next call. */
ht_status ht_text_line(ht_text *text, const char **line);
/* After the header: make the rest of the current block the block to parse. */
const ht_block *ht_text_rest(ht_text *text);
/* Read the block that follows, cut it and count its lines; may run while other threads parse the current one. */
ht_status ht_text_fill_next(ht_text *text);
/* Step to the block that ht_text_fill_next filled. */
const ht_block *ht_text_step(ht_text *text);

#endif
