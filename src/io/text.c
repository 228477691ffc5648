/* Text as blocks of whole lines. SPDX-License-Identifier: BSD-3-Clause */
#include "io/text.h"
#include <string.h>
#include "io/number.h"

enum { BLOCK = 8 << 20, PIECE_MIN = 16 << 10 };

static int64_t count_lines(const char *p, const char *end) {
  int64_t lines = 0;
  while (p < end) {
    /* Bytes are summed in a byte, which the compiler turns into vector code; 255 fit. */
    const char *stop = end - p > 255 ? p + 255 : end;
    unsigned char few = 0;
    for (; p < stop; p++) few = (unsigned char)(few + (*p == '\n'));
    lines += few;
  }
  return lines;
}

static void cut(ht_block *b, size_t from) {
  size_t aim = (b->size - from) / HT_TEXT_PIECES + 1;
  if (aim < PIECE_MIN) aim = PIECE_MIN;
  const char *p = b->text + from, *end = b->text + b->size;
  b->pieces = 0;
  b->lines = 0;
  while (p < end) {
    ht_piece *piece = &b->piece[b->pieces++];
    const char *stop = end;
    if ((size_t)(end - p) > aim && b->pieces < HT_TEXT_PIECES) stop = (const char *)memchr(p + aim, '\n', (size_t)(end - p) - aim) + 1;
    *piece = (ht_piece){p, stop, count_lines(p, stop)};
    b->lines += piece->lines;
    p = stop;
  }
}

static char *last_newline(char *begin, char *end) {
  while (end > begin)
    if (*--end == '\n') return end;
  return NULL;
}

/* Fill b behind the `left` bytes that stand at its front already. */
static ht_status fill(ht_text *t, ht_block *b, int64_t line) {
  ht_context *ctx = t->input->ctx;
  size_t got = 0, room = b->capacity - b->left;
  if (!t->ended) HT_TRY(ctx, ht_input_read(t->input, b->text + b->left, room, &got));
  if (t->carriage_returns)
    for (char *p = b->text + b->left; p < b->text + b->left + got; p++)
      if (*p == '\r') *p = '\n';
  size_t total = b->left + got;
  if (got < room) {
    t->ended = 1;
    if (total && b->text[total - 1] != '\n') b->text[total++] = '\n';
  }
  char *last = last_newline(b->text, b->text + total);
  HT_CHECK(ctx, last || total == 0, HT_BAD_FORMAT, "%s:%lld: a line is longer than %d bytes", t->input->name, (long long)line, BLOCK);
  b->size = last ? (size_t)(last - b->text) + 1 : 0;
  b->left = total - b->size;
  memset(b->text + total, 0, HT_NUMBER_PAD);
  cut(b, 0);
  return HT_OK;
}

ht_status ht_text_open(ht_input *input, ht_text *t) {
  memset(t, 0, sizeof *t);
  t->input = input;
  t->line = 1;
  t->carriage_returns = memchr(input->head, '\r', input->head_size) && !memchr(input->head, '\n', input->head_size);
  /* A small file gets small buffers, and shows its end to the first read. */
  size_t capacity = input->bound < BLOCK ? (size_t)input->bound + 1 : BLOCK;
  ht_status status;
  for (int i = 0; i < 2; i++) {
    t->block[i].capacity = capacity;
    HT_TRY_GOTO(input->ctx, status, ht_allocate(input->ctx, (int64_t)capacity + HT_NUMBER_PAD + 1, 1, &t->block[i].text), fail);
  }
  HT_TRY_GOTO(input->ctx, status, fill(t, &t->block[0], 1), fail);
  return HT_OK;
fail:
  ht_text_close(t);
  return status;
}

void ht_text_close(ht_text *t) {
  for (int i = 0; i < 2; i++) {
    ht_release(t->input->ctx, t->block[i].text);
    t->block[i].text = NULL;
  }
}

ht_status ht_text_fill_next(ht_text *t) {
  const ht_block *now = &t->block[t->current];
  ht_block *next = &t->block[1 - t->current];
  HT_CHECK(t->input->ctx, !ht_stop_requested(t->input->ctx), HT_INTERRUPTED, "%s: reading was interrupted", t->input->name);
  next->left = now->left;
  memcpy(next->text, now->text + now->size, now->left);
  return fill(t, next, t->line + now->lines);
}

const ht_block *ht_text_step(ht_text *t) {
  t->line += t->block[t->current].lines;
  t->current = 1 - t->current;
  t->at = 0;
  return &t->block[t->current];
}

ht_status ht_text_line(ht_text *t, const char **line) {
  ht_block *b = &t->block[t->current];
  *line = NULL;
  if (t->at == b->size && b->size) {
    b->lines = 0; /* counted one by one below */
    HT_TRY(t->input->ctx, ht_text_fill_next(t));
    ht_text_step(t);
    b = &t->block[t->current];
  }
  if (t->at == b->size) return HT_OK;
  *line = b->text + t->at;
  t->at = (size_t)((const char *)memchr(*line, '\n', b->size - t->at) - b->text) + 1;
  t->line++;
  return HT_OK;
}

const ht_block *ht_text_rest(ht_text *t) {
  cut(&t->block[t->current], t->at);
  return &t->block[t->current];
}
