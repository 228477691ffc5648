/* Matrix Market: banner and size line. SPDX-License-Identifier: BSD-3-Clause */
#include "io/mtx.h"
#include <ctype.h>
#include <string.h>
#include "base/number.h"

enum { WORDS = 5, WORD = 32 };

/* What a file that is no Matrix Market file may be, by its first bytes. */
static const struct {
  const char *magic;
  size_t length;
  const char *what;
} foreign[] = {
    {"MATLAB 5.0 MAT-file", 19, "a MATLAB .mat file; write it as Matrix Market (mmwrite) or SciPy .npz first"},
    {"\x89HDF", 4, "an HDF5 file (MATLAB 7.3 .mat?); write it as Matrix Market (mmwrite) or SciPy .npz first"},
    {"version https://git-lfs", 23, "a Git LFS pointer, not the file itself; run 'git lfs pull' to get it"},
    {"PK\3\4", 4, "a zip archive where Matrix Market text is expected"},
    {"\x93NUMPY", 6, "a NumPy array where Matrix Market text is expected"},
    {"\xfd"
     "7zXZ",
     5, "packed by xz; unpack it first"},
    {"BZh", 3, "packed by bzip2; unpack it first"},
    {"\x28\xb5\x2f\xfd", 4, "packed by zstd; unpack it first"},
    {"\xff\xfe", 2, "text in UTF-16; save it as plain ASCII or UTF-8"},
    {"\xfe\xff", 2, "text in UTF-16; save it as plain ASCII or UTF-8"},
    {"<", 1, "HTML or XML, perhaps the page around a download; get the file itself"},
};

static int blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static const char *skip_blanks(const char *p) {
  while (blank(*p)) p++;
  return p;
}

/* Copy the next word of the line in lower case, cut to WORD - 1 bytes, bytes that cannot be printed as '?'. */
static const char *next_word(const char *p, char word[WORD]) {
  int length = 0;
  for (p = skip_blanks(p); *p != '\n' && !blank(*p); p++)
    if (length < WORD - 1) word[length++] = isprint((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '?';
  word[length] = 0;
  return p;
}

/* Three letters such as RSA open the third line of Harwell-Boeing and Rutherford-Boeing files. */
static int is_harwell_boeing(ht_text *t) {
  const char *p = t->block[t->current].text, *end = p + t->block[t->current].size;
  for (int line = 0; line < 2; line++) {
    p = memchr(p, '\n', (size_t)(end - p));
    if (!p || ++p >= end) return 0;
  }
  return end - p > 3 && isalpha((unsigned char)p[0]) && isalpha((unsigned char)p[1]) && isalpha((unsigned char)p[2]) &&
         strchr("rcpiqxRCPIQX", p[0]) && strchr("suhzrxSUHZRX", p[1]) && strchr("aexAEX", p[2]) && blank(p[3]);
}

static ht_status refuse_foreign(ht_text *t, int vector, const char *line) {
  ht_context *ctx = t->input->ctx;
  const char *name = t->input->name;
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    HT_CHECK(ctx, t->input->head_size < foreign[i].length || memcmp(t->input->head, foreign[i].magic, foreign[i].length) != 0,
             HT_BAD_FORMAT, "%s:1: this is %s", name, foreign[i].what);
  HT_CHECK(ctx, !is_harwell_boeing(t), HT_UNSUPPORTED,
           "%s:1: this looks like a Harwell-Boeing or Rutherford-Boeing file; convert it to Matrix Market first", name);
  line = skip_blanks(line);
  HT_CHECK(ctx, !isdigit((unsigned char)*line), HT_BAD_FORMAT,
           "%s:1: the banner is missing: the file starts with numbers; put %s before them", name,
           vector ? "'%%MatrixMarket matrix array real general' and the size line 'n 1'"
                  : "'%%MatrixMarket matrix coordinate real symmetric' (or what is true of it) and the size line");
  HT_FAIL(ctx, HT_BAD_FORMAT, "%s:1: the first line must start with %%%%MatrixMarket; this is no Matrix Market file%s", name,
          vector ? ", and no .npy" : "");
}

static ht_status read_banner(ht_text *t, int vector, ht_mtx_header *h) {
  ht_context *ctx = t->input->ctx;
  const char *line, *name = t->input->name;
  char word[WORDS][WORD];
  HT_TRY(ctx, ht_text_line(t, &line));
  HT_CHECK(ctx, line, HT_BAD_FORMAT, "%s:1: the file is empty", name);
  const char *p = line;
  if (!memcmp(p, "\xef\xbb\xbf", 3)) p += 3; /* the mark some editors put before UTF-8 text */
  for (int i = 0; i < WORDS; i++) p = next_word(p, word[i]);
  if (strcmp(word[0], "%%matrixmarket") != 0) return refuse_foreign(t, vector, line);
  const char *object = word[1], *format = word[2], *field = word[3], *symmetry = word[4];
  HT_CHECK(ctx, strcmp(object, "vector") != 0, HT_UNSUPPORTED,
           "%s:1: objects 'vector' are not read; write it as '%%%%MatrixMarket matrix array real general' of size n 1", name);
  HT_CHECK(ctx, !strcmp(object, "matrix"), HT_BAD_FORMAT, "%s:1: the object must be 'matrix', and is '%s'", name, object);
  h->coordinate = !strcmp(format, "coordinate");
  HT_CHECK(ctx, h->coordinate || !strcmp(format, "array"), HT_BAD_FORMAT, "%s:1: the format must be 'coordinate' or 'array', and is '%s'",
           name, format);
  HT_CHECK(ctx, strcmp(field, "complex") != 0, HT_UNSUPPORTED, "%s:1: complex matrices are not supported; only real ones are", name);
  h->field = !strcmp(field, "integer") ? HT_MTX_INTEGER : !strcmp(field, "pattern") ? HT_MTX_PATTERN : HT_MTX_REAL;
  HT_CHECK(ctx, h->field != HT_MTX_REAL || !strcmp(field, "real") || !strcmp(field, "double"), HT_BAD_FORMAT,
           "%s:1: the field must be 'real', 'integer' or 'pattern', and is '%s'", name, field);
  HT_CHECK(ctx, strcmp(symmetry, "skew-symmetric") != 0 && strcmp(symmetry, "hermitian") != 0, HT_UNSUPPORTED,
           "%s:1: %s matrices are not supported; only 'symmetric' and 'general' ones are", name, symmetry);
  h->symmetric = !strcmp(symmetry, "symmetric");
  HT_CHECK(ctx, h->symmetric || !strcmp(symmetry, "general"), HT_BAD_FORMAT,
           "%s:1: the symmetry must be 'symmetric' or 'general', and is '%s'", name, symmetry);
  HT_CHECK(ctx, h->coordinate || h->field != HT_MTX_PATTERN, HT_BAD_FORMAT, "%s:1: an array cannot be a pattern: it has no indices", name);
  HT_CHECK(ctx, *skip_blanks(p) == '\n', HT_BAD_FORMAT, "%s:1: the banner must end after '%s'", name, symmetry);
  return HT_OK;
}

/* A size: digits only, saturating at INT64_MAX. Returns NULL when there is none. */
static const char *parse_size(const char *p, int64_t *size) {
  p = skip_blanks(p);
  if (!isdigit((unsigned char)*p)) return NULL;
  for (*size = 0; isdigit((unsigned char)*p); p++) *size = *size > (INT64_MAX - 9) / 10 ? INT64_MAX : 10 * *size + (*p - '0');
  return blank(*p) || *p == '\n' ? p : NULL;
}

static ht_status read_sizes(ht_text *t, ht_mtx_header *h, const char *line) {
  ht_context *ctx = t->input->ctx;
  const char *name = t->input->name, *p = line;
  int64_t size[3] = {0}, wanted = h->coordinate ? 3 : 2;
  for (int i = 0; p && i < wanted; i++) p = parse_size(p, &size[i]);
  HT_CHECK(ctx, p, HT_BAD_FORMAT, "%s:%lld: the size line must be %s, each a whole number", name, (long long)h->size_line,
           h->coordinate ? "'rows columns entries'" : "'rows columns'");
  if (*skip_blanks(p) != '\n') {
    int64_t more;
    const char *fourth = parse_size(p, &more), *fifth = fourth ? parse_size(fourth, &more) : NULL;
    HT_CHECK(ctx, !h->coordinate || !fifth || *skip_blanks(fifth) != '\n', HT_UNSUPPORTED,
             "%s:%lld: five numbers on the size line are Lis's extended format with the right-hand side inside; put the matrix and the "
             "vector into a file each",
             name, (long long)h->size_line);
    HT_FAIL(ctx, HT_BAD_FORMAT, "%s:%lld: the size line holds more than %d numbers", name, (long long)h->size_line, (int)wanted);
  }
  h->rows = size[0];
  h->columns = size[1];
  h->entries = size[2];
  return HT_OK;
}

/* Refuse sizes that the library cannot hold or the file cannot hold. */
static ht_status check_sizes(ht_text *t, ht_mtx_header *h) {
  ht_context *ctx = t->input->ctx;
  const char *name = t->input->name;
  long long line = h->size_line, rows = h->rows, columns = h->columns;
  HT_CHECK(ctx, h->rows <= INT32_MAX && h->columns <= INT32_MAX, HT_UNSUPPORTED,
           "%s:%lld: %lld x %lld is too large: rows and columns are limited to 2147483647 (32-bit indices)", name, line, rows, columns);
  if (!h->coordinate) h->entries = h->symmetric ? h->rows * (h->rows + 1) / 2 : h->rows * h->columns;
  HT_CHECK(ctx, !h->symmetric || h->rows == h->columns, HT_BAD_MATRIX, "%s:%lld: a symmetric matrix must be square, and is %lld x %lld",
           name, line, rows, columns);
  /* An entry takes two bytes in an array, four in a pattern, six otherwise, the line end included; the last may lack it. */
  int64_t bytes = !h->coordinate ? 2 : h->field == HT_MTX_PATTERN ? 4 : 6;
  HT_CHECK(ctx, t->input->bound == INT64_MAX || h->entries <= t->input->bound / bytes + 1, HT_BAD_FORMAT,
           "%s:%lld: %s declared, and the file is too short for as many: is it truncated?", name, line,
           ht_number_of(h->entries, "entry").text);
  return HT_OK;
}

ht_status ht_mtx_read_header(ht_text *t, int vector, ht_mtx_header *h) {
  ht_context *ctx = t->input->ctx;
  memset(h, 0, sizeof *h);
  HT_TRY(ctx, read_banner(t, vector, h));
  const char *line;
  do {
    h->size_line = t->line;
    HT_TRY(ctx, ht_text_line(t, &line));
    HT_CHECK(ctx, line, HT_BAD_FORMAT, "%s:%lld: the file ends before the size line", t->input->name, (long long)h->size_line);
  } while (*skip_blanks(line) == '%' || *skip_blanks(line) == '\n');
  HT_TRY(ctx, read_sizes(t, h, line));
  return check_sizes(t, h);
}
