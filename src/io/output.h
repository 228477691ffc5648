/* A file that appears whole or not at all. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_OUTPUT_H
#define HT_IO_OUTPUT_H
#include <limits.h>
#include <stddef.h>
#include "base/context.h"

enum { HT_OUTPUT_PATH = 4096 };

typedef struct ht_output {
  ht_context *ctx;
  const char *name; /* for messages; the caller keeps it alive */
  int fd;           /* -1: closed */
  int replaces;     /* written beside the target and renamed; else straight to a pipe, a device or standard output */
  int64_t written;
  char target[HT_OUTPUT_PATH], temporary[HT_OUTPUT_PATH + 32];
} ht_output;

/* `path` "-" is standard output. A regular target is written under another name in its folder and renamed by
 * ht_output_commit; symbolic links are followed and the file's mode is kept. */
ht_status ht_output_open(ht_context *ctx, const char *path, ht_output *output);
ht_status ht_output_write(ht_output *output, const void *bytes, size_t size);
/* Overwrite bytes written before; only where the output `replaces`. */
ht_status ht_output_patch(ht_output *output, int64_t offset, const void *bytes, size_t size);
ht_status ht_output_commit(ht_output *output);
/* After an error: remove what was written. Nothing happens after a commit. */
void ht_output_abandon(ht_output *output);
/* Remove the temporary file of the output opened last, if it is neither committed nor abandoned; for a signal handler that ends the
 * process. */
void ht_output_unlink(void);

#endif
