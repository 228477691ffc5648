/* Bytes from a file, standard input or memory, unpacked when they are gzip. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_INPUT_H
#define HT_IO_INPUT_H
#include <stddef.h>
#include <zlib.h>
#include "base/context.h"

enum { HT_INPUT_HEAD = 512 };

typedef struct ht_input {
  ht_context *ctx;
  const char *name; /* for messages; the caller keeps it alive */
  int fd;           /* -1: memory */
  const unsigned char *memory;
  size_t memory_size, memory_at;
  int64_t bound; /* the unpacked bytes are at most this; INT64_MAX for a pipe */
  /* the first unpacked bytes, which tell the format; they are read again */
  unsigned char head[HT_INPUT_HEAD];
  size_t head_size, head_at;
  /* gzip */
  int gzip, member_open;
  z_stream stream;
  unsigned char *packed;
} ht_input;

/* `path` "-" is standard input. Files are read, never mapped: one that another program cuts short is an error, not a signal. */
ht_status ht_input_open(ht_context *ctx, const char *path, ht_input *input);
ht_status ht_input_open_memory(ht_context *ctx, const char *name, const void *bytes, size_t size, ht_input *input);
void ht_input_close(ht_input *input);
/* Fill `buffer` unless the input ends; *got < capacity means the end. */
ht_status ht_input_read(ht_input *input, void *buffer, size_t capacity, size_t *got);
/* All that is left in one array from ht_allocate. */
ht_status ht_input_all(ht_input *input, unsigned char **bytes, size_t *size);

#endif
