/* Matrix Market: the numbers, parsed by all threads. SPDX-License-Identifier: BSD-3-Clause
 *
 * One thread reads (and unpacks) the next block while the others parse the pieces of this one. The lines of a piece were
 * counted before, so each piece knows where its entries go: nothing is held twice and the result does not depend on timing. */
#include "io/mtx.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "base/number.h"
#include "io/number.h"

enum { FIRST_CAPACITY = 1 << 20, PARALLEL_BYTES = 1 << 16, LINE_SHOWN = 40 };

typedef struct reader {
  ht_text *text;
  const ht_mtx_header *header;
  ht_mtx_entries *entries;
  int64_t count, capacity;
  int64_t vanished; /* values that are not 0 and too small for a double */
} reader;

/* Where a piece's entries go, and what came of it. */
typedef struct share {
  int64_t first, used, vanished;
  const char *bad; /* the line that could not be parsed, or NULL */
} share;

static inline int blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static inline const char *skip_blanks(const char *p) {
  while (blank(*p)) p++;
  return p;
}

/* An index from 1 to `limit`, made to start from 0. */
static inline const char *parse_index(const char *p, int64_t limit, int32_t *index) {
  p = skip_blanks(p);
  const char *start = p;
  uint64_t v = 0;
  for (unsigned d; (d = (unsigned)(unsigned char)*p - '0') < 10; p++) v = v * 10 + d;
  if (p == start || p - start > 18 || v - 1 >= (uint64_t)limit) return NULL;
  *index = (int32_t)(v - 1);
  return p;
}

/* One line of numbers into entry k; NULL when it is not as it should be. Returns the byte behind the line end. */
static inline const char *parse_line(const char *p, const ht_mtx_header *h, const ht_mtx_entries *e, int64_t k) {
  if (h->coordinate) {
    int32_t row, column;
    p = parse_index(p, h->rows, &row);
    if (!p) return NULL;
    if (*p != ' ' && *p != '\t') return NULL;
    p = parse_index(p, h->columns, &column);
    if (!p) return NULL;
    e->rows[k] = row;
    e->columns[k] = column;
  }
  if (h->field == HT_MTX_PATTERN) {
    e->values[k] = 1;
  } else {
    if (h->coordinate && *p != ' ' && *p != '\t') return NULL;
    double value;
    p = ht_parse_double(skip_blanks(p), &value);
    if (!p || !isfinite(value)) return NULL;
    if (h->field == HT_MTX_INTEGER && value != floor(value)) return NULL;
    e->values[k] = value;
  }
  if (*p != '\n') {
    p = skip_blanks(p);
    if (*p != '\n') return NULL;
  }
  return p + 1;
}

static int is_comment_or_blank(const char *line) {
  line = skip_blanks(line);
  return *line == '%' || *line == '\n';
}

static const char *line_end(const char *p, const char *end) { return (const char *)memchr(p, '\n', (size_t)(end - p)) + 1; }

/* The value is the line's last word, and reads as 0: did it say so? `next` is behind the line end. */
static int vanishes(const char *line, const char *next) {
  const char *p = next - 1;
  while (p > line && blank(p[-1])) p--;
  while (p > line && !blank(p[-1])) p--;
  for (; isdigit((unsigned char)*p) || *p == '+' || *p == '-' || *p == '.'; p++)
    if (*p >= '1' && *p <= '9') return 1;
  return 0;
}

static void parse_piece(const reader *r, const ht_piece *piece, share *s) {
  int64_t k = s->first;
  s->bad = NULL;
  s->vanished = 0;
  for (const char *p = piece->begin; p < piece->end;) {
    const char *next = parse_line(p, r->header, r->entries, k);
    if (next) {
      if (r->entries->values[k] == 0) s->vanished += vanishes(p, next);
      k++;
    } else if (is_comment_or_blank(p)) {
      next = line_end(p, piece->end);
    } else {
      s->bad = p;
      break;
    }
    p = next;
  }
  s->used = k - s->first;
}

static int64_t count_entries(const ht_piece *piece) {
  int64_t count = 0;
  for (const char *p = piece->begin; p < piece->end; p = line_end(p, piece->end)) count += !is_comment_or_blank(p);
  return count;
}

/* ---- the sentence for a bad line: parse it again, slowly ---- */

static void copy_word(const char *p, char *word) {
  int length = 0;
  for (; *p != '\n' && *skip_blanks(p) == *p && length < LINE_SHOWN; p++) word[length++] = isprint((unsigned char)*p) ? *p : '?';
  word[length] = 0;
}

static ht_status explain_index(const reader *r, int64_t line, const char *p, const char *what, int64_t limit) {
  char word[LINE_SHOWN + 1];
  copy_word(p, word);
  const char *name = r->text->input->name, *digits = p + (*p == '-');
  while (isdigit((unsigned char)*digits)) digits++;
  int whole = digits > p + (*p == '-') && (*digits == '\n' || skip_blanks(digits) != digits);
  HT_CHECK(r->text->input->ctx, *p != '\n', HT_BAD_FORMAT, "%s:%lld: the %s index is missing", name, (long long)line, what);
  HT_CHECK(r->text->input->ctx, whole, HT_BAD_FORMAT, "%s:%lld: a %s index is expected, and '%s' is found", name, (long long)line, what,
           word);
  HT_FAIL(r->text->input->ctx, HT_BAD_FORMAT, "%s:%lld: %s index %s is not within 1 to %lld", name, (long long)line, what, word,
          (long long)limit);
}

static int is_word(const char *p, const char *word) {
  p += *p == '-' || *p == '+';
  for (; *word; p++, word++)
    if (tolower((unsigned char)*p) != *word) return 0;
  return 1;
}

static ht_status explain_value(const reader *r, int64_t line, const char *p) {
  ht_context *ctx = r->text->input->ctx;
  const char *name = r->text->input->name, *end;
  char word[LINE_SHOWN + 1];
  double value;
  copy_word(p, word);
  HT_CHECK(ctx, *p != '\n', HT_BAD_FORMAT, "%s:%lld: the value is missing", name, (long long)line);
  HT_CHECK(ctx, !is_word(p, "nan") && !is_word(p, "inf"), HT_BAD_MATRIX, "%s:%lld: the value %s is not finite", name, (long long)line,
           word);
  end = ht_parse_double(p, &value);
  HT_CHECK(ctx, end && (*end == '\n' || skip_blanks(end) != end), HT_BAD_FORMAT, "%s:%lld: a number is expected, and '%s' is found", name,
           (long long)line, word);
  HT_CHECK(ctx, isfinite(value), HT_BAD_MATRIX, "%s:%lld: the value %s is too large for double precision", name, (long long)line, word);
  HT_CHECK(ctx, r->header->field != HT_MTX_INTEGER || value == floor(value), HT_BAD_FORMAT,
           "%s:%lld: the banner says integer, and the value is %s", name, (long long)line, word);
  copy_word(skip_blanks(end), word);
  HT_FAIL(ctx, HT_BAD_FORMAT, "%s:%lld: the line must end after the value, and '%s' follows", name, (long long)line, word);
}

static ht_status explain(const reader *r, int64_t line, const char *p) {
  ht_context *ctx = r->text->input->ctx;
  const ht_mtx_header *h = r->header;
  int32_t index;
  p = skip_blanks(p);
  if (h->coordinate) {
    const char *end = parse_index(p, h->rows, &index);
    if (!end || (*end != '\n' && skip_blanks(end) == end)) return explain_index(r, line, p, "row", h->rows);
    p = skip_blanks(end);
    end = parse_index(p, h->columns, &index);
    if (!end || (*end != '\n' && skip_blanks(end) == end)) return explain_index(r, line, p, "column", h->columns);
    p = skip_blanks(end);
  }
  HT_CHECK(ctx, h->field != HT_MTX_PATTERN, HT_BAD_FORMAT, "%s:%lld: a pattern has two numbers a line, and more are found",
           r->text->input->name, (long long)line);
  return explain_value(r, line, p);
}

/* ---- blocks ---- */

static ht_status grow(reader *r, int64_t needed) {
  ht_context *ctx = r->text->input->ctx;
  ht_mtx_entries *old = r->entries, new = {0};
  if (needed <= r->capacity) return HT_OK;
  /* The header has been checked against the file's length; a packed file or a pipe must show its entries first. */
  int64_t capacity = r->text->input->bound < INT64_MAX && !r->text->input->gzip ? r->header->entries : 2 * needed;
  if (capacity < FIRST_CAPACITY) capacity = FIRST_CAPACITY;
  if (capacity > r->header->entries) capacity = r->header->entries;
  if (capacity < needed) capacity = needed;
  ht_status status = ht_allocate(ctx, capacity, sizeof(double), &new.values);
  if (status == HT_OK && r->header->coordinate) status = ht_allocate(ctx, capacity, sizeof(int32_t), &new.rows);
  if (status == HT_OK && r->header->coordinate) status = ht_allocate(ctx, capacity, sizeof(int32_t), &new.columns);
  if (status != HT_OK) {
    ht_mtx_release_entries(ctx, &new);
    return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  }
  if (r->count) {
    memcpy(new.values, old->values, (size_t)r->count * sizeof(double));
    if (new.rows) memcpy(new.rows, old->rows, (size_t)r->count * sizeof(int32_t));
    if (new.columns) memcpy(new.columns, old->columns, (size_t)r->count * sizeof(int32_t));
  }
  ht_mtx_release_entries(ctx, old);
  *old = new;
  r->capacity = capacity;
  return HT_OK;
}

static void move_entries(const ht_mtx_entries *e, int64_t to, int64_t from, int64_t count) {
  if (to == from || count == 0) return;
  memmove(e->values + to, e->values + from, (size_t)count * sizeof(double));
  if (!e->rows) return;
  memmove(e->rows + to, e->rows + from, (size_t)count * sizeof(int32_t));
  memmove(e->columns + to, e->columns + from, (size_t)count * sizeof(int32_t));
}

/* Give each piece its place: by its lines, or, when comments or too many entries may be among them, by its entries. */
static ht_status place(reader *r, const ht_block *block, share *shares) {
  int exact = block->lines > r->header->entries - r->count;
  int64_t next = r->count, line = r->text->line;
  for (int i = 0; i < block->pieces; i++) {
    shares[i].first = next;
    next += exact ? count_entries(&block->piece[i]) : block->piece[i].lines;
    if (next > r->header->entries) {
      const char *p = block->piece[i].begin;
      for (int64_t k = shares[i].first;; p = line_end(p, block->piece[i].end), line++)
        if (!is_comment_or_blank(p) && ++k > r->header->entries) break;
      HT_FAIL(r->text->input->ctx, HT_BAD_FORMAT, "%s:%lld: more entries than the %lld that line %lld declares", r->text->input->name,
              (long long)line, (long long)r->header->entries, (long long)r->header->size_line);
    }
    line += block->piece[i].lines;
  }
  return grow(r, next);
}

/* Close the gaps that comments and blank lines left, and report the first bad line. */
static ht_status collect(reader *r, const ht_block *block, const share *shares) {
  int64_t line = r->text->line;
  for (int i = 0; i < block->pieces; i++) {
    if (shares[i].bad) {
      for (const char *p = block->piece[i].begin; p < shares[i].bad; p = line_end(p, shares[i].bad)) line++;
      return explain(r, line, shares[i].bad);
    }
    move_entries(r->entries, r->count, shares[i].first, shares[i].used);
    r->count += shares[i].used;
    r->vanished += shares[i].vanished;
    line += block->piece[i].lines;
  }
  return HT_OK;
}

static ht_status read_all(reader *r) {
  ht_context *ctx = r->text->input->ctx;
  share shares[HT_TEXT_PIECES];
  for (const ht_block *block = ht_text_rest(r->text); block->size; block = ht_text_step(r->text)) {
    ht_status filled = HT_OK;
    HT_TRY(ctx, place(r, block, shares));
    int threads = ctx->threads;
#pragma omp parallel num_threads(threads) if (block->size > PARALLEL_BYTES)
    {
#pragma omp single nowait
      filled = ht_text_fill_next(r->text);
#pragma omp for schedule(dynamic, 1)
      for (int i = 0; i < block->pieces; i++) parse_piece(r, &block->piece[i], &shares[i]);
    }
    HT_TRY(ctx, collect(r, block, shares));
    HT_TRY(ctx, filled);
  }
  HT_CHECK(ctx, r->count == r->header->entries, HT_BAD_FORMAT,
           "%s:%lld: the file ends after %lld of the %s that line %lld declares: is it truncated?", r->text->input->name,
           (long long)(r->text->line > 1 ? r->text->line - 1 : 1), (long long)r->count, ht_number_of(r->header->entries, "entry").text,
           (long long)r->header->size_line);
  if (r->vanished)
    ht_log(ctx, HT_LOG_WARNING, "%s: %s %s too small for double precision and read as 0", r->text->input->name,
           ht_number_of(r->vanished, "value").text, r->vanished == 1 ? "is" : "are");
  return HT_OK;
}

void ht_mtx_release_entries(ht_context *ctx, ht_mtx_entries *e) {
  ht_release(ctx, e->rows);
  ht_release(ctx, e->columns);
  ht_release(ctx, e->values);
  *e = (ht_mtx_entries){0};
}

ht_status ht_mtx_read_entries(ht_text *text, const ht_mtx_header *header, ht_mtx_entries *entries) {
  reader r = {.text = text, .header = header, .entries = entries};
  *entries = (ht_mtx_entries){0};
  ht_status status = read_all(&r);
  if (status != HT_OK) {
    ht_mtx_release_entries(text->input->ctx, entries);
    return ht_trace(text->input->ctx, status, __func__, __FILE__, __LINE__);
  }
  return HT_OK;
}
