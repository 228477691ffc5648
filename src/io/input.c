/* Bytes from a file, standard input or memory. SPDX-License-Identifier: BSD-3-Clause */
#include "io/input.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  PACKED = 1 << 18,
  DEFLATE_RATIO = 1040, /* deflate cannot shrink by more than 1032 */
  FIRST_ALL = 1 << 16
};

/* read() until `capacity` bytes are there or the end. */
static ht_status read_raw(ht_input *in, void *buffer, size_t capacity, size_t *got) {
  *got = 0;
  if (in->fd < 0) {
    size_t left = in->memory_size - in->memory_at, take = left < capacity ? left : capacity;
    if (take) memcpy(buffer, in->memory + in->memory_at, take);
    in->memory_at += take;
    *got = take;
    return HT_OK;
  }
  while (*got < capacity) {
    ssize_t r = read(in->fd, (char *)buffer + *got, capacity - *got);
    if (r == 0) break;
    if (r > 0) {
      *got += (size_t)r;
    } else {
      HT_CHECK(in->ctx, errno == EINTR, HT_BAD_FILE, "%s cannot be read: %s", in->name, strerror(errno));
      HT_CHECK(in->ctx, !ht_stop_requested(in->ctx), HT_INTERRUPTED, "%s: reading was interrupted", in->name);
    }
  }
  return HT_OK;
}

static voidpf zlib_allocate(voidpf ctx, uInt count, uInt size) {
  void *memory;
  return ht_allocate(ctx, (int64_t)count * size, 1, &memory) == HT_OK ? memory : Z_NULL;
}

static void zlib_release(voidpf ctx, voidpf memory) { ht_release(ctx, memory); }

/* The bytes read so far to tell gzip from text are in `head`: they become the first packed bytes. */
static ht_status begin_gzip(ht_input *in) {
  HT_TRY(in->ctx, ht_allocate(in->ctx, PACKED, 1, &in->packed));
  in->stream = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = in->ctx};
  HT_CHECK(in->ctx, inflateInit2(&in->stream, 15 + 16) == Z_OK, HT_NO_MEMORY, "%s: no memory for unpacking gzip", in->name);
  in->gzip = in->member_open = 1;
  memcpy(in->packed, in->head, in->head_size);
  in->stream.next_in = in->packed;
  in->stream.avail_in = (uInt)in->head_size;
  in->head_size = 0;
  if (in->bound < INT64_MAX / DEFLATE_RATIO) in->bound *= DEFLATE_RATIO;
  return HT_OK;
}

static ht_status refill(ht_input *in) {
  size_t got;
  HT_TRY(in->ctx, read_raw(in, in->packed, PACKED, &got));
  in->stream.next_in = in->packed;
  in->stream.avail_in = (uInt)got;
  return HT_OK;
}

/* A gzip file may hold several members one after the other, and zeros as padding behind the last. */
static ht_status next_member(ht_input *in, int *end) {
  z_stream *z = &in->stream;
  for (*end = 0;; z->next_in++, z->avail_in--) {
    if (z->avail_in == 0) HT_TRY(in->ctx, refill(in));
    if (z->avail_in == 0) {
      *end = 1;
      return HT_OK;
    }
    if (*z->next_in != 0) break;
  }
  HT_CHECK(in->ctx, *z->next_in == 0x1f, HT_BAD_FORMAT, "%s: bytes that are not gzip follow the packed data", in->name);
  in->member_open = 1;
  inflateReset(z);
  return HT_OK;
}

static ht_status read_gzip(ht_input *in, void *buffer, size_t capacity, size_t *got) {
  z_stream *z = &in->stream;
  *got = 0;
  while (*got < capacity) {
    if (!in->member_open) {
      int end;
      HT_TRY(in->ctx, next_member(in, &end));
      if (end) return HT_OK;
    }
    if (z->avail_in == 0) HT_TRY(in->ctx, refill(in));
    HT_CHECK(in->ctx, z->avail_in > 0, HT_BAD_FORMAT, "%s: the gzip file is truncated", in->name);
    size_t room = capacity - *got;
    z->next_out = (unsigned char *)buffer + *got;
    z->avail_out = room > 1u << 30 ? 1u << 30 : (uInt)room;
    uInt before = z->avail_out;
    int r = inflate(z, Z_NO_FLUSH);
    *got += before - z->avail_out;
    HT_CHECK(in->ctx, r != Z_MEM_ERROR, HT_NO_MEMORY, "%s: no memory for unpacking gzip", in->name);
    HT_CHECK(in->ctx, r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR, HT_BAD_FORMAT, "%s: the gzip data is damaged (%s)", in->name,
             z->msg ? z->msg : "bad stream");
    if (r == Z_STREAM_END) in->member_open = 0;
  }
  return HT_OK;
}

ht_status ht_input_read(ht_input *in, void *buffer, size_t capacity, size_t *got) {
  size_t held = in->head_size - in->head_at, take = held < capacity ? held : capacity;
  if (take) memcpy(buffer, in->head + in->head_at, take);
  in->head_at += take;
  char *rest = (char *)buffer + take;
  if (in->gzip)
    HT_TRY(in->ctx, read_gzip(in, rest, capacity - take, got));
  else
    HT_TRY(in->ctx, read_raw(in, rest, capacity - take, got));
  *got += take;
  return HT_OK;
}

static ht_status begin(ht_input *in) {
  HT_TRY(in->ctx, read_raw(in, in->head, sizeof in->head, &in->head_size));
  if (in->head_size < 2 || in->head[0] != 0x1f || in->head[1] != 0x8b) return HT_OK;
  HT_TRY(in->ctx, begin_gzip(in));
  return ht_input_read(in, in->head, sizeof in->head, &in->head_size);
}

ht_status ht_input_open_memory(ht_context *ctx, const char *name, const void *bytes, size_t size, ht_input *in) {
  memset(in, 0, sizeof *in);
  in->ctx = ctx;
  in->name = name;
  in->fd = -1;
  in->memory = bytes;
  in->memory_size = size;
  in->bound = (int64_t)size;
  ht_status status = begin(in);
  if (status != HT_OK) ht_input_close(in);
  return status;
}

ht_status ht_input_open(ht_context *ctx, const char *path, ht_input *in) {
  memset(in, 0, sizeof *in);
  in->ctx = ctx;
  in->bound = INT64_MAX;
  if (!strcmp(path, "-")) {
    in->name = "standard input";
    in->fd = STDIN_FILENO;
  } else {
    HT_CHECK(ctx, *path, HT_BAD_FILE, "the name of a file to read is empty");
    in->name = path;
    do {
      HT_CHECK(ctx, !ht_stop_requested(ctx), HT_INTERRUPTED, "%s: reading was interrupted", path);
      in->fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (in->fd < 0 && errno == EINTR); /* a pipe waits here for who writes to it */
    HT_CHECK(ctx, in->fd >= 0, HT_BAD_FILE, "%s cannot be opened: %s", path, strerror(errno));
  }
  struct stat about;
  ht_status status = HT_OK;
  if (fstat(in->fd, &about) != 0) HT_FAIL_GOTO(ctx, status, close, HT_BAD_FILE, "%s cannot be read: %s", in->name, strerror(errno));
  if (S_ISDIR(about.st_mode)) HT_FAIL_GOTO(ctx, status, close, HT_BAD_FILE, "%s is a folder, not a file", in->name);
  if (S_ISREG(about.st_mode)) in->bound = about.st_size;
  HT_TRY_GOTO(ctx, status, begin(in), close);
  return HT_OK;
close:
  ht_input_close(in);
  return status;
}

void ht_input_close(ht_input *in) {
  if (in->gzip) inflateEnd(&in->stream);
  ht_release(in->ctx, in->packed);
  if (in->fd > STDIN_FILENO) close(in->fd);
  in->fd = -1;
  in->gzip = 0;
  in->packed = NULL;
}

ht_status ht_input_all(ht_input *in, unsigned char **bytes, size_t *size) {
  unsigned char *buffer, *larger;
  int64_t capacity = in->bound < INT64_MAX && !in->gzip ? in->bound + 1 : FIRST_ALL;
  *bytes = NULL;
  *size = 0;
  HT_TRY(in->ctx, ht_allocate(in->ctx, capacity, 1, &buffer));
  ht_status status;
  for (;;) {
    size_t got;
    HT_TRY_GOTO(in->ctx, status, ht_input_read(in, buffer + *size, (size_t)capacity - *size, &got), fail);
    *size += got;
    if (*size < (size_t)capacity) break;
    HT_TRY_GOTO(in->ctx, status, ht_allocate(in->ctx, 2 * capacity, 1, &larger), fail);
    memcpy(larger, buffer, *size);
    ht_release(in->ctx, buffer);
    buffer = larger;
    capacity *= 2;
  }
  *bytes = buffer;
  return HT_OK;
fail:
  ht_release(in->ctx, buffer);
  return status;
}
