/* Config files: any bytes are read or refused with a sentence, and every value that was taken prints and reads back.
 * SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "halftone/halftone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition) {
  if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ht_context *ctx;
  ht_options *options;
  char path[64], text[512];
  int fd = memfd_create("config", 0);
  if (fd < 0) return 0;
  check(write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  check(ht_context_create(&ctx) == HT_OK);
  check(ht_options_create(ctx, &options) == HT_OK);
  check(ht_options_read_file(options, path) == HT_OK || *ht_context_error(ctx));
  for (int i = 0; i < ht_option_count(); i++) {
    const char *name = ht_option_at(i)->name;
    check(ht_options_get(options, name, text, sizeof text) == HT_OK);
    check(ht_options_set(options, name, text) == HT_OK);
  }
  ht_options_destroy(options);
  ht_context_destroy(ctx);
  close(fd);
  return 0;
}
