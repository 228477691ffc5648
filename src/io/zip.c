/* Zip archives (PKWARE's APPNOTE.TXT describes the format). SPDX-License-Identifier: BSD-3-Clause */
#include "io/zip.h"
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
  END = 22, /* sizes of the fixed parts of the records */
  END64 = 56,
  LOCATOR64 = 20,
  CENTRAL = 46,
  LOCAL = 30,
  EXTRA64 = 20, /* what we write: tag, length, two sizes */
  COMMENT_MAX = 65535,
  RATIO = 1040 /* deflate cannot shrink by more than 1032 */
};

static uint32_t get16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static uint32_t get32(const unsigned char *p) { return get16(p) | get16(p + 2) << 16; }
static uint64_t get64(const unsigned char *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

/* ---- reading ---- */

static ht_status bad(const ht_zip *z, const char *what) {
  HT_FAIL(z->ctx, HT_BAD_FORMAT, "%s: the zip archive is damaged or truncated (%s)", z->name, what);
}

static int inside(const ht_zip *z, uint64_t offset, uint64_t length) { return offset <= z->size && length <= z->size - offset; }

ht_status ht_zip_open(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, ht_zip *z) {
  *z = (ht_zip){.ctx = ctx, .name = name, .bytes = bytes, .size = size};
  if (size < END) return bad(z, "no directory");
  /* The end record stands last, but for a comment. */
  uint64_t end = size - END, lowest = end > COMMENT_MAX ? end - COMMENT_MAX : 0;
  while (get32(bytes + end) != 0x06054b50u) {
    if (end == lowest) return bad(z, "no directory");
    end--;
  }
  uint64_t length = get32(bytes + end + 12), start = get32(bytes + end + 16);
  if (end >= LOCATOR64 && get32(bytes + end - LOCATOR64) == 0x07064b50u) {
    uint64_t record = get64(bytes + end - LOCATOR64 + 8);
    if (!inside(z, record, END64) || get32(bytes + record) != 0x06064b50u) return bad(z, "no zip64 directory");
    length = get64(bytes + record + 40);
    start = get64(bytes + record + 48);
  }
  if (!inside(z, start, length)) return bad(z, "the directory lies outside of the file");
  z->directory = start;
  z->directory_end = start + length;
  return HT_OK;
}

typedef struct entry {
  uint32_t flags, method, crc;
  uint64_t packed, size, offset;
} entry;

/* Replace sizes of 0xffffffff by those in the zip64 extra field. */
static int read_extra(entry *e, const unsigned char *extra, uint64_t length) {
  while (length >= 4) {
    uint64_t tag = get16(extra), size = get16(extra + 2), at = 4;
    if (size > length - 4) return 0;
    if (tag == 1) {
      uint64_t *fields[3] = {&e->size, &e->packed, &e->offset};
      for (int i = 0; i < 3; i++) {
        if (*fields[i] != 0xffffffffu) continue;
        if (at + 8 > 4 + size) return 0;
        *fields[i] = get64(extra + at);
        at += 8;
      }
    }
    extra += 4 + size;
    length -= 4 + size;
  }
  return 1;
}

static ht_status find_entry(const ht_zip *z, const char *member, entry *e) {
  uint64_t wanted = strlen(member);
  for (uint64_t at = z->directory; at < z->directory_end;) {
    const unsigned char *p = z->bytes + at;
    if (z->directory_end - at < CENTRAL || get32(p) != 0x02014b50u) return bad(z, "a directory entry");
    uint64_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32), whole = CENTRAL + name + extra + comment;
    if (z->directory_end - at < whole) return bad(z, "a directory entry");
    at += whole;
    if (name != wanted || memcmp(p + CENTRAL, member, wanted) != 0) continue;
    *e = (entry){get16(p + 8), get16(p + 10), get32(p + 16), get32(p + 20), get32(p + 24), get32(p + 42)};
    return read_extra(e, p + CENTRAL + name, extra) ? HT_OK : bad(z, "an extra field");
  }
  HT_FAIL(z->ctx, HT_BAD_FORMAT, "%s: the archive has no member '%s'; a matrix is expected as scipy.sparse.save_npz writes it", z->name,
          member);
}

static voidpf zlib_allocate(voidpf ctx, uInt count, uInt size) {
  void *memory;
  return ht_allocate(ctx, (int64_t)count * size, 1, &memory) == HT_OK ? memory : Z_NULL;
}

static void zlib_release(voidpf ctx, voidpf memory) { ht_release(ctx, memory); }

static uint32_t checksum(const unsigned char *bytes, uint64_t size) {
  uLong crc = crc32(0, NULL, 0);
  for (uint64_t at = 0; at < size;) {
    uInt part = size - at > 1u << 30 ? 1u << 30 : (uInt)(size - at);
    crc = crc32(crc, bytes + at, part);
    at += part;
  }
  return (uint32_t)crc;
}

/* All of a deflated member; *done tells whether it had the size that was promised. */
static ht_status unpack(const ht_zip *z, const unsigned char *packed, uint64_t packed_size, unsigned char *bytes, uint64_t size,
                        int *done) {
  z_stream s = {.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = z->ctx};
  HT_CHECK(z->ctx, inflateInit2(&s, -15) == Z_OK, HT_NO_MEMORY, "%s: no memory for unpacking", z->name);
  uint64_t in = 0, out = 0;
  int r = Z_OK;
  while (r == Z_OK) {
    uInt in_part = packed_size - in > 1u << 30 ? 1u << 30 : (uInt)(packed_size - in);
    uInt out_part = size - out > 1u << 30 ? 1u << 30 : (uInt)(size - out);
    s.next_in = (unsigned char *)packed + in;
    s.avail_in = in_part;
    s.next_out = bytes + out;
    s.avail_out = out_part;
    r = inflate(&s, Z_NO_FLUSH);
    in += in_part - s.avail_in;
    out += out_part - s.avail_out;
  }
  inflateEnd(&s);
  HT_CHECK(z->ctx, r != Z_MEM_ERROR, HT_NO_MEMORY, "%s: no memory for unpacking", z->name);
  *done = r == Z_STREAM_END && out == size;
  return HT_OK;
}

ht_status ht_zip_member(const ht_zip *z, const char *member, const unsigned char **bytes, size_t *size, unsigned char **owned) {
  entry e;
  *owned = NULL;
  HT_TRY(z->ctx, find_entry(z, member, &e));
  HT_CHECK(z->ctx, !(e.flags & 1), HT_UNSUPPORTED, "%s: member '%s' is encrypted", z->name, member);
  HT_CHECK(z->ctx, e.method == 0 || e.method == 8, HT_UNSUPPORTED, "%s: member '%s' is packed by method %u; store or deflate it", z->name,
           member, e.method);
  if (!inside(z, e.offset, LOCAL) || get32(z->bytes + e.offset) != 0x04034b50u) return bad(z, "a member's header");
  uint64_t start = e.offset + LOCAL + get16(z->bytes + e.offset + 26) + get16(z->bytes + e.offset + 28);
  if (!inside(z, start, e.packed)) return bad(z, "a member lies outside of the file");
  if (e.method == 0 ? e.size != e.packed : e.size / RATIO > e.packed) return bad(z, "a member's size");
  *bytes = z->bytes + start;
  *size = e.size;
  if (e.method == 8) {
    int done;
    HT_TRY(z->ctx, ht_allocate(z->ctx, (int64_t)e.size, 1, owned));
    ht_status status = unpack(z, *bytes, e.packed, *owned, e.size, &done);
    if (status == HT_OK && !done) status = bad(z, "packed data");
    if (status != HT_OK) {
      ht_release(z->ctx, *owned);
      *owned = NULL;
      return status;
    }
    *bytes = *owned;
  }
  if (checksum(*bytes, *size) == e.crc) return HT_OK;
  ht_release(z->ctx, *owned);
  *owned = NULL;
  return bad(z, "a checksum");
}

/* ---- writing ---- */

static unsigned char *put16(unsigned char *p, uint32_t v) {
  *p++ = (unsigned char)v;
  *p++ = (unsigned char)(v >> 8);
  return p;
}
static unsigned char *put32(unsigned char *p, uint32_t v) { return put16(put16(p, v), v >> 16); }
static unsigned char *put64(unsigned char *p, uint64_t v) { return put32(put32(p, (uint32_t)v), (uint32_t)(v >> 32)); }

/* The fields that local and central headers share: version 4.5 (zip64), stored, the date 1980-01-01 so that bytes repeat. */
static unsigned char *put_common(unsigned char *p, uint32_t crc, uint32_t name_length, uint32_t extra_length) {
  p = put16(p, 45);
  p = put16(p, 0);
  p = put16(p, 0);
  p = put16(p, 0);
  p = put16(p, 0x21);
  p = put32(p, crc);
  p = put32(p, 0xffffffffu); /* sizes: in the extra field */
  p = put32(p, 0xffffffffu);
  p = put16(p, name_length);
  return put16(p, extra_length);
}

static unsigned char *put_sizes(unsigned char *p, uint32_t extra_length, uint64_t size) {
  p = put16(p, 1);
  p = put16(p, extra_length - 4);
  p = put64(p, size);
  return put64(p, size);
}

ht_status ht_zip_write(ht_zip_writer *w, const char *member, const ht_zip_part parts[2]) {
  ht_context *ctx = w->output->ctx;
  HT_CHECK(ctx, w->members < HT_ZIP_MEMBERS && strlen(member) < sizeof w->member->name, HT_INTERNAL, "too many zip members, or '%s'",
           member);
  unsigned char header[LOCAL + sizeof w->member->name + EXTRA64], *p = header;
  uint32_t length = (uint32_t)strlen(member);
  uLong crc = checksum(parts[0].bytes, parts[0].size);
  crc = crc32_combine(crc, checksum(parts[1].bytes, parts[1].size), (z_off_t)parts[1].size);
  uint64_t size = parts[0].size + parts[1].size;
  snprintf(w->member[w->members].name, sizeof w->member->name, "%s", member);
  w->member[w->members].offset = w->output->written;
  w->member[w->members].size = (int64_t)size;
  w->member[w->members].crc = (uint32_t)crc;
  w->members++;
  p = put32(p, 0x04034b50u);
  p = put_common(p, (uint32_t)crc, length, EXTRA64);
  memcpy(p, member, length);
  p = put_sizes(p + length, EXTRA64, size);
  HT_TRY(ctx, ht_output_write(w->output, header, (size_t)(p - header)));
  for (int i = 0; i < 2; i++) HT_TRY(ctx, ht_output_write(w->output, parts[i].bytes, parts[i].size));
  return HT_OK;
}

static ht_status write_central(ht_zip_writer *w, int i) {
  unsigned char header[CENTRAL + sizeof w->member->name + EXTRA64 + 8], *p = header;
  uint32_t length = (uint32_t)strlen(w->member[i].name);
  p = put32(p, 0x02014b50u);
  p = put16(p, 45);
  p = put_common(p, w->member[i].crc, length, EXTRA64 + 8);
  p = put16(p, 0);           /* comment */
  p = put16(p, 0);           /* disk */
  p = put16(p, 0);           /* attributes */
  p = put32(p, 0x81a40000u); /* a regular file, mode 644 */
  p = put32(p, 0xffffffffu); /* offset: in the extra field */
  memcpy(p, w->member[i].name, length);
  p = put_sizes(p + length, EXTRA64 + 8, (uint64_t)w->member[i].size);
  p = put64(p, (uint64_t)w->member[i].offset);
  return ht_output_write(w->output, header, (size_t)(p - header));
}

ht_status ht_zip_finish(ht_zip_writer *w) {
  ht_context *ctx = w->output->ctx;
  uint64_t start = (uint64_t)w->output->written, members = (uint64_t)w->members;
  for (int i = 0; i < w->members; i++) HT_TRY(ctx, write_central(w, i));
  uint64_t end = (uint64_t)w->output->written;
  unsigned char tail[END64 + LOCATOR64 + END], *p = tail;
  p = put32(p, 0x06064b50u);
  p = put64(p, END64 - 12);
  p = put32(p, 45 | 45u << 16);
  p = put64(p, 0); /* disks */
  p = put64(p, members);
  p = put64(p, members);
  p = put64(p, end - start);
  p = put64(p, start);
  p = put32(p, 0x07064b50u);
  p = put32(p, 0);
  p = put64(p, end);
  p = put32(p, 1);
  p = put32(p, 0x06054b50u);
  p = put32(p, 0);
  p = put16(p, (uint32_t)members);
  p = put16(p, (uint32_t)members);
  p = put32(p, 0xffffffffu);
  p = put32(p, 0xffffffffu);
  p = put16(p, 0);
  return ht_output_write(w->output, tail, (size_t)(p - tail));
}
